"""The truth of a study: one SQLite file of runs, scenarios, variants, trials, events, messages and verdicts.

Invariant: a trial is there with its row, its events, their messages and its verdicts, or not at all: one transaction
each. So a kill at any moment loses the trials under way and nothing else, and what is missing is what is to be run.
No row of a trial ever changes. `integrity.verify` proves it.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from reyn_jupyter.evaluation.checks.check import Check
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.store.event_codec import facts_of, facts_text, pack_events, unpack_event
from reyn_jupyter.evaluation.store.rows import (
    Found,
    StoredTrial,
    TrialEntry,
    digest_of,
    digest_of_text,
    name_taken,
    plain_json,
    trial_row,
    verdict_row,
)
from reyn_jupyter.evaluation.store.study_file import (
    UNREADABLE,
    StoreError,
    failure,
    open_database,
    other_version,
)
from reyn_jupyter.runtime.record.events import Event
from reyn_jupyter.runtime.record.verdict import Verdict
from reyn_jupyter.support.files.sqlite import transaction

_PAGE = 500  # rows that a reader takes at a time, so that a writer is never kept waiting long
_ADD = "INSERT INTO trials VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_KNOWN = 4_096  # digests of stored bodies that are remembered


def _nothing(point: str) -> None:
    """Called at each named moment of a write; a test may put something deadly in its place."""


class Store:
    """A study's file.

    Args:
        path: the file, made when it is not there; None for memory.
        read_only: refuse to write, and make no file.

    Attributes:
        at: is told of each moment of a write: "before", "trial", "events", "commit", "after".
        alone: held by the one run of this study that is under way in this process.

    Raises:
        StoreError: see `study_file.open_database`.
    """

    def __init__(self, path: Path | None, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self.at: Callable[[str], None] = _nothing
        self._db = open_database(path, read_only=read_only)
        self.alone = threading.Lock()
        self._lock = threading.RLock()
        self._known: set[bytes] = set()

    def close(self) -> None:
        with self._lock:
            self._db.close()

    # Writing

    @contextmanager
    def writable(self) -> Iterator[Store]:
        """Give this file open for writing, whatever it is open for here. Raises StoreError."""
        if not self.read_only:
            yield self
            return
        other = Store(self.path)
        try:
            yield other
        finally:
            other.close()

    def begin(
        self,
        run: str,
        began: float,
        data: Mapping[str, Any],
        scenarios: Iterable[Scenario],
        variants: Iterable[Variant],
    ) -> None:
        """Note an invocation with everything that it knows. Raises StoreError for a variant's name that is taken."""
        with self._writing() as db:
            noted = plain_json(data)
            db.execute(
                "INSERT INTO runs VALUES (?, ?, NULL, ?, ?)", (run, began, noted, digest_of((run, noted)))
            )
            db.executemany(
                "INSERT INTO scenarios VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (digest) DO UPDATE SET run = excluded.run, position = excluded.position",
                [(s.digest, s.id, s.family, n, run, s.model_dump_json()) for n, s in enumerate(scenarios)],
            )
            for variant in variants:
                _know(db, variant)

    def note(self, run: str, data: Mapping[str, Any], ended: float | None = None) -> None:
        """Write what is known of an invocation by now, and when it ended."""
        noted = plain_json(data)
        values = (ended, noted, digest_of((run, noted)), run)
        with self._writing() as db:
            db.execute("UPDATE runs SET ended = ?, data = ?, digest = ? WHERE id = ?", values)

    def add(self, run: str, entry: TrialEntry) -> int:
        """Store one trial with everything that belongs to it; its attempt, from 0.

        Raises:
            DiskFullError, StoreError: nothing of it was stored.
        """
        trial = entry.trial
        kept = pack_events(entry.events)
        self.at("before")
        with self._writing() as db:
            same = (trial.key, trial.source, entry.conditions)
            attempt = int(
                db.execute(
                    "SELECT count(*) FROM trials WHERE key = ? AND source = ? AND ground = ?", same
                ).fetchone()[0]
            )
            row = trial_row(run, entry, attempt, len(kept.events), facts_text(trial))
            digest = digest_of(row, kept.events)
            added = db.execute(_ADD, (*row, digest))
            number = added.lastrowid
            self.at("trial")
            db.executemany(
                "INSERT INTO events VALUES (?, ?, ?)",
                [(number, n, line) for n, line in enumerate(kept.events)],
            )
            fresh = [(digest, body) for digest, body in kept.bodies.items() if digest not in self._known]
            db.executemany("INSERT OR IGNORE INTO messages VALUES (?, ?)", fresh)
            self.at("events")
            _put_verdicts(db, ((number, name, *graded) for name, graded in entry.verdicts.items()))
            self.at("commit")
        self._remember(digest for digest, _ in fresh)
        self.at("after")
        return attempt

    def grade(self, check: Check, verdicts: Iterable[tuple[int, Verdict]]) -> None:
        """Store what a check says of trials, in place of what an older version of it said."""
        with self._writing() as db:
            _put_verdicts(db, ((number, check.name, check.version, verdict) for number, verdict in verdicts))

    def settle(self) -> None:
        """Bring what the log beside the file holds into the file, which somebody may copy alone. Waits for nobody."""
        with (
            self._lock,
            suppress(sqlite3.Error),
        ):  # the log is as good, so nothing is lost where it cannot be done
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    # Reading

    def runs(self) -> list[dict[str, Any]]:
        """Return what is known of each invocation, the oldest first."""
        rows = self.rows("SELECT id, began, ended, data FROM runs ORDER BY began, id")
        with self.reading("a run"):
            return [
                {"id": key, "began": began, "ended": ended, **json.loads(data)}
                for key, began, ended, data in rows
            ]

    def scenarios(self, run: str | None = None) -> dict[str, Scenario]:
        """Digest → scenario, of those that an invocation knew, or of all."""
        where = "WHERE run = ?" if run is not None else ""
        rows = self.rows(
            f"SELECT digest, id, data FROM scenarios {where} ORDER BY position, rowid",  # noqa: S608 - no value goes in
            (run,) if run is not None else (),
        )
        found = {}
        for digest, name, data in rows:
            with self.reading(f"scenario {name}", partial(_is_intact, data, digest)):
                found[digest] = Scenario.model_validate_json(data)
        return found

    def variants(self) -> dict[str, Variant]:
        """Name → variant, in the order in which the study met them; fields that were added since have their
        defaults."""
        return {variant.name: variant for variant, _ in self._variants()}

    def behaviours(self) -> dict[str, list[Variant]]:
        """Digest of a behaviour → the variants that behave so. A variant that an older version stored, with fewer
        fields, is found by the digest that it had then and by that of today."""
        found: dict[str, list[Variant]] = {}
        for variant, behaviour in self._variants():
            for digest in {behaviour, variant.behaviour_digest}:
                found.setdefault(digest, []).append(variant)
        return found

    def _variants(self) -> list[tuple[Variant, str]]:
        found = []
        rows = self.rows("SELECT name, behaviour, data FROM variants ORDER BY rowid")
        for name, behaviour, data in rows:
            with self.reading(f"variant {name}", partial(_is_intact, data, behaviour, "name")):
                found.append((Variant.of(json.loads(data)), behaviour))
        return found

    def trials(self, code: str | None = None) -> Iterator[StoredTrial]:
        """Yield the trials, of one version of the code or of all, in the order in which they were stored."""
        query = (
            "SELECT trials.id, scenario, behaviour, ground, attempt, trials.data, scenarios.digest FROM trials "
            "LEFT JOIN scenarios ON scenarios.digest = scenario "
            "WHERE trials.id > ? AND (? IS NULL OR code = ?) ORDER BY trials.id LIMIT ?"
        )
        last = 0
        while rows := self.rows(query, (last, code, code, _PAGE)):
            for number, scenario, behaviour, conditions, attempt, data, known in rows:
                with self.reading(f"trial {number}", partial(self._is_whole, number)):
                    trial = facts_of(data)
                if known is None:
                    raise self._damaged(f"the scenario of trial {number} is missing")
                yield StoredTrial(number, trial, scenario, behaviour, conditions, attempt)
            last = rows[-1][0]

    def done(self, code: str, check: Check) -> dict[Found, tuple[str, float | None]]:
        """(key, source, ground) → outcome and the check's value of the last attempt; no value where it is not graded
        or the check does not apply."""
        rows = self.rows(
            "SELECT key, source, ground, outcome, value FROM trials "
            'LEFT JOIN verdicts ON trial = id AND "check" = ? AND version = ? WHERE code = ? ORDER BY attempt',
            (check.name, check.version, code),
        )
        return {
            (key, source, conditions): (outcome, value) for key, source, conditions, outcome, value in rows
        }

    def codes(self) -> dict[str, int]:
        """Version of the code → trials."""
        return {
            code: int(count) for code, count in self.rows("SELECT code, count(*) FROM trials GROUP BY code")
        }

    def fingerprints(self, code: str) -> dict[tuple[str, str], tuple[str, ...]]:
        """(digest of a variant's behaviour, source) → what the provider called its model, the oldest first."""
        found: dict[tuple[str, str], dict[str, None]] = {}
        query = (
            "SELECT behaviour, source, json_extract(data, '$.fingerprints') AS marks FROM trials WHERE code = ? "
            "GROUP BY behaviour, source, marks ORDER BY min(id)"
        )
        for behaviour, source, marks in self.rows(query, (code,)):
            with self.reading("the fingerprints of a model"):
                found.setdefault((behaviour, source), {}).update(dict.fromkeys(json.loads(marks or "[]")))
        return {place: tuple(marks) for place, marks in found.items()}

    def graded(self, check: Check) -> set[int]:
        """Return the rows of trials that this version of a check has graded."""
        query = 'SELECT trial FROM verdicts WHERE "check" = ? AND version = ?'
        return {number for (number,) in self.rows(query, (check.name, check.version))}

    def events(self, number: int) -> tuple[Event, ...]:
        """Return the events of a trial, in order."""
        lines = self.rows("SELECT data FROM events WHERE trial = ? ORDER BY position", (number,))
        with self.reading(f"an event of trial {number}"):
            found = [unpack_event(line, self._body) for (line,) in lines]
        return tuple(event for event in found if event is not None)

    def _body(self, digest: str) -> Any:
        rows = self.rows("SELECT body FROM messages WHERE digest = ?", (bytes.fromhex(digest),))
        if not rows:
            raise StoreError(f"{self.path}: the message {digest[:12]} is missing; look with study.verify().")
        return json.loads(rows[0][0])

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a reading query, for those who look at the file as a whole too. Raises StoreError."""
        try:
            with self._lock:
                return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise failure(error, self.path) from error

    def _is_whole(self, number: int) -> bool:
        """Return whether a trial is what its digest says, so that no damage explains that it cannot be read."""
        ((_, *row, digest),) = self.rows("SELECT * FROM trials WHERE id = ?", (number,))
        lines = self.rows("SELECT data FROM events WHERE trial = ? ORDER BY position", (number,))
        return digest_of(row, (line for (line,) in lines)) == bytes(digest)

    def _last_code(self) -> str:
        rows = self.rows(
            "SELECT json_extract(data, '$.code') FROM runs WHERE json_valid(data) ORDER BY began DESC"
        )
        return str(rows[0][0]) if rows else "an unknown version"

    @contextmanager
    def reading(self, what: str, is_whole: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Say of what cannot be read which it is, and whether it is damaged or of another version.

        Args:
            what: a scenario, a variant, a trial, by its name.
            is_whole: whether it is what its digest says; asked where it cannot be read.
        """
        try:
            yield
        except UNREADABLE as error:
            with suppress(*UNREADABLE):  # what is damaged may be no JSON either
                if is_whole():
                    raise other_version(self.path, what, error, self._last_code()) from error
            raise self._damaged(f"{what} cannot be read ({type(error).__name__})") from error

    def _damaged(self, what: str) -> StoreError:
        return StoreError(
            f"{self.path}: {what}. The file is damaged: study.verify() lists what is wrong; restore it from a copy."
        )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                with transaction(self._db):
                    yield self._db
            except sqlite3.Error as error:
                raise failure(error, self.path) from error

    def _remember(self, digests: Iterable[bytes]) -> None:
        if len(self._known) > _KNOWN:
            self._known.clear()
        self._known.update(digests)


def _is_intact(text: str, digest: str, *without: str) -> bool:
    """Return whether a stored scenario or variant is what its digest says."""
    return digest_of_text(text, *without) == digest


def _know(db: sqlite3.Connection, variant: Variant) -> None:
    """Keep a variant under its name, which stands for one behaviour in the whole study."""
    row = db.execute("SELECT behaviour, data FROM variants WHERE name = ?", (variant.name,)).fetchone()
    if row is None:
        db.execute(
            "INSERT INTO variants VALUES (?, ?, ?)",
            (variant.name, variant.behaviour_digest, variant.model_dump_json()),
        )
    elif row[0] != variant.behaviour_digest:
        known = Variant.of(json.loads(row[1]))
        if (
            known.behaviour_digest != variant.behaviour_digest
        ):  # else an older version stored it, with fewer fields
            raise StoreError(name_taken(variant, known))


def _put_verdicts(db: sqlite3.Connection, rows: Iterable[tuple[int | None, str, int, Verdict]]) -> None:
    db.executemany(
        "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?)", [verdict_row(*row) for row in rows]
    )
