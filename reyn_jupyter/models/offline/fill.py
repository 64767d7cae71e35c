"""Arguments for an action from the words of a prompt, by the types and names in its schema.

Invariant: every value comes from the prompt. A required parameter that the prompt does not give is reported as
missing, never made up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.models.offline.prompt import Prompt, Token
from reyn_jupyter.models.offline.transcript import Known
from reyn_jupyter.models.offline.words import alike, parts

NEAR = 5  # tokens between a parameter's name and its value
_LINKS = {
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
}


_BEFORE_NAME = ("with", "on", "for", "of", "to", "(")


@dataclass
class Filled:
    """The arguments found, and the required parameters that the prompt does not give."""

    arguments: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def fill(action: Known, prompt: Prompt, skip: set[int] | None = None) -> Filled:
    """Arguments for an action.

    Args:
        action: with its schema.
        prompt: where values come from.
        skip: places of tokens that are no values (the action's own name).
    """
    return _Filler(action, prompt, set(skip or ())).filled()


class _Filler:
    def __init__(self, action: Known, prompt: Prompt, used: set[int]) -> None:
        self.action = action
        self.tokens = prompt.tokens
        self.prompt = prompt
        self.used = used

    def filled(self) -> Filled:
        result = Filled()
        names = list(self.action.parameters)
        for name in names:  # named values first, so that a leftover is not taken for one of them
            value = self._named(name)
            if value is not None:
                result.arguments[name] = value
        for name in names:
            if name in result.arguments:
                continue
            value = self._enumerated(name)
            if value is None and name in self.action.required:
                value = self._leftover(name)
            if value is not None:
                result.arguments[name] = value
        if not self.action.required:
            self._positional(result, names)
        result.missing = [name for name in self.action.required if name not in result.arguments]
        return result

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
            if token.kind == "symbol" and token.text == "[" and self._type(name) == "array":
                return self._array(step)
            if token.lower in _LINKS and not (token.kind == "word" and step == len(self.tokens) - 1):
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

    def _enumerated(self, name: str) -> Any:
        enum = self.action.parameters[name].get("enum")
        for option in enum if isinstance(enum, list) else ():
            wanted = str(option).lower()
            for index, token in enumerate(self.tokens):
                if index not in self.used and token.lower == wanted:
                    self.used.add(index)
                    return option
        return None

    def _leftover(self, name: str) -> Any:
        """The first unused value of the right type."""
        kind = self._type(name)
        for step, token in enumerate(self.tokens):
            if step in self.used:
                continue
            if kind in ("number", "integer") and token.kind == "number":
                return self._value(step, name, loose=False)
            if kind == "array" and token.text == "[":
                return self._array(step)
            if (
                kind == "reference"
                and token.kind == "word"
                and step
                and self.tokens[step - 1].lower in _BEFORE_NAME
            ):
                return self._value(step, name, loose=False)
            if kind == "string" and token.kind in ("quoted", "path", "date"):
                return self._value(step, name, loose=False)
        return self._phrase(name) if kind == "string" else None

    def _phrase(self, name: str) -> str | None:
        """For a string: a run of capitalised words, or all that follows the action's name when nothing else does."""
        run: list[int] = []
        for step, token in enumerate(self.tokens):
            capital = token.kind == "word" and token.text[:1].isupper() and step > 0 and step not in self.used
            if capital:
                run.append(step)
            elif run:
                break
        if run:
            self.used.update(run)
            return self.prompt.text[self.tokens[run[0]].start : self.tokens[run[-1]].end]
        strings = [key for key in self.action.required if self._type(key) == "string"]
        rest = list(range(max(self.used, default=-1) + 1, len(self.tokens)))
        rest = (
            rest[1:] if rest and self.tokens[rest[0]].lower in ("with", "on", "for", "of", ":", "(") else rest
        )
        if strings == [name] and rest and 0 <= min(self.used, default=-1) <= 2 and not self._question():
            self.used.update(rest)
            return self.prompt.text[self.tokens[rest[0]].start : self.tokens[rest[-1]].end].rstrip("?)")
        return None

    def _question(self) -> bool:
        return self.tokens[0].lower in (
            "what",
            "what's",
            "how",
            "why",
            "who",
            "when",
            "where",
            "does",
            "is",
            "can",
        )

    def _positional(self, result: Filled, names: list[str]) -> None:
        if not result.arguments and names and any(token.kind == "number" for token in self.tokens):
            value = self._leftover(names[0])
            if value is not None:
                result.arguments[names[0]] = value

    # -- what a value is --------------------------------------------------------------------------------------------

    def _type(self, name: str) -> str:
        schema = self.action.parameters[name]
        kind = schema.get("type")
        if schema.get("x-reference") is True:
            return "reference"
        options = schema.get("anyOf")
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
        elif kind == "reference" and token.kind == "word":
            value = {"$var": token.text}
        if value is not None:
            self.used.add(step)
        return value

    def _array(self, step: int) -> list[Any] | None:
        match = re.match(r"\[([^\[\]]{0,2000})\]", self.prompt.text[self.tokens[step].start :])
        if match is None:
            return None
        end = self.tokens[step].start + match.end()
        inside = [i for i in range(step, len(self.tokens)) if self.tokens[i].start < end]
        self.used.update(inside)
        values = [
            self.tokens[i]
            for i in inside
            if self.tokens[i].kind in ("number", "quoted", "word", "date", "path")
        ]
        return [token.number if token.kind == "number" else token.text for token in values]
