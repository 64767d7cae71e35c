"""Calls a model again when the call may go through later, and only then.

Invariants: a call is repeated only when its error says that it may go through, and never once text has reached the
person, who would read it twice. Tool calls of a broken answer were not run, so asking again is safe for them. Waits
double with jitter; a provider's Retry-After replaces them, and one longer than `longest_wait` is not waited for.
A cancellation ends the waiting at once. How often and how long stands in `RetryPolicy` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from reyn_jupyter.config.settings import DEFAULT_RETRIES
from reyn_jupyter.models.base import Model, ModelError, Request, Response
from reyn_jupyter.models.call_log import ModelCallLog
from reyn_jupyter.support.import_path import imports_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tenacity import RetryCallState

T = TypeVar("T")


@dataclass(frozen=True)
class RetryPolicy:
    """The number of repeats of a call, and the waits before them.

    Attributes:
        retries: further attempts after the first.
        first_wait: the bound of the first wait without Retry-After, in seconds; it doubles from there.
        longest_back_off: the bound of such waits, in seconds.
        longest_wait: the longest Retry-After, in seconds, that is waited for.
    """

    retries: int = DEFAULT_RETRIES
    first_wait: float = 0.5
    longest_back_off: float = 20.0
    longest_wait: float = 60.0


DEFAULT_POLICY = RetryPolicy()


@dataclass(frozen=True)
class Retry:
    """Attempt number `attempt` (from 1) failed with `error`; the next comes in `wait` seconds."""

    attempt: int
    error: ModelError
    wait: float


class RetryingModel:
    """Completions of a model, with retries.

    Args:
        inner: the model to call.
        policy: how often, and after which waits.
        on_retry: called before each wait.
        log: shows each call to the person where they asked for that.

    Example:
        model = RetryingModel(LiteLLMModel("openai/gpt-4o-mini"), RetryPolicy(retries=5))
    """

    def __init__(
        self,
        inner: Model,
        policy: RetryPolicy = DEFAULT_POLICY,
        *,
        on_retry: Callable[[Retry], None] | None = None,
        log: ModelCallLog | None = None,
    ) -> None:
        self._inner = inner
        self._policy = policy
        self._on_retry = on_retry
        self._log = log

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """Return one completion, after as many attempts as it takes. Raises the last attempt's ModelError."""
        call = await self._log.begin(request) if self._log is not None else None
        if self._log is None or call is None:
            return await self._complete(request, on_text, self._on_retry)

        def on_retry(retry: Retry) -> None:
            call.retries.append((retry.attempt, retry.wait, retry.error.message))
            if self._on_retry is not None:
                self._on_retry(retry)

        try:
            response = await self._complete(request, on_text, on_retry)
        except ModelError as error:
            await self._log.end(call, error)
            raise
        await self._log.end(call, response)
        return response

    async def _complete(
        self,
        request: Request,
        on_text: Callable[[str], None] | None,
        on_retry: Callable[[Retry], None] | None,
    ) -> Response:
        streamed = False

        def pass_on(text: str) -> None:
            nonlocal streamed
            streamed = streamed or bool(text)
            if on_text is not None:
                on_text(text)

        listener = pass_on if on_text is not None else None
        with imports_of(self._inner):
            return await call_with_retries(
                lambda: self._inner.complete(request, listener),
                self._policy,
                is_repeatable=lambda: not streamed,
                on_retry=on_retry,
            )


async def call_with_retries(
    call: Callable[[], Awaitable[T]],
    policy: RetryPolicy = DEFAULT_POLICY,
    *,
    is_repeatable: Callable[[], bool] = lambda: True,
    on_retry: Callable[[Retry], None] | None = None,
) -> T:
    """Return what a call gives, after as many attempts as it takes.

    Args:
        call: makes the call once.
        policy: how often, and after which waits.
        is_repeatable: whether another attempt still does no harm.
        on_retry: called before each wait.

    Raises:
        ModelError: that of the last attempt.
    """
    try:  # tenacity costs 20 µs a call, which most calls need not pay
        return await call()
    except ModelError as error:
        failure = error
    from tenacity import (
        AsyncRetrying,
        retry_if_exception,
        stop_after_attempt,
        wait_random,
        wait_random_exponential,
    )

    back_off = wait_random_exponential(multiplier=policy.first_wait, max=policy.longest_back_off)

    def may_go_through(error: BaseException) -> bool:
        if not isinstance(error, ModelError) or not error.retryable:
            return False
        return (error.retry_after or 0.0) <= policy.longest_wait and is_repeatable()

    def wait(state: RetryCallState) -> float:
        retry_after = _error(state).retry_after
        if retry_after is None:
            return back_off(state)
        # A little later than asked, so that several kernels do not come back in the same instant.
        return retry_after + wait_random(0, min(1.0, 0.1 + retry_after / 10))(state)

    def before_sleep(state: RetryCallState) -> None:
        if on_retry is not None:
            on_retry(Retry(state.attempt_number, _error(state), state.upcoming_sleep))

    retrying = AsyncRetrying(
        retry=retry_if_exception(may_go_through),
        stop=stop_after_attempt(max(0, policy.retries) + 1),
        wait=wait,
        before_sleep=before_sleep,
        reraise=True,
    )
    async for attempt in retrying:
        with attempt:
            if attempt.retry_state.attempt_number == 1:
                raise failure
            return await call()
    raise AssertionError("the last attempt returns or raises")


def _error(state: RetryCallState) -> ModelError:
    """The error of an attempt that `may_go_through`."""
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, ModelError)
    return error
