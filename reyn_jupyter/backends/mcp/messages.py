"""The messages of the protocol, out of the lines that a program prints.

Importing this module imports the SDK.
"""

from __future__ import annotations

import json
import re

from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

_ANSWER = re.compile(rb'"id"\s*:\s*([0-9]{1,9})\b')
_LOOKED_AT = 200  # bytes of a line that cannot be read, at either end


def message_of(line: bytes) -> SessionMessage | None:
    """Return the message of a line; None if it does not hold one.

    An answer whose frame is odd (an error without a message, a result that is not an object) is put right. One that
    cannot be read (it is nested too deep, say) becomes the failure of what it answers.
    """
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        if (framed := _framed(line)) is not None:
            return framed
        found = _ANSWER.search(line[:_LOOKED_AT]) or _ANSWER.search(line[-_LOOKED_AT:])
        if found is None or not line.lstrip().startswith(b'{"jsonrpc"'):
            return None
        error = ErrorData(code=PARSE_ERROR, message="its answer could not be read")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))


def reframed(body: bytes, request: bytes) -> bytes:
    """Return the body of an answer over HTTP, its frame put right if the SDK would refuse it or wait on.

    Args:
        request: the body of the request, whose number an error without one gets.
    """
    if not body.lstrip().startswith(b"{"):
        return body
    try:
        message = jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValueError:
        framed = _framed(body)
        return body if framed is None else _body(framed.message)
    if isinstance(message, JSONRPCError) and message.id is None:
        asked = jsonrpc_message_adapter.validate_json(request, by_name=False)
        if isinstance(asked, JSONRPCRequest):
            message.id = asked.id
            return _body(message)
    return body


def _body(message: JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _framed(line: bytes) -> SessionMessage | None:
    """Return an answer whose frame has one reading; None for anything else."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return None
    number = told.get("id")
    if (
        "jsonrpc" not in told
        or not isinstance(number, int | str)
        or isinstance(number, bool)
        or "method" in told
    ):
        return None
    error = told.get("error")
    if error is not None:
        error = error if isinstance(error, dict) else {"message": error}
        code, said = error.get("code"), error.get("message")
        made = ErrorData(
            code=code if isinstance(code, int) else INTERNAL_ERROR,
            message=said
            if isinstance(said, str)
            else ""
            if said is None
            else json.dumps(said, ensure_ascii=False),
            data=error.get("data"),
        )
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=made))
    if "result" not in told:
        return None
    result = told["result"]
    if not isinstance(result, dict):
        result = {} if result is None else {"content": result}
    # Without a look at its depth: that is the concern of whoever reads the part that is too deep.
    return SessionMessage(JSONRPCResponse.model_construct(jsonrpc="2.0", id=number, result=result))
