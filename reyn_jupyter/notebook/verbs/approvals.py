"""`%reyn approvals [drop|add PATTERN | clear | show ID | ANSWER ID]`: the approvals, and what waits for consent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.runtime.questions.approval_queue import ApprovalQueue, OpenQuestion, UnknownQuestionError
from reyn_jupyter.runtime.questions.consent import CHOICES, EXCERPT
from reyn_jupyter.sessions.result_objects import Table
from reyn_jupyter.sessions.session import Session

ANSWERS = {each.verb: each.answer for each in CHOICES}
OF_A_QUESTION = ("show", *ANSWERS)
WORDS = ("list", "add", "drop", "clear", *OF_A_QUESTION)
if TYPE_CHECKING:
    Word = str
else:
    Word = Literal[WORDS]  # pydantic checks it; a type checker cannot read a tuple here


class ApprovalsOptions(Options):
    what: Annotated[Word, Positional("|".join(WORDS))] = "list"
    pattern: Annotated[str | None, Positional("PATTERN or ID")] = None


def run(context: Context, options: ApprovalsOptions) -> Table:
    if options.what in OF_A_QUESTION:
        try:
            questions = context.session.parts.questions
            _answer(questions, _question(questions, options), options.what)
        except UnknownQuestionError as error:
            raise ReynError(_sentence(error), "%reyn approvals lists the open questions.") from None
    elif options.what != "list":
        _change(context, options)
    return context.session.approvals


def _question(questions: ApprovalQueue, options: ApprovalsOptions) -> OpenQuestion:
    if options.pattern is None:
        waiting = questions.pending()
        example = waiting[0].id if waiting else "ID"
        asked = "Show" if options.what == "show" else f"Answer {options.what} to"
        raise ReynError(f"{asked} which question?", f"%reyn approvals {options.what} {example}")
    return questions.find(options.pattern)


def _answer(questions: ApprovalQueue, waiting: OpenQuestion, verb: str) -> None:
    if verb == "show":
        sys.stdout.write(waiting.question.text + "\n")
        waiting.read.set()
        return
    answer = ANSWERS[verb]
    shown = len(waiting.question.detail.lines) if waiting.read.is_set() else EXCERPT
    later = {each.answer for each in waiting.question.choices} - {
        each.answer for each in waiting.question.choices_after(shown)
    }
    if answer in later:
        raise ReynError(
            f"{verb.capitalize()} is offered once all of the question was shown.",
            f"%reyn approvals show {waiting.id} shows it.",
        )
    try:
        questions.answer(waiting.id, answer)
    except ValueError as error:
        raise ReynError(_sentence(error), f"%reyn approvals show {waiting.id} shows all of it.") from None


def _sentence(error: Exception) -> str:
    said = str(error)
    return f"{said[:1].upper()}{said[1:]}."


def _change(context: Context, options: ApprovalsOptions) -> None:
    approvals = context.session.parts.approvals
    if options.what == "clear":
        approvals.clear()
        return
    if options.pattern is None:
        raise ReynError(
            f"{options.what.capitalize()} which pattern?",
            "For example: %reyn approvals drop 'file__write(data/**)'",
        )
    if options.what == "add":
        approvals.add(options.pattern)
    elif not approvals.remove(options.pattern):
        raise ReynError(
            f"{options.pattern!r} has no approval.", "%reyn approvals lists those that there are."
        )


VERB = Verb(
    "approvals",
    "the approvals, and the questions that wait for your consent",
    run,
    ApprovalsOptions,
    (
        "%reyn approvals",
        "%reyn approvals drop 'file__write(data/**)'",
        "%reyn approvals show ID",
        "%reyn approvals allow ID",
    ),
    completes=lambda session, before, word: _complete(session, before),
)


def _complete(session: Session, before: list[str]) -> list[str]:
    if not before:
        return list(WORDS[1:])
    parts = session.parts
    if before[0] in OF_A_QUESTION:
        return [each.id for each in parts.questions.pending()]
    return list(parts.approvals.list())
