"""`%reyn status`, and `%reyn` alone: where you are and what to try next."""

from __future__ import annotations

from reyn_jupyter.notebook.magic_line.options import Options
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Card


def run(context: Context, options: Options) -> Card:
    return context.session.status


VERB = Verb("status", "where you are and what to try next", run, examples=("%reyn",))
