"""What the harness did for a weak model: counted by checks, told in the report, and exported."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pandas as pd

from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.checks.harness_help import HELP_WORDS
from reyn_jupyter.evaluation.results.report import report
from reyn_jupyter.models.scripted import call
from reyn_jupyter.runtime.record.events import Help
from tests.evaluation.study_support import BASE, study
from tests.evaluation.trial_set_support import evidence, many, scenario, trial

READ_AGAIN = (call("invoke_action", action_name="file__read", args={"path": "notes.md"}),) * 4


def test_each_kind_of_help_in_a_runs_record_has_words_and_a_check() -> None:
    assert set(HELP_WORDS) == {*get_args(Help), "shrunk"}
    assert all(find_check(f"help_{kind}").numeric for kind in HELP_WORDS)


def test_repeats_that_were_pointed_to_their_result_are_counted_told_and_exported(tmp_path: Path) -> None:
    helped = BASE.but("helped", stop_repeats=True)
    made = study(tmp_path / "a.sqlite", 2, *READ_AGAIN, "The notes say hello.")
    made.run(BASE, helped, repeats=1)
    by = {view.trial.variant: view for view in made.trials}
    assert by["base"].trial.helped == {} and by["helped"].trial.helped == {"repeats": 2, "closed": 1}
    assert by["helped"].verdict("help_repeats").value == 2 and by["base"].verdict("help_repeats").value == 0
    assert by["helped"].verdict("help_used").reason == (
        "2 repeats pointed to their result and 1 turns closed after repeats"
    )
    said = str(made.report())
    assert (
        "helped: the harness did 4 repeats pointed to their result in 2 of 2 trials "
        "and 2 turns closed after repeats in 2 of 2 trials"
    ) in said and "base: the harness" not in said
    frame = pd.read_csv(made.export(tmp_path / "t.csv"))
    assert frame.groupby("variant")["help_repeats"].sum().to_dict() == {"base": 0, "helped": 4}
    compared = made.compare(BASE, helped, check="help_repeats")
    assert compared.difference.estimate == 2
    made.close()


def test_help_that_was_not_recorded_is_no_nought() -> None:
    on = evidence({"a": many(2, True)}, more=[trial("a", "s009", 0, True, helped={"shrunk": 3})])
    assert [each.sentence for each in report(on).helped] == [
        "3 messages shortened to fit the context in 1 of 1 trial"
    ]
    verdict = find_check("help_used").grade(trial("a", "s000", 0, True), scenario("s000"))
    assert verdict.kind == "na" and "did not record" in verdict.reason
