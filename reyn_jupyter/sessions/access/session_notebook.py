"""The notebook that the person sits at, for the categories of its session.

Invariants: nothing here waits for a front end. Outputs of the kernel's history are described by type and size, never by
their `repr`. A proposed cell is never run from here.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from reyn_jupyter.backends.object_summary import title
from reyn_jupyter.guard.held_place import WorkspaceError
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.runtime.access.live_notebook import (
    MOST_CELLS,
    MOST_OUTPUT,
    MOST_OUTPUTS,
    MOST_SOURCE,
    CellOutput,
    LiveNotebook,
    NotebookCell,
    NotebookCells,
    ProposedCell,
)
from reyn_jupyter.runtime.access.reversals import Reversal
from reyn_jupyter.runtime.access.session_access import Proposal
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.questions.text_prompt import front_end_there
from reyn_jupyter.runtime.services import MainThread

T = TypeVar("T")
MOST_FILE = 20 << 20  # bytes of a saved notebook
_KINDS = {"stream": "stream", "execute_result": "result", "display_data": "display", "error": "error"}


class SessionNotebook:
    """Reads the notebook's cells and proposes new ones, see `NotebookAccess`.

    Args:
        live: what front ends sent.
        path: gives the notebook's file, from the workspace on; None where it is not known.
        workspace: in which the file is read.
        main_thread: runs what asks the shell.
    """

    def __init__(
        self,
        live: LiveNotebook,
        path: Callable[[], str | None],
        workspace: Workspace,
        main_thread: MainThread,
    ) -> None:
        self._live = live
        self._path = path
        self._workspace = workspace
        self._main_thread = main_thread
        self._last: tuple[str, str, str] | None = None  # the cell that ran, a run, and what it proposed last

    @property
    def missing(self) -> str | None:
        """See `NotebookAccess.missing`."""
        return None if _shell() is not None else "There is no notebook here: this is a plain Python program."

    @property
    def path(self) -> str | None:
        """See `NotebookAccess.path`."""
        path = self._path()
        return path if path is not None and path.endswith(".ipynb") else None

    async def cells(self) -> NotebookCells:
        """See `NotebookAccess.cells`."""
        now = self._live.now
        if now is not None:
            return now[0]
        found = self._saved()
        return found if found is not None else await self._main_thread(_history)

    async def propose(self, source: str, kind: Literal["code", "markdown"], run: str) -> Proposal:
        """See `NotebookAccess.propose`."""
        return await self._main_thread(lambda: self._proposed(source, kind, run))

    def _saved(self) -> NotebookCells | None:
        """Return the cells of the notebook's file; None where there is none that can be read."""
        path = self.path
        if path is None:
            return None
        try:
            data = self._workspace.read_bytes(path, MOST_FILE)
            at = self._workspace.resolve(path).stat().st_mtime
            return saved_cells(json.loads(data), at)
        except (OSError, ValueError, RecursionError, WorkspaceError):
            return None

    def _proposed(self, source: str, kind: Literal["code", "markdown"], run: str) -> Proposal:
        running = _running_cell() or ""
        now = self._live.now
        if now is None:
            return _next_input(source, kind)
        before = self._last
        earlier = before[2] if before is not None and before[:2] == (running, run) else ""
        cell = ProposedCell(secrets.token_hex(4), kind, source, tuple(filter(None, (earlier, running))), run)
        now[1].propose(cell)
        self._last = (running, run, cell.id)
        sent = time.time()
        return Proposal(
            cell.id,
            "below the cell that runs",
            Reversal("cell", lambda: (self._withdraw(cell, sent),)),
        )

    def _withdraw(self, cell: ProposedCell, sent: float) -> str:
        """Ask for a cell to be taken out, unless the last copy of the notebook says why not."""
        now = self._live.now
        if now is None:
            return f"the cell {cell.id} stays: no front end is connected to take it out; delete it there"
        cells, channel = now
        if cells.at > sent:
            there = cells.find(cell.id)
            if there is None:
                return f"the cell {cell.id} is not in the notebook any more"
            if there.source != cell.source or there.cut:
                return f"the cell {cell.id} stays: you have changed it since"
            if there.execution_count is not None:
                return f"the cell {cell.id} stays: you have run it since"
        channel.withdraw(cell.id, cell.source)
        return f"the cell {cell.id} is taken out"


def saved_cells(notebook: Any, at: float) -> NotebookCells:
    """Return the cells of a notebook's JSON (nbformat 4), whatever else it holds.

    Raises:
        ValueError: it is no such notebook.

    >>> saved_cells({"cells": [{"cell_type": "code", "source": ["a = 1\\n", "a"]}]}, 0.0).cells[0].source
    'a = 1\\na'
    """
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise ValueError("this is no notebook of the format 4")
    kept = [each for each in cells if isinstance(each, dict)]
    return NotebookCells(
        tuple(map(_saved_cell, kept[:MOST_CELLS])), "file", at, max(0, len(kept) - MOST_CELLS)
    )


def _saved_cell(cell: Mapping[str, Any]) -> NotebookCell:
    source = _joined(cell.get("source"))
    kind = cell.get("cell_type")
    number = cell.get("execution_count")
    given = cell.get("outputs")
    outputs = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    return NotebookCell(
        _joined(cell.get("id"))[:64],
        kind if kind in ("code", "markdown") else "raw",
        source[:MOST_SOURCE],
        number if type(number) is int else None,
        tuple(map(_saved_output, outputs[:MOST_OUTPUTS])),
        max(0, len(source) - MOST_SOURCE),
        max(0, len(outputs) - MOST_OUTPUTS),
    )


def _saved_output(output: Mapping[str, Any]) -> CellOutput:
    kind = _KINDS.get(str(output.get("output_type")), "display")
    given = output.get("data")
    data: Mapping[str, Any] = given if isinstance(given, dict) else {}
    if kind == "stream":
        text = _joined(output.get("text"))
    elif kind == "error":
        head = f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
        trace = output.get("traceback")
        text = "\n".join([head, *map(_joined, trace if isinstance(trace, list) else [])])
    else:
        text = _joined(data.get("text/plain"))
    types = tuple(str(each)[:100] for each in data if each != "text/plain")[:10]
    return CellOutput(kind, text[:MOST_OUTPUT], types, max(0, len(text) - MOST_OUTPUT))


def _joined(text: object) -> str:
    if isinstance(text, list):
        return "".join(each for each in text if isinstance(each, str))
    return text if isinstance(text, str) else ""


def _history() -> NotebookCells:
    """Return what was run in this kernel, as its own history has it; on the notebook's thread."""
    shell = _shell()
    manager = getattr(shell, "history_manager", None)
    if manager is None:
        raise ActionError("There are no cells to be read: nothing keeps them here.", "Ask the person.")
    sources = [each for each in manager.input_hist_raw if type(each) is str]
    results = dict(manager.output_hist)
    numbers = range(1, len(sources))[-MOST_CELLS:]
    cells = tuple(
        NotebookCell(
            "",
            "code",
            sources[number][:MOST_SOURCE],
            number,
            (CellOutput("result", f"<{title(results[number])}>"),) if number in results else (),
            max(0, len(sources[number]) - MOST_SOURCE),
        )
        for number in numbers
    )
    return NotebookCells(cells, "history", time.time(), max(0, len(sources) - 1 - MOST_CELLS))


def _next_input(source: str, kind: str) -> Proposal:
    """Put code where the person types next: a terminal's prompt, or a new cell of a front end without ours."""
    shell = _shell()
    kernel = getattr(shell, "kernel", None)
    if kind != "code":
        raise ActionError(
            "Only code can be proposed here: text cells need the extension in JupyterLab or Notebook 7.",
            "Say the text in the answer.",
        )
    if shell is None or (kernel is not None and not front_end_there()):
        raise ActionError("Nobody is here who could run a proposed cell.", "Say the code in the answer.")
    waiting = [
        each
        for each in getattr(getattr(shell, "payload_manager", None), "_payload", ())
        if each.get("source") == "set_next_input"
    ]
    if waiting or getattr(shell, "rl_next_input", None):
        raise ActionError(
            "One cell at a time can be proposed here, and one waits already.", "Say it in the answer."
        )
    shell.set_next_input(source)
    where = "in a new cell below, once this one has ended" if kernel is not None else "at the next prompt"
    said = "the proposed code stays: no front end is connected to take it out; delete it there"
    return Proposal("", where, Reversal("cell", lambda: (said,)))


def _running_cell() -> str | None:
    """Return the id of the cell that runs, where the front end tells it."""
    parent: Any = getattr(_shell(), "get_parent", dict)()
    metadata = parent.get("metadata") if isinstance(parent, dict) else None
    found = metadata.get("cellId") if isinstance(metadata, dict) else None
    return found[:64] if isinstance(found, str) else None


def _shell() -> Any:
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
