"""From a request to a plan: rules first, a language model for what they do not take, gaps for what is left.

Invariant: everything that is asked for is in a step or in a gap. No language model is asked where rules take all.
Source: the architecture of utilities and skills, "request-router".
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from reyn_jupyter.support.text import shorten
from reyn_jupyter.workflows.planning.coverage import ServingActions, cover, request_gap
from reyn_jupyter.workflows.planning.llm_planner import AskModel, ModelSteps, plan_rest
from reyn_jupyter.workflows.planning.plan import (
    WorkflowPlan,
    WorkflowStep,
)
from reyn_jupyter.workflows.planning.references import write_reference
from reyn_jupyter.workflows.planning.request_intents import (
    NormalizedRequest,
    RequestIntent,
    content_words,
    normalize_request,
)
from reyn_jupyter.workflows.planning.request_parts import FindFile
from reyn_jupyter.workflows.planning.rule_steps import apply_rules
from reyn_jupyter.workflows.planning.rules import PlanRules, built_in_rules
from reyn_jupyter.workflows.utilities.capability_ranking import THRESHOLD
from reyn_jupyter.workflows.utilities.registry import UtilityRegistry

HOW_TO_CONFIGURE = (
    "A language model plans what no rule takes: %reyn config models.standard openai/gpt-4o-mini (any that LiteLLM "
    "reaches). A rule of your own in tools/rules.yaml does it without one."
)
# Beginnings of notes of a plan.
CONTEXT = "Taken for context, and not for something to do: "
UNUSED = "Not used: "
_NAMED = re.compile(r"(?:^|(?<=\s))[a-z0-9-]+\.[a-z0-9-]+(?=$|[\s,;:!?)])")


def _every_action(name: str) -> bool:
    return True


async def plan_request(
    text: str,
    *,
    inputs: Mapping[str, Any] | None = None,
    rules: PlanRules | None = None,
    registry: UtilityRegistry,
    ask_model: AskModel | None = None,
    threshold: float = THRESHOLD,
    max_llm_calls: int = 1,
    known_actions: Callable[[str], bool] = _every_action,
    serving_actions: ServingActions = lambda capability: (),
    find_file: FindFile | None = None,
) -> WorkflowPlan:
    """Return the plan for a request, covered: each step with its utility or a gap.

    Args:
        text: the request, in English or Russian.
        inputs: values that steps may refer to as inputs of the request.
        rules: the built-in ones where None; see `PlanRules.before` for those of a workspace.
        registry: the utilities of this moment.
        ask_model: asks a language model; None where none is configured or wanted.
        threshold: the least confidence of a step that a model planned.
        max_llm_calls: the most calls of a model.
        known_actions, serving_actions: see `cover`.
        find_file: See `find_parts`.

    Raises:
        WorkflowError: "validation": the request is empty or too long; "llm_error": the model failed, or its answer is
            no plan.

    Example:
        >>> import asyncio
        >>> plan = asyncio.run(plan_request("Download https://youtu.be/dQw4w9WgXcQ", registry=UtilityRegistry()))
        >>> [each.capability for each in plan.steps], [each.reason for each in plan.gaps]
        (['youtube.download'], ['no_capability_match'])
    """
    rules, inputs = rules or built_in_rules(), dict(inputs or {})
    request = normalize_request(text, rules, find_file)
    made = apply_rules(request, rules, inputs)
    questions = tuple(each for each in made.rest if each.is_question)
    steps, rest = list(made.steps), []
    for each in made.rest:
        if each.is_question:
            continue
        capability = _named_capability(request, each.intent, rules, registry)
        if capability is None:
            rest.append(each)
        else:
            steps.append(_named_step(capability, len(steps) + 1, inputs))
    notes = [f"{CONTEXT}“{shorten(each, 200)}”." for each in request.context]
    planned = ModelSteps((), tuple(rest), 0)
    if rest and ask_model is not None and max_llm_calls > 0:
        planned = await plan_rest(
            request.text,
            rest,
            steps=steps,
            inputs=inputs,
            registry=registry,
            ask_model=ask_model,
            max_calls=max_llm_calls,
        )
    elif rest and ask_model is not None:
        notes.append("No language model was asked, since max_llm_calls of the policy is 0.")
    elif rest:
        notes.append(HOW_TO_CONFIGURE)
    notes += [
        f"Rules make a step of “{shorten(each.intent.text, 80)}” without {each.unused}: ask for it without, or call "
        "the action by hand with %reyn invoke."
        for each in planned.left
        if each.unused
    ]
    all_steps = (*steps, *planned.steps)
    taken = {
        each.keys[0] if each.keys else None
        for step in all_steps
        for each in step.references
        if not each.step_id
    }
    if all_steps and None not in taken:
        notes += [f"{UNUSED}the input {shorten(name, 80)}." for name in inputs if name not in taken]
    plan = WorkflowPlan(
        plan_id=str(uuid.uuid4()),
        request_text=request.text,
        request_inputs=inputs,
        steps=all_steps,
        gaps=tuple(
            request_gap(each.intent.text, each.why, {"parts": list(each.parts)} if each.parts else None)
            for each in (*planned.left, *questions)
        ),
        status="complete" if all_steps else "unroutable",
        notes=tuple(notes),
        llm_calls=planned.calls,
    )
    return cover(plan, registry, threshold, known_actions=known_actions, serving_actions=serving_actions)


def _named_capability(
    request: NormalizedRequest, intent: RequestIntent, rules: PlanRules, registry: UtilityRegistry
) -> str | None:
    """Return the capability that a clause names and asks for, such as "run tg.scrape"; None where it asks for more."""
    if intent.parts:
        return None
    masked = request.masked[intent.start : intent.end]
    named = _NAMED.findall(masked)
    if len(named) != 1:
        return None
    others = content_words(_NAMED.sub(" ", masked), rules)
    says_no_more = set(others) <= {intent.verb} and (
        intent.verb_class in (None, "any")
        or intent.verb.casefold() in ("run", "call", "запусти", "запустить")
    )
    return named[0] if says_no_more or (named[0] in registry.capabilities and not others) else None


def _named_step(capability: str, number: int, inputs: Mapping[str, Any]) -> WorkflowStep:
    return WorkflowStep(
        f"step-{number}",
        capability,
        inputs={name: write_reference(None, [name]) for name in inputs},
        coverage_rationale="the request names it",
        source="rule",
    )
