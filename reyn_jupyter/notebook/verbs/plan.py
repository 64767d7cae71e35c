"""`%reyn plan "…"`: the steps that a request comes to, what serves each, and what is missing; nothing runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Option, Options
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.workflows.workflow_action_error import WorkflowActionError
from reyn_jupyter.workflows.planning.plan import WorkflowPlan
from reyn_jupyter.workflows.planning.request_parts import only_quoted


class PlanOptions(Options):
    no_llm: Annotated[bool, Option(), Field(description="by rules alone; ask no language model")] = False


def request_text(context: Context, example: str) -> str:
    """Return the request: the rest of the line, without its quotes, or the cell below. Raises ReynError for none."""
    line = context.line.strip()
    text = only_quoted(line) or line
    body = (context.body or "").strip()
    if text and body:
        raise ReynError(
            "The request stands beside the verb and in the cell.", "Write it in one of the places."
        )
    if not (text or body):
        raise ReynError("What is to be done?", example)
    return text or body


def run(context: Context, options: PlanOptions) -> WorkflowPlan:
    text = request_text(context, 'For example: %reyn plan "convert all webm files in videos to mp4"')
    try:
        return context.session.workflows.plan(text, llm=not options.no_llm)
    except WorkflowActionError as error:
        raise ReynError(error.message, error.hint) from None


VERB = Verb(
    "plan",
    "the steps that a request comes to, and what is missing; nothing runs",
    run,
    PlanOptions,
    ('%reyn plan "convert all webm files in videos to mp4"', "%reyn plan --no-llm unpack data.zip"),
    literal=True,
    takes_body=True,
    group="ask",
)
