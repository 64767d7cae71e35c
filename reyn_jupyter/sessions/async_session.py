"""The awaited face of a session; the synchronous one is a thin layer over it.

Invariants: a call by hand is a run of its own, of kind "manual"; what fails comes back as the usual object with
`.error` set, never raised; every coroutine here runs on the engine's loop. The explorer shows every action whose name
or short description has all words of a search.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from reyn_jupyter.catalog.action import Action
from reyn_jupyter.catalog.call_by_name import arrival_of
from reyn_jupyter.catalog.discovery.listing import describe_action, list_actions
from reyn_jupyter.catalog.discovery.listing_filter import InvalidListingError, as_count, select_categories
from reyn_jupyter.catalog.discovery.search_results import as_query, search_answer
from reyn_jupyter.catalog.resolve import UnknownActionError, find
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.catalog.text_normalization import fold
from reyn_jupyter.outputs.blob import Blob, fetch_blob
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.call.unknown_names import needs_search, with_found
from reyn_jupyter.runtime.large_values import look_through
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.action_rows import action_rows, invoke_line, permission_of
from reyn_jupyter.sessions.assembly import ENGINE, Parts, keep_out_of_git
from reyn_jupyter.sessions.result_objects import ActionCard, ActionTable, CatalogExplorer, Inspection, Result
from reyn_jupyter.sessions.runs import replay, run_lifecycle
from reyn_jupyter.sessions.runs.turn_options import TurnOptions, check_question

T = TypeVar("T")
Categories = str | Sequence[str] | None
OnEvent = Callable[[Any], None] | None
ROOM = 65_536  # bytes of one action that a search shows a person
SEARCH_WAIT = 1.5  # seconds that a person's search waits for the index; words alone rank after that


class AsyncSession:
    """The methods of `Session`, awaited: ``await session.aio.ask("…")``; arguments and results are the same."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def close(self) -> None:
        await _on_engine(self._parts.release())

    async def list_actions(
        self,
        category: Categories = None,
        filter: str | None = None,  # noqa: A002 - the wrapper's own argument name
        offset: int = 0,
        limit: int = 20,
    ) -> ActionTable:
        async def work() -> ActionTable:
            parts = self._parts
            snapshot = await parts.catalog.refresh()
            payload = list_actions(
                snapshot,
                _several(category),
                filter,
                offset,
                limit,
                schemas=parts.settings.router.list_schemas,
                answer_bytes=parts.settings.outputs.answer_bytes,
            )
            rows = action_rows(parts, snapshot, payload)
            asked = _several(category)
            hidden = {name: why for name, why in snapshot.hidden.items() if not asked or name in asked}
            table = ActionTable(parts.redactor.value(payload), rows, "list", filter or "")
            return replace(table, hidden=parts.redactor.value(hidden))

        return await _on_engine(work())

    async def describe_action(self, name: str) -> ActionCard:
        async def work() -> ActionCard:
            parts = self._parts
            snapshot = await parts.catalog.refresh()
            arrival = arrival_of(snapshot, str(name), None)
            if arrival is not None:
                try:
                    await arrival.wait()
                except ActionError as error:
                    return ActionCard(parts.redactor.value({"error": error.message, "hint": error.hint}))
                snapshot = await parts.catalog.refresh()
            try:
                action = find(snapshot, name)
            except UnknownActionError as error:
                if (held := parts.workflows.held_back_action(str(name))) is not None:
                    return ActionCard(parts.redactor.value({"error": held.message, "hint": held.hint}))
                if needs_search(error, snapshot, name, parts.services):
                    error = await with_found(error, snapshot, name, parts.services)
                return ActionCard(parts.redactor.value(error.payload_for_person))
            payload = describe_action(snapshot, action.name, answer_bytes=parts.settings.outputs.answer_bytes)
            return ActionCard(
                parts.redactor.value(payload), invoke_line(action), permission_of(parts, action)
            )

        return await _on_engine(work())

    async def search_actions(self, query: str, category: Categories = None, limit: int = 10) -> ActionTable:
        async def work() -> ActionTable:
            parts = self._parts
            snapshot = await parts.catalog.refresh()
            try:
                chosen = [part.category.name for part in select_categories(snapshot, category)]
                wanted = as_query(query)
                most = as_count("limit", limit, 10, smallest=1)
            except InvalidListingError as error:
                return ActionTable(parts.redactor.value(error.payload), (), "search", str(query))
            await parts.search.ready(snapshot, SEARCH_WAIT)
            found = await parts.search.find(snapshot, wanted, most, chosen)
            keep_out_of_git(parts.root)
            payload = {**search_answer(found, most * ROOM), "ranking": found.ranking}
            return ActionTable(payload, action_rows(parts, snapshot, payload), "search", query)

        return await _on_engine(work())

    async def explore(self, query: str = "") -> CatalogExplorer:
        return await _on_engine(explore(self._parts, query))

    async def invoke_action(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        ask: Callable[[Question], Awaitable[Answer]] | None = None,
        on_event: OnEvent = None,
    ) -> Result:
        """Run one action, as `Session.invoke_action` does; with an `ask`, the call is no consent: it is asked."""

        async def work() -> Result:
            parts = self._parts
            run = await run_lifecycle.by_hand(parts, f"invoke {name}", ask)
            given = {"action_name": name, "args": dict(args) if isinstance(args, Mapping) else args}
            planned = await look_through(given, lambda: parts.wrappers.call("invoke_action", given, run))
            try:
                outcome = await planned.run()
            except asyncio.CancelledError:
                run_lifecycle.finish(parts, run, "interrupted", error="Interrupted by the person.")
                raise
            trace = run_lifecycle.finish(
                parts,
                run,
                "ok" if outcome.ok else "error",
                answer=outcome.text if outcome.ok else "",
                error=outcome.error,
            )
            blob = await self._blob(outcome.blob)
            return Result(outcome.name or name, outcome.payload, outcome.value, blob, trace)

        return await _on_engine(work(), on_event)

    async def inspect(self, blob_id: str, selector: str | None = None) -> Inspection:
        async def work() -> Inspection:
            parts = self._parts
            given = {"blob_id": str(blob_id), **({} if selector is None else {"selector": selector})}
            payload = await parts.wrappers.look(given, parts.settings.outputs.answer_bytes)
            blob = await self._blob(str(blob_id)) if isinstance(payload, str) else None
            return Inspection(payload, blob, selector)

        return await _on_engine(work())

    async def _blob(self, blob_id: str | None) -> Blob | None:
        """Return a handle on a stored blob; None when it is gone already."""
        store = self._parts.services.blobs
        if store is None or blob_id is None:
            return None
        with suppress(BlobStoreError):
            return await fetch_blob(store, blob_id)
        return None

    async def ask(self, prompt: str, *, on_event: OnEvent = None, **options: Any) -> Trace:
        chosen = TurnOptions(**options)
        return await _on_engine(run_lifecycle.turn(self._parts, check_question(prompt), chosen), on_event)

    async def replay(
        self,
        run: str | int | None = None,
        *,
        model: Any = None,
        from_step: int | None = None,
        approve: str = "ask",
        on_event: OnEvent = None,
    ) -> Trace:
        return await _on_engine(replay.replay(self._parts, run, model, from_step, approve), on_event)


def _several(category: Categories) -> list[str] | None:
    if category is None:
        return None
    return [category] if isinstance(category, str) else list(category)


def _on_engine(coroutine: Coroutine[Any, Any, T], on_event: OnEvent = None) -> Coroutine[Any, Any, T]:
    return ENGINE.awaited(coroutine, on_event)


ROWS = 60


async def explore(parts: Parts, query: str = "") -> CatalogExplorer:
    """Return the explorer of a session's catalog as it is now."""
    snapshot = await parts.catalog.refresh()
    words = str(query).split()
    found = matching(snapshot, words)
    items = [
        {"qualified_name": str(action.name), "short_description": action.short_description}
        for action in found[:ROWS]
    ]
    payload: dict[str, Any] = {"items": items, "total": len(found), "categories": dict(snapshot.counts)}
    # The next page is one of `%reyn list`, whose filter is one text and not several words.
    if len(found) > ROWS and len(words) < 2:
        payload["next_offset"] = ROWS
    if not found:
        payload["hint"] = "No action has all of these words. %reyn explore shows every action."
    rows = action_rows(parts, snapshot, payload)
    filtered = " ".join(words)
    return CatalogExplorer(ActionTable(parts.redactor.value(payload), rows, "list", filtered), filtered)


def matching(snapshot: CatalogSnapshot, words: list[str]) -> list[Action]:
    """Return the actions that have all of these words, without case, in name or short description."""
    if not words:
        return list(snapshot.actions)
    folded = [fold(word) for word in words]
    found = [
        action
        for part in snapshot.visible
        for action, text in zip(part.actions, part.folded, strict=True)
        if all(word in text for word in folded)
    ]
    # What a name says comes before what only a description mentions.
    return sorted(found, key=lambda action: not all(word in fold(str(action.name)) for word in folded))
