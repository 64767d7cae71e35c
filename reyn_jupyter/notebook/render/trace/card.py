"""A run as a card: what was asked of whom, the answer first, then each step behind one line.

Invariant: a partial run draws like a finished one and says plainly that it is not. Drawing costs no more than the
calls that are shown, so that a live card can be drawn ten times a second.

Two small views: a run as code, and a run in the background.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
from reyn_jupyter.notebook.render.hosts.markdown import markdown
from reyn_jupyter.notebook.render.parts_view import MediaRoom
from reyn_jupyter.notebook.render.trace.calls import call_fold, progress_bar
from reyn_jupyter.notebook.render.trace.compliance_marks import compliance_blocks
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.support.text import count, enumerate_words

if TYPE_CHECKING:
    from reyn_jupyter.runtime.record.result_frame import ResultFrame
    from reyn_jupyter.runtime.record.script import Script
    from reyn_jupyter.runtime.record.trace import Step, Trace
    from reyn_jupyter.sessions.background_run import BackgroundRun


FIRST_CALLS = 24
LAST_CALLS = 6
STOP = "Interrupt the cell to stop."
_TAIL = 1200
_BARS = 4  # calls under way whose progress is drawn
_STATUS: dict[str, tuple[str, Tone]] = {
    "ok": ("✓ done", "good"),
    "error": ("✗ failed", "bad"),
    "interrupted": ("◼ interrupted", "warn"),
    "cancelled": ("◼ cancelled", "warn"),
    "limit": ("◼ stopped at a limit", "warn"),
    "running": ("… running", "info"),
    "lost": ("✗ cut off", "bad"),
}
_SAID = {
    "interrupted": "You interrupted this run. What it did until then is kept below.",
    "cancelled": "This run was cancelled. What it did until then is kept below.",
    "limit": "This run stopped at a limit, before it was done. What it did is kept below.",
    "lost": "The record stops here: the kernel ended before the run did. What was written is below.",
}


def trace_view(
    trace: Trace,
    look: Look,
    tail: str | None = None,
    previous: Previous | None = None,
    stop: str = STOP,
    steps: bool = True,
) -> View:
    """Return the card of a run.

    Args:
        tail: the answer's text as it streams in; given for a live card only. Without it an unended run is one whose
            record has no end.
        previous: the bytes of a blob, for diffs of rewritten files.
        stop: how to stop it while it runs.
        steps: False leaves the steps out, where a host shows them in a place of their own.
    """
    status = trace.status if trace.ended or tail is not None else "lost"
    # What a call by hand gave stands at the call.
    answered = trace.answer and not (trace.model is None and trace.calls)
    answer = markdown(whole(trace.answer, look), "trace.answer") if answered else ()
    rules = compliance_blocks(trace, look)
    blocks: list[Block] = [*_state(trace, status, look), *answer, *rules]
    if tail is not None and trace.ended is None:
        blocks += _now(trace, tail, look, stop)
    if steps:
        blocks += _steps(trace, look, previous or previous_bytes(trace))
    blocks += _about(trace, look, bool(rules))
    return View(
        "trace",
        run_title(trace, look),
        run_badges(trace, status),
        tuple(_facts(trace, look.now if tail is not None else 0.0)),
        tuple(blocks),
        "trace.answer, trace.df",
    )


def whole(answer: str, look: Look) -> str:
    """Return an answer without secrets, uncut: what draws it says where it was cut."""
    return look.text(answer, 2 * len(answer) + 200)


def run_title(trace: Trace, look: Look) -> str:
    if trace.model is not None:
        return look.line(trace.model, 80)
    return look.line(trace.calls[0].label, 100) if trace.calls else "A call by hand"


def run_badges(trace: Trace, status: str) -> tuple[Badge, ...]:
    badges = [Badge(*_STATUS[status])]
    if trace.model is not None and not trace.started.real:
        badges.append(Badge("not a language model", "warn"))
    if trace.started.run_kind != "turn":
        badges.append(Badge({"manual": "by hand"}.get(trace.started.run_kind, trace.started.run_kind)))
    return tuple(badges)


def _facts(trace: Trace, now: float) -> list[str]:
    facts = []
    if trace.model is not None:
        about = "≈ " if trace.tokens_estimated else ""
        facts += [
            count(len(trace.steps), "step"),
            f"{about}{count(trace.tokens, 'token')}",
        ]
        if trace.cost is not None:
            facts.append(formatting.money(trace.cost))
        elif trace.started.real:
            facts.append("price not known")
    waited = now - trace.started.at if trace.ended is None else 0.0
    facts.append(formatting.seconds(max(trace.seconds, waited)))
    turn, history = trace.started.turn, trace.started.history_tokens
    if turn is not None and (turn > 1 or history):
        facts.append(f"turn {turn}, {count(history, 'token')} of history, --new starts afresh")
    return facts


def _state(trace: Trace, status: str, look: Look) -> list[Block]:
    """Return what went wrong or was cut short, in a sentence, before anything else."""
    ended = trace.ended
    error = look.text(ended.error, 1200) if ended and ended.error else ""
    hint = look.text(ended.hint, 600) if ended and ended.hint else ""
    said = _SAID.get(status, "")
    if said:  # the record's own words for it
        error = error.removeprefix("Interrupted by the person.").lstrip()
    blocks: list[Block] = []
    if said or error:
        text = f"{said} {error}".strip()
        blocks.append(Notice(text, _STATUS[status][1] if status != "ok" else "bad", hint))
    blocks += [Notice(look.text(note, 400), "warn") for note in (ended.notes if ended else ())[:8]]
    return blocks


def _now(trace: Trace, tail: str, look: Look, stop: str) -> list[Block]:
    """Return what a running run does at this moment, and the end of the text that streams in."""
    under_way = [call for call in trace.calls if call.finished is None]
    running = under_way[-1] if under_way else None
    step = trace.steps[-1].number if trace.steps else 1
    if running is not None:
        doing = f"Step {step}: running {look.line(running.label, 100)} …"
    elif trace.steps and trace.steps[-1].replied is None:
        doing = f"Step {step}: waiting for {look.line(trace.model or 'the model', 80)} …"
    else:
        doing = f"Step {step}: working …"
    blocks: list[Block] = [Notice(doing, "info", stop)]
    for call in under_way[-_BARS:]:
        blocks += progress_bar(call.progress, look)
    if tail.strip():
        blocks.append(Code(look.text(tail[-_TAIL:], _TAIL), "the answer so far"))
    return blocks


def _steps(trace: Trace, look: Look, previous: Previous) -> list[Block]:
    """Return each step with its calls; of very many calls the first and the last."""
    total = len(trace.calls)
    hidden = range(FIRST_CALLS, total - LAST_CALLS) if total > FIRST_CALLS + LAST_CALLS else range(0)
    blocks: list[Block] = []
    place, media = 0, MediaRoom()
    for step in trace.steps:
        folds: list[Block] = []
        for call in step.calls:
            if place not in hidden:
                folds.append(call_fold(call, trace, look, previous, media))
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
        parts += [
            f"model {formatting.seconds(step.replied.seconds)}",
            f"{about}{count(tokens, 'token')}",
        ]
        if step.replied.retries:
            parts.append(f"{step.replied.retries} retried")
        if step.replied.error:
            parts.append(f"the model failed: {look.line(step.replied.error, 200)}")
    if len(step.calls) > 1:
        parts.append(count(len(step.calls), "call"))
    return " · ".join(parts)


def _about(trace: Trace, look: Look, rules: bool) -> list[Block]:
    """Return the details for a careful reader: what was sent, mandates unless `rules` named them, the prompt."""
    if trace.model is None:
        return []
    pairs = [("sent", _sent(trace, look))]
    if trace.started.mandates and not rules:
        pairs.append(
            ("mandates in force", ", ".join(look.line(name, 60) for name in trace.started.mandates[:12]))
        )
    if trace.started.replay_of:
        pairs.append(("replay of", look.line(trace.started.replay_of, 60)))
    pairs.append(("run", look.line(trace.run, 60)))
    blocks: list[Block] = [Facts(tuple(pairs))]
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
