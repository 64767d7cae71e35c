"""`%reyn script [RUN] [--insert]`: a run as ordinary code that needs no model."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reyn_jupyter.notebook.magic_line import completers
from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.runtime.record.script import Script


class ScriptOptions(Options):
    run: Annotated[str | None, Positional()] = None
    insert: Annotated[bool, Option(), Field(description="put the code into the next cell")] = False


def run(context: Context, options: ScriptOptions) -> Script:
    script = context.session.script(options.run)
    if options.insert:
        context.shell.set_next_input(script.code)
    return script


VERB = Verb(
    "script",
    "a run as ordinary code",
    run,
    ScriptOptions,
    ("%reyn script", "%reyn script last --insert"),
    completes=completers.one_run,
    group="change",
)
