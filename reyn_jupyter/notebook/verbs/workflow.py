"""`%reyn workflow [save RUN --name NAME]`: workflows that the workspace keeps, and a run that becomes one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.options import Option, Options, Positional
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Card, Table
from reyn_jupyter.sessions.workflows import WorkflowActionError

_SAVE = "%reyn workflow save last --name monthly-report"


class WorkflowOptions(Options):
    what: Annotated[str | None, Positional("save")] = None
    run_: Annotated[str, Positional("RUN")] = "last"
    name: Annotated[
        str | None, Option(takes="NAME"), Field(description="save: its name, lower-case words with hyphens")
    ] = None
    about: Annotated[
        str, Option(takes="TEXT"), Field(description="save: what it does; what was asked for if left out")
    ] = ""


def run(context: Context, options: WorkflowOptions) -> Table | Card:
    workflows = context.session.workflows
    if options.what is None:
        return workflows.kept
    if options.what != "save":
        raise ReynError(f"{options.what!r} is nothing to do with workflows.", _SAVE)
    if not options.name:
        raise ReynError("A workflow needs a name.", _SAVE)
    try:
        return workflows.save(None if options.run_ == "last" else options.run_, options.name, options.about)
    except WorkflowActionError as error:
        raise ReynError(error.message, error.hint) from None


VERB = Verb(
    "workflow",
    "workflows that the workspace keeps; keep a run as one",
    run,
    WorkflowOptions,
    ("%reyn workflow", _SAVE),
    group="change",
)
