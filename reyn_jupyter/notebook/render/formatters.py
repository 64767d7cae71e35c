"""Formatters for the session's objects in an IPython shell.

One formatter makes one view and from it every representation; a terminal asks for text alone and gets no more. Types
are named, not imported, so that loading the extension costs nothing here. Registering again replaces. Secrets of the
environment are taken out of every display: it is saved with the notebook.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reyn_jupyter.support.secrets import environment_redaction

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

TYPES: tuple[tuple[str, str], ...] = (
    *(
        ("reyn_jupyter.runtime.results", name)
        for name in ("ActionTable", "CatalogExplorer", "ActionCard", "Result", "Inspection", "Table", "Card")
    ),
    ("reyn_jupyter.runtime.trace", "Trace"),
    ("reyn_jupyter.runtime.compare", "RunDiff"),
    ("reyn_jupyter.runtime.script", "Script"),
    ("reyn_jupyter.outputs.blob", "Blob"),
    ("reyn_jupyter.sessions.background", "BackgroundRun"),
    ("reyn_jupyter.evaluation.report", "Report"),
    ("reyn_jupyter.evaluation.comparison", "Comparison"),
    ("reyn_jupyter.evaluation.recommend", "Recommendation"),
    ("reyn_jupyter.evaluation.study", "Study"),
    ("reyn_jupyter.evaluation.study_plan", "StudyPlan"),
    ("reyn_jupyter.evaluation.progress", "RunSummary"),
    ("reyn_jupyter.evaluation.trials", "TrialTable"),
    ("reyn_jupyter.evaluation.trials", "TrialView"),
)

# Values that people keep in lists and mappings, where one line each is better.
VALUES: tuple[tuple[str, str], ...] = (
    ("reyn_jupyter.evaluation.suite", "Suite"),
    ("reyn_jupyter.evaluation.scenario", "Scenario"),
    ("reyn_jupyter.evaluation.variant", "Variant"),
    ("reyn_jupyter.evaluation.catalogs", "Catalog"),
    ("reyn_jupyter.evaluation.budget", "Budget"),
)


def register(ip: InteractiveShell, redact: Callable[[str], str] | None = None) -> None:
    """Show the session's objects richly in this shell; safe to call again.

    Args:
        redact: takes secrets out of every text before it is shown; the environment's when None.
    """

    def everything(shown: Any, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from reyn_jupyter.notebook.render.as_text import to_text
        from reyn_jupyter.notebook.render.display import view

        made = view(shown, redact=redact or environment_redaction())
        if not ip.display_formatter.formatters["text/html"].enabled:
            return {"text/plain": to_text(made)}
        from reyn_jupyter.notebook.shown import shown_bundle

        return shown_bundle(ip, shown, made)

    def text(shown: Any, printer: Any, cycle: bool) -> None:
        from reyn_jupyter.notebook.render.as_text import to_text
        from reyn_jupyter.notebook.render.display import view

        printer.text(to_text(view(shown, redact=redact or environment_redaction())))

    # Text by itself is for an object inside a list or a dict.
    text_formatter = ip.display_formatter.formatters["text/plain"]
    both = (
        (ip.display_formatter.mimebundle_formatter, everything, TYPES + VALUES),
        (text_formatter, text, TYPES),
    )
    for formatter, draw, types in both:
        for module, name in types:
            # A type that was shown before is kept by its class, and would win over a new entry by name.
            formatter.pop(f"{module}.{name}", None)
            formatter.for_type_by_name(module, name, draw)
