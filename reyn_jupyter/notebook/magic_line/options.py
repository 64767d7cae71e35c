"""Parse the words after `%reyn`: one grammar for every verb, checked by pydantic.

A verb's options are a pydantic model. Fields marked `Positional` are taken in order, a `Rest` field takes what is
left, everything else is ``--name value`` (``--flag`` for booleans), with the short forms that `Option` names.

Invariants: white space parts words, quotes of either kind hold them together. A backslash is an ordinary character, but
for one place: between double quotes it makes a quote or a backslash after it an ordinary character. An option
that takes one value is given once. JSON (an object or an array, also after ``key=``) is one word as it stands.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.support.reyn_line import quote as quote  # the inverse of `split`
from reyn_jupyter.support.text import did_you_mean, nearest_names


@dataclass(frozen=True)
class Positional:
    """A field taken from the words in order. `shown` is its name in the usage line."""

    shown: str = ""


@dataclass(frozen=True)
class Rest:
    """A field that takes all remaining words, as a tuple."""

    shown: str = ""


@dataclass(frozen=True)
class Option:
    """A named field. `short` is its one-letter form, `takes` what its value is called in the usage line: with a comma
    where it may be several, then the option may be repeated too."""

    short: str = ""
    takes: str = ""


class Options(BaseModel):
    """The options that every verb has: ``-o NAME`` keeps the result, ``--debug`` shows tracebacks, ``--help``."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True)

    output: str | None = None
    debug: bool = False
    help: bool = False


SHORT = {"-o": "output", "-h": "help"}
_SPACE = " \t\r\n"
_WORD = re.compile(rf"""(?:[^{_SPACE}"']|"(?:[^"\\]|\\.)*"|'[^']*')+""", re.DOTALL)
_QUOTED = re.compile(r""""((?:[^"\\]|\\.)*)"|'([^']*)'""", re.DOTALL)
_JSON_BEGIN = re.compile(rf"""(?:[^{_SPACE}"'=]+=)?(?=[\[{{])""")
_JSON = json.JSONDecoder()
_ESCAPED = re.compile(r"""\\(["\\])""")
_WRONG = {
    "int_parsing": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "float_parsing": "it must be a number",
    "finite_number": "it must be a finite number",
    "bool_parsing": "it takes no value",
    "greater_than": "it must be more than {gt}",
    "greater_than_equal": "it must be at least {ge}",
    "less_than": "it must be less than {lt}",
    "less_than_equal": "it must be at most {le}",
    "literal_error": "",
}
OptionsType = TypeVar("OptionsType", bound=Options)


@dataclass
class _Words:
    model: type[Options]
    values: dict[str, Any] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)


def split(text: str) -> list[str]:
    r"""Return the words of a line; nothing in them is expanded.

    >>> split('file__read {"path": "a b.txt"}')
    ['file__read', '{"path": "a b.txt"}']
    >>> split(r'''path=C:\new content="say \"hi\"" 'a "b"' ''')
    ['path=C:\\new', 'content=say "hi"', 'a "b"']
    """
    words = []
    rest = text.strip(_SPACE)
    while rest:
        word, rest = _first_word(rest)
        words.append(word)
    return words


def parse(model: type[OptionsType], text: str) -> OptionsType:
    """Read a whole line. Raises ReynError with the nearest option for a wrong one."""
    found = _Words(model)
    words = split(text)
    index = 0
    while index < len(words):
        index = _take(found, words, index)
    return _build(model, found.values, found.loose)


def parse_leading(model: type[OptionsType], text: str) -> tuple[OptionsType, str]:
    """Read the options at the start of a line, and give back the rest of it literally.

    One pair of quotes around the whole rest is taken off; ``--`` ends the options.
    """
    found = _Words(model)
    rest = text.lstrip(_SPACE)
    while re.match(r"-[A-Za-z-]", rest):
        word, rest = _first_word(rest)
        if word == "--":
            break
        name, attached = _name_of(word)
        key = _key(model, name)
        if attached is None and _is_flag(model.model_fields[key]):
            _put(found, name, key, True)
            continue
        if attached is None:
            following, after = _first_word(rest) if rest else ("", "")
            _need_value(model, word, key, following)
            attached, rest = following, after
        _put(found, name, key, attached)
    return _build(model, found.values, []), _unquoted(rest.strip())


def fields_by_word(model: type[Options]) -> dict[str, str]:
    """Return every option word of a model with its field: ``{"--limit": "limit", "-o": "output"}``."""
    words = {}
    for name, info in model.model_fields.items():
        if _marker(info, Positional) or _marker(info, Rest):
            continue
        words[f"--{_spelled(name, info)}"] = name
        option = _marker(info, Option)
        if option is not None and option.short:
            words[option.short] = name
    return {**words, **SHORT}


def usage(verb: str, model: type[Options]) -> str:
    """Return the usage line: ``%reyn list [CATEGORY …] [--filter TEXT]``."""
    parts = [f"%reyn {verb}"]
    for name, info in model.model_fields.items():
        if name in Options.model_fields:
            continue
        positional, rest, option = _marker(info, Positional), _marker(info, Rest), _marker(info, Option)
        if positional is not None:
            shown = positional.shown or name.upper()
            parts.append(shown if info.is_required() else f"[{shown}]")
        elif rest is not None:
            parts.append(f"[{rest.shown or name.upper()} …]")
        else:
            word = (option.short if option and option.short else "") or f"--{_spelled(name, info)}"
            takes = option.takes if option and option.takes else "|".join(choices(info)) or name.upper()
            parts.append(f"[{word}]" if _is_flag(info) else f"[{word} {takes}]")
    return " ".join(parts)


def choices(info: FieldInfo) -> tuple[str, ...]:
    """Return the words that a field accepts, where it is a choice."""
    for candidate in (info.annotation, *get_args(info.annotation)):
        if get_origin(candidate) is not None and str(get_origin(candidate)).endswith("Literal"):
            return tuple(str(value) for value in get_args(candidate))
    return ()


def _take(found: _Words, words: list[str], index: int) -> int:
    word = words[index]
    if word == "--":
        found.loose += words[index + 1 :]
        return len(words)
    if not word.startswith("-") or word == "-" or word[1:2].isdigit():
        found.loose.append(word)
        return index + 1
    name, attached = _name_of(word)
    key = _key(found.model, name)
    if _is_flag(found.model.model_fields[key]) and attached is None:
        _put(found, name, key, True)
        return index + 1
    if attached is not None:
        _put(found, name, key, attached)
        return index + 1
    following = words[index + 1] if index + 1 < len(words) else ""
    _need_value(found.model, word, key, following)
    _put(found, name, key, following)
    return index + 2


def _put(found: _Words, word: str, key: str, value: str | bool) -> None:
    """Keep the value of an option. One that takes several has them together; any other is given once."""
    before = found.values.get(key)
    option = _marker(found.model.model_fields[key], Option)
    if before is not None and option is not None and "," in option.takes:
        value = f"{before},{value}"
    elif before is not None:
        raise ReynError(f"{word} is given twice.", "Leave one of the two out.")
    found.values[key] = value


def _need_value(model: type[Options], word: str, key: str, following: str) -> None:
    if not following or following.partition("=")[0] in fields_by_word(model):
        allowed = choices(model.model_fields[key])
        raise ReynError(f"{word} needs a value.", f"Choose from {', '.join(allowed)}." if allowed else "")


def _name_of(word: str) -> tuple[str, str | None]:
    name, equals, value = word.partition("=")
    return name, value if equals else None


def _key(model: type[Options], word: str) -> str:
    known = fields_by_word(model)
    if word not in known:
        hint = did_you_mean(nearest_names(word, known, 1)) or f"Options: {', '.join(sorted(known))}."
        raise ReynError(f"There is no option {word}.", hint)
    return known[word]


def _is_flag(info: FieldInfo) -> bool:
    return info.annotation is bool


def _marker(info: FieldInfo, kind: type[Any]) -> Any:
    return next((item for item in info.metadata if isinstance(item, kind)), None)


def _build(model: type[OptionsType], values: dict[str, Any], loose: list[str]) -> OptionsType:
    values = dict(values)
    left = list(loose)
    for name, info in model.model_fields.items():
        if _marker(info, Positional) and left:
            values[name] = left.pop(0)
        elif _marker(info, Rest):
            values[name] = tuple(left)
            left = []
    if left and not values.get("help"):
        raise ReynError(f"Nothing takes {left[0]!r} here.", "Use --help to see what the verb takes.")
    if values.get("help"):
        return model.model_construct(**{**_defaults(model), **values})
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ReynError(*_plain(model, error)) from error


def _defaults(model: type[Options]) -> dict[str, Any]:
    return {name: info.get_default(call_default_factory=True) for name, info in model.model_fields.items()}


def _plain(model: type[Options], error: ValidationError) -> tuple[str, str]:
    """Return the first thing that is wrong, and what would be right."""
    first = error.errors()[0]
    place = str(first["loc"][0]) if first["loc"] else ""
    name, info = next(
        (pair for pair in model.model_fields.items() if place in (pair[0], pair[1].alias)), (place, None)
    )
    if info is None:
        return f"{place}: {first['msg']}.", ""
    marker = _marker(info, Positional) or _marker(info, Rest)
    shown = (marker.shown or name.upper()) if marker else f"--{_spelled(name, info)}"
    if first["type"] == "missing":
        return f"{shown} is missing.", "--help shows an example."
    given = str(first.get("input"))[:80]
    allowed = choices(info)
    meant = did_you_mean(nearest_names(given, allowed, 1))
    hint = meant or (f"Choose from {', '.join(allowed)}." if allowed else "")
    if marker is not None and allowed:
        return f"{given!r} is not one of {', '.join(allowed)}.", meant
    why = _WRONG.get(first["type"], first["msg"].removeprefix("Value error, "))
    why = why.format(**first.get("ctx", {}))
    return f"{shown} cannot be {given!r}{f': {why}' if why else ''}.", hint


def _spelled(name: str, info: FieldInfo) -> str:
    return (info.alias or name).replace("_", "-")


def _first_word(text: str) -> tuple[str, str]:
    """Return the first word of a text, quotes respected, and the rest as it stands."""
    text = text.lstrip(_SPACE)
    if end := _json_end(text):
        return text[:end], text[end:].lstrip(_SPACE)
    found = _WORD.match(text)
    end = found.end() if found else 0
    if text[end : end + 1] in ("'", '"'):
        raise ReynError("A quote is not closed.", "Close it, or put the other kind around it.")
    return _QUOTED.sub(_within_quotes, text[:end]), text[end:].lstrip(_SPACE)


def _json_end(text: str) -> int:
    """Return where the JSON ends that a text begins with, or 0 if its first word is not JSON alone."""
    begin = _JSON_BEGIN.match(text)
    if begin is None:
        return 0
    try:
        _, end = _JSON.raw_decode(text, begin.end())
    except (ValueError, RecursionError):
        return 0
    return end if text[end : end + 1] in ("", *_SPACE) else 0


def _within_quotes(quoted: re.Match[str]) -> str:
    double, single = quoted.groups()
    return single if double is None else _ESCAPED.sub(r"\1", double)


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"" and text[0] not in text[1:-1]:
        return text[1:-1]
    return text
