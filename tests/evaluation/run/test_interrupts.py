"""An interrupt ends a run at once, starts nothing more, keeps what is done and books what was used until then."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.evaluation.run.budget import Budget
from reyn_jupyter.evaluation.run.concurrency import Concurrency
from reyn_jupyter.evaluation.run.planning import RunOptions
from reyn_jupyter.evaluation.run.progress import Progress, RunSummary
from reyn_jupyter.models.base import Response, Usage
from reyn_jupyter.models.scripted import ScriptedModel
from tests.evaluation.study_support import BASE, ByVariant, Holding, study
from tests.evaluation.trial_support import READ, Scripts
from tests.support.processes import child

FOUR = Concurrency(start=4, most=4, most_local=4)


def test_an_interrupt_returns_what_is_done_and_keeps_it(tmp_path: Path) -> None:
    model = Holding(6)
    made = study(tmp_path / "a.sqlite", 30, models={"scripted": model})
    pressed: list[threading.Timer] = []

    def hear(progress: Progress) -> None:
        if progress.done >= 3 and not pressed:
            pressed.append(threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)))
            pressed[0].start()

    summary = made.run(BASE, on_progress=hear)
    assert summary.ended == "interrupted" and 3 <= summary.done < 60
    assert summary.done == len(made.trials) and made.verify().faults == ()
    told = f"interrupted after {summary.done} of 60 trials"
    assert told in " ".join(made.report().warnings)
    model.go_on.set()
    assert made.run(BASE).done == 60 and len(made.trials) == 60
    assert told not in " ".join(made.report().warnings)


@pytest.mark.parametrize("delay", [0.0, 0.2])
def test_an_interrupt_while_true_rates_are_worked_out_starts_nothing_and_gives_the_summary(
    delay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endless(*_: object) -> dict[str, object]:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        await asyncio.sleep(600)
        return {}

    monkeypatch.setattr("reyn_jupyter.evaluation.study_context.find_true_rates", endless)
    model = ScriptedModel(otherwise="Done.", delay=delay)
    made = study(None, 3, models={"scripted": model})
    summary = made.run(BASE)
    assert (summary.ended, summary.done, len(made.trials), model.requests) == ("interrupted", 0, 0, [])
    monkeypatch.undo()
    assert made.run(BASE).ended == "complete"


def test_an_interrupt_while_litellm_is_imported_gives_the_summary_and_the_next_run_goes_on() -> None:
    code = """
        import os, signal, sys, threading
        os.environ |= {"OPENAI_API_KEY": "sk-loopback-0123456789", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        from tests.evaluation.trial_support import Scripts
        from tests.evaluation.study_support import BASE, study
        from reyn_jupyter.models.providers.litellm_model import LiteLLMModel

        class Pressing:
            def find_spec(self, name, path, target=None):
                '''Press the key in the midst of the import, which goes on once the run is over.'''
                if name == "litellm.utils" and not over.is_set():
                    os.kill(os.getpid(), signal.SIGINT)
                    over.wait(600)

        over = threading.Event()
        sys.meta_path.insert(0, Pressing())
        signal.signal(signal.SIGINT, signal.default_int_handler)
        models = {"hosted": LiteLLMModel("openai/gpt-4o-mini"), "scripted": Scripts("Done.")}
        made = study(None, 3, models=models)
        summary = made.run(BASE.but("hosted", model="hosted"), BASE)
        over.set()
        print(summary.ended, summary.done, summary.planned, len(made.parts.store.runs()))
        print(repr(summary))
        print(made.run(BASE).ended)
    """
    done = child(code)
    assert done.returncode == 0, done.stderr
    first, *said, last = done.stdout.splitlines()
    assert (first, last) == ("interrupted 0 12 0", "complete")
    assert "0 new trials" in said[0] and "12 trials not run. Interrupted before the first trial" in said[0]


def test_an_interrupt_after_the_last_trial_gives_the_summary_too(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def slow(*_: object) -> tuple[str, ...]:
        os.kill(os.getpid(), signal.SIGINT)
        over.wait(600)
        return ()

    monkeypatch.setattr("reyn_jupyter.evaluation.study_context.describe_catalog_changes", slow)
    summary = study(None, 2, models={"scripted": Scripts(*READ)}).run(BASE)
    over.set()
    assert (summary.ended, summary.done) == ("complete", 4)


def test_nothing_starts_once_a_run_was_told_to_stop_even_twice() -> None:
    model = ByVariant()
    made = study(None, 40, models={"scripted": model}, concurrency=FOUR)
    begun: list[int] = []

    async def cancelled() -> RunSummary:
        run = asyncio.ensure_future(made.parts.run((BASE,), RunOptions(), None))

        async def hook(request: Any) -> None:
            if model.asked.total() == 9:
                run.cancel()
                begun.append(model.asked.total())
            await asyncio.sleep(0)

        model.hook = hook
        return await run

    summary = asyncio.run(cancelled())
    assert summary.ended == "interrupted" and begun == [9, 9] and model.asked.total() == 9
    assert summary.done == len(made.trials) <= 9 and made.verify().faults == ()


# -- what was used until then ----------------------------------------------------------------------------------------


class Halfway(ScriptedModel):
    """A model whose trials never come to their end: it answers the first call of each, and not the second."""

    def __init__(self, cleanup: float = 0.0, real: bool = False) -> None:
        super().__init__(real=real, host="api.example.com" if real else None)
        self.waiting, self._cleanup = 0, cleanup

    async def complete(self, request: Any, on_text: Any = None) -> Response:
        if len(request.messages) == 2:
            return Response("", (READ[0],), usage=Usage(90, 10), cost=0.25)
        self.waiting += 1
        try:
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(self._cleanup)
        return Response("Done.")


def interrupted(made: Any, model: Halfway) -> RunSummary:
    def hear(progress: Progress) -> None:
        if model.waiting and not pressed:
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)

    pressed: list[bool] = []
    summary: RunSummary = made.run(BASE, on_progress=hear)
    return summary


@pytest.mark.parametrize("cleanup", [0.0, 2.0])
def test_what_an_interrupted_trial_had_used_is_booked_and_told_and_outlives_the_run(
    cleanup: float, tmp_path: Path
) -> None:
    model = Halfway(cleanup)  # 2 s: longer than an interrupt waits for
    made = study(tmp_path / "a.sqlite", 6, models={"scripted": model})
    summary = interrupted(made, model)
    assert (summary.ended, summary.done, model.waiting) == ("interrupted", 0, 1)
    used = summary.unfinished
    assert (used.trials, used.calls, used.usd) == (1, 2, 0.25)
    assert used.tokens > 300, "the question of the call that was under way counts, estimated"
    assert (summary.calls, summary.tokens, summary.usd) == (2, used.tokens, 0.25)
    assert "1 trial that did not come to an end used" in summary.sentence
    made.close()
    again = study(tmp_path / "a.sqlite", 6, models={"scripted": Scripts(*READ)})
    assert (again.spent.trials, again.spent.unfinished, again.spent.usd) == (0, used, 0.25)
    assert again.run(BASE, budget=Budget(usd=0.2)).ended == "budget"
    assert again.run(BASE, budget=Budget(usd=0.4)).ended == "complete"
    assert (again.spent.trials, again.spent.calls) == (12, 2 + sum(v.trial.model_calls for v in again.trials))
    assert any("did not come to an end" in note for note in again.evidence.provenance["notes"])
    assert again.verify().faults == () and type(again).open(tmp_path / "a.sqlite").spent == again.spent


def test_a_fault_of_ours_books_what_the_other_trials_had_used() -> None:
    model = Halfway(real=True)  # called from here, where the other variant's trials are sent

    class Faulty:
        slots = 1

        async def submit(self, task: Any) -> Any:
            while not model.waiting:
                await asyncio.sleep(0.01)
            raise RuntimeError("the machines are gone")

        def close(self) -> None:
            pass

    made = study(None, 6, models={"scripted": model}, executor=Faulty())
    with pytest.raises(RuntimeError, match="the machines are gone"):
        made.run(BASE, BASE.but("simulated", model="simulator"))
    assert (made.spent.trials, made.spent.unfinished.calls, made.spent.usd) == (0, 2, 0.25)
