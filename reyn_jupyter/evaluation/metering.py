"""What a trial has used while it goes on, so that one that never comes to its end is paid for too.

Invariant: every call that was answered counts with what it used, and a call that was sent and not answered yet counts
with its question, estimated; one that failed counts for nothing.
"""

from __future__ import annotations

from dataclasses import replace

from reyn_jupyter.evaluation.store_rows import Use
from reyn_jupyter.models import litellm_loader
from reyn_jupyter.models.seam import Request, Response


class Meter:
    """Reads one trial.

    Example:
        >>> from reyn_jupyter.models.seam import Message, Usage
        >>> meter = Meter()
        >>> meter.sent(Request("m", (Message("user", "Hello there"),)), real=False)
        >>> meter.use.calls, meter.use.tokens
        (1, 7)
        >>> meter.answered(Response("Hi", usage=Usage(9, 1), cost=0.5))
        >>> meter.use.tokens, meter.use.usd
        (10, 0.5)
    """

    def __init__(self) -> None:
        self._answered = Use()
        self._waiting: Request | None = None
        self._real = False

    def sent(self, request: Request, *, real: bool) -> None:
        """A call goes out, to a `real` model or to what stands in for one."""
        self._waiting, self._real = request, real

    def answered(self, response: Response) -> None:
        """It came back."""
        before, usage = self._answered, response.usage
        unpriced = self._real and response.cost is None and usage.total > 0
        self._answered = Use(
            0,
            before.calls + 1,
            before.tokens + usage.total,
            before.usd + (response.cost or 0.0),
            int(unpriced or before.unpriced),
        )
        self._waiting = None

    def failed(self) -> None:
        """The provider refused it, or could not be reached."""
        self._waiting = None

    @property
    def use(self) -> Use:
        """What was used by now, as one trial; none where no call was sent."""
        found, waiting = self._answered, self._waiting
        if waiting is not None:
            tokens = waiting.tools.tokens + sum(message.tokens for message in waiting.messages)
            price = _price(waiting.model) if self._real else 0.0
            found = Use(
                0,
                found.calls + 1,
                found.tokens + tokens,
                found.usd + tokens * (price or 0.0),
                int(price is None or found.unpriced),
            )
        return replace(found, trials=int(found.calls > 0))


def _price(model: str) -> float | None:
    """US dollars of a token that is sent, None where nobody lists it. Where LiteLLM is not there, nothing was sent."""
    from reyn_jupyter.sessions.dry import price_of

    if litellm_loader.loaded() is None:
        return 0.0
    price = price_of(model)
    return None if price is None else price.prompt
