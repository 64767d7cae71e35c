"""Which category a guessed name was after, for a gate that answers a guess with a listing."""

from __future__ import annotations

import re

from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.catalog.suggest import suggest
from reyn_jupyter.catalog.taxonomy import REDIRECTS

_LONGEST = 200  # characters of a guess that are looked at


def nearest_category(snapshot: CatalogSnapshot, guess: str) -> str | None:
    """The category on offer that a guessed action name is nearest to, or None where nothing is near.

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
