"""What ends a run, what does not, and what is told of it: providers that misbehave, looks, a second runner."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.evaluation.run.concurrency import Concurrency
from reyn_jupyter.evaluation.run.lock import StudyBusyError, running_alone
from reyn_jupyter.evaluation.run.progress import Progress
from reyn_jupyter.evaluation.store.study_file import StoreError
from reyn_jupyter.evaluation.trial import trial_runner
from reyn_jupyter.models.base import ModelError, Response, Usage
from reyn_jupyter.models.scripted import ScriptedModel
from tests.evaluation.study_support import BASE, BEST, BLIND, ByVariant, Holding, study
from tests.evaluation.trial_support import READ


class Nth(ScriptedModel):
    """A model whose nth call does something else than to answer."""

    def __init__(self, nth: int, instead: BaseException | Response) -> None:
        super().__init__(otherwise=Response("Done.", usage=Usage(1, 1)))
        self._nth, self._instead, self._calls = nth, instead, 0

    async def complete(self, request: Any, on_text: Any = None) -> Response:
        self._calls += 1
        if self._calls != self._nth:
            return await super().complete(request, on_text)
        if isinstance(self._instead, BaseException):
            raise self._instead
        return self._instead


def marked(*marks: str) -> ScriptedModel:
    """A model that names these versions of itself, one a call, the last one for ever."""
    named = itertools.chain(marks[:-1], itertools.repeat(marks[-1]))
    return ScriptedModel(
        otherwise=lambda request: Response("Done.", usage=Usage(1, 1), fingerprint=next(named))
    )


def test_a_provider_that_asks_for_hours_ends_the_run_with_that_reason_and_the_next_one_asks_it_again() -> (
    None
):
    refusal = ModelError("rate_limited", "no more today", retryable=True, retry_after=7200.0)
    made = study(None, 10, models={"scripted": Nth(5, refusal)})
    summary = made.run(BASE)
    assert summary.ended == "errors" and "no call within the next 2 hours" in summary.reason
    assert summary.done < 20 and summary.missing == {"base": 1}
    assert made.run(BASE, retry=True).ended == "complete" and made.verify().faults == ()


def test_a_model_that_never_answers_in_time_ends_the_run() -> None:
    made = study(None, 40, models={"scripted": ScriptedModel(otherwise="late", delay=60)}, timeout=0.5)
    summary = made.run(BASE)
    assert summary.ended == "errors" and 10 <= summary.done <= 16
    assert "ended in an error or a timeout (the trial took longer than it may)" in summary.reason


def test_a_model_that_cancels_itself_makes_a_trial_missing_and_interrupts_nothing() -> None:
    made = study(None, 3, models={"scripted": Nth(2, asyncio.CancelledError())})
    summary = made.run(BASE)
    assert (summary.ended, summary.done, summary.missing) == ("complete", 6, {"base": 1})
    assert any("gave its own call up" in warning for warning in summary.warnings)


@pytest.mark.parametrize(
    "response",
    [
        Response("Done.", usage=Usage(10**30, 1)),
        Response("Done.", usage=Usage(-5, 1)),
        Response("Done.", usage=Usage(float("nan"), 1)),  # type: ignore[arg-type]
        Response("Done.", usage=Usage(1, 1), cost=float("inf")),
        Response("Done.", usage=Usage(1, 1), cost=float("nan")),
        Response("Done.", usage=Usage(1, 1), cost=-1.0),
    ],
)
def test_a_use_that_cannot_be_counted_makes_a_trial_missing_and_spends_nothing_back(
    response: Response,
) -> None:
    made = study(None, 3, models={"scripted": Nth(2, response)})
    summary = made.run(BASE)
    assert (summary.ended, summary.done, summary.missing) == ("complete", 6, {"base": 1})
    assert any("cannot be counted" in warning for warning in summary.warnings)
    assert made.spent.tokens == 10 and made.spent.usd == 0.0


def test_a_model_that_changed_since_an_earlier_run_is_told() -> None:
    made = study(None, 4, models={"scripted": marked(*["fp_1"] * 4, "fp_2")})
    assert made.run(BASE, n=2).warnings == ()
    (warning,) = made.run(BASE).warnings
    assert "the model changed during the study (fingerprint fp_1, then fp_2)" in warning


def test_a_model_that_names_itself_anew_each_time_is_told_once() -> None:
    made = study(None, 10, models={"scripted": marked(*(f"fp_{number}" for number in range(50)))})
    (warning,) = made.run(BASE).warnings
    assert "and 16 more" in warning and len(warning) < 200


def test_evidence_that_is_looked_at_again_on_other_trials_is_told_with_what_it_costs() -> None:
    """A trial that is missing in the first run favours one variant when it is tried again."""
    model = ByVariant(explicit=READ, other=READ)
    fails = True

    async def hook(request: Any) -> None:
        if (
            fails
            and "MUST" in request.messages[0].content
            and len(request.messages) == 2
            and model.asked.total() < 6
        ):
            raise ModelError("unavailable", "gone")

    model.hook = hook
    one_by_one = Concurrency(start=1, most=1, most_local=1)
    made = study(None, 6, models={"scripted": model}, concurrency=one_by_one)
    first = made.run(BASE, BEST, stop="evalue", repeats=1)
    assert first.missing["best"] > 0 and not any("looked at" in each for each in first.warnings)
    again = made.run(BASE, BEST, stop="evalue", repeats=1)
    assert again.done == again.earlier and not any("looked at" in each for each in again.warnings)
    fails = False
    model._scripts[False] = BLIND
    retried = made.run(BASE, BEST, stop="evalue", repeats=1, retry=True)
    assert any("looked at 2 times" in each and "2 × 0.05" in each for each in retried.warnings)
    once_more = made.run(BASE, BEST, stop="evalue", repeats=1)
    assert any("looked at 2 times" in each for each in once_more.warnings)


def test_progress_is_told_while_no_trial_ends() -> None:
    waiting: list[Progress] = []
    model = Holding(0)
    made = study(None, 1, models={"scripted": model})

    def hear(progress: Progress) -> None:
        if progress.running == 1 and progress.done == 0:
            waiting.append(progress)
        if len(waiting) >= 3:
            model.go_on.set()

    made.run(BASE, repeats=1, on_progress=hear)
    assert waiting[-1].seconds > waiting[0].seconds and waiting[-1].eta is None


def test_progress_tells_which_provider_asked_to_be_left_alone() -> None:
    told: list[Progress] = []
    now = 0.0

    def hear(progress: Progress) -> None:
        """Let the time go on that the provider named, once it was told."""
        nonlocal now
        told.append(progress)
        now = 3.0 if progress.waits else now

    refusal = ModelError("rate_limited", "slow down", retryable=True, retry_after=2.5)
    pace = Concurrency(clock=lambda: now)
    made = study(None, 3, models={"scripted": Nth(2, refusal)}, concurrency=pace)
    assert made.run(BASE, on_progress=hear).ended == "complete"
    assert {each.waits["scripted"] for each in told if each.waits} == {2.5} and not told[-1].waits


def test_a_study_in_memory_is_run_by_one_thread_at_a_time() -> None:
    model = Holding(0)
    made = study(None, 10, models={"scripted": model})
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(made.run(BASE).done)
        except StudyBusyError as busy:
            found.append(str(busy))
            model.go_on.set()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 20 in found and any("another thread of this process" in str(each) for each in found)
    assert made.spent.trials == 20


def test_threads_that_ask_for_the_bench_at_once_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    bench = trial_runner.TrialRunner

    def slow(*args: Any, **options: Any) -> Any:
        time.sleep(0.1)  # the others come meanwhile
        made.append(bench(*args, **options))
        return made[-1]

    monkeypatch.setattr("reyn_jupyter.evaluation.study_context.TrialRunner", slow)
    of = study(None, 2)
    threads = [threading.Thread(target=lambda: of.moved) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_a_folder_where_no_lock_can_be_made_is_told_as_such(tmp_path: Path) -> None:
    nowhere = tmp_path / "gone" / "a.sqlite"
    with (
        pytest.raises(StoreError, match=r"a\.sqlite\.lock beside it cannot be made"),
        running_alone(nowhere, threading.Lock()),
    ):
        pass
