"""Displays that are updated in place: the card of a run, a series of objects, the card of a study's run.

Invariants: a cell shows one output for all updates. The object that a verb or `study.run` returns is silent the first
time that the cell displays it, since it stands there already, also where it is the table of a run whose card stands
there; `_` and ``x = …`` still hold it. A display is updated at
most ten times a second (a study's four times), so that it slows the work down by no more than it takes to draw. While a
run of the cell goes on its card is static; its last update is live, as a widget where the host needs one. The card of a
background run is live from its first drawing.
"""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from reyn_jupyter.notebook.displays.mime import MIME, bundle, mimebundle
from reyn_jupyter.notebook.displays.mimebundle import display_bundle, live_of, update_widget, widget_view
from reyn_jupyter.notebook.errors import ReynInterrupt
from reyn_jupyter.notebook.magic_line.verb import Context
from reyn_jupyter.notebook.render.blocks import Notice, View
from reyn_jupyter.notebook.render.displayables import view
from reyn_jupyter.notebook.render.hosts.plain_text import to_text
from reyn_jupyter.notebook.render.trace.card import STOP
from reyn_jupyter.notebook.serving.protocol import LiveTrace
from reyn_jupyter.router.model_call import Delta
from reyn_jupyter.runtime.engine import running_loop
from reyn_jupyter.runtime.pump import Interrupted
from reyn_jupyter.runtime.questions.approval_queue import VIEWERS, OpenQuestion
from reyn_jupyter.runtime.questions.consent import EXCERPT
from reyn_jupyter.runtime.record.events import (
    ActionProgressed,
    InnerEvent,
    ModelReplied,
    RunEnded,
    RunStarted,
)
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions import result_objects
from reyn_jupyter.sessions.runs.background_run import BackgroundRun
from reyn_jupyter.sessions.session import Session
from reyn_jupyter.support.secrets import environment_redaction
from reyn_jupyter.support.terminal_line import TerminalLine

if TYPE_CHECKING:
    import pandas as pd

    from reyn_jupyter.evaluation.run.progress import Progress, RunSummary
    from reyn_jupyter.runtime.record.result_frame import ResultFrame
    from reyn_jupyter.search.index_state import BuildProgress

INTERVAL = 0.1  # seconds between two updates
CLOCK_INTERVAL = 0.9  # seconds after which the clock of a card that waits is drawn again
STUDY_INTERVAL = 0.25  # the same of a study's card
INDEX_FIRST = 1.0  # seconds before the card of an index is drawn, unless a model has to be loaded
_BAR = 30  # characters
MOST = 10  # updates in any second, those included that come before the notebook's thread is busy

T = TypeVar("T")

# The objects themselves, so that another one that took an id over is not taken for one of them.
_shown: dict[int, object] = {}
_drawn_as_run: dict[int, object] = {}  # frames that stand for a run whose card is not on the screen yet


def forget_silenced() -> None:
    """Let everything display again: a new cell begins."""
    _shown.clear()
    _drawn_as_run.clear()


def silence(shown: object) -> None:
    """Keep an object silent the next time the cell displays it: it is on the screen already."""
    _shown[id(shown)] = shown


def show_for(context: Context, trace: Trace, frame: pd.DataFrame) -> pd.DataFrame:
    """Let the card of a run stand for the frame that a verb returns in its place.

    A kernel shows the card already; a terminal prints it where the cell displays the frame.
    """
    if getattr(context.shell, "kernel", None) is None:
        _drawn_as_run[id(frame)] = frame
    else:
        _shown.pop(id(trace), None)
        silence(frame)
    return frame


def print_frame(frame: ResultFrame, printer: Any, cycle: bool) -> None:
    """Print the table of a run, or the card of the run where the cell has not shown it; a formatter of IPython."""
    if _drawn_as_run.pop(id(frame), None) is None:
        printer.text(repr(frame))
    else:
        printer.text(to_text(view(frame, redact=environment_redaction())))


def skip_silenced(shown: object) -> None:
    """Display nothing for an object that the cell shows already; a formatter of IPython.

    Raises:
        NotImplementedError: it is not shown yet, so IPython displays it in the ordinary way.
    """
    if _shown.pop(id(shown), None) is None:
        raise NotImplementedError


def watch_run(context: Context, run: Callable[[LiveCard | None], Trace]) -> Trace:
    """Run a turn under a live card, where a kernel shows one. An interrupt ends it with the partial run.

    Raises:
        ReynInterrupt: interrupted before there was a run to show.
    """
    card = live_card(context)
    try:
        trace = run(card)
    except Interrupted as interrupted:
        if interrupted.result is None:
            raise ReynInterrupt(interrupted.why or "Interrupted before anything was sent.") from None
        trace = interrupted.result
    return card.finish(trace) if card is not None else trace


def live_card(context: Context, *, background: bool = False) -> LiveCard | None:
    """Return a card where a kernel shows the cell, else None: a terminal has no card that could be updated."""
    if getattr(context.shell, "kernel", None) is None:
        return None
    return LiveCard(context.shell, context.session, background=background)


class LiveCard:
    """Gathers a run's events and shows them. Call it with each event; None each second in which nothing came.

    Args:
        background: the card lives on after the cell, so its updates still name the cell that made it.
    """

    def __init__(self, shell: Any, session: Session, *, background: bool = False) -> None:
        self._session = session
        self._events: list[Any] = []
        self._tail: list[str] = []
        self._progress: dict[str, int] = {}  # call → its place in `_events`
        self._due = False
        self._drawn: deque[float] = deque([float("-inf")] * MOST, maxlen=MOST)
        self._timer: Any = None
        self._place = _DisplayPlace()
        self._cell: contextvars.Context | None = contextvars.copy_context() if background else None
        self._shell = shell
        self._run: BackgroundRun | None = None
        self._widget: dict[str, Any] | None = None

    def __call__(self, event: Any) -> None:
        if isinstance(event, Delta):
            self._tail.append(event.text)
        elif isinstance(event, ActionProgressed):
            self._progressed(event)
        elif isinstance(event, InnerEvent):
            pass  # it stands in a record of its own, which the drawing reads
        elif event is not None:
            self._events.append(event)
            if isinstance(event, ModelReplied):
                self._tail.clear()
        elif not self._due and not self._is_clock_due():
            return
        if not self._events or not isinstance(self._events[0], RunStarted):
            return
        if isinstance(event, RunEnded) and self._cell is None:
            return  # `finish` shows the end
        if self._may_draw(event):
            self._draw(self._session.parts.runs.trace_of(self._events), "".join(self._tail))
        else:
            self._due = True
            self._later()

    def _progressed(self, event: ActionProgressed) -> None:
        """Keep the last word of each call alone, since a call may go on for hours."""
        place = self._progress.setdefault(event.call, len(self._events))
        self._events[place : place + 1] = [event]

    def _is_clock_due(self) -> bool:
        """Return whether the card shows an old time: nothing comes, and the run goes on."""
        return self._cell is None and time.monotonic() - self._drawn[-1] >= CLOCK_INTERVAL

    def _may_draw(self, event: Any) -> bool:
        now = time.monotonic()
        return now - self._drawn[0] >= 1.0 and (event is None or now - self._drawn[-1] >= INTERVAL)

    def finish(self, trace: Trace) -> Trace:
        """Show the run as it ended, and give it back."""
        self._draw(trace, None)
        silence(trace)
        return trace

    def follow(self, run: BackgroundRun) -> BackgroundRun:
        """Show a background run, now and until it ends, and give it back."""
        self._run = run
        self._place.draw(self._bundle(_begun(run), None))
        silence(run)
        self._listen()
        return run

    def _draw(self, trace: Trace, tail: str | None) -> None:
        self._drawn.append(time.monotonic())
        self._due = False
        bundle = self._bundle(trace, tail)
        if self._cell is None:
            self._place.draw(bundle)
        else:
            self._cell.run(self._place.draw, bundle)

    def _bundle(self, shown: object, tail: str | None) -> dict[str, Any]:
        stop = STOP if self._cell is None else "The returned object's .cancel() stops it."
        if isinstance(shown, Trace) and shown.ended is None and shown.open_questions:
            stop = f"The clock stands still until you answer. {stop}"
        made = view(shown, tail=tail, redact=self._session.parts.redactor.text, stop=stop)
        lost = None
        if tail is not None and isinstance(shown, Trace) and shown.ended is None:
            lost = view(shown, redact=self._session.parts.redactor.text)
        if self._run is None:
            if tail is None:
                return display_bundle(self._shell, shown, made)
            return bundle(shown, made, lost=lost)
        running = not (isinstance(shown, Trace) and shown.ended is not None)
        live = live_of(self._run)
        if isinstance(live, LiveTrace):
            live = live.model_copy(update={"running": running})
        found = bundle(shown, _with_questions(made, self._run) if running else made, live, "trace", lost)
        return found | self._widget_view(found[MIME.format("trace")], running)

    def _widget_view(self, snapshot: dict[str, Any], running: bool) -> dict[str, Any]:
        """One widget for the whole of a background run; it is told of the end, and hears of the rest by itself."""
        if snapshot["live"] is None:
            return {}
        if self._widget is None:
            self._widget = widget_view(snapshot)
        elif self._widget and not running:
            update_widget(self._widget, snapshot)
        return self._widget

    def _later(self) -> None:
        """Draw once more after an interval: only the kernel's own loop knows when the background is quiet."""
        if self._cell is None or self._timer is not None:
            return

        def draw() -> None:
            self._timer = None
            self(None)

        self._timer = asyncio.get_running_loop().call_later(INTERVAL, draw)

    def _listen(self) -> None:
        """Draw again when a question about consent is asked or settled, which leaves no event of its own."""
        run, home = self._run, running_loop()
        if run is None or home is None:
            return

        def redraw() -> None:
            self._due = True
            self._later()

        viewer = _QuestionListener(run.run_id, lambda: home.is_closed() or home.call_soon_threadsafe(redraw))
        VIEWERS.append(viewer)
        run.when_done(lambda: VIEWERS.remove(viewer))


class _QuestionListener:
    """Hears of the questions of one run, and shows none."""

    def __init__(self, run: str, tell: Callable[[], object]) -> None:
        self._run = run
        self._tell = tell

    def shows(self, in_cell: bool) -> bool:
        return False

    def question_asked(self, waiting: OpenQuestion) -> None:
        if waiting.question.run == self._run:
            self._tell()

    question_settled = question_asked


def _begun(run: BackgroundRun) -> result_objects.Card:
    """Return what stands in the cell until the run's first event."""
    facts = (("prompt", run.prompt), ("to stop it", "the returned object's .cancel()"))
    return result_objects.Card("background", "Started in the background", facts)


def _with_questions(made: View, run: BackgroundRun) -> View:
    """Return the view with what waits for the person's word on top; its text was redacted where it was made."""
    waiting = tuple(
        Notice(
            each.question.excerpt(EXCERPT),
            "warn",
            "  or  ".join(
                f"%reyn approvals {verb} {each.id}"
                for verb in (
                    *(choice.verb for choice in each.question.choices if not choice.keeps),
                    *(["show"] if len(each.question.detail.lines) > EXCERPT else []),
                )
            ),
        )
        for each in run.pending[:3]
    )
    return replace(made, blocks=(*waiting, *made.blocks)) if waiting else made


class _DisplayPlace:
    """One output of a cell that is drawn again in its place.

    An interrupt waits until what is drawn is on the page: with the first drawing lost, none of the later ones would be
    seen, and a second first one would leave something that stays as it was.
    """

    def __init__(self) -> None:
        self._handle: Any = None

    @property
    def is_drawn(self) -> bool:
        return self._handle is not None

    def draw(self, made: dict[str, Any]) -> None:
        from IPython.display import DisplayHandle

        with _interrupt_after():
            if self._handle is None:
                self._handle = DisplayHandle(uuid.uuid4().hex)
                self._handle.display(made, raw=True)
            else:
                self._handle.update(made, raw=True)


@contextmanager
def _interrupt_after() -> Iterator[None]:
    """Let an interrupt strike after a block instead of within it. Interrupts strike the main thread alone."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    struck: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: struck.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if struck:
            signal.raise_signal(signal.SIGINT)


class InPlace:
    """Shows an object in the place of the one before, at most ten times a second.

    Args:
        shell: the IPython shell; without a kernel only lines are shown on the way, in the terminal.
    """

    def __init__(self, shell: Any) -> None:
        self._kernel = getattr(shell, "kernel", None) is not None
        self._place = _DisplayPlace()
        self._line = TerminalLine(first=0.0)
        self._drawn = float("-inf")

    def show(self, shown: object, line: str = "") -> None:
        """Show it now, or leave it out where the last one was only just drawn.

        Args:
            line: the words for it in a terminal; without them nothing is shown there.
        """
        if not self._kernel:
            if line:
                self._line.show(line)
        elif time.monotonic() - self._drawn >= INTERVAL:
            self._draw(shown)

    def end(self) -> None:
        """Take away the terminal's line; a card stays as it is."""
        self._line.end()

    def last(self, shown: T) -> T:
        """Show what it came to, and give it back."""
        self.end()
        if self._kernel and self._place.is_drawn:
            self._draw(shown)
            silence(shown)
        return shown

    def _draw(self, shown: object) -> None:
        self._drawn = time.monotonic()
        self._place.draw(bundle(shown, view(shown, redact=environment_redaction())))


class StudyCard:
    """Shows one run. A terminal has no card that could be updated, so nothing is shown there."""

    def __init__(self) -> None:
        self._place = _DisplayPlace()
        self._drawn = float("-inf")

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._drawn >= STUDY_INTERVAL:
            self._drawn = now
            self._show(progress)

    def finish(self, summary: RunSummary) -> None:
        self._show(summary)
        silence(summary)

    def _show(self, shown: object) -> None:
        self._place.draw(mimebundle(shown, redact=environment_redaction()))


class IndexCard:
    """Shows how far an index of records is: at once where the model has to be loaded, else after a second."""

    def __init__(self, shell: Any) -> None:
        self._place = InPlace(shell)
        self._first = time.monotonic() + INDEX_FIRST
        self._latest: BuildProgress | None = None

    def __call__(self, progress: BuildProgress) -> None:
        self._latest = progress
        if time.monotonic() >= self._first or progress.doing:
            self._place.show(progress_card("Building an index", progress))

    def end(self) -> None:
        """Show where it came to, if a card stands there."""
        if self._latest is not None:
            whole = self._latest.done == self._latest.total
            title = "The index is built" if whole else "The index is not built"
            self._place.last(progress_card(title, self._latest))


def progress_card(title: str, progress: BuildProgress) -> result_objects.Card:
    """Return how far an index is as a card with a bar."""
    full = round(_BAR * progress.done / progress.total) if progress.total else 0
    bar = "█" * full + "░" * (_BAR - full)
    return result_objects.Card("embeddings", title, (("progress", f"{bar} {progress}"),))


def index_card(shell: Any) -> IndexCard | None:
    """Return a card where a kernel shows the cell, else None."""
    return IndexCard(shell) if getattr(shell, "kernel", None) is not None else None


def study_card(shell: Any) -> StudyCard | None:
    """Return a card where a kernel shows the cell, else None."""
    return StudyCard() if getattr(shell, "kernel", None) is not None else None
