"""`%reyn workflow [save RUN | map WORKFLOW]`: workflows that the workspace keeps, a run that becomes one, and one that
runs on each of many inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from reyn_jupyter.notebook.displays.updating_display import InPlace
from reyn_jupyter.notebook.errors import ReynError, ReynInterrupt
from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.runtime.pump import Interrupted
from reyn_jupyter.sessions.result_objects import Card, Table
from reyn_jupyter.sessions.workflows.mapped_runs import MappedRun, table_of
from reyn_jupyter.sessions.workflows.workflow_action_error import WorkflowActionError

_SAVE = "%reyn workflow save last --name monthly-report"
_LATEST = 20  # of inputs that have ended, shown while others run
_MAP = "%reyn workflow map thumbnail --over inputs --on client"


class WorkflowOptions(Options):
    what: Annotated[str | None, Positional("save|map")] = None
    run_: Annotated[str, Positional("RUN|WORKFLOW")] = "last"
    name: Annotated[
        str | None, Option(takes="NAME"), Field(description="save: its name, lower-case words with hyphens")
    ] = None
    about: Annotated[
        str, Option(takes="TEXT"), Field(description="save: what it does; what was asked for if left out")
    ] = ""
    over: Annotated[
        str | None,
        Option(takes="VARIABLE"),
        Field(description="map: a variable with a list of inputs, or a table with one in each row"),
    ] = None
    on: Annotated[
        str | None,
        Option(takes="VARIABLE"),
        Field(
            description="map: a variable with the client of a Dask cluster, or an executor, where its programs run"
        ),
    ] = None


def run(context: Context, options: WorkflowOptions) -> Table | Card:
    workflows = context.session.workflows
    if options.what is None:
        return workflows.kept
    if options.what == "map":
        return _map(context, options)
    if options.what != "save":
        raise ReynError(f"{options.what!r} is nothing to do with workflows.", _SAVE)
    if not options.name:
        raise ReynError("A workflow needs a name.", _SAVE)
    try:
        return workflows.save(None if options.run_ == "last" else options.run_, options.name, options.about)
    except WorkflowActionError as error:
        raise ReynError(error.message, error.hint) from None


def _map(context: Context, options: WorkflowOptions) -> Table:
    if options.over is None:
        raise ReynError("A workflow is mapped over inputs.", _MAP)
    given = _variable(context, options.over)
    inputs = given.to_dict("records") if hasattr(given, "to_dict") and hasattr(given, "columns") else given
    if isinstance(inputs, str | bytes | Mapping) or not isinstance(inputs, Iterable):
        raise ReynError(f"{options.over} holds no list of inputs, each a mapping.", _MAP)
    place = InPlace(context.shell)
    ended: list[MappedRun] = []

    def hear(each: MappedRun) -> None:
        ended.append(each)
        place.show(
            table_of(options.run_, ended[-_LATEST:], f"{len(ended):,} have ended, the latest are here.")
        )

    try:
        executor = None if options.on is None else _variable(context, options.on)
        return place.last(
            context.session.workflows.map(options.run_, inputs, executor=executor, on_result=hear)
        )
    except WorkflowActionError as error:
        raise ReynError(error.message, error.hint) from None
    except Interrupted as interrupted:
        if interrupted.result is not None:
            place.last(interrupted.result)
        raise ReynInterrupt(interrupted.why or "Interrupted.", "The table has what had ended.") from None


def _variable(context: Context, name: str) -> Any:
    namespace = context.session.parts.services.namespace()
    if name not in namespace:
        raise ReynError(f"There is no variable {name!r}.", _MAP)
    return namespace[name]


VERB = Verb(
    "workflow",
    "workflows that the workspace keeps; keep a run as one; run one on many inputs",
    run,
    WorkflowOptions,
    ("%reyn workflow", _SAVE, _MAP),
    group="change",
)
