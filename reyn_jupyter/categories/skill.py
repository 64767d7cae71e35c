"""Skills: the five roles that turn a request into a run, and the workflows that the workspace keeps.

Invariants: planning and looking change nothing. A run's steps are calls like any other: what may run, and what the
person is asked, is a matter of each of them. A workflow of the workspace is an action once the person trusts its file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from reyn_jupyter.catalog.action import (
    Arguments,
    Category,
    Effect,
    EffectKind,
    Entry,
    Operation,
    Purity,
    Resources,
    Tool,
)
from reyn_jupyter.catalog.call_limits import CallLimits
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.brief_result import in_brief
from reyn_jupyter.runtime.services import FileChange, Services, ToolContext
from reyn_jupyter.support.text import tells_to_type
from reyn_jupyter.workflows.execution.executor import ExecutionEvent
from reyn_jupyter.workflows.execution.workflow_run import PARTLY_DONE, WorkflowRun
from reyn_jupyter.workflows.orchestrator import UTILITY, Orchestrator, with_inputs
from reyn_jupyter.workflows.planning.plan import read_plan, to_text
from reyn_jupyter.workflows.utilities.manifest import Utility
from reyn_jupyter.workflows.utilities.protocol import run_utility
from reyn_jupyter.workflows.utilities.registry import FOLDER
from reyn_jupyter.workflows.utilities.scaffold import scaffold
from reyn_jupyter.workflows.utilities.utility_files import trust_content
from reyn_jupyter.workflows.workflow_error import as_action_errors
from reyn_jupyter.workflows.workflow_library import SKILL, WorkflowLibrary

MOST_SECONDS = 86_400.0
SMOKE_SECONDS = 60.0  # of the one run of a utility that was just begun
_PLAN = {
    "type": "object",
    "description": "A plan as request-router gives it: steps with step_id, capability or action, inputs, on_failure, "
    "depends_on. An input that is steps.<step_id>.outputs.<name> or request.inputs.<name> is a reference.",
}
_ROUTE = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1, "description": "The request, in plain words."},
        "inputs": {
            "type": "object",
            "description": "Values that steps may refer to as request.inputs.<name>.",
        },
        "llm": {
            "type": "boolean",
            "default": True,
            "description": "Let a language model plan what no rule takes.",
        },
    },
    "required": ["text"],
    "additionalProperties": False,
}
_LOOK = {
    "type": "object",
    "properties": {"plan": _PLAN},
    "required": ["plan"],
    "additionalProperties": False,
}
_EXECUTE = {
    "type": "object",
    "properties": {
        "plan": _PLAN,
        "inputs": {"type": "object", "description": "Further inputs of the request."},
        "dry_run": {
            "type": "boolean",
            "default": False,
            "description": "Say what would run, and run nothing.",
        },
        "resume": {
            "type": "string",
            "minLength": 1,
            "description": "The run_id of a run to go on with; what was done is kept.",
        },
        "force": {
            "type": "boolean",
            "default": False,
            "description": "With resume: run again what was under way, although it may be done twice.",
        },
        "run_id": {"type": "string", "description": "A UUID for the run; a new one where it is left out."},
    },
    "required": ["plan"],
    "additionalProperties": False,
}
_SCAFFOLD = {
    "type": "object",
    "properties": {
        "capability": {"type": "string", "description": "What it can do: domain.action."},
        "input_schema": {
            "type": "object",
            "description": "JSON Schema of what it takes; a gap proposes one.",
        },
        "output_schema": {
            "type": "object",
            "description": "JSON Schema of what it gives; a gap proposes one.",
        },
        "language": {"type": "string", "enum": ["python", "node", "shell"], "default": "python"},
    },
    "required": ["capability"],
    "additionalProperties": False,
}


def categories(services: Services) -> tuple[Category, ...]:
    """`skill`: request-router, gap-detector, policy-engine, workflow-executor, tool-scaffolder, and kept workflows."""
    library = WorkflowLibrary(services)
    made = _Skills(library)
    return (
        Category(
            SKILL,
            "Plan a request as steps, see what is missing or forbidden, run them, begin a missing utility; run the "
            "workflows that the workspace keeps.",
            operations=(
                Operation(
                    "request-router",
                    "Turn a request into a plan of steps. All that it asks for is a step or a gap; nothing runs.",
                    _ROUTE,
                    Tool("plan_request", made.route, Purity.READ),
                ),
                Operation(
                    "gap-detector",
                    "Say for each step of a plan which utility serves it, and for the others what is missing.",
                    _LOOK,
                    Tool("detect_gaps", made.detect, Purity.READ),
                ),
                Operation(
                    "policy-engine",
                    "Say whether the policy lets a plan run, and which step it forbids for which reason.",
                    _LOOK,
                    Tool("check_policy", made.judge, Purity.READ),
                ),
                Operation(
                    "workflow-executor",
                    "Run a plan without gaps, or say what it would run.",
                    _EXECUTE,
                    Tool(
                        "execute_plan",
                        made.execute,
                        lambda args: Purity.READ if args.get("dry_run") else Purity.EXEC,
                        unasked="each of its steps asks for itself",
                    ),
                ),
                Operation(
                    "tool-scaffolder",
                    "Begin a utility for a capability: a folder with a manifest and a program that runs.",
                    _SCAFFOLD,
                    Tool("scaffold_utility", made.scaffold, Purity.WRITE, _scaffold_effects, keeps=False),
                ),
            ),
            resources=Resources(
                Tool("invoke_skill", made.invoke, Purity.EXEC, unasked="each of its steps asks for itself"),
                lambda entry, args: {"skill": entry, "artifact": args},
                "run the workflow",
                made.entries,
            ),
            revision=lambda: library.workflows_revision(),
            limits=CallLimits(seconds=MOST_SECONDS),
        ),
    )


class _Skills:
    """The handlers of the category over one library."""

    def __init__(self, library: WorkflowLibrary) -> None:
        self._library = library

    async def entries(self) -> Sequence[Entry]:
        return [
            Entry(each.name, each.workflow.description, each.workflow.inputs, version=each.digest)
            for each in self._library.workflow_files()
            if each.workflow is not None and each.trusted
        ]

    async def route(self, args: Arguments, context: ToolContext) -> object:
        with as_action_errors():
            plan = await (await Orchestrator.open(self._library, context)).plan(
                args["text"], args.get("inputs") or {}, use_model=args.get("llm", True)
            )
        value = plan.as_json()
        told = _advisor(value, context)
        return in_brief(_told(value, told), told(to_text(plan)), context)

    async def detect(self, args: Arguments, context: ToolContext) -> object:
        with as_action_errors():
            orchestrator = await Orchestrator.open(self._library, context)
            plan = await orchestrator.cover(read_plan(args["plan"]))
        value = {
            "status": plan.status,
            "gaps": [gap.as_json() for gap in plan.gaps],
            "plan": plan.as_json(),
        }
        told = _advisor(value, context)
        return in_brief(_told(value, told), told(to_text(plan)), context)

    async def judge(self, args: Arguments, context: ToolContext) -> dict[str, Any]:
        with as_action_errors():
            orchestrator = await Orchestrator.open(self._library, context)
            policy = self._library.policy()
            plan = await orchestrator.cover(read_plan(args["plan"]))
            found = await orchestrator.violations(plan, policy)
        violations = [each.as_json() for each in found]
        told = _advisor([plan.as_json(), violations], context)
        return {
            "status": "blocked_by_policy" if found else "allowed",
            "violations": _told(violations, told),
            "policy": policy.policy.as_json(),
            "sources": list(policy.sources),
        }

    async def execute(self, args: Arguments, context: ToolContext) -> object:
        with as_action_errors():
            plan = with_inputs(read_plan(args["plan"], inputs=args.get("inputs")), args.get("inputs") or {})
            orchestrator = await Orchestrator.open(self._library, context)
            run = await orchestrator.run(
                plan,
                run_id=args.get("resume") or args.get("run_id"),
                resume="resume" in args,
                force=args.get("force", False),
                dry=args.get("dry_run", False),
                on_event=_reporter(context, len(plan.steps)),
            )
        value = run.as_json()
        told = _advisor({**value, "text": ""}, context)
        value = _told(value, told)
        if not any(step.get("attempts") for step in value["steps"]):  # no program has said anything
            value["text"] = told(value["text"])
        return in_brief(value, value["text"], context)

    async def scaffold(self, args: Arguments, context: ToolContext) -> dict[str, Any]:
        root, settings = context.workspace.root, context.services.settings().sandbox

        async def smoke_run(utility: Utility, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
            done = await run_utility(
                replace(utility, trusted=True), inputs, run_folder=self._library.new_run_folder(),
                workspace=context.workspace, settings=settings, timeout_seconds=SMOKE_SECONDS,
            )  # fmt: skip
            return done.output

        with as_action_errors():
            made = await scaffold(
                args["capability"], root / FOLDER, input_schema=args.get("input_schema"),
                output_schema=args.get("output_schema"), language=args.get("language", "python"), smoke_run=smoke_run,
            )  # fmt: skip
        folder, manifest = made.utility.folder, made.utility.manifest
        place = context.workspace.relative(folder)
        for name in made.files:
            digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            context.changed(FileChange(f"{place}/{name}", None, digest))
        if context.actor == "person":  # who has it made trusts it; what a model begins is looked at first
            context.services.trust.keep(trust_content(made.utility.files), made.utility.trust_name)
        context.services.changed(UTILITY)
        return {
            "folder": place,
            "files": [f"{place}/{name}" for name in made.files],
            "manifest": manifest.as_json(),
            "checks": [asdict(each) for each in made.checks],
        }

    async def invoke(self, args: Arguments, context: ToolContext) -> object:
        """Run a workflow and return what it gives."""
        with as_action_errors():
            workflow = self._library.workflow(args["skill"])
            plan = workflow.plan(args["artifact"])
            orchestrator = await Orchestrator.open(self._library, context)
            run = await orchestrator.run_workflow(plan, _reporter(context, len(plan.steps)))
            if run.exit_code:
                raise _failure(run)
            given = workflow.result(run, args["artifact"])
            partly = run.status in ("partly_done", "completed_with_skips")
            return {**given, PARTLY_DONE: run.text.partition("\n")[0]} if partly else given


# What is said of a plan or a run in words of ours; everything else may be a program's, or of whoever wrote the plan.
_OURS = frozenset({"hint", "reason", "reason_message", "why", "notes"})
# What holds others' values alone, whatever their keys are called.
_THEIRS = frozenset({"inputs", "request_inputs", "outputs", "capability_contract", "proposed_input_schema",
                     "proposed_output_schema"})  # fmt: skip


def _advisor(value: Any, context: ToolContext) -> Callable[[str], str]:
    """Return what takes advice for people out of what is said of a plan or a run, for a model.

    Where others' words in it hold such a line, everything stays whole: what is said may quote them.
    """
    return str if tells_to_type(_others_words(value)) else context.without_advice


def _others_words(value: Any) -> Any:
    """Return what of a plan or a run is in others' words."""
    if isinstance(value, list | tuple):
        return [_others_words(each) for each in value]
    if isinstance(value, dict):
        return {
            key: each if key in _THEIRS else _others_words(each)
            for key, each in value.items()
            if key not in _OURS
        }
    return value


def _told(value: Any, told: Callable[[str], str], *, ours: bool = False) -> Any:
    """Return a plan or a run as its caller is told it, see `_advisor`."""
    if isinstance(value, str):
        return told(value) if ours else value
    if isinstance(value, list | tuple):
        return [_told(each, told, ours=ours) for each in value]
    if isinstance(value, dict):
        return {
            key: each if key in _THEIRS else _told(each, told, ours=key in _OURS)
            for key, each in value.items()
        }
    return value


def _failure(run: WorkflowRun) -> ActionError:
    """Return the error of a workflow that did not come to its end: that of its first step that failed."""
    failed = next((step for step in run.steps if step.error is not None), None)
    code = str(failed.error["code"]) if failed is not None and failed.error is not None else run.status
    return ActionError(run.text, f"Its run is {run.run_id}.", code=code.replace("-", "_"))


def _reporter(context: ToolContext, steps: int) -> Callable[[ExecutionEvent], None]:
    """Return what tells the listeners of a call how far its run is."""
    done = 0

    def hear(event: ExecutionEvent) -> None:
        nonlocal done
        step = event.step
        if step is None:
            context.report(
                {"run_started": "running the steps", "run_ended": "the run is over"}.get(event.kind, "")
            )
            return
        done += event.kind == "step_ended"
        words = {
            "step_started": "runs",
            "step_retried": f"failed and is tried again in {event.wait:.1f} s",
            "step_ended": step.status,
        }.get(event.kind, event.kind)
        context.report(f"{step.step_id} {step.operation}: {words}", done, steps)

    return hear


def _scaffold_effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    return (Effect(EffectKind.WRITE, f"{FOLDER}/{args['capability'].replace('.', '-')}"),)
