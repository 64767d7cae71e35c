"""What people give to say where work runs: an executor, or the client of a Dask cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reyn_jupyter.executors.executor import Executor


def executor_of_client(given: object) -> Executor | None:
    """Return an executor of a Dask client; None where the object is something else.

    Raises:
        ExecutorLostError: the client is closed.
    """
    if "distributed" not in sys.modules:  # then nobody made a client
        return None
    from reyn_jupyter.executors.dask import executor_of

    return executor_of(given)
