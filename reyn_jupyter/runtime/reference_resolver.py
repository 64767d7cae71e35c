"""References in arguments, checked before the permission gate and opened after it.

Invariant: what a reference names goes from one action to the next as the very object, never through the model, and
nothing is opened for a call that the gate refuses. A variable that is hidden from the model cannot be named by it.
Example: ``{"frame": {"$var": "orders"}, "rates": {"$blob": "0197…", "path": "/rates"}}``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reyn_jupyter.catalog.arguments.references import Reference, claims_reference, find_references
from reyn_jupyter.outputs.blobs.ids import InvalidBlobIdError, canonical_id
from reyn_jupyter.outputs.content import BlobNotFoundError, BlobStore, BlobStoreError
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.namespace.variables import hidden, is_secret
from reyn_jupyter.runtime.services import Services, Source, ToolContext
from reyn_jupyter.support.text import did_you_mean, nearest_names

_SHOWN = 100  # characters of a name that are quoted back


def check(args: Mapping[str, Any], context: ToolContext) -> list[Reference]:
    """Refuse references to what is not there or may not be named; opens and changes nothing.

    Args:
        args: the target tool's arguments, validated.
        context: the call's surroundings; `variables` "off" refuses every variable.

    Returns:
        The references, for `open_references`.

    Raises:
        ActionError: naming the reference, and what can be named instead.
    """
    references = find_references(args)
    for reference in references:
        if reference.kind == "var":
            find_variable(reference.name, context)
        else:
            _check_blob(reference.name, context.services)
    return references


async def open_references(
    args: dict[str, Any], context: ToolContext, references: Sequence[Reference] | None = None
) -> dict[str, Any]:
    """Return the arguments with every reference replaced by what it names; the same object when there is none.

    A variable is the notebook's own object. A stored frame is a DataFrame (Series, array), other stored JSON its
    value, a stored text a `str`, stored bytes `bytes`; with a path, the JSON value there. Each one is reported
    as used. `references` are those that `check` found; they are looked for when None.

    Raises:
        ActionError: something is no longer there, may not be named, or the path leads nowhere.
    """
    if references is None:
        references = find_references(args)
    if not references:
        return args
    names = {reference.name for reference in references if reference.kind == "var"}
    opened: dict[tuple[str, str, str | None], Any] = {}
    if names:
        found = await context.services.main_thread(
            lambda: {name: find_variable(name, context) for name in names}
        )
        opened = {("var", name, None): value for name, value in found.items()}
    for reference in references:
        if reference.kind == "blob" and _key(reference) not in opened:
            opened[_key(reference)] = await open_blob_value(
                reference.name, reference.pointer, context.services
            )
    for kind, name in dict.fromkeys(
        ("variable" if reference.kind == "var" else "blob", reference.name) for reference in references
    ):
        context.used(Source(kind, name))
    replaced: dict[str, Any] = _replace(args, lambda reference: opened[_key(reference)])
    return replaced


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
            "Use a workspace file or a stored result instead, or ask the person to allow variables.",
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
        return await asyncio.to_thread(_content, blob, pointer)
    except BlobNotFoundError:
        raise _no_blob(blob_id) from None
    except BlobStoreError as error:
        raise ActionError(f"The stored result {blob_id} cannot be read: {error}") from error


def _check_blob(blob_id: str, services: Services) -> BlobStore:
    from reyn_jupyter.outputs.blobs.random_access import is_local

    store = services.blobs
    if store is None:
        raise ActionError("This session keeps no stored results, so a blob cannot be used.")
    try:
        wanted = canonical_id(blob_id)
        if is_local(store):
            store.describe(wanted)
    except InvalidBlobIdError as error:
        raise ActionError(f"{error}.", error.hint) from None
    except BlobNotFoundError:
        raise _no_blob(blob_id) from None
    except BlobStoreError as error:
        raise ActionError(f"The stored result {blob_id} cannot be read: {error}") from error
    return store


def _no_blob(blob_id: str) -> ActionError:
    return ActionError(
        f"There is no stored result {blob_id[:_SHOWN]!r}.",
        "Take the id from a [blob:<id>] in an earlier result; it may have been removed since.",
    )


def _content(blob: Any, pointer: str | None) -> Any:
    if pointer:
        if not blob.info.is_json:
            raise ActionError(
                f"The stored result {blob.id} is {blob.kind} and has no parts; leave out the path."
            )
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
    if frame.get("kind") != "ndarray" or "[" in frame["dtype"] or len(frame["shape"]) > 2:
        return table
    return table.to_numpy().reshape(frame["shape"]).astype(frame["dtype"])


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


def _replace(value: Any, open_one: Callable[[Reference], Any]) -> Any:
    if claims_reference(value):
        return open_one(find_references(value)[0])
    if isinstance(value, dict):
        return {key: _replace(item, open_one) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace(item, open_one) for item in value]
    return value


def _key(reference: Reference) -> tuple[str, str, str | None]:
    return (reference.kind, reference.name, reference.pointer)


def _nearest(name: str, context: ToolContext) -> str:
    from reyn_jupyter.runtime.namespace.variables import visible_variables

    names = list(visible_variables(context.services))
    if near := nearest_names(name, names):
        return did_you_mean(near)
    return f"There are: {', '.join(names[:20])}." if names else "The notebook has no variables yet."
