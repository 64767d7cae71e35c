"""An action's arguments on their way to the handler: read, forgiven where that is safe, validated.

Invariants: `prepare` and `lift` raise nothing, whatever a model sends; a string parameter is never touched;
what was forgiven is recorded as a flag. Forgiveness has exactly one reading or none: JSON that names a key
twice has two.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache, cached

from reyn_jupyter.catalog.action import NO_CODES, ErrorCodes
from reyn_jupyter.catalog.arguments.argument_repair import (
    coerce,
    leave_out_nulls,
    put_aliases_right,
    read_object,
    whole_numbers,
)
from reyn_jupyter.catalog.arguments.reference_places import misplaced_references
from reyn_jupyter.catalog.arguments.references import (
    TooMuchError,
    claims_reference,
    reference_fault,
    walk,
)
from reyn_jupyter.catalog.arguments.schema_dialects import SchemaError
from reyn_jupyter.catalog.arguments.schema_validation import (
    MOST_MESSAGES,
    Invalid,
    SchemaValidator,
    is_missing,
    shown,
    unknown_arguments,
)
from reyn_jupyter.catalog.size_budget import ANSWER_BYTES, encoded_size, fitting_schema
from reyn_jupyter.catalog.text_normalization import quoted
from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.support.text import enumerate_words

if TYPE_CHECKING:
    from reyn_jupyter.catalog.action import Action, Schema

_REMEMBERED = 512  # schemas whose validators are kept
_TAKES_NONE = "takes the value itself, not a reference to it"


@dataclass(frozen=True)
class Prepared:
    """Arguments ready for the handler.

    Attributes:
        args: the arguments, references still in place; what could be read of them when they are invalid.
        flags: what was forgiven, of "decoded", "aliased", "coerced".
        invalid: what is wrong: path (a JSON Pointer) and message; empty when the handler may run.
    """

    args: dict[str, Any]
    flags: tuple[str, ...] = ()
    invalid: list[Invalid] = field(default_factory=list)


def prepare(action_schema: Schema, raw_args: object, *, forgive: bool = True) -> Prepared:
    """Read and validate the arguments of one call.

    Args:
        action_schema: the action's input schema. Arguments that it does not name are refused unless it is open.
        raw_args: what came: an object; None for none; with `forgive`, a JSON string of an object.
        forgive: decode such a string once, put known aliases right, read strings meant as other types.

    Example:
        >>> schema = {"type": "object", "properties": {"limit": {"type": "integer"}}}
        >>> prepare(schema, '{"limit": "5"}')
        Prepared(args={'limit': 5}, flags=('decoded', 'coerced'), invalid=[])
    """
    try:
        return _prepare(action_schema, _validator(action_schema), raw_args, forgive=forgive)
    except Exception as error:  # noqa: BLE001 - another's schema can break a validator in any way
        message = f"the arguments could not be checked: {_reason(error)}"
        return Prepared({}, (), [{"path": "", "message": message}])


def _prepare(schema: Schema, validator: SchemaValidator, raw_args: object, *, forgive: bool) -> Prepared:
    if type(raw_args) is dict and validator.accepts(raw_args):
        return Prepared(dict(raw_args))
    args, flags = _as_object(raw_args, forgive=forgive)
    if args is None:
        message = f"args must be a JSON object, not {shown(raw_args)}"
        return Prepared({}, (), [{"path": "", "message": message}])
    if forgive:
        flags += put_aliases_right(schema, args)
        flags += leave_out_nulls(schema, args, validator.fits)
        flags += coerce(schema, args, validator.fits)
    whole_numbers(schema, args)
    return Prepared(args, tuple(flags), _unreadable(args) or _invalid(schema, validator, args))


def faults(action_schema: Schema, args: dict[str, Any]) -> list[str]:
    """Return the places in arguments that do not fit a schema, as JSON Pointers; never their contents.

    Args:
        action_schema: the action's input schema.
        args: plain JSON data and references, which fit everywhere.
    """
    try:
        return [fault["path"] for fault in _validator(action_schema).faults(args)]
    except Exception:  # noqa: BLE001 - another's schema can break a validator in any way
        return [""]


def lift(wrapper_args: object, *, forgive: bool = True) -> tuple[str, object, tuple[str, ...]]:
    """Take the arguments of the invoking wrapper apart: action name, raw args, flags.

    Inner arguments that stand beside `action_name` are moved into empty `args` and flagged "lifted"; beside args
    that are not empty they stay out, and `misplaced` tells about them.

    >>> lift({"action_name": "file__read", "path": "a.txt"})
    ('file__read', {'path': 'a.txt'}, ('lifted',))
    """
    if not isinstance(wrapper_args, dict):
        return "", None, ()
    name = wrapper_args.get("action_name")
    args = wrapper_args.get("args")
    beside = _beside(wrapper_args)
    flags: tuple[str, ...] = ()
    if forgive and beside and _is_empty(args):
        args, flags = beside, ("lifted",)
    return (name if isinstance(name, str) else ""), args, flags


def misplaced(wrapper_args: object, *, forgive: bool = True) -> list[Invalid]:
    """Return inner arguments that `lift` left out because `args` is not empty; they must not vanish without a word."""
    if not isinstance(wrapper_args, dict) or (forgive and _is_empty(wrapper_args.get("args"))):
        return []
    return [
        {
            "path": f"/{clip_line(str(key))}",
            "message": "stands beside args; the action's arguments belong inside args",
        }
        for key in list(_beside(wrapper_args))[:10]
    ]


def invalid_arguments(
    action: Action,
    invalid: list[Invalid],
    *,
    held_by: str | None = None,
    answer_bytes: int = ANSWER_BYTES,
    codes: ErrorCodes = NO_CODES,
) -> dict[str, Any]:
    """Answer arguments that do not fit: ``{error, invalid, input_schema, hint}``, within `answer_bytes`.

    Args:
        action: the one whose schema they do not fit.
        invalid: what is wrong, as `Prepared` has it.
        held_by: the argument of the call that holds what the action takes, for a call by name.
        answer_bytes: the most bytes of the answer.
        codes: those of the action's category; the answer has a ``code`` where there is one for what is wrong.
    """
    missing = [fault["path"].rpartition("/")[2] for fault in invalid if is_missing(fault)]
    code = codes.missing_argument if missing else codes.wrong_argument
    give = f"Give {enumerate_words(missing)}. " if missing else ""
    answer: dict[str, Any] = {
        "error": f"Invalid arguments for {quoted(action.name.text)}",
        "invalid": invalid,
        "input_schema": {},
        "hint": f"{give}Call again with {'args' if held_by is None else quoted(held_by)} that match input_schema.",
        **({} if code is None else {"code": code}),
    }
    return {
        **answer,
        "input_schema": fitting_schema(action.input_schema, answer_bytes - encoded_size(answer)),
    }


# A memo, not state: what it holds follows from the schema alone. Keyed by identity, since hashing a schema
# would cost more than most checks; each entry keeps its schema alive, so an identity is never given twice.
@cached(LRUCache(_REMEMBERED), key=id, lock=threading.Lock())
def _validator(schema: Schema) -> SchemaValidator:
    return SchemaValidator(schema)


def _beside(wrapper_args: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, value in wrapper_args.items() if key not in ("action_name", "args")}


def _is_empty(args: object) -> bool:
    return args is None or args == {} or (isinstance(args, str) and args.strip() in ("", "{}"))


def _as_object(raw: object, *, forgive: bool) -> tuple[dict[str, Any] | None, list[str]]:
    if raw is None:
        return {}, []
    if isinstance(raw, dict):
        return dict(raw), []
    if isinstance(raw, str) and forgive:
        decoded = read_object(raw)
        if decoded is not None:
            return decoded, ["decoded"]
    return None, []


def _unreadable(args: dict[str, Any]) -> list[Invalid]:
    """Return the values that are no JSON, and the references that are malformed."""
    found: list[Invalid] = []
    try:
        for path, value in walk(args):
            fault = _fault(value)
            if fault is not None:
                found.append({"path": clip_line(path), "message": fault})
                if len(found) == MOST_MESSAGES:
                    break
    except TooMuchError as error:
        found.append({"path": "", "message": f"the arguments are {error}"})
    return found


def _fault(value: object) -> str | None:
    if claims_reference(value):
        return reference_fault(value)  # type: ignore[arg-type]
    if isinstance(value, dict):
        return None if all(isinstance(key, str) for key in value) else "has a key that is no text"
    if value is None or isinstance(value, (str, bool, int, list)):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else "is no finite number"
    return f'a {type(value).__name__} is no JSON value; pass a reference to it: {{"$var": "<name>"}}'


def _invalid(schema: Schema, validator: SchemaValidator, args: dict[str, Any]) -> list[Invalid]:
    unknown = unknown_arguments(schema, args)
    names = {entry["path"] for entry in unknown}
    known = {name: value for name, value in args.items() if f"/{name}" not in names} if unknown else args
    misplaced = [
        {"path": clip_line(path), "message": _TAKES_NONE} for path in misplaced_references(schema, known)
    ]
    return (unknown + misplaced + validator.faults(known))[: MOST_MESSAGES + 1]


def _reason(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}".partition("\n")[0]
    if isinstance(error, SchemaError):
        text = f"its category declared a wrong schema ({error.message})"
    return clip_line(text, 300)
