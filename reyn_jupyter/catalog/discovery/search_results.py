"""The results of a search, in the shape that a model and a person get.

Invariant: the best hit stands first and is always shown, shortened when it must be; the answer stays within its
bytes, and says so when that left hits out; what only came nearest is never given out as a fit. Source: Universal
Action Catalog (FP-0034), `search_actions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.catalog.discovery.listing import fitting, triple
from reyn_jupyter.catalog.discovery.listing_filter import InvalidListingError
from reyn_jupyter.catalog.size_budget import ANSWER_BYTES, encoded_size

if TYPE_CHECKING:
    from reyn_jupyter.catalog.action import Action

SEARCH_LIMIT = 10
_REMARK = 250  # bytes kept free for the note of a shortened page
NOTHING = "No action has these words. Use others, or list_actions to see every action."
NOT_HERE = (
    "Nothing here fits. List one of nearest_categories with list_actions, or say that nothing here does it."
)
WEAK = (
    "None of these is a clear fit. Check the descriptions, list one of nearest_categories with list_actions, or say "
    "that nothing here does it."
)


@dataclass(frozen=True)
class Found:
    """The outcome of one search.

    Attributes:
        hits: actions with their scores, best first.
        weak: whether even the best is no clear answer.
        nearest_categories: where to look instead, for a weak one.
        ranking: what ranked them: words alone, or words and meaning.
        note: what to know of how it was ranked, in words; empty where all went as usual.
    """

    hits: tuple[tuple[Action, float], ...]
    weak: bool = False
    nearest_categories: tuple[str, ...] = ()
    ranking: Literal["lexical", "hybrid"] = "lexical"
    note: str = ""


def search_answer(found: Found, answer_bytes: int = ANSWER_BYTES) -> dict[str, Any]:
    """Return ``{items: [{qualified_name, description, input_schema, score}], total}`` and, for a weak answer,
    ``weak, nearest_categories, hint``; `note` where something is to be known of how it was ranked, or the bytes of
    an answer left hits out.

    Args:
        answer_bytes: bytes of the whole answer.

    >>> search_answer(Found(()))["items"]
    []
    """
    answer: dict[str, Any] = {"items": [], "total": len(found.hits)}
    after: dict[str, Any] = {}
    if found.weak and (found.hits or found.nearest_categories):
        near = list(found.nearest_categories)
        after = {"weak": True, "nearest_categories": near, "hint": WEAK if found.hits else NOT_HERE}
    elif not found.hits:
        after["hint"] = NOTHING
    if found.note:
        after["note"] = found.note
    faces = ({**triple(action), "score": round(float(score), 4)} for action, score in found.hits)
    room = answer_bytes - encoded_size({**answer, **after}) - _REMARK
    answer["items"], cut = fitting(faces, room)
    if cut:
        counted = f"The best {len(answer['items'])} of {len(found.hits)} are shown"
        after["note"] = f"{counted}, to stay within {answer_bytes:,} bytes. {found.note}".rstrip()
    return {**answer, **after}


def as_query(query: object) -> str:
    """Read the words to look for.

    Raises:
        InvalidListingError: no text, or an empty one.
    """
    if isinstance(query, str) and query.strip():
        return query
    message = "must be a text with at least one word"
    raise InvalidListingError(
        {
            "error": f"query {message}",
            "invalid": [{"path": "/query", "message": message}],
            "hint": "Say what you want to do, or use list_actions to see every action.",
        }
    )
