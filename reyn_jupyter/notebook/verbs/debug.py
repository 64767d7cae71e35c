"""`%reyn debug [on|off]`: whole tracebacks instead of one line; without a word it shows the last one."""

from __future__ import annotations

from typing import Annotated, Literal

from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.notebook.shell_state import shell_state
from reyn_jupyter.sessions.result_objects import Card


class DebugOptions(Options):
    switch: Annotated[Literal["on", "off"] | None, Positional("on|off")] = None


def run(context: Context, options: DebugOptions) -> Card:
    state = shell_state(context.shell)
    if options.switch is not None:
        state.debug = options.switch == "on"
    facts = (("tracebacks", "on" if state.debug else "off"),)
    sections = (("The last error", tuple(state.last_traceback.splitlines())),) if state.last_traceback else ()
    return Card("debug", "Debugging", facts, sections, ("%reyn debug on", "%reyn debug off"))


VERB = Verb(
    "debug",
    "whole tracebacks: on, off, or the last one",
    run,
    DebugOptions,
    ("%reyn debug", "%reyn debug on"),
    completes=lambda session, before, word: [] if before else ["on", "off"],
)
