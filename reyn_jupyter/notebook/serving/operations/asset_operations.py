"""The operation by which a page asks, once, for the code of a live view."""

from __future__ import annotations

import asyncio
from typing import Literal

from reyn_jupyter.notebook.assets import read_module
from reyn_jupyter.notebook.serving.operation import (
    OperationContext,
    OperationError,
    ServedOperation,
    WireMessage,
)


class ReadModule(WireMessage):
    name: Literal["explorer", "blob", "grid", "trace"]


class PackagedModule(WireMessage):
    """Carry an ES module and its style sheet, as the package holds them."""

    code: str
    style: str


async def open_module(context: OperationContext, wanted: ReadModule) -> PackagedModule:
    try:
        code, style = await asyncio.to_thread(read_module, wanted.name)
    except OSError:
        raise OperationError(
            f"this installation lacks the view {wanted.name!r}",
            "Install reyn-jupyter again in the kernel's environment.",
        ) from None
    return PackagedModule(code=code, style=style)


OPERATIONS = (ServedOperation("module.open", ReadModule, PackagedModule, open_module),)
