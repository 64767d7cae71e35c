"""Calls that a model wrote as text instead of making them: the forms, and how one is read.

Invariant: a text is calls as a whole or none at all; what stands in prose is never one. Values are literals: nothing of
a text is run to read it. Sources: NousResearch, Hermes Function Calling (`<tool_call>`); Mistral's tokenizers
(`[TOOL_CALLS]`); Meta, Llama 3.1 prompt format (`<|python_tag|>`, `<function=…>`, Python's calls); Yao et al., ReAct
(`Action:`).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.catalog.names import SEPARATOR, WRAPPERS

OPEN, CLOSE = "<tool_call>", "</tool_call>"
FENCE = re.compile(r"\s*```\w*[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
INVOKE = "invoke_action"

_LONGEST = 200_000  # characters of a text that is read
_LONGEST_CODE = 20_000  # characters of Python's calls
_MARKS = re.compile(r"\s*(<tool_call>|\[TOOL_CALLS\]|<\|python_tag\|>|<function=|Action:\s*\w+)")
_ENDS = re.compile(r"(\s*(<\|eom_id\|>|<\|eot_id\|>|<\|im_end\|>|</s>))+\s*$")
_FUNCTION = re.compile(r"\s*<function=([\w.-]+)>(.*?)(?:</function>\s*|$)", re.DOTALL)
_MISTRAL = re.compile(r"\s*([\w.-]+)(?:\[ARGS\])?\s*(?=\{)")
_REACT = re.compile(
    r"\s*(?:Thought:[^\n]*\n(?:[ \t]*\n)*)?"
    r"Action:[ \t]*`?([\w.-]+)`?[ \t]*\n(?:[ \t]*\n)*"
    r"Action Input:[ \t]*(.*?)\s*(?:Observation:\s*)?",
    re.DOTALL,
)
_REACT_LINE = re.compile(r"^[ \t]*(Action|Action Input|Observation|Final Answer):", re.MULTILINE)
_BESIDE = frozenset({"id", "type", "index", "tool_call_id"})  # what providers add to a call
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_PAIRS = {
    "name": ("arguments", "parameters"),
    "tool": ("args", "arguments", "parameters", "input"),
    "tool_name": ("args", "arguments", "parameters"),
    "function": ("arguments", "args", "parameters"),
}
_ALONE = re.compile(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True)
class WrittenCall:
    """One call as it was written.

    Attributes:
        name: of the tool, or of an action.
        arguments: as plain JSON data.
        marked: whether it stands in a form that means nothing but a call, whatever its name.
        code: whether it stands as a call of Python, as an answer of code may do too.
    """

    name: str
    arguments: dict[str, Any]
    marked: bool = False
    code: bool = False


def read_calls(text: str) -> tuple[WrittenCall, ...]:
    """Return the calls that a whole text is; none where it is, or holds, anything else.

    Whether a name is one of a tool is not looked at.

    Example:
        >>> read_calls('```json\\n{"name": "look", "arguments": {"at": "a"}}\\n```')
        (WrittenCall(name='look', arguments={'at': 'a'}, marked=False, code=False),)
        >>> read_calls('look(at="a")')
        (WrittenCall(name='look', arguments={'at': 'a'}, marked=False, code=True),)
        >>> read_calls('Call {"name": "look", "arguments": {}}.')
        ()
    """
    if len(text) > _LONGEST:
        return ()
    body = _ENDS.sub("", text).strip()
    fenced = FENCE.fullmatch(body)
    if fenced is not None and "```" not in fenced[1]:
        body = fenced[1].strip()
    try:
        return next(filter(None, (read(body) for read in _FORMS)), ())
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return ()


def is_call(text: str) -> bool:
    """Return whether the whole of an answer is a call, or the beginning of one that broke off.

    >>> is_call('{"name": "invoke_action", "arguments": {}}'), is_call("<tool_call>{"), is_call("Use `invoke_action`.")
    (True, True, False)
    """
    if _MARKS.match(text):
        return True
    calls = read_calls(text)
    return bool(calls) and all(
        not call.code or SEPARATOR in call.name or call.name in WRAPPERS for call in calls
    )


def may_become_calls(text: str) -> bool:
    """Return whether what began so may still be calls as a whole; for text that streams in.

    >>> may_become_calls('{"na'), may_become_calls("list_act"), may_become_calls("The answer")
    (True, True, False)
    """
    begun = text.lstrip()
    if not begun:
        return True
    marks = ("{", "[", "```", "<tool_call>", "<|python_tag|>", "<function=", "Thought:", "Action:")
    if any(begun.startswith(mark) or mark.startswith(begun) for mark in marks):
        return True
    name = _ALONE.match(begun)
    return name is not None and (name.end() == len(begun) or begun[name.end()] == "(")


class CallFilter:
    """A listener for streamed text that hears nothing of what may be calls as a whole.

    Args:
        on_text: gets the rest.
    """

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._held: str | None = ""

    def __call__(self, piece: str) -> None:
        if self._held is None:
            self._on_text(piece)
            return
        self._held += piece
        if len(self._held) > _LONGEST or not may_become_calls(self._held):
            held, self._held = self._held, None
            self._on_text(held)


def _tagged(text: str) -> tuple[WrittenCall, ...]:
    if not text.startswith(OPEN):
        return ()
    calls: list[WrittenCall] = []
    rest = text
    while rest:
        if not rest.startswith(OPEN):
            return ()
        value, rest = _value(rest[len(OPEN) :])
        found = _of_value(value, marked=True)
        if not found:
            return ()
        calls += found
        rest = rest.removeprefix(CLOSE).lstrip()
    return tuple(calls)


def _mistral(text: str) -> tuple[WrittenCall, ...]:
    mark = "[TOOL_CALLS]"
    if not text.startswith(mark):
        return ()
    body = text.removeprefix(mark).strip()
    if body.startswith(("[", "{")):
        value, rest = _value(body)
        return () if rest else _of_value(value, marked=True)
    calls: list[WrittenCall] = []
    while body:
        named = _MISTRAL.match(body)
        if named is None:
            return ()
        value, rest = _value(body[named.end() :])
        calls.append(WrittenCall(named[1], value, True))
        body = rest.removeprefix(mark).lstrip()
    return tuple(calls)


def _llama(text: str) -> tuple[WrittenCall, ...]:
    mark = "<|python_tag|>"
    if text.startswith(mark):
        body = text.removeprefix(mark).strip()
        calls: list[WrittenCall] = []
        while body.startswith("{"):
            value, rest = _value(body)
            found = _of_value(value, marked=True)
            if not found:
                return ()
            calls += found
            body = rest.removeprefix(";").lstrip()
        if body and calls:
            return ()
        return tuple(calls) or _marked(_python(body))
    if not text.startswith("<function="):
        return ()
    calls = []
    while text:
        named = _FUNCTION.match(text)
        if named is None:
            return ()
        value, rest = _value(named[2].strip() or "{}")
        if rest or not isinstance(value, dict):
            return ()
        calls.append(WrittenCall(named[1], value, True))
        text = text[named.end() :]
    return tuple(calls)


def _react(text: str) -> tuple[WrittenCall, ...]:
    found = _REACT.fullmatch(text)
    if found is None:
        return ()
    lines = [each for each in _REACT_LINE.findall(text) if each != "Observation"]
    if lines != ["Action", "Action Input"]:
        return ()  # more than one, or one within what was thought or given
    body = found[2].strip()
    fenced = FENCE.fullmatch(body)
    value, rest = _value((fenced[1] if fenced else body).strip() or "{}")
    if rest or not isinstance(value, dict):
        return ()
    return (WrittenCall(found[1], value, True),)


def _json(text: str) -> tuple[WrittenCall, ...]:
    if not text.startswith(("{", "[")):
        return ()
    try:
        value, rest = _value(text)
    except ValueError:
        return ()
    return () if rest else _of_value(value)


def _python(text: str) -> tuple[WrittenCall, ...]:
    """Return the calls of `name(arg=…)`, or of a list of them; all of their values are literals."""
    if len(text) > _LONGEST_CODE or not text.endswith((")", "]")):
        return ()
    tree = ast.parse(text, mode="eval").body
    written = tree.elts if isinstance(tree, ast.List) else [tree]
    return tuple(_python_call(each) for each in written)


def _python_call(node: ast.expr) -> WrittenCall:
    """Return one call of Python. Raises ValueError where it is none, or not of literals alone."""
    if not isinstance(node, ast.Call):
        raise ValueError("no call")
    arguments: dict[str, Any] = {}
    if node.args:
        (only,) = node.args
        given = ast.literal_eval(only)
        if node.keywords or not isinstance(given, dict):
            raise ValueError("arguments without names")
        arguments = given
    for keyword in node.keywords:
        if keyword.arg is None:
            arguments |= ast.literal_eval(keyword.value)
        else:
            arguments[keyword.arg] = ast.literal_eval(keyword.value)
    return WrittenCall(_dotted(node.func), _plain(arguments), code=True)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Name):
        return node.id
    raise ValueError("no name")


_FORMS = (_tagged, _mistral, _llama, _react, _json, _python)


def _marked(calls: Sequence[WrittenCall]) -> tuple[WrittenCall, ...]:
    return tuple([WrittenCall(call.name, call.arguments, True) for call in calls])


def _value(text: str) -> tuple[Any, str]:
    """Return the JSON value that a text begins with, or the Python literal that it is, and what stands behind.

    Raises:
        ValueError: it is neither.
    """
    text = text.lstrip()
    try:
        value, end = _DECODER.raw_decode(text)
    except ValueError:
        if len(text) > _LONGEST_CODE:
            raise
        return _plain(ast.literal_eval(text)), ""
    return value, text[end:].lstrip()


def _plain(value: object) -> Any:
    """Return a literal as JSON data. Raises ValueError where it is none."""
    return json.loads(json.dumps(value, allow_nan=False)) if _is_plain(value) else _no_data(value)


def _is_plain(value: object) -> bool:
    match value:
        case None | bool() | int() | float() | str():
            return True
        case list() | tuple():
            return all(map(_is_plain, value))
        case dict():
            return all(isinstance(key, str) and _is_plain(each) for key, each in value.items())
    return False


def _no_data(value: object) -> Any:
    raise ValueError(f"{type(value).__name__} is no JSON data")


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def _of_value(value: object, *, marked: bool = False) -> tuple[WrittenCall, ...]:
    """Return the calls that a JSON value is; none where it, or one item of a list, is anything else."""
    if isinstance(value, dict) and value.keys() == {"tool_calls"}:
        value = value["tool_calls"]
    listed = value if isinstance(value, list) else [value]
    calls = [_of_object(each, marked) if isinstance(each, dict) else None for each in listed]
    return tuple(call for call in calls if call is not None) if calls and all(calls) else ()


def _of_object(value: Mapping[str, Any], marked: bool) -> WrittenCall | None:
    keys = value.keys() - _BESIDE
    if isinstance(value.get("action_name"), str):
        known = keys <= {"action_name", "args", "arguments", "parameters"}
        return _call_of_action(value, marked) if known else None
    if keys == {"function"} and isinstance(value["function"], dict):
        return _of_object(value["function"], marked)
    for name, others in _PAIRS.items():
        if not isinstance(value.get(name), str):
            continue
        given = [other for other in others if other in value]
        if len(keys) == 1 + len(given) and (len(given) == 1 or (not given and marked)):
            arguments = _arguments(value[given[0]] if given else None)
            return None if arguments is None else WrittenCall(value[name], arguments, marked)
    return None


def _call_of_action(value: Mapping[str, Any], marked: bool) -> WrittenCall | None:
    arguments = _arguments(next((value[key] for key in ("args", *_ARGUMENTS) if key in value), None))
    if arguments is None:
        return None
    return WrittenCall(INVOKE, {"action_name": value["action_name"], "args": arguments}, True)


def _arguments(given: object) -> dict[str, Any] | None:
    """Return arguments as an object: as they are, from their JSON text, or none; None for anything else."""
    if given is None or given == "":
        return {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return None
    return given if isinstance(given, dict) else None
