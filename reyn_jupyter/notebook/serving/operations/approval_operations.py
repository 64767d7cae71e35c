"""Operations: the open questions about consent, their further lines, and an answer to one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reyn_jupyter.notebook.serving.answer_key import AnswerKey
from reyn_jupyter.notebook.serving.operation import (
    OperationContext,
    OperationError,
    ServedOperation,
    WireMessage,
)
from reyn_jupyter.notebook.serving.protocol import AnswerChoice, ApprovalAsked, QuestionLine
from reyn_jupyter.notebook.serving.question_messages import (
    answer_choices,
    approval_asked,
    question_lines,
)
from reyn_jupyter.runtime.questions.approval_queue import (
    OpenQuestion,
    UnknownQuestionError,
    all_pending,
    queue_of,
)
from reyn_jupyter.runtime.questions.consent import PersonAnswer

LINES = 1000  # of a question, in one answer


class AnswerApproval(WireMessage):
    """Answer the question of a whole id, with the secret that the connection was sent for this answer."""

    id: str
    answer: PersonAnswer
    secret: str


class ApprovalAnswered(WireMessage):
    id: str


class ReadApproval(WireMessage):
    """Ask for the lines of a question from `start` on; 0 is the first."""

    id: str
    start: Annotated[int, Field(ge=0)]


class ApprovalPage(WireMessage):
    """Give further lines, and the choices as they are now: the last line brings the secrets that were missing."""

    lines: tuple[QuestionLine, ...]
    choices: tuple[AnswerChoice, ...]


class ListApprovals(WireMessage):
    pass


class OpenApprovals(WireMessage):
    questions: tuple[ApprovalAsked, ...]


async def answer(context: OperationContext, arguments: AnswerApproval) -> ApprovalAnswered:
    waiting = _find(context, arguments.id)
    if not _key(context).admits(waiting.id, arguments.answer, arguments.secret):
        raise OperationError("This view was not asked.", "Answer where the question is shown.")
    try:
        settled = queue_of(waiting.id).answer(waiting.id, arguments.answer)
    except UnknownQuestionError as error:
        raise OperationError(_sentence(error), "Nothing was decided by this answer.") from None
    except ValueError as error:
        raise OperationError(_sentence(error), "The question is still open.") from None
    return ApprovalAnswered(id=settled.id)


async def page(context: OperationContext, arguments: ReadApproval) -> ApprovalPage:
    waiting = _find(context, arguments.id)
    lines = question_lines(waiting.question, arguments.start, LINES)
    key = _key(context)
    shown = key.sent(waiting.id, arguments.start, len(lines))
    return ApprovalPage(lines=lines, choices=answer_choices(waiting, shown, key))


async def pending(context: OperationContext, arguments: ListApprovals) -> OpenApprovals:
    key = context.answer_key
    questions = () if key is None else tuple(approval_asked(each, key) for each in all_pending())
    return OpenApprovals(questions=questions)


def _key(context: OperationContext) -> AnswerKey:
    if context.answer_key is None:
        raise OperationError("This view was not asked.", "Answer where the question is shown.")
    return context.answer_key


def _find(context: OperationContext, wanted: str) -> OpenQuestion:
    _key(context)  # who was not asked does not learn what is open
    try:
        return queue_of(wanted).find(wanted)
    except UnknownQuestionError as error:
        raise OperationError(_sentence(error), "Nothing was decided by this answer.") from None


def _sentence(error: Exception) -> str:
    said = str(error)
    return said[:1].upper() + said[1:] + "."


OPERATIONS: tuple[ServedOperation, ...] = (
    ServedOperation("approval.answer", AnswerApproval, ApprovalAnswered, answer),
    ServedOperation("approval.page", ReadApproval, ApprovalPage, page),
    ServedOperation("approval.pending", ListApprovals, OpenApprovals, pending),
)
