"""Stored trials graded again: no model is called, and nothing but the trial and its scenario is looked at.

Invariant: a verdict that an older version of a check gave is never mixed with those of the present one.
"""

from __future__ import annotations

from reyn_jupyter.evaluation.checks import is_missing
from reyn_jupyter.evaluation.store import Store
from reyn_jupyter.evaluation.verdict import Check, Verdict

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
