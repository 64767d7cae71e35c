"""What failing trials did instead: each is of one kind, counted by variant, with a line that shows an example."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.checks import is_missing
from reyn_jupyter.evaluation.results.failure_kinds import (
    FailureKind,
    count_failures,
    kind_of,
    repeats_itself,
)
from reyn_jupyter.evaluation.results.report import report
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.models.base import Response
from reyn_jupyter.notebook.render.displayables import view
from reyn_jupyter.notebook.render.hosts.plain_text import to_text
from tests.evaluation.study_support import BASE, small
from tests.evaluation.trial_set_support import BLIND, LISTS, READS, evidence, trial
from tests.evaluation.trial_support import Scripts

EVIDENCE = Path(reyn.__file__).parent / "docs" / "evidence" / "local-smollm2-helps.parquet"
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


def small_models_answers() -> list[str]:
    """What a small model answered in the trials of the manual's evidence."""
    import duckdb

    rows = duckdb.execute("SELECT DISTINCT answer FROM read_parquet(?)", [str(EVIDENCE)]).fetchall()
    return [str(answer) for (answer,) in rows]


def says_it_at_least(times: int, answer: str) -> bool:
    """Whether the last whole sentence of an answer stands so often at its end."""
    parts = [each.strip() for each in re.split(r"[.?!]\s+", answer.strip())]
    last = parts[-2:-1] or [""]
    return len(last[0]) > 12 and parts[-times - 1 : -1] == last * times


def test_answers_of_a_small_model_that_repeat_a_sentence_until_the_limit_ran_on() -> None:
    answers = small_models_answers()
    repeating = [each for each in answers if says_it_at_least(4, each)]
    assert len(repeating) >= 10
    assert {kind_of(failing(answer=each, cut_off=True, calls=(BLIND,))) for each in repeating} == {
        FailureKind.RAN_ON
    }
    assert {kind_of(failing(answer=each, cut_off=True, calls=())) for each in repeating} == {
        FailureKind.RAN_ON
    }
    # The same where nothing cut it off, and what was cut off and says something new at its end.
    assert {kind_of(failing(answer=each, cut_off=False, calls=(BLIND,))) for each in repeating} == {
        FailureKind.OTHER
    }
    new = [each for each in answers if each[-9:] not in each[:-9] and each[-40:-16] not in each[:-40]]
    assert len(new) >= 20
    assert FailureKind.RAN_ON not in {
        kind_of(failing(answer=each, cut_off=True, calls=(BLIND,))) for each in new
    }


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("You can call lamp_turn_on" + "_to_bedroom" * 12 + "_to_bed", True),
        ("So:\n" + "1. Look.\n2. Stop.\n\n" * 4, True),
        ("The order is done. " * 2 + "The order", False),
        ("It is done. Yes, yes, yes.", False),
        ("| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |", False),
        ("Please wait ...", False),
        ("", False),
        ("ab" * 1_000_000, True),
        ("".join(map(str, range(300_000))), False),
    ],
)
def test_a_text_repeats_itself_where_it_ends_in_one_passage_three_times(text: str, repeats: bool) -> None:
    assert repeats_itself(text) == repeats


def test_a_reply_at_its_limit_of_tokens_is_recorded_with_its_trial() -> None:
    def said(finish: str) -> Trial:
        model = Scripts(Response("The function is called. " * 9, finish_reason=finish))
        with reyn.Study(None, small(1), models={"scripted": model}) as made:
            made.run(BASE, repeats=1)
            return made.trials[0].trial

    assert [(said(finish).cut_off, kind_of(said(finish))) for finish in ("length", "stop")] == [
        (True, FailureKind.RAN_ON),
        (False, FailureKind.PROSE),
    ]


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
