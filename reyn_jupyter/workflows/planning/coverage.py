"""Which utility serves each step of a plan, and a gap for each step that none serves.

Invariant: a step has a utility, or it is an action that there is, or the plan has a gap for it that says which gate it
did not pass: is it a capability at all, does a utility declare it, does one fit the contract, is the model sure enough.
Source: the architecture of utilities and skills, 3.2 and 3.3; `utilities.registry` ranks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reyn_jupyter.workflows.planning.plan import (
    Gap,
    GapReason,
    MissingInput,
    PlanStatus,
    Priority,
    WorkflowPlan,
    WorkflowStep,
)
from reyn_jupyter.workflows.planning.references import LITERAL, parse_reference
from reyn_jupyter.workflows.utilities.capability_ranking import THRESHOLD, as_confidence, rank
from reyn_jupyter.workflows.utilities.contract import Contract, Schema, Violation, step_violations
from reyn_jupyter.workflows.utilities.registry import UtilityRegistry

_JSON_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (type(None), "null"),
)


def _every_action(name: str) -> bool:
    """Know every action: nobody can say what there is."""
    return True


@dataclass(frozen=True)
class ServingAction:
    """An action that says which capability it serves, and what it takes and gives."""

    action: str
    contract: Contract


ServingActions = Callable[[str], Sequence[ServingAction]]


def _no_actions(capability: str) -> Sequence[ServingAction]:
    """Know no action that serves a capability."""
    return ()


def cover(
    plan: WorkflowPlan,
    registry: UtilityRegistry,
    threshold: float = THRESHOLD,
    *,
    known_actions: Callable[[str], bool] = _every_action,
    serving_actions: ServingActions = _no_actions,
) -> WorkflowPlan:
    """Return a plan with a utility for each step that has one, and a gap for each other step.

    Where no utility serves a step, an action that says that it does serves it: a tool that was made at run time.

    Whatever a plan says of its utilities and of the gaps of its steps is found anew. Gaps without a step stay.

    Args:
        plan: sound, as `read_plan` gives it.
        registry: the utilities of this moment.
        threshold: the least confidence of a step that a language model planned.
        known_actions: whether there is an action of this name.
        serving_actions: the actions that serve a capability.
    """
    outputs = needed_outputs(plan)
    waited_for = {before for each in plan.steps for before in each.needed_steps}
    steps, gaps = [], []
    for at, step in enumerate(plan.steps):
        needed = outputs.get(step.step_id, ())
        ends = at == len(plan.steps) - 1
        priority: Priority = (
            "low" if step.on_failure == "skip" else "high" if step.step_id in waited_for or ends else "medium"
        )
        if step.action is not None:
            steps.append(replace(step, tool=None))
            if not known_actions(step.action):
                message = f"There is no action {step.action}."
                gaps.append(_gap(plan, step, needed, priority, "no_capability_match", message, {}))
            continue
        tool, failure = _served(step, needed, registry, threshold)
        if failure is not None and failure[0] in ("no_capability_match", "schema_incompatible"):
            sure = step.source != "llm" or as_confidence(step.coverage_confidence) >= threshold
            found = _serving(step, needed, serving_actions) if sure else None
            tool, failure = (found, None) if found is not None else (tool, failure)
        steps.append(replace(step, tool=tool))
        if failure is not None:
            gaps.append(_gap(plan, step, needed, priority, *failure))
    gaps += [each for each in plan.gaps if each.step_id is None]
    status: PlanStatus = "complete" if not gaps else "partial-complete"
    if not steps and (plan.status == "unroutable" or not gaps):
        status = "unroutable"
    return replace(plan, steps=tuple(steps), gaps=tuple(gaps), status=status)


def needed_outputs(plan: WorkflowPlan) -> Mapping[str, tuple[str, ...]]:
    """Return what later steps take from each step: the names of its outputs that they refer to."""
    found: dict[str, dict[str, None]] = {}
    for step in plan.steps:
        for each in step.references:
            if each.step_id is not None and each.keys and isinstance(each.keys[0], str):
                found.setdefault(each.step_id, {})[each.keys[0]] = None
    return {step_id: tuple(names) for step_id, names in found.items()}


def request_gap(text: str, message: str, details: Mapping[str, Any] | None = None) -> Gap:
    """Return the gap for something that was asked for and that no step was found for.

    Args:
        text: what was asked for, in the words of the request.
        message: why there is no step, in a sentence.
        details: as JSON has it.
    """
    return Gap(
        missing_capability=text,
        reason="no_capability_match",
        reason_message=message,
        reason_details={"asked_for": text, **(details or {})},
        proposed_tool_name=proposed_name(text),
        proposed_input_schema={"type": "object", "properties": {}},
        proposed_output_schema={"type": "object", "properties": {}},
        priority="high",
    )


def input_gap(missing: MissingInput) -> Gap:
    """Return the gap for a file that a request names and that does not exist."""
    return Gap(
        missing_capability=f"{missing.step_id} {missing.path}",
        reason="input_missing",
        reason_message=f"{missing.message[:1].upper()}{missing.message[1:]}.",
        reason_details=missing.as_json(),
        proposed_tool_name="",
        proposed_input_schema={},
        proposed_output_schema={},
        priority="high",
        step_id=missing.step_id,
    )


def proposed_name(text: str) -> str:
    """Return a name that a utility can have, made of what is missing.

    >>> proposed_name("tg.scrape"), proposed_name("mcp__read"), proposed_name("…")
    ('tg-scrape', 'mcp-read', 'new-utility')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.casefold())[:60].strip("-") or "new-utility"


_Failure = tuple[GapReason, str, Mapping[str, Any]]


def _served(
    step: WorkflowStep, needed: Iterable[str], registry: UtilityRegistry, threshold: float
) -> tuple[str | None, _Failure | None]:
    """Return the utility of a step, or the gate that it did not pass."""
    by_model = step.source == "llm"
    confidence = step.coverage_confidence if by_model else None
    capability = step.capability or ""
    ranking = rank(registry, capability, step.capability_contract, confidence, threshold, by_model=by_model)
    details: dict[str, Any] = {}
    if by_model:
        details |= {"confidence": as_confidence(confidence), "threshold": threshold}
    candidates: list[dict[str, Any]] = [
        {
            "tool": row.utility.id,
            "verdict": row.verdict,
            "why": row.why,
            "violations": [_violation(each) for each in row.violations],
        }
        for row in ranking.rows
    ]
    unfit: list[str] = []
    for row, candidate in zip(ranking.rows, candidates, strict=True):
        names = _name_violations(step, needed, row.utility.manifest.contract)
        candidate["violations"] += [_violation(each) for each in names]
        if row.verdict == "fits":
            if not names:
                return row.utility.id, None
            candidate |= {"verdict": "incompatible", "why": names[0].message}
            unfit.append(f"{row.utility.id}: {names[0].message}")
    details["candidates"] = candidates
    if ranking.reason is None:
        return None, (
            "schema_incompatible",
            f"No utility that serves {capability} fits. {'; '.join(unfit)}",
            details,
        )
    return None, (ranking.reason, ranking.message, details)


def _serving(step: WorkflowStep, needed: Iterable[str], serving_actions: ServingActions) -> str | None:
    """Return the first action that serves a step; None where none does."""
    for each in serving_actions(step.capability or ""):
        contract = step.capability_contract
        unfit = () if contract is None else step_violations(contract, each.contract)
        if not unfit and not _name_violations(step, needed, each.contract):
            return each.action
    return None


def _name_violations(step: WorkflowStep, needed: Iterable[str], offered: Contract) -> list[Violation]:
    """Return what the inputs of the step and the references to its outputs say, beside its contract.

    Inputs count where no contract says what the step sends. Of outputs only what is declared can be missed: a utility
    that says nothing of what it gives may give anything.
    """
    takes, gives = offered.input_schema, offered.output_schema
    found = []
    if step.capability_contract is None:
        found += [
            Violation("input", "/required", f"it needs {name!r}, which the step does not send")
            for name in takes.get("required", ())
            if name not in step.inputs
        ]
        if takes.get("additionalProperties") is False and "patternProperties" not in takes:
            found += [
                Violation("input", "/additionalProperties", f"it takes no {name!r}, which the step sends")
                for name in step.inputs
                if name not in takes.get("properties", {})
            ]
    is_closed = gives.get("additionalProperties") is False and "patternProperties" not in gives
    found += [
        Violation("output", "/required", f"it does not guarantee {name!r}, which a later step takes")
        for name in needed
        if name not in gives.get("required", ()) and (is_closed or name in gives.get("properties", {}))
    ]
    return found


def _gap(
    plan: WorkflowPlan,
    step: WorkflowStep,
    needed: Iterable[str],
    priority: Priority,
    reason: GapReason,
    message: str,
    details: Mapping[str, Any],
) -> Gap:
    contract = step.capability_contract or Contract()
    return Gap(
        missing_capability=step.operation,
        reason=reason,
        reason_message=message,
        reason_details=details,
        proposed_tool_name=proposed_name(step.operation),
        # What the contract says is proposed as it stands: a utility that required more would not serve the step.
        proposed_input_schema=_with_names(
            contract.input_schema, {} if contract.input_schema else _sent(plan, step)
        ),
        proposed_output_schema=_with_names(contract.output_schema, {name: {} for name in needed}),
        priority=priority,
        step_id=step.step_id,
    )


def _with_names(schema: Schema, names: Mapping[str, Schema]) -> dict[str, Any]:
    """Return a schema of an object that declares and requires these names too."""
    properties = {**names, **schema.get("properties", {})}
    required = list(dict.fromkeys((*schema.get("required", ()), *names)))
    made = {"type": "object", **schema, "properties": properties}
    return {**made, "required": required} if required else made


def _sent(plan: WorkflowPlan, step: WorkflowStep) -> dict[str, Schema]:
    """Return what is known of the inputs that a step sends, by name."""
    return {name: _schema_of(plan, value) for name, value in step.inputs.items()}


def _schema_of(plan: WorkflowPlan, value: Any) -> Schema:
    """Return the schema of one input: its type, or {} where only a run can tell."""
    if isinstance(value, str) and (reference := parse_reference(value)) is not None:
        if reference.step_id is None and len(reference.keys) == 1:
            known = plan.request_inputs.get(str(reference.keys[0]))
            return {} if known is None else _schema_of(plan, {LITERAL: known})
        return {}
    if isinstance(value, Mapping):
        return _schema_of_literal(value[LITERAL]) if value.keys() == {LITERAL} else {"type": "object"}
    return _schema_of_literal(value)


def _schema_of_literal(value: Any) -> Schema:
    if isinstance(value, Mapping):
        return {"type": "object"}
    if isinstance(value, list | tuple):
        return {"type": "array"}
    return next(({"type": name} for kind, name in _JSON_TYPES if isinstance(value, kind)), {})


def _violation(violation: Violation) -> dict[str, str]:
    return {"direction": violation.direction, "path": violation.path, "message": violation.message}
