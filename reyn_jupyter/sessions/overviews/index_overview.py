"""The index of actions, for people: its state, building it, clearing it."""

from __future__ import annotations

from collections.abc import Callable

from reyn_jupyter.runtime.engine import publisher
from reyn_jupyter.search.index_state import BuildProgress, IndexState
from reyn_jupyter.sessions.assembly import Parts, keep_out_of_git
from reyn_jupyter.sessions.result_objects import Card

BUILD = "%reyn embeddings build"
TRY = '%reyn search "group and count rows"'
_MB = 1_000_000


async def status(parts: Parts) -> Card:
    """Return the card of `%reyn embeddings status`, after a look through the catalog as it is now."""
    await parts.search.look(await parts.catalog.refresh())
    return card(parts.search.state())


async def build(parts: Parts) -> Card:
    """Give every action a vector; progress is published as it comes.

    Raises:
        EmbeddingClassError, IndexStoreError, ModelError: as `ActionEmbeddingIndex.build`.
    """
    snapshot = await parts.catalog.refresh()
    tell: Callable[[BuildProgress], None] = publisher() or (lambda progress: None)
    added = await parts.search.build(snapshot, tell)
    keep_out_of_git(parts.root)
    made = card(parts.search.state(), f"Built: {added:,} new vectors" if added else "Nothing was missing")
    return Card(made.kind, made.title, made.facts, made.sections, made.tries, {**made.data, "added": added})


async def clear(parts: Parts) -> Card:
    """Drop every vector. Raises IndexStoreError."""
    count = await parts.search.clear()
    facts = (
        ("dropped", f"{count:,} vectors"),
        ("now", "search goes by words until the index is built again"),
    )
    return Card("embeddings", "The index of actions is empty", facts, (), (BUILD,), {"dropped": count})


def card(state: IndexState, title: str = "Search by meaning") -> Card:
    """Return the state of the index as a card."""
    resolved = state.resolved
    facts = [("class", _class(state)), ("model", resolved.model or "none")]
    if resolved.in_force is not None:
        facts.append(("served by", state.served_by))
        facts.append(("index", _index(state)))
        facts.append(("kept in", _place(state)))
    facts.append(("models", _models(state)))
    facts.append(
        (
            "people",
            "%reyn search ranks by words and meaning" if state.vectors else "%reyn search ranks by words",
        )
    )
    if state.spent is not None and state.spent.requests:
        price = f"${state.spent.cost:.4f}" if state.spent.cost is not None else "price not known"
        facts.append(
            ("spent", f"{state.spent.tokens:,} tokens in {state.spent.requests:,} requests, {price}")
        )
    sections = (("Notes", state.notes),) if state.notes else ()
    tries = (TRY,) if state.vectors else (BUILD, TRY) if resolved.in_force else (TRY,)
    data = {
        "kind": resolved.kind,
        "vectors": state.vectors,
        "actions": state.actions,
        "served_by": state.served_by,
        "place": state.place,
    }
    return Card("embeddings", title, tuple(facts), sections, tries, data)


def line(state: IndexState) -> str:
    """Return the state of the index in one line."""
    if state.resolved.in_force is None:
        return f"by words: {state.resolved.reason}. {state.resolved.hint}"
    return f"class {state.resolved.name}, {state.served_by}; {_index(state)}"


def _class(state: IndexState) -> str:
    resolved = state.resolved
    if resolved.kind == "off":
        return "null (opted out)"
    if resolved.in_force is None:
        return f"{resolved.name}: {resolved.reason}. To change that: {resolved.hint}"
    paid = ", of a provider: built only by %reyn embeddings build" if state.is_remote else ""
    return f"{resolved.name}{paid}"


def _index(state: IndexState) -> str:
    counted = (
        f"{state.vectors:,} of {state.actions:,} actions have a vector"
        if state.actions
        else "not looked at yet"
    )
    if state.building is not None:
        return f"{counted}; building: {state.building}"
    if state.holder is not None:
        return f"{counted}; being built by {state.holder}"
    return counted


def _place(state: IndexState) -> str:
    return f"{state.place} ({state.size / _MB:.1f} MB)" if state.size else state.place


def _models(state: IndexState) -> str:
    if not state.offered:
        return "use list_actions; search_actions is hidden until an action has a vector"
    return "are offered search_actions from the start of a conversation on"
