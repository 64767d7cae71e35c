"""A run as a card: the answer, a line on what it rests on, what can be done with it; each step under the details.

Invariants: the badge says what the record shows, never what the model says of itself. A partial run draws like a
finished one and says plainly that it is not. Drawing costs no more than the calls that are shown, so that a live card
can be drawn ten times a second.

Two small views: a run as code, and a run in the background.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from reyn_jupyter.models.local.local_model import loading_note
from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Code,
    Facts,
    Fold,
    Notice,
    Paragraph,
    Section,
    Span,
    Tone,
    View,
)
from reyn_jupyter.notebook.render.file_changes_view import Previous, previous_bytes
from reyn_jupyter.notebook.render.hosts.markdown_reader import markdown
from reyn_jupyter.notebook.render.parts_view import MediaRoom
from reyn_jupyter.notebook.render.trace.calls import call_fold, progress_bar, seen_parts
from reyn_jupyter.notebook.render.trace.compliance_marks import compliance_blocks
from reyn_jupyter.notebook.render.trace.toolbar import answer_toolbar
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.runtime.record.run_outcome import RunOutcome, informs_answer
from reyn_jupyter.support.text import count, enumerate_words

if TYPE_CHECKING:
    from reyn_jupyter.runtime.record.result_frame import ResultFrame
    from reyn_jupyter.runtime.record.run_steps import Step
    from reyn_jupyter.runtime.record.script import Script
    from reyn_jupyter.runtime.record.trace import Trace
    from reyn_jupyter.sessions.runs.background_run import BackgroundRun


FIRST_CALLS = 24
LAST_CALLS = 6
STOP = "Interrupt the cell to stop."
_TAIL = 1200
_BARS = 4  # calls under way whose progress is drawn
LONG_HISTORY = 2_000  # tokens of history from which on a fresh conversation is worth a word
_ADVICE = 4  # things that the person can do
_SOURCES = 3  # that the line under an answer names
_BADGES: dict[RunOutcome, tuple[str, Tone]] = {
    RunOutcome.RUNNING: ("… running", "info"),
    RunOutcome.FROM_DATA: ("✓ answered from data", "good"),
    RunOutcome.CHANGED: ("✓ made changes", "good"),
    RunOutcome.FROM_CONVERSATION: ("answered from the conversation", "info"),
    RunOutcome.WITHOUT_DATA: ("! answered without any data", "warn"),
    RunOutcome.CALL_AS_TEXT: ("! wrote a call as text", "warn"),
    RunOutcome.RAN_ON: ("! ran on until the limit of tokens", "warn"),
    RunOutcome.ENDED_EARLY: ("! may be incomplete", "warn"),
    RunOutcome.NO_ANSWER: ("! gave no answer", "warn"),
    RunOutcome.NEAREST_PASSAGE: ("nearest passages", "info"),
    RunOutcome.ASKED_BACK: ("? asked back", "info"),
    RunOutcome.DECLINED: ("– declined", "muted"),
    RunOutcome.DENIED: ("⊘ denied", "warn"),
    RunOutcome.LIMIT: ("◼ stopped at a limit", "warn"),
    RunOutcome.ERROR: ("✗ failed", "bad"),
    RunOutcome.INTERRUPTED: ("◼ interrupted", "warn"),
    RunOutcome.CANCELLED: ("◼ cancelled", "warn"),
    RunOutcome.CALLED: ("✓ ok", "good"),
    RunOutcome.CALL_FAILED: ("✗ failed", "bad"),
}
_CUT_OFF: tuple[str, Tone] = ("✗ cut off", "bad")
_WAITING: tuple[str, Tone] = ("❚❚ waiting for you", "warn")
_LEAST_WAIT = 0.1  # seconds of waiting for the person that are worth a word
_SENTENCES: dict[RunOutcome, tuple[str, str]] = {
    RunOutcome.INTERRUPTED: ("You interrupted this run. What it did until then is kept under Details.", ""),
    RunOutcome.CANCELLED: ("This run was cancelled. What it did until then is kept under Details.", ""),
    RunOutcome.LIMIT: (
        "This run stopped at a limit, before it was done. What it did is kept under Details.",
        "",
    ),
    RunOutcome.WITHOUT_DATA: (
        "No data was looked at for this answer, so nothing here was checked.",
        "Name the table or file in the question, or ask another model (-m).",
    ),
    RunOutcome.CALL_AS_TEXT: (
        "The answer is a tool call that the model wrote as text. It was not run, and nothing was looked at.",
        "Ask again, or ask a model that can call tools (-m).",
    ),
    RunOutcome.RAN_ON: ("The model wrote on until its limit of tokens, so this answer has no end.", ""),
    RunOutcome.NO_ANSWER: ("The run ended without an answer.", "Ask again, or rephrase."),
    RunOutcome.DENIED: ("What the answer needs was denied, so no data was looked at.", ""),
}
# What the smallest models do without it, and with it, is measured in the manual's evidence.md.
_TWO_STEPS = (
    "A model of this size does more where it chooses an action first: %reyn config router.discovery two_steps"
)
_LITTLE_DONE = frozenset(
    {
        RunOutcome.WITHOUT_DATA,
        RunOutcome.CALL_AS_TEXT,
        RunOutcome.RAN_ON,
        RunOutcome.NO_ANSWER,
        RunOutcome.LIMIT,
    }
)
_LOST = "The record stops here: the kernel ended before the run did. What was written is under Details."


@dataclass(frozen=True, slots=True)
class CardState:
    """How a run stands now.

    Attributes:
        outcome: how it ended.
        lost: its record has no end, and nobody writes it any more.
        waiting: it goes on, and the person is asked something.
    """

    outcome: RunOutcome
    lost: bool
    waiting: bool = False

    @classmethod
    def of(cls, trace: Trace, running: bool) -> CardState:
        return cls(trace.outcome, not running and trace.ended is None, running and bool(trace.open_questions))

    @property
    def badge(self) -> Badge:
        if self.waiting:
            return Badge(*_WAITING)
        return Badge(*(_CUT_OFF if self.lost else _BADGES[self.outcome]))


def trace_view(
    trace: Trace,
    look: Look,
    tail: str | None = None,
    previous: Previous | None = None,
    stop: str = STOP,
    details: bool = True,
) -> View:
    """Return the card of a run: its answer, a line on what it rests on, what can be done with it, the details folded.

    Args:
        tail: the answer's text as it streams in; given for a live card only. Without it an unended run is one whose
            record has no end.
        previous: the bytes of a blob, for diffs of rewritten files.
        stop: how to stop it while it runs.
        details: False leaves the details out, where a host shows them in a place of their own.
    """
    running = tail is not None and trace.ended is None
    state = CardState.of(trace, running)
    by_hand = trace.model is None
    media = MediaRoom()
    pictured, pictures = ("", ()) if by_hand or running else _pictures(trace, look, media)
    blocks: list[Block] = list(_state(trace, state, look))
    if trace.answer and not (by_hand and trace.calls):  # what a call by hand gave stands at the call
        blocks += markdown(whole(trace.answer, look), "trace.answer")
    if running:
        blocks += _now(trace, tail or "", look, stop)
    else:
        blocks += pictures
        blocks += [
            Paragraph((Span(facts_line(trace, look), ("muted",)),)),
            *answer_toolbar(trace, look, live=not details),
        ]
    previous = previous or previous_bytes(trace)
    if by_hand:
        blocks += _steps(trace, look, previous, media) if details else ()
    elif details and trace.steps:
        inside = (*_steps(trace, look, previous, media, pictured), *about(trace, look))
        blocks.append(Fold((Span("Details"),), (), details_line(trace), inside, printed=True))
    return View(
        "trace",
        run_title(trace, look),
        run_badges(trace, running),
        (),
        tuple(blocks),
        "trace.answer, trace.df",
    )


def _pictures(trace: Trace, look: Look, media: MediaRoom) -> tuple[str, tuple[Block, ...]]:
    """Return the last call that gave a picture or a sound, and what it gave: what people asked to see is seen at once.

    Returns:
        The call's id and the blocks; "" and none where no call gave any.
    """
    for call in reversed(trace.calls):
        blocks = seen_parts(call, trace, look, media) if informs_answer(call) else ()
        if blocks:
            return call.id, blocks
    return "", ()


def whole(answer: str, look: Look) -> str:
    """Return an answer without secrets, uncut: what draws it says where it was cut."""
    return look.text(answer, 2 * len(answer) + 200)


def run_title(trace: Trace, look: Look) -> str:
    if trace.model is not None:
        return look.line(trace.model, 80)
    return look.line(trace.calls[0].label, 100) if trace.calls else "A call by hand"


def run_badges(trace: Trace, running: bool = False) -> tuple[Badge, ...]:
    """Return how a run stands, and what kind of run it is where that is not the usual one."""
    badges = [CardState.of(trace, running).badge]
    if trace.model is not None and not trace.started.real and (trace.steps or trace.status != "error"):
        badges.append(Badge("not a language model", "muted"))
    if trace.started.run_kind != "turn":
        kind = trace.started.run_kind
        badges.append(Badge({"manual": "by hand", "client": "MCP client"}.get(kind, kind)))
    return tuple(badges)


def facts_line(trace: Trace, look: Look) -> str:
    """Return what an answer rests on and what it cost, on one line: `orders, 500 rows · 1 query · 0.2 s · $0`."""
    facts = [*_sources(trace, look), *_call_counts(trace), formatting.seconds(trace.seconds)]
    if trace.waited >= _LEAST_WAIT:
        facts.append(f"{formatting.seconds(trace.waited)} waiting for you")
    if trace.model is not None:
        facts += [_cost(trace), _sent_amount(trace, look)]
    if trace.started.client is not None:
        protocol = "MCP" if trace.started.run_kind == "client" else "A2A"
        facts.append(f"for the {protocol} client “{look.line(trace.started.client, 80)}”")
    return " · ".join(facts)


def _sources(trace: Trace, look: Look) -> list[str]:
    """Return what the calls read, each once, with its rows where they are known, and sites; stored results by number.

    What this run itself made is none: the line says what an answer rests on.
    """
    rows: dict[str, int | None] = {}
    own = {call.finished.blob for call in trace.calls if call.finished}
    stored = set()
    for call in trace.calls:
        for source in call.finished.sources if call.finished and call.finished.ok else ():
            if source.get("kind") == "blob":
                stored |= {source.get("name")} - own
                continue
            name = look.line(formatting.tail(str(source.get("name"))), 60)
            known = source.get("rows")
            rows[name] = known if isinstance(known, int) else rows.get(name)
    for call in trace.calls:
        for origin in call.finished.origins if call.finished and call.finished.ok else ():
            rows.setdefault(look.line(_site(origin), 60))
    shown = [name if known is None else f"{name}, {count(known, 'row')}" for name, known in rows.items()]
    shown += [count(len(stored), "stored result")] if stored else []
    return [*shown[:_SOURCES], *([f"{len(shown) - _SOURCES:,} more"] if len(shown) > _SOURCES else [])]


def _site(origin: str) -> str:
    """Return the host of a page that a result came from; of anything else what it is called."""
    return urlsplit(origin).netloc if origin.startswith(("http://", "https://")) else origin


def _call_counts(trace: Trace) -> list[str]:
    """Return how many calls gave something, and how many did not."""
    useful = [call for call in trace.calls if informs_answer(call)]
    queries = sum(call.resolved.target == "query_table" for call in useful)
    denied = sum(call.denied for call in trace.calls)
    failed = sum(call.ok is False and not call.denied for call in trace.calls)
    counted = [
        count(queries, "query", "queries") if queries else count(len(useful), "call") if useful else ""
    ]
    counted += [f"{denied} denied" if denied else "", f"{failed} failed" if failed else ""]
    return [each for each in counted if each]


def _cost(trace: Trace) -> str:
    if trace.cost is not None:
        return formatting.money(trace.cost)
    return "price not known" if trace.started.real and trace.replies else "$0"


def _sent_amount(trace: Trace, look: Look) -> str:
    """Return how many bytes left this machine for where, in a few words."""
    sent = trace.sent
    if not sent.hosts:
        return "sent nothing off this machine" if sent.requests else "sent nothing"
    first, *others = sent.hosts
    more = f" and {count(len(others), 'more host')}" if others else ""
    about = "" if sent.counted else "about "
    return f"sent {about}{formatting.size(sum(sent.hosts.values()))} to {look.line(first, 80)}{more}"


def details_line(trace: Trace) -> str:
    """Return what stands beside the heading of the details: steps, tokens, history."""
    facts = [count(len(trace.steps), "step"), count(len(trace.calls), "call")]
    facts += [_tokens(trace)] if trace.tokens else []  # the offline model uses none
    turn, history = trace.started.turn, trace.started.history_tokens
    if turn is not None and (turn > 1 or history):
        afresh = ", --new starts afresh" if history >= LONG_HISTORY else ""
        tokens = f", {count(history, 'token')} of history{afresh}" if trace.tokens else ""
        facts.append(f"turn {turn}{tokens}")
    return " · ".join(facts)


def _tokens(trace: Trace) -> str:
    cached = f" ({trace.cached_tokens:,} cached)" if trace.cached_tokens else ""
    return f"{'≈ ' if trace.tokens_estimated else ''}{count(trace.tokens, 'token')}{cached}"


def _state(trace: Trace, state: CardState, look: Look) -> list[Block]:
    """Return what went wrong, was cut short or rests on nothing, in a sentence, before anything else."""
    ended = trace.ended
    error = look.text(ended.error, 1200) if ended and ended.error else ""
    hint = look.text(ended.hint, 600) if ended and ended.hint else ""
    said, advice = (_LOST, "") if state.lost else _SENTENCES.get(state.outcome, ("", ""))
    if said:  # the record's own words for it
        error = error.removeprefix("Interrupted by the person.").lstrip()
    blocks: list[Block] = []
    if said or error:
        tone = state.badge.tone if state.badge.tone in ("bad", "warn") else "bad"
        blocks.append(Notice(f"{said} {error}".strip(), tone, hint or advice))
    blocks += [Notice(look.text(note, 400), "warn") for note in (ended.notes if ended else ())[:8]]
    blocks += [Notice(look.text(each, 600), "info") for each in trace.advice[:_ADVICE]]
    if _needs_two_steps(trace, state):
        blocks.append(Notice(_TWO_STEPS, "info"))
    return blocks


def _needs_two_steps(trace: Trace, state: CardState) -> bool:
    """Return whether a model from a file did nothing that would help, and chose among all tools at once."""
    started = trace.started
    is_from_file = (started.model or "").startswith("local/")
    return is_from_file and state.outcome in _LITTLE_DONE and started.settings.get("discovery") != "two_steps"


def _now(trace: Trace, tail: str, look: Look, stop: str) -> list[Block]:
    """Return what a running run does at this moment, how long and at what cost, and the text that streams in."""
    under_way = [call for call in trace.calls if call.finished is None]
    requested = trace.steps[-1].requested if trace.steps and trace.steps[-1].replied is None else None
    waited = trace.waited_until(look.now)
    clock = formatting.clock(max(0.0, look.now - trace.started.at - waited))
    facts = [_doing(trace, look), clock, *([f"{_tokens(trace)} so far"] if trace.tokens else [])]
    if waited >= 1 and not trace.open_questions:
        facts.append(f"{formatting.seconds(waited)} waiting for you")
    if requested is not None and trace.started.real and requested.estimated_tokens:
        request = f"this request ≈ {count(requested.estimated_tokens, 'token')}"
        if requested.estimated_cost:
            request += f", ≈ {formatting.money(requested.estimated_cost)} before its answer"
        facts.append(request)
    if trace.cost:
        facts.append(f"{formatting.money(trace.cost)} so far")
    tone: Tone = "warn" if trace.open_questions else "info"
    blocks: list[Block] = [Notice(" · ".join(facts), tone, stop)]
    for call in under_way[-_BARS:]:
        blocks += progress_bar(call.progress, look)
    if tail.strip():
        blocks.append(Code(look.text(tail[-_TAIL:], _TAIL), "the answer so far"))
    return blocks


def _doing(trace: Trace, look: Look) -> str:
    """Return what a running run does now: asks the person, runs a call, waits for the model or for another try."""
    step = trace.steps[-1] if trace.steps else None
    number = step.number if step is not None else 1
    asked = [each.name for each in trace.open_questions]
    if asked:
        return f"Step {number}: waiting for you to answer about {look.line(enumerate_words(asked), 160)}"
    under_way = [call for call in trace.calls if call.finished is None]
    if under_way:
        return f"Step {number}: running {look.line(under_way[-1].label, 100)} …"
    if step is None or step.requested is None or step.replied is not None:
        return f"Step {number}: working …"
    if not step.retries:
        model = trace.model or "the model"
        return f"Step {number}: {look.line(loading_note(model) or f'waiting for {model}', 120)} …"
    last = step.retries[-1]
    left = last.at + last.wait - look.now
    when = f"in {math.ceil(left)} s" if left > 0 else "under way"
    return f"Step {number}: retry {last.attempt} of {last.most} {when}: {look.line(last.reason, 200)}"


def _steps(trace: Trace, look: Look, previous: Previous, media: MediaRoom, pictured: str = "") -> list[Block]:
    """Return each step with its calls; of very many calls the first and the last.

    Args:
        media: how much of images and sounds they may hold.
        pictured: the id of the call whose pictures stand under the answer.
    """
    total = len(trace.calls)
    hidden = range(FIRST_CALLS, total - LAST_CALLS) if total > FIRST_CALLS + LAST_CALLS else range(0)
    blocks: list[Block] = []
    place = 0
    for step in trace.steps:
        folds: list[Block] = []
        for call in step.calls:
            if place not in hidden:
                room = None if call.id == pictured else media
                folds.append(call_fold(call, trace, look, previous, room))
            elif place == hidden.start:
                left = count(len(hidden), "more call")
                folds.append(Notice(f"… {left} not shown here; all of them: trace.call_log", "muted"))
            place += 1
        said = step.replied.text if step.replied and step.calls else ""
        if folds and said.strip():
            folds.insert(0, Paragraph((Span(look.line(said.strip(), 300), ("muted",)),)))
        if folds or (step.replied and step.replied.error):
            blocks.append(Section(_step_title(step, trace, look), tuple(folds)))
    if len(blocks) > FIRST_CALLS + LAST_CALLS:
        steps = count(len(blocks) - FIRST_CALLS - LAST_CALLS, "more step")
        note = Notice(f"… {steps} not shown here; all of them: trace.call_log", "muted")
        blocks = [*blocks[:FIRST_CALLS], note, *blocks[-LAST_CALLS:]]
    return blocks


def _step_title(step: Step, trace: Trace, look: Look) -> str:
    if trace.model is None:
        return "The call"
    parts = [f"Step {step.number}"]
    if step.replied is not None:
        tokens = step.replied.prompt_tokens + step.replied.completion_tokens
        about = "≈ " if step.replied.estimated else ""
        parts.append(f"model {formatting.seconds(step.replied.seconds)}")
        parts += [f"{about}{count(tokens, 'token')}"] if tokens else []
        if step.replied.retries:
            why = "; ".join(dict.fromkeys(look.line(each.reason, 100) for each in step.retries[-2:]))
            parts.append(f"{step.replied.retries} retried{f' ({why})' if why else ''}")
        if step.replied.error:
            parts.append(f"the model failed: {look.line(step.replied.error, 200)}")
    if len(step.calls) > 1:
        parts.append(count(len(step.calls), "call"))
    return " · ".join(parts)


def about(trace: Trace, look: Look) -> list[Block]:
    """Return the rest for a careful reader: the rules of the catalog, what was sent, mandates, ids, the prompt."""
    if trace.model is None:
        return []
    rules = compliance_blocks(trace, look)
    pairs = [("sent", _sent(trace, look))]
    if trace.started.mandates and not rules:  # the rules name them
        pairs.append(
            ("mandates in force", ", ".join(look.line(name, 60) for name in trace.started.mandates[:12]))
        )
    if trace.started.replay_of:
        pairs.append(("replay of", look.line(trace.started.replay_of, 60)))
    pairs.append(("run", look.line(trace.run, 60)))
    blocks: list[Block] = [*rules, Facts(tuple(pairs))]
    if trace.prompt:
        blocks.append(Fold((Span("The prompt"),), aside="", blocks=(Code(look.text(trace.prompt, 2000)),)))
    return blocks


def _sent(trace: Trace, look: Look) -> str:
    """Return what of the person's left the kernel, where it went, and the bytes of the requests."""
    sent = trace.sent
    if not sent.requests:
        read = _contents(trace.contents, look)
        return f"nothing left the kernel; read here: {read}" if read else "nothing left the kernel"
    about = "" if sent.counted else "about "
    places = [
        f"{about}{formatting.size(size)} to {look.line(host, 120)}"
        for host, size in [
            *sent.hosts.items(),
            *((f"{host} on this machine", n) for host, n in sent.local.items()),
        ]
    ]
    items = _contents(sent.contents, look) or "the conversation alone, no variable, file or blob"
    return f"{enumerate_words(places)}: {items}"


def _contents(items: Sequence[Mapping[str, Any]], look: Look) -> str:
    shown = ", ".join(
        f"{look.line(item['name'], 80)} ({look.line(item['kind'], 20)}, {formatting.size(item['bytes'])})"
        for item in items[:8]
    )
    return f"{shown} and {len(items) - 8} more" if len(items) > 8 else shown


def frame_view(frame: ResultFrame, look: Look) -> View:
    """Return the card of the run that a table comes from."""
    return trace_view(frame.trace, look)


_CODE = 20_000


def script_view(script: Script, look: Look) -> View:
    """Return the code, ready to be copied."""
    code = look.text(script.code, _CODE)
    more = "… cut here; .code holds all of it" if len(script.code) > _CODE else ""
    return View("script", "The run as code", (), (), (Code(code.rstrip("\n"), more=more),), ".code")


def background_view(run: BackgroundRun, look: Look) -> View:
    """Return one line: what runs, whether it still does, and how to stop it."""
    state = Badge("ended", "muted") if run.done else Badge("… running", "info")
    ways = ".trace is what it came to" if run.done else ".cancel() stops it, .result() waits for it"
    return View("background", f"In the background: {look.line(run.prompt, 100)}", (state,), (ways,))
