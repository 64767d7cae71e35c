"""Calls that are written as text: the forms, how they are read, and what of a stream may be one.

A model that makes calls otherwise wrote one where a text is calls as a whole (`read_calls`); what stands in its prose
is never one. A model from a file has no other way than tags, and may say something beside them (`tagged_calls`).

Invariants: values are literals, and nothing of a text is run to read it; no part of what is read as a call was heard
before, however the stream was cut (`CallFilter`); reading takes a time that grows with the length, and no faster, since
a small model may write spaces for ever. Sources: NousResearch, Hermes Function Calling (`<tool_call>`); Mistral's
tokenizers (`[TOOL_CALLS]`); Meta, Llama 3.1 prompt format (`<|python_tag|>`, `<function=…>`, Python's calls); Yao et
al., ReAct (`Action:`); the chat template of Qwen3-Coder (`<parameter=…>`); openai/harmony (`to=functions.…`).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from reyn_jupyter.catalog.names import SEPARATOR, WRAPPERS

OPEN, CLOSE = "<tool_call>", "</tool_call>"
INVOKE = "invoke_action"

_LONGEST = 200_000  # characters of a text that is read
_LONGEST_CODE = 20_000  # characters of Python's calls
_MOST_TAGS = 200  # that are looked at in one text, and calls of a text that is nothing but calls
_TAG = re.compile(re.escape(OPEN) + r"\s*")
_CLOSED = re.compile(r"\s*" + re.escape(CLOSE))
_OPENED_FENCE = re.compile(r"```\w*[ \t]*(\n|$)")
_BEGINNINGS = (
    "{", "[", OPEN, "<|python_tag|>", "<function=", "Thought:", "Action:", "<|start|>assistant",
    "<|channel|>commentary to=", "commentary to=", "assistantcommentary to=",
)  # fmt: skip
_MARKS = re.compile(
    r"\s*(<tool_call>|\[TOOL_CALLS\]|<\|python_tag\|>|<function=|Action:\s*\w+|(?:<\|channel\|>)?commentary to=)"
)
_ENDS = ("<|eom_id|>", "<|eot_id|>", "<|im_end|>", "</s>")
_MOST_ENDS = 8  # of them behind each other
_FUNCTION = re.compile(r"\s*<function=([\w.-]+)>(.*?)(?:</function>\s*|$)", re.DOTALL)
_PARAMETER, _PARAMETER_END = re.compile(r"\s*<parameter=([\w.-]+)>\n?"), "</parameter>"
_HARMONY = re.compile(
    r"\s*(?:<\|start\|>)?(?:assistant)?\s*(?:<\|channel\|>)?\s*(?:(?:commentary|analysis)\s+)?to=(?:functions\.)?([\w.-]+)"
    r"\s*(?:<\|channel\|>\s*(?:commentary|analysis)\s*)?(?:<\|constrain\|>)?\s*(?:json|code)?\s*(?:<\|message\|>)?\s*(?=\{)"
)
_HARMONY_END = re.compile(r"\s*(?:<\|(?:call|end)\|>)?\s*")
_MISTRAL = re.compile(r"\s*([\w.-]+)(?:\[ARGS\])?\s*(?=\{)")
_REACT = re.compile(
    r"(?:Thought:[^\n]*\n(?:[ \t]*\n)*)?"
    r"Action:[ \t]*`?([\w.-]+)`?[ \t]*\n(?:[ \t]*\n)*"
    r"Action Input:"
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
_ALONE = re.compile(r"[^\W\d][\w.-]*")


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
    body = text.strip()
    for _ in range(_MOST_ENDS):
        body = next((body.removesuffix(end) for end in _ENDS if body.endswith(end)), body).rstrip()
    body = unfenced(body)
    try:
        return next(filter(None, (read(body) for read in _FORMS)), ())
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return ()


def unfenced(text: str) -> str:
    """Return what stands in a fence, where a text is one fence as a whole; else the text. Stripped either way.

    >>> unfenced("```json\\n{}\\n```"), unfenced("Look: {}")
    ('{}', 'Look: {}')
    """
    body = text.strip()
    fence = _OPENED_FENCE.match(body)
    if fence is None or not body.endswith("```") or len(body) < fence.end() + 3:
        return body
    inner = body[fence.end() : -3]
    return body if "```" in inner else inner.strip()


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


def tagged_calls(text: str, names: Collection[str]) -> tuple[str, tuple[WrittenCall, ...]]:
    """Return what a text says beside its calls in tags, and those calls.

    A call that was cut off, or whose name is none of the given ones, stays text.

    Example:
        >>> tagged_calls('Now. <tool_call>{"name": "look", "arguments": {}}</tool_call>', ["look"])
        ('Now.', (WrittenCall(name='look', arguments={}, marked=True, code=False),))
    """
    calls: list[WrittenCall] = []
    rest, place = [], 0
    for tag in islice(_TAG.finditer(text[:_LONGEST]), _MOST_TAGS):
        if tag.start() < place:
            continue
        try:
            value, end = _DECODER.raw_decode(text, tag.end())
        except (ValueError, RecursionError):
            continue
        found = _of_value(value, marked=True)
        if not found or any(call.name not in names for call in found):
            continue
        calls += found
        rest.append(text[place : tag.start()])
        closed = _CLOSED.match(text, end)
        place = closed.end() if closed else end
    return ("".join((*rest, text[place:])).strip() if calls else text), tuple(calls)


def may_become_calls(text: str) -> bool:
    """Return whether what began so may still be calls as a whole; for text that streams in.

    >>> may_become_calls('{"na'), may_become_calls("list_act"), may_become_calls("The answer")
    (True, True, False)
    >>> may_become_calls("```python\\nlook("), may_become_calls("```python\\n1 + 2")
    (True, False)
    """
    begun = text.lstrip()
    if begun.startswith("```"):
        fence = _OPENED_FENCE.match(begun)
        if fence is None:
            return False
        begun = begun[fence.end() :].lstrip()
    elif "```".startswith(begun):
        return True
    if any(begun.startswith(mark) or mark.startswith(begun) for mark in _BEGINNINGS):
        return True
    name = _ALONE.match(begun)
    return name is not None and (name.end() == len(begun) or begun[name.end()] == "(")


class CallFilter:
    """A listener for streamed text that hears nothing of what may be calls.

    Args:
        on_text: gets the rest.
        within: calls in tags count within prose too, so nothing is heard from the first tag on.
    """

    def __init__(self, on_text: Callable[[str], None], *, within: bool = False) -> None:
        self._on_text, self._within = on_text, within
        self._held: str | None = ""  # None: the rest is heard as it comes
        self._prose = False  # whether it is no call as a whole

    def __call__(self, piece: str) -> None:
        if self._held is None:
            self._on_text(piece)
            return
        self._held += piece
        # White space alone decides nothing, and looking at all of it again would take ever longer.
        self._prose = (
            self._prose or len(self._held) > _LONGEST or not (piece.isspace() or may_become_calls(self._held))
        )
        if not self._prose:
            return
        heard = _before_tag(self._held) if self._within else len(self._held)
        said, self._held = self._held[:heard], (self._held[heard:] if self._within else None)
        if said:
            self._on_text(said)


def _before_tag(text: str) -> int:
    """Return how much of a text stands before a tag, or before what may become one."""
    place = text.find(OPEN)
    if place >= 0:
        return place
    return len(text) - next((n for n in range(len(OPEN) - 1, 0, -1) if text.endswith(OPEN[:n])), 0)


def _tagged(text: str) -> tuple[WrittenCall, ...]:
    if not text.startswith(OPEN):
        return ()
    calls: list[WrittenCall] = []
    rest = text
    while rest:
        if not rest.startswith(OPEN) or len(calls) >= _MOST_TAGS:
            return ()
        rest = rest[len(OPEN) :].lstrip()
        if rest.startswith("<function="):
            call, rest = _function(rest)
            found: tuple[WrittenCall, ...] = (call,)
        else:
            value, rest = _value(rest)
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
        if named is None or len(calls) >= _MOST_TAGS:
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
            if not found or len(calls) >= _MOST_TAGS:
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
        if len(calls) >= _MOST_TAGS:
            return ()
        call, text = _function(text)
        text = text.removeprefix(CLOSE).lstrip()  # Qwen3-Coder leaves the tag before it out at times
        calls.append(call)
    return tuple(calls)


def _function(text: str) -> tuple[WrittenCall, str]:
    """Return the call in tags of Llama or Qwen3-Coder that a text begins with, and what stands behind."""
    named = _FUNCTION.match(text)
    if named is None:
        raise ValueError("no call")
    return WrittenCall(named[1], _of_parameters(named[2]), True), text[named.end() :]


def _of_parameters(body: str) -> dict[str, Any]:
    """Return arguments as JSON, or each in a tag of its own: as text, unless it is a JSON object or list."""
    if "<parameter=" not in body:
        value, rest = _value(body.strip() or "{}")
        if rest or not isinstance(value, dict):
            raise ValueError("no arguments")
        return value
    arguments: dict[str, Any] = {}
    place = 0
    while (opened := _PARAMETER.match(body, place)) is not None:
        end = body.index(_PARAMETER_END, opened.end())
        given = body[opened.end() : end].removesuffix("\n")
        arguments[opened[1]] = given
        if given[:1] in ("{", "["):
            with suppress(ValueError):
                arguments[opened[1]] = _DECODER.decode(given)
        place = end + len(_PARAMETER_END)
    if body[place:].strip():
        raise ValueError("text beside the arguments")
    return arguments


def _harmony(text: str) -> tuple[WrittenCall, ...]:
    """Return calls in the form of gpt-oss, with or without its special tokens."""
    calls: list[WrittenCall] = []
    while text:
        named = _HARMONY.match(text)
        if named is None or len(calls) >= _MOST_TAGS:
            return ()
        value, rest = _value(text[named.end() :])
        calls.append(WrittenCall(named[1], value, True))
        text = _HARMONY_END.sub("", rest, count=1)
    return tuple(calls)


def _react(text: str) -> tuple[WrittenCall, ...]:
    found = _REACT.match(text)
    if found is None:
        return ()
    lines = [each for each in _REACT_LINE.findall(text) if each != "Observation"]
    if lines != ["Action", "Action Input"]:
        return ()  # more than one, or one within what was thought or given
    body = text[found.end() :].strip().removesuffix("Observation:")
    value, rest = _value(unfenced(body) or "{}")
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
    if len(text) > _LONGEST_CODE or not text.endswith((")", "]")) or not may_become_calls(text):
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


_FORMS = (_tagged, _mistral, _llama, _harmony, _react, _json, _python)


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
            arguments = arguments_of(value[given[0]] if given else None)
            return None if arguments is None else WrittenCall(value[name], arguments, marked)
    return None


def _call_of_action(value: Mapping[str, Any], marked: bool) -> WrittenCall | None:
    arguments = arguments_of(next((value[key] for key in ("args", *_ARGUMENTS) if key in value), None))
    if arguments is None:
        return None
    return WrittenCall(INVOKE, {"action_name": value["action_name"], "args": arguments}, True)


def arguments_of(given: object) -> dict[str, Any] | None:
    """Return arguments as an object: as they are, from their JSON text, or none; None for anything else.

    >>> arguments_of('{"path": "a"}'), arguments_of(None), arguments_of("a")
    ({'path': 'a'}, {}, None)
    """
    if given is None or given == "":
        return {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return None
    return given if isinstance(given, dict) else None
