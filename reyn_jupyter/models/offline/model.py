"""The offline model behind the seam that every model stands behind."""

from __future__ import annotations

from collections.abc import Callable

from reyn_jupyter.models.offline.planner import answer
from reyn_jupyter.models.seam import Message, Request, Response, Tier, Usage, canonical, estimate_tokens


class OfflineModel:
    """A deterministic model for when none is configured: rules and retrieval, no network, no weights.

    It sees what any model sees, the messages and the tools of a request, and is a pure function of them. It says in
    its first answer that it is not a language model.

    Example:
        >>> import asyncio
        >>> from reyn_jupyter.models.seam import Message, Request
        >>> reply = asyncio.run(OfflineModel().complete(Request("offline", (Message("user", "hello"),))))
        >>> reply.text.startswith("I am the offline model")
        True
    """

    label = "offline"
    tier: Tier = "light"
    host: str | None = None
    real = False

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """One completion; `on_text` gets the whole text at once. Raises nothing."""
        wire = request.wire
        message = Message.from_wire(answer(wire))
        if on_text is not None and message.content:
            on_text(message.content)
        usage = Usage(
            prompt_tokens=estimate_tokens(canonical(wire["messages"]))
            + estimate_tokens(canonical(wire["tools"])),
            completion_tokens=estimate_tokens(canonical(message.wire)),
            estimated=True,
        )
        return Response(
            message.content,
            message.tool_calls,
            "tool_calls" if message.tool_calls else "stop",
            usage,
            cost=0.0,
            model="offline",
        )
