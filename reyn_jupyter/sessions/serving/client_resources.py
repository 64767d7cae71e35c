"""What an MCP client may read as resources: the notebook's variables, and results that are stored.

Invariants: a variable is described as the action of its name describes it, by a call that is judged and recorded as
every other. Of the results those of clients' own calls are listed; any other is read by who knows its id, as with the
tool inspect, but for bytes: of those only what an answer to a client linked to. What leaves is redacted and bounded.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

from cachetools import LRUCache

from reyn_jupyter.backends.object_summary import shape
from reyn_jupyter.outputs.blob import Blob, fetch_blob
from reyn_jupyter.outputs.blobs.ids import canonical_id, is_blob_id
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.outputs.parts.media_type import media_facts
from reyn_jupyter.runtime.namespace.variables import visible_now
from reyn_jupyter.runtime.run import Outcome
from reyn_jupyter.sessions.assembly import Parts
from reyn_jupyter.sessions.serving.client_answers import MOST_BYTES, RESULTS
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from mcp_types import (
        BlobResourceContents,
        ListResourcesResult,
        Resource,
        ResourceTemplate,
        TextResourceContents,
    )

VARIABLES = "reyn://variables/"
PAGE = 200  # resources of one answer
_MOST_LINKED = 10_000
_MOST_ESCAPED = 1_000_000  # characters of a text within a message; clients take an event of 1 MiB
Call = Callable[[str, dict[str, object], str], Awaitable[Outcome]]


class UnreadableResourceError(Exception):
    """A resource is not there, may not be read, or is too large; the message says what to do."""


class ClientResources:
    """The resources of one session.

    Args:
        parts: the session's.
        results: the ids of what clients' calls stored, and the action that each is of.
    """

    def __init__(self, parts: Parts, results: Mapping[str, str]) -> None:
        self._parts = parts
        self._results = results
        self._linked: LRUCache[str, None] = LRUCache(_MOST_LINKED)

    def link(self, uris: Iterable[str]) -> None:
        """Let what an answer linked to be read, whatever it holds. Bytes that no answer linked to are not read at all:
        they may be a part for the person alone."""
        for uri in uris:
            self._linked[uri.removeprefix(RESULTS)] = None

    @property
    def marks(self) -> dict[str, Hashable]:
        """Return the address of every resource that is listed, with what moves when it is another: of a variable its
        identity, type and shape, as the catalog of variables moves; a result never does."""
        now = dict(visible_now(self._parts.services))
        marks: dict[str, Hashable] = {}
        for uri in self.uris:
            value = now.get(uri.removeprefix(VARIABLES))
            marks[uri] = _mark(value) if uri.startswith(VARIABLES) else None
        return marks

    @property
    def uris(self) -> tuple[str, ...]:
        """Return the address of every resource that is listed, as the catalog is known now."""
        snapshot = self._parts.catalog.latest
        names = () if snapshot is None else snapshot.actions
        variables = [VARIABLES + action.name.entry for action in names if action.name.category == "variable"]
        return (*variables, *(RESULTS + blob for blob in self._results))

    def page(self, cursor: str | None) -> ListResourcesResult:
        """Return one page of the list.

        Raises:
            UnreadableResourceError: the cursor is none of ours.
        """
        from mcp_types import ListResourcesResult

        if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 9):
            raise UnreadableResourceError(f"{cursor[:40]!r} is no cursor of this server.")
        start, uris = int(cursor or 0), self.uris
        following = str(start + PAGE) if start + PAGE < len(uris) else None
        chosen = uris[start : start + PAGE]
        return ListResourcesResult(resources=[self._described(uri) for uri in chosen], next_cursor=following)

    @staticmethod
    def templates() -> list[ResourceTemplate]:
        """Return the two kinds of addresses."""
        from mcp_types import ResourceTemplate

        return [
            ResourceTemplate(
                name="variable",
                uri_template=f"{VARIABLES}{{name}}",
                description="A variable of the notebook: type, shape, columns and, where the person allows it, rows.",
                mime_type="text/plain",
            ),
            ResourceTemplate(
                name="result",
                uri_template=f"{RESULTS}{{id}}",
                description="A stored result, by the id that an answer shows as [blob:<id>].",
            ),
        ]

    async def read(self, uri: str, call: Call) -> list[TextResourceContents | BlobResourceContents]:
        """Return what a resource holds.

        Args:
            call: makes and records the call by which it is read: tool, arguments, title.

        Raises:
            UnreadableResourceError: it cannot be read.
        """
        from mcp_types import TextResourceContents

        title = f"read {uri}"
        if uri.startswith(VARIABLES):
            name = f"variable__{uri.removeprefix(VARIABLES)}"
            outcome = await call("invoke_action", {"action_name": name, "args": {}}, title)
            self._raise_failure(outcome)
            return [TextResourceContents(uri=uri, mime_type="text/plain", text=outcome.text)]
        wanted = uri.removeprefix(RESULTS)
        if wanted == uri or not is_blob_id(wanted):
            raise UnreadableResourceError(
                f"There is no resource {shorten(uri, 120)!r}: list them, or use {VARIABLES}NAME or {RESULTS}ID."
            )
        blob_id = canonical_id(wanted)
        self._raise_failure(await call("inspect", {"blob_id": blob_id}, title))
        store = self._parts.services.blobs
        assert store is not None  # inspect has just read it
        try:
            return [await self._contents(uri, await fetch_blob(store, blob_id))]
        except BlobStoreError as error:
            raise UnreadableResourceError(f"The result could not be read: {error}") from None

    async def _contents(self, uri: str, blob: Blob) -> TextResourceContents | BlobResourceContents:
        from mcp_types import BlobResourceContents, TextResourceContents

        if blob.size > MOST_BYTES:
            raise UnreadableResourceError(
                f"The result has {blob.size:,} bytes, more than the {MOST_BYTES:,} that a resource may have. "
                "Read it in parts with the tool inspect."
            )
        redactor = self._parts.redactor
        redactor.refresh()
        if blob.kind != "bytes":
            text = await asyncio.to_thread(lambda: redactor.text(blob.text))
            mime = "text/plain" if blob.kind == "text" else "application/json"
            if len(json.dumps(text)) > _MOST_ESCAPED:
                raise UnreadableResourceError(
                    "The result is longer than a message may be, once it is written as JSON. "
                    "Read it in parts with the tool inspect."
                )
            return TextResourceContents(uri=uri, mime_type=mime, text=text)
        if blob.id not in self._linked:
            raise UnreadableResourceError(
                "Bytes can be read only where an answer to a client linked to them. Call the action again."
            )
        data = await asyncio.to_thread(lambda: blob.data)
        facts = media_facts(data)
        if redactor.byte_spans(data):
            raise UnreadableResourceError(
                "The result holds a secret, which cannot be taken out of its bytes."
            )
        mime = facts.mime or "application/octet-stream"
        return BlobResourceContents(uri=uri, mime_type=mime, blob=base64.b64encode(data).decode())

    def _described(self, uri: str) -> Resource:
        from mcp_types import Resource

        if uri.startswith(RESULTS):
            action = self._results.get(uri.removeprefix(RESULTS), "")
            return Resource(uri=uri, name=f"result {uri[-12:]}", description=f"What {action} gave.")
        name, snapshot = uri.removeprefix(VARIABLES), self._parts.catalog.latest
        found = (
            None
            if snapshot is None
            else next((each for each in snapshot.actions if each.name.text == f"variable__{name}"), None)
        )
        description = "" if found is None else self._parts.redactor.text(found.short_description)
        return Resource(uri=uri, name=name, description=description, mime_type="text/plain")

    @staticmethod
    def _raise_failure(outcome: Outcome) -> None:
        if not outcome.ok:
            raise UnreadableResourceError(outcome.text)


def _mark(value: object) -> Hashable:
    try:
        return id(type(value)), id(value), shape(value)
    except Exception:  # noqa: BLE001 - the notebook changes it just now: the next look sees it whole
        return id(type(value)), id(value)
