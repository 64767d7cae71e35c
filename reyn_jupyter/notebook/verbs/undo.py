"""`%reyn undo [RUN|RUN:STEP|NOTEBOOK]`: restore what a run wrote, edited or deleted; another session's asks."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook.magic_line import completers
from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Card


class UndoOptions(Options):
    run: Annotated[str | None, Positional("RUN|RUN:STEP|NOTEBOOK")] = None


def run(context: Context, options: UndoOptions) -> Card:
    return context.session.undo(options.run)


VERB = Verb(
    "undo",
    "restore what a run of this session wrote, edited or deleted; one of another session asks",
    run,
    UndoOptions,
    ("%reyn undo", "%reyn undo last:2", "%reyn undo other.ipynb"),
    completes=completers.one_run,
    group="ask",
)
