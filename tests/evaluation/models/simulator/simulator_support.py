"""Requests as the real loop makes them, for tests of the simulator."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from scipy.stats import binomtest

from reyn_jupyter.evaluation.models.simulator import Simulator
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.models.base import Message, Request, ToolCall
from reyn_jupyter.models.scripted import ScriptedModel, call
from tests.evaluation.trial_support import bench, run, scenario

BASE = Variant("base", model="asked")
MANDATED = {
    "none": BASE,
    "generic": BASE.but("generic", mandate="generic"),
    "explicit": BASE.but("explicit", mandate="explicit"),
    "explicit twice": BASE.but("explicit twice", mandate="explicit", reinforcement=2),
    "explicit three times": BASE.but("explicit three times", mandate="explicit", reinforcement=3),
    "explicit six times": BASE.but("explicit six times", mandate="explicit", reinforcement=6),
}
CHANGE = "Replace 'hello' with 'goodbye' in notes.md."
DRAWS = 1_500


def requests_of(variant: Variant, text: str = "Read notes.md.", *steps: Any) -> list[Request]:
    """The requests that the real loop makes under a variant, while a model takes these steps."""
    model = ScriptedModel(*steps, otherwise="Done.", label="simulator", tier="light")
    on = bench(scenario(prompts={"natural": text}), models={"asked": model})
    run(on, variant=variant)
    on.close()
    return model.requests


@cache
def opening(name: str) -> Request:
    return requests_of(MANDATED[name])[0]


def asking(request: Request, text: str, repeat: int = 0) -> Request:
    """The request with another text of the person."""
    last = max(place for place, message in enumerate(request.messages) if message.role == "user")
    messages = (*request.messages[:last], Message("user", text), *request.messages[last + 1 :])
    return replace(request, messages=messages, repeat=repeat)


def lists(model: Simulator, request: Request) -> bool:
    calls = model.answer(request).tool_calls
    return bool(calls) and calls[0].name == "list_actions"


def assert_rate(hits: int, draws: int, rate: float) -> None:
    """Within exact binomial bounds that a right simulator passes 99,999 times in 100,000."""
    if rate in (0.0, 1.0):
        assert hits == draws * rate
    else:
        assert binomtest(hits, draws, rate).pvalue > 1e-5, f"{hits} of {draws}, expected {rate:.3f}"


def invoke(name: str, **args: Any) -> ToolCall:
    return call("invoke_action", action_name=name, args=args)
