"""Python code in the person's kernel, once the person has switched it on.

Invariant: off until the person says `%reyn python on`, for this session alone; each call shows its whole code and asks,
and no "always" stands for code. What a result tells of variables is their names, types and sizes.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, cast

from reyn_jupyter.backends.code_run import (
    MOST_CODE,
    NO_VALUE,
    CodeEnd,
    CodeError,
    CodeRun,
    PreparedCode,
    prepare_code,
)
from reyn_jupyter.backends.object_summary import is_loaded_type
from reyn_jupyter.catalog.action import Arguments, Category, Operation, Purity, Tool
from reyn_jupyter.catalog.call_limits import CallLimits
from reyn_jupyter.runtime.access.reversals import Reversal
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.call.outcomes import NOTE
from reyn_jupyter.runtime.namespace.variables import hidden_name, is_secret
from reyn_jupyter.runtime.services import Services, ToolContext

SECONDS = 120.0  # that one call may take
STOPPING = 0.9  # seconds that code is waited for which was told to stop
_AGAIN = 0.1  # seconds after which it is told so again
_SCHEMA = {
    "type": "object",
    "properties": {
        "code": {
            "type": "string",
            "minLength": 1,
            "maxLength": MOST_CODE,
            "description": "Plain Python, no magics. The value of a last expression is the result. Runs among the "
            "notebook's own variables; an assignment makes or changes one.",
        }
    },
    "required": ["code"],
    "additionalProperties": False,
}


def categories(services: Services) -> tuple[Category, ...]:
    """`python`, hidden until it is switched on."""
    return (
        Category(
            "python",
            "Run Python code in the notebook's kernel, on its own variables; the person is asked about each piece.",
            operations=(
                Operation(
                    "run",
                    "Run Python code among the notebook's variables. Gives what it printed, the value of its last "
                    "expression, and the names that it made, changed or removed. The person reads the code first.",
                    _SCHEMA,
                    Tool(
                        "run_python",
                        _run,
                        Purity.UNKNOWN,
                        preview=_preview,
                        keeps=False,
                        plan=_plan,
                        limits=CallLimits(seconds=SECONDS, at_once=1),
                    ),
                ),
            ),
            hidden=lambda: services.python.why_not,
        ),
    )


def _plan(args: Arguments, context: ToolContext) -> PreparedCode:
    """Compile the code, so that nobody is asked about what cannot run."""
    try:
        return prepare_code(str(args["code"]))
    except CodeError as error:
        raise ActionError(f"It is not run: {error}", "Give plain Python; magics and ! are none.") from None


def _preview(args: Arguments, context: ToolContext) -> str:
    return str(args["code"])


async def _run(args: Arguments, context: ToolContext) -> object:
    services = context.services
    if (off := services.python.why_not) is not None:
        raise ActionError(off, "Do without it, or tell the person what you would run.")
    names = services.namespace()
    if not isinstance(names, dict):
        raise ActionError("There is no namespace here that code could run in.", "Do without it.")
    run = CodeRun(context.plan, names, partial(_shown, context=context))
    try:
        end = await services.main_thread(run.run)
    except asyncio.CancelledError:
        await _stop(run)
        if run.end is not None:
            _keep_undo(run.end, context)
            context.report("stopped", partial=_report(run.end))
        raise
    _keep_undo(end, context)
    if end.error:
        context.report("failed", partial=_report(end))
        raise ActionError(
            end.error, "What the code did before that line stays; %reyn undo takes its names back."
        )
    return _result(end)


async def _stop(run: CodeRun) -> None:
    """Interrupt code that a person's interrupt has not reached already, and wait a short while for it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + STOPPING
    run.stop()
    while run.is_running and loop.time() < until:
        await asyncio.sleep(_AGAIN)
        run.stop()


def _keep_undo(end: CodeEnd, context: ToolContext) -> None:
    if end.changes.undo is not None:
        context.reversible(Reversal("names", end.changes.undo.revert))


def _shown(name: str, value: object, *, context: ToolContext) -> bool:
    return hidden_name(name) is None and not is_secret(name, value, context.services.redactor)


def _result(end: CodeEnd) -> object:
    """Return a table as the table that it is, where nothing else was said; anything else with what goes with it."""
    if is_loaded_type(end.value, "pandas", "DataFrame") and not (end.out or end.err):
        frame = cast("Any", end.value).copy(deep=False)
        if end.changes.sentence:
            frame.attrs = {**frame.attrs, NOTE: end.changes.sentence}
        return frame
    return _report(end)


def _report(end: CodeEnd) -> dict[str, Any]:
    """Return what the code gave and did, without what is empty."""
    found: dict[str, Any] = {}
    if end.value is not NO_VALUE and end.value is not None:
        found["value"] = end.value
    if end.out:
        found["printed"] = end.out
    if end.err:
        found["printed_to_stderr"] = end.err
    found |= end.changes.described
    return found or {"note": "It ran, printed nothing, and made or changed no name."}
