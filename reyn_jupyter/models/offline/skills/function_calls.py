"""Calls of a function that the prompt names, or plainly describes.

Invariant: Every argument comes from the prompt, by the types and names in the action's schema. A required parameter
that the prompt does not give is reported as missing, never made up. A value that the prompt gives and that no parameter
takes is reported, never left out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.models.offline.answers import block, code, plain, table, value
from reyn_jupyter.models.offline.context import Declined, PlanningContext, name_coverage, rank_actions
from reyn_jupyter.models.offline.lexer import asks, units
from reyn_jupyter.models.offline.lexicon import alike, parts
from reyn_jupyter.models.offline.prompt_tokens import Prompt, Token
from reyn_jupyter.models.offline.skills.given_arguments import given_arguments
from reyn_jupyter.models.offline.transcript import KnownAction, ToolOutput

_CALL = re.compile(
    r"\A(?:(?:please|can you|could you|now|and)\s+)*(?:call|run|execute|invoke|use|apply)\s+(?:the\s+)?"
    r"(?:function\s+|action\s+|tool\s+)?[\"'`]?([^\W\d][\w.-]{0,100})"
)
_EXPLAIN = re.compile(
    r"\A(?:what does ([^\W\d][\w.]{0,100}) (?:do|take|return|compute|mean)\b"
    r"|how (?:do i|do you|can i|to) (?:use|call|run) ([^\W\d][\w.]{0,100})|(?:explain|help) ([^\W\d][\w.]{0,100}))",
    re.IGNORECASE,
)
# Kinds of action that act on the workspace, the catalog or the world; they have routines of their own or none.
_OTHERS = frozenset(
    [
        "file",
        "table",
        "chart",
        "variable",
        "memory",
        "source",
        "operation",
        "mcp",
        "exec",
        "web",
        "peer",
        "corpus",
    ]
)
SURE = 0.5  # of the name's words that a description must say before it is called


def callables(context: PlanningContext) -> tuple[str, ...]:
    """The categories whose entries are called with arguments of their own: functions, tools, skills."""
    return tuple(name for name in context.categories if not set(parts(name)) & _OTHERS)


def attempt_named(context: PlanningContext, prompt: Prompt) -> str | None:
    """Call the function that the prompt names; None when it names none."""
    match = _CALL.match(prompt.text)
    asked = match.group(1).rstrip(".-") if match else None
    if asked is None and (not prompt.identifiers or asks(units(prompt))):
        return None
    names = [*([asked] if asked else []), *prompt.identifiers]
    # A whole name names its category too, also one that has routines of its own.
    named = {
        parts[0] for name in names if (parts := name.partition("__"))[1] and parts[0] in context.categories
    }
    categories = (*callables(context), *sorted(named - set(callables(context))))
    listed = context.about(categories, " ".join(names)) if categories else []
    for name in names:
        for action in listed:
            if name.lower() in (action.entry.lower(), action.name.lower()):
                return call(context, action, prompt, name)
    if match is not None and asked is not None and _surely(match.group().lower(), asked):
        near = ", ".join(code(action.entry) for action in listed[:5]) or "none"
        raise Declined(f"no function on offer is called {code(asked)}. There are: {near}.")
    return None


def _surely(said: str, name: str) -> bool:
    """Return whether a prompt is surely about a function: `run the numbers` may be about anything."""
    return "_" in name or re.search(r"\b(?:call|invoke|execute|function)\b", said) is not None


def attempt_explain(context: PlanningContext, prompt: Prompt) -> str | None:
    """`what does X do?`, `how do I call X?`: the action's description and what it takes; None for other prompts."""
    match = _EXPLAIN.match(prompt.text)
    name = next((group for group in match.groups() if group), None) if match else None
    if name is None or not callables(context):
        return None
    for action in context.listing(callables(context)):
        if name.lower() in (action.entry.lower(), action.name.lower()):
            known = context.schema(action)
            taken = ", ".join(
                f"{code(key)} ({shape.get('type', 'any')}{'' if key in known.required else ', optional'})"
                for key, shape in known.parameters.items()
            )
            return f"{code(known.entry)}: {plain(known.description)}\n\nIt takes {taken or 'nothing'}."
    return None


def attempt_described(context: PlanningContext, prompt: Prompt) -> str | None:
    """Call the function that the prompt describes, when its name is said for the most part and its arguments too."""
    if not callables(context):
        return None
    found = context.about(callables(context), prompt.text)
    for _, action in rank_actions((one for one in found if one.category in callables(context)), prompt.text)[
        :3
    ]:
        known = context.schema(action)
        coverage = name_coverage(known, prompt.text)
        exact = known.entry.lower() in prompt.words
        if coverage < SURE and not exact:
            continue
        try:
            filled = fill(known, prompt, _places(prompt, known.entry))
        except Declined:
            if exact:
                raise
            continue
        if not filled.missing and (filled.arguments or exact):
            return call(context, known, prompt, known.entry)
    return None


def _places(prompt: Prompt, name: str) -> set[int]:
    return {index for index, token in enumerate(prompt.tokens) if token.lower == name.lower()}


def call(context: PlanningContext, action: KnownAction, prompt: Prompt, name: str) -> str:
    """Invoke a function with what the prompt gives; declines when something required is missing."""
    known = context.schema(action)
    filled = fill(known, prompt, _places(prompt, name))
    if filled.unplaced:
        said = ", ".join(f"“{word[:60]}”" for word in filled.unplaced[:5])
        takes = ", ".join(map(code, known.parameters)) or "no arguments"
        raise Declined(
            f"{said} is in no argument of the call. {code(known.entry)} takes {takes}; "
            "write each as NAME=VALUE, and text in quotation marks."
        )
    if filled.missing:
        needs = ", ".join(
            f"{code(key)} ({known.parameters[key].get('type', 'any')})" for key in filled.missing
        )
        raise Declined(
            f"{code(known.entry)} needs {needs}. Say it like `call {known.entry} with {filled.missing[0]}=…`."
        )
    result = context.invoke(known, filled.arguments)
    said = ", ".join(
        f"{key}={json.dumps(given, ensure_ascii=False)}" for key, given in filled.arguments.items()
    )
    if result.error is not None:
        raise Declined(f"{code(f'{known.entry}({said})')} failed: {result.error}")
    return f"{code(f'{known.entry}({said})')} gives {describe_result(_opened(context, result))}"


def _opened(context: PlanningContext, result: ToolOutput) -> ToolOutput:
    """Return what is stored behind a summary, by its kind."""
    if result.blob is None:
        return result
    if result.kind == "json_array":
        return context.opened(result, "slice:0..50")
    if result.kind == "json_object":
        return context.whole(result)
    return context.opened(result, "lines:1-100") if result.kind == "text" else ToolOutput(result.summary)


def describe_result(result: ToolOutput) -> str:
    """Return what a function gave: a short value in the sentence, records as a table, the rest in a block."""
    if result.rows:
        more = f"\n\n… {result.left}" if result.left else ""
        return f"\n\n{table(result.rows)}{more}"
    given = result.json
    if given is None or isinstance(given, (dict, list)):
        short = (
            given is None and len(result.text) <= 200 and "\n" not in result.text and "`" not in result.text
        )
        return f"{code(result.text)}." if short and result.text else f"\n\n{block(result.body)}"
    return f"**{value(given)}**." if not isinstance(given, str) else f"{code(given)}."


NEAR = 5  # tokens between a parameter's name and its value
_LINKS = frozenset(
    [
        "=",
        ":",
        "is",
        "of",
        "a",
        "an",
        "the",
        "as",
        "to",
        "with",
        "at",
        "be",
        "being",
        "(",
        "set",
        "equal",
        "about",
        "for",
    ]
)
_SILENT = re.compile(
    "and|on|using|by|in|from|please|now|then|me|it|function|arguments?|parameters?|values?|args|thanks"
)


@dataclass
class FilledArguments:
    """The arguments found in a prompt.

    Attributes:
        arguments: By the names of parameters.
        missing: The required parameters that the prompt does not give.
        unplaced: What the prompt gives and no parameter takes.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unplaced: list[str] = field(default_factory=list)


def fill(action: KnownAction, prompt: Prompt, skip: set[int] | None = None) -> FilledArguments:
    """Arguments for an action.

    Args:
        action: with its schema.
        prompt: where values come from.
        skip: places of tokens that are no values (the action's own name).
    """
    return _Filler(action, prompt, set(skip or ())).filled()


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


class _Filler:
    def __init__(self, action: KnownAction, prompt: Prompt, used: set[int]) -> None:
        self.action = action
        self.tokens = prompt.tokens
        self.prompt = prompt
        self.used = used

    def filled(self) -> FilledArguments:
        result = FilledArguments()
        names = list(self.action.parameters)
        result.arguments, spans = given_arguments(self.action, self.prompt.text, self._type)
        for index, token in enumerate(self.tokens):
            if any(start < token.end and token.start < end for start, end in spans):
                self.used.add(index)
        for name in names:
            if name in result.arguments:
                continue
            # Named values come first, so that a leftover is not taken for one of them.
            value = self._named(name)
            if value is not None:
                result.arguments[name] = value
        for name in names:
            if name in result.arguments:
                continue
            value = self._leftover(name) if name in self.action.required else None
            if value is not None:
                result.arguments[name] = value
        result.missing = [name for name in self.action.required if name not in result.arguments]
        result.unplaced = self._unplaced()
        return result

    def _unplaced(self) -> list[str]:
        """Return the values that no parameter took, and after "call NAME" the words too."""
        called = _CALL.match(self.prompt.text)
        begin = len(self.prompt.text) if called is None else called.end()
        return [
            token.text
            for index, token in enumerate(self.tokens)
            if index not in self.used
            and (
                token.kind in ("number", "quoted", "path", "date")
                or (
                    token.kind == "word"
                    and token.start >= begin
                    and token.lower not in _LINKS
                    and not _SILENT.fullmatch(token.lower)
                )
            )
        ]

    # -- where a value stands ---------------------------------------------------------------------------------------

    def _named(self, name: str) -> Any:
        """`rate=0.3`, `rate 0.3`, `rate of 0.3`, `12 days`."""
        own = parts(name)
        for index, token in enumerate(self.tokens):
            if index in self.used or token.kind != "word" or not self._names(token, name, own):
                continue
            value = self._following(index, name)
            if value is None:
                value = self._preceding(index, name)
            if value is not None:
                self.used.add(index)
                return value
        return None

    def _names(self, token: Token, name: str, own: tuple[str, ...]) -> bool:
        if token.text.lower() == name.lower():
            return True
        said = parts(token.text)
        return bool(said) and len(said[-1]) > 2 and all(any(alike(one, part) for part in own) for one in said)

    def _following(self, index: int, name: str) -> Any:
        for step in range(index + 1, min(len(self.tokens), index + 1 + NEAR)):
            token = self.tokens[step]
            if step in self.used:
                return None
            if (
                token.kind in ("word", "symbol")
                and token.lower in _LINKS
                and not (token.kind == "word" and step == len(self.tokens) - 1)
            ):
                continue
            value = self._value(step, name, loose=True)
            if value is not None or token.kind == "word":
                return value
        return None

    def _preceding(self, index: int, name: str) -> Any:
        step = index - 1
        if step >= 0 and step not in self.used and self.tokens[step].kind == "number":
            return self._value(step, name, loose=False)
        return None

    def _leftover(self, name: str) -> Any:
        """The first unused value of the right type."""
        kind = self._type(name)
        for step, token in enumerate(self.tokens):
            if step in self.used or token.kind in ("word", "symbol"):
                continue
            fits = (token.kind == "number") == (kind in ("number", "integer"))
            if kind == "reference" or (fits and kind in ("number", "integer", "string")):
                return self._value(step, name, loose=False)
        return None

    # -- what a value is --------------------------------------------------------------------------------------------

    def _type(self, name: str) -> str:
        schema = self.action.parameters[name]
        kind = schema.get("type")
        options = schema.get("anyOf")
        shapes = (
            [schema, *(each for each in options if isinstance(each, dict))]
            if isinstance(options, list)
            else [schema]
        )
        if any(
            each.get("x-reference") is True or "any" in _listed(each.get("x-reference")) for each in shapes
        ):
            return "reference"
        if kind is None and isinstance(options, list):
            kind = next(
                (o.get("type") for o in options if isinstance(o, dict) and o.get("type") != "null"), None
            )
        if isinstance(kind, list):
            kind = next((each for each in kind if each != "null"), None)
        return kind if isinstance(kind, str) else "string"

    def _value(self, step: int, name: str, *, loose: bool) -> Any:
        """The token at a place as a value of a parameter; None when it is none. `loose` takes a bare word too."""
        token = self.tokens[step]
        kind = self._type(name)
        value: Any = None
        if kind in ("number", "integer") and token.kind == "number":
            value = token.number
            if kind == "integer" and isinstance(value, float):
                value = int(value) if value.is_integer() else None
        elif kind == "boolean" and token.lower in ("true", "yes", "on", "false", "no", "off"):
            value = token.lower in ("true", "yes", "on")
        elif kind == "string" and (
            token.kind in ("quoted", "path", "date", "number") or (loose and token.kind == "word")
        ):
            value = token.text
        elif kind == "reference":
            value = {"$var": token.text} if token.kind == "word" else token.text
            value = token.number if token.kind == "number" else None if token.kind == "symbol" else value
        if value is not None:
            self.used.add(step)
        return value
