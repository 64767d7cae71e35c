"""The code of a live view, for a page that has none of it yet.

A widget carries only what draws its snapshot, since its code is copied into every display. What goes on from there
needs the kernel anyway, so it comes from the kernel, once a page.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from reyn_jupyter.notebook import front_end
from reyn_jupyter.notebook.serving.operation import Asked, Message, Operation, OperationError


class ModuleWanted(Message):
    name: Literal["explorer", "blob", "grid", "trace"]


class ModuleGiven(Message):
    """An ES module and its style sheet, as this package carries them."""

    code: str
    style: str


async def give(asked: Asked, wanted: ModuleWanted) -> ModuleGiven:
    try:
        code, style = await asyncio.to_thread(front_end.read, wanted.name)
    except OSError:
        raise OperationError(
            f"this installation lacks the view {wanted.name!r}",
            "Install reyn-jupyter again in the kernel's environment.",
        ) from None
    return ModuleGiven(code=code, style=style)


OPERATIONS = (Operation("module.open", ModuleWanted, ModuleGiven, give),)
