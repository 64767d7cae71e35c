"""`%reyn invoke NAME key=value …`: invoke one action by hand; the call is your consent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reyn_jupyter.catalog.resolve import UnknownActionError, find
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line import completers
from reyn_jupyter.notebook.magic_line.corrected_calls import corrected_lines
from reyn_jupyter.notebook.magic_line.invoke_line import InvokeOptions, convert_words, parse_arguments
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Result
from reyn_jupyter.sessions.session import Session


def run(context: Context, options: InvokeOptions) -> Result:
    given = _from_json(context, options.json_) if options.json_ is not None else {}
    if context.body is not None and context.body.strip():
        given |= _from_body(context.body)
    objects, pairs = parse_arguments(options.arguments)
    given |= objects | _convert_if_strict(context.session, options.name, pairs)
    result = context.session.invoke_action(options.name, given)
    if result.error is not None:
        if (held := context.session.parts.workflows.held_back_action(options.name)) is not None:
            raise ReynError(held.message, held.hint)
        forgive = context.session.parts.settings.router.forgive
        lines = corrected_lines(context.session.catalog, given, result, forgive=forgive)
        raise ReynError.of(result.payload, lines=lines)
    return result


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
            f"{where} is not valid JSON: {error}.", 'For example: %reyn invoke NAME {"key": 1}'
        ) from error
    return _object(value, where)


def _file(name: str) -> str:
    try:
        return Path(name).expanduser().read_text("utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise ReynError(f"@{name} is no UTF-8 text.") from error
        raise ReynError(
            f"@{name} is neither a variable nor a file.",
            'Or give the JSON itself: %reyn invoke NAME {"key": 1}',
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


VERB = Verb(
    "invoke",
    "invoke one action by hand",
    run,
    InvokeOptions,
    (
        "%reyn invoke file__read path=README.md",
        '%reyn invoke table__query {"sql": "SELECT 1 AS one"}',
        "%reyn invoke function__discount price=10 df=@orders",
    ),
    takes_body=True,
    completes=completers.arguments,
    group="change",
)
