"""`%reyn runs`: the runs of this workspace, newest first."""

from __future__ import annotations

from reyn_jupyter.notebook.magic_line.options import Options
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Table


def run(context: Context, options: Options) -> Table:
    return context.session.runs


VERB = Verb(
    "runs",
    "the runs of this workspace",
    run,
    examples=("%reyn runs",),
    group="look",
)
