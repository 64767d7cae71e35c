"""Every type that a notebook can show, declared once: which function draws it, and how a shell displays it.

Invariant: types and drawing functions are named, not imported, so that loading the extension costs nothing here, and
showing a run imports neither numpy nor pandas. Adding a display is one row of `DISPLAYABLES`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from reyn_jupyter.notebook.render.blocks import View
    from reyn_jupyter.notebook.render.value_text import Look

# The MIME types are named by what a display holds, so that a host can register one renderer for each.
Kind = Literal["actions", "blob", "trace", "table", "status"]
# Where a shell uses the view: everywhere; in a cell's output, but not inside a list or a dict, where one line each is
# better; nowhere by itself.
Scope = Literal["everywhere", "output", "nowhere"]


@dataclass(frozen=True, slots=True)
class Displayable:
    """A type that a notebook can show.

    Attributes:
        module, name: of the type.
        draw: module below this package and function of it, ``(object, Look) -> View``, with a dot between them.
        kind: the MIME type of its display.
        scope: where a shell uses the view.
        updates: whether a cell shows it while it changes, so that its value is not shown a second time.
        streams: whether its function takes `tail` and `stop` too: a run, which may go on.
    """

    module: str
    name: str
    draw: str
    kind: Kind = "status"
    scope: Scope = "everywhere"
    updates: bool = False
    streams: bool = False

    def view(self, shown: object, look: Look, **options: Any) -> View:
        """Draw an object of this type."""
        module, _, function = self.draw.rpartition(".")
        made: View = getattr(import_module(f"{__package__}.{module}"), function)(shown, look, **options)
        return made


_RESULTS = "reyn_jupyter.sessions.result_objects"
_PLAN = "reyn_jupyter.evaluation.plan"
_FINDINGS = "reyn_jupyter.evaluation.results"
_RUN = "reyn_jupyter.evaluation.run"

DISPLAYABLES: tuple[Displayable, ...] = (
    Displayable(
        "reyn_jupyter.runtime.record.trace",
        "Trace",
        "trace.card.trace_view",
        "trace",
        updates=True,
        streams=True,
    ),
    Displayable(
        "reyn_jupyter.runtime.record.result_frame",
        "ResultFrame",
        "trace.card.frame_view",
        "trace",
        scope="nowhere",
        updates=True,
    ),
    Displayable(_RESULTS, "ActionTable", "catalog_view.action_table", "actions"),
    Displayable(_RESULTS, "CatalogExplorer", "catalog_view.explorer_view", "actions"),
    Displayable(_RESULTS, "ActionCard", "catalog_view.action_card", "actions"),
    Displayable(_RESULTS, "Result", "blob_view.result_view", "blob"),
    Displayable(_RESULTS, "FrameView", "dataframe_view.viewed_frame", "blob"),
    Displayable(_RESULTS, "Inspection", "blob_view.inspection_view", "blob"),
    Displayable("reyn_jupyter.outputs.blob", "Blob", "blob_view.blob_view", "blob"),
    Displayable("reyn_jupyter.runtime.record.compare", "RunDiff", "trace.run_diff.diff_view", "trace"),
    Displayable(_RESULTS, "Table", "session_tables.table", "table"),
    Displayable(_RESULTS, "Card", "session_tables.card", updates=True),
    Displayable(
        "reyn_jupyter.backends.serving.served_session", "ServedSession", "serving_view.served_session"
    ),
    Displayable("reyn_jupyter.runtime.record.script", "Script", "trace.card.script_view"),
    Displayable(
        "reyn_jupyter.sessions.runs.background_run",
        "BackgroundRun",
        "trace.card.background_view",
        "trace",
        updates=True,
    ),
    Displayable("reyn_jupyter.workflows.planning.plan", "WorkflowPlan", "workflow_view.plan_view"),
    Displayable(
        "reyn_jupyter.sessions.workflows.plan_run", "PlanRun", "workflow_view.run_view", updates=True
    ),
    Displayable(f"{_FINDINGS}.report", "Report", "study.report_view.report_view"),
    Displayable(f"{_FINDINGS}.comparison", "Comparison", "study.comparison_view.comparison_view"),
    Displayable(f"{_FINDINGS}.recommend", "Recommendation", "study.comparison_view.recommendation_view"),
    Displayable(f"{_FINDINGS}.trials", "TrialTable", "study.study_run_view.trials_view"),
    Displayable(f"{_FINDINGS}.trials", "TrialView", "study.study_run_view.trial_view"),
    Displayable("reyn_jupyter.evaluation.study", "Study", "study.study_run_view.study_view"),
    Displayable(f"{_RUN}.sample_size", "StudyPlan", "study.study_run_view.plan_view"),
    Displayable(f"{_RUN}.progress", "Progress", "study.study_run_view.progress_view", scope="nowhere"),
    Displayable(f"{_RUN}.progress", "RunSummary", "study.study_run_view.summary_view", updates=True),
    Displayable(f"{_RUN}.budget", "Budget", "study.suite_view.budget_view", scope="output"),
    Displayable(f"{_PLAN}.suite", "Suite", "study.suite_view.suite_view", scope="output"),
    Displayable(f"{_PLAN}.scenario", "Scenario", "study.suite_view.scenario_view", scope="output"),
    Displayable(f"{_PLAN}.variant", "Variant", "study.suite_view.variant_view", scope="output"),
    Displayable(f"{_PLAN}.frozen_catalog", "Catalog", "study.suite_view.catalog_view", scope="output"),
)
_BY_TYPE = {(each.module, each.name): each for each in DISPLAYABLES}


def displayable(kind: type) -> Displayable | None:
    """Return how objects of a type, or of one that it inherits from, are shown; None where nobody declared it."""
    found = (_BY_TYPE.get((each.__module__, each.__qualname__)) for each in kind.__mro__)
    return next((each for each in found if each is not None), None)


def view(
    shown: object,
    *,
    tail: str | None = None,
    redact: Callable[[str], str] | None = None,
    now: float | None = None,
    stop: str | None = None,
) -> View:
    """Draw any object that the session or a study returns.

    Args:
        tail: for a live run, the text that streams in ("" when there is none yet); None for anything else.
        redact: takes secrets out of a text; every text passes it before it is cut to size.
        now: seconds since the epoch, for relative times.
        stop: for a live run, how to stop it; the interrupt of the cell when None.

    Raises:
        TypeError: no type of the object is declared in `DISPLAYABLES`.
    """
    from reyn_jupyter.notebook.render.value_text import Look

    found = displayable(type(shown))
    if found is None:
        raise TypeError(
            f"{type(shown).__name__} is nothing that the session or a study returns; there is no view of it"
        )
    given = {"tail": tail, "stop": stop} if found.streams else {}
    options = {name: value for name, value in given.items() if value is not None}
    return found.view(shown, Look(time.time() if now is None else now, redact), **options)
