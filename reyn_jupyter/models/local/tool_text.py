"""Tools as text: how a model from a file is told of tools, and how its calls are read.

The form is the one of the Hermes models, which Qwen and others took over: definitions within `<tools>`, calls within
`<tool_call>`, results within `<tool_response>`. It is put into the messages themselves, so that it does not depend on
the file's own chat template, which may know no tools; what a conversation begins with is the same from turn to turn, so
that the server reads it once. Source: NousResearch, Hermes Function Calling; the chat template of Qwen2.5.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from reyn_jupyter.models.base import Message, ToolCall, ToolSet
from reyn_jupyter.models.written_calls import CLOSE, OPEN, read_calls, tagged_calls

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
        calls = [f"{OPEN}\n{_call_text(call)}\n{CLOSE}" for call in message.tool_calls]
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
    tagged = f'tagged: "{OPEN}\\n" call "\\n{CLOSE}"\ncall: %json {json.dumps(calls)}\n'
    if choice != "auto":
        return f"%llguidance {{}}\nstart: tagged\n{tagged}"
    fenced = 'fenced: "```json\\n" call "\\n```"\n'
    return f"%llguidance {{}}\nstart: tagged | fenced | call | PROSE\n{tagged}{fenced}{prose}"


def read_reply(
    text: str, names: Collection[str], new_id: Callable[[], str]
) -> tuple[str, tuple[ToolCall, ...]]:
    """Return what a reply says beside its calls, and the calls.

    Calls are those within tags, and a reply that is nothing but calls, in any form that `written_calls` knows but
    Python's, which may be an answer of code; what else looks like one stays text, and so does a call that was cut off
    or names nothing that is offered.

    Args:
        names: of the tools on offer.
        new_id: gives the id of a call.

    Example:
        >>> read_reply('<tool_call>{"name": "look", "arguments": {}}</tool_call>', ["look"], lambda: "c1")
        ('', (ToolCall(id='c1', name='look', arguments='{}'),))
    """
    said, calls = tagged_calls(text, names)
    if not calls:
        whole = read_calls(text)
        if whole and all(call.name in names and not call.code for call in whole):
            said, calls = "", whole
    made = (ToolCall(new_id(), call.name, json.dumps(call.arguments, ensure_ascii=False)) for call in calls)
    return said, tuple(made)


def _definitions(tools: ToolSet) -> str:
    listed = "\n".join(json.dumps(each, ensure_ascii=False) for each in tools.specs)
    return (
        "# Tools\n\nYou may call one function at a time to assist with the user query.\n\n"
        f"You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{listed}\n</tools>\n\n"
        "To call a function, return a json object with its name and arguments within <tool_call></tool_call> XML "
        "tags:\n"
        f'{OPEN}\n{{"name": <function-name>, "arguments": <args-json-object>}}\n{CLOSE}'
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
