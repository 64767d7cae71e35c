"""The cells of the person's notebook as a front end sent them, and the way to propose a new one there.

Invariant: a front end sends, the kernel never waits for it: while a cell runs, no message of the front end is read. So
a copy is as old as its `at`, and a proposal is sent without an answer, under an id that the kernel chose.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Literal, Protocol

MOST_CELLS = 2_000
MOST_SOURCE = 20_000  # characters of one cell
MOST_OUTPUT = 4_000  # characters of one output
MOST_OUTPUTS = 20  # of one cell
CellKind = Literal["code", "markdown", "raw"]
Origin = Literal["front end", "file", "history"]


@dataclass(frozen=True)
class CellOutput:
    """One output of a cell.

    Attributes:
        kind: "stream", "result", "display" or "error".
        text: its plain text; of an error name, message and traceback.
        types: the MIME types that it has beside plain text.
        cut: how many characters of the text are left out.
    """

    kind: str
    text: str
    types: tuple[str, ...] = ()
    cut: int = 0


@dataclass(frozen=True)
class NotebookCell:
    """One cell.

    Attributes:
        id: as the notebook's file has it; "" where there is none.
        execution_count: None where it was not run.
        outputs: the first ones.
        cut: how many characters of the source are left out.
        more_outputs: how many outputs are left out.
    """

    id: str
    kind: CellKind
    source: str
    execution_count: int | None = None
    outputs: tuple[CellOutput, ...] = ()
    cut: int = 0
    more_outputs: int = 0


@dataclass(frozen=True)
class NotebookCells:
    """The cells of a notebook at one moment.

    Attributes:
        cells: the first ones, in their order.
        origin: who gave them.
        at: when, in seconds since the epoch; of a file when it was saved.
        more: how many cells are left out.
    """

    cells: tuple[NotebookCell, ...]
    origin: Origin
    at: float
    more: int = 0

    def find(self, cell: str) -> NotebookCell | None:
        """Return the cell of an id."""
        return next((each for each in self.cells if each.id == cell), None)


@dataclass(frozen=True)
class ProposedCell:
    """A cell that is proposed, not run.

    Attributes:
        id: of the new cell.
        below: ids of cells, of which it goes below the first that is there; below the active cell where none is.
        run: the run that proposes it.
    """

    id: str
    kind: Literal["code", "markdown"]
    source: str
    below: tuple[str, ...]
    run: str


class NotebookChannel(Protocol):
    """The line to one front end that shows the notebook."""

    def propose(self, cell: ProposedCell) -> None:
        """Ask it to insert a cell; from any thread."""

    def withdraw(self, cell: str, source: str) -> None:
        """Ask it to take a cell out again if it still holds this source and was not run; from any thread."""


class LiveNotebook:
    """The notebook of this kernel as the front end that was heard last shows it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cells: NotebookCells | None = None
        self._channel: NotebookChannel | None = None

    def receive(self, cells: NotebookCells, channel: NotebookChannel) -> None:
        """Take the cells that a front end sent; proposals go to it from now on."""
        with self._lock:
            self._cells, self._channel = cells, channel

    def forget(self, channel: NotebookChannel) -> None:
        """Let go of a front end that is gone, and of its cells."""
        with self._lock:
            if self._channel is channel:
                self._cells = self._channel = None

    @property
    def now(self) -> tuple[NotebookCells, NotebookChannel] | None:
        """Return what came last and from whom; None where no front end has sent any."""
        with self._lock:
            if self._cells is None or self._channel is None:
                return None
            return self._cells, self._channel


LIVE_NOTEBOOK = LiveNotebook()  # one a process, as a kernel is that of one notebook
