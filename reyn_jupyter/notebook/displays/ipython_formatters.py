"""Formatters for the session's objects in an IPython shell.

One formatter makes one view and from it every representation; a terminal asks for text alone and gets no more. Types
are named, not imported, so that loading the extension costs nothing here. Registering again replaces. Secrets of the
environment are taken out of every display: it is saved with the notebook.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reyn_jupyter.notebook.render.displayables import DISPLAYABLES, Displayable, view

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def register(ip: InteractiveShell, redact: Callable[[str], str] | None = None) -> None:
    """Show the session's objects richly in this shell; safe to call again.

    Args:
        redact: takes secrets out of every text before it is shown; the environment's when None.
    """

    def everything(shown: Any, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from reyn_jupyter.notebook.render.hosts.plain_text import to_text
        from reyn_jupyter.support.secrets import environment_redaction

        made = view(shown, redact=redact or environment_redaction())
        if not ip.display_formatter.formatters["text/html"].enabled:
            return {"text/plain": to_text(made)}
        from reyn_jupyter.notebook.displays.mimebundle import display_bundle

        return display_bundle(ip, shown, made)

    def text(shown: Any, printer: Any, cycle: bool) -> None:
        from reyn_jupyter.notebook.render.hosts.plain_text import to_text
        from reyn_jupyter.support.secrets import environment_redaction

        printer.text(to_text(view(shown, redact=redact or environment_redaction())))

    # Text by itself is for an object inside a list or a dict.
    text_formatter = ip.display_formatter.formatters["text/plain"]
    both = (
        (ip.display_formatter.mimebundle_formatter, everything, ("everywhere", "output")),
        (text_formatter, text, ("everywhere",)),
    )
    for formatter, draw, scopes in both:
        for kind in DISPLAYABLES:
            if kind.scope in scopes:
                display_by_name(formatter, kind, draw)


def display_by_name(formatter: Any, kind: Displayable, draw: Callable[..., Any]) -> None:
    """Let an IPython formatter draw a type that need not be imported yet."""
    # A type that was shown before is kept by its class, and would win over a new entry by name.
    formatter.pop(f"{kind.module}.{kind.name}", None)
    formatter.for_type_by_name(kind.module, kind.name, draw)
