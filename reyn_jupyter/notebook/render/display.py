"""From an object to what is shown: one view, in every representation that a host may want."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.notebook.render.actions import action_card, action_table
from reyn_jupyter.notebook.render.as_html import to_html
from reyn_jupyter.notebook.render.as_snapshot import to_snapshot
from reyn_jupyter.notebook.render.as_text import to_text
from reyn_jupyter.notebook.render.comparing import diff_view
from reyn_jupyter.notebook.render.explorer import explorer_view
from reyn_jupyter.notebook.render.model import View
from reyn_jupyter.notebook.render.running import background_view, script_view
from reyn_jupyter.notebook.render.stored import blob_view, inspection_view, previous_bytes, result_view
from reyn_jupyter.notebook.render.tables import card, table
from reyn_jupyter.notebook.render.traces import STOP, trace_view
from reyn_jupyter.notebook.render.untrusted import Look
from reyn_jupyter.outputs.blob import Blob
from reyn_jupyter.runtime.compare import RunDiff
from reyn_jupyter.runtime.results import (
    ActionCard,
    ActionTable,
    Card,
    CatalogExplorer,
    Inspection,
    Result,
    Table,
)
from reyn_jupyter.runtime.script import Script
from reyn_jupyter.runtime.trace import Trace
from reyn_jupyter.sessions.background import BackgroundRun

if TYPE_CHECKING:
    from reyn_jupyter.notebook.serving.protocol import Live


def view(
    shown: object,
    *,
    tail: str | None = None,
    redact: Callable[[str], str] | None = None,
    now: float | None = None,
    stop: str = STOP,
) -> View:
    """The view of any object that the session returns.

    Args:
        tail: for a live trace, the text that streams in ("" when there is none yet); None for anything else.
        redact: takes secrets out of a text; every text passes it before it is cut to size.
        now: seconds since the epoch, for relative times.
        stop: for a live trace, how to stop it.

    Raises:
        TypeError: the object is none of the session's.
    """
    look = Look(time.time() if now is None else now, redact)
    if isinstance(shown, Trace):
        return trace_view(shown, look, tail, previous_bytes(shown), stop)
    for kind, draw in _VIEWS:
        if isinstance(shown, kind):
            return draw(shown, look)
    kind = type(shown)
    drawing = _STUDIES.get(f"{kind.__module__}.{kind.__qualname__}")
    if drawing is None:
        raise TypeError(
            f"{kind.__name__} is nothing that the session or a study returns; there is no view of it"
        )
    draw = getattr(import_module(f"reyn_jupyter.notebook.render.{drawing[0]}"), drawing[1])
    made: View = draw(shown, look)
    return made


_VIEWS: tuple[tuple[type, Callable[[Any, Look], View]], ...] = (
    (ActionTable, action_table),
    (CatalogExplorer, explorer_view),
    (ActionCard, action_card),
    (Result, result_view),
    (Inspection, inspection_view),
    (Blob, blob_view),
    (RunDiff, diff_view),
    (Table, table),
    (Card, card),
    (Script, script_view),
    (BackgroundRun, background_view),
)

# Types of studies by name, since importing them brings numpy: (module, function) of this package.
_EVALUATION = "reyn_jupyter.evaluation"
_STUDIES: dict[str, tuple[str, str]] = {
    f"{_EVALUATION}.report.Report": ("studies", "report_view"),
    f"{_EVALUATION}.comparison.Comparison": ("comparisons", "comparison_view"),
    f"{_EVALUATION}.recommend.Recommendation": ("comparisons", "recommendation_view"),
    f"{_EVALUATION}.study.Study": ("study_runs", "study_view"),
    f"{_EVALUATION}.study_plan.StudyPlan": ("study_runs", "plan_view"),
    f"{_EVALUATION}.progress.Progress": ("study_runs", "progress_view"),
    f"{_EVALUATION}.progress.RunSummary": ("study_runs", "summary_view"),
    f"{_EVALUATION}.suite.Suite": ("suites", "suite_view"),
    f"{_EVALUATION}.scenario.Scenario": ("suites", "scenario_view"),
    f"{_EVALUATION}.variant.Variant": ("suites", "variant_view"),
    f"{_EVALUATION}.catalogs.Catalog": ("suites", "catalog_view"),
    f"{_EVALUATION}.budget.Budget": ("suites", "budget_view"),
    f"{_EVALUATION}.trials.TrialTable": ("study_runs", "trials_view"),
    f"{_EVALUATION}.trials.TrialView": ("study_runs", "trial_view"),
}

# The MIME types are named by what a display holds, so that a host can register one renderer for each.
Kind = Literal["actions", "blob", "trace", "table", "status"]
MIME = "application/vnd.reyn.{}+json"
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"
KINDS: dict[str, Kind] = {
    "actions": "actions", "action": "actions", "explorer": "actions",
    "blob": "blob", "inspection": "blob", "result": "blob",
    "trace": "trace", "background": "trace", "diff": "trace",
}  # fmt: skip


def kind_of(shown: object, made: View) -> Kind:
    """Which of our MIME types an object's display has: by its view, else a table or a card."""
    return KINDS.get(made.kind) or ("table" if isinstance(shown, Table) else "status")


def mimebundle(
    shown: object,
    *,
    tail: str | None = None,
    redact: Callable[[str], str] | None = None,
    stop: str = STOP,
) -> dict[str, Any]:
    """The object in every representation that needs no kernel: our own MIME type, HTML free of script, and text.

    Example:
        >>> from reyn_jupyter.runtime.results import Card
        >>> mimebundle(Card("status", "Ready"))["text/plain"]
        'Ready'
    """
    return bundle(shown, view(shown, tail=tail, redact=redact, stop=stop))


def bundle(shown: object, made: View, live: Live | None = None) -> dict[str, Any]:
    """A view in every representation.

    Args:
        live: what a host goes on with; the object alone is shown when None.
    """
    from reyn_jupyter.notebook.serving.hub import SESSION_ID

    return {
        MIME.format(kind_of(shown, made)): to_snapshot(made, SESSION_ID, live),
        "text/html": to_html(made),
        "text/plain": to_text(made),
    }
