"""The seam of every language model: ``complete(request) → response``.

LiteLLM, the offline model, a cassette and a scripted model implement `Model`; only the first imports LiteLLM.
A `Request` is plain data in the chat-completions shape, redacted before it gets here, and its `key` is a
stable hash: equal requests have equal keys in every process.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from json.encoder import encode_basestring as _json_text
from typing import TYPE_CHECKING, Any, Literal, Protocol

from reyn_jupyter.support.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Role = Literal["system", "user", "assistant", "tool"]
Tier = Literal["light", "standard", "strong"]


_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))
# Where the id of a blob stands: in a summary, and in the arguments of a call (JSON inside JSON).
BLOB_ID = re.compile(
    rb"""(\[blob:|(?:blob_id|\$blob)\\*"\s*:\s*\\*")([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})"""
)
_MESSAGE_TOKENS = 4  # what a message costs besides its text


def canonical(value: object) -> bytes:
    """Canonical JSON: sorted keys, no spaces, UTF-8."""
    return _CANONICAL.encode(value).encode("utf-8", "surrogatepass")


@lru_cache(256)
def _short_hash(part: bytes) -> str:
    return hashlib.sha256(part).hexdigest()[:16]


def estimate_tokens(text: str | bytes) -> int:
    """Tokens estimated offline as UTF-8 bytes / 4, rounded up; shown with ≈."""
    return (len(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text) + 3) // 4


@dataclass(frozen=True)
class ToolCall:
    """A call that a model asks for. `arguments` is the raw JSON text, as it came."""

    id: str
    name: str
    arguments: str

    @property
    def canonical(self) -> str:
        """The wire form as canonical JSON."""
        function = f'{{"arguments":{_json_text(self.arguments)},"name":{_json_text(self.name)}}}'
        return f'{{"function":{function},"id":{_json_text(self.id)},"type":"function"}}'


Medium = Literal["image", "audio"]
TEXT_ALONE: frozenset[Medium] = frozenset()

# Pixels an image token, and pixels that an image is scaled down to at most: Anthropic's figures for Claude, whose
# estimate lies between those of the other providers. Source: "Vision", evaluate image size, Claude documentation.
_IMAGE_PIXELS, _LARGEST_IMAGE = 750, 1_568 * 1_568 // 2
_SOUND_TOKENS = (
    32  # a second; Gemini's figure, the highest. Source: "Audio understanding", Gemini API documentation
)
_SOUND_BYTES = (
    4_000  # a second where a header does not say how long a sound is: 32 kbit/s, so that it is not too few
)


@dataclass(frozen=True)
class Attachment:
    """An image or a sound beside the text of a message. The text holds a sentence about it, for whoever cannot see it.

    Attributes:
        blob: the blob that holds it; the record names it in place of the bytes.
        data: the bytes, which no record holds and no comparison sees: `sha256` stands for them.
    """

    mime: str
    sha256: str
    size: int
    blob: str = ""
    name: str = ""
    width: int = 0
    height: int = 0
    seconds: float = 0.0
    data: bytes = field(default=b"", repr=False, compare=False)

    @property
    def medium(self) -> Medium:
        return "audio" if self.mime.startswith("audio/") else "image"

    @property
    def record(self) -> dict[str, Any]:
        """The attachment as the run log holds it."""
        known = {"name": self.name, "width": self.width, "height": self.height, "blob_id": self.blob}
        shown = {key: value for key, value in known.items() if value}
        return {"mime": self.mime, "bytes": self.size, "sha256": self.sha256, **shown}

    @property
    def tokens(self) -> int:
        """Tokens that it costs, estimated from its size alone."""
        if self.medium == "audio":
            return 1 + int((self.seconds or self.size / _SOUND_BYTES) * _SOUND_TOKENS)
        return 1 + min(self.width * self.height, _LARGEST_IMAGE) // _IMAGE_PIXELS


@dataclass(frozen=True)
class Reasoning:
    """The thoughts of a model before an answer or a call.

    Attributes:
        text: The thoughts, as far as the provider shows them.
        blocks: The provider's own form with signatures (Anthropic, Bedrock, OpenRouter). It takes nothing else back.
    """

    text: str = ""
    blocks: tuple[dict[str, Any], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text or self.blocks)

    @property
    def wire(self) -> dict[str, Any]:
        """The thoughts as fields of a message."""
        given = {"reasoning_content": self.text, "thinking_blocks": list(self.blocks)}
        return {name: value for name, value in given.items() if value}


NO_REASONING = Reasoning()


@dataclass(frozen=True)
class Message:
    """One message of a conversation; never changed once made, so its wire form and digest are made once.

    Attributes:
        reasoning: Thoughts before the calls of an assistant message, as long as their turn lasts.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    attachments: tuple[Attachment, ...] = ()
    reasoning: Reasoning = NO_REASONING

    @property
    def text_alone(self) -> Message:
        """The message for a model that takes text alone."""
        return replace(self, attachments=()) if self.attachments else self

    @cached_property
    def wire(self) -> dict[str, Any]:
        """The message in the chat-completions shape."""
        wire: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            wire["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.tool_calls
            ]
        if self.tool_call_id is not None:
            wire["tool_call_id"] = self.tool_call_id
        if self.attachments:
            wire["attachments"] = [each.record for each in self.attachments]
        return {**wire, **self.reasoning.wire} if self.reasoning else wire

    @cached_property
    def canonical(self) -> bytes:
        """The wire form without thoughts as canonical JSON.

        It is put together by hand, since it is made for every message of every turn. Thoughts have no part in it: a
        recording is found by what was asked and done.
        """
        parts = [f'"content":{_json_text(self.content)}', f'"role":"{self.role}"']
        if self.attachments:
            parts.insert(0, f'"attachments":{_CANONICAL.encode([each.record for each in self.attachments])}')
        if self.tool_call_id is not None:
            parts.append(f'"tool_call_id":{_json_text(self.tool_call_id)}')
        if self.tool_calls:
            parts.append(f'"tool_calls":[{",".join([call.canonical for call in self.tool_calls])}]')
        return f"{{{','.join(parts)}}}".encode("utf-8", "surrogatepass")

    @cached_property
    def digest(self) -> bytes:
        """A hash of the wire form. The ids of blobs, new in every run, count by their place alone."""
        wire = self.canonical
        return hashlib.sha256(BLOB_ID.sub(rb"\1<blob>", wire) if b"blob" in wire else wire).digest()

    @cached_property
    def tokens(self) -> int:
        """Tokens of the message, estimated; made once, so that a long history costs nothing again."""
        attached = sum([each.tokens for each in self.attachments])
        if self.tool_calls:
            return estimate_tokens(self.canonical) + estimate_tokens(self.reasoning.text)
        return estimate_tokens(self.content) + _MESSAGE_TOKENS + attached

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Message:
        calls = tuple(
            ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in wire.get("tool_calls") or ()
        )
        reasoning = Reasoning(wire.get("reasoning_content") or "", tuple(wire.get("thinking_blocks") or ()))
        content = wire.get("content") or ""
        return cls(wire["role"], content, calls, wire.get("tool_call_id"), reasoning=reasoning)


@dataclass(frozen=True)
class ToolSet:
    """The tools offered, in the chat-completions shape; one object for a whole conversation where possible."""

    specs: tuple[dict[str, Any], ...] = ()

    @cached_property
    def digest(self) -> bytes:
        return hashlib.sha256(canonical(self.specs)).digest()

    @cached_property
    def tokens(self) -> int:
        """Tokens of the definitions, estimated."""
        return estimate_tokens(canonical(self.specs)) if self.specs else 0

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(spec["function"]["name"] for spec in self.specs)


class Prefix:
    """The messages that the requests of a conversation begin with, hashed once, however long the history is.

    Args:
        messages: the system message and the history.
        before: the prefix of an earlier turn, whose hash goes on where its messages are the first of these.
    """

    def __init__(self, messages: tuple[Message, ...], before: Prefix | None = None) -> None:
        self.messages = messages
        self._state: Any = (before or _NO_PREFIX).hash(messages) if messages else hashlib.sha256()

    @cached_property
    def has_attachments(self) -> bool:
        """Whether a message carries more than text."""
        return any(message.attachments for message in self.messages)

    def hash(self, messages: tuple[Message, ...]) -> Any:
        """Return the SHA-256 over the digests of messages; those of the prefix cost nothing again."""
        count = len(self.messages)
        known = messages[:count] == self.messages
        state = self._state.copy() if known else hashlib.sha256()
        state.update(b"".join([message.digest for message in messages[count if known else 0 :]]))
        return state


_NO_PREFIX = Prefix(())


@dataclass(frozen=True)
class Request:
    """One call of a model. `tool_choice` is "auto", "none", "required" or the name of one tool.

    `timeout` is how many seconds the model may be silent, `first_word` the same before its first word (`timeout` where
    None). `context` is how many tokens the request was fitted to. `prefix` is kept by whoever sends many requests of
    one conversation; only the time that `key` takes depends on it.
    """

    model: str
    messages: tuple[Message, ...]
    tools: ToolSet = ToolSet()
    tool_choice: str = "auto"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 60.0
    repeat: int = 0
    first_word: float | None = None
    context: int | None = field(default=None, compare=False)
    prefix: Prefix | None = field(default=None, compare=False, repr=False)

    @cached_property
    def components(self) -> dict[str, str]:
        """A short hash of each part that makes up the key, so that a miss can say which one moved."""
        return {
            "model": _short_hash(self.model.encode()),
            "messages": (self.prefix or _NO_PREFIX).hash(self.messages).hexdigest()[:16],
            "tools": _short_hash(self.tools.digest),
            "tool_choice": _short_hash(self.tool_choice.encode()),
            "parameters": _short_hash(canonical(dict(self.parameters)) if self.parameters else b"{}"),
            "repeat": _short_hash(str(self.repeat).encode()),
        }

    @cached_property
    def key(self) -> str:
        return hashlib.sha256("".join(self.components.values()).encode()).hexdigest()

    def facts(self, turn: int, logged: int, *, system: bool) -> RequestFacts:
        """Return what a run log says of the request.

        Args:
            turn: the index of the first message of the turn; the history before it is left out of `tokens`.
            logged: the index of the first message that the log does not have yet.
            system: whether the log needs the system message, the first one, too.
        """
        first = self.messages[0]
        tokens = sum([message.tokens for message in self.messages[turn:]], first.tokens + self.tools.tokens)
        wire = [message.wire for message in self.messages[logged:]]
        return RequestFacts(self.key, self.components, tuple([first.wire, *wire] if system else wire), tokens)

    @property
    def wire(self) -> dict[str, Any]:
        """The request as plain JSON, as a model in another process would get it."""
        return {
            "model": self.model,
            "messages": [message.wire for message in self.messages],
            "tools": list(self.tools.specs),
            "tool_choice": self.tool_choice,
            **self.parameters,
        }


@dataclass(frozen=True)
class RequestFacts:
    """The run log's facts of a request: its key and what that is made of, the new messages, the estimated tokens."""

    key: str
    components: dict[str, str]
    messages: tuple[dict[str, Any], ...]
    tokens: int


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, as the provider counts them; `estimated` when they are bytes / 4.

    `reasoning_tokens` are a part of `completion_tokens`. `cached_tokens` (read from the provider's cache) and
    `cache_write_tokens` (written to it) are parts of `prompt_tokens`.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class Response:
    """The answer of a model.

    `cost` is in US dollars, None where the price is not known; `raw` is what the provider sent, as its client has it.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    usage: Usage = Usage()
    cost: float | None = None
    model: str = ""
    fingerprint: str | None = None
    raw: object = field(default=None, repr=False, compare=False)
    reasoning: Reasoning = NO_REASONING


ErrorKind = Literal[
    "auth", "rate_limited", "context_too_long", "timeout", "connection", "bad_request", "not_found", "unavailable",
    "content_filter", "stream", "miss", "configuration", "quota", "unsupported", "tool_choice",
]  # fmt: skip
# What every other request to the same model meets too, until somebody mends it: the key, the permission, the name, the
# account, what the model or its parameters cannot do. No retry cures it, and no other question.
LASTING: frozenset[ErrorKind] = frozenset(
    {"auth", "not_found", "configuration", "quota", "unsupported", "tool_choice"}
)


class ModelError(UserError):
    """A model call that failed, in plain words: what happened, and what to do next.

    `retryable` says whether the same call may go through later; `retry_after` (seconds) is the provider's word. The
    kinds in `LASTING` fail every call of the model alike: "tool_choice" every call that forces the choice of a tool.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        hint: str = "",
        *,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.message = message
        self.hint = hint
        self.retryable = retryable
        self.retry_after = retry_after


class Model(Protocol):
    """A language model, or what stands in for one.

    `label` is what people call it ("offline", "openai/gpt-4o-mini"); `host` is where requests go, None when they
    stay in the process; `real` is False for the offline model, cassettes, scripted models and simulators.

    One that takes images or sounds says so in a property `media`, see `media_taken`; it is handed no others. One that
    reads only the last turns of a conversation says how many in `history_turns`; it is sent no others. One whose price
    is known gives it by an async method `price`; one whose context length is known, by an async method
    `context_length`. One that answers only so many requests at a time says how many in
    `slots`. One that works from the wrappers' listings alone says so in `reads_listings`. One whose forced choices have
    a form that is known before the first of them gives it in `choice_form`.
    """

    @property
    def label(self) -> str: ...
    @property
    def tier(self) -> Tier: ...
    @property
    def host(self) -> str | None: ...
    @property
    def real(self) -> bool: ...

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """One completion. `on_text` gets pieces of the text as they stream in. Raises ModelError."""
        ...


async def context_length_of(model: Model) -> int | None:
    """Return how many tokens a model takes by its own word; None where it has none, or cannot say now."""
    ask = getattr(model, "context_length", None)
    try:
        found: int | None = None if ask is None else await ask()
    except ModelError:  # the call itself says it
        return None
    return found


def media_taken(model: Model) -> frozenset[Medium]:
    """Return what a model takes beside text: what its `media` says, and text alone where it has none."""
    taken: frozenset[Medium] = getattr(model, "media", TEXT_ALONE)
    return taken
