"""A dry run: what would be offered, sent and paid, without a call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.scripted import ScriptedModel

PRICED = "openai/gpt-4o-mini"


def facts(session: reyn.Session, prompt: str = "how many?", **options: Any) -> dict[str, str]:
    return dict(session.dry(prompt, **options).facts)


def test_nothing_is_called_and_nothing_is_recorded(workspace: Path) -> None:
    model = ScriptedModel("never")
    session = reyn.Session(workspace, model=model)
    card = session.dry("how many?")
    assert not model.requests and not session.runs and not len(session.history)
    tools = ["list_actions", "describe_action", "invoke_action", "search_actions", "inspect"]
    assert card.payload["tools"] == tools


def test_the_estimate_is_that_of_the_request_that_would_go_out(workspace: Path) -> None:
    model = ScriptedModel("One.", "Two.")
    session = reyn.Session(workspace, model=model)
    session.ask("a first question")
    estimate = session.dry("a second question").data["tokens"]["request"]
    trace = session.ask("a second question")
    requested = trace.steps[0].requested
    assert requested is not None and estimate == requested.estimated_tokens


def test_options_move_it(workspace: Path) -> None:
    session = reyn.Session(workspace, model=ScriptedModel("One."))
    session.ask("a first question")
    assert "flat surface" in facts(session, surface="flat")["tools"]
    assert "≈ 0 tokens, 0 turns" in facts(session, new=True)["history"]
    assert "at most 3" in facts(session, max_steps=2)["model calls"]


def test_a_model_that_charges_nothing_says_so(workspace: Path) -> None:
    session = reyn.Session(workspace)
    assert facts(session)["cost"] == "nothing: no provider is called"
    assert session.dry("x").data["most_cost"] == 0.0


def test_the_most_it_could_cost_is_every_call_with_a_full_context(workspace: Path) -> None:
    session = reyn.Session(workspace, model=PRICED)
    card = session.dry("how many?", max_steps=3)
    said = dict(card.facts)["cost"]
    assert said.startswith("at most $") and "4 calls, each with a full context" in said
    assert dict(card.facts)["first request"].endswith("before the answer")
    assert card.data["most_cost"] == pytest.approx(4 * session.dry("x", max_steps=1).data["most_cost"] / 2)


def test_a_budget_bounds_it_but_for_the_call_that_passes_it(workspace: Path) -> None:
    session = reyn.Session(workspace, model=PRICED)
    one_call = session.dry("x", max_steps=1).data["most_cost"] / 2
    card = session.dry("how many?", budget=0.01)
    assert card.data["most_cost"] == pytest.approx(0.01 + one_call)
    assert "the limit, and one more call" in dict(card.facts)["cost"]


def test_a_price_that_is_not_known_is_said_and_so_is_what_that_means(workspace: Path) -> None:
    session = reyn.Session(workspace, model="openai/no-such-model")
    said = facts(session, budget=1.0)["cost"]
    assert said.startswith("not known") and "--budget cannot be kept" in said
    assert session.dry("x").data["most_cost"] is None


def test_what_of_the_notebook_goes_along_is_listed(workspace: Path) -> None:
    session = reyn.Session(workspace)
    sent = ({"kind": "variable", "name": "orders", "bytes": 1200},)
    assert "orders 1,200 bytes" in facts(session, sent=sent)["this prompt"]


def test_a_model_that_is_not_configured_is_an_error_with_the_missing_line(workspace: Path) -> None:
    with pytest.raises(ModelError, match="No model is configured for the tier strong"):
        reyn.Session(workspace).dry("x", model="strong")


def test_without_a_price_there_is_still_a_bound_on_the_tokens(workspace: Path) -> None:
    session = reyn.Session(workspace, model="openai/no-such-model")
    card = session.dry("how many?", max_steps=2)
    most, first = card.data["most_tokens"], card.data["tokens"]["request"]
    assert most == 3 * (first + 2 * 50 * 2048)
    assert f"at most ≈ {most:,} sent" in dict(card.facts)["tokens"]
    session.configure("router.limits.turn_tokens", 1000)
    assert session.dry("how many?", max_steps=2).data["most_tokens"] == 1000 + first + 2 * 50 * 2048
    assert "tokens" not in facts(reyn.Session(workspace, model=PRICED))
