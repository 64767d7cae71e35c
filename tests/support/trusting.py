"""The user who trusts what a workspace brought."""

from __future__ import annotations

import reyn_jupyter as reyn
from reyn_jupyter.runtime.questions.consent import Question
from reyn_jupyter.sessions.result_objects import Card


def trust(session: reyn.Session, name: str | None = None, asked: list[Question] | None = None) -> Card:
    """Let the user say yes to each question of ``session.trust()``.

    Args:
        session: whose workspace it is.
        name: of one thing; everything if None.
        asked: gets the questions.
    """
    before, questions = session.parts.ask_person, [] if asked is None else asked

    def agree(question: Question) -> str:
        questions.append(question)
        return "once"

    session.parts.ask_person = agree  # type: ignore[assignment]
    try:
        return session.trust(name)
    finally:
        session.parts.ask_person = before
