"""From a plan to its run: what serves each step now, whether the policy lets it run, and the calls of its steps.

Invariants: whatever a caller says of a plan, its gaps and its policy are looked at anew before anything runs. Each step
is a call of an action like any other, with its own permission, consent and record; nothing is allowed to it because the
plan as a whole was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.action import Effect, EffectKind, Purity
from reyn_jupyter.catalog.names import ActionName, MalformedNameError
from reyn_jupyter.guard.workspace import WorkspaceError
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.action_error import ActionError, PermissionDeniedError
from reyn_jupyter.runtime.call.call_scope import current_call
from reyn_jupyter.runtime.call.json_arguments import NoJsonFormError, json_form
from reyn_jupyter.support.text import enumerate_words, shorten
from reyn_jupyter.workflows.execution.dry_run import DryRun, dry_run
from reyn_jupyter.workflows.execution.executor import (
    OWN_RUN,
    ExecutionEvent,
    RunLimits,
    execute_plan,
    unstarted_run,
)
from reyn_jupyter.workflows.execution.run_file import RunFile
from reyn_jupyter.workflows.execution.sent_utility import current_sender
from reyn_jupyter.workflows.execution.step_place import StepPlace, current_step, step_place
from reyn_jupyter.workflows.execution.workflow_run import (
    StepSources,
    WorkflowRun,
    as_outputs,
    unrunnable_status,
)
from reyn_jupyter.workflows.planning.coverage import ServingAction, cover, input_gap
from reyn_jupyter.workflows.planning.llm_planner import model_asker
from reyn_jupyter.workflows.planning.plan import MOST_MISSING_INPUTS, MissingInput, WorkflowPlan
from reyn_jupyter.workflows.planning.policy import EffectivePolicy, PolicyViolation, violations
from reyn_jupyter.workflows.planning.references import resolve_inputs
from reyn_jupyter.workflows.planning.router import plan_request
from reyn_jupyter.workflows.utilities.contract import Contract
from reyn_jupyter.workflows.utilities.program import command_of
from reyn_jupyter.workflows.utilities.protocol import ARTIFACT_PATH, prepare_inputs, readable_paths
from reyn_jupyter.workflows.utilities.schema_values import at, texts_of_format
from reyn_jupyter.workflows.workflow_error import WORKFLOW_ERROR_CODES, WorkflowError, WorkflowErrorCode
from reyn_jupyter.workflows.workflow_library import SKILL
from reyn_jupyter.workflows.workspace_names import find_file, nearest_files

if TYPE_CHECKING:
    from reyn_jupyter.catalog.action import Action
    from reyn_jupyter.guard.workspace import FileDecision
    from reyn_jupyter.runtime.services import ToolContext
    from reyn_jupyter.workflows.planning.plan import WorkflowStep
    from reyn_jupyter.workflows.utilities.manifest import Utility
    from reyn_jupyter.workflows.utilities.registry import UtilityRegistry
    from reyn_jupyter.workflows.workflow_library import WorkflowLibrary

UTILITY = "utility"  # the category whose actions are utilities
# Actions that fail where there is nothing at their `path`.
PATH_READERS = frozenset(f"file__{each}" for each in ("read", "list", "glob", "grep", "edit", "delete"))
_SESSION_READERS = frozenset({"table", "chart"})  # categories whose actions read variables beside files
_MOST_TOLD = 3  # missing names for which the nearest ones are looked for


class Orchestrator:
    """Looks at plans and runs them, for one call.

    Args:
        library: of the workspace.
        context: of the call.
        registry: the utilities of this moment, see `open`.
    """

    def __init__(self, library: WorkflowLibrary, context: ToolContext, registry: UtilityRegistry) -> None:
        self._library, self._context, self._registry = library, context, registry
        self._settings = context.services.settings().workflows

    @classmethod
    async def open(cls, library: WorkflowLibrary, context: ToolContext) -> Orchestrator:
        """Return an orchestrator over the utilities as they are now; other calls go on while it looks for them."""
        return cls(library, context, await asyncio.to_thread(library.registry))

    async def cover(self, plan: WorkflowPlan) -> WorkflowPlan:
        """Return a plan with what serves each of its steps now, its gaps, and the inputs that are not there."""
        covered = await self._cover_steps(plan)
        return await asyncio.to_thread(self._with_missing_inputs, covered)

    async def _cover_steps(self, plan: WorkflowPlan) -> WorkflowPlan:
        """Return a plan with what serves each of its steps now, and with its gaps."""
        return await asyncio.to_thread(
            cover,
            plan,
            self._registry,
            self._settings.confidence,
            known_actions=self._knows,
            serving_actions=self._serving,
        )

    async def plan(self, text: str, inputs: Mapping[str, Any], *, use_model: bool = True) -> WorkflowPlan:
        """Return the plan for a request, with what serves each of its steps.

        Args:
            text: the request.
            inputs: values that steps may refer to.
            use_model: let a language model plan what no rule takes, where there is one.

        Raises:
            WorkflowError: "validation", "policy_invalid", "llm_error".
        """
        models = self._context.services.models
        plan = await plan_request(
            text,
            inputs=inputs,
            rules=self._library.rules(),
            registry=self._registry,
            ask_model=model_asker(models) if use_model and models.is_there() else None,
            threshold=self._settings.confidence,
            max_llm_calls=self._library.policy().policy.max_llm_calls,
            known_actions=self._knows,
            serving_actions=self._serving,
            find_file=lambda name: find_file(self._context, name),
        )
        return await asyncio.to_thread(self._with_missing_inputs, plan)

    async def run_workflow(
        self, plan: WorkflowPlan, on_event: Callable[[ExecutionEvent], None] | None = None
    ) -> WorkflowRun:
        """Run the plan of a workflow; where that is a step, go on with what an earlier call of the step did.

        Args:
            plan: of the workflow that this call names.
            on_event: hears what happens.

        Raises:
            WorkflowError: as `run` does.
        """
        place, run_id, again = current_step(), None, False
        if place is not None and place.action == self._context.name.text:
            run_id = place.inner_run_id
            again = place.again and self._run_file(run_id).exists
        force = place is not None and place.force
        run = await self.run(plan, run_id=run_id, resume=again, force=force, on_event=on_event)
        assert isinstance(run, WorkflowRun)
        return run

    async def violations(self, plan: WorkflowPlan, policy: EffectivePolicy) -> tuple[PolicyViolation, ...]:
        """Return what of a plan that was covered the policy forbids, within the workflows that are steps of it too."""
        found = list(violations(plan, policy.policy, self._is_safe, serves=self._serves))
        seen: set[str] = set()
        within = [(step, step) for step in plan.steps]  # a step of the plan, and one that runs for it
        while within:
            outer, step = within.pop(0)
            name = _parsed(_action_of(step))
            if name is None or name.entry in seen or not self._is_workflow(step):
                continue
            seen.add(name.entry)
            steps = self._library.workflow(name.entry).steps
            inner = await self._cover_steps(WorkflowPlan(name.entry, steps=steps))
            found += [
                PolicyViolation(
                    outer.step_id,
                    each.capability or outer.operation,
                    f"Within the workflow {name.entry}: {each.reason}",
                )
                for each in violations(inner, policy.policy, self._is_safe, serves=self._serves)
            ]
            within += [(outer, each) for each in inner.steps]
        return tuple(found)

    async def run(
        self,
        plan: WorkflowPlan,
        *,
        run_id: str | None = None,
        resume: bool = False,
        force: bool = False,
        dry: bool = False,
        on_event: Callable[[ExecutionEvent], None] | None = None,
    ) -> WorkflowRun | DryRun:
        """Run a plan, or say what it would run.

        Args:
            plan: a sound one; it is covered anew.
            run_id: of the run; a new one where it is None.
            resume: go on with the run of this id.
            force: run again what was under way there.
            dry: run nothing.
            on_event: hears what happens.

        Raises:
            WorkflowError: "policy_invalid", or what `execute_plan` raises.
        """
        policy = self._library.policy()
        plan = await self.cover(plan)
        forbidden = " ".join(each.reason for each in await self.violations(plan, policy))
        if dry:
            return dry_run(plan, self._command, forbidden)
        if (status := unrunnable_status(plan)) is not None:
            return unstarted_run(plan, status)
        run_file = self._run_file(run_id)
        if resume:
            # Its file may be anybody's, and what its steps gave may be a page's: later steps are judged by that.
            told_by = f"what {self._context.workspace.relative(run_file.path)} tells of a run"
            self._context.came_from(told_by)
            if (call := current_call()) is not None:
                call.run.note_origins([told_by])
        if forbidden:
            return unstarted_run(plan, "blocked_by_policy", None if resume else run_file, forbidden)

        called: set[str] = set()
        logs: dict[str, str] = {}

        async def call_step(step: WorkflowStep, inputs: dict[str, Any], seconds: float) -> Mapping[str, Any]:
            again = resume or step.step_id in called
            called.add(step.step_id)
            place = StepPlace(
                run_file.step_folder(step.step_id), seconds, self._called(step), again, force or step.retries
            )
            try:
                with step_place(place):
                    return await self._call(step, inputs)
            except WorkflowError as error:
                if self._is_workflow(step) and self._run_file(place.inner_run_id).exists:
                    error.details = {**error.details, OWN_RUN: place.inner_run_id}
                raise
            finally:
                logs[step.step_id] = place.log.text

        return await execute_plan(
            plan,
            call_step=call_step,
            limits=RunLimits(policy.policy.max_run_seconds, policy.policy.max_tool_retries, self._at_once),
            run_file=run_file,
            on_event=on_event,
            is_safe=self._is_safe,
            digest_of=self._digest,
            artifact_paths=self._artifacts,
            find_sources=self._find_sources,
            judge_again=self._judge_again,
            own_run=lambda step: self._own_run(run_file, step),
            log_of=lambda step: logs.get(step.step_id, ""),
            resume=resume,
            force=force,
        )

    @property
    def _at_once(self) -> int:
        """How many steps run side by side: as many as the settings say, or keep an executor busy."""
        sender = current_sender()
        return self._settings.at_once if sender is None else max(self._settings.at_once, sender.slots)

    async def _call(self, step: WorkflowStep, inputs: dict[str, Any]) -> Mapping[str, Any]:
        """Call what serves a step. Raises WorkflowError."""
        try:
            value = await self._context.invoke(self._called(step), inputs)
        except PermissionDeniedError as error:
            raise WorkflowError(
                error.message, error.hint, "permission_denied", {"retryable": False}
            ) from error
        except ActionError as error:
            code: WorkflowErrorCode = "tool_failed"
            if error.code in WORKFLOW_ERROR_CODES:
                code = error.code
            elif error.code == "call_timeout":
                code = "tool_timeout"
            raise WorkflowError(error.message, error.hint, code, {"kind": error.code}) from error
        try:
            return as_outputs(json_form(value))
        except NoJsonFormError as error:
            raise WorkflowError(f"It gave {error}.", "", "tool_invalid_output") from None

    async def _judge_again(self, step: WorkflowStep, inputs: dict[str, Any]) -> FileDecision:
        """Return whether what a step gave before may be given again, by the rules of now."""
        utility = self._utility(step)
        read: tuple[str, ...] = ()
        if utility is not None:
            # What its program is given to read is no effect of the call, and judged as it runs.
            with suppress(WorkflowError):  # it is gone since
                workspace = self._context.services.workspace
                read = (await asyncio.to_thread(prepare_inputs, utility, inputs, workspace)).readable
        effects = [Effect(EffectKind.READ, place) for place in read]
        return await self._context.judge_again(self._called(step), inputs, effects=effects)

    async def _find_sources(self, step: WorkflowStep, inputs: dict[str, Any]) -> StepSources:
        """Return what a step reads and writes in place, as its call declares it. Raises WorkflowError."""
        called, utility = self._called(step), self._utility(step)
        if utility is not None:
            workspace = self._context.services.workspace
            prepared = await asyncio.to_thread(prepare_inputs, utility, inputs, workspace)
            # What is in a folder that it writes in, it may have written itself.
            own = [each for each in prepared.readable if each in prepared.writable]
            reads = tuple(each for each in prepared.readable if each not in own)
            return StepSources(reads, unchecked=enumerate_words([*own, *utility.manifest.needs("host")]))
        effects = await self._context.effects_of(called, inputs)
        action = self._action(step)
        if effects is None or action is None:
            return StepSources(unchecked=f"what {called} reads", is_open=True)
        writes = {each.target for each in effects if each.kind.is_path and each.kind is not EffectKind.READ}
        found = {each.target for each in effects if each.kind is EffectKind.READ} - writes
        root = self._context.workspace.root
        reads = tuple(sorted(each for each in found if (root / each).exists()))
        elsewhere = [
            "what its command reads" if each.kind is EffectKind.EXEC else each.target
            for each in effects
            if not each.kind.is_path and each.kind is not EffectKind.SECRET
        ]
        # A reader that names no file, or that takes a variable too, reads something of the session.
        is_open = bool(found - set(reads)) or (
            (action.purity is not Purity.PURE and not (reads or writes or elsewhere))
            or action.name.category in _SESSION_READERS
        )
        unchecked = elsewhere or (["what it read in the session"] if is_open else [])
        return StepSources(
            reads,
            tuple(sorted(each for each in writes if (root / each).is_file() or not (root / each).exists())),
            enumerate_words(list(dict.fromkeys(unchecked))),
            is_open,
        )

    def _called(self, step: WorkflowStep) -> str:
        """Return the action that a step calls."""
        utility = self._utility(step)
        return _action_of(step) if utility is None else f"{UTILITY}__{self._registry.entry(utility)}"

    def _utility(self, step: WorkflowStep) -> Utility | None:
        """Return the utility that a step runs: the one that serves it, or the one that its action names."""
        if (served := self._registry.by_id.get(step.tool or "")) is not None:
            return served
        name = _parsed(_action_of(step))
        if name is None or name.category != UTILITY:
            return None
        return self._registry.by_id.get(name.entry) or self._registry.best.get(name.entry)

    def _with_missing_inputs(self, plan: WorkflowPlan) -> WorkflowPlan:
        """Return a plan with the files that its steps are to read and that are not there.

        A step that waits for another one is left out, because what it reads may be made by then. So is a file that the
        caller may not read without a question: whether it exists is for the step to find out. If a rule made the step,
        a missing file is a gap: the request names another file than the user thinks.
        """
        missing = tuple(islice(self._missing_inputs(plan), MOST_MISSING_INPUTS))
        by_rule = {step.step_id for step in plan.steps if step.source == "rule"}
        gaps = tuple(input_gap(each) for each in missing if each.step_id in by_rule)
        if not gaps:
            return replace(plan, missing_inputs=missing)
        return replace(plan, missing_inputs=missing, gaps=(*plan.gaps, *gaps), status="partial-complete")

    def _missing_inputs(self, plan: WorkflowPlan) -> Iterator[MissingInput]:
        workspace, told = self._context.workspace, 0
        for step in plan.steps:
            if step.needed_steps:
                continue
            inputs = resolve_inputs(step.inputs, plan.request_inputs, {}, keep_unknown=True)
            utility = self._utility(step)
            if utility is not None:
                named = readable_paths(utility, inputs)
            elif step.action in PATH_READERS and isinstance(path := inputs.get("path"), str):
                named = {"/path": path}
            else:
                continue
            for place, text in named.items():
                try:
                    found = workspace.place(text)
                    if (workspace.root / found).exists() or not self._context.may_read(found):
                        continue
                    said = f"there is no file or folder {shorten(text, 200)!r} in the workspace"
                    told += 1
                    near = nearest_files(self._context, text, found) if told <= _MOST_TOLD else []
                    if near:
                        said += f"; the nearest names are {enumerate_words([repr(each) for each in near])}"
                except WorkspaceError as error:
                    said = str(error)
                yield MissingInput(step.step_id, place, said)

    def _knows(self, action: str) -> bool:
        catalog, name = self._context.services.catalog(), _parsed(action)
        return name is not None and (catalog is None or catalog.get(name) is not None)

    def _is_safe(self, step: WorkflowStep) -> bool:
        utility = self._utility(step)
        if utility is not None:
            return utility.manifest.idempotency == "safe"
        action = self._action(step)
        return action is not None and action.purity.repeatable

    def _is_workflow(self, step: WorkflowStep) -> bool:
        """Return whether a step runs a workflow of the workspace."""
        name = _parsed(_action_of(step))
        return name is not None and name.category == SKILL and self._library.has_workflow(name.entry)

    def _own_run(self, run_file: RunFile, step: WorkflowStep) -> RunFile | None:
        """Return the file of the run that a step of a run has of its own; None where it runs no workflow."""
        if not self._is_workflow(step):
            return None
        place = StepPlace(run_file.step_folder(step.step_id), 0.0, self._called(step))
        return self._run_file(place.inner_run_id)

    def _serving(self, capability: str) -> tuple[ServingAction, ...]:
        """Return the actions that say that they serve a capability."""
        catalog = self._context.services.catalog()
        return tuple(
            ServingAction(action.name.text, Contract(action.input_schema, action.output_schema or {}))
            for action in (catalog.actions if catalog is not None else ())
            if action.capability == capability
        )

    def _action(self, step: WorkflowStep) -> Action | None:
        catalog, name = self._context.services.catalog(), _parsed(_action_of(step))
        return catalog.get(name) if catalog is not None and name is not None else None

    def _serves(self, step: WorkflowStep) -> Iterable[str]:
        utility = self._utility(step)
        return () if utility is None else utility.manifest.capabilities

    def _digest(self, step: WorkflowStep) -> str:
        utility, action = self._utility(step), self._action(step)
        return utility.digest if utility is not None else "" if action is None else action.version

    def _command(self, step: WorkflowStep) -> tuple[str, ...] | None:
        utility = self._utility(step)
        return None if utility is None else command_of(utility)

    def _artifacts(self, step: WorkflowStep, outputs: Mapping[str, Any]) -> tuple[str, ...]:
        utility = self._utility(step)
        if utility is None:
            return ()
        marked = texts_of_format(utility.manifest.output_schema, outputs, (ARTIFACT_PATH,))
        return tuple(dict.fromkeys(str(at(outputs, place)) for place in marked))

    def _run_file(self, run_id: str | None) -> RunFile:
        services = self._context.services
        blobs = services.blobs
        if blobs is None:
            return RunFile(services.root, run_id, redact=services.redactor.value)

        async def store(data: bytes) -> str:
            return await blobs.store_bytes(data, action=str(self._context.name), run=self._context.run_id)

        async def load(blob: str) -> bytes:
            try:
                return await blobs.load_bytes(blob)
            except BlobStoreError as error:
                raise LookupError(blob) from error

        return RunFile(services.root, run_id, redact=services.redactor.value, store=store, load=load)


def _action_of(step: WorkflowStep) -> str:
    """Return the action that a step calls, by itself or as what serves its capability; "" for a utility."""
    return step.action or step.tool or ""


def _parsed(action: str) -> ActionName | None:
    try:
        return ActionName.parse(action)
    except MalformedNameError:
        return None


def with_inputs(plan: WorkflowPlan, inputs: Mapping[str, Any]) -> WorkflowPlan:
    """Return a plan with further inputs of its request, which come before those that it has."""
    return replace(plan, request_inputs={**plan.request_inputs, **inputs})
