"""Whether a study's file keeps its invariants, proved by reading all of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from reyn_jupyter.evaluation.bodies import facts_of, referred
from reyn_jupyter.evaluation.scenario import Scenario
from reyn_jupyter.evaluation.store import Store
from reyn_jupyter.evaluation.trial import trial_key
from reyn_jupyter.evaluation.variant import Variant

_SHOWN = 20
_ROW = "SELECT key, scenario, behaviour, repeat, code, events, data FROM trials WHERE id = ?"


@dataclass(frozen=True)
class StoreCheck:
    """What was found: trials and messages looked at, and what is wrong, one line a fault."""

    trials: int
    messages: int
    faults: tuple[str, ...]


def verify(store: Store) -> StoreCheck:
    """Read everything: the file's own structure; each trial's key, made again from what was tried; that its events are
    all there, in order; that every message that they refer to is there and is what its digest says."""
    faults = [str(line) for (line,) in store.rows("PRAGMA integrity_check(5)") if line != "ok"]
    faults += [
        f"{table} {row}: refers to nothing" for table, row, *_ in store.rows("PRAGMA foreign_key_check")
    ]
    messages, wrong = _messages(store)
    faults += wrong
    trials = 0
    for fault in _trials(store, messages):
        trials += fault is None
        faults += [fault] if fault is not None else []
    return StoreCheck(trials, len(messages), tuple(faults[:_SHOWN]))


def _messages(store: Store) -> tuple[set[str], list[str]]:
    found: set[str] = set()
    wrong = []
    for (row,) in store.rows("SELECT rowid FROM messages"):
        digest, body = store.rows("SELECT digest, CAST(body AS BLOB) FROM messages WHERE rowid = ?", (row,))[
            0
        ]
        found.add(digest.hex())
        if hashlib.sha256(body).digest() != digest:
            wrong.append(f"message {digest.hex()[:12]}: its text is not what its digest says")
    return found, wrong


def _trials(store: Store, messages: set[str]) -> Iterator[str | None]:
    """None once for every trial that was looked at, and a line for every fault."""
    scenarios = store.scenarios()
    variants = {variant.behaviour_digest: variant for variant in store.variants().values()}
    for (number,) in store.rows("SELECT id FROM trials ORDER BY id"):
        key, scenario, behaviour, repeat, code, events, data = store.rows(_ROW, (number,))[0]
        yield None
        where = f"trial {number} ({key[:12]})"
        tried, variant = scenarios.get(scenario), variants.get(behaviour)
        if tried is None or variant is None or key != trial_key(tried, variant, repeat, code):
            yield f"{where}: its key does not say what was tried"
        if not _agrees(data, key, repeat, code, tried, variant):
            yield f"{where}: its facts and its row disagree"
        lines = store.rows("SELECT position, data FROM events WHERE trial = ? ORDER BY position", (number,))
        if [position for position, _ in lines] != list(range(events)):
            yield f"{where}: {len(lines)} of its {events} events are there"
        lacking = [digest for _, line in lines for digest in referred(line) if digest not in messages]
        if lacking:
            yield f"{where}: {len(lacking)} of its messages are missing"


def _agrees(
    data: str, key: str, repeat: int, code: str, scenario: Scenario | None, variant: Variant | None
) -> bool:
    try:
        trial = facts_of(data)
    except ValueError:
        return False
    same = (trial.key, trial.repeat, trial.code) == (key, repeat, code)
    return same and scenario is not None and trial.scenario == scenario.id and variant is not None
