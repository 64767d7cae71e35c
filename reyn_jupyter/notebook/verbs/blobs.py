"""`%reyn blobs`: the stored results, newest first."""

from __future__ import annotations

from reyn_jupyter.notebook.options import Options
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.runtime.results import Table


def run(context: Context, options: Options) -> Table:
    return context.session.blobs


VERB = Verb("blobs", "the stored results", run, examples=("%reyn blobs",))
