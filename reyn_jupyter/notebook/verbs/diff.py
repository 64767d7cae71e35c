"""`%reyn diff A B`: two runs side by side."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook.magic_line import completers
from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.runtime.record.compare import RunDiff


class DiffOptions(Options):
    a: Annotated[str, Positional()]
    b: Annotated[str, Positional()] = "last"


def run(context: Context, options: DiffOptions) -> RunDiff:
    return context.session.diff(options.a, options.b)


VERB = Verb(
    "diff",
    "two runs side by side",
    run,
    DiffOptions,
    ("%reyn diff -2 -1",),
    completes=completers.runs,
    group="measure",
)
