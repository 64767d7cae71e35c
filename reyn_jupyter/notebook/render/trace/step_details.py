"""The details behind a line of a run: the request and reply of a model call, a tool call and its result.

Invariants: a part (one side of a line) holds at most about `PART` bytes of text; whatever is cut names the expression
that gives all of it. A record that stops, or holds odd things, draws as far as it goes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Code,
    Commands,
    Facts,
    Fold,
    Notice,
    Section,
    Span,
    View,
)
from reyn_jupyter.notebook.render.file_changes_view import Previous, diffs
from reyn_jupyter.notebook.render.hosts.fit import byte_size, share_fairly
from reyn_jupyter.notebook.render.parts_view import MediaRoom, call_parts
from reyn_jupyter.notebook.render.trace.calls import (
    call_badges,
    describe_decision,
    describe_further,
    inner_arguments,
    pretty,
    progress_bar,
)
from reyn_jupyter.notebook.render.trace.steps import reply_state
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.runtime.record.events import ActionFinished, ModelReplied, ModelRequested
    from reyn_jupyter.runtime.record.run_steps import Call, Step
    from reyn_jupyter.runtime.record.trace import Trace


PART = 24 * 1024  # bytes of one side of a line, about


def run_expression(trace: Trace) -> str:
    return f'session.trace("{trace.run[-12:]}")'


class Texts:
    """Long texts of one part, which share its bytes fairly."""

    def __init__(self, texts: Sequence[str], limit: int = PART) -> None:
        self._shares = share_fairly([byte_size(text) for text in texts], limit)

    def code(self, place: int, text: str, look: Look, label: str, knob: str) -> Code:
        share, size = self._shares[place], byte_size(text)
        room = len(text) if size <= share else max(80, len(text) * share // size)
        left = len(text) - room
        more = f"… {left:,} more characters; all of it: {knob}" if left > 0 else ""
        return Code(look.text(text, room) or "(empty)", label, more)


_FLAGS = {
    "salvaged": "an action was called as if it were a tool",
    "repaired": "a misspelt name was corrected, as only one action could be meant",
    "decoded": "the arguments came as the text of an object",
    "lifted": "arguments beside the name were moved to where they belong",
    "coerced": "a value was turned into the type that the schema asks for",
    "aliased": "an argument came under another name of it",
    "merged": "an equal call of the same step was made once, for both",
    "from_text": "the model wrote the call as text, and nothing else",
    "repeated": "it was not run again: the same call had its result in this turn",
    "left_out": "it was not run: too many calls of one reply change something",
}


_CALLED_BY = {
    "model": "the model",
    "person": "you",
    "workflow": "the call around it",
    "peer": "the peer that the call around it asked",
}


@dataclass(frozen=True, slots=True)
class StepDetails:
    """Both sides of one line; `blob` is the id of what it stored, "" for none."""

    request: View
    response: View
    blob: str = ""


def part(trace: Trace, wanted: str, look: Look, previous: Previous, running: bool = False) -> StepDetails:
    """Return what stands behind the line with this id.

    Raises:
        LookupError: the run has no such line.
    """
    outer, _, within = wanted.partition(".")
    kind, number = outer[:1], outer[1:]
    if within and kind == "c" and number.isdecimal() and int(number) < len(trace.calls):
        inner = trace.inner.get(trace.calls[int(number)].id)
        if inner is not None:
            return part(inner, within, look, previous, running)
    if within:
        raise LookupError(f"the run has no step {wanted[:20]!r}")
    if kind == "m" and number.isdecimal():
        for place, step in enumerate(trace.steps):
            if step.number == int(number) and (step.requested or step.replied):
                last = running and place == len(trace.steps) - 1
                return StepDetails(
                    request_view(trace, step, place, look), reply_view(trace, step, place, look, last)
                )
    if kind == "c" and number.isdecimal() and int(number) < len(trace.calls):
        place = int(number)
        call = trace.calls[place]
        blob = call.finished.blob if call.finished else None
        request, response = call_views(call, trace, place, look, previous)
        return StepDetails(request, response, look.line(blob, 60) if blob else "")
    raise LookupError(f"the run has no step {wanted[:20]!r}")


def call_views(
    call: Call, trace: Trace, place: int, look: Look, previous: Previous, room: int = PART
) -> tuple[View, View]:
    """Return what a call asked for, and what came back, in at most about `room` bytes each."""
    resolved, finished = call.resolved, call.finished
    arguments = inner_arguments(call) if resolved.inner is None else resolved.inner
    knob = f"{run_expression(trace)}.calls[{place}]"
    state, *flags = call_badges(call, trace)
    pairs = [("asked through", look.line(resolved.wrapper, 80)), ("action", _resolved_to(call, look))]
    pairs.append(("by", _CALLED_BY.get(resolved.actor) or look.line(resolved.actor, 40)))
    if call.decision is not None:
        said = describe_decision(call.decision, look) or f"{call.decision.decision}: it changes nothing"
        pairs.append(("permission", said))
    pairs += [("permission", said) for said in describe_further(call, look)]
    pairs += [(flag, _FLAGS.get(flag, "")) for flag in resolved.flags]
    blocks: list[Block] = [Facts(tuple(pairs))]
    if arguments not in (None, {}, ""):
        blocks.append(_long(arguments, look, "arguments", f"{knob}.resolved.inner", room // 3))
    if resolved.flags and resolved.arguments != arguments:
        blocks.append(
            _long(resolved.arguments, look, "as it was given", f"{knob}.resolved.arguments", room // 3)
        )
    request = View("part", "Call", tuple(flags), (), tuple(blocks), knob)
    if finished is None:
        note = Notice("It has not come back." if trace.ended else "It has not come back yet.", state.tone)
        return request, View("part", "Result", (state,), (), (note, *progress_bar(call.progress, look)))
    facts = [formatting.seconds(finished.seconds)]
    if finished.size:
        facts.append(formatting.size(finished.size))
    if finished.content_kind:
        facts.append(look.line(finished.content_kind, 30).replace("_", " "))
    back = _result_blocks(finished, arguments, look, previous, f"{knob}.finished.output", room)
    back += call_parts(call, trace, look, MediaRoom())
    return request, View("part", "Result", (state,), tuple(facts), tuple(back), f"{knob}.finished")


def _resolved_to(call: Call, look: Look) -> str:
    name, target = call.resolved.name, call.resolved.target
    if name is None and call.resolved.problem:
        given = call.resolved.arguments
        wanted = given.get("action_name") if isinstance(given, Mapping) else None
        return look.line(wanted, 100) if isinstance(wanted, str) else "none"
    if name is None:
        return "the wrapper's own answer"
    purity = f" ({look.line(call.resolved.purity, 30)})" if call.resolved.purity else ""
    runs = f", runs {look.line(target, 80)}" if target and target != name else ""
    return f"{look.line(name, 100)}{purity}{runs}"


def _long(value: object, look: Look, label: str, knob: str, room: int) -> Code:
    text = pretty(value, look, room)
    cut = len(text) >= room and text.endswith("…")
    return Code(text, label, f"… cut; all of it: {knob}" if cut else "")


def _result_blocks(
    finished: ActionFinished, arguments: object, look: Look, previous: Previous, knob: str, room: int
) -> list[Block]:
    blocks: list[Block] = []
    if finished.error:
        blocks.append(Notice(look.text(finished.error, 2000), "bad"))
    if finished.advice:
        blocks.append(Notice(look.text(finished.advice, 600), "info"))
    if finished.partial:
        blocks.append(Notice("What it had until then was kept. It is not the whole result.", "warn"))
    if finished.changes:
        changed = diffs(finished.changes, arguments, previous, look)
        blocks.append(Section("Files", changed))
    if finished.output:
        blocks.append(
            Texts([finished.output], room).code(0, finished.output, look, "what the model got", knob)
        )
    elif not finished.error:
        blocks.append(Notice("Nothing came back.", "muted"))
    if finished.blob is not None:
        line = f"%reyn inspect {look.line(finished.blob, 60)}"
        blocks.append(Commands((line,), "stored"))
    if finished.sources:
        read = ", ".join(
            f"{look.line(each.get('name', '?'), 80)} ({look.line(each.get('kind', '?'), 20)})"
            for each in finished.sources[:12]
        )
        blocks.append(Facts((("read", read),)))
    if finished.origins:
        where = ", ".join(look.line(each, 120) for each in finished.origins[:12])
        blocks.append(Facts((("text of others, from", where),)))
    return blocks


_CALLS = 20  # drawn of one reply; each is a line of its own
_ARGUMENTS = 1500
_MESSAGES = 60  # drawn of one request; a long history comes with the first request alone


def request_view(trace: Trace, step: Step, place: int, look: Look) -> View:
    requested = step.requested
    if requested is None:
        note = Notice("The record does not hold this request.", "muted")
        return View("part", "Request", (), (), (note,))
    messages = [each for each in requested.messages if isinstance(each, Mapping)]
    facts = [
        look.line(requested.model, 80),
        f"{count(requested.total_messages, 'message')}, {len(messages)} of them new here",
        f"≈ {count(requested.estimated_tokens, 'token')} before sending",
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
        if attached := _attached(each.get("attachments"), look):
            inner.append(Notice(f"sent with it: {attached}", "muted"))
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
            Fold(tuple(title), (), formatting.size(byte_size(text)) if text else "", tuple(inner), opened)
        )
    if len(messages) > len(shown):
        left = count(len(messages) - len(shown), "more message")
        blocks.append(Notice(f"… {left} not shown here; all of them: {knob}", "muted"))
    if not messages:
        blocks.append(Notice("No message is new in this request.", "muted"))
    return blocks


def _attached(attachments: object, look: Look) -> str:
    """Return the images and sounds that went with a message: type, size and name of each."""
    listed = attachments if isinstance(attachments, list | tuple) else ()
    said = []
    for each in (each for each in listed[:8] if isinstance(each, Mapping)):
        pixels = f" {each['width']}×{each['height']}" if each.get("width") and each.get("height") else ""
        size = formatting.size(int(each.get("bytes") or 0))
        name = f", {each['name']}" if each.get("name") else ""
        said.append(look.line(f"{each.get('mime')}{pixels} ({size}{name})", 200))
    return ", ".join(said)


def _content(content: object) -> str:
    """Return the text of a message; parts of another shape as JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    try:
        return json.dumps(content, ensure_ascii=False, indent=2, default=str)
    except (TypeError, ValueError, RecursionError):
        return f"<{type(content).__name__}>"


def _asked_calls(calls: object, look: Look, room: int = PART // 2) -> list[Block]:
    """Return the tool calls that a message or a reply asks for, of either shape that the record knows."""
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
        note = f"… {count(left, 'more call')}; each stands in the list of steps"
        found.append(Notice(note, "muted"))
    return found


def _offer(requested: ModelRequested, look: Look) -> list[Block]:
    """Return the tools that were offered and how the model was asked."""
    offered = count(len(requested.tools), "tool")
    names = ", ".join(look.line(name, 100) for name in requested.tools[:60])
    if len(requested.tools) > 60:
        names += f" and {len(requested.tools) - 60} more"
    blocks: list[Block] = []
    if requested.tools:
        blocks.append(Fold((Span(f"{offered} offered"),), (), "", (Code(names),)))
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
        return View("part", "Reply", (badge,), (), (Notice(said, "info" if running else "warn"),))
    facts = [formatting.seconds(replied.seconds)]
    about = "≈ " if replied.estimated else ""
    if not replied.error and (replied.prompt_tokens or replied.completion_tokens):
        facts.append(f"{about}{replied.prompt_tokens:,} tokens in, {replied.completion_tokens:,} out")
        parts = {
            "of them cached": replied.cached_tokens,
            "written to the cache": replied.cache_write_tokens,
            "tokens of thought": replied.reasoning_tokens,
        }
        facts += [f"{tokens:,} {name}" for name, tokens in parts.items() if tokens]
    if replied.cost is not None:
        facts.append(formatting.money(replied.cost))
    elif trace.started.real and not replied.error:
        facts.append("price not known")
    if replied.retries:
        facts.append(f"{replied.retries} retried")
    blocks: list[Block] = []
    if replied.error:
        kind = f" ({look.line(replied.error_kind, 40)})" if replied.error_kind else ""
        blocks.append(Notice(f"{look.text(replied.error, 2000)}{kind}", "bad"))
    if replied.reasoning:
        knob = f"{run_expression(trace)}.steps[{place}].replied.reasoning"
        thoughts = Texts([replied.reasoning], PART // 4).code(0, replied.reasoning, look, "text", knob)
        blocks.append(Fold((Span("Thoughts of the model"),), (), "", (thoughts,)))
    if replied.text:
        knob = f"{run_expression(trace)}.steps[{place}].replied.text"
        blocks.append(Texts([replied.text], PART // 2).code(0, replied.text, look, "text", knob))
    blocks += _asked_calls(replied.tool_calls, look)
    badges = [badge] if replied.finish_reason in ("stop", "tool_calls") else [badge, _reason(replied, look)]
    if not blocks:
        blocks.append(Notice("The model said nothing and asked for nothing.", "muted"))
    return View("part", "Reply", tuple(badges), tuple(facts), tuple(blocks))


def _reason(replied: ModelReplied, look: Look) -> Badge:
    return Badge(look.line(replied.finish_reason, 30), "warn")
