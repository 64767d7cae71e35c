"""The comm target: a front end opens a comm, and the comm carries the protocol.

Invariant: nothing that comes over a comm raises into the kernel; a comm that is closed leaves nothing behind.
"""

from __future__ import annotations

from typing import Any

from reyn_jupyter.notebook.serving.connection import Connection
from reyn_jupyter.notebook.serving.hub import kernel_hub
from reyn_jupyter.runtime.engine import running_loop


def opened(comm: Any, message: Any) -> None:
    """A front end opened a comm to our target; what the opening itself carries is a first message."""
    hub = kernel_hub()
    connection = Connection(hub, comm.send, running_loop() or hub.home)

    def received(message: Any) -> None:
        connection.receive(_data(message))

    def closed(message: Any) -> None:
        connection.close()

    comm.on_msg(received)
    comm.on_close(closed)
    first = _data(message)
    if isinstance(first, dict) and first:
        connection.receive(first)


def _data(message: Any) -> object:
    content = message.get("content") if isinstance(message, dict) else None
    return content.get("data") if isinstance(content, dict) else None
