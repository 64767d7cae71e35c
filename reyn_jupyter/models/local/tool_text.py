"""Tools as text: how a model from a file is told of tools, and how its calls are read.

The form is the one of the Hermes models, which Qwen and others took over: definitions within `<tools>`, calls within
`<tool_call>`, results within `<tool_response>`. It is put into the messages themselves, so that it does not depend on
the file's own chat template, which may know no tools; what a conversation begins with is the same from turn to turn, so
that the server reads it once. Source: NousResearch, Hermes Function Calling; the chat template of Qwen2.5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from reyn_jupyter.models.base import Message, ToolCall, ToolSet

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_BEGINNINGS = ("{", "```json", _OPEN)  # of a reply that is a call as a whole
# What of a schema a grammar is made of. The rest is checked when the call is made: a word that the grammar does not
# know would make the server leave out all of it, silently.
_SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
_LISTS, _ONE = ("anyOf", "oneOf"), ("items",)


def with_tools(messages: Sequence[Message], tools: ToolSet) -> tuple[Message, ...]:
    """Return a conversation in which tools, calls and results are text."""
    said: list[Message] = []
    results: list[str] = []
    for message in messages:
        if message.role == "tool":
            results.append(f"<tool_response>\n{message.content}\n</tool_response>")
            continue
        said += _answered(results)
        results = []
        calls = [f"{_OPEN}\n{_call_text(call)}\n{_CLOSE}" for call in message.tool_calls]
        text = "\n".join((*((message.content,) if message.content else ()), *calls))
        said.append(Message(message.role, text))
    said += _answered(results)
    if not tools.specs:
        return tuple(said)
    own = said.pop(0).content if said and said[0].role == "system" else ""
    return (Message("system", f"{own}\n\n{_definitions(tools)}".strip()), *said)


def reply_grammar(tools: ToolSet, choice: str) -> str | None:
    """Return the llguidance grammar of a reply: one call of a tool that is offered, or prose that is none.

    Args:
        choice: the `tool_choice` of the request.

    Returns:
        None where nothing is offered.
    """
    offered = [each["function"] for each in tools.specs]
    if choice not in ("auto", "none", "required"):
        offered = [each for each in offered if each["name"] == choice]
    if not offered:
        return None
    prose = "PROSE: /[^<`{\\s](.|\\n)*/ | /```[^j{\\n](.|\\n)*/\n"
    if choice == "none":
        return f"%llguidance {{}}\nstart: PROSE\n{prose}"
    calls = {"x-guidance": _SPACING, "anyOf": [_call_schema(each) for each in offered]}
    tagged = f'tagged: "{_OPEN}\\n" call "\\n{_CLOSE}"\ncall: %json {json.dumps(calls)}\n'
    if choice != "auto":
        return f"%llguidance {{}}\nstart: tagged\n{tagged}"
    fenced = 'fenced: "```json\\n" call "\\n```"\n'
    return f"%llguidance {{}}\nstart: tagged | fenced | call | PROSE\n{tagged}{fenced}{prose}"


def read_reply(
    text: str, names: Collection[str], new_id: Callable[[], str]
) -> tuple[str, tuple[ToolCall, ...]]:
    """Return what a reply says beside its calls, and the calls.

    Calls are those within tags, and a reply that is nothing but one; what else looks like one stays text, and so does
    a call that was cut off or names nothing that is offered.

    Args:
        names: of the tools on offer.
        new_id: gives the id of a call.

    Example:
        >>> read_reply('<tool_call>{"name": "look", "arguments": {}}</tool_call>', ["look"], lambda: "c1")
        ('', (ToolCall(id='c1', name='look', arguments='{}'),))
    """
    calls: list[ToolCall] = []
    rest, place = [], 0
    for found in re.finditer(re.escape(_OPEN), text):
        if found.start() < place:
            continue
        call, end = _read_call(text, found.end(), names, new_id)
        if call is not None:
            calls.append(call)
            rest.append(text[place : found.start()])
            place = end
    rest.append(text[place:])
    if calls:
        return "".join(rest).strip(), tuple(calls)
    bare = text.strip()
    fence = re.fullmatch(r"```(?:json)?\s*\n(.*?)\n?```", bare, re.S)
    body = fence[1].strip() if fence else bare
    call, end = _read_call(body, 0, names, new_id)
    return ("", (call,)) if call is not None and end == len(body) else (text, ())


class TaggedCallFilter:
    """A listener for streamed text that hears none of what may be a call.

    Args:
        on_text: gets the rest.
    """

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._text = ""
        self._given = 0

    def __call__(self, piece: str) -> None:
        self._text += piece
        end = self._prose()
        if end > self._given:
            self._on_text(self._text[self._given : end])
            self._given = end

    def _prose(self) -> int:
        """Return up to where the text is no call, whatever comes."""
        begun = self._text.lstrip()
        if any(begun.startswith(each) or each.startswith(begun) for each in _BEGINNINGS):
            return 0
        tag = self._text.find(_OPEN)
        if tag >= 0:
            return tag
        partial = next((n for n in range(len(_OPEN) - 1, 0, -1) if self._text.endswith(_OPEN[:n])), 0)
        return len(self._text) - partial


def _definitions(tools: ToolSet) -> str:
    listed = "\n".join(json.dumps(each, ensure_ascii=False) for each in tools.specs)
    return (
        "# Tools\n\nYou may call one function at a time to assist with the user query.\n\n"
        f"You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{listed}\n</tools>\n\n"
        "To call a function, return a json object with its name and arguments within <tool_call></tool_call> XML "
        "tags:\n"
        f'{_OPEN}\n{{"name": <function-name>, "arguments": <args-json-object>}}\n{_CLOSE}'
    )


def _answered(results: Sequence[str]) -> list[Message]:
    return [Message("user", "\n".join(results))] if results else []


def _call_text(call: ToolCall) -> str:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = call.arguments
    return json.dumps({"name": call.name, "arguments": arguments}, ensure_ascii=False)


def _call_schema(function: Mapping[str, Any]) -> dict[str, Any]:
    arguments = _plain(function.get("parameters") or {})
    arguments["type"] = "object"
    return {
        "type": "object",
        "properties": {"name": {"const": function["name"]}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _plain(schema: Any) -> dict[str, Any]:
    """Return the parts of a schema that every grammar can hold."""
    if not isinstance(schema, Mapping) or "$ref" in schema or "allOf" in schema:
        return {}
    kept = {key: schema[key] for key in ("type", "enum", "const", "required") if key in schema}
    for key in _LISTS:
        if isinstance(schema.get(key), list):
            return {"anyOf": [_plain(each) for each in schema[key]]}
    if isinstance(schema.get("properties"), Mapping):
        kept["properties"] = {name: _plain(each) for name, each in schema["properties"].items()}
        # Whoever names parameters means these, and a small model fills what is open for ever.
        kept["additionalProperties"] = bool(schema.get("additionalProperties", False))
    for key in _ONE:
        if key in schema:
            kept[key] = _plain(schema[key])
    return kept


def _read_call(
    text: str, start: int, names: Collection[str], new_id: Callable[[], str]
) -> tuple[ToolCall | None, int]:
    """Return the call that begins at a place, and where it ends with its closing tag."""
    begin = start + len(text[start:]) - len(text[start:].lstrip())
    try:
        said, end = json.JSONDecoder().raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None, start
    if not isinstance(said, dict) or said.get("name") not in names:
        return None, start
    arguments = said.get("arguments", {})
    if not isinstance(arguments, dict):
        return None, start
    after = re.compile(rf"\s*{re.escape(_CLOSE)}").match(text, end)
    call = ToolCall(new_id(), said["name"], json.dumps(arguments, ensure_ascii=False))
    return call, after.end() if after else end
