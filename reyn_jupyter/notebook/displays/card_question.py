"""A question of consent inside the card of the run that asks it.

Invariant: a question stands in a card only where the front end that runs the cell said that it draws cards and asks
for consent; everywhere else it is printed above its prompt, so that nobody is asked about what they cannot see.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from reyn_jupyter.notebook.serving.hub import kernel_hub
from reyn_jupyter.notebook.serving.protocol import PromptedQuestion
from reyn_jupyter.notebook.serving.question_messages import prompted_question
from reyn_jupyter.runtime.questions.consent import Question


class CardSheet:
    """Shows one question in a card.

    Args:
        draw: draws the card with a question, or without one for None.
    """

    def __init__(self, draw: Callable[[PromptedQuestion | None], None]) -> None:
        self._draw = draw
        self._id = uuid.uuid4().hex[:12]

    def show(self, question: Question, shown: int, prompt: str) -> None:
        self._draw(prompted_question(question, shown, prompt, self._id))

    def put_away(self) -> None:
        self._draw(None)


def cell_is_drawn_here(shell: Any) -> bool:
    """Return whether the front end that runs this cell draws our cards, and asks for consent in them."""
    parent: Any = getattr(shell, "get_parent", dict)()
    header = parent.get("header") if isinstance(parent, dict) else None
    client = header.get("session") if isinstance(header, dict) else None
    return isinstance(client, str) and bool(client) and kernel_hub().asks_in_cards(client)
