"""The simulator in the real loop: what the loop enforces, the true rates of a study, and the published table."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from reyn_jupyter.evaluation.checks import CHECKS
from reyn_jupyter.evaluation.models.fake_provider import BEHAVIOURS
from reyn_jupyter.evaluation.models.simulator import BehaviourTable, Simulator
from reyn_jupyter.evaluation.plan.scenario import AcceptedCall, Gold
from reyn_jupyter.evaluation.results.true_rates import true_rates
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.evaluation.suites import load_suite
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from tests.evaluation.models.simulator.simulator_support import (
    BASE,
    DRAWS,
    MANDATED,
    asking,
    assert_rate,
    opening,
)
from tests.evaluation.trial_support import READ, Scripts, bench, run, scenario

# -- what the loop does -----------------------------------------------------------------------------------------------


def test_the_gate_and_the_forced_choice_work_without_an_entry_of_the_table() -> None:
    never = Simulator(table=BehaviourTable(lists_first_unasked=0.0, answers_at_once=0.0))
    on = bench(models={"asked": never})
    trials = {
        how: [run(on, variant=BASE.but(how, discovery=how), repeat=repeat)[0] for repeat in range(6)]
        for how in ("prompt", "gate", "forced")
    }
    on.close()

    grade = CHECKS["discovered_before_invoke"].grade
    discovered = {how: {grade(trial, scenario()).kind for trial in found} for how, found in trials.items()}
    assert discovered["prompt"] == {"fail"}
    assert "pass" in discovered["gate"] <= {"pass", "na"}  # after the gate's listing it may give up
    assert "pass" in discovered["forced"] <= {"pass", "na"}
    assert all(trial.calls[0].problem == "gated" for trial in trials["gate"])
    assert all(trial.calls[0].wrapper == "list_actions" for trial in trials["forced"])
    assert {trial.source for found in trials.values() for trial in found} == {"simulated"}


def test_guessed_names_are_malformed_unknown_or_right_as_the_table_says() -> None:
    model = Simulator(table=BehaviourTable(lists_first_unasked=0.0, answers_at_once=0.0))
    names = [
        json.loads(model.answer(asking(opening("none"), f"Read notes-{n}.md.")).tool_calls[0].arguments)[
            "action_name"
        ]
        for n in range(DRAWS)
    ]

    assert set(names) == {"file.read", "file__read_file", "file__read"}
    assert_rate(names.count("file.read"), DRAWS, 0.6)
    assert_rate(names.count("file__read_file"), DRAWS, 0.3)


def test_every_scenario_of_the_suite_comes_to_an_end() -> None:
    suite = load_suite("mandates")
    wide = TrialRunner(suite, models={"asked": Simulator()})
    variants = [variant.but(name, model="asked") for name, variant in suite.variants.items()]
    for place, each in enumerate(suite.scenarios[::7]):
        trial, _ = run(wide, each, variants[place % len(variants)], place % 2)
        assert trial.outcome in ("ok", "limit"), trial.error
        assert trial.answer
    wide.close()


# -- the truth of a study ---------------------------------------------------------------------------------------------


async def test_true_rates_are_computed_where_the_table_says_them_and_simulated_elsewhere() -> None:
    suite = bench(scenario("one"), scenario("two", prompts={"natural": "Open notes.md, please."})).suite
    variants = [
        MANDATED["explicit"],
        BASE.but("forced", discovery="forced"),
        BASE.but("gate", discovery="gate"),
    ]
    checks = [CHECKS["first_call_is"], CHECKS["discovered_before_invoke"], CHECKS["model_calls"]]

    found = await true_rates(
        suite, variants, checks, Simulator(seed=9, icc=0.9, arm_correlation=0.9), trials=40
    )

    assert list(found) == ["explicit", "forced", "gate"]
    assert [found[name]["first_call_is"].rate for name in found] == pytest.approx([0.36, 1.0, 0.03])
    assert all(rates["first_call_is"].how == "computed" for rates in found.values())
    gated = found["gate"]["discovered_before_invoke"]
    assert (gated.rate, gated.how, gated.trials) == (1.0, "simulated", 40)
    prompted = found["explicit"]["discovered_before_invoke"]
    assert prompted.rate is not None and 0 < prompted.rate < 1 and 0 < prompted.error < 0.2
    assert json.loads(json.dumps(prompted.record)) == prompted.record
    again = await true_rates(suite, variants[:1], checks[1:2], Simulator(seed=9), trials=40)
    assert again["explicit"]["discovered_before_invoke"] == prompted


async def test_a_check_that_never_applies_has_no_true_rate() -> None:
    suite = bench(scenario(gold=Gold(steps=((AcceptedCall(action="file__read"),),)))).suite

    found = await true_rates(suite, [BASE], [CHECKS["used_edit_not_write"]], Simulator(), trials=4)

    rate = found["base"]["used_edit_not_write"]
    assert (rate.rate, rate.applies, rate.trials) == (None, 0, 4)


# -- the table --------------------------------------------------------------------------------------------------------


@given(st.floats(0, 1), st.floats(0, 1), st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_a_table_comes_back_from_its_json(first: float, second: float, by_times: list[float]) -> None:
    table = BehaviourTable(retries=first, edits_must=second, lists_first_explicit=tuple(by_times))

    assert BehaviourTable.model_validate_json(table.model_dump_json()) == table
    assert table.lists_first(mandate="explicit", times=9, obscure=False, names_shown=False) == by_times[-1]


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ({"retries": 1.2}, "less than or equal to 1"),
        ({"guess_malformed": 0.8, "guess_unknown": 0.5}, "parts of one whole"),
        ({"lists_first_generic": ()}, "at least 1"),
        ({"patience": 0.5}, "patience"),
    ],
)
def test_a_table_that_cannot_be_is_refused(entries: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        BehaviourTable(**entries)


def test_provenance_is_plain_json_and_names_the_table() -> None:
    provenance = Simulator(seed=5).provenance

    assert json.loads(json.dumps(provenance)) == provenance
    assert provenance["seed"] == 5 and provenance["table"]["lists_first_explicit"] == [0.36, 0.6, 0.8]
    assert {source for *_, source in BehaviourTable().rows()} == {
        "assumed", "Universal Action Catalog (FP-0034), weak-model discovery and selection reliability",
    }  # fmt: skip


def test_the_manual_shows_the_table_and_the_practice_models_as_they_are() -> None:
    manual = resources.files("reyn_jupyter").joinpath("docs", "simulator.md").read_text("utf-8")

    for name, value, meaning, source in BehaviourTable().rows():
        assert (
            f"| `{name}` | {value} | {meaning} | {'assumed' if source == 'assumed' else 'published'} |"
            in manual
        )
    for name in BEHAVIOURS:
        assert f"| `{name}` |" in manual
    stated = (Simulator().icc, Simulator().arm_correlation)
    assert stated == (0.2, 0.4) and "| `icc` | 0.2 |" in manual and "| `arm_correlation` | 0.4 |" in manual


def test_a_study_keeps_the_true_rates_of_its_simulators_and_of_nothing_else() -> None:
    suite = bench(scenario("one")).suite
    stubborn = Simulator(table=BehaviourTable(lists_first_explicit=(0.25,)))
    models = {"stubborn": stubborn, "scripted": Scripts(*READ)}
    variants = [MANDATED["explicit"].but(name, model=name) for name in ("stubborn", "simulator", "scripted")]
    with Study(None, suite=suite, models=models) as study:
        study.run(*variants, repeats=1)
        known = study.compare("simulator", "stubborn", check="first_call_is")
        unknown = study.compare("scripted", "stubborn", check="first_call_is")

    assert abs(known.truth or 0.0) == pytest.approx(0.36 - 0.25)
    assert unknown.truth is None
