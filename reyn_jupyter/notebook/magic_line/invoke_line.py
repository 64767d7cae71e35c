"""The `%reyn invoke` line: the options and words that the verb reads, and the line that would make a given call.

Invariant: the line of a call, read as the verb reads it, gives the very arguments that it was made from; it is one line
of printable characters, so it can be copied, pasted and seen for what it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from reyn_jupyter.catalog.action import Action
from reyn_jupyter.catalog.arguments.preparation import prepare
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional, Rest, parse
from reyn_jupyter.support.reyn_line import quote_word

_KEY = re.compile(r"[^\W\d][\w.-]*")


class InvokeOptions(Options):
    name: Annotated[str, Positional()]
    arguments: Annotated[tuple[str, ...], Rest("key=value|{…}")] = ()
    json_: Annotated[
        str | None,
        Option(takes="'{…}'|@var|@file.json"),
        Field(alias="json", description="all arguments at once"),
    ] = None


def parse_arguments(words: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments that words are: those in JSON objects, and those of ``key=value``.

    The values of ``key=value`` are texts, and references if they begin with ``@``.

    Raises:
        ReynError: A word is neither, or a key is given twice.
    """
    objects: dict[str, Any] = {}
    pairs: dict[str, Any] = {}
    for word in words:
        given = _json_object(word) if word.startswith("{") else dict([_pair(word)])
        if twice := given.keys() & (objects.keys() | pairs.keys()):
            raise ReynError(f"{min(twice)} is given twice.", "Leave one of the two out.")
        (objects if word.startswith("{") else pairs).update(given)
    return objects, pairs


def _json_object(word: str) -> dict[str, Any]:
    try:
        return dict(json.loads(word))
    except (ValueError, RecursionError) as error:
        raise ReynError(
            f"The arguments from {word[:40]!r} on are not valid JSON: {error}.",
            'For example: %reyn invoke file__read {"path": "my notes.txt"}',
        ) from error


def _pair(word: str) -> tuple[str, Any]:
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise ReynError(f"{word!r} is no key=value.", "For example: %reyn invoke file__read path=README.md")
    if value.startswith("@@"):
        return key, value[1:]
    if value.startswith("@") and len(value) > 1:
        return key, reference(value[1:])
    return key, value


def convert_words(action: Action, words: dict[str, Any]) -> dict[str, Any]:
    """Return texts as the types that an action takes."""
    read = prepare(action.input_schema, dict(words)).args
    return {key: read.get(key, value) for key, value in words.items()}


def reference(name: str) -> dict[str, str]:
    """Return ``@orders`` as a reference to a variable, ``@<blob id>`` as one to a blob."""
    compact = name.replace("-", "")
    if len(compact) == 32 and all(character in "0123456789abcdef" for character in compact.lower()):
        return {"$blob": name}
    return {"$var": name}


def invoke_command(action: Action, arguments: Mapping[str, Any], *, forgive: bool = True) -> str:
    """Return the `%reyn invoke` line that calls an action with these arguments.

    What a ``key=value`` word says exactly stands as one, everything else in ``--json``.

    Args:
        forgive: the setting `router.forgive`: whether words are read as the types that the action takes.
    """
    simple = {name: value for name, value in arguments.items() if _says(action, name, value, forgive)}
    others = {name: value for name, value in arguments.items() if name not in simple}
    line = _line(action, simple, others)
    if _read(action, line, forgive) == _exact(_prepared(action, arguments, forgive)):
        return line
    return _line(action, {}, arguments)


def _line(action: Action, simple: Mapping[str, Any], others: Mapping[str, Any]) -> str:
    words = [f"{name}={quote_word(_spelled(value))}" for name, value in simple.items()]
    if others:
        words += ["--json", quote_word(_json(others))]
    return " ".join(["%reyn invoke", quote_word(str(action.name)), *words])


def _says(action: Action, name: str, value: object, forgive: bool) -> bool:
    """Return whether a word gives the value back as it is."""
    spelled = _spelled(value)
    if _KEY.fullmatch(name) is None or not spelled.isprintable() or not name.isprintable():
        return False
    line = _line(action, {name: value}, {})
    return _read(action, line, forgive) == _exact(_prepared(action, {name: value}, forgive))


def _spelled(value: object) -> str:
    """Return a value as the word after ``key=``."""
    if isinstance(value, str):
        return f"@{value}" if value.startswith("@") else value
    if isinstance(value, Mapping) and len(value) == 1:
        kind, named = next(iter(value.items()))
        if kind in ("$var", "$blob") and isinstance(named, str) and named:
            return f"@{named}"
    return _json(value)


def _json(value: object) -> str:
    """Return JSON in which every character can be seen."""
    text = json.dumps(value, ensure_ascii=False)
    return (
        text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    )


def _read(action: Action, line: str, forgive: bool) -> str | None:
    """Return the arguments that the verb makes of a line, as `_exact` compares them; None where it cannot read it."""
    try:
        options = parse(InvokeOptions, line.removeprefix("%reyn invoke"))
        _, words = parse_arguments(options.arguments)
    except ReynError:
        return None
    given = json.loads(options.json_) if options.json_ is not None else {}
    return _exact(_prepared(action, given | (words if forgive else convert_words(action, words)), forgive))


def _prepared(action: Action, arguments: Mapping[str, Any], forgive: bool) -> dict[str, Any]:
    return prepare(action.input_schema, dict(arguments), forgive=forgive).args


def _exact(arguments: Mapping[str, Any]) -> str:
    """Return arguments as a text in which 1, 1.0, true and "1" differ."""
    return json.dumps(arguments, sort_keys=True)
