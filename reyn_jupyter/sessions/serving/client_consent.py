"""What a client's call or turn asks the person, in the notebook.

Invariant: a client is no person: no answer of one is ever the person's, and without an answer in time the call is
denied.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from reyn_jupyter.runtime.questions.approval_queue import ApprovalQueue
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.sessions.serving.client_progress import ClientProgress

ASKING = "waiting for the person, who is asked in the notebook"


def ask_person(
    questions: ApprovalQueue, wait: float, progress: ClientProgress
) -> Callable[[Question], Awaitable[Answer]]:
    """Return what asks the person for so many seconds, and says meanwhile that it does."""

    async def ask(question: Question) -> Answer:
        progress.waits(ASKING)
        try:
            async with asyncio.timeout(wait):
                return await questions.ask(question, since=time.time(), waits=True)
        except TimeoutError:
            return "unanswered"
        finally:
            progress.goes_on()

    return ask
