"""One call of a run: a line that tells how it went, and behind it what was asked, decided, returned and changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Chart,
    Code,
    Commands,
    Diff,
    Fold,
    Interval,
    Intervals,
    Media,
    Notice,
    Section,
    Span,
)
from reyn_jupyter.notebook.render.file_changes_view import Previous, diffs
from reyn_jupyter.notebook.render.parts_view import MediaRoom, call_parts
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.runtime.record.events import ActionFinished, ActionProgressed, PermissionDecided
    from reyn_jupyter.runtime.record.run_steps import Call
    from reyn_jupyter.runtime.record.trace import Trace

_OUTPUT = 900
_ARGUMENTS = 700
_INNER_CALLS = (12, 4, 2)  # of an inner run that are drawn, by its level
_FURTHER = 6  # decisions in the middle of a call
_PROBLEMS = {
    "malformed": "malformed call",
    "unknown": "unknown action",
    "hidden": "hidden action",
    "stale": "old name",
    "not_installed": "not installed",
    "gated": "sent to the listing first",
    "invalid": "invalid arguments",
}


def seen_parts(call: Call, trace: Trace, look: Look, media: MediaRoom) -> tuple[Block, ...]:
    """Return the pictures and sounds that a call gave, with what belongs to them; nothing where it gave none."""
    parts = call_parts(call, trace, look, media)
    if not is_seen(parts):
        return ()
    return tuple(block for each in parts if isinstance(each, Section) for block in each.blocks)


def call_fold(
    call: Call,
    trace: Trace,
    look: Look,
    previous: Previous,
    media: MediaRoom | None,
    level: int = 0,
) -> Fold:
    """Return a call behind its summary line, with what it called in its turn; open when it changed files or called.

    Args:
        media: how much of images and sounds the card may still hold; None where it shows those of the call elsewhere.
        level: how many inner runs are around it.
    """
    arguments = inner_arguments(call)
    finished = call.finished
    changed = diffs(finished.changes, arguments, previous, look) if finished and finished.changes else ()
    blocks: list[Block] = [*changed]
    parts: Sequence[Block] = ()
    if arguments not in (None, {}, "") and not any(diff.lines for diff in changed):
        blocks.append(Code(pretty(arguments, look), "arguments"))
    if call.decision is not None and (said := describe_decision(call.decision, look)):
        blocks.append(Notice(said, "muted"))
    blocks += [Notice(said, "muted") for said in describe_further(call, look)]
    inner = _inner_run(call, trace, look, previous, media, level)
    blocks += inner
    if finished is not None:
        blocks += _came_back(finished, look)
        parts = () if media is None else call_parts(call, trace, look, media)
        blocks += parts
    else:
        blocks += progress_bar(call.progress, look)
    seconds = formatting.seconds(finished.seconds) if finished else ""
    return Fold(
        call_title(call, arguments, changed, look),
        call_badges(call, trace),
        seconds,
        tuple(blocks),
        bool(changed or inner) or is_seen(parts),
    )


def _inner_run(
    call: Call, trace: Trace, look: Look, previous: Previous, media: MediaRoom | None, level: int
) -> list[Block]:
    """Return the calls of a call's inner run, the first of each level; nothing where it called nothing."""
    if (problem := trace.inner_problems.get(call.id)) is not None:
        return [Notice(look.line(problem, 300), "warn")]
    inner = trace.inner.get(call.id)
    if inner is None:
        return []
    most = _INNER_CALLS[level] if level < len(_INNER_CALLS) else 0
    blocks: list[Block] = [
        call_fold(each, inner, look, previous, media, level + 1) for each in inner.calls[:most]
    ]
    if left := len(inner.calls) - len(blocks):
        knob = f'session.trace("{look.line(inner.run[-12:], 20)}").call_log'
        blocks.append(Notice(f"… {count(left, 'more call')} not shown here; all of them: {knob}", "muted"))
    tokens = f" · {count(inner.tokens, 'token')}" if inner.tokens else ""
    who = "Inner run"
    if inner.model is not None:  # a peer's, which has a model of its own
        who = f"Answered by {look.line(inner.model, 60)} · {count(len(inner.steps), 'step')}"
    return [Section(f"{who} · {count(len(inner.calls), 'call')}{tokens}", tuple(blocks))]


def is_seen(parts: Sequence[Block]) -> bool:
    """Return whether a call gave an image or a sound, which people come to see."""
    sections = [each for each in parts if isinstance(each, Section)]
    return any(isinstance(block, Media | Chart) for section in sections for block in section.blocks)


def inner_arguments(call: Call) -> object:
    """Return what the action got: behind invoke_action its own arguments, else the wrapper's."""
    given: object = call.resolved.arguments
    if call.resolved.wrapper == "invoke_action" and isinstance(given, Mapping) and "action_name" in given:
        inner: object = given.get("args")
        if inner is None:
            inner = {key: value for key, value in given.items() if key not in ("action_name", "args")}
        return _decoded(inner) if "decoded" in call.resolved.flags else inner
    return given


def _decoded(given: object) -> object:
    """Return arguments that came as the text of an object, as the object that they were taken for."""
    try:
        return json.loads(given) if isinstance(given, str) else given
    except ValueError:
        return given


def call_title(call: Call, arguments: object, changed: tuple[Diff, ...], look: Look) -> tuple[Span, ...]:
    wrapper, name = call.resolved.wrapper, call.resolved.name
    spans: list[Span] = []
    if wrapper not in ("invoke_action", name):
        spans += [Span(look.line(wrapper, 80), ("code",)), Span(" ")]
    if name is not None:
        spans += [Span(look.line(name, 100), ("strong", "code")), Span(" ")]
    elif wrapper == "invoke_action":
        given = call.resolved.arguments
        asked = given.get("action_name") if isinstance(given, Mapping) else None
        spans += [
            Span(look.line(asked if isinstance(asked, str) else wrapper, 100), ("strong", "code")),
            Span(" "),
        ]
    spans.append(Span(_about(call, arguments, changed, look), ("muted",)))
    return tuple(spans)


def _about(call: Call, arguments: object, changed: tuple[Diff, ...], look: Look) -> str:
    """Return the end of the summary line: the error, else the files changed, else the arguments."""
    if call.finished is not None and not call.finished.ok and call.finished.error:
        return look.line(call.finished.error, 110)
    if call.finished is None and call.progress is not None and call.progress.text:
        return look.line(call.progress.text, 110)
    if changed:
        return look.line(", ".join(f"{diff.path} {diff.summary}" for diff in changed), 90)
    return look.compact(arguments, 90) if arguments not in (None, {}, "") else ""


def call_badges(call: Call, trace: Trace) -> tuple[Badge, ...]:
    problem = call.resolved.problem
    if call.denied:
        badge = Badge("⊘ denied", "warn")
    elif call.finished is None:
        badge = Badge("… no result yet", "info") if trace.ended is None else Badge("– no result", "warn")
    elif problem is not None:
        badge = Badge(
            f"{'↷' if problem == 'gated' else '✗'} {_PROBLEMS[problem]}",
            "warn" if problem == "gated" else "bad",
        )
    else:
        badge = Badge("✓ ok", "good") if call.finished.ok else Badge("✗ failed", "bad")
    partial = (Badge("partial result", "warn"),) if call.finished and call.finished.partial else ()
    return (badge, *partial, *(Badge(flag) for flag in call.resolved.flags))


def describe_decision(decision: PermissionDecided, look: Look) -> str:
    if decision.by == "purity":
        return ""
    what = ", ".join(look.line(effect, 120) for effect in decision.effects[:6])
    pattern = look.line(decision.pattern, 120) if decision.pattern else ""
    match decision.by:
        case "person":
            who = f" by you, always for {pattern}" if pattern else " by you"
        case "nobody":
            who = ": nobody was there to ask"
        case "approve":
            who = " by --approve"
        case "study":
            who = " by the study: it acts outside the trial's workspace"
        case _:
            who = f" by the rule {pattern}" if pattern else ""
    return f"{decision.decision}{who}" + (f" ({what})" if what else "")


def describe_further(call: Call, look: Look) -> tuple[str, ...]:
    """Return a sentence for each of the last decisions in the middle of a call."""
    said = (describe_decision(each, look) or each.decision for each in call.further[-_FURTHER:])
    return tuple(f"in the middle of the call: {each}" for each in said)


def progress_bar(progress: ActionProgressed | None, look: Look) -> tuple[Block, ...]:
    """Return how far a call said it is: a bar where it knows the whole, else its words; nothing if it said nothing."""
    if progress is None or not progress.text:
        return ()
    said = look.line(progress.text, 240)
    if not progress.total or progress.done is None:
        return (Notice(said, "muted"),)
    share = min(1.0, progress.done / progress.total)
    row = Interval("done", f"{100 * share:.0f} %", share, detail=said, tone="info")
    return (Intervals("", (row,), (0.0, 1.0), bars=True),)


def _came_back(finished: ActionFinished, look: Look) -> list[Block]:
    blocks: list[Block] = []
    if finished.advice:
        blocks.append(Notice(look.text(finished.advice, 600), "info"))
    if finished.output:
        left = len(finished.output) - _OUTPUT
        more = f"… {left:,} more characters; all of them: trace.calls[…].finished.output" if left > 0 else ""
        label = "came back, partial" if finished.partial else "came back"
        blocks.append(Code(look.text(finished.output, _OUTPUT), label, more))
    if finished.blob is not None:
        blob = look.line(finished.blob, 60)
        kind = look.line(finished.content_kind or "content", 30).replace("_", " ")
        part = "a partial result, " if finished.partial else ""
        size = formatting.size(finished.size)
        blocks.append(Commands((f"%reyn inspect {blob}",), f"blob: {part}{kind}, {size}"))
    return blocks


def pretty(arguments: object, look: Look, limit: int = _ARGUMENTS) -> str:
    """Return arguments over several lines where they fit, on one bounded line where they do not."""
    line = look.compact(arguments, limit)
    if isinstance(arguments, str):
        return look.text(arguments, limit)
    if len(line) < 80 or line.endswith("…"):
        return line
    try:
        return look.text(json.dumps(arguments, ensure_ascii=False, indent=2), limit)
    except (TypeError, ValueError):
        return line
