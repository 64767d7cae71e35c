"""`%reyn models`: the models, their tiers and whether their keys are set."""

from __future__ import annotations

from reyn_jupyter.notebook.options import Options
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Table


def run(context: Context, options: Options) -> Table:
    return context.session.models


VERB = Verb(
    "models", "the models, their tiers and whether their keys are set", run, examples=("%reyn models",)
)
