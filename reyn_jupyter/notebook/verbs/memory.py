"""`%reyn memory`: what is remembered in this workspace."""

from __future__ import annotations

from reyn_jupyter.notebook.options import Options
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.runtime.results import ActionTable


def run(context: Context, options: Options) -> ActionTable:
    return context.session.list_actions("memory_entry", limit=100)


VERB = Verb("memory", "what is remembered in this workspace", run, examples=("%reyn memory",))
