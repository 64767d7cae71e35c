"""`%reyn scaffold domain.action`: begin a utility: a folder with a manifest and a program that runs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Card
from reyn_jupyter.sessions.workflows.workflow_action_error import WorkflowActionError


class ScaffoldOptions(Options):
    capability: Annotated[str | None, Positional("domain.action")] = None
    language: Annotated[Literal["python", "node", "shell"], Option(), Field(description="of its program")] = (
        "python"
    )


def run(context: Context, options: ScaffoldOptions) -> Card:
    if options.capability is None:
        raise ReynError("Which capability is missing?", "For example: %reyn scaffold tg.scrape")
    try:
        return context.session.workflows.scaffold(options.capability, options.language)
    except WorkflowActionError as error:
        raise ReynError(error.message, error.hint) from None


VERB = Verb(
    "scaffold",
    "begin a utility for a capability: a manifest and a program that runs",
    run,
    ScaffoldOptions,
    ("%reyn scaffold tg.scrape", "%reyn scaffold text.count --language shell"),
    group="change",
)
