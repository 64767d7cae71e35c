"""Retries: what is tried again, how long is waited, and what is left alone."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from reyn_jupyter.models.base import Message, ModelError, Request
from reyn_jupyter.models.retry import Retry, RetryingModel, RetryPolicy
from reyn_jupyter.models.scripted import ScriptedModel, call
from tests.support.waiting import PATIENCE, awaited

SOON = RetryPolicy(first_wait=0.001)
REQUEST = Request("scripted", (Message("user", "Hello"),))


def passing(kind: Any = "unavailable", **options: Any) -> ModelError:
    return ModelError(kind, "not now", retryable=True, **options)


def patient(
    *steps: Any, heard: list[Retry] | None = None, retries: int = 3
) -> tuple[RetryingModel, ScriptedModel]:
    inner = ScriptedModel(*steps)
    on_retry = heard.append if heard is not None else None
    return RetryingModel(inner, replace(SOON, retries=retries), on_retry=on_retry), inner


async def test_a_passing_failure_is_tried_again() -> None:
    heard: list[Retry] = []
    model, inner = patient(passing(), passing("timeout"), "there", heard=heard)

    assert (await model.complete(REQUEST)).text == "there"
    assert len(inner.requests) == 3
    assert [(retry.attempt, retry.error.kind) for retry in heard] == [(1, "unavailable"), (2, "timeout")]


async def test_after_the_last_retry_the_last_error_is_raised() -> None:
    heard: list[Retry] = []
    model, inner = patient(*[passing()] * 3, passing("connection"), heard=heard, retries=3)

    with pytest.raises(ModelError) as raised:
        await model.complete(REQUEST)

    assert raised.value.kind == "connection"
    assert (len(inner.requests), len(heard)) == (4, 3)


@pytest.mark.parametrize(
    "error", [ModelError("auth", "no key"), ModelError("miss", "not recorded"), LookupError("x")]
)
async def test_what_cannot_pass_is_not_tried_again(error: Exception) -> None:
    model, inner = patient(error, "never")

    with pytest.raises(type(error)):
        await model.complete(REQUEST)

    assert len(inner.requests) == 1


async def test_no_retries_means_one_attempt() -> None:
    model, inner = patient(passing(), "never", retries=0)

    with pytest.raises(ModelError):
        await model.complete(REQUEST)

    assert len(inner.requests) == 1


async def test_retry_after_is_waited_for() -> None:
    heard: list[Retry] = []
    model, _ = patient(passing("rate_limited", retry_after=0.2), "there", heard=heard)
    begin = time.monotonic()

    await model.complete(REQUEST)

    assert time.monotonic() - begin >= 0.2
    assert heard[0].wait >= 0.2


async def test_a_retry_after_beyond_all_patience_is_passed_on() -> None:
    model, inner = patient(passing("rate_limited", retry_after=3600.0), "never")

    with pytest.raises(ModelError) as raised:
        await model.complete(REQUEST)

    assert raised.value.retry_after == 3600.0
    assert len(inner.requests) == 1


class Breaking(ScriptedModel):
    """Streams half an answer, then fails."""

    async def complete(self, request: Any, on_text: Any = None) -> Any:
        if not self.requests and on_text is not None:
            on_text("Half of an ans")
        return await super().complete(request, on_text)


async def test_once_text_has_reached_the_person_nothing_is_tried_again() -> None:
    inner = Breaking(passing("stream"), "Half of an answer is enough.")
    heard: list[str] = []

    with pytest.raises(ModelError):
        await RetryingModel(inner, SOON).complete(REQUEST, heard.append)

    assert heard == ["Half of an ans"]


async def test_without_a_listener_a_broken_answer_is_safe_to_ask_for_again() -> None:
    inner = Breaking(passing("stream"), call("list_actions"))

    response = await RetryingModel(inner, SOON).complete(REQUEST)

    assert response.tool_calls[0].name == "list_actions"


async def test_cancelling_ends_the_wait_at_once() -> None:
    model, inner = patient(passing("rate_limited", retry_after=30.0), "never")
    task = asyncio.create_task(model.complete(REQUEST))
    await awaited(lambda: inner.requests)
    await asyncio.sleep(0.05)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=PATIENCE)

    assert done == {task} and task.cancelled()
    assert len(inner.requests) == 1
