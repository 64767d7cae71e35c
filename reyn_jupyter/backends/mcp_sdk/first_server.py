"""A server of the protocol on the first major version of the SDK, with what this package uses of the second's `Server`.

Invariants: handlers get and give the models of `mcp-types`. Nothing here speaks the protocol's versions from 2026 on,
so that a client is told of changes by its session alone.

Importing this module imports the SDK.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

from mcp_types import methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

_types: Any = importlib.import_module("mcp.types")
_lowlevel: Any = importlib.import_module("mcp.server.lowlevel.server")
NotificationOptions: Any = _lowlevel.NotificationOptions
Handler = Callable[[Any, Any], Awaitable[Any]]

_REQUESTS = {
    "on_list_tools": "ListToolsRequest",
    "on_call_tool": "CallToolRequest",
    "on_list_resources": "ListResourcesRequest",
    "on_list_resource_templates": "ListResourceTemplatesRequest",
    "on_read_resource": "ReadResourceRequest",
    "on_list_prompts": "ListPromptsRequest",
    "on_get_prompt": "GetPromptRequest",
    "on_subscribe_resource": "SubscribeRequest",
    "on_unsubscribe_resource": "UnsubscribeRequest",
}
# Changes of which clients of newer protocols are told; here there are none.
ResourcesListChanged = ResourceUpdated = ToolsListChanged = SimpleNamespace


def ListenHandler(*told: Any, **more: Any) -> None:  # noqa: N802 - the SDK's name
    """Return nothing: see the module."""


class InMemorySubscriptionBus:
    """Tells nobody: see the module."""

    async def publish(self, event: Any) -> None:
        """Do nothing."""


class _Plain:
    """A result as the SDK's session dumps it."""

    def __init__(self, plain: dict[str, Any]) -> None:
        self._plain = plain

    def model_dump(self, **options: Any) -> dict[str, Any]:
        return self._plain


class _ClientSession:
    """The session of one client, with the methods that handlers call."""

    def __init__(self, context: Any) -> None:
        session = context.session
        self._context = context
        self.send_tool_list_changed = session.send_tool_list_changed
        self.send_resource_list_changed = session.send_resource_list_changed
        self.send_resource_updated = session.send_resource_updated
        told = session.client_params
        self.client_params = None if told is None else SimpleNamespace(client_info=told.clientInfo)
        asked = None if told is None else str(told.protocolVersion)
        self.version: str = (
            asked if asked is not None and asked in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION
        )

    async def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        token = None if self._context.meta is None else self._context.meta.progressToken
        if token is not None:
            await self._context.session.send_progress_notification(
                token, progress, total, message, related_request_id=str(self._context.request_id)
            )


class Server(_lowlevel.Server):  # type: ignore[misc]
    """The SDK's server.

    Args:
        name: the server's.
        version: its version.
        instructions: for the model of a client.
        title: not sent: the SDK has no place for it.
        on_subscriptions_listen: not used: see the module.
        handlers: a function for each kind of request, by the name that the SDK's second version has for it.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str,
        instructions: str,
        title: str = "",
        on_subscriptions_listen: Any = None,
        **handlers: Handler,
    ) -> None:
        super().__init__(name, version=version, instructions=instructions)
        self.middleware: list[Any] = []
        for key, handler in handlers.items():
            self.request_handlers[getattr(_types, _REQUESTS[key])] = partial(self._handle, handler)

    def __class_getitem__(cls, key: Any) -> Any:
        return cls

    def get_capabilities(self, *told: Any, **more: Any) -> Any:
        found = super().get_capabilities(*told, **more)
        if found.resources is not None:
            found.resources.subscribe = _types.SubscribeRequest in self.request_handlers
        return found

    async def _handle(self, handler: Handler, request: Any) -> _Plain:
        told = self.request_context
        session = _ClientSession(told)
        params = request.model_dump(by_alias=True, mode="json", exclude_unset=True).get("params")
        if params is not None and "uri" in params:
            params["uri"] = unquote(params["uri"])  # the SDK percent-encodes characters that are not ASCII
        asked = methods.parse_client_request(request.method, session.version, params)
        context = SimpleNamespace(
            method=request.method, request=told.request, session=session, request_id=told.request_id
        )

        async def answer(context: Any) -> Any:
            return await handler(context, asked.params)

        step = answer
        for each in reversed(self.middleware):
            step = partial(each, call_next=step)
        result = await step(context)
        plain = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return _Plain(methods.serialize_server_result(request.method, session.version, plain))
