"""`%reyn trace [RUN]`: a run with its steps, diffs and blobs."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook.magic_line import completers
from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.runtime.record.trace import Trace


class TraceOptions(Options):
    run: Annotated[str | None, Positional()] = None


def run(context: Context, options: TraceOptions) -> Trace:
    return context.session.trace(options.run)


VERB = Verb(
    "trace",
    "a run with its steps, diffs and blobs",
    run,
    TraceOptions,
    ("%reyn trace", "%reyn trace last"),
    completes=completers.one_run,
    group="look",
)
