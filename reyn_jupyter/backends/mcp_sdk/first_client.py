"""A client of the protocol on the first major version of the SDK, with the methods of the second's `Client`.

Invariants: the SDK's session carries requests and answers; results are read by the models of `mcp-types`. A call that
is cancelled is cancelled at the server. A server's question is answered beside the loop that receives, so that other
answers arrive while a user thinks.

Importing this module imports the SDK.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Any

import anyio
import mcp_types
from mcp_types import methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from reyn_jupyter.backends.mcp_sdk.first_errors import MCPError
from reyn_jupyter.backends.mcp_sdk.first_messages import changed, from_first, to_first

_types: Any = importlib.import_module("mcp.types")
_client: Any = importlib.import_module("mcp.client.session")
_shared: Any = importlib.import_module("mcp.shared.session")
_stdio: Any = importlib.import_module("mcp.server.stdio")

_CLOSED = "Connection closed"
_CANCEL_SECONDS = 1.0  # that word of a cancelled call may take


class _Sent:
    """A request or notification of `mcp-types`, as the SDK's session dumps it."""

    def __init__(self, message: Any) -> None:
        self._message = message

    def model_dump(self, **options: Any) -> dict[str, Any]:
        plain: dict[str, Any] = self._message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        return {
            "method": self._message.method,
            **{key: value for key, value in plain.items() if value is not None},
        }


class _Result:
    """Reads the result of a method, as the SDK's session asks for it."""

    def __init__(self, method: str, version: str) -> None:
        self._method = method
        self._version = version

    def model_validate(self, raw: Any) -> Any:
        return methods.parse_server_result(self._method, self._version, raw)


class _Session(_client.ClientSession):  # type: ignore[misc]
    """The SDK's session; see the module."""

    async def ask(self, request: Any, version: str, progress: Any = None) -> Any:
        number = self._request_id  # the one that it gives to the next request
        try:
            return await self.send_request(
                _Sent(request), _Result(request.method, version), progress_callback=progress
            )
        except asyncio.CancelledError:
            params = mcp_types.CancelledNotificationParams(request_id=number)
            with anyio.move_on_after(_CANCEL_SECONDS, shield=True), suppress(Exception):
                await self.send_notification(_Sent(mcp_types.CancelledNotification(params=params)))
            raise

    async def __aexit__(self, *error: Any) -> Any:
        closed = _types.ErrorData(code=mcp_types.CONNECTION_CLOSED, message=_CLOSED)
        for number, stream in self._response_streams.items():  # the SDK leaves them waiting
            with suppress(anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError):
                stream.send_nowait(_types.JSONRPCError(jsonrpc="2.0", id=number, error=closed))
        return await super().__aexit__(*error)

    async def _received_request(self, responder: Any) -> None:
        self._task_group.start_soon(self._answer, responder)

    async def _answer(self, responder: Any) -> None:
        try:
            await super()._received_request(responder)
        except Exception as error:  # noqa: BLE001 - it would end the connection
            failed = _types.ErrorData(code=mcp_types.INTERNAL_ERROR, message=type(error).__name__)
            with suppress(Exception):
                await self._send_response(responder.request_id, failed)


class Client:
    """A connection to a server, from entering to leaving it as a context.

    Args:
        transport: gives the streams, of messages in the classes of `mcp-types`.
        client_info: the name and version of this program.
        logging_callback: gets what the server logs.
        message_handler: gets each notification.
        elicitation_callback: answers a question of the server's.
        ignored: what the second version of the SDK can be told besides.
    """

    def __init__(
        self,
        transport: AbstractAsyncContextManager[Any],
        *,
        client_info: mcp_types.Implementation,
        logging_callback: Callable[[Any], Awaitable[None]] | None = None,
        message_handler: Callable[[Any], Awaitable[None]] | None = None,
        elicitation_callback: Callable[[Any, Any], Awaitable[Any]] | None = None,
        **ignored: Any,
    ) -> None:
        self._transport = transport
        self._info = client_info
        self._logged = logging_callback
        self._handler = message_handler
        self._elicit = elicitation_callback
        self._stack = AsyncExitStack()
        self.session: Any = None
        self.protocol_version = HANDSHAKE_PROTOCOL_VERSIONS[-1]
        self.instructions: str | None = None
        self.server_info: mcp_types.Implementation | None = None
        self.server_capabilities = mcp_types.ServerCapabilities()

    async def __aenter__(self) -> Client:
        async with AsyncExitStack() as stack:
            streams = await stack.enter_async_context(changed(self._transport, to_first, from_first))
            session = _Session(
                *streams,
                client_info=_types.Implementation.model_validate(self._info.model_dump(by_alias=True)),
                logging_callback=self._logged,
                message_handler=self._handled,
                elicitation_callback=None if self._elicit is None else self._elicited,
            )
            self.session = await stack.enter_async_context(session)
            try:
                told = await self.session.initialize()
            except _shared.McpError as error:
                raise MCPError(error.error.code, error.error.message, error.error.data) from None
            plain = told.model_dump(by_alias=True, mode="json", exclude_none=True)
            made = mcp_types.InitializeResult.model_validate(plain, by_name=False)
            self.protocol_version, self.instructions = str(made.protocol_version), made.instructions
            self.server_info, self.server_capabilities = made.server_info, made.capabilities
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stack.__aexit__(*error)

    async def _handled(self, message: Any) -> None:
        if self._handler is not None:
            await self._handler(getattr(message, "root", message))

    async def _elicited(self, context: Any, params: Any) -> Any:
        assert self._elicit is not None
        plain = params.model_dump(by_alias=True, mode="json", exclude_unset=True)
        asked = methods.parse_server_request("elicitation/create", self.protocol_version, plain)
        answer = await self._elicit(context, asked.params)
        return _types.ElicitResult(action=answer.action, content=answer.content)

    async def _ask(self, request: Any, progress: Any = None) -> Any:
        try:
            return await self.session.ask(request, self.protocol_version, progress)
        except _shared.McpError as error:
            raise MCPError(error.error.code, error.error.message, error.error.data) from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise MCPError(mcp_types.CONNECTION_CLOSED, _CLOSED) from None

    async def list_tools(self, *, cursor: str | None = None) -> Any:
        return await self._ask(mcp_types.ListToolsRequest(params=_page(cursor)))

    async def list_resources(self, *, cursor: str | None = None) -> Any:
        return await self._ask(mcp_types.ListResourcesRequest(params=_page(cursor)))

    async def list_resource_templates(self, *, cursor: str | None = None) -> Any:
        return await self._ask(mcp_types.ListResourceTemplatesRequest(params=_page(cursor)))

    async def list_prompts(self, *, cursor: str | None = None) -> Any:
        return await self._ask(mcp_types.ListPromptsRequest(params=_page(cursor)))

    async def read_resource(self, uri: str) -> Any:
        return await self._ask(
            mcp_types.ReadResourceRequest(params=mcp_types.ReadResourceRequestParams(uri=uri))
        )

    async def subscribe_resource(self, uri: str) -> Any:
        return await self._ask(mcp_types.SubscribeRequest(params=mcp_types.SubscribeRequestParams(uri=uri)))

    async def unsubscribe_resource(self, uri: str) -> Any:
        return await self._ask(
            mcp_types.UnsubscribeRequest(params=mcp_types.UnsubscribeRequestParams(uri=uri))
        )

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> Any:
        params = mcp_types.GetPromptRequestParams(name=name, arguments=arguments)
        return await self._ask(mcp_types.GetPromptRequest(params=params))

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, *, progress_callback: Any = None
    ) -> Any:
        params = mcp_types.CallToolRequestParams(name=name, arguments=arguments)
        return await self._ask(mcp_types.CallToolRequest(params=params), progress_callback)


def _page(cursor: str | None) -> Any:
    return None if cursor is None else mcp_types.PaginatedRequestParams(cursor=cursor)


def stdio_server() -> AbstractAsyncContextManager[Any]:
    """Return the streams of this process's own pipes."""
    return changed(_stdio.stdio_server(), from_first, to_first)
