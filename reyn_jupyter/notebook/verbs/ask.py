"""`%reyn ask "…"` and `%%reyn`: a turn of the router, shown live.

Invariant: where the answer is a table, what comes back is that table, which knows its run; else the run itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from reyn_jupyter.config.settings import ReasoningEffort
from reyn_jupyter.notebook.displays import updating_display
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.interpolation import interpolate
from reyn_jupyter.notebook.magic_line.options import Option, Options
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.router.request.router_options import Discovery
from reyn_jupyter.runtime.questions.cell_request import cell_request
from reyn_jupyter.runtime.record.trace import Trace

if TYPE_CHECKING:
    import pandas as pd


class AskOptions(Options):
    model: Annotated[
        str | None, Option("-m", "MODEL"), Field(description="a tier, offline, or a LiteLLM model string")
    ] = None
    surface: Annotated[
        Literal["universal", "flat", "auto"] | None,
        Option(),
        Field(description="the surface: what tools the model is offered"),
    ] = None
    discovery: Annotated[
        Discovery | None,
        Option(),
        Field(description="how it is led to the catalog"),
    ] = None
    max_steps: Annotated[int | None, Option(takes="N"), Field(ge=1, le=1000, description="steps at most")] = (
        None
    )
    effort: Annotated[
        ReasoningEffort | None, Option(), Field(description="how much a reasoning model thinks")
    ] = None
    budget: Annotated[
        float | None, Option(takes="USD"), Field(gt=0, allow_inf_nan=False, description="US dollars at most")
    ] = None
    vars: Annotated[str | None, Option(takes="a,b"), Field(description="variables to show in the prompt")] = (
        None
    )
    approve: Annotated[
        Literal["ask", "read", "all"],
        Option(),
        Field(description="what happens when an action needs consent"),
    ] = "ask"
    new: Annotated[bool, Option(), Field(description="start a conversation afresh")] = False
    bg: Annotated[
        bool, Option(), Field(description="in the background, with questions where the front end shows them")
    ] = False
    dry: Annotated[
        bool, Option(), Field(description="show tools, tokens and the most it could cost; call no model")
    ] = False


_TURN = {"model", "surface", "discovery", "max_steps", "effort", "budget", "approve", "new"}


def run(context: Context, options: AskOptions) -> Any:
    prompt, sent = _prompt(context, options)
    session = context.session
    chosen = options.model_dump(include=_TURN)
    chosen |= {"sent": tuple(sent), "cell": cell_request().cell}
    if options.dry:
        return session.dry(prompt, **chosen)
    if options.bg:
        card = updating_display.live_card(context, background=True)
        begun = session.start(prompt, on_event=card, **chosen)
        return card.follow(begun) if card is not None else begun
    trace = updating_display.watch_run(context, lambda card: session.ask(prompt, on_event=card, **chosen))
    frame = _table(trace)
    return trace if frame is None else updating_display.show_for(context, trace, frame)


def _table(trace: Trace) -> pd.DataFrame | None:
    """Return the table that a run came to; None where it did not end well, or came to something else."""
    if trace.status != "ok" or trace.result is None:
        return None
    try:
        if not trace.result.is_table:
            return None
        frame = trace.df
    except (
        BlobStoreError,
        TypeError,
    ):  # gone meanwhile, or in a store of another kind: the run says what it was
        return None
    from reyn_jupyter.runtime.record.result_frame import ResultFrame

    return ResultFrame(frame, trace)


def _prompt(context: Context, options: AskOptions) -> tuple[str, list[dict[str, Any]]]:
    """Return the text to send, its variables filled in, and what they were."""
    text = context.line if context.body is None else context.body
    if context.body is not None and context.line.strip():
        raise ReynError(
            f"{context.line.strip()[:40]!r} stands beside %%reyn, where only options belong.",
            "The question goes into the cell below.",
        )
    if not text.strip():
        raise ReynError("Ask what?", 'For example: %reyn ask "how many rows has orders.csv?"')
    names = [name for part in (options.vars or "").split(",") if (name := part.strip())]
    parts = context.session.parts
    return interpolate(text.strip("\n"), names, parts.services.namespace(), parts.redactor)


VERB = Verb(
    "ask",
    "ask the model; it finds and invokes actions",
    run,
    AskOptions,
    (
        '%reyn ask "how many rows has orders.csv?"',
        "%%reyn -m openai/gpt-4o-mini --budget 0.05",
        "%%reyn --vars orders --approve read",
    ),
    literal=True,
    takes_body=True,
    group="ask",
)
