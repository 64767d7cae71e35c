"""The code of a live view, for a page that has none of it yet.

A widget carries only what draws its snapshot, since its code is copied into every display. What goes on from there
needs the kernel anyway, so it comes from the kernel, once a page.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from reyn_jupyter.notebook import assets
from reyn_jupyter.notebook.serving.operation import (
    OperationContext,
    OperationError,
    ServedOperation,
    WireMessage,
)


class ModuleWanted(WireMessage):
    name: Literal["explorer", "blob", "grid", "trace"]


class ModuleGiven(WireMessage):
    """An ES module and its style sheet, as this package carries them."""

    code: str
    style: str


async def give(asked: OperationContext, wanted: ModuleWanted) -> ModuleGiven:
    try:
        code, style = await asyncio.to_thread(assets.read, wanted.name)
    except OSError:
        raise OperationError(
            f"this installation lacks the view {wanted.name!r}",
            "Install reyn-jupyter again in the kernel's environment.",
        ) from None
    return ModuleGiven(code=code, style=style)


OPERATIONS = (ServedOperation("module.open", ModuleWanted, ModuleGiven, give),)
