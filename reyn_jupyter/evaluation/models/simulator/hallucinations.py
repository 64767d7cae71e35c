"""Arguments and names that the simulator makes up, and the mistakes that the table asks for.

Invariants: every value stands in the text or in an error's hint, but for a required one that neither holds; a mistake
always changes the arguments; a made-up name follows from the text and the categories that the prompt names alone, since
no catalog is known here, so one that is right is right by luck.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from reyn_jupyter.evaluation.models.simulator.dialogue_state import SeenAction
from reyn_jupyter.evaluation.models.simulator.relevance import asks_for_a_change, category, word_stems
from reyn_jupyter.evaluation.models.simulator.stopwords import NEW, OLD, PATHS, VERBS
from reyn_jupyter.models.offline.lexicon import parts
from reyn_jupyter.models.offline.prompt_tokens import Prompt, Token, read_prompt
from reyn_jupyter.models.offline.skills.function_calls import fill

_EMPTY: Mapping[str, Any] = {"boolean": True, "array": [], "object": {}, "null": None}
_MEANT = re.compile(r"Did you mean ([^\s?]+)\?")


@lru_cache(8192)
def _fill_by_schema(text: str, item: SeenAction) -> dict[str, Any]:
    """Return the arguments that a text holds for an action; where it does not hold a required one, some word of it."""
    prompt = read_prompt(text)
    given, used = _by_role(item, prompt)
    schema = dict(item.known.schema or {})
    left = {name: value for name, value in item.known.parameters.items() if name not in given}
    required = [name for name in item.known.required if name in left]
    if left:
        rest = replace(item.known, schema={**schema, "properties": left, "required": required})
        given |= fill(rest, prompt, used).arguments
    for name in required:
        if name not in given:
            given[name] = _some(left[name], prompt, given.values())
    return given


def fill_arguments(text: str, item: SeenAction) -> dict[str, Any]:
    """Return the arguments that a text holds for an action; without a schema, what a model would guess at."""
    return dict(_fill_by_schema(text, item)) if item.known.schema is not None else guess_arguments(text)


def guess_arguments(text: str) -> dict[str, Any]:
    """Return what a model gives an action whose schema it has not seen: paths and quoted pieces under common names."""
    prompt = read_prompt(text)
    values: dict[str, Any] = {}
    for name, found in (("path", prompt.paths), ("content", prompt.quoted)):
        if found:
            values[name] = found[0]
    return values or {"query": prompt.text}


def mistaken(arguments: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the arguments with a mistake: one left out ("omit"), one called otherwise ("rename"), or a wrong value
    ("value").

    >>> mistaken({"path": "a.txt"}, "rename")
    {'path_name': 'a.txt'}
    """
    if not arguments:
        return {"input": True}
    name, *others = arguments
    rest = {other: arguments[other] for other in others}
    if kind == "omit":
        return rest
    if kind == "rename":
        return {f"{name}_name": arguments[name], **rest}
    return {name: _wrong(arguments[name]), **rest}


def meant(arguments: dict[str, Any], hint: str) -> dict[str, Any]:
    """Return the arguments with what a hint says was meant in the place of a path."""
    found = _MEANT.search(hint)
    name = next((name for name in arguments if set(parts(name)) & PATHS), None)
    return {**arguments, name: found[1]} if found and name is not None else dict(arguments)


def _some(schema: Mapping[str, Any], prompt: Prompt, taken: Collection[object]) -> object:
    """Something of the type that a schema asks for: a model rather makes a value up than leaves it out."""
    options = schema.get("enum")
    if isinstance(options, list) and options:
        return options[0]
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _EMPTY:
        return _EMPTY[kind]
    numbers = [token.number for token in prompt.tokens if token.kind == "number"]
    if kind in ("integer", "number"):
        return int(numbers[0] or 0) if numbers else 1
    free = (word for word in prompt.words if word not in taken)
    return max(free, key=len, default=prompt.text)


def _wrong(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "_"
    return {"value": value}


def _by_role(item: SeenAction, prompt: Prompt) -> tuple[dict[str, Any], set[int]]:
    """Values for parameters whose names say what they hold: paths, the text before a change, the text after it."""
    given: dict[str, Any] = {}
    used: set[int] = set()
    strings = [name for name, schema in item.known.parameters.items() if schema.get("type") == "string"]
    for name in strings:
        if set(parts(name)) & PATHS:
            _put(given, used, name, prompt.tokens, "path")
    changes = [name for name in strings if name not in given and set(parts(name)) & (OLD | NEW)]
    if len(changes) < 2:
        return given, used
    for name in sorted(changes, key=lambda each: not set(parts(each)) & OLD):
        _put(given, used, name, prompt.tokens, "quoted")
    return given, used


def _put(given: dict[str, Any], used: set[int], name: str, tokens: tuple[Token, ...], kind: str) -> None:
    for place, token in enumerate(tokens):
        if token.kind == kind and place not in used:
            given[name] = token.text
            used.add(place)
            return


@lru_cache(4096)
def concept(text: str, categories: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """Return the category and the verb that a text calls to mind.

    >>> concept("Read notes.md", (("file", "Read and write files."),))
    ('file', 'read')
    """
    kind = category(text, categories) or "tool"
    words = word_stems(text)
    if asks_for_a_change(text):
        return kind, "edit"
    for verb, called in VERBS:
        if words & called:
            return kind, verb
    return kind, min(words, default="run")
