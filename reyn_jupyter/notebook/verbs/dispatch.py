"""`%reyn dispatch "…"`: a request from its words to its end: plan, gaps, policy, run, each shown as it goes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reyn_jupyter.notebook.displays.updating_display import InPlace
from reyn_jupyter.notebook.errors import ReynError, ReynInterrupt
from reyn_jupyter.notebook.magic_line.options import Option, Options
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.notebook.verbs.plan import request_text
from reyn_jupyter.runtime.pump import Interrupted
from reyn_jupyter.sessions.workflows.plan_run import PlanRun
from reyn_jupyter.sessions.workflows.workflow_action_error import WorkflowActionError


class DispatchOptions(Options):
    dry: Annotated[bool, Option(), Field(description="show the commands and their inputs; run nothing")] = (
        False
    )
    no_llm: Annotated[bool, Option(), Field(description="plan by rules alone; ask no language model")] = False
    resume: Annotated[
        str | None,
        Option(takes="RUN"),
        Field(description="go on with a run, `last` or an id; what was done is not run again"),
    ] = None
    force: Annotated[
        bool,
        Option(),
        Field(description="with --resume: run again what was under way, at the risk of doing it twice"),
    ] = False


def run(context: Context, options: DispatchOptions) -> PlanRun:
    place = InPlace(context.shell)

    def show(made: PlanRun) -> None:
        # How it ended is drawn in any case: an error or an interrupt comes after it.
        place.last(made) if made.phase == "ended" else place.show(made)

    workflows = context.session.workflows
    try:
        if options.resume is not None:
            run_id = None if options.resume == "last" else options.resume
            return place.last(workflows.resume(run_id, force=options.force, on_change=show))
        text = request_text(context, 'For example: %reyn dispatch "convert all webm files in videos to mp4"')
        return place.last(workflows.dispatch(text, dry=options.dry, llm=not options.no_llm, on_change=show))
    except WorkflowActionError as error:
        raise ReynError(error.message, error.hint) from None
    except Interrupted as interrupted:
        raise ReynInterrupt(
            interrupted.why or "Interrupted.", "%reyn dispatch --resume last goes on with it."
        ) from None


VERB = Verb(
    "dispatch",
    "plan a request, check gaps and policy, and run it",
    run,
    DispatchOptions,
    (
        '%reyn dispatch "convert all webm files in videos to mp4"',
        '%reyn dispatch --dry "unpack data.zip"',
        "%reyn dispatch --resume last",
    ),
    literal=True,
    takes_body=True,
    group="ask",
)
