"""`%reyn approvals [drop PATTERN | add PATTERN | clear]`: what was always allowed."""

from __future__ import annotations

from typing import Annotated, Literal

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.options import Options, Positional
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.runtime.results import Table


class ApprovalsOptions(Options):
    what: Annotated[Literal["list", "add", "drop", "clear"], Positional("list|add|drop|clear")] = "list"
    pattern: Annotated[str | None, Positional()] = None


def run(context: Context, options: ApprovalsOptions) -> Table:
    approvals = context.session.parts.approvals
    if options.what == "clear":
        approvals.clear()
    elif options.what != "list":
        if options.pattern is None:
            raise ReynError(
                f"{options.what.capitalize()} which pattern?",
                "For example: %reyn approvals drop 'file__write(data/**)'",
            )
        if options.what == "add":
            approvals.add(options.pattern)
        elif not approvals.remove(options.pattern):
            raise ReynError(f"{options.pattern!r} was not approved.", "%reyn approvals lists what is.")
    return context.session.approvals


VERB = Verb(
    "approvals",
    "what was always allowed: list, add, drop, clear",
    run,
    ApprovalsOptions,
    ("%reyn approvals", "%reyn approvals drop 'file__write(data/**)'"),
    completes=lambda session, before, word: (
        list(session.parts.approvals.list()) if before else ["add", "drop", "clear"]
    ),
)
