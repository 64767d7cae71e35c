"""Browsing the catalog: `list_actions` and `describe_action`, with exactly the shapes that a model and a
person get.

Invariant: without a filter, a page costs O(page), however many actions there are; paging through shows every matching
action exactly once, in the order of the names (where it is asked for, those that only read before all others); nothing
is raised for a wrong argument, it is answered. Sources: Universal Action Catalog (FP-0034), the wrappers; tool-output
design for the 8 KiB of a page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.discovery.listing_filter import (
    InvalidListingError,
    as_count,
    as_filter,
    select_categories,
)
from reyn_jupyter.catalog.resolve import UnknownActionError, find
from reyn_jupyter.catalog.size_budget import ANSWER_BYTES, encoded_size, shortened
from reyn_jupyter.catalog.suggest import suggest
from reyn_jupyter.catalog.text_normalization import fold, quoted
from reyn_jupyter.support.text import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from reyn_jupyter.catalog.action import Action
    from reyn_jupyter.catalog.names import ActionName
    from reyn_jupyter.catalog.snapshot import CatalogSnapshot, CategorySlice

LIMIT = 20
LARGEST_LIMIT = 100
_REMARKS = 400  # bytes kept free for next_offset and the note


def list_actions(
    snapshot: CatalogSnapshot,
    category: object = None,
    filter: object = None,  # noqa: A002 - the wrapper's own argument
    offset: object = 0,
    limit: object = LIMIT,
    *,
    schemas: bool = True,
    reads_first: bool = False,
    most: int = LARGEST_LIMIT,
    hint: dict[str, str] | None = None,
    answer_bytes: int = ANSWER_BYTES,
) -> dict[str, Any]:
    """Return one page of the catalog, by name.

    Args:
        category: category names; None or [] means every one on offer. Given any, each item is the full triple.
        filter: a text to be found in name or short description; case, and `-`, `_` and space, make no difference.
        offset: actions to skip.
        limit: actions at most, 1 to 100.
        schemas: False keeps descriptions and schemas out of narrowed listings too.
        reads_first: actions that only read come before all others.
        most: actions of one page, whatever `limit` asks for.
        hint: why search by meaning is hidden, to be carried once a conversation.
        answer_bytes: bytes of the whole answer; a page that would pass them is shortened.

    Returns:
        ``{items, total, categories}``, ``next_offset`` when more follows, ``note`` when the page was shortened; with
        no hit ``suggestions`` and ``hint``; with a wrong argument ``{error, …, hint}``.
    """
    try:
        parts = select_categories(snapshot, category)
        needle = as_filter(filter)
        start = as_count("offset", offset, 0, smallest=0)
        asked = as_count("limit", limit, LIMIT, smallest=1)
    except InvalidListingError as error:
        return error.payload
    folded = None if needle is None else fold(needle)
    hits = None if folded is None else {part.category.name: _matching(part, folded) for part in parts}
    counts = {part.category.name: len(part) for part in parts}
    if hits is not None:
        counts = {name: len(found) for name, found in hits.items() if found}
    answer: dict[str, Any] = {"items": [], "total": sum(counts.values())}
    after: dict[str, Any] = {"categories": {name: counts[name] for name in snapshot.counts if name in counts}}
    if hint is not None:
        after["search_hint"] = hint
    if needle is not None and not answer["total"]:
        return {**answer, **after, **_no_hits(snapshot, needle)}
    face = triple if schemas and category else _brief
    ranges = _ranges(parts, hits, reads_first)
    faces = (face(action) for action in _window(ranges, start, min(asked, most, LARGEST_LIMIT)))
    items, cut = fitting(faces, answer_bytes - encoded_size({**answer, **after}) - _REMARKS)
    answer["items"] = items
    if items and start + len(items) < answer["total"]:
        answer["next_offset"] = start + len(items)
    if note := _note(answer, start, asked, answer_bytes if cut else None):
        after["note"] = note
    return {**answer, **after}


def describe_action(
    snapshot: CatalogSnapshot, name: ActionName | str, *, answer_bytes: int = ANSWER_BYTES
) -> dict[str, Any]:
    """Return ``{qualified_name, description, input_schema, metadata}`` of an action, or the answer to a wrong name."""
    try:
        action = find(snapshot, name)
    except UnknownActionError as error:
        return error.payload
    metadata = {
        "target_tool_name": action.target_tool_name,
        "category": action.name.category,
        "purity": str(action.purity),
        "canonical_default": action.canonical_default,
    }
    return shortened({**triple(action), "metadata": metadata}, answer_bytes)


def triple(action: Action) -> dict[str, Any]:
    """Return an action as it is chosen and invoked: name, description, input schema."""
    return {
        "qualified_name": action.name.text,
        "description": action.description,
        "input_schema": action.input_schema,
    }


def _brief(action: Action) -> dict[str, Any]:
    return {"qualified_name": action.name.text, "short_description": action.short_description}


def _matching(part: CategorySlice, needle: str) -> list[int]:
    if "\n" in needle:  # it parts name and description, and stands in neither
        return []
    return [position for position, folded in enumerate(part.folded) if needle in folded]


def _ranges(
    parts: Sequence[CategorySlice], hits: Mapping[str, Sequence[int]] | None, reads_first: bool
) -> list[tuple[CategorySlice, Sequence[int]]]:
    """Return which actions of which category follow each other."""
    ranges: list[tuple[CategorySlice, Sequence[int]]] = []
    for risky in (False, True) if reads_first else (None,):
        for part in parts:
            positions: Sequence[int] = range(len(part)) if risky is None else part.by_risk[risky]
            if hits is not None:
                found = set(hits[part.category.name])
                positions = [position for position in positions if position in found]
            ranges.append((part, positions))
    return ranges


def _window(
    ranges: Iterable[tuple[CategorySlice, Sequence[int]]], offset: int, count: int
) -> Iterator[Action]:
    for part, positions in ranges:
        if offset >= len(positions):
            offset -= len(positions)
            continue
        page = positions[offset : offset + count]
        yield from (part.actions[position] for position in page)
        count -= len(page)
        offset = 0
        if count <= 0:
            return


def fitting(faces: Iterator[dict[str, Any]], room: int) -> tuple[list[dict[str, Any]], bool]:
    """Return as many faces as fit in `room` bytes, at least one, and whether any was left out."""
    items: list[dict[str, Any]] = []
    for face in faces:
        size = encoded_size(face) + 1
        if size > room:
            if not items and "input_schema" in face:
                items.append(shortened(face, room))
                return items, next(faces, None) is not None
            if items:
                return items, True
        items.append(face)
        room -= size
    return items, False


def _note(answer: dict[str, Any], start: int, asked: int, bytes_that_cut: int | None) -> str | None:
    shown, total = len(answer["items"]), answer["total"]
    if bytes_that_cut is not None:
        return (
            f"This page holds {shown} actions, to stay within {bytes_that_cut:,} bytes; "
            f"go on with offset={start + shown}."
        )
    if not total:
        return "There is no action here now."
    if not shown:
        return f"offset {start} is past the end: there are {total:,} actions."
    return f"limit is at most {LARGEST_LIMIT}." if asked > LARGEST_LIMIT else None


def _no_hits(snapshot: CatalogSnapshot, needle: str) -> dict[str, Any]:
    folded = fold(needle)
    named = next((name for name in snapshot.category_names if fold(name) == folded), None)
    named = named or nearest(needle, snapshot.category_names)
    hint = "filter is a part of an action's name or short description, never a path or a value. "
    if named is not None:
        hint += f'For the category {quoted(named)} use list_actions(category=["{named}"]) without a filter.'
    else:
        hint += "Use list_actions(category=[...]) without a filter to see what a category holds."
    return {"suggestions": suggest(snapshot, needle), "hint": hint}
