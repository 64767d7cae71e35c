"""`%reyn events [RUN]`: the events of a run, one by one."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook.magic_line import completers
from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Table


class EventsOptions(Options):
    run: Annotated[str | None, Positional()] = None


def run(context: Context, options: EventsOptions) -> Table:
    return context.session.events_of(options.run)


VERB = Verb(
    "events",
    "the events of a run, one by one",
    run,
    EventsOptions,
    ("%reyn events", "%reyn events last"),
    completes=completers.one_run,
    group="look",
)
