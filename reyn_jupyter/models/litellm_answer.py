"""An answer of LiteLLM while it comes in: text, tool calls, finish reason, usage and cost.

LiteLLM makes up a finish reason and a usage where the provider sent none. Here both are read from what it
received, so that a broken answer is not taken for a whole one, nor an estimate for the provider's word.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from reyn_jupyter.models.deltas import ToolCallAssembler
from reyn_jupyter.models.failures import no_completion
from reyn_jupyter.models.seam import ModelError, Request, Response, Usage, canonical, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

_FINISH = {
    "function_call": "tool_calls", "tool_use": "tool_calls", "end_turn": "stop", "eos": "stop",
    "stop_sequence": "stop", "max_tokens": "length", "refusal": "content_filter", "safety": "content_filter",
}  # fmt: skip
_MOST = 10**12  # tokens or dollars of one call: beyond it, nobody counted
# Text and arguments of one answer; a model that goes on beyond it is not going to stop.
_LARGEST_ANSWER = 16_000_000


class NotStreamed(Exception):  # noqa: N818 - not an error of the answer: it says that there was no stream
    """A request for a stream was answered by something else."""


class IncomingAnswer:
    """Takes an answer in, chunk by chunk or whole, and gives the `Response`."""

    def __init__(self, request: Request, on_text: Callable[[str], None] | None) -> None:
        self._request = request
        self._on_text = on_text
        self._text: list[str] = []
        self._size = 0
        self._calls = ToolCallAssembler()
        self._finish: str | None = None
        self._usage: Any = None
        self._fingerprint: str | None = None
        self.listener_error: Exception | None = None

    @property
    def begun(self) -> bool:
        return bool(self._text) or len(self._calls) > 0

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
        self._fingerprint = getattr(answer, "system_fingerprint", None)
        self._usage = getattr(answer, "usage", None)
        self._finish = choices[0].finish_reason
        self._take_message(choices[0].message)

    def _take_message(self, message: Any) -> None:
        text = getattr(message, "content", None)
        if text:
            self._text.append(text)
            self._size += len(text)
            self._tell(text)
        for position, call in enumerate(getattr(message, "tool_calls", None) or ()):
            function = call.function
            arguments = function.arguments
            if arguments is not None and not isinstance(arguments, str):
                arguments = json.dumps(arguments)
            self._calls.add(getattr(call, "index", position), call.id, function.name, arguments)
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

    def end_stream(self, stream: Any) -> None:
        """The stream ended in good order: see that it was a whole answer, and read the provider's usage.

        Raises NotStreamed when not a single chunk came, ModelError when the answer was cut off.
        """
        received = getattr(stream, "chunks", ())
        if not received:
            raise NotStreamed
        if getattr(stream, "received_finish_reason", self._finish) is None:
            raise ModelError(
                "stream",
                f"The answer of {self._request.model} ended before it was finished.",
                "Ask again.",
                retryable=True,
            )
        self._usage = next(
            (usage for chunk in reversed(received) if (usage := getattr(chunk, "usage", None))), None
        )

    def response(self, model: str, litellm: Any) -> Response:
        """The whole answer; an id that the provider left out is made from the conversation's length."""
        calls = self._calls.finish(f"call_{len(self._request.messages)}")
        text = "".join(self._text)
        arguments = "".join(call.arguments for call in calls)
        usage = _usage(self._usage) or _estimated(self._request, text, arguments)
        finish = str(self._finish or "stop").lower()
        finish = _FINISH.get(finish, finish)
        return Response(
            text=text,
            tool_calls=calls,
            finish_reason="tool_calls" if calls and finish == "stop" else finish,
            usage=usage,
            cost=_cost(litellm, model, usage, self._usage),
            model=model,
            fingerprint=self._fingerprint,
        )


def _usage(given: Any) -> Usage | None:
    """The provider's own figures, None when it gave none that make sense."""
    prompt, completion = getattr(given, "prompt_tokens", None), getattr(given, "completion_tokens", None)
    if not (isinstance(prompt, int) and isinstance(completion, int)):
        return None
    if not (0 <= prompt < _MOST and 0 <= completion < _MOST):
        return None
    if prompt == completion == 0:
        return None
    cached = getattr(getattr(given, "prompt_tokens_details", None), "cached_tokens", None)
    return Usage(prompt, completion, cached if isinstance(cached, int) else 0)


def _estimated(request: Request, text: str, arguments: str) -> Usage:
    sent = len(canonical(request.tools.specs)) + sum(
        len(canonical(message.wire)) for message in request.messages
    )
    return Usage((sent + 3) // 4, estimate_tokens(text) + estimate_tokens(arguments), estimated=True)


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
        return float(litellm.completion_cost(completion_response=answer, model=model))
    except Exception:  # noqa: BLE001 - whatever the reason, the price is then unknown
        return None
