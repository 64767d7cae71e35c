"""One run: its order, what stops it, what it tells on the way."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.evaluation.checks.check_registry import check, forget
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import Suite
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.run.concurrency import Concurrency
from reyn_jupyter.evaluation.run.lock import StudyBusyError, running_alone
from reyn_jupyter.evaluation.run.planning import PlanError, order_trials, select_scenarios
from reyn_jupyter.evaluation.run.progress import Progress
from reyn_jupyter.evaluation.store.study_file import StoreError
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.models.base import ModelError, Response, Usage
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.runtime.record.verdict import Verdict, failed, passed
from tests.evaluation.study_support import BASE, BEST, BLIND, ByVariant, Holding, scenarios, small, study
from tests.evaluation.trial_support import READ, Scripts, scenario, suite
from tests.support.waiting import awaited, until

MODELS = {"scripted": ByVariant()}
ONE_BY_ONE = Concurrency(start=1, most=1, most_local=1)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 5), st.data())
def test_any_beginning_of_the_order_is_balanced(
    first: int, second: int, seed: int, data: st.DataObject
) -> None:
    suite = [scenario(f"a{n}", family="a") for n in range(first)] + [
        scenario(f"b{n}", family="b") for n in range(second)
    ]
    chosen = select_scenarios(suite, None, None, seed)
    assert sorted(each.id for each in chosen) == sorted(each.id for each in suite)
    cut = data.draw(st.integers(0, len(suite)))
    share = sum(each.family == "a" for each in chosen[:cut])
    assert abs(share - cut * first / (first + second)) <= 2
    order = list(order_trials(chosen, [BASE, BEST], range(2), seed))
    names = Counter(variant.name for _, variant, _ in order[: data.draw(st.integers(0, len(order)))])
    assert abs(names["base"] - names["best"]) <= 1
    assert order == list(order_trials(chosen, [BASE, BEST], range(2), seed))


def test_a_and_b_come_in_either_order_and_more_scenarios_keep_the_first_ones() -> None:
    suite = scenarios(40)
    order = [variant.name for _, variant, _ in order_trials(suite, [BASE, BEST], [0], 0)]
    firsts = Counter(order[::2])
    assert 8 <= firsts["base"] <= 32
    assert select_scenarios(suite, 7, None, 3) == select_scenarios(suite, 20, None, 3)[:7]


def test_a_run_stops_once_the_evidence_suffices() -> None:
    made = study(None, 40, models=MODELS, concurrency=ONE_BY_ONE)
    summary = made.run(BASE, BEST, stop="evalue")
    assert summary.ended == "evalue" and summary.stop["wins"] == summary.stop["stopped_at"] == 7
    assert summary.finished == 7 and 28 <= len(made.trials) <= 30
    assert made.evidence.runs[-1]["rule"] == "evalue" and summary.stop["log_e"] > 2.99
    again = made.run(BASE, BEST, stop="evalue")
    assert (again.ended, again.done - again.earlier) == ("evalue", 0)
    assert made.compare(BASE, BEST).winner == "best"


class Numbered(ScriptedModel):
    """A model that notes each trial as it begins; the loop turns many times before it gives its first answer."""

    label = "scripted"

    def __init__(self) -> None:
        super().__init__(otherwise="Done.")
        self.begun: list[tuple[str, int, str]] = []

    async def complete(self, request: Any, on_text: Any = None) -> Response:
        explicit = "MUST" in request.messages[0].content
        task = request.messages[-1].content.split()[-1]
        self.begun.append((f"s{int(task):03}", request.repeat, "best" if explicit else "base"))
        for _ in range(200):
            await asyncio.sleep(0)
        return await super().complete(request, on_text)


def numbered(count: int, **fields: Any) -> Suite:
    tasks = [scenario(f"s{n:03}", prompts={"natural": f"Task {n}"}) for n in range(count)]
    return suite(*tasks, **fields)


def test_one_at_a_time_trials_begin_in_the_planned_order() -> None:
    model, tasks = Numbered(), numbered(20)
    made = study(None, suite=tasks, models={"scripted": model}, concurrency=ONE_BY_ONE)
    made.run(BASE, BEST)
    chosen = select_scenarios(tasks.scenarios, None, None, 0)
    planned = order_trials(chosen, [BASE, BEST], range(2), 0)
    assert model.begun == [(task.id, repeat, variant.name) for task, variant, repeat in planned]


def test_however_late_a_trial_is_stored_only_two_more_begin_before_the_evidence_is_looked_at() -> None:
    """The trial that decides is graded only once everything has begun that may begin before it is."""
    model, graded = Numbered(), 0

    @check("listed", "Is it the best one?")
    def listed(trial: Trial, task: Scenario) -> Verdict:
        nonlocal graded
        graded += 1
        if graded == 28:
            until(lambda: len(model.begun) == 30)
        return passed("it is") if trial.variant == "best" else failed("it is not")

    try:
        tasks = numbered(40, primary="listed")
        made = study(None, suite=tasks, models={"scripted": model}, concurrency=ONE_BY_ONE)
        summary = made.run(BASE, BEST, stop="evalue")
    finally:
        forget("listed")
    assert (summary.ended, summary.stop["stopped_at"], summary.finished) == ("evalue", 7, 7)
    assert len(model.begun) == len(made.trials) == 30


def test_a_run_without_a_difference_goes_on_to_the_end() -> None:
    summary = study(None, 10).run(BASE, BEST, stop="evalue")
    assert (summary.ended, summary.stop["ties"], summary.stop["log_e"]) == ("complete", 10, 0.0)


def test_a_scenario_whose_trials_are_missing_in_one_arm_gives_no_evidence() -> None:
    async def fails(request: Any) -> None:
        if "MUST" not in request.messages[0].content:
            raise ModelError("unavailable", "gone")

    model = ByVariant()
    model.hook = fails
    summary = study(None, 4, models={"scripted": model}).run(BASE, BEST, stop="evalue")
    assert summary.missing == {"base": 8, "best": 0}
    assert (summary.stop["wins"], summary.stop["ties"], summary.finished) == (0, 0, 4)


def test_scenarios_are_looked_at_in_the_planned_order_however_quick_they_are() -> None:
    """As many scenarios favour one variant as the other; those that favour b are all done before the others."""

    class Quick(ScriptedModel):
        async def complete(self, request: Any, on_text: Any = None) -> Response:
            explicit = "list_actions" in request.messages[0].content and "MUST" in request.messages[0].content
            favours_b = int(request.messages[1].content.split()[-1]) % 2 == 0
            if not favours_b:
                await asyncio.sleep(0.3)
            script = READ if explicit == favours_b else BLIND
            position = sum(message.role == "assistant" for message in request.messages)
            return await ScriptedModel(script[min(position, len(script) - 1)]).complete(request)

    tasks = [scenario(f"s{n:02}", prompts={"natural": f"Task {n}"}) for n in range(30)]
    made = study(None, suite=suite(*tasks), models={"scripted": Quick()},
                 concurrency=Concurrency(start=60, most=60, most_local=60))  # fmt: skip
    summary = made.run(BASE, BEST, repeats=1, stop="evalue")
    assert (summary.ended, summary.stop["wins"], summary.stop["losses"]) == ("complete", 15, 15)
    found = made.compare(BASE, BEST)
    assert found.stop is not None and found.stop.log_e == pytest.approx(summary.stop["log_e"])
    assert found.stop.peak == pytest.approx(summary.stop["peak"]) and not found.clear


def test_progress_is_told_here_and_ends_with_everything_done() -> None:
    told: list[Progress] = []
    here: set[int] = set()

    def hear(progress: Progress) -> None:
        here.add(threading.get_ident())
        told.append(progress)

    study(None, 6, models=MODELS).run(BASE, BEST, on_progress=hear)
    assert here == {threading.get_ident()}
    assert (told[0].done, told[-1].done, told[-1].total) == (0, 24, 24)
    assert told[-1].estimates["best"].estimate == 1.0 and told[-1].estimates["base"].low == 0.0
    assert [each.done for each in told] == sorted(each.done for each in told)


def test_a_model_that_always_fails_ends_the_run_and_can_be_tried_again() -> None:
    class Broken(ScriptedModel):
        mended = False

        async def complete(self, request: Any, on_text: Any = None) -> Response:
            if self.mended:
                return Response("Done.", usage=Usage(1, 1))
            raise ModelError("stream", "the answer broke off")

    model = Broken()
    made = study(None, 20, models={"scripted": model})
    summary = made.run(BASE)
    assert summary.ended == "errors" and "the answer broke off" in summary.reason and 10 <= summary.done <= 16
    model.mended = True
    assert made.run(BASE).missing["base"] == summary.done
    retried = made.run(BASE, retry=True)
    assert (retried.ended, retried.missing["base"], len(made.trials)) == ("complete", 0, 40)
    assert made.verify().faults == () and "tried again" in " ".join(made.evidence.provenance["notes"])


def test_rate_limits_are_paced_and_no_trial_is_lost() -> None:
    class Limited(ScriptedModel):
        """Refuses four trials once each; the first trial runs alone."""

        def __init__(self) -> None:
            super().__init__()
            self.calls, self.refused = 0, set[tuple[str, int]]()

        async def complete(self, request: Any, on_text: Any = None) -> Response:
            self.calls += 1
            trial = (request.messages[-1].content, request.repeat)
            if self.calls > 1 and len(self.refused) < 4 and trial not in self.refused:
                self.refused.add(trial)
                raise ModelError("rate_limited", "slow down", retryable=True, retry_after=0.01)
            return Response("Done.", usage=Usage(1, 1))

    pace = Concurrency(start=4, most=8, most_local=8)
    made = study(None, suite=numbered(6), models={"scripted": Limited()}, concurrency=pace)
    summary = made.run(BASE)
    assert (summary.ended, summary.missing["base"]) == ("complete", 0)
    assert sum(view.trial.retries for view in made.trials) == 4
    assert pace.limits["scripted"] < 8  # what was refused halved it


def test_a_timeout_is_missing_and_the_run_goes_on() -> None:
    made = study(None, 2, models={"scripted": ScriptedModel(otherwise="late", delay=5)}, timeout=0.05)
    summary = made.run(BASE, repeats=1)
    assert (summary.ended, summary.missing) == ("complete", {"base": 2})
    assert {view.trial.outcome for view in made.trials} == {"timeout"} and not made.verdicts()["base"]


def test_a_model_that_changes_meanwhile_is_told() -> None:
    marks = iter(["fp_1"] * 3 + ["fp_2"] * 99)
    model = ScriptedModel(
        otherwise=lambda request: Response("Done.", usage=Usage(1, 1), fingerprint=next(marks))
    )
    made = study(None, 4, models={"scripted": model}, concurrency=ONE_BY_ONE)
    summary = made.run(BASE)
    assert any("fp_1, then fp_2" in warning for warning in summary.warnings)
    assert any("fp_1, then fp_2" in note for note in made.evidence.provenance["notes"])


def test_variants_that_behave_alike_share_their_trials() -> None:
    twin = BASE.but("twin")
    made = study(None, 3)
    summary = made.run(BASE, twin)
    assert (summary.done, made.spent.trials) == (12, 6)
    assert len(made.trials.of("twin")) == len(made.trials.of(BASE)) == 6
    assert made.compare(BASE, twin).difference.estimate == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"variants": ()}, "at least one variant"),
        ({"variants": (BASE, BEST.but("base"))}, "differ in mandate, reinforcement"),
        ({"variants": (BASE, BASE.but("base"))}, "named twice"),
        ({"n": 0}, "n=0: give a whole number from 1 on"),
        ({"families": ["nowhere"]}, "no family 'nowhere'. It has discover"),
        ({"repeats": 0}, "repeats=0"),
        ({"stop": "soon"}, "stop='soon'"),
        ({"variants": (BASE,), "stop": "evalue"}, "compares two variants"),
        (
            {"variants": (BASE, BASE.but("absent", model="light"))},
            "No model is configured for the tier light",
        ),
    ],
)
def test_what_cannot_be_run_is_refused_before_the_first_trial(asked: dict[str, Any], said: str) -> None:
    model = Scripts(*READ)
    made = study(None, 2, models={"scripted": model})
    with pytest.raises(PlanError, match=said):
        made.run(*asked.pop("variants", (BASE, BEST)), **asked)
    assert not model.models and not made.parts.store.runs()


def test_an_unknown_check_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(LookupError, match="first_call_is"):
        study(None, 1).run(BASE, check="first_call")


def test_a_name_stands_for_one_variant_in_the_whole_study() -> None:
    made = study(None, 1)
    made.run(BASE)
    with pytest.raises(StoreError, match=r"another variant 'base' \(mandate='none', not 'generic'"):
        made.run(BASE.but("base", mandate="generic"))
    assert len(made.trials) == 2


def test_a_second_run_of_the_same_file_is_refused_and_reading_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    made = study(path, 2)
    made.run(BASE, repeats=1)
    with running_alone(path, threading.Lock()):
        with pytest.raises(StudyBusyError, match="run already, by process"):
            made.run(BASE)
        assert len(type(made).open(path).trials) == 2
    assert made.run(BASE).ended == "complete"
    assert not path.with_name("a.sqlite.lock").exists()


def test_a_full_disk_ends_the_run_with_the_reason_and_it_goes_on_once_there_is_room(tmp_path: Path) -> None:
    made = study(tmp_path / "a.sqlite", 30)
    made.run(BASE, n=2)
    store = made.parts.store
    store.rows(f"PRAGMA max_page_count = {store.rows('PRAGMA page_count')[0][0] + 30}")
    summary = made.run(BASE)
    assert summary.ended == "disk" and "Make room" in summary.reason
    assert summary.done == len(made.trials) < 60 and made.verify().faults == ()
    store.rows("PRAGMA max_page_count = 1000000")
    assert made.run(BASE).ended == "complete" and made.verify().trials == 60


async def test_the_awaited_face_runs_from_a_loop_of_its_own_and_cancels() -> None:
    made = study(None, 3)
    assert (await made.aio.run(BASE, repeats=1)).done == 3
    with pytest.raises(PlanError, match="no option repeat"):
        await made.aio.run(BASE, repeat=1)
    slow = study(None, 30, models={"scripted": Holding(6)})
    told: list[Progress] = []
    task = asyncio.create_task(slow.aio.run(BASE, on_progress=told.append))
    await awaited(lambda: told and told[-1].done)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 0 < len(slow.trials) == slow.spent.trials < 60


def test_a_catalog_that_changed_is_told_and_its_scenarios_are_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    first = study(path, 2)
    first.run(BASE, repeats=1)
    first.close()
    records = [
        {"name": "lookup", "description": "Look up.", "parameters": {"type": "object", "properties": {}}}
    ]
    more = {"standard": lambda: Catalog.standard() + Catalog.from_records(records)}
    other = study(path, suite=small(2, catalogs=more))
    assert any("catalog 'standard' changed" in said for said in other.moved)
    summary = other.run(BASE, repeats=1)
    assert summary.earlier == 0 and any("catalog" in said for said in summary.warnings)
    assert len(other.trials) == 2 and other.spent.trials == 4 and not other.moved
    assert any("catalog, settings" in note for note in other.evidence.provenance["notes"])


def test_a_catalog_that_changes_while_the_study_runs_is_frozen_and_told() -> None:
    made: list[Catalog] = []

    def growing() -> Catalog:
        records = [
            {"name": f"lookup_{number}", "description": "Look up.", "parameters": {}}
            for number in range(len(made))
        ]
        made.append(Catalog.standard() + Catalog.from_records(records) if records else Catalog.standard())
        return made[-1]

    changing = study(None, suite=small(2, catalogs={"standard": growing}))
    summary = changing.run(BASE, repeats=1)
    assert [view.trial.catalog for view in changing.trials] == [made[0].hash] * 2
    assert any("'standard' changed while the study ran" in said for said in summary.warnings)
    steady = study(None, 2).run(BASE, repeats=1)
    assert not any("changed while" in said for said in steady.warnings)


def test_an_edited_scenario_is_told_and_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    study(path, 3).run(BASE, repeats=1)
    edited = (*scenarios(2), scenario("s002", prompts={"natural": "Read the notes to me."}))
    other = study(path, suite=small(1, scenarios=edited))
    assert other.moved == (
        "Scenario s002 changed since the last run; their trials of then are kept, and not shown.",
    )
    summary = other.run(BASE, repeats=1)
    assert (summary.earlier, summary.done, len(other.trials)) == (2, 3, 3)


def test_trials_of_other_code_stay_and_are_not_pooled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.sqlite"
    study(path, 2).run(BASE)
    for module in ("trial.trial_runner", "study_context"):
        monkeypatch.setattr(f"reyn_jupyter.evaluation.{module}.code_version", lambda: "0.0+next")
    other = study(path, 2)
    assert len(other.trials) == 0 and any("The code changed" in said for said in other.moved)
    assert other.evidence.runs == (), "what was looked at then says nothing of the trials of now"
    assert any("4 trials of another version" in note for note in other.evidence.provenance["notes"])
    assert other.run(BASE).earlier == 0
    assert (len(other.trials), other.spent.trials) == (4, 8)


def test_a_blind_model_and_one_that_lists_first_are_told_apart_by_the_primary_check() -> None:
    made = study(None, 12, models={"listing": Scripts(*READ), "blind": Scripts(*BLIND)})
    a, b = Variant("a", model="blind"), Variant("b", model="listing")
    summary = made.run(a, b)
    assert summary.estimates["a"].estimate == 0.0 and summary.estimates["b"].estimate == 1.0


def test_another_simulator_and_other_settings_are_told_and_never_pooled(tmp_path: Path) -> None:
    path, variant = tmp_path / "a.sqlite", BASE.but("simulated", model="simulator")
    study(path, 3).run(variant, repeats=1)
    reseeded = study(path, 3, seed=5)
    assert any("'simulator' is made of" in said for said in reseeded.moved)
    summary = reseeded.run(variant, repeats=1)
    assert (summary.earlier, len(reseeded.trials), reseeded.spent.trials) == (0, 3, 6)
    assert study(path, 3, seed=5).run(variant, repeats=1).earlier == 3
    configured = study(path, 3, seed=5, config={"router": {"limits": {"turn_tokens": 500_000}}})
    assert configured.run(variant, repeats=1).earlier == 0
    assert (len(configured.trials), configured.verify().faults) == (3, ())
    assert len(type(configured).open(path).trials) == 3
