"""Calls again what may go through later, and nothing else.

A call is made again only when its error says that it may go through, and never once text has reached the
person: they would read it twice. Tool calls of a broken answer were not run, so asking again is safe for
them. Waiting doubles from half a second with jitter; a provider's own Retry-After goes before it, and one
longer than `longest_wait` is not waited for but passed on. A cancellation ends the waiting at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from reyn_jupyter.models.base import Model, ModelError, Request, Response, Tier

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tenacity import RetryCallState

T = TypeVar("T")
_FIRST_WAIT = 0.5
_LONGEST_BACK_OFF = 20.0


@dataclass(frozen=True)
class Retry:
    """Attempt number `attempt` (from 1) failed with `error`; the next comes in `wait` seconds."""

    request: Request
    attempt: int
    error: ModelError
    wait: float


class RetryingModel:
    """A model around another one, with retries.

    Args:
        inner: the model to call.
        retries: further attempts after the first.
        on_retry: hears of every attempt that failed and is followed by another.
        longest_wait: the longest Retry-After, in seconds, that is waited for.
        first_wait: the bound of the first wait without Retry-After, in seconds; it doubles from there.

    Example:
        model = RetryingModel(LiteLLMModel("openai/gpt-4o-mini"), retries=3)
    """

    def __init__(
        self,
        inner: Model,
        *,
        retries: int = 3,
        on_retry: Callable[[Retry], None] | None = None,
        longest_wait: float = 60.0,
        first_wait: float = _FIRST_WAIT,
    ) -> None:
        self.inner = inner
        self._retries = max(0, retries)
        self._on_retry = on_retry
        self._longest_wait = longest_wait
        self._first_wait = first_wait

    @property
    def label(self) -> str:
        return self.inner.label

    @property
    def tier(self) -> Tier:
        return self.inner.tier

    @property
    def host(self) -> str | None:
        return self.inner.host

    @property
    def real(self) -> bool:
        return self.inner.real

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """One completion, after as many attempts as it takes. Raises the last attempt's ModelError."""
        shown = _Shown(on_text)
        listener = shown if on_text is not None else None

        def tell(attempt: int, error: ModelError, wait: float) -> None:
            if self._on_retry is not None:
                self._on_retry(Retry(request, attempt, error, wait))

        return await patiently(
            lambda: self.inner.complete(request, listener),
            retries=self._retries,
            longest_wait=self._longest_wait,
            first_wait=self._first_wait,
            worth_it=lambda: not shown.any,
            tell=tell,
        )


async def patiently(
    attempt: Callable[[], Awaitable[T]],
    *,
    retries: int = 3,
    longest_wait: float = 60.0,
    first_wait: float = _FIRST_WAIT,
    worth_it: Callable[[], bool] = lambda: True,
    tell: Callable[[int, ModelError, float], None] = lambda attempt, error, wait: None,
) -> T:
    """Make a call, and make it again while its ModelError says that it may go through later.

    Args:
        attempt: makes the call once.
        retries, longest_wait, first_wait: as for `RetryingModel`.
        worth_it: whether another attempt still makes sense.
        tell: hears of every failed attempt that is followed by another: its number, its error, the seconds until then.

    Raises:
        ModelError: that of the last attempt.
    """

    def again(error: BaseException) -> bool:
        if not isinstance(error, ModelError) or not error.retryable or not worth_it():
            return False
        return error.retry_after is None or error.retry_after <= longest_wait

    try:
        return await attempt()
    except ModelError as error:
        if retries <= 0 or not again(error):
            raise
        first = error
    return await _again(attempt, first, again, retries, first_wait, tell)


async def _again(
    attempt: Callable[[], Awaitable[T]],
    first: ModelError,
    again: Callable[[BaseException], bool],
    retries: int,
    first_wait: float,
    tell: Callable[[int, ModelError, float], None],
) -> T:
    """The attempts after the first, whose error is given; a call that succeeds does not come here."""
    from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

    pending: ModelError | None = first

    async def following() -> T:
        nonlocal pending
        if pending is not None:
            error, pending = pending, None
            raise error
        return await attempt()

    def before_sleep(state: RetryCallState) -> None:
        error = _error_of(state)
        if error is not None and state.next_action is not None:
            tell(state.attempt_number, error, float(state.next_action.sleep))

    retrying = AsyncRetrying(
        retry=retry_if_exception(again),
        stop=stop_after_attempt(retries + 1),
        wait=lambda state: _wait(state, first_wait),
        before_sleep=before_sleep,
        reraise=True,
    )
    return await retrying(following)


def _wait(state: RetryCallState, first_wait: float) -> float:
    from tenacity import wait_random, wait_random_exponential

    error = _error_of(state)
    if error is not None and error.retry_after is not None:
        # A little later than asked, so that several kernels do not come back in the same instant.
        return error.retry_after + wait_random(0, min(1.0, 0.1 + error.retry_after / 10))(state)
    return wait_random_exponential(multiplier=first_wait, max=_LONGEST_BACK_OFF)(state)


class _Shown:
    """Passes text on, and remembers that some went out."""

    def __init__(self, on_text: Callable[[str], None] | None) -> None:
        self._on_text = on_text
        self.any = False

    def __call__(self, text: str) -> None:
        self.any = self.any or bool(text)
        if self._on_text is not None:
            self._on_text(text)


def _error_of(state: RetryCallState) -> ModelError | None:
    error = state.outcome.exception() if state.outcome is not None else None
    return error if isinstance(error, ModelError) else None
