"""What a study's file knows when a run begins.

Invariant: what is there already is neither tried nor looked at a second time as if it were new.
"""

from __future__ import annotations

from typing import NamedTuple

from reyn_jupyter.evaluation.grading import grade_stored
from reyn_jupyter.evaluation.spending import dearest, spent
from reyn_jupyter.evaluation.store import Store
from reyn_jupyter.evaluation.store_rows import Found, Spent
from reyn_jupyter.evaluation.tally import Looked, Order


class Before(NamedTuple):
    """What runs before this one left.

    Attributes:
        spent: by all trials of the file, and by those that did not come to an end.
        dearest: digest of a variant's behaviour → the most that one of its trials used.
        done: what a trial is found by → its outcome and the primary check's value.
        fingerprints: (digest of a variant's behaviour, source) → what the provider called its model.
        looked: what each run saw that looked at the same comparison; see `looked_before`.
    """

    spent: Spent
    dearest: dict[str, Spent]
    done: dict[Found, tuple[str, float | None]]
    fingerprints: dict[tuple[str, str], tuple[str, ...]]
    looked: list[Looked]


def before(store: Store, order: Order, code: str) -> Before:
    """Read it. What the primary check has not graded yet is graded.

    Args:
        store: the study's file.
        order: what is to be run.
        code: the version of the code whose trials count.
    """
    grade_stored(store, order.check, code)
    return Before(
        spent(store),
        dearest(store),
        store.done(code, order.check),
        store.fingerprints(code),
        looked_before(store, order, code),
    )


def looked_before(store: Store, order: Order, code: str) -> list[Looked]:
    """What runs of the same two variants and check saw on their way (`Tally.looked`); one that only went on where
    another had stopped takes its place."""
    same = sorted(each.name for each in order.variants), order.check.name, code
    found: list[Looked] = []
    for run in store.runs():
        looked = run.get("looked")
        if not looked or (sorted(run["variants"]), run["check"], run["code"]) != same:
            continue
        if not any(looked.items() <= each.items() for each in found):
            found = [*(each for each in found if not each.items() <= looked.items()), looked]
    return found
