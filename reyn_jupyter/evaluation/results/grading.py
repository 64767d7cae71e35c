"""Stored trials graded again: no model is called, and nothing but the trial and its scenario is looked at.

Invariant: a verdict that an older version of a check gave is never mixed with those of the present one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from reyn_jupyter.evaluation.checks import is_missing
from reyn_jupyter.evaluation.checks.check import Check
from reyn_jupyter.evaluation.checks.check_registry import BROKEN
from reyn_jupyter.evaluation.store.store import Store
from reyn_jupyter.runtime.record.verdict import Verdict
from reyn_jupyter.support.text import count

_BATCH = 1_000  # verdicts a transaction


def grade_stored(store: Store, check: Check, code: str | None = None, *, again: bool = False) -> int:
    """Grade the trials that this version of a check has not graded yet.

    Args:
        store: the study's file.
        check: what to ask of each trial.
        code: only trials of this version of the code; all when None.
        again: grade all of them, whether or not they have a verdict.

    Returns:
        How many verdicts were made. Trials that ended in an error or a timeout get none.
    """
    scenarios = store.scenarios()
    known = set() if again else store.graded(check)
    batch: list[tuple[int, Verdict]] = []
    made = 0
    for stored in store.trials(code):
        if stored.id in known or is_missing(stored.trial):
            continue
        batch.append((stored.id, check.grade(stored.trial, scenarios[stored.scenario])))
        made += 1
        if len(batch) == _BATCH:
            store.grade(check, batch)
            batch = []
    if batch:
        store.grade(check, batch)
    return made


def describe_broken_checks(store: Store, run: str) -> tuple[str, ...]:
    """Return the checks that could not be asked of trials of a run, since they raised or gave no verdict, a
    sentence each."""
    query = (
        'SELECT "check", count(*), min(reason) FROM verdicts JOIN trials ON trial = id '
        "WHERE run = ? AND kind = 'na' AND substr(reason, 1, ?) = ? GROUP BY \"check\""
    )
    return tuple(
        f"{check}: {reason}. So it is with {count(times, 'new trial')}. They are kept: mend the check and run its "
        "cell again."
        for check, times, reason in store.rows(query, (run, len(BROKEN), BROKEN))
    )


def stored_verdicts(
    store: Store, check: str, rows: Mapping[tuple[str, str, str], int], version: int | None = None
) -> dict[tuple[str, str, str], Verdict]:
    """Return what the file keeps of a check: the verdicts by variant, trial's key and source, whose rows are given; of
    one version of it, or of any."""
    query = 'SELECT trial, kind, reason, value, evidence FROM verdicts WHERE "check" = ? AND (? IS NULL OR version = ?)'
    with store.reading(f"a verdict of {check}"):
        kept = {
            number: Verdict(kind, reason, value, tuple(json.loads(evidence)))
            for number, kind, reason, value, evidence in store.rows(query, (check, version, version))
        }
    return {place: kept[number] for place, number in rows.items() if number in kept}
