"""The permission gate of a call: the rules, the person where the rules ask, and the record of what was decided.

Invariant: nobody there to ask means no; what the person is shown is redacted before it is cut.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from reyn_jupyter.catalog.action import Action, Effect, Purity, Tool
from reyn_jupyter.config import Settings
from reyn_jupyter.guard.permissions import Actor, PermissionVerdict, Policy, suggest_pattern
from reyn_jupyter.guard.state_folder import StateError
from reyn_jupyter.guard.workspace import FileDecision
from reyn_jupyter.runtime.consent import Answer, Question
from reyn_jupyter.runtime.question_detail import question_detail
from reyn_jupyter.runtime.record.events import PermissionDecided
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.runtime.services import ToolContext

IN_BACKGROUND = "nobody is there to ask: the run is in the background"


READS = "file__read"  # the action whose rules say what may be read


def _judged_actor(run: Run) -> Actor:
    """Return whom the rules judge: a person who is asked has not consented by calling."""
    return "model" if run.ask is not None and run.actor == "person" else run.actor


class PermissionGate:
    """Decides whether calls may run.

    Args:
        policy: gives the permission rules now, under the settings of a run.
        ask: asks the person.
        remember: keeps an "always" pattern; raises StateError when it cannot.
    """

    def __init__(
        self,
        policy: Callable[[Settings], Policy],
        ask: Callable[[Question], Awaitable[Answer]],
        remember: Callable[[str], None],
    ) -> None:
        self._policy = policy
        self._ask = ask
        self._remember = remember

    def judge(self, action: Action, effects: Sequence[Effect], run: Run) -> PermissionVerdict:
        """Return the verdict of the rules alone, without asking the person."""
        policy = self._policy(run.settings)
        return policy.decide(action.name.text, action.purity, effects, _judged_actor(run), run.approve)

    def rules_of_files(
        self, action: Action, effects: Sequence[Effect], run: Run
    ) -> Callable[[str], FileDecision] | None:
        """Return the rules' word on each file that the call opens once it is allowed; see `Policy.of_files`."""
        policy = self._policy(run.settings)
        return policy.of_files(action.name.text, effects, _judged_actor(run), run.approve)

    def may_read(self, path: str, run: Run) -> bool:
        """Return whether the caller may read a file without a question."""
        effects = (Effect("read", path),)
        policy = self._policy(run.settings)
        verdict = policy.decide(READS, Purity.READ, effects, _judged_actor(run), run.approve)
        return verdict.decision == "allow"

    @staticmethod
    def without_record(verdict: PermissionVerdict, repeatable: bool, run: Run) -> PermissionVerdict:
        """Return the verdict on what a replay did not find in its record: what changes something is asked about."""
        if verdict.decision != "allow" or repeatable or run.approve == "all":
            return verdict
        why = "it is not in the replayed run"
        return PermissionVerdict("deny" if run.approve == "read" else "ask", "replay", why)

    async def settle(
        self,
        verdict: PermissionVerdict,
        call: str,
        effects: Sequence[Effect],
        tool: Tool,
        args: dict[str, Any],
        context: ToolContext,
        run: Run,
        reason: str | None = None,
    ) -> PermissionVerdict:
        """Return the final verdict, the person's where the rules ask, and record it.

        Args:
            reason: what a handler says of its question in the middle of a call; None before a call.
        """
        if verdict.decision == "ask":
            verdict = await self._consent(effects, tool, args, context, run, reason)
        targets, pattern = tuple(map(str, effects)), verdict.pattern or None
        if targets or pattern:
            targets, pattern = context.services.redactor.value((targets, pattern))
        run.log.append(
            PermissionDecided(
                call=call,
                at=time.time(),
                name=context.name.text,
                effects=targets,
                decision="allowed" if verdict.decision == "allow" else "denied",
                by=verdict.by,
                pattern=pattern,
            )
        )
        return verdict

    async def _consent(
        self,
        effects: Sequence[Effect],
        tool: Tool,
        args: dict[str, Any],
        context: ToolContext,
        run: Run,
        reason: str | None,
    ) -> PermissionVerdict:
        if not run.attended and run.ask is None:
            return PermissionVerdict("deny", "nobody", IN_BACKGROUND)
        name, redactor = context.name.text, context.services.redactor
        # What a tool previews is what it named before the call, not what it asks for in the middle of it.
        preview = tool.preview(args, context) if tool.preview and reason is None else None
        detail = question_detail(effects, preview, args, redactor, reason)
        question = Question(
            redactor.text(name),
            detail,
            suggest_pattern(name, effects),
            run.outermost.id,
            tuple(redactor.text(each.action) for each in run.callers),
        )
        return self._verdict(await (run.ask or self._ask)(question), question, run)

    def _verdict(self, answer: Answer, question: Question, run: Run) -> PermissionVerdict:
        if answer == "unanswered":
            return PermissionVerdict("deny", "nobody", "nobody answered in time")
        if answer == "nobody" and not run.attended:
            return PermissionVerdict("deny", "nobody", IN_BACKGROUND)
        if answer == "nobody":
            return PermissionVerdict(
                "deny", "nobody", "nobody is there to ask; --approve all allows it for one run"
            )
        choices = question.choices
        choice = next((each for each in choices if each.answer == answer), choices[-1])
        if not choice.keeps:
            return PermissionVerdict("allow" if choice.allows else "deny", "person", choice.reason)
        assert question.pattern is not None  # it is offered only with one
        try:
            self._remember(question.pattern)
        except StateError:  # it holds for this call; the next one is asked about again
            return PermissionVerdict("allow", "person", "allowed by the person; it could not be kept")
        return PermissionVerdict("allow", "person", choice.reason, question.pattern)
