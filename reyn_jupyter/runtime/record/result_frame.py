"""The table that a question came to, as an ordinary frame that knows where it comes from.

Invariant: whatever is made of it (a selection, a copy, a pickle) is a plain DataFrame, so that neither the run nor its
store travels along, and no code of the person's meets a type that it does not expect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from reyn_jupyter.runtime.record.trace import Trace


class ResultFrame(pd.DataFrame):
    """A DataFrame with the run that gave it. A column called like one of the three below is ``frame["answer"]``.

    Args:
        frame: the table; its columns are shared, not copied.
        trace: the run.

    Example:
        >>> by_region.plot.bar(), by_region.answer, by_region.sql                   # doctest: +SKIP
    """

    _metadata = ["_trace"]  # noqa: RUF012 - pandas' own way to declare an attribute

    _trace: Trace

    def __init__(self, frame: pd.DataFrame, trace: Trace) -> None:
        super().__init__(frame)  # type: ignore[call-arg]  # the stubs know `__new__` alone
        self._trace = trace

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return pd.DataFrame

    def __reduce__(self) -> Any:
        return pd.DataFrame, (self.copy(deep=False),)

    @property
    def trace(self) -> Trace:
        """The run."""
        return self._trace

    @property
    def answer(self) -> str:
        """The answer in words."""
        return self._trace.answer

    @property
    def sql(self) -> str | None:
        """The query that gave the table, None where none did."""
        return self._trace.sql
