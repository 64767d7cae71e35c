"""Questions of consent as messages to one connection.

Invariant: the secret of an answer that would be kept goes out with the question's last line, so that it cannot be
given before everything was sent.
"""

from __future__ import annotations

from reyn_jupyter.notebook.serving.answer_key import AnswerKey
from reyn_jupyter.notebook.serving.protocol import (
    AnswerChoice,
    ApprovalAsked,
    PromptChoice,
    PromptedQuestion,
    QuestionLine,
)
from reyn_jupyter.runtime.questions.consent import MORE, PAGE, OpenQuestion, Question


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
    )


def prompted_question(question: Question, shown: int, prompt: str, number: str) -> PromptedQuestion:
    """Return a question as a card shows it while its prompt waits; of answers those alone that are offered by now.

    Args:
        shown: how many of its lines.
        prompt: what the prompt says.
        number: tells it from other questions.
    """
    return PromptedQuestion(
        id=number,
        action=question.action,
        prompt=prompt,
        title=question.title,
        region=question.region,
        lines=question_lines(question, 0, shown),
        total=len(question.detail.lines),
        choices=tuple(
            PromptChoice(
                answer=each.answer,
                label=each.label,
                hint=each.hint,
                outcome=each.outcome,
                allows=each.allows,
                key=each.keys[0],
            )
            for each in question.choices_after(shown)
        ),
        more=MORE[0],
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
