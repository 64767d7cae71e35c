"""`%reyn history [drop N | fork N]`: the turns of the conversation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Table


class HistoryOptions(Options):
    what: Annotated[Literal["list", "drop", "fork"], Positional("list|drop|fork")] = "list"
    turn: Annotated[int | None, Positional("N"), Field(ge=1)] = None


def run(context: Context, options: HistoryOptions) -> Table:
    if options.what == "list":
        return context.session.history
    if options.turn is None:
        raise ReynError(
            f"{options.what.capitalize()} which turn?", f"For example: %reyn history {options.what} 2"
        )
    act = context.session.drop if options.what == "drop" else context.session.fork
    return act(options.turn)


VERB = Verb(
    "history",
    "the turns of the conversation: list, drop, fork",
    run,
    HistoryOptions,
    ("%reyn history", "%reyn history drop 2", "%reyn history fork 1"),
    completes=lambda session, before, word: [] if before else ["list", "drop", "fork"],
    group="ask",
)
