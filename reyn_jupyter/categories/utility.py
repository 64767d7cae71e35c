"""Utilities: programs with a manifest, each an action with the schema that its manifest declares.

Invariants: only a utility that the person trusts, or that comes with this package, is an action; it runs in the sandbox
and reaches what its manifest declares and its inputs name. What it changed in folders of the workspace is recorded, so
that `undo` takes it back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.backends.files.command_files import UndoRecord
from reyn_jupyter.catalog.action import (
    Arguments,
    Arrival,
    Category,
    Effect,
    EffectKind,
    Entry,
    ErrorCodes,
    Purity,
    Resources,
    Tool,
)
from reyn_jupyter.catalog.call_limits import CallLimits
from reyn_jupyter.runtime.access.progress_report import last_line_reporter
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import Services, ToolContext
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.workflows.execution.executor import WORKER_LOST
from reyn_jupyter.workflows.execution.sent_utility import SentStepLostError, current_sender
from reyn_jupyter.workflows.execution.step_place import current_step
from reyn_jupyter.workflows.orchestrator import UTILITY
from reyn_jupyter.workflows.utilities.manifest import Utility
from reyn_jupyter.workflows.utilities.program import missing_dependencies
from reyn_jupyter.workflows.utilities.protocol import UtilityInputs, prepare_inputs, run_utility
from reyn_jupyter.workflows.workflow_error import as_action_errors
from reyn_jupyter.workflows.workflow_library import WorkflowLibrary

SECONDS = 600.0  # of a call by itself; a step of a run has what is left of the run's time
MOST_SECONDS = 86_400


def categories(services: Services) -> tuple[Category, ...]:
    """`utility`: what `tools/`, the configured folders and this package have that may run here."""
    library = WorkflowLibrary(services)
    made = _Utilities(library)
    return (
        Category(
            UTILITY,
            "Programs with a manifest: each takes and gives what its schemas say, and can be a step of a workflow.",
            resources=Resources(
                Tool(
                    "run_utility",
                    made.run,
                    Purity.EXEC,
                    _effects,
                    plan=made.plan,
                    plan_is_slow=True,
                    unasked="its program is trusted, and its sandbox reaches nothing but the files that are named",
                ),
                lambda entry, args: {"utility": entry, "inputs": args},
                "run the program",
                made.entries,
                arrival=made.arrival,
            ),
            revision=lambda: library.registry(fresh=False).revision,
            revision_is_slow=library.is_slow,
            limits=CallLimits(seconds=MOST_SECONDS),
            error_codes=ErrorCodes(missing_argument="validation", wrong_argument="validation"),
        ),
    )


@dataclass(frozen=True)
class _Plan:
    """A call that may run: the utility, and what its inputs open."""

    utility: Utility
    inputs: dict[str, Any]
    opened: UtilityInputs


class _Utilities:
    """The handlers of the category over one library."""

    def __init__(self, library: WorkflowLibrary) -> None:
        self._library = library

    async def entries(self) -> Sequence[Entry]:
        registry = await asyncio.to_thread(self._library.registry)
        return [
            Entry(
                registry.entry(each),
                _description(each),
                each.manifest.input_schema,
                open_schema=True,
                version=each.digest,
            )
            for each in registry.utilities
            if each.trusted
        ]

    def arrival(self, entry: str) -> Arrival | None:
        """Say of a utility that is not offered why it is not; there is nothing to wait for."""
        registry = self._library.latest
        utility = registry.by_id.get(entry) or registry.best.get(entry)
        if utility is None or utility.trusted:
            return None

        async def refuse() -> None:
            raise ActionError(
                f"{utility.id} lies in the workspace, and nobody has trusted it.",
                "The person can look at it with %reyn utilities and trust it with %reyn trust.",
                code="not_trusted",
            )

        return Arrival(refuse, "", "")

    def plan(self, args: Arguments, context: ToolContext) -> _Plan:
        with as_action_errors():
            utility = self._library.utility(args["utility"])
            return _Plan(utility, args["inputs"], prepare_inputs(utility, args["inputs"], context.workspace))

    async def run(self, args: Arguments, context: ToolContext) -> dict[str, Any]:
        plan: _Plan = context.plan
        utility, step = plan.utility, current_step()
        hosts = utility.manifest.needs("host")
        if hosts:
            context.came_from(f"output of {utility.id}, which may have asked {', '.join(hosts)}")
        for place in dict.fromkeys((*plan.opened.readable, *plan.opened.writable)):
            is_folder = (context.workspace.root / place).is_dir()
            if (why := context.whose(place, folder=is_folder)) is not None:
                context.came_from(f"output of {utility.id} from {place}: {why}")
        folder = step.folder if step is not None else self._library.new_run_folder()
        seconds = SECONDS if step is None else step.seconds
        await _ask_to_read(plan, context)
        secrets = await _secrets(utility, context)
        now = await asyncio.to_thread(self._library.utility, args["utility"])
        if now.digest != utility.digest:  # questions were open in between, about files and secrets too
            raise ActionError(
                f"{utility.id} has changed since this call was looked at.",
                "Call it again.",
                code="tool_failed",
            )
        sender = current_sender() if step is not None else None
        tell = last_line_reporter(context.report)

        def on_stderr(stream: str, piece: bytes) -> None:
            if step is not None:
                step.log.hear(piece)
            tell(stream, piece)

        try:
            with as_action_errors():
                if sender is not None and (
                    sent := await sender.run(
                        utility, plan.opened, run_folder=folder, workspace=context.workspace,
                        settings=context.services.settings().sandbox, timeout_seconds=seconds,
                    )
                ) is not None:  # fmt: skip
                    on_stderr("stderr", sent.stderr.encode())
                    return sent.output
                done = await run_utility(
                    utility, plan.inputs, run_folder=folder, workspace=context.workspace,
                    settings=context.services.settings().sandbox, timeout_seconds=seconds,
                    on_stderr=on_stderr, secrets=secrets, record=UndoRecord(context),
                )  # fmt: skip
        except SentStepLostError as lost:
            raise ActionError(lost.message, lost.hint, code=WORKER_LOST) from lost
        return done.output


def _description(utility: Utility) -> str:
    missing = ", ".join(each.name for each in missing_dependencies(utility))
    said = f"Not ready, since {missing} is not installed. " if missing else ""
    return said + utility.manifest.description


def _effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    plan: _Plan = context.plan
    needs = plan.utility.manifest.needs
    return (
        *(Effect(EffectKind.WRITE, place) for place in plan.opened.writable),
        *(Effect.network(host) for host in needs("host")),
    )


async def _ask_to_read(plan: _Plan, context: ToolContext) -> None:
    """Wait for consent to read the files that a rule asks about. Raises PermissionDeniedError."""
    asked = [place for place in plan.opened.readable if context.workspace.decision(place) == "ask"]
    files = [
        place for place in asked if (context.workspace.root / place).is_file()
    ]  # in folders they are hidden
    if files:
        effects = (Effect(EffectKind.READ, place) for place in files)
        await context.ask(*effects, reason=f"{plan.utility.id} reads what its inputs name")


async def _secrets(utility: Utility, context: ToolContext) -> dict[str, Secret]:
    """Return the secrets that a utility declares; each is asked for where a rule does not allow it."""
    names = utility.manifest.needs("secret")
    return {name: await context.services.secrets.get(name) for name in names}
