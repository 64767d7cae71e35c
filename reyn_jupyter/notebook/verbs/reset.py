"""`%reyn reset`: start the conversation afresh."""

from __future__ import annotations

from reyn_jupyter.notebook.magic_line.options import Options
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Card


def run(context: Context, options: Options) -> Card:
    return context.session.reset()


VERB = Verb(
    "reset",
    "start the conversation afresh",
    run,
    examples=("%reyn reset",),
    group="ask",
)
