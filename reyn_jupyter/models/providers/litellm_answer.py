"""An answer of LiteLLM while it comes in: text, tool calls, finish reason, usage and cost.

Invariants:

- LiteLLM makes up a finish reason and a usage where the provider sent none. Here both are read from what it received,
  so that a broken answer is not taken for a whole one, nor an estimate for the provider's word.
- Every tool call has an id of its own within the completion, whatever the provider sent. Three questions decide where
  a delta belongs: does its index open a new slot, does its id name another call than the open one, and, for a provider
  that sends neither, is the open call complete already.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reyn_jupyter.models.base import (
    ModelError,
    Reasoning,
    Request,
    Response,
    ToolCall,
    Usage,
    canonical,
    estimate_tokens,
)
from reyn_jupyter.models.providers.provider_errors import cut_off, ended_in_error, message_in, no_completion
from reyn_jupyter.models.providers.raw_stream import ReplyBody, WholeDeltas
from reyn_jupyter.models.thoughts import split_thoughts

if TYPE_CHECKING:
    from collections.abc import Callable


# What providers call the usual ends. Any other reason stays what it is. Sources: the API references of OpenAI,
# Anthropic, Gemini, Mistral, Cohere, and Bedrock; the sources of vLLM, TGI, llama.cpp, and LiteLLM.
_FINISH = {
    "function_call": "tool_calls", "tool_use": "tool_calls", "tool_call": "tool_calls",
    "end_turn": "stop", "eos": "stop", "eos_token": "stop", "stop_sequence": "stop", "complete": "stop",
    "max_tokens": "length", "model_length": "length", "max_output_tokens": "length", "error_limit": "length",
    "model_context_window_exceeded": "length", "refusal": "content_filter", "safety": "content_filter",
    "prohibited_content": "content_filter", "blocklist": "content_filter", "spii": "content_filter",
    "recitation": "content_filter", "error_toxic": "content_filter", "sensitive": "content_filter",
    "guardrail_intervened": "content_filter", "content_filtered": "content_filter",
}  # fmt: skip
_USUAL = frozenset({"stop", "length", "tool_calls", "content_filter", "refusal"})
# A reply that the server did not finish: vLLM and SGLang say "abort", OpenRouter and Mistral "error".
_FAILED = frozenset({"error", "abort", "aborted", "cancelled"})
# Tokens of the prompt that a provider read from its cache and wrote to it, as OpenAI (in the details), Moonshot and
# Together (beside them), Anthropic, DeepSeek, Bedrock, Gemini, and OpenRouter (writes) call them.
_CACHE_READ = (
    "cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens", "cacheReadInputTokens",
    "cachedContentTokenCount",
)  # fmt: skip
_CACHE_WRITE = (
    "cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens", "cacheWriteInputTokens"
)  # fmt: skip
_MOST = 10**12  # tokens or dollars of one call: beyond it, nobody counted
# Text and arguments of one answer; a model that goes on beyond it is not going to stop.
_LARGEST_ANSWER = 16_000_000


class NotStreamed(Exception):  # noqa: N818 - not an error of the answer: it says that there was no stream
    """A request for a stream was answered by something else."""


class IncomingAnswer:
    """Takes an answer in, chunk by chunk or whole, and gives the `Response`."""

    def __init__(self, request: Request, on_text: Callable[[str], None] | None, body: ReplyBody) -> None:
        self._request = request
        self._body = body
        self._on_text = on_text
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._blocks: list[dict[str, Any]] = []
        self._refusal: list[str] = []
        self._size = 0
        self._calls = ToolCallAssembler()
        self._finish: str | None = None
        self._usage: Any = None
        self._fingerprint: str | None = None
        self._raw: object = None
        self.listener_error: Exception | None = None

    @property
    def begun(self) -> bool:
        return bool(self._text or self._refusal) or len(self._calls) > 0

    def take(self, chunk: Any) -> None:
        """One chunk of a stream."""
        self._fingerprint = getattr(chunk, "system_fingerprint", None) or self._fingerprint
        for choice in (getattr(chunk, "choices", None) or ())[:1]:
            self._finish = choice.finish_reason or self._finish
            self._take_message(choice.delta)

    def take_whole(self, answer: Any) -> None:
        """An answer that came in one piece."""
        choices = getattr(answer, "choices", None) or ()
        if not choices:
            raise no_completion(self._request.model)
        self._raw = answer
        self._fingerprint = getattr(answer, "system_fingerprint", None)
        self._usage = getattr(answer, "usage", None)
        self._finish = choices[0].finish_reason
        self._take_message(choices[0].message)
        beside = getattr(choices[0], "provider_specific_fields", None) or {}
        self._refuse_failure(message_in(beside.get("error")))

    def _take_message(self, message: Any) -> None:
        text, thoughts = _content(getattr(message, "content", None))
        thoughts = _content(getattr(message, "reasoning_content", None))[0] or thoughts
        for parts, piece in ((self._text, text), (self._thoughts, thoughts)):
            if piece:
                parts.append(piece)
                self._size += len(piece)
        blocks = getattr(message, "thinking_blocks", None)
        self._blocks += [dict(block) for block in blocks if block] if isinstance(blocks, list) else ()
        if text:
            self._tell(text)
        if refusal := _content(getattr(message, "refusal", None))[0]:
            self._take_refusal(refusal)
        for position, call in enumerate(getattr(message, "tool_calls", None) or ()):
            index = getattr(call, "index", position)
            self._calls.add(index, call.id, call.function.name, _arguments(call.function.arguments))
        legacy = getattr(message, "function_call", None)  # OpenAI before tools, and servers made for it
        if legacy is not None:
            self._calls.add(0, None, legacy.name, _arguments(legacy.arguments))
        if self._size + self._calls.size > _LARGEST_ANSWER:
            raise ModelError(
                "stream",
                f"{self._request.model} wrote more than {_LARGEST_ANSWER // 1_000_000} MB and was stopped.",
                "Ask for less, or set max_tokens under the model's parameters in reyn.yaml.",
            )

    def _tell(self, text: str) -> None:
        """Pass text on. A listener that fails is not the model's failure, and is told apart."""
        if self._on_text is None:
            return
        try:
            self._on_text(text)
        except Exception as error:
            self.listener_error = error
            raise

    def watch(self, stream: Any) -> None:
        """Read from a provider's stream what LiteLLM would leave out."""
        raw = getattr(stream, "completion_stream", None)
        if raw is not None and hasattr(raw, "__aiter__"):
            stream.completion_stream = WholeDeltas(
                raw, _content, self._take_refusal, lambda: self._body.is_ended
            )

    def _take_refusal(self, piece: str) -> None:
        self._refusal.append(piece)
        self._size += len(piece)
        self._tell(piece)

    def end_stream(self, stream: Any) -> None:
        """The stream ended in good order: see that it was a whole answer, and read the provider's usage.

        Raises NotStreamed when not a single chunk came, ModelError when the answer was cut off, and OddError.
        """
        received = getattr(stream, "chunks", ())
        if self._body.error is not None:
            raise self._body.error
        if not received or (self._body.is_json and not (self.begun or self._thoughts)):
            raise NotStreamed
        self._finish = getattr(stream, "received_finish_reason", self._finish) or self._body.reason
        if self._finish is None:
            raise cut_off(self._request.model)
        self._refuse_failure()
        self._raw = received
        self._usage = next(
            (usage for chunk in reversed(received) if (usage := getattr(chunk, "usage", None))), None
        )

    def _refuse_failure(self, said: str = "") -> None:
        """Raise ModelError if the reason for the end is that the server failed."""
        self._finish = _finish_of(self._finish, self._body.reason)
        if self._finish in _FAILED:
            raise ended_in_error(self._request.model, self._finish, said)

    def response(self, model: str, litellm: Any) -> Response:
        """The whole answer; an id that the provider left out is made from the conversation's length."""
        calls = self._calls.finish(f"call_{len(self._request.messages)}")
        text, thoughts = "".join(self._text), "".join(self._thoughts)
        arguments = "".join(call.arguments for call in calls)
        usage = _usage(self._usage) or _estimated(self._request, f"{thoughts}{text}", arguments)
        finish = self._finish or "stop"
        if self._refusal and not text and not calls:
            text, finish = "".join(self._refusal), "refusal"
        return Response(
            text=text,
            tool_calls=calls,
            finish_reason="tool_calls" if calls and finish == "stop" else finish,
            usage=usage,
            cost=_cost(litellm, model, usage, self._usage),
            model=model,
            fingerprint=self._fingerprint,
            raw=self._raw,
            reasoning=Reasoning(thoughts, _joined(self._blocks)),
        )


def _finish_of(passed_on: str | None, named: str | None) -> str:
    """Return the reason for the end: the usual name of the server's own, or that itself if LiteLLM made it "stop".

    >>> _finish_of("stop", "MAX_TOKENS"), _finish_of("stop", "network_error"), _finish_of("content_filter", "OTHER")
    ('length', 'network_error', 'content_filter')
    """
    passed, own = (
        _FINISH.get(name, name) for name in (str(each or "stop").lower() for each in (passed_on, named))
    )
    return passed if named is None or (own not in _USUAL and passed != "stop") else own


def whole_content(given: Any) -> tuple[str, str]:
    """Split the content of a whole message into its text and its thoughts.

    >>> whole_content("<think>Hm.</think>3")
    ('3', 'Hm.')
    """
    text, thoughts = _content(given)
    tagged, answer = split_thoughts(text)
    return answer, "\n\n".join(filter(None, (thoughts, tagged)))


def _content(given: Any) -> tuple[str, str]:
    """Return the text and the thoughts in a message's content, whatever form it has.

    Example:
        >>> _content([{"type": "thinking", "thinking": [{"text": "Hm."}]}, {"type": "text", "text": "3"}])
        ('3', 'Hm.')
        >>> _content(None), _content(3)
        (('', ''), ('3', ''))
    """
    if given is None:
        return "", ""
    if isinstance(given, str):
        return given, ""
    if isinstance(given, Mapping):
        thinking = given.get("thinking", given.get("reasoning"))
        if thinking is not None or given.get("type") in ("thinking", "reasoning", "redacted_thinking"):
            return "", "".join(_content(given.get("text") if thinking is None else thinking))
        return _content(next((given[name] for name in ("text", "content", "refusal") if name in given), None))
    if isinstance(given, list | tuple):
        parts = [_content(part) for part in given]
        return "".join(text for text, _ in parts), "".join(thoughts for _, thoughts in parts)
    return json.dumps(given), ""


def _arguments(given: Any) -> str | None:
    """Return a call's arguments as text; some servers send them as an object."""
    return given if given is None or isinstance(given, str) else json.dumps(given)


def _joined(blocks: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return thinking blocks whose pieces came in a stream: a signature ends its block."""
    whole: list[dict[str, Any]] = []
    for block in blocks:
        last = whole[-1] if whole else None
        if (
            last is not None
            and last.get("type") == block.get("type") == "thinking"
            and not last.get("signature")
        ):
            last["thinking"] = f"{last.get('thinking') or ''}{block.get('thinking') or ''}"
            last["signature"] = block.get("signature")
        else:
            whole.append(dict(block))
    return tuple(whole)


def _usage(given: Any) -> Usage | None:
    """The provider's own figures, None when it gave none that make sense."""
    prompt, completion = getattr(given, "prompt_tokens", None), getattr(given, "completion_tokens", None)
    if not (isinstance(prompt, int) and isinstance(completion, int)):
        return None
    if not (0 <= prompt < _MOST and 0 <= completion < _MOST):
        return None
    if prompt == completion == 0:
        return None
    thought = getattr(getattr(given, "completion_tokens_details", None), "reasoning_tokens", None)
    return Usage(
        prompt,
        completion,
        _cache_tokens(given, _CACHE_READ, prompt),
        reasoning_tokens=_tokens(thought, completion),
        cache_write_tokens=_cache_tokens(given, _CACHE_WRITE, prompt),
    )


def _cache_tokens(given: Any, names: tuple[str, ...], most: int) -> int:
    """Return the first figure that a usage has under one of the names, in its details or beside them."""
    details = getattr(given, "prompt_tokens_details", None)
    found = (_tokens(getattr(place, name, None), most) for name in names for place in (details, given))
    return next(filter(None, found), 0)


def _tokens(given: Any, most: int) -> int:
    counted = isinstance(given, int) and not isinstance(given, bool)
    return given if counted and 0 <= given <= most else 0


def _estimated(request: Request, text: str, arguments: str) -> Usage:
    sent = len(canonical(request.tools.specs)) + sum(
        len(canonical(message.text_alone.wire)) for message in request.messages
    )
    seen = sum(each.tokens for message in request.messages for each in message.attachments)
    return Usage((sent + 3) // 4 + seen, estimate_tokens(text) + estimate_tokens(arguments), estimated=True)


def _cost(litellm: Any, model: str, usage: Usage, given: Any) -> float | None:
    """US dollars: the provider's own figure where it names one, else LiteLLM's price list, else None."""
    stated = getattr(given, "cost", None)
    if isinstance(stated, (int, float)) and not isinstance(stated, bool) and 0 <= stated < _MOST:
        return float(stated)
    try:
        answer = litellm.ModelResponse(model=model)
        answer.usage = given
        if usage.estimated:
            answer.usage = litellm.Usage(usage.prompt_tokens, usage.completion_tokens, usage.total)
        elif usage.cached_tokens and not _cache_tokens(
            getattr(given, "prompt_tokens_details", None), _CACHE_READ, _MOST
        ):
            # LiteLLM would charge the full price for what it does not read as cached.
            cached = {"cached_tokens": usage.cached_tokens}
            answer.usage = litellm.Usage(
                usage.prompt_tokens, usage.completion_tokens, usage.total, prompt_tokens_details=cached
            )
        return float(litellm.completion_cost(completion_response=answer, model=model))
    except Exception:  # noqa: BLE001 - whatever the reason, the price is then unknown
        return None


# Looking whether arguments are complete costs their length each time; larger ones are taken as still open.
_LARGEST_CHECKED = 100_000


@dataclass
class _Slot:
    id: str | None
    name: str = ""
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def complete(self) -> bool:
        """Return whether the arguments so far are a whole JSON value."""
        if not self.parts or self.size > _LARGEST_CHECKED:
            return False
        try:
            json.loads("".join(self.parts))
        except (ValueError, RecursionError):
            return False
        return True


class ToolCallAssembler:
    """Collects deltas, gives calls.

    assembler = ToolCallAssembler()
    assembler.add(index=0, identity="call_1", name="list_actions", arguments="")
    assembler.add(index=0, identity=None, name=None, arguments="{}")
    assembler.finish("call_3")      # → (ToolCall("call_1", "list_actions", "{}"),)
    """

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._open: dict[int, _Slot] = {}
        self.size = 0

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, index: int | None, identity: str | None, name: str | None, arguments: str | None) -> None:
        """Take one delta. `index` None means the call that was open last."""
        if not (identity or name or arguments):
            return
        place = index if index is not None else next(reversed(self._open), 0)
        slot = self._open.get(place)
        if slot is None or self._begins_another(slot, identity, name):
            slot = _Slot(identity)
            self._slots.append(slot)
            self._open[place] = slot
        slot.id = slot.id or identity
        if name and name != slot.name:
            slot.name += name
        if arguments:
            slot.parts.append(arguments)
            slot.size += len(arguments)
            self.size += len(arguments)

    def _begins_another(self, slot: _Slot, identity: str | None, name: str | None) -> bool:
        if identity and slot.id and identity != slot.id:
            # Some servers give each fragment an id of its own. One without a name continues the open call.
            return bool(name) or slot.complete()
        another = name != slot.name if identity and slot.id else bool(slot.name)
        return bool(name) and another and slot.complete()

    def finish(self, prefix: str) -> tuple[ToolCall, ...]:
        """The calls as they began; a missing or repeated id becomes `prefix` and a number."""
        taken: set[str] = set()
        calls: list[ToolCall] = []
        for position, slot in enumerate(self._slots):
            identity = slot.id if slot.id and slot.id not in taken else f"{prefix}_{position}"
            while identity in taken:
                identity += "_"
            taken.add(identity)
            calls.append(ToolCall(identity, slot.name, "".join(slot.parts)))
        return tuple(calls)
