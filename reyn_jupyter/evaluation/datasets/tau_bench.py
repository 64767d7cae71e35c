"""Read the tasks of τ-bench and τ²-bench as scenarios: the calls that a task needs, over tools that only record.

Invariant: nothing of the benchmarks is run: not their tools, not their simulated person, not their database. What a
task asks beyond its calls is counted as left aside.
Source: sierra-research/tau-bench, tau_bench.types (Task, Action) and its historical_trajectories;
sierra-research/tau2-bench, data/tau2/domains/*/tasks.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from reyn_jupyter.evaluation.datasets.conversion import (
    Conversion,
    NotExpressibleError,
    list_of,
    object_of,
    text_of,
    word,
)
from reyn_jupyter.evaluation.datasets.rows import DatasetError, Row
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import AcceptedCall, Gold, Scenario
from reyn_jupyter.support.validation_messages import quote_value

CATALOG = "tau"
_ANSWER = "respond"  # the action by which an agent of τ-bench talks
_PERSON = "the person is not simulated: her instructions are the request"
_STATE = "no database changes: tools record the call and answer nothing"


def convert_tau_bench(rows: Sequence[Row], tools: Catalog, name: str) -> Conversion:
    """Return the scenarios of tasks, over a catalog of their tools. Raises DatasetError for a row that is no task."""
    made = Conversion(catalogs={CATALOG: tools}, _made={CATALOG: tools})
    actions = {action.name.entry: action.name.text for action in tools.snapshot.actions}
    seen: dict[str, Mapping[str, Any]] = {}
    for number, row in enumerate(rows):
        identity, task = _task(row, number)
        if seen.setdefault(identity, task) is not task:
            if seen[identity] != task:
                raise DatasetError(
                    f"{row.place}: the task {quote_value(identity)} is another one before; number them"
                )
            made.notes["a task that was tried several times is one scenario"] += 1
            continue
        scenario = word(f"{name}-{identity}")
        made.add(row, scenario, partial(_scenario, made, row, task, scenario, actions))
    return made


def _task(row: Row, number: int) -> tuple[str, Mapping[str, Any]]:
    """Return the id of a task and the task: itself, or that of a trajectory."""
    data = row.data
    if "info" in data:
        info = object_of(row, data["info"], "info")
        task = object_of(row, info.get("task"), "task")
        return str(data.get("task_id", number)), task
    return str(data.get("id", number)), data


def _scenario(
    made: Conversion, row: Row, task: Mapping[str, Any], identity: str, actions: Mapping[str, str]
) -> Scenario:
    criteria = task.get("evaluation_criteria") or {}
    second = "user_scenario" in task
    request = _brief(row, task) if second else text_of(row, task, "instruction")
    calls = list_of(row, object_of(row, criteria, "evaluation_criteria") if second else task, "actions")
    steps = []
    aside = []
    for call in calls:
        named = object_of(row, call, "actions")
        tool = text_of(row, named, "name")
        if tool == _ANSWER or named.get("requestor", "assistant") != "assistant":
            aside.append("what the person does, or is told, is not asked")
            continue
        if tool not in actions:
            raise NotExpressibleError(f"the tools have no {tool!r:.80}")
        given = object_of(row, named.get("kwargs", named.get("arguments")) or {}, tool)
        compared = named.get("compare_args")
        wanted = given if compared is None else {key: given[key] for key in compared if key in given}
        args = {key: (_literal(value),) for key, value in wanted.items()}
        steps.append((AcceptedCall(action=actions[tool], args=args),))
    if not steps:
        raise NotExpressibleError("it needs no call: what is right about it, no call shows")
    for key, note in _ASIDE.items():
        if task.get(key) or (second and criteria.get(key)):
            aside.append(note)
    made.notes.update({_PERSON, _STATE, *aside})
    return Scenario(
        id=identity,
        family="tau",
        prompts={"natural": request},
        catalog=CATALOG,
        gold=Gold(steps=tuple(steps)),
        origin=f"τ-bench {identity}"[:200],
    )


_ASIDE = {
    "outputs": "what the answer has to say (outputs) is not asked: no tool answers it",
    "communicate_info": "what the answer has to say (communicate_info) is not asked: no tool answers it",
    "nl_assertions": "sentences for a grader (nl_assertions) are not asked",
    "env_assertions": "conditions of the world (env_assertions) are not asked",
    "initial_state": "the state before (initial_state) is not made",
}


def _brief(row: Row, task: Mapping[str, Any]) -> str:
    """Return what a person of τ²-bench knows and wants, as one text."""
    instructions = object_of(row, task["user_scenario"], "user_scenario").get("instructions")
    if isinstance(instructions, str) and instructions.strip():
        return instructions
    said = object_of(row, instructions, "instructions")
    texts = (said.get(key) for key in ("reason_for_call", "known_info", "unknown_info", "task_instructions"))
    joined = "\n\n".join(text.strip() for text in texts if isinstance(text, str) and text.strip())
    if not joined:
        raise DatasetError(f"{row.place}: 'instructions' say nothing; give what the person wants")
    return joined


def _literal(value: Any) -> Any:
    """Return a value as an accepted one: in an object, each key accepts a list of values.

    >>> _literal({"flights": [{"date": "2024-05-20"}]})
    {'flights': [[{'date': ['2024-05-20']}]]}
    """
    if isinstance(value, Mapping):
        return {key: [_literal(each)] for key, each in value.items()}
    return [_literal(each) for each in value] if isinstance(value, list) else value
