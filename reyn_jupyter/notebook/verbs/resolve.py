"""`%reyn resolve domain.action`: the utilities that declare a capability, best first, and why."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Table
from reyn_jupyter.sessions.session import Session
from reyn_jupyter.sessions.workflows.workflow_action_error import WorkflowActionError


class ResolveOptions(Options):
    capability: Annotated[str | None, Positional("domain.action")] = None


def run(context: Context, options: ResolveOptions) -> Table:
    if options.capability is None:
        raise ReynError("Which capability?", "For example: %reyn resolve video.convert")
    try:
        return context.session.workflows.resolve(options.capability)
    except WorkflowActionError as error:
        raise ReynError(error.message, error.hint) from None


def complete_capability(session: Session, before: list[str], word: str) -> list[str]:
    return [] if before else list(session.parts.workflows.registry().capabilities)


VERB = Verb(
    "resolve",
    "the utilities that declare a capability, best first, and why",
    run,
    ResolveOptions,
    ("%reyn resolve video.convert",),
    completes=complete_capability,
    group="look",
)
