"""What people write in Python and what they are told where it cannot be: in words, before anything is tried."""

from __future__ import annotations

import math
import pickle
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.plan.suite import SuiteError
from reyn_jupyter.evaluation.plan.validation import FieldError
from reyn_jupyter.evaluation.results.trial_set import EvidenceError
from reyn_jupyter.evaluation.run.budget import BudgetError
from reyn_jupyter.evaluation.run.planning import PlanError
from reyn_jupyter.evaluation.store.study_file import StoreError
from tests.evaluation.study_support import BASE, BEST, ByVariant, small, study
from tests.evaluation.trial_support import scenario

PROMPTS = {"natural": "Hi"}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: reyn.Variant("a", mandte="generic"), "Variant 'a': mandte: unknown key; did you mean 'mandate'?"),
        (lambda: BASE.but("a", mandate="explicite"), "is not one of none, generic, explicit; did you mean 'explicit'?"),
        (lambda: reyn.Variant("a", surface=None), "surface: None is not one of universal, flat, auto"),
        (lambda: reyn.Variant("a", reinforcement=-1), "reinforcement: it must be at least 0, not -1"),
        (lambda: reyn.Variant("a", max_steps="x"), "max_steps: a whole number is needed, not 'x'"),
        (lambda: reyn.Variant(""), "name: it must not be empty"),
        (lambda: reyn.Variant("a", parameters={"x": object()}), "parameters.x: plain data is needed"),
        (lambda: reyn.Variant("a", parameters={"x": math.nan}), "a finite number is needed, not nan"),
        (lambda: reyn.Scenario(id="a", family="f", promts=PROMPTS), "Scenario 'a': promts: unknown key; did you mean"),
        (lambda: reyn.Scenario(id="a b", family="f", prompts=PROMPTS), "'a b' holds a space"),
        (lambda: reyn.Scenario(id="a", family="f", prompts=PROMPTS, says="x"), "put it into one: ['x']"),
        (
            lambda: reyn.Scenario(id="a", family="f", prompts=PROMPTS, gold={"stps": ()}),  # type: ignore[arg-type]
            "gold.stps: unknown key; did you mean 'steps'?",
        ),
        (lambda: reyn.Scenario(id="a", family="f", prompts=PROMPTS, forecast=1.5), "forecast: it must be at most 1"),
        (lambda: reyn.Gold(step=()), "step: unknown key; did you mean 'steps'?"),
        (lambda: reyn.Gold(steps=("file__read",)), "'file__read' is no step"),
        (lambda: reyn.AcceptedCall(actions="a"), "AcceptedCall: actions: unknown key; did you mean 'action'?"),
        (lambda: reyn.AcceptedCall(action="a", args={"x": 1}), "args.x: a list is needed, not 1"),
        (lambda: reyn.Expected(path="a", contain=("x",)), "did you mean 'contains'?"),
    ],
)  # fmt: skip
def test_a_field_that_does_not_fit_is_named_with_what_would(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(FieldError) as caught:
        make()
    assert said in str(caught.value)
    assert "pydantic" not in str(caught.value) and "validation error" not in str(caught.value)


def test_every_field_that_does_not_fit_is_named() -> None:
    with pytest.raises(FieldError) as caught:
        reyn.Variant("a", surfac="flat", reinforcement=99)
    assert len(caught.value.problems) == 2
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert "\n- reinforcement: it must be at most 10, not 99\n- surfac: unknown key" in str(caught.value)


def test_a_step_of_one_call_needs_no_tuple_of_its_own() -> None:
    call = reyn.AcceptedCall(action="file__read")
    assert reyn.Gold(steps=(call,)) == reyn.Gold(steps=((call,),))  # type: ignore[arg-type]


def test_what_is_made_says_in_one_line_what_is_not_a_default() -> None:
    assert (
        repr(reyn.Variant(name="a", mandate="generic")) == "Variant('a', model='standard', mandate='generic')"
    )
    assert str(reyn.Gold(unanswerable=True)) == "Gold(unanswerable=True)"
    made = small(3)
    assert repr(made) == "Suite('small', 3 scenarios of discover, primary='first_call_is')"
    catalog = reyn.Catalog.from_records([{"name": "get_time"}])
    assert repr(catalog) == "Catalog(1 action of tool)"


@pytest.mark.parametrize("limit", ["one", -1, 0, math.nan, math.inf, True, [1]])
def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    for name in ("usd", "tokens", "calls"):
        with pytest.raises(BudgetError, match=f"^{name}="):
            reyn.Budget(**{name: limit})


def test_whole_floats_and_numbers_of_numpy_are_numbers() -> None:
    budget = reyn.Budget(usd=np.float64(2), tokens=1e6, calls=np.int64(5))  # type: ignore[arg-type]
    assert (budget.usd, budget.tokens, budget.calls) == (2.0, 1_000_000, 5)
    assert type(budget.tokens) is type(budget.calls) is int
    with pytest.raises(BudgetError, match="whole number"):
        reyn.Budget(tokens=1.5)  # type: ignore[arg-type]
    made = study(None, 3)
    assert made.run(BASE, n=np.int64(2), repeats=np.int64(1)).done == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"n": "3"}, "n='3': give a whole number from 1 on"),
        ({"n": math.nan}, "n=nan"),
        ({"repeats": "2"}, "repeats='2'"),
        ({"alpha": "x"}, "alpha='x': give a number above 0 and below 1"),
        ({"alpha": math.nan}, "alpha=nan"),
        ({"stop": "evalu"}, "did you mean 'evalue'?"),
        ({"families": 3}, "families=3: give names of families: discover"),
        ({"families": ["discovr"]}, "did you mean 'discover'?"),
        ({"budget": 2.0}, "budget=2.0 is no Budget; give reyn.Budget(usd=2.0)"),
        ({"on_progress": 3}, "on_progress=3: give a function"),
        ({"variants": ("base",)}, "'base' is no variant; make one"),
        ({"variants": ([BASE, BEST],)}, "study.run(*variants)"),
        ({"variants": (BASE, BASE)}, "named twice"),
    ],
)  # fmt: skip
def test_a_run_that_cannot_be_is_refused_before_the_first_trial(asked: dict[str, Any], said: str) -> None:
    made = study(None, 2)
    with pytest.raises(PlanError) as caught:
        made.run(*asked.pop("variants", (BASE, BEST)), **asked)
    assert said in str(caught.value) and made.spent.trials == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cassette": "rec"}, "did you mean 'record'?"),
        ({"executor": "process"}, "did you mean 'processes'?"),
        ({"executor": 2}, 'executor=2 is not known. Take "asyncio" or "processes".'),
        ({"seed": "x"}, "seed='x'"),
        ({"timeout": 0}, "timeout=0: give a number above 0"),
        ({"timeout": math.nan}, "timeout=nan"),
        ({"models": {"m": 3}}, "models['m']=3 is no model; it lacks label, tier, host, complete"),
        ({"models": [3]}, "models=[3]: give a mapping"),
        ({"config": 3}, "config=3: give a mapping"),
        ({"concurrency": 3}, "is no Concurrency"),
        ({"budget": 3}, "is no Budget"),
    ],
)
def test_a_study_that_could_not_run_is_refused(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError) as caught:
        reyn.Study(tmp_path / "a.sqlite", small(1), **given)
    assert said in str(caught.value) and not (tmp_path / "a.sqlite").exists()


def test_a_suite_in_place_of_the_file_is_no_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlanError, match=r'Study\("arguments.sqlite", suite=\'arguments\'\)'):
        reyn.Study("arguments")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suite", [None, 3, ["x"], [{"id": "a"}], []])
def test_what_is_no_suite_is_refused(suite: Any) -> None:
    with pytest.raises(SuiteError, match="scenario"):
        reyn.Study(None, suite)


def test_one_scenario_and_a_catalog_as_it_is_are_a_suite() -> None:
    assert reyn.Study(None, scenario("one")).suite.scenarios == (scenario("one"),)  # type: ignore[union-attr]
    catalog = reyn.Catalog.from_records([{"name": "get_time"}])
    one = scenario("one", catalog="tools")
    made = reyn.Suite(name="s", title="S", primary="chain", scenarios=[one], catalogs={"tools": catalog})  # type: ignore[arg-type]
    assert made.catalog("tools") is catalog and made.scenarios == (one,)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("openai/gpt-4o-mini", "OPENAI_API_KEY is not set"),
        ("nosuch/model", "LiteLLM knows no provider of 'nosuch/model'"),
        ("opnai/gpt-4o-mini", "Did you mean openai/gpt-4o-mini?"),
        ("OpenAI/gpt-4o", "Did you mean openai/gpt-4o?"),
        ("gpt-4o-mni", "Did you mean gpt-4o-mini?"),
        ("scriptd", "Did you mean scripted?"),
        ("simulatr", "Did you mean simulator?"),
        ("light", "No model is configured for the tier light"),
    ],
)
def test_a_model_that_no_call_could_reach_is_refused_without_a_call(
    monkeypatch: pytest.MonkeyPatch, model: str, said: str
) -> None:
    def network(*_: object, **__: object) -> None:
        raise AssertionError("nothing may be called")

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if model.startswith("gpt"):
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    monkeypatch.setattr(socket.socket, "connect", network)
    monkeypatch.setattr(socket, "getaddrinfo", network)
    made = study(None, 2)
    with pytest.raises(PlanError) as caught:
        made.run(BASE, BASE.but("other", model=model))
    assert said in str(caught.value) and "'other'" in str(caught.value)
    assert made.spent.trials == 0 and not made.parts.store.runs()


def test_a_recording_is_replayed_without_the_key_of_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    hosted = BASE.but("hosted", model="openai/gpt-4o-mini")
    stand_in, tape = ByVariant(), tmp_path / "tape.jsonl"
    stand_in.label = hosted.model
    recorded = study(None, 2, models={hosted.model: stand_in}, cassette="record", cassette_path=tape)
    assert recorded.run(hosted).done == 4
    replayed = study(None, 2, models={}, cassette="replay", cassette_path=tape)
    assert replayed.run(hosted).done == 4 and replayed.evidence.outcomes("hosted") == {"ok": 4}


def test_what_was_tried_is_asked_for_by_its_name_or_its_settings() -> None:
    made = study(None, 3)
    made.run(BASE, BEST)
    changed = BEST.but("best", mandate="generic")
    for ask in (
        lambda: made.trials.of(changed),
        lambda: made.compare(BASE, changed),
        lambda: made.plan(BASE, changed),
    ):
        with pytest.raises(EvidenceError, match="were made with mandate='explicit' and not 'generic'"):
            ask()
    with pytest.raises(EvidenceError, match="did you mean 'best'"):
        made.trials.of("bets")
    with pytest.raises(EvidenceError, match="did you mean 'best'"):
        made.plan("base", "bets")
    with pytest.raises(EvidenceError, match="3 is no variant"):
        made.compare(3, BASE)  # type: ignore[arg-type]
    with pytest.raises(EvidenceError, match="gives a number"):
        made.trials.failed("tokens")
    with pytest.raises(LookupError, match="there is no check 3"):
        made.trials.failed(3)  # type: ignore[arg-type]
    with pytest.raises(IndexError, match="there is no trial 99; 12 are here"):
        made.trials[99]
    with pytest.raises(TypeError, match=r"\.of\('base'\)"):
        made.trials["base"]  # type: ignore[call-overload]
    assert len(made.trials.of(BEST).failed("first_call_is").of("base")) == 0
    assert made.plan("base", "best").tokens == made.plan(BASE, BEST).tokens is not None


@pytest.mark.parametrize(
    "asked",
    [
        {"detect": 0},
        {"detect": "x"},
        {"detect": math.nan},
        {"power": 1},
        {"repeats": 1.5},
        {"repeats": 10**6},
    ],
)
def test_a_plan_of_what_is_no_figure_is_refused(asked: dict[str, Any]) -> None:
    made = study(None, 2)
    with pytest.raises(PlanError, match=f"^{next(iter(asked))}="):
        made.plan(BASE, BEST, **asked)
    with pytest.raises(PlanError, match="compared with itself"):
        made.plan(BASE, BASE)


def test_a_closed_study_says_that_it_is_closed(tmp_path: Path) -> None:
    made = study(tmp_path / "a.sqlite", 1)
    made.close()
    assert repr(made).endswith("a.sqlite', closed)")
    with pytest.raises(StoreError, match="The study was closed; open it again"):
        made.report()
