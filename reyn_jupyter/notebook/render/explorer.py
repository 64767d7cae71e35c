"""The catalog explorer where nothing is live: the table of its first actions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reyn_jupyter.notebook.render.actions import action_table
from reyn_jupyter.notebook.render.model import View
from reyn_jupyter.notebook.render.untrusted import Look

if TYPE_CHECKING:
    from reyn_jupyter.runtime.results import CatalogExplorer


def explorer_view(shown: CatalogExplorer, look: Look) -> View:
    """The first actions of the catalog, those with all words of the query where there is one."""
    table = action_table(shown.table, look)
    title = f"Catalog: “{look.line(shown.query, 80)}”" if shown.query else "Catalog"
    return replace(table, title=title)
