"""A variant that cannot be tried at all costs one trial, and the others go on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.evaluation.run.concurrency import Concurrency
from reyn_jupyter.models.base import ErrorKind, ModelError, Response, Usage
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel
from reyn_jupyter.models.scripted import ScriptedModel
from tests.evaluation.study_support import BASE, BEST, study
from tests.evaluation.trial_support import READ, Scripts
from tests.support.openai_server import Answer, Failure, OpenAIServer
from tests.support.waiting import awaited

WIDE = Concurrency(start=8, most=8, most_local=8)
GONE = BASE.but("gone", model="absent")


class Lacking(ScriptedModel):
    """A model that every call fails of, until somebody mends it."""

    def __init__(self, kind: ErrorKind = "auth", after: int = 0) -> None:
        super().__init__()
        self.calls, self.mended, self._kind, self._after = 0, False, kind, after

    async def complete(self, request: Any, on_text: Any = None) -> Response:
        self.calls += 1
        await asyncio.sleep(0)
        if self.mended or self.calls <= self._after:
            return Response("Done.", usage=Usage(90, 10), cost=0.25)
        raise ModelError(self._kind, "There is no way in.", "Mend it.")


@pytest.mark.parametrize("kind", ["auth", "not_found", "quota", "unsupported", "configuration"])
def test_a_variant_without_a_model_that_answers_costs_one_call_and_is_tried_by_the_next_run(
    kind: ErrorKind, tmp_path: Path
) -> None:
    model = Lacking(kind)
    made = study(tmp_path / "a.sqlite", 20, models={"scripted": model}, concurrency=WIDE)
    summary = made.run(BASE)
    assert (summary.ended, summary.done, model.calls) == ("errors", 0, 1)
    assert "base cannot be tried: There is no way in. Mend it. Then run it again" in summary.reason
    assert "40 trials not run" in summary.sentence and not sum(summary.missing.values())
    assert len(made.trials) == 0 and summary.reason.removeprefix("Stopped: ") in str(made.evidence.provenance)
    model.mended = True
    again = made.run(BASE)
    assert (again.ended, again.done, sum(again.missing.values())) == ("complete", 40, 0)
    assert made.verify().faults == () and "cannot be tried" not in str(made.evidence.provenance)


@pytest.mark.parametrize("kind", ["unavailable", "bad_request", "stream"])
def test_an_error_of_one_request_makes_that_trial_missing_and_nothing_more(kind: ErrorKind) -> None:
    summary = study(
        None, 3, models={"scripted": Lacking(kind)}, config={"router": {"limits": {"retries": 0}}}
    ).run(BASE)
    assert (summary.ended, summary.missing) == ("complete", {"base": 6})


def test_other_variants_go_on_and_what_was_left_out_is_tried_later() -> None:
    lacking = Lacking("not_found")
    made = study(None, 6, models={"scripted": Scripts(*READ), "absent": lacking}, concurrency=WIDE)
    summary = made.run(BASE, GONE)
    assert (summary.ended, summary.done, lacking.calls) == ("errors", 12, 1)
    assert len(made.trials.of("base")) == 12 and "gone cannot be tried" in summary.reason
    lacking.mended = True
    assert made.run(BASE, GONE).earlier == 12 and len(made.trials) == 24


def test_a_comparison_that_stops_by_evidence_ends_with_one_of_its_two() -> None:
    made = study(None, 20, models={"scripted": Scripts(*READ), "absent": Lacking("quota")})
    summary = made.run(BASE, GONE, stop="evalue")
    assert summary.ended == "errors" and summary.done < 40


def test_a_key_that_is_taken_back_in_the_middle_ends_it_and_what_was_paid_for_stays_booked() -> None:
    model = Lacking("auth", after=5)
    made = study(None, 20, models={"scripted": model}, concurrency=Concurrency(start=1, most=1, most_local=1))
    summary = made.run(BASE)
    assert (summary.ended, summary.done, model.calls) == ("errors", 5, 6)
    assert (made.spent.trials, made.spent.calls, made.spent.unfinished.calls) == (5, 6, 1)
    assert made.spent.usd == pytest.approx(1.25)


def test_variants_that_behave_alike_are_left_out_together() -> None:
    model = Lacking()
    summary = study(None, 5, models={"scripted": model}).run(BASE, BASE.but("twin"))
    assert (summary.ended, summary.done, model.calls) == ("errors", 0, 1)
    assert "base and twin cannot be tried" in summary.reason


def test_each_variant_begins_with_one_trial_alone() -> None:
    running: dict[bool, int] = {False: 0, True: 0}
    most: dict[bool, list[int]] = {False: [], True: []}

    class Watched(ScriptedModel):
        async def complete(self, request: Any, on_text: Any = None) -> Response:
            explicit = "MUST" in request.messages[0].content
            running[explicit] += 1
            most[explicit].append(running[explicit])
            # A trial waits until three are under way, so that none is over before.
            if len(most[explicit]) > 2:
                await awaited(lambda: max(most[explicit]) > 2)
            running[explicit] -= 1
            return Response("Done.", usage=Usage(1, 1))

    made = study(None, 12, models={"scripted": Watched()}, concurrency=WIDE)
    assert made.run(BASE, BEST).ended == "complete"
    for each in most.values():
        assert each[:2] == [1, 1] and max(each) > 2


def test_a_forced_choice_that_the_provider_refuses_is_no_trial_of_that_variant() -> None:
    refused = 0

    def answer(request: Any) -> Any:
        nonlocal refused
        if request.tool_choice != "auto":
            refused += 1
            raise ModelError("tool_choice", "The provider takes no choice of a tool.")
        return "Done."

    made = study(None, 3, models={"scripted": ScriptedModel(otherwise=answer)}, concurrency=WIDE)
    summary = made.run(BASE, BASE.but("forced", discovery="forced"), repeats=1)
    assert (summary.ended, summary.done, sum(summary.missing.values()), refused) == ("errors", 3, 0, 2)
    assert "forced cannot be tried: the variant was not in force" in summary.reason
    assert {view.trial.outcome for view in made.trials.of("base")} == {"ok"}


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Failure(404, "The model gpt-9 does not exist", "model_not_found"), "does not know openai/gpt-9"),
        (Failure(401, "Incorrect API key provided"), "refused the key"),
        (Failure(403, "You have no access"), "does not allow this key"),
        (Failure(400, "gpt-9 does not support tools"), "takes no tools"),
        (Failure(429, "You exceeded your current quota", "insufficient_quota"), "no credit left"),
    ],
)
def test_a_real_provider_that_will_not_have_the_model_is_asked_once(
    failure: Failure, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789")
    with OpenAIServer() as server:
        server.otherwise = lambda received: failure if received.body["model"] == "gpt-9" else Answer("Done.")
        there, absent = (
            LiteLLMModel(f"openai/{name}", api_base=server.url) for name in ("gpt-4o-mini", "gpt-9")
        )
        made = study(None, 4, models={"scripted": there, "absent": absent}, concurrency=WIDE)
        summary = made.run(BASE, GONE)
        asked = [request.body["model"] for request in server.requests]
    assert (summary.ended, summary.done, asked.count("gpt-9")) == ("errors", 8, 1)
    assert said in summary.reason and not sum(summary.missing.values())
