"""What LiteLLM loses of a stream: content in parts, a refusal, and an end that gives no reason.

Invariant: a stream counts as ended only if its last line says so (`[DONE]`). One whose connection closes before that is
cut off. Source: LiteLLM passes on of a delta what it knows, and wants a finish reason, which some servers leave out. It
gives every piece of a Gemini stream one, so that only the body tells whether Gemini named a reason.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

_END = b"[DONE]"
_GEMINI_REASON = b'"finishReason"'  # within a text, its quotes would be escaped
_TAIL = 64  # bytes at the end of a body that are looked at


class BodyEnd:
    """What a response's body says of its end.

    Attributes:
        tail: The last bytes.
        names_reason: Whether it has a finish reason in Gemini's form.
    """

    def __init__(self) -> None:
        self.tail = b""
        self.names_reason = False

    def take(self, piece: bytes) -> None:
        """Look at the next piece of the body."""
        self.names_reason = self.names_reason or _GEMINI_REASON in self.tail + piece
        self.tail = (self.tail + piece[-_TAIL:])[-_TAIL:]

    @property
    def is_said(self) -> bool:
        """Return whether the body's last line ends a stream of events."""
        return self.tail.rstrip().endswith(_END)


_end: ContextVar[BodyEnd | None] = ContextVar("body_end", default=None)


def next_body() -> BodyEnd:
    """Return what will hold the end of the next body that the current task receives."""
    end = BodyEnd()
    _end.set(end)
    return end


async def note_body(response: httpx.Response) -> None:
    """Let the end of a response's body be known; a hook of an HTTP client."""
    import httpx

    end, stream = _end.get(), response.stream
    if end is not None and isinstance(stream, httpx.AsyncByteStream):
        response.stream = _noted(stream, end)


def _noted(stream: httpx.AsyncByteStream, end: BodyEnd) -> httpx.AsyncByteStream:
    import httpx

    class NotedBody(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in stream:
                end.take(piece)
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return NotedBody()


class WholeDeltas:
    """A stream of chat-completion chunks from a provider's client, as LiteLLM can pass it on.

    Args:
        stream: The client's stream.
        read_content: Returns the text and the thoughts in a delta's content.
        on_refusal: Receives pieces of a refusal.
        is_ended: Returns whether the server said that the stream ended.
    """

    def __init__(
        self,
        stream: Any,
        read_content: Callable[[Any], tuple[str, str]],
        on_refusal: Callable[[str], None],
        is_ended: Callable[[], bool],
    ) -> None:
        self._stream, self._iterator = stream, aiter(stream)
        self._read_content, self._on_refusal, self._is_ended = read_content, on_refusal, is_ended
        self._last: Any = None
        self._finished = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> WholeDeltas:
        return self

    async def __anext__(self) -> Any:
        try:
            chunk = await anext(self._iterator)
        except StopAsyncIteration:
            if self._finished or self._last is None or not self._is_ended():
                raise
            return self._closing(self._last)
        for choice in (getattr(chunk, "choices", None) or ())[:1]:
            self._last = chunk
            self._finished = self._finished or getattr(choice, "finish_reason", None) is not None
            self._tidy(getattr(choice, "delta", None))
        return chunk

    def _tidy(self, delta: Any) -> None:
        content, refusal = getattr(delta, "content", None), getattr(delta, "refusal", None)
        if content is not None and not isinstance(content, str):
            text, thoughts = self._read_content(content)
            delta.content = text
            if thoughts:
                delta.reasoning_content = thoughts
        if isinstance(refusal, str) and refusal:
            self._on_refusal(refusal)
            delta.refusal = None

    def _closing(self, last: Any) -> Any:
        """Return a last chunk that says no more than that the answer ended."""
        self._finished = True
        closing = last.model_copy(deep=True) if hasattr(last, "model_copy") else copy(last)
        choice = closing.choices[0]
        choice.finish_reason = "stop"
        for name in ("content", "tool_calls", "function_call", "reasoning_content", "reasoning"):
            if getattr(choice.delta, name, None) is not None:
                setattr(choice.delta, name, None)
        return closing
