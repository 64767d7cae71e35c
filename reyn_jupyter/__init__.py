"""reyn-jupyter: an agent in the kernel of a notebook, over a universal catalog of actions.

    %load_ext reyn_jupyter                  # %reyn and %%reyn
    import reyn_jupyter as reyn             # the same in Python: reyn.session(), reyn.Session, @reyn.action

Names are imported on first use, so that loading the extension costs little.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from reyn_jupyter.support.import_path import protect_imports

protect_imports()  # before anything else is imported: see there

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.datasets.dataset import Dataset
    from reyn_jupyter.evaluation.inspect_logs.log import read_inspect_log
    from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
    from reyn_jupyter.evaluation.plan.model_grader import ModelGrader
    from reyn_jupyter.evaluation.plan.scenario import AcceptedCall, Expected, Gold, Scenario
    from reyn_jupyter.evaluation.plan.suite import Claim, Suite
    from reyn_jupyter.evaluation.plan.variant import Variant
    from reyn_jupyter.evaluation.run.budget import Budget
    from reyn_jupyter.evaluation.run.concurrency import Concurrency
    from reyn_jupyter.evaluation.study import Study
    from reyn_jupyter.evaluation.suites import load_suite
    from reyn_jupyter.notebook.displays.frame_viewing import view
    from reyn_jupyter.notebook.export import export
    from reyn_jupyter.runtime.namespace.functions import action
    from reyn_jupyter.runtime.record.result_frame import ResultFrame
    from reyn_jupyter.runtime.record.trace import Trace
    from reyn_jupyter.sessions.current import session
    from reyn_jupyter.sessions.overviews.tool_overview import MadeTools
    from reyn_jupyter.sessions.session import Session

    tools: MadeTools

__all__ = [
    "AcceptedCall",
    "Budget",
    "Catalog",
    "Claim",
    "Concurrency",
    "Dataset",
    "Expected",
    "Gold",
    "ModelGrader",
    "ResultFrame",
    "Scenario",
    "Session",
    "Study",
    "Suite",
    "Trace",
    "Variant",
    "action",
    "export",
    "load_ipython_extension",
    "load_suite",
    "read_inspect_log",
    "session",
    "tools",
    "unload_ipython_extension",
    "view",
]

_PUBLIC = {
    "AcceptedCall": "reyn_jupyter.evaluation.plan.scenario",
    "Budget": "reyn_jupyter.evaluation.run.budget",
    "Catalog": "reyn_jupyter.evaluation.plan.frozen_catalog",
    "Claim": "reyn_jupyter.evaluation.plan.suite",
    "Concurrency": "reyn_jupyter.evaluation.run.concurrency",
    "Dataset": "reyn_jupyter.evaluation.datasets.dataset",
    "Expected": "reyn_jupyter.evaluation.plan.scenario",
    "Gold": "reyn_jupyter.evaluation.plan.scenario",
    "ModelGrader": "reyn_jupyter.evaluation.plan.model_grader",
    "ResultFrame": "reyn_jupyter.runtime.record.result_frame",
    "Scenario": "reyn_jupyter.evaluation.plan.scenario",
    "Study": "reyn_jupyter.evaluation.study",
    "Suite": "reyn_jupyter.evaluation.plan.suite",
    "Variant": "reyn_jupyter.evaluation.plan.variant",
    "Session": "reyn_jupyter.sessions.session",
    "Trace": "reyn_jupyter.runtime.record.trace",
    "action": "reyn_jupyter.runtime.namespace.functions",
    "export": "reyn_jupyter.notebook.export",
    "load_suite": "reyn_jupyter.evaluation.suites",
    "read_inspect_log": "reyn_jupyter.evaluation.inspect_logs.log",
    "session": "reyn_jupyter.sessions.current",
    "view": "reyn_jupyter.notebook.displays.frame_viewing",
}


def __getattr__(name: str) -> Any:
    if name == "tools":  # of the session now, and as they are now
        return __getattr__("session")().tools
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    _show_richly()
    return value


def _show_richly() -> None:
    """In a notebook, objects of the Python face show as they do under `%reyn`, extension loaded or not."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        import_module("reyn_jupyter.notebook.displays.ipython_formatters").register(shell)


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext reyn_jupyter``: register the magics, completion and displays. Nothing is printed."""
    import_module("reyn_jupyter.notebook.extension").load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take out what `load_ipython_extension` put in."""
    import_module("reyn_jupyter.notebook.extension").unload(shell)
