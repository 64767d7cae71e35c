"""The offline model: which routine understands the prompt, what it needs next, what it answers.

Invariant: `answer` is a pure function of the request. It raises nothing for any JSON, and every argument text that
it emits is a JSON object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from reyn_jupyter.models.base import (
    TEXT_ALONE,
    Message,
    Request,
    Response,
    Tier,
    Usage,
)
from reyn_jupyter.models.offline.answers import ROWS, code, plain
from reyn_jupyter.models.offline.context import Declined, PlanningContext, ToolRequest, rank_actions
from reyn_jupyter.models.offline.lexicon import content_stems, parts, stem
from reyn_jupyter.models.offline.prompt_tokens import Prompt, read_prompt
from reyn_jupyter.models.offline.skills import (
    charts,
    describe,
    documents,
    edits,
    files,
    function_calls,
    memory,
    table_lookup,
)
from reyn_jupyter.models.offline.skills.files import ABLE
from reyn_jupyter.models.offline.transcript import KnownAction, TranscriptCall, transcribe
from reyn_jupyter.support.reyn_line import quote_word, reyn_line

NEAREST = 3
_OFFER = re.compile(
    r"\A(?:(?:please|can you|could you|so)\s+)*(?:list|show|what|which|how many|help|name|count)\b"
    r"|\Ahelp\b|\babilities\b"
)
_DRASTIC = frozenset(
    ["delete", "drop", "forget", "remove", "write", "edit", "install", "run"]
)  # never suggested unasked
_NOUNS = {"dataframe": "variable", "frame": "variable", "object": "variable", "tool": "", "action": "",
          "function": "function", "memory": "memory_entry", "folder": "file", "skill": "skill"}  # fmt: skip


def attempt_offer(context: PlanningContext, prompt: Prompt) -> str | None:
    """List what is on offer, of one kind or of all; None when the person does not ask for that."""
    low = prompt.lower[:300]
    able = ABLE.search(low) is not None
    if not able and (not _OFFER.match(low) or len(prompt.words) > 12):
        return None
    if re.search(r"\b(?:tables|frames|dataframes|variables)\b", low) and context.category("variable"):
        return _variables(context)
    categories = [found for word in prompt.words if (found := _category(context, word))]
    if not categories and not able:
        return None
    listed = context.listing(categories[:2])
    if re.search(r"\b(?:how many|count|number of)\b", low):
        return f"{len(listed)} {'actions' if not categories else _noun(prompt, context)} are on offer."
    if not listed:
        return "Nothing of that kind is on offer."
    lines = [f"- {code(action.name)}: {plain(action.description)}" for action in listed[:ROWS]]
    more = f"\n\n… and {len(listed) - ROWS} more" if len(listed) > ROWS else ""
    return "On offer:\n\n" + "\n".join(lines) + more


def _variables(context: PlanningContext) -> str:
    """List the variables, which are the tables that people have at hand."""
    lines = [
        f"- {code(action.entry)}: {plain(action.description)}"
        for action in table_lookup.variables(context)[:ROWS]
    ]
    return (
        "The variables of the notebook:\n\n" + "\n".join(lines) if lines else "The notebook has no variables."
    )


def _noun(prompt: Prompt, context: PlanningContext) -> str:
    """The word of the prompt that named a category."""
    return next((word for word in prompt.words if _category(context, word)), "actions")


def _category(context: PlanningContext, word: str) -> str | None:
    single = stem(word)
    if single in context.categories:
        return single
    meant = _NOUNS.get(single)
    if meant:
        return context.category(meant)
    return next((name for name in context.categories if parts(name) == (single,)), None)


def fallback(context: PlanningContext, prompt: Prompt) -> str:
    """Say that the grammar does not cover a prompt, and show the nearest actions with ready lines."""
    listed = context.search(prompt.text[:200]) or context.listing(())
    near = [action for _, action in rank_actions(listed, prompt.text[:400])[:NEAREST]]
    mild = sorted(
        listed, key=lambda action: (not _DRASTIC.isdisjoint(parts(action.entry)), len(action.required))
    )
    near += [action for action in mild if action not in near][: NEAREST - len(near)]
    return nearest(near)


def nearest(actions: list[KnownAction]) -> str:
    """The actions with ready lines to call them by hand."""
    if not actions:
        return ""
    lines = "\n".join(_invoke_line(action) for action in actions)
    return f"The nearest actions, to call by hand:\n\n```\n{lines}\n```"


def _invoke_line(action: KnownAction) -> str:
    keys = action.required or tuple(action.parameters)[:1]
    given = " ".join(f"{quote_word(key)}={'0' if _numeric(action, key) else '…'}" for key in keys)
    return f"{reyn_line('invoke', action.name)} {given}".rstrip()


def _numeric(action: KnownAction, key: str) -> bool:
    return action.parameters.get(key, {}).get("type") in ("number", "integer")


def empty(prompt: Prompt) -> bool:
    """Return whether a prompt says nothing at all."""
    return not prompt.tokens or not (content_stems(prompt.text) or prompt.tokens)


SHOWN = 10  # calls that an answer at the limit lists
OUTCOME = 160  # characters of what failed there

NOTICE = "I am the offline model, not a language model"
REMINDER = f"*{NOTICE}: rules that know a small grammar.*"
GRAMMAR = (
    "I understand: list, find, read, count, aggregate, describe, remember, recall, `what does CORPUS say about X`, "
    "`call X with Y`, `replace A with B in FILE`, `write TEXT to FILE`."
)
DECLINE = "I cannot answer that: "
OUTSIDE = f"{NOTICE}: I cannot make out what is asked. {GRAMMAR}"

Routine = Callable[[PlanningContext, Prompt], str | None]

# The first routine that understands a prompt has it: those with the plainest form first.
ROUTINES: tuple[Routine, ...] = (
    memory.attempt_remember,
    memory.attempt_recall,
    documents.attempt,
    edits.attempt,
    charts.attempt,
    function_calls.attempt_named,
    describe.attempt_file,
    table_lookup.attempt,
    files.attempt,
    files.attempt_list,
    describe.attempt,
    files.attempt_read,
    table_lookup.attempt_named,
    attempt_offer,
    function_calls.attempt_explain,
    function_calls.attempt_described,
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
    context = PlanningContext(transcript, tools)
    forced = _forced(request.get("tool_choice"))
    if not closing and forced == "list_actions" and forced in tools and not transcript.made:
        return _call(ToolRequest("list_actions", {}), transcript.steps)
    try:
        text = _plan(context, read_prompt(transcript.text))
    except ToolRequest as need:
        if not closing and need.tool in tools and not context.last_step:
            return _call(need, transcript.steps)
        text = f"{DECLINE}{_closed(context) if closing else _stopped(context)}"
    if not transcript.answered and NOTICE not in text:
        text = f"{text}\n\n{REMINDER}"
    return {"role": "assistant", "content": text, "tool_calls": []}


def _plan(context: PlanningContext, prompt: Prompt) -> str:
    if empty(prompt):
        return OUTSIDE
    try:
        for routine in ROUTINES:
            text = routine(context, prompt)
            if text is not None:
                return text
        return f"{OUTSIDE}\n\n{fallback(context, prompt)}".rstrip()
    except Declined as declined:
        return f"{DECLINE}{declined}"


def _stopped(context: PlanningContext) -> str:
    if not context.tools:
        return "no actions are offered in this step, and I answer only from their results."
    done = ", ".join(
        dict.fromkeys(str(m.arguments.get("action_name", m.tool)) for m in context.transcript.made)
    )
    return f"it takes more steps than I make. What I called: {done or 'nothing'}."


def _asked(messages: object) -> object:
    """The messages up to what the person asked and what was done: a user message after a result is the loop's."""
    listed = messages if isinstance(messages, list) else []
    roles = [message.get("role") if isinstance(message, dict) else None for message in listed]
    return listed[:-1] if roles[-2:] in (["tool", "user"], ["user", "user"]) else messages


def _closed(context: PlanningContext) -> str:
    """Return what was called, and how that ended, where no more calls may be made."""
    made = context.transcript.made
    if not made:
        return "no call may be made in this step, and I answer only from results."
    lines = [f"- {code(str(m.arguments.get('action_name', m.tool)))}: {_outcome(m)}" for m in made[-SHOWN:]]
    left = len(made) - len(lines)
    first = [f"- {left} earlier calls"] if left else []
    return "the limit of model calls came first. What I called:\n\n" + "\n".join([*first, *lines])


def _outcome(made: TranscriptCall) -> str:
    if made.result is None:
        return "no result"
    if made.result.error is not None:
        return f"failed: {plain(made.result.error[:OUTCOME])}"
    return f"stored as {made.result.blob}" if made.result.blob else "done"


def _call(need: ToolRequest, step: int) -> dict[str, Any]:
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


class OfflineModel:
    """A deterministic model for when none is configured: rules and retrieval, no network, no weights.

    It sees what any model sees, the messages and the tools of a request, and is a pure function of them. It says in
    its first answer that it is not a language model.

    Example:
        >>> import asyncio
        >>> from reyn_jupyter.models.base import Message, Request
        >>> reply = asyncio.run(OfflineModel().complete(Request("offline", (Message("user", "hello"),))))
        >>> reply.text.startswith("I am the offline model")
        True
    """

    label = "offline"
    tier: Tier = "light"
    host: str | None = None
    real = False
    media = TEXT_ALONE
    reads_listings = True
    history_turns = 1  # of earlier turns it reads whether there was one

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """One completion, which uses no tokens; `on_text` gets the whole text at once. Raises nothing."""
        wire = request.wire
        message = Message.from_wire(answer(wire))
        if on_text is not None and message.content:
            on_text(message.content)
        return Response(
            message.content,
            message.tool_calls,
            _finish_reason(message),
            Usage(),
            cost=0.0,
            model="offline",
        )


def _finish_reason(message: Message) -> str:
    if message.tool_calls:
        return "tool_calls"
    if message.content.startswith(documents.NEAREST_PASSAGES):
        return "nearest"
    return "refusal" if message.content.startswith((DECLINE, OUTSIDE)) else "stop"
