"""Operations, which live views ask the kernel for: each a name, the types of its arguments and answer, a coroutine.

Invariants: an operation runs on the engine's loop and never blocks it (work that takes longer than a few milliseconds
goes to a thread); arguments are checked before it runs; every text of an answer is redacted and bounded where it is
made. A file of this room exports ``OPERATIONS``; `operations` collects them, and the TypeScript types come from them.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.notebook.serving.answer_key import AnswerKey
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.sessions.session import Session

# The files of this room that export `OPERATIONS`.
FILES = (
    "approval_operations",
    "catalog_operations",
    "home_operations",
    "server_operations",
    "blob_operations",
    "frame_operations",
    "tree_operations",
    "line_operations",
    "run_operations",
    "asset_operations",
)


class WireMessage(BaseModel):
    """The base of everything that travels: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OperationError(Exception):
    """An operation could not be done. `message` says what and why, `hint` what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ProgressCallback(Protocol):
    """Report to the view how far a long operation is; safe from any thread."""

    def __call__(self, done: float, total: float, note: str = "") -> None: ...


@dataclass(frozen=True)
class OperationContext:
    """The surroundings of one request: the session, and how to answer with text, progress and questions.

    Attributes:
        session: whose catalog, blobs and runs are meant.
        look: how texts are made: cut, redacted, one line or several.
        progress: reports progress to the view that asks.
        ask: puts a question about consent before the person who clicks.
        answer_key: the key of the connection that asks, by which it answers questions; None where it shows none.
        home: the loop of the thread where the notebook lives; None where there is none.
        caches: what operations keep between two requests (open frames, JSON indexes), by their own key; emptied when
            the last view of the kernel is gone.
    """

    session: Session
    look: Look
    progress: ProgressCallback
    ask: Callable[[Question], Awaitable[Answer]]
    answer_key: AnswerKey | None = None
    home: asyncio.AbstractEventLoop | None = None
    caches: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ServedOperation:
    """One operation of the protocol.

    Example:
        >>> class Nothing(WireMessage): ...
        >>> async def ping(context: OperationContext, arguments: Nothing) -> Nothing:
        ...     return arguments
        >>> ServedOperation("ping", Nothing, Nothing, ping).name
        'ping'
    """

    name: str
    arguments: type[WireMessage]
    answer: type[WireMessage]
    run: Callable[[OperationContext, Any], Awaitable[WireMessage]]


@cache
def operations() -> dict[str, ServedOperation]:
    """Return all operations by name, importing the files that hold them.

    Raises:
        ValueError: two operations have one name.
    """
    found: dict[str, ServedOperation] = {}
    for file in FILES:
        module = importlib.import_module(f"reyn_jupyter.notebook.serving.operations.{file}")
        for operation in module.OPERATIONS:
            if operation.name in found:
                raise ValueError(f"two operations are named {operation.name}")
            found[operation.name] = operation
    return found
