"""`%reyn invoke NAME key=value …`: run one action by hand, and make the line that would; the call is your consent.

Invariant: the line of a call, read as the verb reads it, gives the very arguments that it was made from; it is one line
of printable characters, so it can be copied, pasted and seen for what it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from reyn_jupyter.catalog.action import Action
from reyn_jupyter.catalog.arguments import prepare
from reyn_jupyter.catalog.resolve import UnknownActionError, find
from reyn_jupyter.notebook import completers
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.options import Option, Options, Positional, Rest, parse
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Result
from reyn_jupyter.sessions.session import Session

# A word that needs no quotes; IPython reads a "?" at the end of a line as help.
_BARE = re.compile(r"[\w./:,@%+=*-]+", re.ASCII)
_KEY = re.compile(r"[^\W\d][\w.-]*")


class InvokeOptions(Options):
    name: Annotated[str, Positional()]
    arguments: Annotated[tuple[str, ...], Rest("key=value")] = ()
    json_: Annotated[
        str | None,
        Option(takes="'{…}'|@var|@file.json"),
        Field(alias="json", description="all arguments at once"),
    ] = None


def run(context: Context, options: InvokeOptions) -> Result:
    given = _from_json(context, options.json_) if options.json_ is not None else {}
    if context.body is not None and context.body.strip():
        given |= _from_body(context.body)
    words = parse_pairs(options.arguments)
    return context.session.invoke_action(
        options.name, given | _convert_if_strict(context.session, options.name, words)
    )


def parse_pairs(words: tuple[str, ...]) -> dict[str, Any]:
    """Return ``key=value`` words as arguments: texts, and references where a value begins with ``@``."""
    return dict(_pair(word) for word in words)


def _pair(word: str) -> tuple[str, Any]:
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise ReynError(f"{word!r} is no key=value.", "For example: %reyn invoke file__read path=README.md")
    if value.startswith("@@"):
        return key, value[1:]
    if value.startswith("@") and len(value) > 1:
        return key, reference(value[1:])
    return key, value


def _convert_if_strict(session: Session, name: str, words: dict[str, Any]) -> dict[str, Any]:
    """Return words as the types that the action takes. With `router.forgive` on, every call is read like that anyway;
    with it off a model's strings stay strings, but a person at a keyboard has nothing else to type."""
    if session.parts.settings.router.forgive or not words:
        return words
    try:
        action = find(session.catalog, name)
    except UnknownActionError:
        return words
    return convert_words(action, words)


def convert_words(action: Action, words: dict[str, Any]) -> dict[str, Any]:
    """Return texts as the types that an action takes."""
    read = prepare(action.input_schema, dict(words)).args
    return {key: read.get(key, value) for key, value in words.items()}


def reference(name: str) -> dict[str, str]:
    """Return ``@orders`` as a reference to a variable, ``@<blob id>`` as one to a stored result."""
    compact = name.replace("-", "")
    if len(compact) == 32 and all(character in "0123456789abcdef" for character in compact.lower()):
        return {"$blob": name}
    return {"$var": name}


def _from_json(context: Context, text: str) -> dict[str, Any]:
    where = "--json"
    if text.startswith("@"):
        where, name = text, text[1:]
        namespace = context.session.parts.services.namespace()
        if name in namespace:
            return _object(namespace[name], where)
        text = _file(name)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReynError(
            f"{where} is not valid JSON: {error}.", "Put it in single quotes: --json '{\"key\": 1}'"
        ) from error
    return _object(value, where)


def _file(name: str) -> str:
    try:
        return Path(name).expanduser().read_text("utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise ReynError(f"@{name} is no UTF-8 text.") from error
        raise ReynError(
            f"@{name} is neither a variable nor a file.", "Or give the JSON itself: --json '{\"key\": 1}'"
        ) from error
    except OSError as error:
        raise ReynError(f"@{name} cannot be read: {error.strerror or error}.") from error


def _from_body(body: str) -> dict[str, Any]:
    try:
        return _object(json.loads(body), "The cell")
    except (ValueError, RecursionError):
        return _from_yaml(body)


def _from_yaml(body: str) -> dict[str, Any]:
    import yaml

    from reyn_jupyter.outputs.convert import to_json

    try:
        value = yaml.safe_load(body)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ReynError(
            f"The cell is neither JSON nor YAML: {' '.join(str(error).split())}.",
            "For example: path: README.md",
        ) from error
    return _object(to_json(value), "The cell")  # YAML has dates, JSON has not


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ReynError(f"{what} must hold an object of arguments, not a {type(value).__name__}.")
    return {str(key): item for key, item in value.items()}


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


def quote_word(text: str) -> str:
    r"""Return a text as one word of a `%reyn` line: quotes of one kind around what holds the other, no escapes.

    >>> quote_word("README.md"), quote_word("two words")
    ('README.md', "'two words'")
    >>> print(quote_word("it's"), quote_word('6" of it\'s'))
    "it's" '6" of it'"'s"
    """
    if _BARE.fullmatch(text):
        return text
    if "'" not in text:
        return f"'{text}'"
    if '"' not in text:
        return f'"{text}"'
    runs = re.findall(r"[^']+|'[^\"]*", text)
    return "".join(f'"{run}"' if run.startswith("'") else f"'{run}'" for run in runs)


def _read(action: Action, line: str, forgive: bool) -> str | None:
    """Return the arguments that the verb makes of a line, as `_exact` compares them; None where it cannot read it."""
    try:
        options = parse(InvokeOptions, line.removeprefix("%reyn invoke"))
        words = parse_pairs(options.arguments)
    except ReynError:
        return None
    given = json.loads(options.json_) if options.json_ is not None else {}
    return _exact(_prepared(action, given | (words if forgive else convert_words(action, words)), forgive))


def _prepared(action: Action, arguments: Mapping[str, Any], forgive: bool) -> dict[str, Any]:
    return prepare(action.input_schema, dict(arguments), forgive=forgive).args


def _exact(arguments: Mapping[str, Any]) -> str:
    """Return arguments as a text in which 1, 1.0, true and "1" differ."""
    return json.dumps(arguments, sort_keys=True)


VERB = Verb(
    "invoke",
    "run one action by hand",
    run,
    InvokeOptions,
    (
        "%reyn invoke file__read path=README.md",
        '%reyn invoke table__query --json \'{"sql": "SELECT 1 AS one"}\'',
        "%reyn invoke function__discount price=10 df=@orders",
    ),
    takes_body=True,
    completes=completers.arguments,
)
