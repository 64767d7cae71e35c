"""Plans: steps over capabilities or actions, what they take from the request and from each other, and their gaps.

Invariant: a `WorkflowPlan` that was read or made is a graph without cycles, of steps with ids of their own, whose
references lead to inputs of the request or to outputs of steps that run before.
Source: the architecture of utilities and skills, 3.2 "Contract of a plan", 3.3 "Contract of a gap report".
"""

from __future__ import annotations

import functools
import graphlib
import re
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reyn_jupyter.catalog.names import ActionName, MalformedNameError
from reyn_jupyter.support.sanitize import printable, visible
from reyn_jupyter.support.text import MeantClauses, count, shorten
from reyn_jupyter.support.validation_messages import fields_at, reason
from reyn_jupyter.workflows.planning.references import (
    HOW_TO_WRITE_TEXT,
    InputReference,
    is_too_deep,
    near_references,
    references_of,
)
from reyn_jupyter.workflows.utilities.capability_ranking import as_confidence
from reyn_jupyter.workflows.utilities.contract import Contract
from reyn_jupyter.workflows.workflow_error import WorkflowError

OnFailure = Literal["retry", "skip", "fail"]
StepSource = Literal["rule", "llm", "person"]
GapReason = Literal[
    "no_capability_match", "schema_incompatible", "low_confidence", "invalid_capability", "input_missing"
]
PlanStatus = Literal["complete", "partial-complete", "unroutable"]
Priority = Literal["high", "medium", "low"]
MOST_PLAN_STEPS = 1_000
MOST_MISSING_INPUTS = 1_000  # that a plan tells of
_SHOWN = 10  # problems in the message of an error; its details hold all
_STEP_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True)
class WorkflowStep:
    """One step of a plan: a capability that a utility serves, or an action of the catalog by its qualified name.

    Attributes:
        step_id: of its own in the plan.
        capability: a domain and an action, as video.convert; None for a step that calls an action.
        action: the qualified name of an action; None for a step of a capability.
        tool: the utility that serves it, ``name@version``; None while none does, and for an action.
        inputs: values by name. A text that is ``request.inputs.<key>`` or ``steps.<id>.outputs.<key>`` as a whole
            is a reference, at any depth; ``{"$value": …}`` is a value as it stands, whatever it looks like.
        on_failure: what a failure means for the run.
        retries: whether it may be tried again although its utility does not say that this is safe.
        capability_contract: what it sends and needs; None where nothing is known.
        coverage_confidence: from 0 to 1, how sure the planner is that this capability is meant; None where it did not
            say. Only looked at for steps of a language model.
        coverage_rationale: why, in a sentence.
        depends_on: steps that run before, beside those that the inputs refer to.
        source: who planned it.
    """

    step_id: str
    capability: str | None = None
    action: str | None = None
    tool: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    on_failure: OnFailure = "fail"
    retries: bool = False
    capability_contract: Contract | None = None
    coverage_confidence: float | None = None
    coverage_rationale: str = ""
    depends_on: tuple[str, ...] = ()
    source: StepSource = "person"

    @property
    def operation(self) -> str:
        """What it does: its capability or its action."""
        return self.capability or self.action or ""

    @functools.cached_property
    def references(self) -> tuple[InputReference, ...]:
        """Every reference in its inputs."""
        return references_of(self.inputs)

    @functools.cached_property
    def needed_steps(self) -> tuple[str, ...]:
        """The ids of the steps that run before it, by its own word and by its references; each once."""
        referred = (each.step_id for each in self.references if each.step_id is not None)
        return tuple(dict.fromkeys((*self.depends_on, *referred)))

    def as_json(self) -> dict[str, Any]:
        """Return the step as JSON has it; `read_plan` reads it back."""
        contract = self.capability_contract
        return {
            "step_id": self.step_id,
            "capability": self.capability,
            "action": self.action,
            "tool": self.tool,
            "inputs": dict(self.inputs),
            "on_failure": self.on_failure,
            "retries": self.retries,
            "capability_contract": None
            if contract is None
            else {
                "input_schema": dict(contract.input_schema),
                "output_schema": dict(contract.output_schema),
            },
            "coverage_confidence": self.coverage_confidence,
            "coverage_rationale": self.coverage_rationale,
            "depends_on": list(self.depends_on),
            "source": self.source,
        }


@dataclass(frozen=True)
class Gap:
    """What a plan lacks: one step that nothing serves, or something asked for that no step was found for.

    Attributes:
        missing_capability: as the plan names it; it may be no capability at all.
        reason: the first gate that it did not pass.
        reason_message: why, in a sentence.
        reason_details: as JSON has it: every violated path of every candidate, what was asked for.
        proposed_tool_name: for a utility that would close it.
        proposed_input_schema, proposed_output_schema: what that utility would have to take and give.
        priority: high where other steps wait for it or the run ends with it, low where it may be skipped.
        step_id: the step; None where there is none.
    """

    missing_capability: str
    reason: GapReason
    reason_message: str
    reason_details: Mapping[str, Any]
    proposed_tool_name: str
    proposed_input_schema: Mapping[str, Any]
    proposed_output_schema: Mapping[str, Any]
    priority: Priority
    step_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the gap as JSON has it."""
        return {
            "missing_capability": self.missing_capability,
            "reason": self.reason,
            "reason_message": self.reason_message,
            "reason_details": dict(self.reason_details),
            "proposed_tool_name": self.proposed_tool_name,
            "proposed_input_schema": dict(self.proposed_input_schema),
            "proposed_output_schema": dict(self.proposed_output_schema),
            "priority": self.priority,
            "step_id": self.step_id,
        }


@dataclass(frozen=True)
class MissingInput:
    """A file that a step is to read and that is not there, so that the step would fail.

    Attributes:
        step_id: the step.
        path: where the input stands in the step's inputs, as a JSON Pointer.
        message: what is missing, in a sentence.
    """

    step_id: str
    path: str
    message: str

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"step_id": self.step_id, "path": self.path, "message": self.message}


@dataclass(frozen=True)
class WorkflowPlan:
    """Steps that answer a request, and what is missing for it.

    Attributes:
        plan_id: a UUID, or what a workflow is called.
        request_text: what was asked for; "" for a workflow that is kept as a file.
        request_inputs: values that steps refer to as ``request.inputs.<key>``.
        steps: in the order in which they were planned.
        gaps: see `Gap`. With any, nothing runs.
        status: "complete", "partial-complete" with gaps, "unroutable" where nothing was understood.
        notes: for people: why it is unroutable, what to configure.
        llm_calls: how often a language model was asked for it.
        missing_inputs: files that steps are to read and that are not there, as of when it was looked at; the first
            1,000.
    """

    plan_id: str
    request_text: str = ""
    request_inputs: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[WorkflowStep, ...] = ()
    gaps: tuple[Gap, ...] = ()
    status: PlanStatus = "complete"
    notes: tuple[str, ...] = ()
    llm_calls: int = 0
    missing_inputs: tuple[MissingInput, ...] = ()

    def step(self, step_id: str) -> WorkflowStep:
        """Return the step of an id. Raises KeyError where there is none."""
        for each in self.steps:
            if each.step_id == step_id:
                return each
        raise KeyError(step_id)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as JSON has it; `read_plan` reads it back."""
        return {
            "plan_id": self.plan_id,
            "request_text": self.request_text,
            "request_inputs": dict(self.request_inputs),
            "steps": [each.as_json() for each in self.steps],
            "gaps": [each.as_json() for each in self.gaps],
            "status": self.status,
            "notes": list(self.notes),
            "llm_calls": self.llm_calls,
            "missing_inputs": [each.as_json() for each in self.missing_inputs],
        }


def read_plan(
    data: Any, *, inputs: Mapping[str, Any] | None = None, input_names: Collection[str] = ()
) -> WorkflowPlan:
    """Return the plan that data describe, checked whole.

    Args:
        data: what `WorkflowPlan.as_json` gives; only ``steps`` is needed, and of a step its id and what it does.
        inputs: further inputs of the request; they come before those of the data.
        input_names: inputs of the request that are known by name alone, as a workflow kept as a file has them.

    Raises:
        WorkflowError: "plan_invalid"; ``details["problems"]`` holds every problem with its path.

    >>> read_plan({"steps": [{"step_id": "get", "capability": "youtube.download"}]}).steps[0].capability
    'youtube.download'
    """
    if not isinstance(data, Mapping):
        raise _invalid([("", "a plan is an object with steps")])
    if is_too_deep(data):
        raise _invalid([("", "it is nested too deeply")])
    given = dict(data)
    steps_data = given.pop("steps", None)
    head, problems = _checked(_PlanData, {**given, "steps": []}, "")
    if not isinstance(steps_data, list | tuple):
        raise _invalid([*problems, ("/steps", "a list of steps is needed")])
    if len(steps_data) > MOST_PLAN_STEPS:
        raise _invalid([*problems, ("/steps", f"a plan has at most {MOST_PLAN_STEPS:,} steps")])
    if not steps_data and not given.get("gaps") and given.get("status") != "unroutable":
        problems.append(("/steps", "a plan has at least one step"))
    steps: list[WorkflowStep] = []
    for at, each in enumerate(steps_data):
        step, found = _checked(_StepData, each, f"/steps/{at}")
        problems += found
        # One that was refused stays known by its id, so that references to it are no problem of their own.
        raw = each.get("step_id") if isinstance(each, Mapping) else None
        steps.append(_step(step) if step is not None else WorkflowStep(str(raw or f"?{at}"), "?"))
    own = given.get("request_inputs")
    request_inputs = {**(own if isinstance(own, Mapping) else {}), **(inputs or {})}
    plan = WorkflowPlan("", request_inputs=request_inputs, steps=tuple(steps))
    refused = {path.split("/")[2] for path, _ in problems if path.startswith("/steps/")}
    problems += [
        (path, message)
        for path, message in plan_problems(plan, input_names)
        if not (path.startswith("/steps/") and path.split("/")[2] in refused)
    ]
    if problems or head is None:
        raise _invalid(problems)
    return replace(
        plan,
        plan_id=head.plan_id or str(uuid.uuid4()),
        request_text=head.request_text,
        gaps=tuple(Gap(**each.model_dump()) for each in head.gaps),
        status=head.status,
        notes=tuple(head.notes),
        llm_calls=head.llm_calls,
        missing_inputs=tuple(MissingInput(**each.model_dump()) for each in head.missing_inputs),
    )


def plan_problems(plan: WorkflowPlan, input_names: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return everything that keeps a plan from being one, as JSON Pointers with sentences; none for a sound plan.

    Args:
        plan: it may be wrong in any way.
        input_names: inputs of the request that are known by name alone.
    """
    problems: list[tuple[str, str]] = []
    meant = MeantClauses()
    # Ids name folders, and some file systems do not tell A from a.
    times = Counter(each.step_id.casefold() for each in plan.steps)
    ids = {each.step_id for each in plan.steps}
    known_inputs = {*plan.request_inputs, *input_names}
    for at, step in enumerate(plan.steps):
        place = f"/steps/{at}"
        if not _STEP_ID.fullmatch(step.step_id):
            said = "an id is letters, digits, '-' and '_', 64 at most, the first a letter or digit"
            problems.append((f"{place}/step_id", f"{shorten(step.step_id, 80)!r}: {said}"))
        elif times[step.step_id.casefold()] > 1:
            problems.append((f"{place}/step_id", f"there is more than one step {step.step_id!r}"))
        problems += [(place + path, message) for path, message in _operation_problems(step)]
        problems += [
            (f"{place}/inputs{path}", said) for path, said in _input_problems(step, ids, known_inputs, meant)
        ]
        problems += [
            (f"{place}/depends_on", f"there is no step {each!r}{meant(each, ids)}")
            for each in step.depends_on
            if each not in ids
        ]
    problems += [("/steps", f"steps wait for each other: {' → '.join(each)}") for each in _cycles(plan)]
    return problems


def layers(plan: WorkflowPlan) -> tuple[tuple[WorkflowStep, ...], ...]:
    """Return the steps in layers: those of one depend on earlier layers alone, and may run side by side.

    Raises:
        WorkflowError: "plan_invalid": there is a cycle.
    """
    order = graphlib.TopologicalSorter({each.step_id: each.needed_steps for each in plan.steps})
    by_id = {each.step_id: (at, each) for at, each in enumerate(plan.steps)}
    try:
        order.prepare()
    except graphlib.CycleError as error:
        raise _invalid([("/steps", f"steps wait for each other: {' → '.join(error.args[1])}")]) from None
    made = []
    while order.is_active():
        ready = order.get_ready()
        made.append(
            tuple(step for _, step in sorted((by_id[each] for each in ready), key=lambda pair: pair[0]))
        )
        order.done(*ready)
    return tuple(made)


def to_mermaid(plan: WorkflowPlan) -> str:
    """Return the plan as a Mermaid flowchart. What is missing is drawn in the class ``gap``.

    Source: Mermaid's documentation, flowcharts, "Entity codes to escape characters".
    """
    names = {each.step_id: f"s{at}" for at, each in enumerate(plan.steps)}
    lacking = {each.step_id for each in plan.gaps if each.step_id is not None}
    lines = ["flowchart LR"]
    for step in plan.steps:
        served = "missing" if step.step_id in lacking else step.tool or ""
        label = "<br/>".join(map(_mermaid_text, filter(None, (step.step_id, step.operation, served))))
        lines.append(f'  {names[step.step_id]}["{label}"]' + (":::gap" if step.step_id in lacking else ""))
    loose = [each for each in plan.gaps if each.step_id is None]
    lines += [
        f'  g{at}["{_mermaid_text(each.missing_capability)}<br/>missing"]:::gap'
        for at, each in enumerate(loose)
    ]
    lines += [
        f"  {names[before]} --> {names[step.step_id]}"
        for step in plan.steps
        for before in step.needed_steps
        if before in names
    ]
    if plan.gaps:
        lines.append("  classDef gap stroke:#b00020,stroke-dasharray:4 3")
    return "\n".join(lines)


def to_text(plan: WorkflowPlan) -> str:
    """Return the plan as lines: each step with what it waits for and who serves it, then gaps and notes."""
    head = f"{plan.status}: {count(len(plan.steps), 'step')}"
    lines = [head + (f", {count(len(plan.gaps), 'gap')}" if plan.gaps else "")]
    reasons = {each.step_id: each.reason for each in plan.gaps if each.step_id is not None}
    for step in plan.steps:
        served = f"missing ({reasons[step.step_id]})" if step.step_id in reasons else step.tool or ""
        waits = f", after {', '.join(step.needed_steps)}" if step.needed_steps else ""
        lines.append(f"  {step.step_id}  {step.operation}{f'  → {served}' if served else ''}{waits}")
    lines += [
        f"  gap: {each.missing_capability} ({each.reason}): {each.reason_message}" for each in plan.gaps
    ]
    lines += [f"  missing input: {each.step_id} {each.path}: {each.message}" for each in plan.missing_inputs]
    lines += [f"  note: {each}" for each in plan.notes]
    return "\n".join(visible(each) for each in lines)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _ContractData(_Strict):
    input_schema: dict[str, Any] = Field(default_factory=dict)
    output_schema: dict[str, Any] = Field(default_factory=dict)


class _StepData(_Strict):
    step_id: str = Field(min_length=1, max_length=200)
    capability: str | None = Field(default=None, max_length=1_000)
    action: str | None = Field(default=None, max_length=600)
    tool: str | None = Field(default=None, max_length=300)
    inputs: dict[str, Any] = Field(default_factory=dict)
    on_failure: OnFailure = "fail"
    retries: bool = False
    capability_contract: _ContractData | None = None
    coverage_confidence: Any = None  # what is no number is no confidence, and no reason to refuse the plan
    coverage_rationale: str = Field(default="", max_length=2_000)
    depends_on: list[str] = Field(default_factory=list, max_length=MOST_PLAN_STEPS)
    source: StepSource = "person"


class _GapData(_Strict):
    missing_capability: str
    reason: GapReason
    reason_message: str
    reason_details: dict[str, Any]
    proposed_tool_name: str
    proposed_input_schema: dict[str, Any]
    proposed_output_schema: dict[str, Any]
    priority: Priority
    step_id: str | None = None


class _MissingInputData(_Strict):
    step_id: str
    path: str
    message: str


class _PlanData(_Strict):
    plan_id: str = Field(default="", max_length=200)
    request_text: str = Field(default="", max_length=1_000_000)
    request_inputs: dict[str, Any] = Field(default_factory=dict)
    steps: list[Any]
    gaps: list[_GapData] = Field(default_factory=list, max_length=10 * MOST_PLAN_STEPS)
    status: PlanStatus = "complete"
    notes: list[str] = Field(default_factory=list, max_length=1_000)
    llm_calls: int = Field(default=0, ge=0)
    missing_inputs: list[_MissingInputData] = Field(default_factory=list, max_length=MOST_MISSING_INPUTS)


_Data = TypeVar("_Data", bound=BaseModel)


def _checked(model: type[_Data], data: Any, path: str) -> tuple[_Data | None, list[tuple[str, str]]]:
    """Return what data say, and what is wrong with them."""
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        items = error.errors(include_url=False)
        return None, [
            (
                path + "".join(f"/{part}" for part in item["loc"]),
                reason(item, fields_at(model, item["loc"][:-1])),
            )
            for item in items
        ]


def _step(data: _StepData) -> WorkflowStep:
    contract = data.capability_contract
    return WorkflowStep(
        step_id=data.step_id,
        capability=data.capability,
        action=data.action,
        tool=data.tool,
        inputs=data.inputs,
        on_failure=data.on_failure,
        retries=data.retries,
        capability_contract=None
        if contract is None
        else Contract(contract.input_schema, contract.output_schema),
        coverage_confidence=None
        if data.coverage_confidence is None
        else as_confidence(data.coverage_confidence),
        coverage_rationale=data.coverage_rationale,
        depends_on=tuple(data.depends_on),
        source=data.source,
    )


def _operation_problems(step: WorkflowStep) -> list[tuple[str, str]]:
    if (step.capability is None) == (step.action is None):
        both = (
            "both a capability and an action"
            if step.capability is not None
            else "neither a capability nor an action"
        )
        return [("", f"the step {shorten(step.step_id, 80)!r} names {both}; it needs one of them")]
    if step.action is not None:
        try:
            ActionName.parse(step.action)
        except MalformedNameError:
            return [("/action", f"{shorten(step.action, 80)!r} is no name of an action, such as file__read")]
    return []


def _input_problems(
    step: WorkflowStep, ids: Collection[str], known_inputs: Collection[str], meant: MeantClauses
) -> Iterator[tuple[str, str]]:
    for path, text in near_references(step.inputs):
        yield (
            path,
            f"{text} is no reference: request.inputs.<key> or steps.<id>.outputs.<key>. {HOW_TO_WRITE_TEXT}",
        )
    for each in step.references:
        if each.step_id is not None and each.step_id not in ids:
            yield (
                each.path,
                f"{each.text}: there is no step {each.step_id!r}{meant(each.step_id, ids)}",
            )
        elif each.step_id is None and each.keys and each.keys[0] not in known_inputs:
            near = meant(each.keys[0], known_inputs)
            yield each.path, f"{each.text}: the request has no input {each.keys[0]!r}{near}"


def _cycles(plan: WorkflowPlan) -> Iterator[list[str]]:
    """Yield cycles, each as the ids on its way, the first again at its end; no two share a step."""
    left = {each.step_id: set(each.needed_steps) for each in plan.steps}
    while True:
        try:
            graphlib.TopologicalSorter(left).prepare()
        except graphlib.CycleError as error:
            found: list[str] = error.args[1]
            yield found
            for each in found:
                left.pop(each, None)
            left = {each: before - set(found) for each, before in left.items()}
        else:
            return


def _invalid(problems: Iterable[tuple[str, str]]) -> WorkflowError:
    found = list(problems)
    shown = [f"{message} ({path})" if path else message for path, message in found[:_SHOWN]]
    more = f"; and {count(len(found) - _SHOWN, 'more problem')}" if len(found) > _SHOWN else ""
    return WorkflowError(
        f"The plan cannot be used: {'; '.join(shown)}{more}.",
        "Mend the plan; the details of this error name every place.",
        "plan_invalid",
        {"problems": [{"path": path, "message": message} for path, message in found]},
    )


def _mermaid_text(text: str) -> str:
    """Return a text as a quoted label holds it: what Mermaid or HTML could read is written by its code."""
    shown = printable(shorten(text, 100))
    return "".join(each if each.isalnum() or each in " .,_-/@:" else f"#{ord(each)};" for each in shown)
