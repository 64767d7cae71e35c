"""The offline model as a LiteLLM provider: ``offline/<anything>`` goes through LiteLLM and back in here.

It shows that the path through LiteLLM is whole, streams and tool calls included, without a key or a network.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from reyn_jupyter.models.base import Message, Model, Request, Response, ToolSet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

PROVIDER = "offline"


def register(litellm: Any, model: Model | None = None) -> None:
    """Make ``offline/…`` a model string that LiteLLM knows. Doing it again replaces the model behind it.

    Args:
        litellm: the LiteLLM module, as `litellm_loader.load` gives it.
        model: the model that answers; the offline model when None.
    """
    known = any(entry["provider"] == PROVIDER for entry in litellm.custom_provider_map)
    if known and model is None:
        return
    others = [entry for entry in litellm.custom_provider_map if entry["provider"] != PROVIDER]
    handler = _handler(litellm, model if model is not None else _offline())
    litellm.custom_provider_map = [*others, {"provider": PROVIDER, "custom_handler": handler}]
    litellm.utils.custom_llm_setup()


def _offline() -> Model:
    from reyn_jupyter.models.offline import OfflineModel

    return OfflineModel()


def _handler(litellm: Any, model: Model) -> Any:
    """LiteLLM's handler for the provider; made here because its base class is LiteLLM's."""

    class OfflineProvider(litellm.CustomLLM):  # type: ignore[misc]
        async def acompletion(self, **call: Any) -> Any:
            response = await model.complete(_request(model, call))
            answer = call["model_response"]
            answer.model = call["model"]
            answer.created = int(time.time())
            choice = answer.choices[0]
            choice.finish_reason = response.finish_reason
            choice.message.content = response.text
            calls = [_wire_call(position, each) for position, each in enumerate(_calls(response))]
            choice.message.tool_calls = [
                litellm.ChatCompletionMessageToolCall(
                    id=each["id"], type="function", function=each["function"]
                )
                for each in calls
            ] or None
            answer.usage = litellm.Usage(**_usage(response))
            return answer

        async def astreaming(self, **call: Any) -> AsyncIterator[dict[str, Any]]:
            response = await model.complete(_request(model, call))
            for piece in response.text.splitlines(keepends=True):
                yield _chunk(text=piece)
            for position, each in enumerate(_calls(response)):
                yield _chunk(tool_use=_wire_call(position, each))
            yield _chunk(finish_reason=response.finish_reason, usage=_usage(response))

    return OfflineProvider()


def _request(model: Model, call: Mapping[str, Any]) -> Request:
    options = call.get("optional_params") or {}
    choice = options.get("tool_choice") or "auto"
    return Request(
        model=model.label,
        messages=tuple(Message.from_wire(wire) for wire in call["messages"]),
        tools=ToolSet(tuple(options.get("tools") or ())),
        tool_choice=choice if isinstance(choice, str) else choice["function"]["name"],
    )


def _calls(response: Response) -> Iterable[tuple[str, str, str]]:
    return ((each.id, each.name, each.arguments) for each in response.tool_calls)


def _wire_call(position: int, each: tuple[str, str, str]) -> dict[str, Any]:
    identity, name, arguments = each
    return {
        "id": identity,
        "type": "function",
        "index": position,
        "function": {"name": name, "arguments": arguments},
    }


def _usage(response: Response) -> dict[str, int]:
    usage = response.usage
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total,
    }


def _chunk(
    text: str = "",
    tool_use: dict[str, Any] | None = None,
    finish_reason: str = "",
    usage: dict[str, int] | None = None,
) -> dict[str, Any]:
    """One piece in the shape that LiteLLM asks of its custom providers."""
    return {
        "text": text,
        "tool_use": tool_use,
        "is_finished": bool(finish_reason),
        "finish_reason": finish_reason,
        "usage": usage,
        "index": 0,
    }
