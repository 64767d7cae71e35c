"""Predicates of what is offered now, and the category that a guessed name was after, for a gate that answers it.

Invariant: the predicates are pure, over the *resolved* environment, never over a configured string, and are
enforced when listing, describing and invoking alike. Source: Universal Action Catalog (FP-0034), visibility
gating.
"""

from __future__ import annotations

import re

from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.catalog.suggest import suggest
from reyn_jupyter.catalog.taxonomy import REDIRECTS

NO_SANDBOX = frozenset({"", "noop", "none"})


def is_search_available(embedding_class: str | None, vectors: int, *, local: bool = False) -> bool:
    """Return whether models are offered search by meaning: a class is in force, and its vectors exist or can be made.

    Args:
        embedding_class: the class in force, None where there is none.
        vectors: actions on offer that have a vector.
        local: whether this machine makes missing vectors by itself. They are made by the time a search is answered,
            so how fast it embeds does not change which tools a model is offered.

    >>> is_search_available("local-mini", 0, local=True), is_search_available("light", 0)
    (True, False)
    """
    return embedding_class is not None and (local or vectors > 0)


def is_exec_available(resolved_backend: str | None) -> bool:
    """Return whether commands may be offered: a real sandbox was found. ``noop`` is none.

    >>> is_exec_available("bubblewrap"), is_exec_available("noop"), is_exec_available(None)
    (True, False, False)
    """
    return resolved_backend is not None and resolved_backend.strip().lower() not in NO_SANDBOX


def search_hint(
    reason: str = "no embedding class is in force", *, install: str = "", hint: str = ""
) -> dict[str, str]:
    """Return why search by meaning is hidden and how to get it, for one listing a conversation.

    Args:
        reason: the cause, as the end of a sentence.
        install: the line that installs what is missing; "" where nothing is.
        hint: what else to do about it.
    """
    remedies = {"install": install, "hint": hint}
    return {
        "reason": f"Search by meaning is off: {reason}.",
        **{key: remedy for key, remedy in remedies.items() if remedy},
        "status": "%reyn embeddings status",
    }


_LONGEST = 200  # characters of a guess that are looked at


def nearest_category(snapshot: CatalogSnapshot, guess: str) -> str | None:
    """Return the category on offer that a guessed action name is nearest to, or None where nothing is near.

    >>> from reyn_jupyter.catalog.snapshot import CatalogSnapshot
    >>> nearest_category(CatalogSnapshot.build([], {}), "file.write") is None
    True
    """
    text = guess[:_LONGEST].strip().lower()
    on_offer = set(snapshot.category_names)
    for candidate in (text.partition("__")[0], text.rpartition(".")[0], re.split(r"[^a-z]", text)[0]):
        live = REDIRECTS.get(candidate, candidate)
        if live in on_offer:
            return live
    close = suggest(snapshot, guess[:_LONGEST])
    return ActionName.parse(close[0]).category if close else None
