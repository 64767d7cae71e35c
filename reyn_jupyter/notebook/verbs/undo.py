"""`%reyn undo [RUN|RUN:STEP]`: restore what a run wrote, edited or deleted."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook import completers
from reyn_jupyter.notebook.options import Options, Positional
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Card


class UndoOptions(Options):
    run: Annotated[str | None, Positional("RUN|RUN:STEP")] = None


def run(context: Context, options: UndoOptions) -> Card:
    return context.session.undo(options.run)


VERB = Verb(
    "undo",
    "restore what a run wrote, edited or deleted",
    run,
    UndoOptions,
    ("%reyn undo", "%reyn undo last:2"),
    completes=completers.one_run,
)
