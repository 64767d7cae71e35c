"""A store that somebody wrote with three methods (store, load, exists), as the store that a session needs.

Invariant: the other store sees nothing but `Text` and `Structured`, and whatever it raises comes out as a
BlobStoreError. Source of the three methods: tool-output design (BlobStore).
"""

from __future__ import annotations

import asyncio
import base64
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from reyn_jupyter.outputs.blobs.blob_writer import pieces
from reyn_jupyter.outputs.blobs.ids import InvalidBlobIdError, canonical_id
from reyn_jupyter.outputs.blobs.random_access import read_handed_over
from reyn_jupyter.outputs.content import (
    BlobId,
    BlobNotFoundError,
    BlobStore,
    BlobStoreError,
    Content,
    FileContent,
    Structured,
    Text,
)

NEEDED = ("store", "load", "exists")
_EXACT = ("store_bytes", "load_bytes")
_LABELS = ("action", "run")  # what `BlobStore.store` is given beside the content


def adapt_store(given: Any) -> BlobStore:
    """Return an object as a store: itself where it has all of `BlobStore`, an `AdaptedBlobStore` over its three methods
    otherwise.

    Raises:
        ValueError: it lacks one of the three; names them all.
    """
    lacking = [name for name in NEEDED if not callable(getattr(given, name, None))]
    if isinstance(given, type) or lacking:
        why = "it is a class; make one of it" if isinstance(given, type) else f"it lacks {', '.join(lacking)}"
        raise ValueError(
            f"store={type(given).__name__} cannot keep blobs: {why}. A store has async def store(content) -> id, "
            'load(id) -> content and exists(id) -> bool; or give "files", "memory", or None for no blobs.'
        )
    labelled = _takes_labels(given.store)
    if labelled and all(callable(getattr(given, name, None)) for name in _EXACT):
        whole: BlobStore = given
        return whole
    return AdaptedBlobStore(given, labelled)


class AdaptedBlobStore:
    """The store of somebody else, by its three methods.

    Args:
        inner: has ``store(content) -> id``, ``load(id) -> content`` and ``exists(id) -> bool``, awaited or plain. An
            id is a UUID, as text or as an object; one that was given out as an object is handed back as one.
        labelled: whether its `store` takes `action` and `run`.
    """

    def __init__(self, inner: Any, labelled: bool = False) -> None:
        self._inner = inner
        self._labelled = labelled
        self._own_ids: dict[BlobId, object] = {}

    def __repr__(self) -> str:
        return f"AdaptedBlobStore({type(self._inner).__name__})"

    async def store(self, content: Content, *, action: str | None = None, run: str | None = None) -> BlobId:
        """See `BlobStore.store`. A file that is handed over is read, and removed once it is stored."""
        held = content
        if isinstance(content, FileContent):
            try:
                held = await asyncio.to_thread(read_handed_over, content)
            except OSError as problem:
                raise BlobStoreError(
                    f"could not take the file over: {problem.strerror or problem}"
                ) from problem
        labels = {"action": action, "run": run} if self._labelled else {}
        own = await self._called(self._inner.store, held, **labels)
        try:
            blob_id = canonical_id(str(own))
        except InvalidBlobIdError as problem:
            raise BlobStoreError(f"{self._name}.store gave an id that is no UUID: {problem}") from problem
        if not isinstance(own, str) or own != blob_id:
            self._own_ids[blob_id] = own
        if isinstance(content, FileContent):
            with suppress(OSError):
                content.path.unlink()
        return blob_id

    async def load(self, blob_id: BlobId) -> Content:
        wanted = canonical_id(blob_id)
        if not await self.exists(wanted):
            raise BlobNotFoundError(wanted)
        content = await self._called(self._inner.load, self._own_ids.get(wanted, wanted))
        if not isinstance(content, Text | Structured):
            raise BlobStoreError(
                f"{self._name}.load gave {type(content).__name__}, not the content that was stored"
            )
        return content

    async def exists(self, blob_id: BlobId) -> bool:
        wanted = canonical_id(blob_id)
        return bool(await self._called(self._inner.exists, self._own_ids.get(wanted, wanted)))

    async def store_bytes(self, data: bytes, *, action: str | None = None, run: str | None = None) -> BlobId:
        """See `BlobStore.store_bytes`. Bytes are stored as a structure that `load_bytes` reads back."""
        coded = await asyncio.to_thread(base64.b64encode, data)
        content = Structured({"bytes": len(data), "base64": coded.decode()})
        return await self.store(content, action=action, run=run)

    async def load_bytes(self, blob_id: BlobId) -> bytes:
        content = await self.load(blob_id)
        assert isinstance(content, Text | Structured)
        if isinstance(content, Structured) and (raw := _coded_bytes(content.value)) is not None:
            return raw
        return await asyncio.to_thread(lambda: b"".join(pieces(content)))

    @property
    def _name(self) -> str:
        return type(self._inner).__name__

    async def _called(self, method: Callable[..., Any], *args: object, **labels: object) -> Any:
        try:
            found = method(*args, **labels)
            return await found if inspect.isawaitable(found) else found
        except BlobStoreError:
            raise
        except Exception as problem:
            raise BlobStoreError(f"{self._name} failed: {type(problem).__name__}: {problem}") from problem


def _coded_bytes(value: object) -> bytes | None:
    if (
        not isinstance(value, dict)
        or set(value) != {"bytes", "base64"}
        or not isinstance(value["base64"], str)
    ):
        return None
    try:
        raw = base64.b64decode(value["base64"], validate=True)
    except ValueError:
        return None
    return raw if len(raw) == value["bytes"] else None


def _takes_labels(method: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(method).parameters
    except (TypeError, ValueError):
        return False
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    return takes_any or all(name in parameters for name in _LABELS)
