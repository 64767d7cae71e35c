"""From a request to a message: which routine understands the prompt, what it needs next, what it answers.

Invariant: `answer` is a pure function of the request. It raises nothing for any JSON, and every argument text that
it emits is a JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from reyn_jupyter.models.offline import calling, changes, describe, files, memory, outside, search, tables
from reyn_jupyter.models.offline.desk import Declined, Desk, Need
from reyn_jupyter.models.offline.prompt import Prompt, read
from reyn_jupyter.models.offline.render import code, plain
from reyn_jupyter.models.offline.transcript import Made, transcribe

STEPS = 7  # model calls of one turn, the answer included (a turn has 8 by default)
SHOWN = 10  # calls that an answer at the limit lists
OUTCOME = 160  # characters of what failed there
CALLED = "offline"

NOTICE = "I am the offline model, not a language model"
REMINDER = f"*{NOTICE}: rules that know a small grammar.*"
GRAMMAR = (
    "I understand: list, find, read, count, aggregate, describe, remember, recall, `call X with Y`, "
    "`replace A with B in FILE`, `write TEXT to FILE`."
)
DECLINE = "I cannot answer that: "
OUTSIDE = f"{NOTICE}: I cannot make out what is asked. {GRAMMAR}"

Routine = Callable[[Desk, Prompt], str | None]

# The first routine that understands a prompt has it: those with the plainest form first.
ROUTINES: tuple[Routine, ...] = (
    memory.attempt_remember,
    memory.attempt_recall,
    changes.attempt,
    calling.attempt_named,
    tables.attempt,
    search.attempt,
    files.attempt_list,
    describe.attempt,
    files.attempt_read,
    outside.attempt_offer,
    calling.attempt_explain,
    files.attempt_read_named,
    calling.attempt_described,
)


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """The assistant's message for a request.

    Args:
        request: `messages`, `tools` and `tool_choice` in the chat-completions shape; anything else is not looked at.

    Returns:
        {"role", "content", "tool_calls"}: either text, or one tool call whose arguments are JSON text.

    Example:
        >>> answer({"messages": []})["content"].startswith("I am the offline model")
        True
    """
    closing = request.get("tool_choice") == "none"
    messages = request.get("messages")
    transcript = transcribe(_asked(messages) if closing else messages)
    tools = _tools(request.get("tools"))
    desk = Desk(transcript, tools)
    forced = _forced(request.get("tool_choice"))
    if not closing and forced == "list_actions" and forced in tools and not transcript.made:
        return _call(Need("list_actions", {}), transcript.steps)
    try:
        text = _plan(desk, read(transcript.text))
    except Need as need:
        if not closing and need.tool in tools and transcript.steps < STEPS - 1:
            return _call(need, transcript.steps)
        text = f"{DECLINE}{_closed(desk) if closing else _stopped(desk)}"
    if not transcript.answered and NOTICE not in text:
        text = f"{text}\n\n{REMINDER}"
    return {"role": "assistant", "content": text, "tool_calls": []}


def _plan(desk: Desk, prompt: Prompt) -> str:
    if outside.empty(prompt):
        return OUTSIDE
    try:
        for routine in ROUTINES:
            text = routine(desk, prompt)
            if text is not None:
                return text
        return f"{OUTSIDE}\n\n{outside.outside(desk, prompt)}".rstrip()
    except Declined as declined:
        return f"{DECLINE}{declined}"


def _stopped(desk: Desk) -> str:
    if not desk.tools:
        return "no actions are offered in this step, and I answer only from their results."
    done = ", ".join(dict.fromkeys(str(m.arguments.get("action_name", m.tool)) for m in desk.transcript.made))
    return f"it takes more steps than I make. What I called: {done or 'nothing'}."


def _asked(messages: object) -> object:
    """The messages up to what the person asked and what was done: a user message after a result is the loop's."""
    listed = messages if isinstance(messages, list) else []
    roles = [message.get("role") if isinstance(message, dict) else None for message in listed]
    return listed[:-1] if roles[-2:] == ["tool", "user"] else messages


def _closed(desk: Desk) -> str:
    """What was called, and how that ended, where no more calls may be made."""
    made = desk.transcript.made
    if not made:
        return "no call may be made in this step, and I answer only from results."
    lines = [f"- {code(str(m.arguments.get('action_name', m.tool)))}: {_outcome(m)}" for m in made[-SHOWN:]]
    left = len(made) - len(lines)
    first = [f"- {left} earlier calls"] if left else []
    return "the limit of model calls came first. What I called:\n\n" + "\n".join([*first, *lines])


def _outcome(made: Made) -> str:
    if made.result is None:
        return "no result"
    if made.result.error is not None:
        return f"failed: {plain(made.result.error[:OUTCOME])}"
    return f"stored as {made.result.blob}" if made.result.blob else "done"


def _call(need: Need, step: int) -> dict[str, Any]:
    function = {"name": need.tool, "arguments": json.dumps(need.arguments, ensure_ascii=False)}
    call = {"id": f"call_{step + 1}", "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def _tools(given: object) -> dict[str, Mapping[str, Any]]:
    """The functions on offer by name; what has another shape is passed over."""
    found: dict[str, Mapping[str, Any]] = {}
    for tool in given if isinstance(given, list) else ():
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            found[function["name"]] = function
    return found


def _forced(choice: object) -> str | None:
    if isinstance(choice, dict):
        function = choice.get("function")
        choice = function.get("name") if isinstance(function, dict) else None
    return choice if isinstance(choice, str) else None
