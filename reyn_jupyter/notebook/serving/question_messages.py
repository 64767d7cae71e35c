"""Questions of consent as messages to one connection.

Invariant: the secret of an answer that would be kept goes out with the question's last line, so that it cannot be
given before everything was sent.
"""

from __future__ import annotations

from reyn_jupyter.notebook.serving.answer_key import AnswerKey
from reyn_jupyter.notebook.serving.protocol import (
    AnswerChoice,
    ApprovalAsked,
    QuestionLine,
)
from reyn_jupyter.runtime.questions.approval_queue import OpenQuestion
from reyn_jupyter.runtime.questions.consent import PAGE, Question


def approval_asked(waiting: OpenQuestion, key: AnswerKey) -> ApprovalAsked:
    """Return an open question as one connection is told of it. Its text was redacted where it was made."""
    question = waiting.question
    lines = question_lines(question, 0, PAGE)
    return ApprovalAsked(
        id=waiting.id,
        action=question.action,
        heading=question.heading,
        title=question.title,
        region=question.region,
        lines=lines,
        total=len(question.detail.lines),
        choices=answer_choices(waiting, key.sent(waiting.id, 0, len(lines)), key),
        run=question.run,
        cell=waiting.cell,
    )


def question_lines(question: Question, start: int, most: int) -> tuple[QuestionLine, ...]:
    """Return the lines of a question from `start` on."""
    return tuple(
        QuestionLine(kind=each.kind, text=each.text, continued=each.continued)
        for each in question.page(start, most)
    )


def answer_choices(waiting: OpenQuestion, shown: int, key: AnswerKey) -> tuple[AnswerChoice, ...]:
    """Return the answers to a question, with the secrets of those that are offered when `shown` lines were shown."""
    offered = {each.answer for each in waiting.question.choices_after(shown)}
    return tuple(
        AnswerChoice(
            answer=each.answer,
            label=each.label,
            hint=each.hint,
            outcome=each.outcome,
            allows=each.allows,
            secret=key.secret(waiting.id, each.answer) if each.answer in offered else None,
        )
        for each in waiting.question.choices
    )
