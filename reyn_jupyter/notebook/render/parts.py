"""What stands behind a line of a run: the request and the reply of a model call, a tool call and its result.

Invariant: a part (one side of a line) holds at most about `PART` bytes of text; whatever is cut names the expression
that gives all of it. A record that stops, or holds odd things, draws as far as it goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reyn_jupyter.notebook.render import figures
from reyn_jupyter.notebook.render.calls import call_badges, decided, inner_arguments, pretty
from reyn_jupyter.notebook.render.changes import Previous, diffs
from reyn_jupyter.notebook.render.model import Block, Code, Commands, Facts, Message, Section, View
from reyn_jupyter.notebook.render.model_parts import reply_view, request_view
from reyn_jupyter.notebook.render.part_texts import PART, Texts, run_expression
from reyn_jupyter.notebook.render.untrusted import Look

if TYPE_CHECKING:
    from reyn_jupyter.runtime.events import ActionFinished
    from reyn_jupyter.runtime.trace import Call, Trace

_FLAGS = {
    "salvaged": "an action was called as if it were a tool",
    "repaired": "a misspelt name was corrected, as only one action could be meant",
    "decoded": "the arguments came as the text of an object",
    "lifted": "arguments beside the name were moved to where they belong",
    "coerced": "a value was turned into the type that the schema asks for",
    "aliased": "an argument came under another name of it",
    "merged": "an equal call of the same step was made once, for both",
}


@dataclass(frozen=True, slots=True)
class Part:
    """Both sides of one line; `blob` is the id of what it stored, "" for none."""

    request: View
    response: View
    blob: str = ""


def part(trace: Trace, wanted: str, look: Look, previous: Previous, running: bool = False) -> Part:
    """What stands behind the line with this id.

    Raises:
        LookupError: the run has no such line.
    """
    kind, number = wanted[:1], wanted[1:]
    if kind == "m" and number.isdecimal():
        for place, step in enumerate(trace.steps):
            if step.number == int(number) and (step.requested or step.replied):
                last = running and place == len(trace.steps) - 1
                return Part(
                    request_view(trace, step, place, look), reply_view(trace, step, place, look, last)
                )
    if kind == "c" and number.isdecimal() and int(number) < len(trace.calls):
        place = int(number)
        call = trace.calls[place]
        blob = call.finished.blob if call.finished else None
        request, response = call_views(call, trace, place, look, previous)
        return Part(request, response, look.line(blob, 60) if blob else "")
    raise LookupError(f"the run has no step {wanted[:20]!r}")


def call_views(
    call: Call, trace: Trace, place: int, look: Look, previous: Previous, room: int = PART
) -> tuple[View, View]:
    """What a call asked for, and what came back, in at most about `room` bytes each."""
    resolved, finished = call.resolved, call.finished
    arguments = inner_arguments(call) if resolved.inner is None else resolved.inner
    knob = f"{run_expression(trace)}.calls[{place}]"
    state, *flags = call_badges(call, trace)
    pairs = [("asked through", look.line(resolved.wrapper, 80)), ("action", _resolved_to(call, look))]
    pairs.append(
        ("by", {"model": "the model", "person": "you"}.get(resolved.actor, look.line(resolved.actor, 40)))
    )
    if call.decision is not None:
        said = decided(call.decision, look) or f"{call.decision.decision}: it changes nothing"
        pairs.append(("permission", said))
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
        note = Message("It has not come back." if trace.ended else "It has not come back yet.", state.tone)
        return request, View("part", "Result", (state,), (), (note,))
    facts = [figures.seconds(finished.seconds)]
    if finished.size:
        facts.append(figures.size(finished.size))
    if finished.content_kind:
        facts.append(look.line(finished.content_kind, 30).replace("_", " "))
    back = _result_blocks(finished, arguments, look, previous, f"{knob}.finished.output", room)
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
        blocks.append(Message(look.text(finished.error, 2000), "bad"))
    if finished.changes:
        changed = diffs(finished.changes, arguments, previous, look)
        blocks.append(Section("Files", changed))
    if finished.output:
        blocks.append(
            Texts([finished.output], room).code(0, finished.output, look, "what the model got", knob)
        )
    elif not finished.error:
        blocks.append(Message("Nothing came back.", "muted"))
    if finished.blob is not None:
        line = f"%reyn inspect {look.line(finished.blob, 60)}"
        blocks.append(Commands((line,), "stored"))
    if finished.sources:
        read = ", ".join(
            f"{look.line(each.get('name', '?'), 80)} ({look.line(each.get('kind', '?'), 20)})"
            for each in finished.sources[:12]
        )
        blocks.append(Facts((("read", read),)))
    return blocks
