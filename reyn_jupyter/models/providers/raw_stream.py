"""What LiteLLM loses of a reply: content in parts, a refusal, the reason for the end, and errors in odd forms.

Invariant: a stream is complete only if it has the line `[DONE]` or names a finish reason; otherwise it was cut off.
LiteLLM drops the parts of a delta that it does not know, replaces an unknown finish reason by "stop", adds a finish
reason to every chunk of a Gemini stream, and fails on a whole reply whose content is a list. So this module reads the
body of the response while LiteLLM receives it.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from contextvars import ContextVar
from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

# Within a text, the quotes of these names would be escaped, and a line would not begin in the middle.
_REASON = re.compile(
    rb'"(finish_reason|(?:stop|done)_reason|(?:finish|stop|block)Reason)"\s*:\s*"([\w.-]{1,100})"'
)
_DONE = re.compile(rb"^data: ?\[DONE\]", re.MULTILINE)
# Errors that clients pass over: an event by its name, Mistral's form, and that of llama.cpp.
_ERROR = re.compile(
    rb'^(?:event: ?error\r?\n(?:data: ?)?|data: ?(?={[^\n]{0,2000}"object": ?"error")|error: ?(?={))',
    re.MULTILINE,
)
_TAIL = 256  # bytes of a body that are looked at again with the next piece
_LONGEST_ERROR = 20_000  # bytes

Reader = Callable[[Any], tuple[str, str]]


class OddError(Exception):
    """A server reported an error within a stream, in a form that its client passes over."""

    def __init__(self, body: Any) -> None:
        super().__init__("")
        self.body = body


class ReplyBody:
    """What the body of a response says of itself.

    Args:
        read_whole: Returns the text and the thoughts of a content, for a reply that does not stream.

    Attributes:
        status: The HTTP status.
        is_ended: Whether a line says that the stream ended.
        is_json: Whether it is one JSON object, and no stream.
    """

    def __init__(self, read_whole: Reader | None = None) -> None:
        self.status = 200
        self.is_ended = self.is_json = False
        self._read_whole = read_whole
        self._tail = b""
        self._reasons: dict[bytes, str] = {}
        self._error: bytes | None = None
        self._unzip: Any = None

    @property
    def reason(self) -> str | None:
        """The reason for the end, in the server's own word."""
        return self._reasons.get(b"finish_reason") or next(reversed(self._reasons.values()), None)

    @property
    def error(self) -> OddError | None:
        """The error that it reports in a form that clients pass over."""
        if self._error is None:
            return None
        said = self._error.partition(b"\n")[0].decode("utf-8", "replace")
        with suppress(ValueError, RecursionError):
            return OddError(json.loads(said))
        return OddError(said)

    def note(self, response: httpx.Response) -> None:
        """Begin with the head of a response."""
        import httpx

        self.status, stream = response.status_code, response.stream
        self.is_json = "application/json" in response.headers.get("content-type", "")
        if response.headers.get("content-encoding") in ("gzip", "deflate"):
            self._unzip = zlib.decompressobj(47)
        if not isinstance(stream, httpx.AsyncByteStream):
            return
        whole = self._read_whole is not None and self.is_json and self.status < 400
        if whole:
            response.headers.pop("content-encoding", None)
        response.stream = _noted(stream, self, whole)

    def take(self, piece: bytes) -> bytes:
        """Look at the next piece of the body, and return it without compression."""
        if self._unzip is not None:
            try:
                piece = self._unzip.decompress(piece)
            except zlib.error:
                self._unzip = None
        if self._error is not None:
            self._error = (self._error + piece)[:_LONGEST_ERROR]
        seen = self._tail + piece
        for name, value in _REASON.findall(seen):
            self._reasons.pop(name, None)
            self._reasons[name] = value.decode()
        self.is_ended = self.is_ended or (b"[DONE]" in seen and _DONE.search(seen) is not None)
        if self._error is None and b"error" in seen and (begun := _ERROR.search(seen)) is not None:
            self._error = seen[begun.end() :]
        self._tail = seen[-_TAIL:]
        return piece

    def tidied(self, content: bytes) -> bytes:
        """Return a whole chat completion with its content as text, and thoughts beside it."""
        with suppress(ValueError, RecursionError, TypeError, AttributeError):
            body = json.loads(content)
            for choice in body.get("choices") or ():
                message = choice["message"]
                if message.get("content") is None or self._read_whole is None:
                    continue
                message["content"], thoughts = self._read_whole(message["content"])
                known = message.get("reasoning_content") or message.get("reasoning")
                if thoughts:
                    message["reasoning_content"] = "\n\n".join(filter(None, (known, thoughts)))
            return json.dumps(body).encode()
        return content


_body: ContextVar[ReplyBody | None] = ContextVar("reply_body", default=None)


def next_body(read_whole: Reader | None = None) -> ReplyBody:
    """Return what will hold the facts of the next body that the current task receives."""
    body = ReplyBody(read_whole)
    _body.set(body)
    return body


async def note_body(response: httpx.Response) -> None:
    """Watch the body of a response while the client reads it (an `httpx` response hook)."""
    body = _body.get()
    if body is not None:
        body.note(response)


def _noted(stream: httpx.AsyncByteStream, body: ReplyBody, whole: bool) -> httpx.AsyncByteStream:
    import httpx

    class NotedBody(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            pieces = []
            async for piece in stream:
                plain = body.take(piece)
                if whole:
                    pieces.append(plain)
                else:
                    yield piece
            if whole:
                yield body.tidied(b"".join(pieces))

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
        read_content: Reader,
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
        calls = getattr(delta, "tool_calls", None)
        if isinstance(calls, dict):  # one call in place of a list, as TGI sent it
            from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

            delta.tool_calls = [ChoiceDeltaToolCall.model_validate(calls)]
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
