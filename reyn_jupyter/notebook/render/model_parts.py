"""What stands behind a model call: the messages and tools that were sent, and the reply.

Invariant: a side holds at most about `PART` bytes of text, and what is cut names the expression that gives all of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reyn_jupyter.notebook.render import figures
from reyn_jupyter.notebook.render.calls import pretty
from reyn_jupyter.notebook.render.fit import byte_size
from reyn_jupyter.notebook.render.model import Badge, Block, Code, Facts, Fold, Message, Span, View
from reyn_jupyter.notebook.render.part_texts import PART, Texts, run_expression
from reyn_jupyter.notebook.render.steps import reply_state
from reyn_jupyter.notebook.render.untrusted import Look

if TYPE_CHECKING:
    from reyn_jupyter.runtime.events import ModelReplied, ModelRequested
    from reyn_jupyter.runtime.trace import Step, Trace

_CALLS = 20  # drawn of one reply; each is a line of its own
_ARGUMENTS = 1500
_MESSAGES = 60  # drawn of one request; a long history comes with the first request alone


def request_view(trace: Trace, step: Step, place: int, look: Look) -> View:
    requested = step.requested
    if requested is None:
        note = Message("The record does not hold this request.", "muted")
        return View("part", "Request", (), (), (note,))
    messages = [each for each in requested.messages if isinstance(each, Mapping)]
    facts = [
        look.line(requested.model, 80),
        f"{figures.count(requested.total_messages, 'message')}, {len(messages)} of them new here",
        f"≈ {figures.count(requested.estimated_tokens, 'token')} before sending",
    ]
    knob = f"{run_expression(trace)}.steps[{place}].requested.messages"
    blocks = _messages(messages, trace, look, knob)
    blocks += _offer(requested, look)
    return View("part", "Request", (), tuple(facts), tuple(blocks), knob)


def _messages(messages: Sequence[Mapping[str, Any]], trace: Trace, look: Look, knob: str) -> list[Block]:
    names = {call.id: call.label for call in trace.calls}
    shown = messages[:_MESSAGES]
    contents = [_content(each.get("content")) for each in shown]
    texts = Texts(contents)
    blocks: list[Block] = []
    for place, (each, text) in enumerate(zip(shown, contents, strict=True)):
        role = look.line(each.get("role") or "?", 30)
        inner: list[Block] = []
        if text:
            inner.append(texts.code(place, text, look, "", f"{knob}[{place}]"))
        asked = _asked_calls(each.get("tool_calls"), look, PART // 2 // len(shown))
        inner += asked
        title = [Span(role, ("strong",)), Span(" ")]
        if answered := names.get(str(each.get("tool_call_id"))):
            title += [Span(look.line(answered, 100), ("code",)), Span(" ")]
        said = look.line(text.strip(), 90) or ", ".join(
            code.label for code in asked[:4] if isinstance(code, Code)
        )
        title.append(Span(said, ("muted",)))
        opened = role != "system" and len(shown) <= 6
        blocks.append(
            Fold(tuple(title), (), figures.size(byte_size(text)) if text else "", tuple(inner), opened)
        )
    if len(messages) > len(shown):
        left = figures.count(len(messages) - len(shown), "more message")
        blocks.append(Message(f"… {left} not shown here; all of them: {knob}", "muted"))
    if not messages:
        blocks.append(Message("No message is new in this request.", "muted"))
    return blocks


def _content(content: object) -> str:
    """The text of a message; parts of another shape as JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    try:
        return json.dumps(content, ensure_ascii=False, indent=2, default=str)
    except (TypeError, ValueError, RecursionError):
        return f"<{type(content).__name__}>"


def _asked_calls(calls: object, look: Look, room: int = PART // 2) -> list[Block]:
    """The tool calls that a message or a reply asks for, of either shape that the record knows."""
    listed = [
        each for each in (calls if isinstance(calls, list | tuple) else ()) if isinstance(each, Mapping)
    ]
    found: list[Block] = []
    for each in listed[:_CALLS]:
        if room <= 0:
            break
        function = each.get("function")
        said = function if isinstance(function, Mapping) else each
        arguments = said.get("arguments")
        try:
            given = json.loads(arguments) if isinstance(arguments, str) else arguments
        except (ValueError, RecursionError):
            given = arguments  # malformed: shown as it came
        text = pretty(given, look, min(_ARGUMENTS, room)) if given not in (None, "") else "(no arguments)"
        room -= byte_size(text)
        found.append(Code(text, f"asks for {look.line(said.get('name') or '?', 100)}"))
    if left := len(listed) - len(found):
        note = f"… {figures.count(left, 'more call')}; each stands in the list of steps"
        found.append(Message(note, "muted"))
    return found


def _offer(requested: ModelRequested, look: Look) -> list[Block]:
    """The tools that were offered and how the model was asked."""
    count = figures.count(len(requested.tools), "tool")
    names = ", ".join(look.line(name, 100) for name in requested.tools[:60])
    if len(requested.tools) > 60:
        names += f" and {len(requested.tools) - 60} more"
    blocks: list[Block] = []
    if requested.tools:
        blocks.append(Fold((Span(f"{count} offered"),), (), "", (Code(names),)))
    pairs = [("tool choice", look.line(requested.tool_choice, 60))]
    if requested.parameters:
        pairs.append(("parameters", look.compact(requested.parameters, 200)))
    if requested.repeat:
        pairs.append(("repeat", str(requested.repeat)))
    pairs.append(("hash", look.line(requested.key[:16], 20)))
    return [*blocks, Facts(tuple(pairs))]


def reply_view(trace: Trace, step: Step, place: int, look: Look, running: bool) -> View:
    replied = step.replied
    badge = Badge(*reply_state(replied, running))
    if replied is None:
        said = "The model has not answered yet." if running else "The record stops before the model answered."
        return View("part", "Reply", (badge,), (), (Message(said, "info" if running else "warn"),))
    facts = [figures.seconds(replied.seconds)]
    about = "≈ " if replied.estimated else ""
    if not replied.error:
        facts.append(f"{about}{replied.prompt_tokens:,} tokens in, {replied.completion_tokens:,} out")
        if replied.cached_tokens:
            facts.append(f"{replied.cached_tokens:,} of them cached")
    if replied.cost is not None:
        facts.append(figures.money(replied.cost))
    elif trace.started.real and not replied.error:
        facts.append("price not known")
    if replied.retries:
        facts.append(f"{replied.retries} retried")
    blocks: list[Block] = []
    if replied.error:
        kind = f" ({look.line(replied.error_kind, 40)})" if replied.error_kind else ""
        blocks.append(Message(f"{look.text(replied.error, 2000)}{kind}", "bad"))
    if replied.text:
        knob = f"{run_expression(trace)}.steps[{place}].replied.text"
        blocks.append(Texts([replied.text], PART // 2).code(0, replied.text, look, "text", knob))
    blocks += _asked_calls(replied.tool_calls, look)
    badges = [badge] if replied.finish_reason in ("stop", "tool_calls") else [badge, _reason(replied, look)]
    if not blocks:
        blocks.append(Message("The model said nothing and asked for nothing.", "muted"))
    return View("part", "Reply", tuple(badges), tuple(facts), tuple(blocks))


def _reason(replied: ModelReplied, look: Look) -> Badge:
    return Badge(look.line(replied.finish_reason, 30), "warn")
