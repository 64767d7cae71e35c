"""What people see of an object: one view model, drawn as static HTML and as text.

Everything is imported on first use, so that loading the extension costs nothing here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reyn_jupyter.notebook.render.as_html import to_html
    from reyn_jupyter.notebook.render.as_text import to_text
    from reyn_jupyter.notebook.render.display import mimebundle, view
    from reyn_jupyter.notebook.render.formatters import register
    from reyn_jupyter.notebook.render.model import View

__all__ = ["View", "mimebundle", "register", "to_html", "to_text", "view"]

_HOMES = {
    "View": "model",
    "mimebundle": "display",
    "register": "formatters",
    "to_html": "as_html",
    "to_text": "as_text",
    "view": "display",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
