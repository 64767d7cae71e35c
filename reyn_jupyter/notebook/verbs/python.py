"""`%reyn python [on|off]`: whether a model may propose Python code for this kernel."""

from __future__ import annotations

from typing import Annotated, Literal

from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Card


class PythonOptions(Options):
    switch: Annotated[Literal["on", "off"] | None, Positional("on|off")] = None


def run(context: Context, options: PythonOptions) -> Card:
    return context.session.python(options.switch)


VERB = Verb(
    "python",
    "Python code of a model in this kernel: on or off, asked about each time",
    run,
    PythonOptions,
    ("%reyn python on", "%reyn python off"),
    completes=lambda session, before, word: [] if before else ["on", "off"],
)
