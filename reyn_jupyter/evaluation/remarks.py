"""What a reader of a study's figures should know of its file and its runs, a sentence each.

Invariant: what is left out, what was cut short and what was paid for in vain is said, never dropped in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reyn_jupyter.evaluation.spending import spent
from reyn_jupyter.evaluation.store import Store


def remarks(
    store: Store, runs: list[dict[str, Any]], others: Mapping[str, int], code: str
) -> tuple[str, ...]:
    """All of it.

    Args:
        store: the study's file.
        runs: what is known of its runs, the oldest first.
        others: why trials do not count → how many.
        code: the version of the code whose trials count.
    """
    return (
        *_notes(others, store.codes(), code),
        *_cut_short(runs),
        *_unfinished(store),
        *_warnings(runs),
    )


def _notes(others: Mapping[str, int], codes: Mapping[str, int], code: str) -> list[str]:
    said = []
    for version, count in codes.items():
        if version != code:
            said.append(
                f"{count:,} trials of another version of the code ({version}) are kept, and not shown."
            )
    words = {
        "scenario": "of scenarios that changed or left the suite are kept, and not shown",
        "ground": "on a catalog, settings or a simulator that changed since are kept, and not shown",
        "attempt": "were tried again; the last attempt counts",
    }
    return said + [f"{count:,} trials {words[reason]}." for reason, count in others.items() if count]


def _unfinished(store: Store) -> list[str]:
    """What was paid for without a trial to show for it."""
    said = spent(store).unfinished.sentence
    return [f"{said}."] if said else []


def _cut_short(runs: list[dict[str, Any]]) -> list[str]:
    """What to know of a last run that a person ended, who may have seen the rates on the way, or a variant's model."""
    last = runs[-1] if runs else {}
    if last.get("faults"):
        return [f"In the last run {last['faults']}"]
    if last.get("ended_by") != "interrupted" or last["stop"]["rule"] != "fixed":
        return []
    said = f"The last run was interrupted after {last['done']:,} of {last['planned']:,} trials."
    why = "Intervals and p hold only if that had nothing to do with the rates so far: let it go on, or run it with"
    return [f'{said} {why} stop="evalue".']


def _warnings(runs: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(warning) for run in runs for warning in run.get("warnings", ())))
