"""The chat-completions format, from the provider's side: a body to a request, a reply to JSON or to a stream.

Invariant: what is read is a request as any client sends it; what is written is the shape that clients read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reyn_jupyter.models.seam import Message, Request, Response, ToolSet, estimate_tokens

_PIECE = 24  # characters of one piece of a stream
_NOT_ASKED = ("model", "messages", "tools", "tool_choice", "stream", "stream_options")


def request_of(body: Mapping[str, Any], repeat: int = 0) -> Request:
    """The request that a body holds.

    Raises:
        ValueError: it is none; says what is wrong.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages must be a list that is not empty")
    try:
        parsed = tuple(Message.from_wire(message) for message in messages)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"a message has not the chat-completions shape: {error!r}") from None
    tools = body.get("tools") or []
    if not isinstance(tools, list) or not all(map(_is_tool, tools)):
        raise ValueError("tools must be a list of functions with a name each")
    choice = body.get("tool_choice") or "auto"
    if isinstance(choice, Mapping):
        choice = choice.get("function", {}).get("name", "required")
    parameters = {name: value for name, value in body.items() if name not in _NOT_ASKED}
    return Request(
        str(body.get("model", "")),
        parsed,
        ToolSet(tuple(tools)),
        str(choice),
        parameters,
        repeat=repeat,
    )


def completion(response: Response, request: Request, fingerprint: str) -> dict[str, Any]:
    """A whole answer."""
    message: dict[str, Any] = {"role": "assistant", "content": response.text or None}
    if response.tool_calls:
        message["tool_calls"] = _calls(response)
    return {
        **_envelope(request, fingerprint, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": response.finish_reason}],
        "usage": usage(response, request),
    }


def chunks(
    response: Response, request: Request, fingerprint: str, *, usage_too: bool
) -> Iterator[dict[str, Any]]:
    """The answer in pieces, as a stream has it; the usage comes last where it was asked for."""
    envelope = _envelope(request, fingerprint, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(response.text):
        yield chunk({"content": piece})
    for index, call in enumerate(_calls(response)):
        function = call["function"]
        yield chunk({"tool_calls": [{"index": index, **call, "function": {**function, "arguments": ""}}]})
        for piece in _pieces(function["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, response.finish_reason)
    if usage_too:
        yield {**envelope, "choices": [], "usage": usage(response, request)}


def usage(response: Response, request: Request) -> dict[str, int]:
    """Tokens by length."""
    asked = sum(message.tokens for message in request.messages) + request.tools.tokens
    said = estimate_tokens(
        response.text + "".join(call.name + call.arguments for call in response.tool_calls)
    )
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _is_tool(tool: object) -> bool:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    return isinstance(function, Mapping) and isinstance(function.get("name"), str)


def _envelope(request: Request, fingerprint: str, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{request.key[:16]}",
        "object": kind,
        "created": 1_700_000_000,
        "model": request.model,
        "system_fingerprint": fingerprint,
    }


def _calls(response: Response) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in response.tool_calls
    ]


def _pieces(text: str) -> list[str]:
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
