"""Add what a search by words finds to the answer to an unknown name.

Invariant: the search is the same with and without an embedder, so that a recorded run can be replayed. Only the
suggestions change, and they are names on offer. Nothing is run. If the search fails or is slow, the answer stays as it
was.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from reyn_jupyter.catalog.names import SEPARATOR
from reyn_jupyter.catalog.ranking import LONGEST_QUERY, SUGGESTIONS
from reyn_jupyter.catalog.suggest import is_sure
from reyn_jupyter.catalog.text_normalization import words

if TYPE_CHECKING:
    from reyn_jupyter.catalog.resolve import UnknownActionError
    from reyn_jupyter.catalog.snapshot import CatalogSnapshot
    from reyn_jupyter.runtime.services import Services

SEARCH_SECONDS = 3.0


def needs_search(
    error: UnknownActionError, snapshot: CatalogSnapshot, name: object, services: Services
) -> bool:
    """Return whether no action is surely meant by a name, and a search may find one."""
    if services.search is None or error.problem == "hidden" or not isinstance(name, str):
        return False
    return name.strip() not in snapshot.counts and not is_sure(snapshot, name)


async def with_found(
    error: UnknownActionError, snapshot: CatalogSnapshot, name: str, services: Services
) -> UnknownActionError:
    """Return the error with the actions that a search finds for the words of a name.

    If the name begins with a category on offer, its nearest names stay first.
    """
    found = await _found(snapshot, name, services)
    near = error.payload["suggestions"]
    names = (*near, *found) if name.partition(SEPARATOR)[0].strip() in snapshot.counts else (*found, *near)
    return error.suggesting(list(dict.fromkeys(names))[:SUGGESTIONS])


async def _found(snapshot: CatalogSnapshot, name: str, services: Services) -> list[str]:
    query = services.redactor.text(" ".join(words(name[:LONGEST_QUERY])))
    if services.search is None or not query:
        return []
    try:
        async with asyncio.timeout(SEARCH_SECONDS):
            found = await services.search.find(snapshot, query, SUGGESTIONS, by_words=True)
    except Exception:  # noqa: BLE001 - whatever fails in a search, the suggestions stand without it
        return []
    return [] if found.weak else [action.name.text for action, _ in found.hits]
