"""Two steps with the smallest model that there is, on the real server: what holds whatever the model writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Operation, Purity, Tool
from reyn_jupyter.catalog.names import CHOOSE
from reyn_jupyter.models.local.local_model import LocalModel
from reyn_jupyter.models.local.model_server import SERVERS
from reyn_jupyter.models.providers import litellm_loader
from reyn_jupyter.runtime.record.trace import Trace

CONFIG = {
    "router": {
        "discovery": "two_steps",
        "edit_rule": "none",
        "weak": {"stop_repeats": True},
        "limits": {"max_steps": 8},
    },
    "action_retrieval": {"embedding_class": None},
}
NUMBER = {
    "type": "object",
    "properties": {"number": {"type": "integer", "description": "Number of the order."}},
    "required": ["number"],
    "additionalProperties": False,
}


def orders(done: list[Any]) -> tuple[Category, ...]:
    def operation(name: str, description: str) -> Operation:
        async def act(args: Any, context: Any) -> str:
            done.append((name, args["number"]))
            return f"Order {args['number']}: done."

        return Operation(name, description, NUMBER, Tool(name, act, Purity.READ))

    operations = (
        operation("track", "Say where an order is."),
        operation("show", "Show the goods of an order."),
    )
    return (Category("order", "orders of the shop", operations),)


@pytest.fixture(scope="module")
def turn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Trace, list[Any]]]:
    litellm_loader.load()
    model = LocalModel("local/smollm2", parameters={"temperature": 0, "seed": 1, "max_tokens": 40})
    done: list[Any] = []
    folder = tmp_path_factory.mktemp("orders")
    session = reyn.Session(folder, model=model, store=None, categories=orders(done), config=CONFIG)
    yield session.ask("Track the order with the number 226."), done
    session.close()
    SERVERS.close()


def test_the_first_reply_is_a_choice_from_the_page_and_the_second_the_chosen_action(
    turn: tuple[Trace, list[Any]],
) -> None:
    trace, _ = turn
    choice, call = trace.calls[:2]

    assert [step.requested.choice_form for step in trace.steps[:2]] == ["named", "named"]
    assert [step.requested.forced for step in trace.steps[:2]] == [CHOOSE, call.resolved.wrapper]
    assert all(step.requested.not_forced is None for step in trace.steps)
    assert choice.resolved.wrapper == CHOOSE and choice.ok
    chosen = choice.resolved.arguments["action"]
    assert chosen in ("order__track", "order__show")
    assert call.label == chosen and isinstance(call.resolved.arguments["number"], int)


def test_a_call_that_it_repeats_is_not_run_again_and_the_turn_ends_before_its_limit(
    turn: tuple[Trace, list[Any]],
) -> None:
    trace, done = turn
    ran = [
        call
        for call in trace.calls
        if call.resolved.wrapper != CHOOSE and "repeated" not in call.resolved.flags
    ]

    assert trace.status == "ok" and trace.answer
    assert len(trace.steps) < 8
    assert len(set(done)) == len(done) == len(ran) >= 1
    again = [call for call in trace.calls if "repeated" in call.resolved.flags]
    said = {(call.label, str(call.resolved.arguments)) for call in ran} | {
        (call.label, str(call.resolved.arguments)) for call in trace.calls if call.resolved.wrapper == CHOOSE
    }
    assert {(call.label, str(call.resolved.arguments)) for call in again} <= said
    assert trace.steps[-1].replied is not None and trace.steps[-1].replied.tool_calls == ()
