"""The catalog as people look through it: every action whose name or short description has all words of a search."""

from __future__ import annotations

from typing import Any

from reyn_jupyter.catalog.action import Action
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.catalog.text import fold
from reyn_jupyter.runtime.results import ActionTable, CatalogExplorer
from reyn_jupyter.sessions.rows import action_rows
from reyn_jupyter.sessions.wiring import Parts

ROWS = 60


async def explore(parts: Parts, query: str = "") -> CatalogExplorer:
    """The explorer of a session's catalog as it is now."""
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
    """The actions that have all of these words, without case, in name or short description."""
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
