"""A call whose handler runs: what the handler may ask for on the way.

Invariant: what is asked for in the middle of a call goes through the same gate as the call, and is recorded under it;
nothing is granted once the call is over.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reyn_jupyter.catalog.action import Action, Effect, Tool
from reyn_jupyter.guard.workspace import FileDecision
from reyn_jupyter.runtime.action_error import PermissionDeniedError
from reyn_jupyter.runtime.outcomes import denial
from reyn_jupyter.runtime.permission_gate import PermissionGate
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.runtime.services import ToolContext

OVER = "the call is over"


class RunningCall:
    """Runs the handler of a call that the gate has allowed.

    Args:
        gate: judges what is asked for in the middle of the call.
        call: the call's id.
        step: the step of the run that asked for the call.
        action, tool, arguments: what runs; the arguments as the handler gets them.
        effects: those that the call was allowed with.
        run: whose rules hold, and whose log keeps what was decided.
    """

    def __init__(
        self,
        gate: PermissionGate,
        call: str,
        step: int,
        action: Action,
        tool: Tool,
        arguments: dict[str, Any],
        effects: tuple[Effect, ...],
        run: Run,
    ) -> None:
        self._gate = gate
        self._call = call
        self._step = step
        self._action = action
        self._tool = tool
        self._arguments = arguments
        self._granted = effects
        self._run = run
        self._over = False

    async def value(self, context: ToolContext) -> object:
        """Run the handler, and return what it gives. Raises whatever it raises."""
        self._context = context
        self._verdict_of_files = context.file_verdict
        files = self._file_verdict if context.file_verdict is not None else None
        try:
            return await self._tool.handler(
                self._arguments, replace(context, ask=self.ask, file_verdict=files)
            )
        finally:
            self._over = True

    async def ask(self, *effects: Effect, reason: str = "") -> None:
        """Wait for consent to further effects, see `ToolContext.ask`.

        Raises:
            PermissionDeniedError: they are denied, or the call is over.
            ValueError: no effect is named.
        """
        if not effects:
            raise ValueError(
                'name at least one effect: await context.ask(Effect("network", "api.example.org"))'
            )
        name = self._action.name.text
        if self._over:
            raise PermissionDeniedError(f"Denied: {name} may ask for nothing more ({OVER}).", "")
        run, repeatable = self._run, self._action.purity.repeatable
        verdict = self._gate.judge(self._action, effects, run)
        if run.recorded is not None and not run.recorded.runs_again(self._step, repeatable):
            verdict = self._gate.without_record(verdict, repeatable, run)
        verdict = await self._gate.settle(
            verdict, self._call, effects, self._tool, self._arguments, self._context, run, str(reason)
        )
        if verdict.decision != "allow":
            raise PermissionDeniedError(*denial(name, effects, verdict))
        self._granted = (*self._granted, *effects)
        self._verdict_of_files = self._gate.rules_of_files(self._action, self._granted, run)

    def _file_verdict(self, path: str) -> FileDecision:
        """Return the rules' word on a file, by what is granted now."""
        verdict = self._verdict_of_files
        return "allow" if verdict is None else verdict(path)
