"""A workshop in a workspace of its own, and a notebook on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reyn_jupyter.sessions import current
from tests.notebook.conftest import run  # noqa: F401 - a fixture
from tests.workflows.acceptance.workshop import Notebook, Workshop


@pytest.fixture
def workshop(workspace: Path) -> Iterator[Workshop]:
    made = Workshop(workspace)
    yield made
    made.close()


@pytest.fixture
def notebook(run: Callable[[str], str], workshop: Workshop) -> Notebook:  # noqa: F811 - the fixture above
    current._current.append(workshop.session)
    return Notebook(workshop, run)
