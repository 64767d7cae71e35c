"""The permission gate of a call: the rules, the person where the rules ask, and the record of what was decided.

Invariant: nobody there to ask means no; what the person is shown is redacted before it is cut.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial

from reyn_jupyter.catalog.action import Purity
from reyn_jupyter.catalog.action_face import ActionFace
from reyn_jupyter.catalog.effects import Effect, EffectKind
from reyn_jupyter.config import Settings
from reyn_jupyter.guard.permissions import READING, Actor, PermissionVerdict, Policy, suggest_patterns
from reyn_jupyter.guard.state_folder import StateError
from reyn_jupyter.guard.workspace import FileDecision
from reyn_jupyter.runtime.call.live_call import FileRules, LiveCall
from reyn_jupyter.runtime.large_values import is_large
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.questions.question_detail import question_detail
from reyn_jupyter.runtime.questions.question_queue import QuestionQueue
from reyn_jupyter.runtime.record.events import ConsentAsked, PermissionDecided
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.support.text import clip_middle

IN_BACKGROUND = "nobody is there to ask: the run is in the background"

# Keeps patterns, bound to what an action says of itself where it is somebody else's; raises StateError when it cannot.
Remember = Callable[[Sequence[str], ActionFace | None], None]


def _judged_actor(run: Run) -> Actor:
    """Return whom the rules judge: a person who is asked has not consented by calling."""
    return "model" if run.ask is not None and run.actor == "person" else run.actor


class PermissionGate:
    """Decides whether calls may run.

    Args:
        policy: gives the permission rules now, under the settings of a run.
        ask: asks the person.
        remember: keeps an "always".
    """

    def __init__(
        self,
        policy: Callable[[Settings], Policy],
        ask: Callable[[Question], Awaitable[Answer]],
        remember: Remember,
    ) -> None:
        self._policy = policy
        self._ask = ask
        self._remember = remember
        self._questions = QuestionQueue()

    def judge(self, call: LiveCall, effects: Sequence[Effect]) -> tuple[PermissionVerdict, FileRules | None]:
        """Return the verdict of the rules alone, without asking the person, and their word on files, if any.

        That is on each file that the call opens once it is allowed; see `Policy.of_files`.
        """
        policy = self._policy(call.run.settings)
        return self._judged(policy, call, effects), self._of_files(policy, call, effects)

    @staticmethod
    def _judged(policy: Policy, call: LiveCall, effects: Sequence[Effect]) -> PermissionVerdict:
        actor, face = _judged_actor(call.run), call.described.face
        # What a rule restricts under the name of what is called is restricted, whatever the call goes through.
        others = [
            name for name in call.restricting_names if name != call.judged_name and policy.has_restrictions
        ]
        for name in others:
            denied = policy.decide(name, call.purity, effects, "person")
            if denied.decision == "deny":
                return denied
        verdict = policy.decide(
            call.judged_name, call.purity, effects, actor, call.run.approve, face, call.tool.unasked
        )
        if verdict.decision == "allow" and verdict.by not in ("person", "approve"):
            found = (
                policy.decide(each, call.purity, effects, actor, call.run.approve, face) for each in others
            )
            verdict = next((each for each in found if (each.decision, each.by) == ("ask", "policy")), verdict)
        # The model may have read a stranger's text, which may have asked for the call.
        stricter, origins = call.run.settings.permissions.after_untrusted, call.run.outermost.origins
        if stricter is None or not origins or actor == "person" or verdict.decision in ("deny", stricter):
            return verdict
        if policy.reads_inside(call.judged_name, call.purity, effects):
            return verdict
        why = f"the model has read text of others ({clip_middle(', '.join(origins), 200)})"
        return PermissionVerdict(stricter, "policy", f"{why}; permissions.after_untrusted: {stricter}")

    def judge_unrecorded(self, call: LiveCall, effects: Sequence[Effect]) -> PermissionVerdict:
        """Return the verdict on what no record answers; in a replay, what changes something is asked about."""
        verdict = self._judged(self._policy(call.run.settings), call, effects)
        repeatable = call.purity.repeatable
        if call.run.recorded is None or call.run.recorded.runs_again(call.step, repeatable):
            return verdict
        if verdict.decision != "allow" or repeatable or call.run.approve == "all":
            return verdict
        why = "it is not in the replayed run"
        return PermissionVerdict("deny" if call.run.approve == "read" else "ask", "replay", why)

    def rules_of_files(self, call: LiveCall, effects: Sequence[Effect]) -> FileRules | None:
        """Return the rules' word on files, see `judge`, with what the call was allowed in its middle."""
        return self._of_files(self._policy(call.run.settings), call, effects)

    @staticmethod
    def _of_files(policy: Policy, call: LiveCall, effects: Sequence[Effect]) -> FileRules | None:
        actor, face = _judged_actor(call.run), call.described.face
        return policy.of_files(call.judged_name, effects, actor, call.run.approve, face)

    def may_be_recorded(self, call: LiveCall, effects: Sequence[Effect], verdict: PermissionVerdict) -> bool:
        """Return whether the record of an earlier run may answer a call: a rule of today may be newer than that run."""
        return verdict.decision != "deny" and not self._policy(call.run.settings).denies_below(
            call.judged_name, effects
        )

    def judge_again(self, call: LiveCall, effects: Sequence[Effect]) -> FileDecision:
        """Return whether the result of an earlier call may be given again; see `ToolContext.judge_again`.

        Nothing is done again, so that consent to what the call does is not asked for.
        """
        policy = self._policy(call.run.settings)
        for name in dict.fromkeys((call.judged_name, *call.restricting_names)):
            denied = policy.decide(name, call.purity, effects, "person").decision == "deny"
            if denied or policy.denies_below(name, effects):
                return "deny"
        if call.purity.repeatable and self._judged(policy, call, effects).decision != "allow":
            return "ask"
        return "allow"

    def may_read(self, path: str, run: Run) -> bool:
        """Return whether the caller may read a file without a question."""
        effects = (Effect(EffectKind.READ, path),)
        policy = self._policy(run.settings)
        verdict = policy.decide(READING, Purity.READ, effects, _judged_actor(run), run.approve)
        return verdict.decision == "allow"

    async def settle(
        self,
        verdict: PermissionVerdict,
        call: LiveCall,
        effects: Sequence[Effect],
        reason: str | None = None,
    ) -> PermissionVerdict:
        """Return the final verdict, the person's where the rules ask, and record it.

        Args:
            reason: what a handler says of its question in the middle of a call; None before a call.
        """
        if verdict.decision == "ask":
            verdict = await self._consent(verdict, call, effects, reason)
        targets, pattern = tuple(map(str, effects)), verdict.pattern or None
        if targets or pattern:
            targets, pattern = call.services.redactor.value((targets, pattern))
        call.run.log.append(
            PermissionDecided(
                call=call.id,
                at=time.time(),
                name=call.title,
                effects=targets,
                decision="allowed" if verdict.decision == "allow" else "denied",
                by=verdict.by,
                pattern=pattern,
            )
        )
        return verdict

    async def _consent(
        self,
        verdict: PermissionVerdict,
        call: LiveCall,
        effects: Sequence[Effect],
        reason: str | None,
    ) -> PermissionVerdict:
        if not call.run.attended and call.run.ask is None:
            return PermissionVerdict("deny", "nobody", IN_BACKGROUND)
        compose = partial(self._question, verdict, call, effects, reason)
        # A tool's preview may read files, and a large text takes its time; other calls go on meanwhile.
        in_thread = reason is None and (call.tool.preview is not None or is_large(call.arguments))
        question = await asyncio.to_thread(compose) if in_thread else compose()
        ask = call.run.ask or self._ask

        def put() -> Awaitable[Answer]:
            call.run.log.append(ConsentAsked(call=call.id, at=time.time(), name=call.title))
            return ask(question)

        with call.run.waiting_for_person(call.id):
            given = await self._questions.answer(
                # A prompt shows one question at a time; a page shows several, but those about the same in turn.
                "prompt" if call.run.ask is None else (call.run.outermost.id, call.title, frozenset(effects)),
                _shared_by(question, call),
                put,
                lambda: self.judge_unrecorded(call, effects),
            )
        if isinstance(given, PermissionVerdict):
            return given
        return self._verdict(given, question, call)

    def _question(
        self,
        verdict: PermissionVerdict,
        call: LiveCall,
        effects: Sequence[Effect],
        reason: str | None,
    ) -> Question:
        redactor, face = call.services.redactor, call.described.face
        # What a tool previews is what it named before the call, not what it asks for in the middle of it.
        preview = call.tool.preview(call.arguments, call) if call.tool.preview and reason is None else None
        before = verdict.approved_face
        changes = () if before is None else face.changes_since(before)
        detail = question_detail(
            effects, preview, call.arguments, redactor, reason, changes, tuple(call.run.outermost.origins)
        )
        asked: Sequence[Effect | None] = self._policy(call.run.settings).asked_about(
            call.judged_name,
            call.purity,
            effects,
            _judged_actor(call.run),
            call.run.approve,
            face,
            call.tool.unasked,
        )
        patterns = suggest_patterns(call.judged_name, asked or effects or (None,)) if call.tool.keeps else ()
        callers = tuple(redactor.text(each.action) for each in call.run.callers)
        outermost = call.run.outermost
        return Question(redactor.text(call.title), detail, patterns, outermost.id, callers, outermost.client)

    def _verdict(self, answer: Answer, question: Question, call: LiveCall) -> PermissionVerdict:
        if answer == "unanswered":
            return PermissionVerdict("deny", "nobody", "nobody answered in time")
        if answer == "nobody" and not call.run.attended:
            return PermissionVerdict("deny", "nobody", IN_BACKGROUND)
        if answer == "nobody":
            return PermissionVerdict(
                "deny", "nobody", "nobody is there to ask; --approve all allows it for one run"
            )
        choices = question.choices
        choice = next((each for each in choices if each.answer == answer), choices[-1])
        if not choice.keeps:
            return PermissionVerdict("allow" if choice.allows else "deny", "person", choice.reason)
        assert question.patterns  # it is offered only with one
        described = call.described
        try:
            self._remember(question.patterns, described.face if described.is_foreign else None)
        except StateError:  # it holds for this call; the next one is asked about again
            return PermissionVerdict("allow", "person", "allowed by the person; it could not be kept")
        self._questions.rules_moved()
        return PermissionVerdict("allow", "person", choice.reason, " ".join(question.patterns))


def _shared_by(question: Question, call: LiveCall) -> Hashable | None:
    """Return what is equal for questions that one answer is enough for; None where each call needs its own.

    A call that changes something is allowed one at a time, even if another shows the same; and what a question cannot
    show may differ.
    """
    if question.detail.withheld:
        return None
    once = None if call.purity.repeatable else (call.run.id, call.id)
    return question.run, question.callers, once, question.text, question.patterns
