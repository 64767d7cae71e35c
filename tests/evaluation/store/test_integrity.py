"""`verify` finds what was changed, taken away or put in twice, in every table of a study's file."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from reyn_jupyter.evaluation.run.concurrency import Concurrency
from reyn_jupyter.evaluation.store.study_file import StoreError
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.support.user_errors import UserError
from tests.evaluation.study_support import BASE, BEST, ByVariant, study


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of two runs; in the first one every third trial fails, and the second tries those again."""
    path = tmp_path_factory.mktemp("whole") / "a.sqlite"
    model = ByVariant()
    asked = 0

    async def fails(request: object) -> None:
        nonlocal asked
        asked += 1
        if asked % 9 == 0:
            raise ModelError("unavailable", "gone")

    model.hook = fails
    one_by_one = Concurrency(start=1, most=1, most_local=1)  # so that trial 3 is the same each time
    with study(path, 4, models={"scripted": model}, concurrency=one_by_one) as made:
        made.run(BASE, BEST)
        model.hook = None
        made.run(BASE, BEST, retry=True)
        found = made.verify()
        assert found.faults == () and found.trials == made.spent.trials > 16 and found.messages > 4
    return path


def faults(whole: Path, folder: Path, *changes: str) -> tuple[str, ...]:
    path = folder / "a.sqlite"
    shutil.copy(whole, path)
    db = sqlite3.connect(path)
    for change in changes:
        assert db.execute(change).rowcount > 0, change
    db.commit()
    db.close()
    with Study.open(path) as made:
        return made.verify().faults


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DELETE FROM events WHERE trial = 3 AND position = 2", "events are there"),
        (
            "UPDATE events SET data = replace(data, 'notes', 'motes') WHERE trial = 3",
            "not what its digest says",
        ),
        ("UPDATE events SET data = 'no JSON' WHERE trial = 3 AND position = 1", "not what its digest says"),
        (
            "INSERT INTO events SELECT trial, 999, data FROM events WHERE trial = 3 AND position = 1",
            "events are there",
        ),
        ("DELETE FROM messages WHERE rowid = 1", "messages are missing"),
        ("UPDATE messages SET body = '{}' WHERE rowid = 1", "message "),
        ("INSERT INTO messages VALUES (x'00', x'00')", "belong to no trial"),
        ("UPDATE trials SET repeat = 5 WHERE id = 3", "its key does not say"),
        ("UPDATE trials SET outcome = 'ok', calls = 0 WHERE id = 3", "not what its digest says"),
        ("UPDATE trials SET data = replace(data, 'hello', 'hallo') WHERE id = 3", "not what its digest says"),
        ("UPDATE trials SET data = '{}' WHERE id = 3", "facts cannot be read"),
        ("DELETE FROM trials WHERE id = 3", "trial 3: is missing"),
        ("UPDATE trials SET cost = 1.5 WHERE id = 3", "not what its digest says"),
        (
            "DELETE FROM verdicts WHERE trial = 3 AND \"check\" = 'first_call_is'",
            "verdict of first_call_is is missing",
        ),
        (
            "UPDATE verdicts SET kind = 'pass', value = 1 - value WHERE trial = 3",
            "is not what the check says",
        ),
        (
            "UPDATE scenarios SET data = replace(data, 'hello', 'hallo') WHERE id = 's001'",
            "scenario s001: is not",
        ),
        ("UPDATE scenarios SET data = 'nothing' WHERE id = 's001'", "scenario s001: cannot be read"),
        ("DELETE FROM scenarios WHERE id = 's001'", "refers to nothing"),
        ("UPDATE variants SET data = replace(data, 'explicit', 'generic')", "variant best: is not"),
        ("DELETE FROM variants WHERE name = 'best'", "its key does not say"),
        ("UPDATE runs SET data = 'nothing'", "what it noted cannot be read"),
        ("DELETE FROM runs", "refers to nothing"),
    ],
)
def test_every_change_is_found(whole: Path, tmp_path: Path, change: str, said: str) -> None:
    found = faults(whole, tmp_path, change)
    assert any(said in fault for fault in found), found


def test_a_trial_that_is_there_twice_is_found(whole: Path, tmp_path: Path) -> None:
    columns = "key, source, ground, {}, run, scenario, behaviour, repeat, code, outcome, calls, tokens, cost, seconds"
    double = (
        f"INSERT INTO trials ({columns.format('attempt')}, events, data, digest) "
        f"SELECT {columns.format('attempt + 1')}, 0, data, digest FROM trials WHERE outcome = 'ok' LIMIT 1"
    )
    found = faults(whole, tmp_path, double)
    assert any("tried again without an error" in fault for fault in found), found


def test_a_trial_that_is_gone_from_the_end_with_all_that_was_its_own_is_found(
    whole: Path, tmp_path: Path
) -> None:
    last = "(SELECT max(id) FROM trials)"
    found = faults(
        whole,
        tmp_path,
        f"DELETE FROM events WHERE trial = {last}",
        f"DELETE FROM verdicts WHERE trial = {last}",
        f"DELETE FROM trials WHERE id = {last}",
    )
    assert any("trials that it stored are there" in fault for fault in found), found


def test_bytes_that_flip_on_the_disk_are_found_wherever_they_change_what_the_file_says(
    whole: Path, tmp_path: Path
) -> None:
    chance, data, says = random.Random(5), whole.read_bytes(), said_by(whole)
    changed = 0
    for number in range(80):
        path = tmp_path / f"{number}.sqlite"
        place = chance.randrange(100, len(data))
        path.write_bytes(data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :])
        try:
            with Study.open(path) as made:
                found = made.verify().faults
        except StoreError:
            changed += 1
            continue
        if said_by(path) != says:
            changed += 1
            assert found, f"byte {place} is not what it was"
    assert changed > 20


def said_by(path: Path) -> object:
    """Everything in the tables; None where it cannot be read. The free space of a page says nothing."""
    tables = ("runs", "scenarios", "variants", "trials", "events", "messages", "verdicts")
    db = sqlite3.connect(path)
    db.text_factory = bytes
    try:
        return [db.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
    except sqlite3.DatabaseError:
        return None
    finally:
        db.close()


def test_what_cannot_be_read_is_told_when_a_study_is_looked_at(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    shutil.copy(whole, path)
    db = sqlite3.connect(path)
    db.execute("UPDATE trials SET data = '{}' WHERE id = 3")
    db.commit()
    db.close()
    with Study.open(path) as made, pytest.raises(StoreError, match=r"trial 3 cannot be read.*study.verify"):
        len(made.trials)


HOSTILE = {
    "nested lists": "[" * 100_000,
    "nested lists, closed": "[" * 100_000 + "]" * 100_000,
    "nested objects": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "nested fields": '{"id": "s001", "name": "base", "data": ' + "[" * 90_000 + "]" * 90_000 + "}",
    "nested just below the limit": '{"messages": ' + "[" * 900 + "]" * 900 + "}",
    "a huge number": '{"calls": 1e999, "repeat": ' + "9" * 5_000 + "}",
    "a list of everything": '[null, 1, "a", {}]',
    "a number": "7",
    "null": "null",
    "nothing": "",
}
COLUMNS = {
    "runs": ("data", "digest"),
    "scenarios": ("data", "id", "digest"),
    "variants": ("data", "name", "behaviour"),
    "trials": ("data", "key", "outcome", "digest", "repeat"),
    "events": ("data", "position"),
    "messages": ("body", "digest"),
    "verdicts": ("evidence", "reason", "kind", "value"),
}


def test_verify_reports_hostile_values_in_every_column(whole: Path, tmp_path: Path) -> None:
    wrong = []
    for table, columns in COLUMNS.items():
        for column in columns:
            for name, value in HOSTILE.items():
                path = tmp_path / "hostile.sqlite"
                shutil.copy(whole, path)
                row = f"rowid = (SELECT min(rowid) FROM {table})"
                where = {"events": "trial = 3 AND position = 1", "verdicts": "trial = 3"}.get(table, row)
                place = f"{table}.{column}: {name}"
                try:
                    with closing(sqlite3.connect(path, isolation_level=None)) as db:
                        db.execute(f'UPDATE {table} SET "{column}" = ? WHERE {where}', (value,))
                except sqlite3.Error:  # the file itself refuses such a value
                    continue
                try:
                    with Study.open(path) as made:
                        if not made.verify().faults:
                            wrong.append(f"{place}: nothing found")
                        for look in (lambda: list(made.trials), lambda: str(made.report()), made.regrade):
                            with suppress(UserError):
                                look()
                except StoreError:
                    continue
                except Exception as error:
                    wrong.append(f"{place}: {type(error).__name__} {str(error)[:80]}")
    assert not wrong, "\n".join(wrong)
