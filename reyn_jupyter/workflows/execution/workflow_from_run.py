"""A workflow made of a finished run: its calls become steps, what came from an earlier result becomes a reference.

Invariant: no secret gets into a workflow: where the record took one out, there is an input to be given each time. Only
a whole value becomes a reference, and only one that is hardly there by chance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.catalog.arguments.references import find_references, is_reference
from reyn_jupyter.outputs.blob import open_blob
from reyn_jupyter.outputs.content import BlobNotFoundError, BlobStoreError
from reyn_jupyter.runtime.call.origins import origin_line
from reyn_jupyter.runtime.record.events import ActionFinished
from reyn_jupyter.runtime.record.run_steps import Call
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.support.text import shorten
from reyn_jupyter.workflows.execution.workflow_file import Workflow
from reyn_jupyter.workflows.execution.workflow_run import as_outputs
from reyn_jupyter.workflows.planning.plan import WorkflowPlan, WorkflowStep, read_plan
from reyn_jupyter.workflows.planning.references import (
    LITERAL,
    escape_literal,
    parse_reference,
    write_reference,
)
from reyn_jupyter.workflows.workflow_error import WorkflowError

EXECUTOR = "skill__workflow-executor"  # the action that carries a plan out
LARGEST_RESULT = 4 << 20  # bytes of a result that is looked through for values of later calls
MOST_VALUES = 20_000  # of a result
DEEPEST_OBJECT = 3  # levels of a result down to which whole objects and lists are found again
SHORTEST_TEXT = 4  # characters of a text that is found again
SHORTEST_OBJECT = 8  # characters of an object or list as JSON
SMALLEST_NUMBER = 100  # a whole number below is there by chance too often
_SHORTEST_ASKED = 3  # characters of a text of the request
_MARK = re.compile(r"\[redacted:[^\]\n]{1,80}\]|\*{8,}")
Keys = tuple[str | int, ...]


@dataclass(frozen=True)
class WorkflowOfRun:
    """A workflow that was made of a run.

    Attributes:
        workflow: not yet written, see `write_workflow`.
        notes: what a person should look at before she keeps it: secrets to give, values that stayed as they were.
    """

    workflow: Workflow
    notes: tuple[str, ...]


def workflow_of_run(trace: Trace, name: str, description: str = "") -> WorkflowOfRun:
    """Return the workflow that does again what a run did.

    Every call that worked becomes a step. A value of its arguments that is an earlier result, or the value at some
    place in one, becomes a reference to it; one that stands in the request becomes an input, with the value as its
    default. What was read out of a result by looking into it (`inspect`) is found where it is a value of that result.
    Of a run that carried out a plan and nothing else, the steps are those of the plan.

    Args:
        trace: of a run that has ended, with its store of results.
        name: of the workflow.
        description: what it does; without one, what was asked for.

    Raises:
        WorkflowError: "validation": it called nothing with success, or needs a result that only this run has.
    """
    if (plan := _plan_of(trace)) is not None:
        return _workflow_of_plan(plan, name, description)
    making = _Making(trace.prompt)
    for call in trace.calls:
        if (
            call.ok
            and call.finished is not None
            and call.resolved.name
            and isinstance(call.resolved.inner, dict)
        ):
            making.add(call, call.finished, trace)
    if not making.steps:
        raise WorkflowError(
            "This run called no action with success, so there are no steps.",
            "Save another run.",
            "validation",
        )
    last = making.steps[-1].step_id
    inputs = making.input_schema()
    said = description or _described(trace.prompt)
    outputs = {"result": write_reference(last, making.whole[last])}
    return WorkflowOfRun(Workflow(name, said, inputs, tuple(making.steps), outputs), tuple(making.notes))


def _plan_of(trace: Trace) -> WorkflowPlan | None:
    """Return the plan of a run that did nothing but carry one out."""
    calls = [call for call in trace.calls if call.ok]
    given = calls[0].resolved.inner if len(calls) == 1 else None
    if not isinstance(given, dict) or calls[0].resolved.name != EXECUTOR:
        return None
    return read_plan(given["plan"], inputs=given.get("inputs"))


def _workflow_of_plan(plan: WorkflowPlan, name: str, description: str) -> WorkflowOfRun:
    """Return the workflow with the steps of a plan; what its request names becomes an input, as the value of old."""
    making = _Making(plan.request_text)
    for key, value in plan.request_inputs.items():
        making.inputs[key] = {"default": value}
    for step in plan.steps:
        inputs = making.planned(dict(step.inputs), (), step.step_id)
        making.steps.append(
            WorkflowStep(
                step.step_id, step.capability, step.action, inputs=inputs, on_failure=step.on_failure,
                retries=step.retries, depends_on=step.depends_on,
            )
        )  # fmt: skip
    said = description or _described(plan.request_text)
    workflow = Workflow(name, said, making.input_schema(), tuple(making.steps))
    return WorkflowOfRun(workflow, tuple(making.notes))


@dataclass
class _Making:
    """The workflow as far as it has come.

    Attributes:
        asked: what was asked for.
        inputs: schemas of the inputs by their names.
        places: where a value was given, by the value: the reference that leads there.
        whole: the keys from the outputs of a step to its result as a whole: none for an object.
        blobs: the step whose result a blob holds.
    """

    asked: str
    steps: list[WorkflowStep] = field(default_factory=list)
    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    whole: dict[str, Keys] = field(default_factory=dict)
    blobs: dict[str, str] = field(default_factory=dict)

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of all inputs."""
        return {
            "type": "object",
            "properties": self.inputs,
            "required": [key for key, schema in self.inputs.items() if "default" not in schema],
            "additionalProperties": False,
        }

    def add(self, call: Call, finished: ActionFinished, trace: Trace) -> None:
        """Add the step of a call."""
        step_id = f"step-{len(self.steps) + 1}"
        secret = {each.path for each in call.resolved.redactions if not each.in_key}
        arguments = self._inputs(call.resolved.inner, (), secret, step_id)
        self.steps.append(WorkflowStep(step_id, action=call.resolved.name, inputs=arguments))
        known, value = _result(finished, trace)
        self.whole[step_id] = () if finished.content_kind == "json_object" else ("result",)
        if finished.blob is not None:
            self.blobs[finished.blob] = step_id
        if not known:
            self.notes.append(f"The result of {step_id} is too large to be looked through, or is gone.")
            return
        for keys, each in _values(as_outputs(value)):
            if isinstance(each, dict | list) and len(keys) > DEEPEST_OBJECT:
                continue
            if (key := _particular(each)) is not None:
                self.places[key] = write_reference(step_id, keys)

    def _inputs(self, value: Any, path: Keys, secret: set[Keys], step_id: str) -> Any:
        """Return a value of a call's arguments as the inputs of its step have it."""
        if path in secret or (isinstance(value, str) and _MARK.search(value)):
            name = self._input(
                path, {"type": "string", "description": "A secret, which no record keeps."}, None
            )
            self.notes.append(
                f"{step_id} was given a secret, which is not kept: the input {name} takes it each time."
            )
            return write_reference(None, (name,))
        if isinstance(value, dict) and is_reference(value):
            return self._reference(value, step_id)
        if path and (kind := self._asked_for(value)) is not None:
            return write_reference(None, (self._input(path, {"type": kind}, value),))
        if path and (key := _particular(value)) is not None and key in self.places:
            return self.places[key]
        if isinstance(value, str) and value in self.blobs:
            raise _only_here(step_id, "reads the result of an earlier step by its id")
        if isinstance(value, dict) and value.keys() != {"$value"}:
            return {key: self._inputs(each, (*path, key), secret, step_id) for key, each in value.items()}
        if isinstance(value, list):
            return [self._inputs(each, (*path, at), secret, step_id) for at, each in enumerate(value)]
        return escape_literal(value)

    def planned(self, value: Any, path: Keys, step_id: str) -> Any:
        """Return a value of a plan's inputs as those of a workflow have it; its references are references already."""
        if isinstance(value, dict) and value.keys() != {LITERAL}:
            return {key: self.planned(each, (*path, key), step_id) for key, each in value.items()}
        if isinstance(value, list):
            return [self.planned(each, (*path, at), step_id) for at, each in enumerate(value)]
        if isinstance(value, str) and parse_reference(value) is not None:
            return value
        if (isinstance(value, str) and _MARK.search(value)) or self._asked_for(value) is not None:
            return self._inputs(value, path, set(), step_id)
        return value

    def _reference(self, value: dict[str, Any], step_id: str) -> Any:
        """Return what stands for a reference to a blob; one to a variable of the notebook stays as it is."""
        reference = find_references(value)[0]
        if reference.kind == "var":
            self.notes.append(f"{step_id} reads the variable {reference.name} of the notebook.")
            return value
        maker = self.blobs.get(reference.name)
        if maker is None:
            raise _only_here(step_id, "reads a result of another run")
        return write_reference(maker, (*self.whole[maker], *_keys_of(reference.pointer)))

    def _asked_for(self, value: Any) -> str | None:
        """Return the JSON type of a value that stands in the request as a word of its own, None where it does not."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        text = value if isinstance(value, str) else json.dumps(value)
        shortest = _SHORTEST_ASKED if isinstance(value, str) else 2
        if len(text.strip()) < shortest or not re.search(rf"(?<![\w.]){re.escape(text)}(?!\w)", self.asked):
            return None
        return "string" if isinstance(value, str) else "integer" if isinstance(value, int) else "number"

    def _input(self, path: Keys, schema: dict[str, Any], default: Any) -> str:
        """Return the name of an input with this default: one that there is, or a new one, named by its argument."""
        made = schema if default is None else {**schema, "default": default}
        base = next((part for part in reversed(path) if isinstance(part, str)), "input")
        base = re.sub(r"[^\w-]+", "_", base).strip("_") or "input"
        if default is not None:
            for name, each in self.inputs.items():
                if each == made:
                    return name
        name, number = base, 1
        while name in self.inputs:
            number += 1
            name = f"{base}_{number}"
        self.inputs[name] = made
        return name


def _result(finished: ActionFinished, trace: Trace) -> tuple[bool, Any]:
    """Return whether the record still has what a call gave, and that: a text, or the value of JSON."""
    if finished.content_kind == "parts" or finished.size > LARGEST_RESULT:
        return False, None
    is_text = finished.content_kind in (None, "text")
    if finished.blob is not None:
        try:
            blob = open_blob(trace.blobs, finished.blob)
            return True, blob.text if is_text else blob.json
        except (BlobNotFoundError, BlobStoreError, TypeError, ValueError):
            return False, None
    text = finished.output
    if not is_text:
        try:
            return True, json.JSONDecoder().raw_decode(text)[0]
        except (ValueError, RecursionError):
            return False, None
    for line in (origin_line(finished.origins), f"[{finished.note}]" if finished.note else ""):
        text = text.removesuffix(f"\n{line}") if line else text
    return True, text


def _values(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Yield the values in outputs with the keys that lead to them, the innermost first: outer ones win."""
    level: list[tuple[Keys, Any]] = [(keys, value)]
    found: list[tuple[Keys, Any]] = []
    while level and len(found) < MOST_VALUES:
        found += level
        level = [
            ((*at, key), inner)
            for at, outer in level
            if isinstance(outer, dict | list)
            for key, inner in (outer.items() if isinstance(outer, dict) else enumerate(outer))
        ]
    yield from reversed(found[:MOST_VALUES])


def _particular(value: Any) -> str | None:
    """Return what a value is found again by; None for one that may be the same as another by chance."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        return json.dumps(value) if len(value.strip()) >= SHORTEST_TEXT and not _MARK.search(value) else None
    if isinstance(value, int):
        return json.dumps(value) if abs(value) >= SMALLEST_NUMBER else None
    if isinstance(value, float):
        return json.dumps(value) if value != int(value) or abs(value) >= SMALLEST_NUMBER else None
    text = json.dumps(value, sort_keys=True)
    return text if len(text) >= SHORTEST_OBJECT and not _MARK.search(text) else None


def _keys_of(pointer: str | None) -> Keys:
    parts = (pointer or "").split("/")[1:]
    plain = (part.replace("~1", "/").replace("~0", "~") for part in parts)
    return tuple(int(part) if part.isascii() and part.isdigit() else part for part in plain)


def _described(prompt: str) -> str:
    said = shorten(" ".join(prompt.split()), 200)
    return said if len(said) >= 10 else f"Does again: {said or 'what a run did'}"


def _only_here(step_id: str, what: str) -> WorkflowError:
    return WorkflowError(
        f"{step_id} {what}, which a run of the workflow would not have.",
        "Ask again so that the value itself is handed on, then save that run.",
        "validation",
    )
