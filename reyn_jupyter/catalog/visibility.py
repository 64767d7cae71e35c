"""What is offered now: pure predicates over the *resolved* environment, never over a configured string.

They are enforced when listing, describing and invoking alike. Source: Universal Action Catalog (FP-0034),
visibility gating.
"""

from __future__ import annotations

NO_SANDBOX = frozenset({"", "noop", "none"})


def is_search_available(vectors: int, embedding_class: str | None) -> bool:
    """Whether search by meaning is offered: a class is in force and at least one action has a vector."""
    return embedding_class is not None and vectors > 0


def is_exec_available(resolved_backend: str | None) -> bool:
    """Whether commands may be offered: a real sandbox was found. ``noop`` is none.

    >>> is_exec_available("bubblewrap"), is_exec_available("noop"), is_exec_available(None)
    (True, False, False)
    """
    return resolved_backend is not None and resolved_backend.strip().lower() not in NO_SANDBOX


def search_hint(vectors: int, embedding_class: str | None, state: str = "") -> dict[str, str] | None:
    """Why search by meaning is hidden and how to get it, for one listing a conversation; None when it is offered.

    Args:
        vectors: actions on offer that have a vector.
        embedding_class: the class in force, None where there is none.
        state: what is known of why, in words.
    """
    if is_search_available(vectors, embedding_class):
        return None
    why = state or (
        "no embedding class is in force"
        if embedding_class is None
        else f"the index of class '{embedding_class}' holds no action yet"
    )
    return {
        "reason": f"Search by meaning is off: {why}.",
        "install": "pip install 'reyn-jupyter[local-embed]'",
        "status": "%reyn embeddings status",
    }
