"""References in arguments, opened before the permission gate, so that it judges what they bring.

Invariant: what a reference names goes from one action to the next without passing through the model. Data of a JSON
type is checked with the action's schema, and of a variable it is a copy, so that what was judged is what is used; any
other object goes on as that very object, and none of its code runs here. No error quotes what was opened. A variable
that is hidden from the model cannot be named by it.
Example: ``{"frame": {"$var": "orders"}, "rates": {"$blob": "0197…", "path": "/rates"}}``.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any

from reyn_jupyter.catalog.action import Arguments, Schema
from reyn_jupyter.catalog.arguments.preparation import faults
from reyn_jupyter.catalog.arguments.reference_places import ReferencePlace, place_at
from reyn_jupyter.catalog.arguments.references import (
    DEEPEST,
    Reference,
    child,
    claims_reference,
    find_references,
)
from reyn_jupyter.outputs.blobs.ids import InvalidBlobIdError, canonical_id
from reyn_jupyter.outputs.content import BlobNotFoundError, BlobStore, BlobStoreError
from reyn_jupyter.outputs.convert import type_name
from reyn_jupyter.outputs.frames.frame_info import LARGEST_ARRAY
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.call.json_arguments import NoJsonFormError, check_size, json_form, without_nonfinite
from reyn_jupyter.runtime.namespace.variables import hidden, is_secret
from reyn_jupyter.runtime.services import Services, Source, ToolContext
from reyn_jupyter.support.secret_names import secret_name
from reyn_jupyter.support.text import did_you_mean, nearest_names

LARGEST_OPENED = 1 << 30  # bytes of a blob
_SHOWN = 100  # characters of a name that are quoted back
_SMALLER = "Refer to a smaller or a plain value: a part of it, or a result that was made from it."
_SCALARS = frozenset({str, int, float, bool, type(None)})


async def open_references(
    schema: Schema, args: Arguments, context: ToolContext, *, remote: bool = False, discloses: bool = False
) -> Arguments:
    """Return the arguments with every reference replaced by what it names; the same object when there is none.

    A variable is the notebook's own object, or a copy of it where the schema takes data of a JSON type. A stored frame
    is a DataFrame (Series, array), other stored JSON its value, a stored text a `str`, stored bytes `bytes`; with a
    path, the JSON value there. Each one is reported as used.

    Args:
        schema: the action's input schema, whose ``x-reference`` says where a reference may stand (see
            `reference_places`).
        args: the action's arguments, validated.
        context: the call's surroundings; `variables` "off" refuses every variable.
        remote: the arguments leave the notebook, so that they are made JSON, within `LARGEST_ARGUMENTS` bytes.
        discloses: they get where others read them, so a variable with a key that is named like a secret is refused
            to a model, which never sees what stands under such a key.

    Raises:
        ActionError: a reference where none may stand, to what is not there, may not be named or does not fit the
            schema.
    """
    if not any(type(value) in (dict, list, tuple) for value in args.values()):
        return args
    references = find_references(args)
    if not references:
        return args
    places = {reference.path: place_at(schema, reference.path) for reference in references}
    for reference in references:
        _check(reference, places[reference.path], context)
    variables = [reference for reference in references if reference.kind == "var"]
    opened: dict[str, Any] = {}
    if variables:
        # On the notebook's thread, where nobody changes a list while it is copied.
        opened = await context.services.main_thread(lambda: _variables(variables, places, context, remote))
        if discloses and context.actor != "person":
            for reference in variables:
                await asyncio.to_thread(_refuse_secret_keys, opened[reference.path], reference)
    for reference in references:
        if reference.kind == "blob":
            value = await open_blob_value(reference.name, reference.pointer, context.services)
            opened[reference.path] = await asyncio.to_thread(
                _fitting, value, reference, places[reference.path], False, remote
            )
    if remote:
        opened = await asyncio.to_thread(_bounded, opened)
    await _validate(schema, args, references, places, opened)
    for kind, name in dict.fromkeys(
        ("variable" if reference.kind == "var" else "blob", reference.name) for reference in references
    ):
        context.used(Source(kind, name))
    replaced: Arguments = _replace(args, "", opened)
    return replaced


def _check(reference: Reference, place: ReferencePlace, context: ToolContext) -> None:
    if not place.kinds:
        raise ActionError(f"{_named(reference)} takes the value itself, not a reference to it.")
    if reference.kind == "var":
        find_variable(reference.name, context)
    else:
        _check_blob(reference.name, context.services)


def _variables(
    references: Sequence[Reference],
    places: Mapping[str, ReferencePlace],
    context: ToolContext,
    remote: bool,
) -> dict[str, Any]:
    return {
        reference.path: _fitting(
            find_variable(reference.name, context), reference, places[reference.path], True, remote
        )
        for reference in references
    }


def _bounded(opened: Mapping[str, Any]) -> dict[str, Any]:
    """Return opened values as JSON data that can leave the notebook. Raises ActionError for what is too large."""
    try:
        check_size(opened)
    except NoJsonFormError as error:
        raise ActionError(f"The call refers to {error}.", _SMALLER) from None
    return {path: without_nonfinite(value) for path, value in opened.items()}


def _fitting(
    value: Any, reference: Reference, place: ReferencePlace, shared: bool, remote: bool = False
) -> Any:
    """Return an opened value as the action gets it; `shared`: the notebook may change it meanwhile.

    Raises:
        ActionError: it is of a kind that may not stand there.
    """
    if remote:
        try:
            value = json_form(value)
        except NoJsonFormError as error:
            raise ActionError(f"{_named(reference)} refers to {error}.", _SMALLER) from None
    if not place.admits(value):
        wanted = ", ".join(sorted(place.kinds))
        raise ActionError(
            f"{_named(reference)} refers to a {type_name(value)}; it takes a reference to: {wanted}.",
            "Refer to another value or to a part of it, or give the data itself.",
        )
    if type(value) not in (list, dict) or (not remote and "any" in place.kinds and not place.checks(value)):
        return value
    return _plain(value, reference, DEEPEST) if shared or remote or place.checks(value) else value


def _plain(value: Any, reference: Reference, depth: int) -> Any:
    """Return a copy of JSON data. Raises ActionError for other objects in it, told by their exact types."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if depth and kind is list:
        return [_plain(item, reference, depth - 1) for item in value]
    if depth and kind is dict and all(type(key) is str for key in value) and not claims_reference(value):
        return {key: _plain(item, reference, depth - 1) for key, item in value.items()}
    what = f"a {type_name(value)}, which is no JSON value" if depth else f"more than {DEEPEST} levels"
    raise ActionError(
        f"{_named(reference)} refers to a value that holds {what}.",
        "Refer to plain data: lists, dicts with text keys, texts and numbers.",
    )


def _refuse_secret_keys(value: Any, reference: Reference) -> None:
    """Raise ActionError for data with a key that is named like a secret; what such a key holds is shown nowhere."""
    pending = [value]
    while pending:
        part = pending.pop()
        if type(part) is dict:
            if (key := next(filter(secret_name, part), None)) is not None:
                raise ActionError(
                    f"{_named(reference)} refers to a variable with the key {key[:_SHOWN]!r}, which is named like a "
                    "secret: what it holds stays in the notebook.",
                    "Refer to a value without it, or tell the person, whose own call takes it along.",
                )
            pending += part.values()
        elif type(part) is list:
            pending += part


async def _validate(
    schema: Schema,
    args: Arguments,
    references: Sequence[Reference],
    places: Mapping[str, ReferencePlace],
    opened: Mapping[str, Any],
) -> None:
    """Check opened data with the schema, where it says how data have to be. Raises ActionError."""
    data = {path: value for path, value in opened.items() if places[path].checks(value)}
    if not data:
        return
    found = await asyncio.to_thread(faults, schema, _replace(args, "", data))
    if found:  # a number that is none is no JSON, and fits all the same
        found = await asyncio.to_thread(faults, schema, _finite(_replace(args, "", data)))
    if not found:
        return
    wrong = [
        reference
        for reference in references
        if reference.path in data
        and any(path == reference.path or path.startswith(f"{reference.path}/") for path in found)
    ]
    named = "; ".join(map(_named, wrong or references))
    raise ActionError(
        f"{named} refers to a value that does not fit the action's input_schema.",
        "Refer to another value or to a part of it, or give the data itself.",
    )


def _finite(value: Any) -> Any:
    if type(value) is dict:
        return {key: _finite(item) for key, item in value.items()}
    if type(value) is list:
        return [_finite(item) for item in value]
    return 0.0 if type(value) is float and not math.isfinite(value) else value


def _named(reference: Reference) -> str:
    return f"The argument {reference.path[: 2 * _SHOWN]}"


def find_variable(name: str, context: ToolContext) -> Any:
    """Return the notebook's variable of this name, if the caller may name it.

    The person may name private ones and functions too, for instance the last result, ``_``; nobody a secret.

    Raises:
        ActionError: there is none, it is hidden, or variables are switched off for this caller.
    """
    shown = repr(name[:_SHOWN])
    if context.variables == "off":
        raise ActionError(
            f"The notebook's variables are switched off for this run, so {shown} cannot be used.",
            "Use a workspace file or a blob instead, or ask the person to allow variables.",
        )
    namespace = context.services.namespace()
    try:
        value = namespace[name]
    except KeyError:
        raise ActionError(f"There is no variable {shown} in the notebook.", _nearest(name, context)) from None
    reason = None if context.actor == "person" else hidden(name, value)
    if reason is not None:
        raise ActionError(f"The variable {shown} cannot be used: {reason}.", _nearest(name, context))
    if is_secret(name, value, context.services.redactor):
        raise ActionError(
            f"The variable {shown} cannot be used: it looks like a secret.", _nearest(name, context)
        )
    return value


async def open_blob_value(blob_id: str, pointer: str | None, services: Services) -> Any:
    """Return the content of a blob as a Python object; see `open_references`.

    Args:
        blob_id: as a summary shows it.
        pointer: the part that is meant, as a JSON Pointer (RFC 6901); None for all of it.

    Raises:
        ActionError: no such blob, a damaged one, or no such part.
    """
    store = _check_blob(blob_id, services)
    from reyn_jupyter.outputs.blob import fetch_blob

    try:
        blob = await fetch_blob(store, blob_id)
        if blob.size > LARGEST_OPENED:
            raise ActionError(
                f"The blob {blob.id} has {blob.size:,} bytes; a reference opens at most {LARGEST_OPENED:,}.",
                "Look at a part of it with inspect, or make a smaller result.",
            )
        return await asyncio.to_thread(_content, blob, pointer)
    except BlobNotFoundError:
        raise _no_blob(blob_id) from None
    except BlobStoreError as error:
        raise ActionError(f"The blob {blob_id} cannot be read: {error}") from error


def _check_blob(blob_id: str, services: Services) -> BlobStore:
    from reyn_jupyter.outputs.blobs.random_access import is_local

    store = services.blobs
    if store is None:
        raise ActionError("This session keeps no blobs, so none can be used.")
    try:
        wanted = canonical_id(blob_id)
        if is_local(store):
            store.describe(wanted)
    except InvalidBlobIdError as error:
        raise ActionError(f"{error}.", error.hint) from None
    except BlobNotFoundError:
        raise _no_blob(blob_id) from None
    except BlobStoreError as error:
        raise ActionError(f"The blob {blob_id} cannot be read: {error}") from error
    return store


def _no_blob(blob_id: str) -> ActionError:
    return ActionError(
        f"There is no blob {blob_id[:_SHOWN]!r}.",
        "Take the id from a [blob:<id>] in an earlier result; it may have been removed since.",
    )


def _content(blob: Any, pointer: str | None) -> Any:
    if pointer:
        if not blob.info.is_json:
            raise ActionError(f"The blob {blob.id} is {blob.kind} and has no parts; leave out the path.")
        return at_pointer(blob.json, pointer)
    if blob.info.frame is not None:
        return _as_it_was(blob.df, blob.info.frame)
    if blob.info.is_json:
        return blob.json
    return blob.data if blob.kind == "bytes" else blob.text


def _as_it_was(table: Any, frame: Mapping[str, Any]) -> Any:
    """Return a stored table as the frame, series, or array of simple numbers or text that it was made from."""
    if frame.get("kind") == "Series":
        return table.iloc[:, 0]
    shape, dtype = frame.get("shape"), frame.get("dtype")
    if frame.get("kind") != "ndarray" or not isinstance(dtype, str) or "[" in dtype:
        return table
    if not isinstance(shape, list) or len(shape) > 2 or math.prod(shape) != table.size:
        return table
    import numpy as np

    try:  # the description may come with a cloned folder, and its texts be wider than any that is there
        kind = np.dtype(dtype)
        if kind.itemsize * table.size > LARGEST_ARRAY and kind.kind in "SUV":
            return table
        return table.to_numpy().reshape(shape).astype(kind)
    except (ValueError, TypeError, OverflowError):
        return table


def at_pointer(value: Any, pointer: str) -> Any:
    """Return the part of a JSON value that a JSON Pointer (RFC 6901) names. Raises ActionError where there is none.

    >>> at_pointer({"rows": [{"a/b": 7}]}, "/rows/0/a~1b")
    7
    """
    walked = ""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdecimal() and _index(key) < len(value):
            value = value[_index(key)]
        else:
            raise ActionError(f"The path {pointer[:_SHOWN]!r} leads nowhere.", _choices(value, walked))
        walked += "/" + token
    return value


def _index(text: str) -> int:
    """Return the index that a part of a JSON Pointer names (RFC 6901: no leading zeros), else one past any list."""
    return int(text) if (text == "0" or text[0] != "0") and len(text) < 16 else 1 << 62


def _choices(value: Any, walked: str) -> str:
    place = walked[-_SHOWN:] or "the top"
    if isinstance(value, dict):
        keys = ", ".join(repr(key[:_SHOWN]) for key in list(value)[:20])
        return f"At {place} there are the keys {keys or '(none)'}."
    if isinstance(value, list):
        return f"At {place} there is an array of {len(value)} elements, from 0."
    return f"At {place} there is a single value."


def _replace(value: Any, path: str, opened: Mapping[str, Any]) -> Any:
    """Return a copy of arguments with opened values in their places; references that were not opened stay."""
    if path in opened:
        return opened[path]
    if claims_reference(value):
        return value
    if isinstance(value, dict):
        return {key: _replace(item, child(path, key), opened) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace(item, f"{path}/{at}", opened) for at, item in enumerate(value)]
    return value


def _nearest(name: str, context: ToolContext) -> str:
    from reyn_jupyter.runtime.namespace.variables import visible_variables

    names = list(visible_variables(context.services))
    if near := nearest_names(name, names):
        return did_you_mean(near)
    return f"There are: {', '.join(names[:20])}." if names else "The notebook has no variables yet."
