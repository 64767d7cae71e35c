"""Add up what a study's file says was spent.

Invariant: whatever was paid for and noted counts, whether or not its trials do: those of other versions of the code,
earlier attempts, and what runs noted of trials that did not come to an end. Nothing that a file says is taken off.
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace

from reyn_jupyter.evaluation.store.rows import StudyUsage
from reyn_jupyter.evaluation.store.store import Store
from reyn_jupyter.evaluation.trial.trial import TrialUsage

_TRIALS = (
    "SELECT count(*), coalesce(sum(max(calls, 0)), 0), coalesce(sum(max(tokens, 0)), 0), "
    "coalesce(sum(max(cost, 0.0)), 0.0), "
    "coalesce(sum(source = 'real' AND cost IS NULL AND tokens > 0), 0) FROM trials"
)
_NOTED = ", ".join(
    f"coalesce(sum(max(json_extract(data, '$.unfinished.{field.name}'), 0)), 0)"
    for field in fields(TrialUsage)
)
_UNFINISHED = f"SELECT {_NOTED} FROM runs WHERE json_valid(data)"  # noqa: S608 - names of our own


def total_usage(store: Store) -> StudyUsage:
    """Return what all of a file has used. Raises StoreError."""
    trials, unfinished = TrialUsage(*store.rows(_TRIALS)[0]), TrialUsage(*store.rows(_UNFINISHED)[0])
    together = replace(trials + unfinished, trials=trials.trials)
    return StudyUsage(**asdict(together), unfinished=unfinished)


def largest_usage(store: Store) -> dict[str, StudyUsage]:
    """Digest of a variant's behaviour → the most that one of its trials has used. Raises StoreError."""
    rows = store.rows(
        "SELECT behaviour, count(*), max(calls), max(tokens), coalesce(max(cost), 0.0) FROM trials "
        "GROUP BY behaviour"
    )
    return {behaviour: StudyUsage(*figures) for behaviour, *figures in rows}
