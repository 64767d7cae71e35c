"""The messages of the protocol, out of the lines that a program prints.

Importing this module imports the SDK.
"""

from __future__ import annotations

import re

from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

_ANSWER = re.compile(rb'"id"\s*:\s*([0-9]{1,9})\b')
_LOOKED_AT = 200  # bytes of a line that cannot be read, at either end


def message_of(line: bytes) -> SessionMessage | None:
    """Return the message of a line; None where it is none.

    An answer that cannot be read (it is nested too deep, say) becomes the failure of what it answers.
    """
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        found = _ANSWER.search(line[:_LOOKED_AT]) or _ANSWER.search(line[-_LOOKED_AT:])
        if found is None or not line.lstrip().startswith(b'{"jsonrpc"'):
            return None
        error = ErrorData(code=PARSE_ERROR, message="its answer could not be read")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))
