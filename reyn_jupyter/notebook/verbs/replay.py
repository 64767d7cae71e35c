"""`%reyn replay [RUN] [-m MODEL] [--from STEP]`: a run once more, its action results taken from the record."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from reyn_jupyter.notebook.displays import updating_display
from reyn_jupyter.notebook.magic_line import completers
from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.runtime.record.trace import Trace


class ReplayOptions(Options):
    run: Annotated[str | None, Positional()] = None
    model: Annotated[
        str | None,
        Option("-m", "MODEL"),
        Field(description="another model; reads run again, writes come from the record"),
    ] = None
    from_: Annotated[
        int | None,
        Option(takes="STEP"),
        Field(alias="from", ge=1, description="ask the model again from this step on"),
    ] = None
    approve: Annotated[
        Literal["ask", "read", "all"], Option(), Field(description="when an action needs consent")
    ] = "ask"


def run(context: Context, options: ReplayOptions) -> Trace:
    return updating_display.watch_run(
        context,
        lambda card: context.session.replay(
            options.run, model=options.model, from_step=options.from_, approve=options.approve, on_event=card
        ),
    )


VERB = Verb(
    "replay",
    "a run once more, from its record or on another model",
    run,
    ReplayOptions,
    ("%reyn replay last", "%reyn replay last -m strong", "%reyn replay last --from 2"),
    completes=completers.one_run,
    group="measure",
)
