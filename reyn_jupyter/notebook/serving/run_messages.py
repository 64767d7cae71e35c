"""The messages of the trace viewer: a run opened, one of its lines, a list of runs, two of them compared."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reyn_jupyter.notebook.render.comparing import PairRow
from reyn_jupyter.notebook.render.model import Badge, Block, View
from reyn_jupyter.notebook.render.steps import StepRow
from reyn_jupyter.notebook.serving.operation import Message

Id = Annotated[str, Field(max_length=200)]


class OpenRun(Message):
    run: Id


class OpenedRun(Message):
    """A run as the viewer shows it.

    Attributes:
        run: its whole id, by which the rest is asked for.
        view: the head and the answer.
        steps: the list beside them; `more` says what of it was left out.
        running: whether its record still grows; `stoppable` whether `run.stop` ends it.
    """

    run: str
    view: View
    steps: tuple[StepRow, ...]
    more: str = ""
    running: bool = False
    stoppable: bool = False


class OpenPart(Message):
    run: Id
    id: Id


class OpenedPart(Message):
    """What stands behind one line; `blob` is the id of what it stored, "" for none."""

    request: View
    response: View
    blob: str = ""


class ListRuns(Message):
    limit: Annotated[int, Field(ge=1, le=200)] = 40


class RunRow(Message):
    """One run to choose: `title` is its prompt or its call, `facts` model, steps and time, `when` how long ago."""

    run: str
    title: str
    facts: str
    when: str
    state: Badge


class ListedRuns(Message):
    rows: tuple[RunRow, ...]
    more: str = ""


class Compare(Message):
    a: Id
    b: Id


class Compared(Message):
    """Two runs side by side: the totals and prompts, the calls aligned, the answers and each side's own."""

    a: str
    b: str
    view: View
    pairs: tuple[PairRow, ...]
    answers: tuple[Block, ...]
    sides: tuple[View, ...]
    more: str = ""


class ComparePart(Message):
    a: Id
    b: Id
    id: Id


class ComparedPart(Message):
    """What differs between two calls, and each of them in its column; one that is not there has no blocks."""

    differing: tuple[Block, ...]
    sides: tuple[View, ...]


class StopRun(Message):
    run: Id


class Stopped(Message):
    """`stopping` is False when the run had ended already."""

    stopping: bool
