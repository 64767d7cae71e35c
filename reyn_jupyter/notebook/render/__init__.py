"""The rendering of objects for people: one view model, drawn as static HTML and as text.

Everything is imported on first use, so that loading the extension costs nothing here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reyn_jupyter.notebook.render.blocks import View
    from reyn_jupyter.notebook.render.displayables import view
    from reyn_jupyter.notebook.render.hosts.html import to_html
    from reyn_jupyter.notebook.render.hosts.plain_text import to_text

__all__ = ["View", "to_html", "to_text", "view"]

_HOMES = {
    "View": "blocks",
    "to_html": "hosts.html",
    "to_text": "hosts.plain_text",
    "view": "displayables",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
