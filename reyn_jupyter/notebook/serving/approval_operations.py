"""Operations: the open questions about consent, and an answer to one."""

from __future__ import annotations

from reyn_jupyter.notebook.serving.hub import as_event
from reyn_jupyter.notebook.serving.operation import (
    OperationContext,
    OperationError,
    ServedOperation,
    WireMessage,
)
from reyn_jupyter.notebook.serving.protocol import ApprovalAsked
from reyn_jupyter.runtime.consent import DESK, PersonAnswer, UnknownQuestionError


class AnswerApproval(WireMessage):
    """Answer an open question; `answer` is "always" only where the question offers a pattern."""

    id: str
    answer: PersonAnswer


class ApprovalAnswered(WireMessage):
    id: str


class ListApprovals(WireMessage):
    pass


class OpenApprovals(WireMessage):
    questions: tuple[ApprovalAsked, ...]


async def answer(context: OperationContext, arguments: AnswerApproval) -> ApprovalAnswered:
    try:
        settled = DESK.answer(arguments.id, arguments.answer)
    except UnknownQuestionError as error:
        raise OperationError(_sentence(error), "Nothing was decided by this answer.") from None
    except ValueError as error:
        raise OperationError(_sentence(error), "The question is still open.") from None
    return ApprovalAnswered(id=settled.id)


async def pending(context: OperationContext, arguments: ListApprovals) -> OpenApprovals:
    return OpenApprovals(questions=tuple(as_event(each) for each in DESK.pending()))


def _sentence(error: Exception) -> str:
    said = str(error)
    return said[:1].upper() + said[1:] + "."


OPERATIONS: tuple[ServedOperation, ...] = (
    ServedOperation("approval.answer", AnswerApproval, ApprovalAnswered, answer),
    ServedOperation("approval.pending", ListApprovals, OpenApprovals, pending),
)
