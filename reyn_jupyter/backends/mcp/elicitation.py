"""Questions that a server puts to the person while one of its tools runs.

Invariants: a question goes to the person who may answer for the call, after the rules; nobody there means no answer.
What the server says is shown as text. Only what the person typed, or chose by consent, goes back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.effects import Effect, TargetError
from reyn_jupyter.runtime.action_error import PermissionDeniedError
from reyn_jupyter.runtime.deadline import deadlines_paused
from reyn_jupyter.runtime.questions.text_prompt import somebody_there
from reyn_jupyter.runtime.services import ToolContext
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult

LONGEST_MESSAGE = 2_000  # characters
MOST_FIELDS = 20
_TRIES = 3
_YES, _NO = ("y", "yes", "true", "1"), ("n", "no", "false", "0")


class TypedValueError(ValueError):
    """What was typed is no value of a field; says what is."""


async def answer_elicitation(params: ElicitRequestParams, server: str, context: ToolContext) -> ElicitResult:
    """Put a server's question to the person, and return the answer.

    A form is answered field by field at the prompt of the cell; an address is opened by the person alone.
    """
    from mcp_types import ElicitResult

    message = shorten(visible(params.message).strip(), LONGEST_MESSAGE)
    try:
        effect, said = _asked(params, server)
        await context.ask(effect, reason=f"the server {server} asks: {message}{said}")
    except TargetError:
        return ElicitResult(action="decline")
    except PermissionDeniedError:
        return ElicitResult(action="decline")
    if params.mode == "url":
        context.report(f"open {shorten(visible(params.url), LONGEST_MESSAGE)}")
        return ElicitResult(action="accept")
    fields = params.requested_schema.get("properties", {})
    if not fields:
        return ElicitResult(action="accept", content={})
    required = params.requested_schema.get("required", [])
    if len(fields) > MOST_FIELDS:
        return ElicitResult(action="cancel")

    def ask() -> dict[str, Any] | None:
        return ask_fields(fields, required, input) if somebody_there() else None

    try:
        with deadlines_paused():
            content = await context.services.main_thread(ask)
    except (RuntimeError, EOFError):  # nobody serves the notebook's thread, or the front end has no prompt
        content = None
    return ElicitResult(action="cancel" if content is None else "accept", content=content)


def _asked(params: ElicitRequestParams, server: str) -> tuple[Effect, str]:
    """Return the effect of an answer, and what is said of it beside the message. Raises TargetError."""
    if params.mode == "url":
        return Effect.network(params.url), f" It wants this address to be opened: {visible(params.url)}"
    names = [shorten(visible(str(name)), 60) for name in params.requested_schema.get("properties", {})]
    return Effect.mcp(server, "elicitation"), f" It asks for: {', '.join(names)}." if names else ""


def ask_fields(
    fields: Mapping[str, Any], required: list[str], ask: Callable[[str], str]
) -> dict[str, Any] | None:
    """Ask for each field of a form.

    Args:
        fields: name → the schema of a text, a number, true or false, or one of several.
        ask: shows a prompt, and returns what was typed.

    Returns:
        The values; None where a field that is needed was not answered in three tries.

    Example:
        >>> ask_fields({"days": {"type": "integer"}}, ["days"], lambda prompt: "3")
        {'days': 3}
    """
    found: dict[str, Any] = {}
    for name, field in fields.items():
        for _ in range(_TRIES):
            typed = ask(_prompt(name, field, name in required)).strip()
            if not typed:
                if isinstance(field, dict) and "default" in field:
                    found[name] = field["default"]
                elif name in required:
                    continue
                break
            try:
                found[name] = _value(typed, field)
            except TypedValueError as error:
                sys.stdout.write(f"{error}\n")
            else:
                break
        if name in required and name not in found:
            return None
    return found


def _prompt(name: str, field: Any, required: bool) -> str:
    field = field if isinstance(field, dict) else {}
    said = shorten(visible(str(field.get("description") or field.get("title") or name)), 200)
    marks = [] if required else ["may stay empty"]
    if choices := _choices(field):
        marks.append("one of " + ", ".join(shorten(visible(str(each)), 60) for each in choices[:20]))
    if "default" in field:
        marks.append(f"default {shorten(visible(str(field['default'])), 60)}")
    remark = f" ({'; '.join(marks)})" if marks else ""
    return f"{shorten(visible(name), 60)}: {said}{remark}: "


def _choices(field: Mapping[str, Any]) -> list[Any]:
    choices = field.get("enum")
    if isinstance(choices, list):
        return choices
    return [each["const"] for each in field.get("oneOf") or () if isinstance(each, dict) and "const" in each]


def _value(typed: str, field: Any) -> Any:
    """Return what was typed as a value of a field. Raises TypedValueError."""
    field = field if isinstance(field, dict) else {}
    choices = _choices(field)
    if choices and typed not in choices:
        raise TypedValueError(f"It is one of {', '.join(map(str, choices))}.")
    kind = field.get("type")
    if kind == "boolean":
        if typed.lower() not in (*_YES, *_NO):
            raise TypedValueError("It is yes or no.")
        return typed.lower() in _YES
    if kind in ("integer", "number"):
        return _number(typed, field, whole=kind == "integer")
    if kind == "array":
        return [each.strip() for each in typed.split(",") if each.strip()]
    if not field.get("minLength", 0) <= len(typed) <= field.get("maxLength", len(typed)):
        raise TypedValueError(
            f"It has {field.get('minLength', 0)} to {field.get('maxLength', 'any')} characters."
        )
    return typed


def _number(typed: str, field: Mapping[str, Any], *, whole: bool) -> int | float:
    try:
        value: int | float = int(typed) if whole else float(typed)
    except ValueError:
        raise TypedValueError("It is a whole number." if whole else "It is a number.") from None
    if not field.get("minimum", value) <= value <= field.get("maximum", value):
        raise TypedValueError(f"It is from {field.get('minimum', 'any')} to {field.get('maximum', 'any')}.")
    return value
