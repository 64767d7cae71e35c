"""`%reyn surface`: tokens of the universal and the flat surface."""

from __future__ import annotations

from reyn_jupyter.notebook.magic_line.options import Options
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Table


def run(context: Context, options: Options) -> Table:
    return context.session.surface()


VERB = Verb(
    "surface",
    "tokens of the universal and the flat surface",
    run,
    examples=("%reyn surface",),
    group="measure",
)
