"""What failing trials did instead: each is of one kind, counted by variant, with a line that shows an example."""

from __future__ import annotations

from typing import Any

import pytest

from reyn_jupyter.evaluation.checks import is_missing
from reyn_jupyter.evaluation.results.failure_kinds import FailureKind, count_failures, kind_of
from reyn_jupyter.evaluation.results.report import report
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.notebook.render.displayables import view
from reyn_jupyter.notebook.render.hosts.plain_text import to_text
from tests.evaluation.trial_set_support import BLIND, LISTS, READS, evidence, trial

LISTED = ("first_call_is", "task_done")


def failing(number: int = 0, **fields: Any) -> Trial:
    return trial("a", f"f{number}", 0, False, **{"key": f"f{number}", **fields})


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"outcome": "limit", "error": "context_too_long: it is too long"}, FailureKind.OVERFLOW),
        ({"outcome": "limit", "calls": (LISTS,) * 4}, FailureKind.LOOP),
        ({"outcome": "limit", "calls": (LISTS, READS)}, FailureKind.STEP_LIMIT),
        ({"answer": " ", "calls": ()}, FailureKind.EMPTY),
        ({"answer": '{"name": "list_actions", "arguments": {}}', "calls": ()}, FailureKind.CALL_AS_TEXT),
        ({"answer": "It says hello.", "calls": (LISTS,)}, FailureKind.PROSE),
        ({"calls": (BLIND,)}, FailureKind.OTHER),
        ({"outcome": "error", "error": "unavailable: 500"}, FailureKind.ERROR),
        ({"outcome": "timeout"}, FailureKind.ERROR),
    ],
)
def test_a_failing_trial_is_of_one_kind(fields: dict[str, Any], kind: FailureKind) -> None:
    assert kind_of(failing(**fields)) == kind


def test_a_trial_stored_before_overflows_were_graded_still_loads_and_is_counted_as_one() -> None:
    old = failing(outcome="error", error="context_too_long: The conversation is too long for m", answer="")
    again = Trial.model_validate_json(old.model_dump_json())

    assert is_missing(again) and kind_of(again) == FailureKind.OVERFLOW


def test_a_report_leads_with_what_failing_trials_did_and_shows_one_of_each() -> None:
    loops = [failing(number, outcome="limit", answer="", calls=(BLIND,) * 3) for number in range(3)]
    prose = failing(3, answer="I think it says hello.", calls=())
    broken = failing(4, outcome="error", error="unavailable: 500", answer="", calls=())
    found = report(evidence({"a": {"s0": (True,)}}, more=[*loops, prose, broken], checks=LISTED))

    assert [(each.kind.name, each.times, each.of) for each in found.did_instead] == [
        ("LOOP", 3, 5), ("ERROR", 1, 5), ("PROSE", 1, 5),
    ]  # fmt: skip
    assert [each.link for each in found.did_instead] == [
        f'study.trials.of("a")[{place}].transcript' for place in (1, 5, 4)
    ]
    said = str(found)
    assert (
        "a: of 5 trials that failed or are missing, 3 loop (the same call again), 1 error or timeout and"
        in said
    )
    assert ", n = 5" in said
    text = to_text(view(found))
    assert text.index("What failing trials did instead") < text.index("Failures of a")
    assert "3 of 5 loop (the same call again)" in text
    assert count_failures(evidence({"a": {"s0": (True,)}}), "first_call_is") == ()
