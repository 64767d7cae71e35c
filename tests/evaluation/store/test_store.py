"""The file of a study: what is in it is whole, what is not ours is left alone."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.store.event_codec import pack_events, unpack_event
from reyn_jupyter.evaluation.store.integrity import verify
from reyn_jupyter.evaluation.store.rows import TrialEntry
from reyn_jupyter.evaluation.store.store import Store
from reyn_jupyter.evaluation.store.study_file import DiskFullError, StoreError
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.events import ActionFinished, Event, ModelRequested, RunEnded, RunStarted
from tests.evaluation.study_support import BASE, study
from tests.evaluation.trial_support import bench, run, scenario
from tests.support.processes import child


@pytest.fixture(scope="module")
def tried() -> tuple[Trial, tuple[Event, ...]]:
    with bench() as made:
        return run(made, variant=BASE)


def entry(tried: tuple[Trial, tuple[Event, ...]], ground: str = "catalog") -> TrialEntry:
    trial, events = tried
    check = find_check("first_call_is")
    verdicts = {check.name: (check.version, check.grade(trial, scenario()))}
    return TrialEntry(trial, events, scenario(), BASE, ground, verdicts)


def filled(path: Path | None, tried: tuple[Trial, tuple[Event, ...]]) -> Store:
    store = Store(path)
    store.begin("run-1", 1.0, {"code": "1"}, [scenario()], [BASE])
    store.add("run-1", entry(tried))
    return store


def test_a_trial_comes_back_with_equal_facts_and_events(
    tmp_path: Path, tried: tuple[Trial, tuple[Event, ...]]
) -> None:
    filled(tmp_path / "a.sqlite", tried).close()
    store = Store(tmp_path / "a.sqlite")
    (stored,) = store.trials()
    assert stored.trial == tried[0]
    assert store.events(stored.id) == tried[1]
    assert verify(store).faults == ()


def test_a_message_that_many_trials_sent_is_stored_once(tried: tuple[Trial, tuple[Event, ...]]) -> None:
    store = filled(None, tried)
    before = store.rows("SELECT count(*) FROM messages")
    store.add("run-1", entry(tried))
    assert store.rows("SELECT count(*) FROM messages") == before
    assert store.rows("SELECT count(*) FROM trials") == [(2,)]


def test_what_is_tried_again_is_another_attempt_and_the_first_one_stays(
    tried: tuple[Trial, tuple[Event, ...]],
) -> None:
    store = filled(None, tried)
    assert store.add("run-1", entry(tried)) == 1
    assert [stored.attempt for stored in store.trials()] == [0, 1]


texts = st.text(max_size=400)
messages = st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": texts}), max_size=4).map(tuple)


@settings(max_examples=60, deadline=None)
@given(texts, messages, texts)
def test_packed_events_come_back_equal(prompt: str, sent: tuple[dict[str, str], ...], output: str) -> None:
    events: tuple[Event, ...] = (
        RunStarted(run="r", at=0.0, run_kind="turn", session="s", prompt=prompt),
        ModelRequested(
            step=1, at=0.0, key="k", components={}, model="m", messages=sent, total_messages=len(sent), tools=("t",),
            tool_specs=({"name": prompt},),
        ),
        ActionFinished(call="c", step=1, at=0.0, wrapper="w", name=None, ok=True, output=output),
        RunEnded(run="r", at=0.0, status="ok"),
    )  # fmt: skip
    kept = pack_events(events)
    bodies = {digest.hex(): json.loads(body) for digest, body in kept.bodies.items()}
    assert tuple(unpack_event(line, bodies.__getitem__) for line in kept.events) == events


def test_lone_surrogates_in_what_a_model_wrote_are_kept(tried: tuple[Trial, tuple[Event, ...]]) -> None:
    event = ActionFinished(call="c", step=1, at=0.0, wrapper="w", name=None, ok=True, output="\ud800" * 300)
    kept = pack_events([event])
    assert len(kept.bodies) == 1


def test_a_full_disk_stores_nothing_of_a_trial_and_says_what_to_do(
    tmp_path: Path, tried: tuple[Trial, tuple[Event, ...]]
) -> None:
    store = filled(tmp_path / "a.sqlite", tried)
    pages = store.rows("PRAGMA page_count")[0][0]
    store.rows(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskFullError, match="Make room"):
        for number in range(100):
            store.add("run-1", entry(tried, f"catalog {number}"))
    found = verify(store)
    assert found.faults == () and found.trials >= 1
    store.rows("PRAGMA max_page_count = 1000000")
    store.add("run-1", entry(tried, "another catalog"))
    assert verify(store).faults == ()


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, and longer than a header of one hundred bytes " * 3)
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreError, match="is no study"):
            Store(path, read_only=read_only)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    other = sqlite3.connect(path)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("CREATE TABLE trials (id)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        Store(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_newer_file_is_refused_and_left_as_it_is(
    tmp_path: Path, tried: tuple[Trial, tuple[Event, ...]]
) -> None:
    path = tmp_path / "a.sqlite"
    filled(path, tried).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreError, match="newer reyn-jupyter"):
            Store(path, read_only=read_only)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM trials; END",
        """
        ALTER TABLE verdicts RENAME TO v;
        CREATE VIEW verdicts AS WITH RECURSIVE n (trial) AS (SELECT 1 UNION ALL SELECT trial FROM n)
        SELECT trial, 'chain' AS "check", 1 AS version FROM n;
        """,
    ],
    ids=["a trigger", "an endless view"],
)
def test_a_study_with_tables_of_somebody_s_own_is_refused_and_left_as_it_is(
    tmp_path: Path, tried: tuple[Trial, tuple[Event, ...]], change: str
) -> None:
    path = tmp_path / "a.sqlite"
    filled(path, tried).close()
    db = sqlite3.connect(path)
    db.executescript(change)
    db.close()
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreError, match="other tables, views or triggers"):
            Store(path, read_only=read_only)
    assert path.read_bytes() == before


def test_a_missing_file_opens_for_writing_and_not_for_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="There is no study"):
        Store(tmp_path / "none.sqlite", read_only=True)
    assert not (tmp_path / "none.sqlite").exists()
    with pytest.raises(StoreError, match="no folder"):
        Store(tmp_path / "nowhere" / "none.sqlite")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="no file"):
        Store(tmp_path / "folder")


def test_an_empty_file_becomes_a_study(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").touch()
    assert Store(tmp_path / "a.sqlite").runs() == []


READS = """
    import os, sys
    from pathlib import Path
    from reyn_jupyter.evaluation.store.store import Store

    list(Store(None).trials())                    # everything is imported before the rights are given up
    Path.cwd().as_uri()
    if os.getuid() == 0:
        os.setuid(65534)
    print(len(list(Store(Path(sys.argv[1]), read_only=True).trials())))
"""


def test_a_study_in_a_folder_where_nothing_can_be_written_can_be_read(
    tried: tuple[Trial, tuple[Event, ...]],
) -> None:
    folder = Path(tempfile.mkdtemp())  # not under tmp_path, whose parents another user may not enter
    try:
        filled(folder / "a.sqlite", tried).close()
        (folder / "a.sqlite").chmod(0o444)
        folder.chmod(0o555)
        done = child(READS, str(folder / "a.sqlite"))
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
    assert done.stdout.strip() == "1", done.stderr


def test_a_reader_in_another_process_sees_whole_trials_while_one_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    made = study(path, 3)
    made.run(BASE)
    reader = type(made).open(path)
    before = len(reader.trials)
    made.run(BASE, repeats=3)
    assert (before, len(reader.trials), len(made.trials)) == (6, 9, 9)
