"""Check that a study's file keeps its invariants, by reading all of it.

Invariant: every row of every table is read and held against what it was made from, and whatever is found is a line of
the answer, never an error: a damaged file is what this is for. What cannot be seen: a trial that was taken away from
the end of a run that was killed, with everything that was its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.evaluation.checks import UnknownCheckError, find_check, is_missing
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.store.event_codec import facts_of, message_digests
from reyn_jupyter.evaluation.store.rows import digest_of, digest_of_text, verdict_row
from reyn_jupyter.evaluation.store.store import Store
from reyn_jupyter.evaluation.store.study_file import UNREADABLE, StoreError
from reyn_jupyter.evaluation.trial.trial import MISSING, Trial, key_of

_SHOWN = 20
_PAGE = 500
# The columns that a trial's digest is over, in their order; texts as bytes, since a damaged one may be none.
_COLUMNS = (
    "key", "source", "ground", "attempt", "run", "scenario", "behaviour", "repeat", "code", "outcome", "calls",
    "tokens", "cost", "seconds", "events", "data",
)  # fmt: skip
_TRIALS = f"SELECT id, digest, {', '.join(_COLUMNS)} FROM trials WHERE id > ? ORDER BY id LIMIT {_PAGE}"  # noqa: S608
_EVENTS = "SELECT position, CAST(data AS BLOB) FROM events WHERE trial = ? ORDER BY position"
_VERDICTS = (
    'SELECT "check", version, kind, value, CAST(reason AS BLOB), CAST(evidence AS BLOB) FROM verdicts '
    "WHERE trial = ?"
)


@dataclass(frozen=True)
class StoreCheck:
    """The result of a check: trials and messages looked at, and what is wrong, one line a fault."""

    trials: int
    messages: int
    faults: tuple[str, ...]


@dataclass
class _Known:
    """The ids in the tables that trials refer to."""

    runs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    variants: dict[str, Variant] = field(default_factory=dict)
    messages: set[str] = field(default_factory=set)


def verify(store: Store) -> StoreCheck:
    """Read everything: the file's own structure; that every scenario, variant and message is what its digest says; each
    trial's key, made again from what was tried, and the digest over its row and events; that its messages are there;
    that it was tried again only after an error or a timeout; that each verdict is what its check says; and that each
    run's trials are as many as it noted.

    Args:
        store: the study's file.

    Returns:
        What was looked at, and what is wrong.
    """
    known, looked = _Known(), {"trials": 0}
    faults: list[str] = []
    try:
        faults.extend(_faults(store, known, looked))
    except StoreError as error:  # a page that cannot be read ends the reading
        faults.append(str(error))
    more = [f"and {len(faults) - _SHOWN:,} more"] if len(faults) > _SHOWN else []
    return StoreCheck(looked["trials"], len(known.messages), (*faults[:_SHOWN], *more))


def _faults(store: Store, known: _Known, looked: dict[str, int]) -> Iterator[str]:
    yield from (str(line) for (line,) in store.rows("PRAGMA integrity_check(5)") if line != "ok")
    for table, row, *_ in store.rows("PRAGMA foreign_key_check"):
        yield f"{table} {row}: refers to nothing"
    tables = {
        "runs": _of_runs,
        "scenarios": _of_scenarios,
        "variants": _of_variants,
        "messages": _of_messages,
    }
    for name, faults in tables.items():
        yield from _guard(
            faults(store, known), f"{name}: a row cannot be read, and the rest was not looked at"
        )
    used: set[str] = set()
    attempts: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
    counts: dict[str, int] = {}
    last = 0
    while rows := store.rows(_TRIALS, (last,)):
        for number, digest, *values in rows:
            row = dict(zip(_COLUMNS, values, strict=True))
            looked["trials"] += 1
            if number != last + 1:
                yield f"trial {last + 1}: is missing, since the numbers go on at {number}"
            last = number
            counts[row["run"]] = counts.get(row["run"], 0) + 1
            place = (row["key"], row["source"], row["ground"])
            attempts.setdefault(place, []).append((row["attempt"], row["outcome"]))
            where = f"trial {number} ({str(row['key'])[:12]})"
            found = _guard(_of_trial(store, known, number, digest, row, used), "it cannot be read")
            yield from (f"{where}: {said}" for said in found)
    for (key, *_), tried in attempts.items():
        if [attempt for attempt, _ in tried] != list(range(len(tried))):
            yield f"trials {str(key)[:12]}: attempts are missing or doubled"
        if any(outcome not in MISSING for _, outcome in tried[:-1]):
            yield f"trials {str(key)[:12]}: tried again without an error or a timeout"
    if unused := known.messages - used:
        yield f"{len(unused):,} messages belong to no trial, so trials or their events are missing"
    for run, noted in known.runs.items():
        if isinstance(stored := noted.get("stored"), int) and stored != counts.get(run, 0):
            yield f"run {run}: {counts.get(run, 0):,} of the {stored:,} trials that it stored are there"


def _guard(faults: Iterator[str], said: str) -> Iterator[str]:
    """Yield the faults. A value that cannot be read ends them with the fault `said`."""
    try:
        yield from faults
    except UNREADABLE:
        yield said


def _of_runs(store: Store, known: _Known) -> Iterator[str]:
    for key, data, digest in store.rows("SELECT id, CAST(data AS BLOB), digest FROM runs"):
        try:
            found = json.loads(data)
            if digest_of((key, data.decode())) != digest:
                yield f"run {key}: what it noted is not what its digest says"
        except UNREADABLE:
            found = None
        if isinstance(found, dict):
            known.runs[key] = found
        else:
            yield f"run {key}: what it noted cannot be read"


def _of_scenarios(store: Store, known: _Known) -> Iterator[str]:
    for digest, identity, data in store.rows("SELECT digest, id, CAST(data AS BLOB) FROM scenarios"):
        try:
            found = Scenario.model_validate_json(data)
        except UNREADABLE:
            yield f"scenario {identity}: cannot be read"
            continue
        known.scenarios[digest] = found
        if (digest_of_text(data), found.id) != (digest, identity):
            yield f"scenario {identity}: is not what its digest says"


def _of_variants(store: Store, known: _Known) -> Iterator[str]:
    for name, behaviour, data in store.rows("SELECT name, behaviour, CAST(data AS BLOB) FROM variants"):
        try:
            found = Variant.of(json.loads(data))
        except UNREADABLE:
            yield f"variant {name}: cannot be read"
            continue
        known.variants |= {behaviour: found, found.behaviour_digest: found}
        if (digest_of_text(data, "name"), found.name) != (behaviour, name):
            yield f"variant {name}: is not what its digest says"


def _of_messages(store: Store, known: _Known) -> Iterator[str]:
    for (row,) in store.rows("SELECT rowid FROM messages"):
        (found,) = store.rows("SELECT digest, CAST(body AS BLOB) FROM messages WHERE rowid = ?", (row,))
        digest, body = found
        known.messages.add(digest.hex())
        if hashlib.sha256(body).digest() != digest:
            yield f"message {digest.hex()[:12]}: its text is not what its digest says"


def _of_trial(
    store: Store, known: _Known, number: int, digest: bytes, row: Mapping[str, Any], used: set[str]
) -> Iterator[str]:
    """Yield what is wrong with one trial; adds the messages that it refers to."""
    tried, variant = known.scenarios.get(row["scenario"]), known.variants.get(row["behaviour"])
    lines = store.rows(_EVENTS, (number,))
    if [position for position, _ in lines] != list(range(row["events"])):
        yield f"{len(lines)} of its {row['events']} events are there"
    elif digest_of(row.values(), (line for _, line in lines)) != digest:
        yield "its row or its events are not what its digest says"
    if (
        tried is None
        or variant is None
        or row["key"] != key_of(row["scenario"], row["behaviour"], row["repeat"], row["code"])
    ):
        yield "its key does not say what was tried"
    try:
        digests = [each for _, line in lines for each in message_digests(line)]
    except UNREADABLE:
        yield "an event cannot be read"
        digests = []
    used.update(digests)
    if lacking := [each for each in digests if each not in known.messages]:
        yield f"{len(lacking)} of its messages are missing"
    try:
        trial = facts_of(row["data"])
    except UNREADABLE:
        yield "its facts cannot be read"
        return
    if tried is not None:
        noted = known.runs.get(row["run"], {})
        yield from _of_verdicts(store, number, trial, tried, noted)


def _of_verdicts(
    store: Store, number: int, trial: Trial, scenario: Scenario, noted: Mapping[str, Any]
) -> Iterator[str]:
    there = {name: rest for name, *rest in store.rows(_VERDICTS, (number,))}
    suite = noted.get("suite")
    wanted = {noted.get("check"), *(suite.get("checks", ()) if isinstance(suite, dict) else ())} - {None}
    if is_missing(trial):
        if there:
            yield "it has verdicts, though there is nothing to grade"
        return
    for name in sorted(wanted - there.keys()):
        yield f"its verdict of {name} is missing; study.regrade() makes it again"
    for name, (version, *stored) in there.items():
        try:
            check = find_check(name)
        except UnknownCheckError:  # a person's own, which is not at hand
            continue
        if not isinstance(version, int):
            yield f"its verdict of {name} is of no version of the check; study.regrade() makes it again"
        elif check.version == version:
            verdict = check.grade(trial, scenario)
            kind, value, reason, evidence = verdict_row(number, name, version, verdict)[3:]
            if stored != [kind, value, reason.encode(), evidence.encode()]:
                yield f"its verdict of {name} is not what the check says; study.regrade() makes it again"
