"""What the record says of a model call while it is waited for: its cost before it goes out, and each repeat."""

from __future__ import annotations

from pathlib import Path

import pytest

from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.providers.prices import Price
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.runtime.record.events import ModelRequested, RetryScheduled
from tests.router.router_support import session


class PricedModel(ScriptedModel):
    """A scripted model whose list of prices is at hand, or fails."""

    listed: Price | ModelError = Price(0.000002, 0.00001, 8000, 1000)

    async def price(self) -> Price | None:
        if isinstance(self.listed, ModelError):
            raise self.listed
        return self.listed


def busy() -> ModelError:
    return ModelError("rate_limited", "Too many requests, key sk-1234", retryable=True, retry_after=0.0)


def test_each_repeat_of_a_call_is_recorded_before_it_is_made(workspace: Path) -> None:
    trace = session(workspace, busy(), busy(), "Hello.").ask("hello")
    first, second = (each for each in trace.events if isinstance(each, RetryScheduled))
    assert (first.attempt, second.attempt, first.most) == (1, 2, 3) and first.wait >= 0
    assert first.reason.startswith("rate limit of ") and "sk-1234" not in first.reason
    assert trace.steps[0].retries == (first, second) and trace.answer == "Hello."


def test_a_priced_model_says_what_a_request_will_cost(workspace: Path) -> None:
    s = session(workspace)
    s.parts.model = PricedModel("Hello.")
    (request,) = (each for each in s.ask("hello").events if isinstance(each, ModelRequested))
    assert request.estimated_tokens > 0
    assert request.estimated_cost == pytest.approx(request.estimated_tokens * 0.000002)


def test_a_price_that_cannot_be_had_stops_no_call(workspace: Path) -> None:
    s = session(workspace)
    model = PricedModel("Hello.")
    model.listed = ModelError("configuration", "no key")
    s.parts.model = model
    trace = s.ask("hello")
    (request,) = (each for each in trace.events if isinstance(each, ModelRequested))
    assert trace.answer == "Hello." and request.estimated_cost is None
