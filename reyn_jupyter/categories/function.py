"""Python functions that the person registered with `@reyn.action`.

Invariant: the person's code runs on the notebook's main thread, arguments' validators included; an async function
is called there and awaited on the engine's loop, since the kernel's own loop stands still while a cell runs. An
object passed by reference arrives as that very object.
"""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.catalog.action import Arguments, Category, Entry, Purity, Resources, Tool
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.namespace.functions import RegisteredFunction
from reyn_jupyter.runtime.services import Services, ToolContext
from reyn_jupyter.support.import_path import imports_of_person

# The last report of a call that was cancelled, so that the record and an MCP client say what became of the function.
STILL_RUNS = "the function cannot be stopped; it runs to its end in the notebook, and its result is discarded"
NEVER_BEGAN = "the function was not started"
STOPPED = "the function was told to stop, and stopped"


def categories(services: Services) -> tuple[Category, ...]:
    """`function`, whose resources are the registered functions."""

    async def entries() -> Sequence[Entry]:
        return [
            Entry(name, function.description, function.input_schema, function.purity)
            for name, function in sorted(services.functions().items())
        ]

    def revision() -> Hashable:
        return tuple((name, function.serial) for name, function in services.functions().items())

    return (
        Category(
            "function",
            "Call Python functions that the person registered in this notebook.",
            resources=Resources(
                Tool("call_function", _call, Purity.UNKNOWN), _target, "call it in the kernel", entries
            ),
            revision=revision,
        ),
    )


def _target(entry: str, args: Arguments) -> Arguments:
    return {"function": entry, "args": args}


@dataclass(frozen=True)
class _Attempt:
    """The outcome of a call: a value, or the exception that it raised."""

    value: Any = None
    error: BaseException | None = None


async def _call(args: Arguments, context: ToolContext) -> object:
    registered = context.services.functions().get(args["function"])
    if registered is None:
        raise ActionError(f"The function {args['function']!r} is no longer registered.")
    begun = False

    def attempt_now() -> _Attempt:
        nonlocal begun
        begun = True
        return _attempt(registered, args["args"])

    try:
        attempt = await context.services.main_thread(attempt_now)
    except asyncio.CancelledError:
        context.report(STILL_RUNS if begun else NEVER_BEGAN)
        raise
    if inspect.iscoroutine(attempt.value):
        try:
            attempt = await _awaited(attempt.value)
        except asyncio.CancelledError:
            context.report(STOPPED)
            raise
    if attempt.error is not None:
        raise _handler_error(attempt.error) from attempt.error
    if inspect.isawaitable(attempt.value):
        raise ActionError(
            f"{registered.name} gave a {type(attempt.value).__name__} of another event loop.",
            "Make it an async function and await inside it.",
        )
    return attempt.value


def _attempt(registered: RegisteredFunction, args: Arguments) -> _Attempt:
    try:
        return _Attempt(registered.call(args))
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - the person's code
        return _Attempt(error=error)


async def _awaited(coroutine: Any) -> _Attempt:
    try:
        with imports_of_person():
            return _Attempt(await coroutine)
    except Exception as error:  # noqa: BLE001 - the person's code
        return _Attempt(error=error)


def _handler_error(error: BaseException) -> ActionError:
    """The exception with all of its text; its traceback stays chained for the person."""
    if isinstance(error, ActionError):
        return ActionError(error.message, error.hint, code=error.code)
    try:
        message = str(error).strip()
    except Exception:  # noqa: BLE001 - an exception's own text may fail too
        message = ""
    name = type(error).__name__
    place = next(reversed(list(traceback.walk_tb(error.__traceback__))), None)
    hint = f"It was raised in {place[0].f_code.co_name}, line {place[1]}." if place else ""
    return ActionError(f"{name}: {message}" if message else name, hint)
