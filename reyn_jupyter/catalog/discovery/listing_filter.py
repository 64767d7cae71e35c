"""The arguments of a listing or a search: categories, filter, offset and limit, checked.

Invariant: an argument in any shape is read, or answered with what is accepted; nothing else is raised. A
text for a list of one, or a number as text, has exactly one reading and is read. Source of the redirects in
the answer: Universal Action Catalog (FP-0034), category validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.arguments.argument_repair import read_json
from reyn_jupyter.catalog.taxonomy import REDIRECTS, TAXONOMY, nearest_category_name
from reyn_jupyter.catalog.text_normalization import quoted
from reyn_jupyter.support.encoding import clip_line

if TYPE_CHECKING:
    from reyn_jupyter.catalog.snapshot import CatalogSnapshot, CategorySlice

LARGEST_COUNT = 2**53
LONGEST_FILTER = 1_000  # characters
_NAMED = 5  # wrong names that an answer quotes


class InvalidListingError(ValueError):
    """An argument that cannot be read. `payload` is the answer."""

    def __init__(self, payload: dict[str, Any]) -> None:
        super().__init__(payload["error"])
        self.payload = payload


def select_categories(snapshot: CatalogSnapshot, category: object) -> tuple[CategorySlice, ...]:
    """Return the slices of the given categories, in the order of names; all on offer for None or an empty list.

    Raises:
        InvalidListingError: for an unknown, stale, hidden or absent category:
            ``{error, valid_categories, redirects, hint}``; for another type than a list of texts likewise.
    """
    if category is None:
        return snapshot.visible
    given = category
    if isinstance(category, str):
        decoded = read_json(category)
        given = decoded if isinstance(decoded, list) else [category]
    if not isinstance(given, (list, tuple)) or not all(isinstance(name, str) for name in given):
        raise _category_error(snapshot, "category must be a list of category names", {})
    wanted = {name.strip() for name in given}
    wrong = sorted(wanted - snapshot.counts.keys())
    if wrong:
        redirects = {name: REDIRECTS[name] for name in wrong if name in REDIRECTS}
        told = "; ".join(_fault(snapshot, name) for name in wrong[:_NAMED])
        raise _category_error(snapshot, told, redirects)
    return tuple(part for part in snapshot.visible if not wanted or part.category.name in wanted)


def _fault(snapshot: CatalogSnapshot, name: str) -> str:
    if name in snapshot.slices:
        return f"Category {quoted(name)} is not available in this session"
    if name in REDIRECTS:
        live = REDIRECTS[name]
        state = "" if live in snapshot.counts else ", which is not installed in this session"
        return f"Category {quoted(name)} is out of date; it is now {quoted(live)}{state}"
    if name in TAXONOMY:
        return f"Category {quoted(name)} is known but not installed in this session"
    told, near = f"Unknown category {quoted(name)}", nearest_category_name(name, snapshot.category_names)
    if near is None:
        return told
    known = "" if near in snapshot.counts else ", which is not available in this session"
    return f"{told}; the nearest is {quoted(near)}{known}"


def _category_error(snapshot: CatalogSnapshot, error: str, redirects: dict[str, str]) -> InvalidListingError:
    return InvalidListingError(
        {
            "error": error,
            "valid_categories": list(snapshot.category_names),
            "redirects": redirects,
            "hint": "Call again with names from valid_categories, or without category for all of them.",
        }
    )


def as_filter(value: object) -> str | None:
    """Return the text to look for, stripped of blanks; None when nothing is filtered. Raises InvalidListingError."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise _argument_error("filter", f"must be a text, not {type(value).__name__}")
    if len(value) > LONGEST_FILTER:
        raise _argument_error(
            "filter", f"is longer than {LONGEST_FILTER:,} characters ({clip_line(value, 40)})"
        )
    return value.strip() or None


def as_count(name: str, value: object, default: int, *, smallest: int) -> int:
    """Read a whole number from `smallest` on; None gives the default. Raises InvalidListingError."""
    if value is None:
        return default
    number: object = value
    if (isinstance(value, str) and len(value) < 20 and value.strip().isdecimal()) or (
        isinstance(value, float) and value.is_integer()
    ):
        number = int(value)
    if not isinstance(number, int) or isinstance(number, bool):
        raise _argument_error(name, "must be a whole number")
    if not smallest <= number <= LARGEST_COUNT:
        raise _argument_error(name, f"must be {smallest} or more, and at most {LARGEST_COUNT}")
    return number


def _argument_error(name: str, message: str) -> InvalidListingError:
    return InvalidListingError(
        {
            "error": f"{name} {message}",
            "invalid": [{"path": f"/{name}", "message": message}],
            "hint": "Call again with category as a list of names, filter as a text, offset from 0 and limit 1 to 100.",
        }
    )
