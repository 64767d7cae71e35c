"""Suggestions for an unknown name, over a whole snapshot.

Invariant: the work is bounded whatever the number of actions. Comparing by difflib costs some 20 µs a name,
so a large category first gives a shortlist: names that share the rarest pieces of the query, found by
searching one joined text, and the neighbours of the query in the sorted order. Measured at 100,000 actions:
see the benchmarks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

from reyn_jupyter.catalog.names import SEPARATOR, ActionName
from reyn_jupyter.catalog.other_names import known_elsewhere, verbs_meant
from reyn_jupyter.catalog.ranking import LONGEST_QUERY, SUGGESTIONS, SURE, best_score, rank, stems
from reyn_jupyter.catalog.text_normalization import words
from reyn_jupyter.support.text import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reyn_jupyter.catalog.action import Action
    from reyn_jupyter.catalog.snapshot import CatalogSnapshot, CategorySlice

COMPARED_WHOLE = 150  # names of one category that are compared without a shortlist
_SHORTLIST = 120  # names of a larger category
_NEIGHBOURS = 10  # of the query in the sorted order, to each side
_PIECE = 4  # characters
_PIECES = 14  # counted at some 1 ms each in 100,000 names
_PER_PIECE = 40


def suggest(snapshot: CatalogSnapshot, text: str, limit: int = SUGGESTIONS) -> list[str]:
    """Return the nearest names on offer, static ones and live resources alike, best first.

    If the name is one that another agent has for an action here, this action comes first, unless an action has the very
    words of the name. Of a tool of a server, the nearest tools of the nearest server come first.
    """
    query = text.strip()[:LONGEST_QUERY]
    near = _ranked(query, tuple(candidates(snapshot, text)), limit)
    wanted = stems(query)
    if near and wanted in (stems(near[0]), stems(near[0].partition(SEPARATOR)[2])):
        return list(dict.fromkeys((near[0], *_meant(snapshot, query), *near)))[:limit]
    return list(dict.fromkeys((*_meant(snapshot, query), *_in_group(snapshot, query, limit), *near)))[:limit]


def suggest_entries(snapshot: CatalogSnapshot, text: str, limit: int = SUGGESTIONS) -> list[str]:
    """Return the nearest live resources of the category that a qualified name is of, best first."""
    query = text.strip()[:LONGEST_QUERY]
    part = snapshot.slices.get(query.partition(SEPARATOR)[0])
    if part is None or not part.visible:
        return []
    names = part.texts if len(part) <= COMPARED_WHOLE else _shortlist(part, query)
    fixed = snapshot.tables.operations
    entry = stems(query.partition(SEPARATOR)[2])
    live = tuple(name for name in names if name not in fixed)
    same = [name for name in live if stems(name.rpartition(SEPARATOR)[2]) == entry]
    near = _ranked(query, live, limit)
    return list(dict.fromkeys((*same, *_in_group(snapshot, query, limit), *near)))[:limit]


def _in_group(snapshot: CatalogSnapshot, query: str, limit: int) -> list[str]:
    """Return the nearest names of the nearest group: the tools of the server that is meant.

    The category may be missing: a server and a tool are enough, unless a category has the server's name.
    """
    category, _, entry = query.partition(SEPARATOR)
    part = snapshot.slices.get(category)
    if part is None:
        head, tail = category, entry
        groups = next((each.groups for each in snapshot.visible if head in each.groups), {})
    else:
        head, _, tail = entry.partition(SEPARATOR)
        groups = part.groups if part.visible else {}
    if not tail:
        return []
    group = groups.get(head) or groups.get(nearest(head, groups) or "", ())
    by_tail = {name.split(SEPARATOR, 2)[2]: name for name in group[:COMPARED_WHOLE]}
    ranked = rank(tail, by_tail, limit) or list(by_tail)[:limit]
    return [by_tail[each] for each in ranked]


def is_sure(snapshot: CatalogSnapshot, text: str) -> bool:
    """Return whether suggestions for a name need no search: a name known elsewhere, or a typing mistake."""
    query = text.strip()[:LONGEST_QUERY]
    if _meant(snapshot, query) or _in_group(snapshot, query, 1):
        return True
    return best_score(query, suggest(snapshot, text, 1)) >= SURE


def _meant(snapshot: CatalogSnapshot, query: str) -> list[str]:
    """Return the actions on offer that a name from elsewhere means."""
    category, separator, entry = query.partition(SEPARATOR)
    found = []
    if separator:
        found = [f"{category}{SEPARATOR}{meant}" for meant in verbs_meant(entry)]
    if not separator or category not in snapshot.counts:
        found += known_elsewhere(query)
        alias = nearest(query, snapshot.aliases, cutoff=SURE)
        found += [snapshot.aliases[alias].name.text] if alias else []
    return [name for name in found if snapshot.named(name) is not None]


@lru_cache(512)
def _ranked(text: str, names: tuple[str, ...], limit: int) -> tuple[str, ...]:
    """Return the nearest names, cached: weak models make the same mistakes over and over."""
    return tuple(rank(text, names, limit))


def unambiguous(snapshot: CatalogSnapshot, text: str) -> Action | None:
    """Return the one action made of the very words of a near-miss, when it only reads; for `repair`.

    ``file.read`` and ``FileRead`` give the reading action; a name that two actions could mean, or whose action
    would change anything, gives None. A typing mistake is never repaired, only answered with suggestions.
    """
    if len(text) > LONGEST_QUERY:
        return None
    wanted = stems(text)
    same = [name for name in candidates(snapshot, text) if stems(name) == wanted]
    if len(same) != 1:
        return None
    action = snapshot.get(ActionName.parse(same[0]))
    return action if action is not None and action.purity.repeatable else None


def candidates(snapshot: CatalogSnapshot, text: str) -> Iterator[str]:
    """Return the names worth comparing with a text: all of a small category, a shortlist of a large one."""
    query = text.strip()[:LONGEST_QUERY]
    for part in snapshot.visible:
        yield from part.texts if len(part) <= COMPARED_WHOLE else _shortlist(part, query)


def _shortlist(part: CategorySlice, query: str) -> set[str]:
    lines, starts = part.joined
    middle = bisect_left(part.texts, query)
    found = set(part.texts[max(0, middle - _NEIGHBOURS) : middle + _NEIGHBOURS])
    counted = sorted((lines.count(piece), piece) for piece in _pieces(query))
    for count, piece in counted:
        if len(found) >= _SHORTLIST:
            break
        position = -1
        for _ in range(min(count, _PER_PIECE)):
            position = lines.find(piece, position + 1)
            found.add(part.texts[bisect_right(starts, position) - 1])
    return found


def _pieces(query: str) -> list[str]:
    """Return pieces of a query: whole words, the long ones first, then runs of four characters from all over."""
    whole = sorted(dict.fromkeys(words(query)), key=len, reverse=True)
    grams = [
        word[start : start + _PIECE]
        for word in whole
        for start in range(len(word) - _PIECE + 1)
        if len(word) > _PIECE
    ]
    room = max(1, _PIECES - len(whole[: _PIECES // 2]))
    spread = grams[:: max(1, len(grams) // room)][:room]
    return list(dict.fromkeys([*whole[: _PIECES // 2], *spread]))
