"""Studies that another version of the package wrote: an older one is read, a newer one says so; neither is damaged.

The file in `tests/data` was written by the commit before weak models got help, and before scenarios could name what an
answer must not hold: `Variant` and `Scenario` have more fields since.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from reyn_jupyter.evaluation.store.rows import digest_of_text
from reyn_jupyter.evaluation.store.study_file import StoreError
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.evaluation.trial.code_version import code_version
from tests.evaluation.study_support import BASE, BEST, ByVariant, small, study

OLDER = Path(__file__).parents[2] / "data" / "study_without_weak_help.sqlite.gz"
WRITTEN_BY = "0.1.0+6510232c09e1"


@pytest.fixture
def older(tmp_path: Path) -> Path:
    path = tmp_path / "older.sqlite"
    path.write_bytes(gzip.decompress(OLDER.read_bytes()))
    return path


def test_a_study_of_an_older_version_is_whole_and_its_trials_are_all_there(older: Path) -> None:
    with Study.open(older) as opened:
        checked = opened.verify()
        assert (checked.trials, checked.faults) == (4, ())
        assert len(opened.trials) == 4 and opened.evidence.tried == ("base", "best")
        assert not opened.evidence.variants["base"].text_calls, "a field that was added since has its default"
        assert opened.trials.of("base")[0].transcript.answer == "The notes say hello."
        assert len(opened.trials.passed("first_call_is")) == 2
        assert "best [scripted]: lists first 100 % (16 to 100), n = 2" in str(opened.report())


def test_a_study_of_an_older_version_goes_on_under_the_same_names(older: Path) -> None:
    with study(older, suite=small(2), models={"scripted": ByVariant()}) as made:
        assert made.run(BASE, BEST, repeats=1).ended == "complete"
        assert len(made.trials) == 4, "those of the older code are kept, and not shown"
        assert any(
            f"4 trials of another version of the code ({WRITTEN_BY})" in note
            for note in made.report().evidence.provenance["notes"]
        )
        assert made.verify().faults == ()
        with pytest.raises(StoreError, match=r"another variant 'base' \(max_steps=8, not 3\)"):
            made.run(BASE.but("base", max_steps=3), repeats=1)


NEWER = {
    "variants": ("variant base", "UPDATE variants SET data = ?, behaviour = ? WHERE name = 'base'"),
    "scenarios": ("scenario s000", "UPDATE scenarios SET data = ?, digest = ? WHERE id = 's000'"),
}


@pytest.mark.parametrize("table", NEWER)
def test_what_a_newer_version_stored_is_named_with_both_versions_and_never_called_damaged(
    older: Path, table: str
) -> None:
    what, update = NEWER[table]
    db = sqlite3.connect(older)
    (text,) = db.execute(f"SELECT data FROM {table} LIMIT 1").fetchone()
    newer = json.dumps({**json.loads(text), "moods": "many"})
    db.execute(update, (newer, digest_of_text(newer, *(["name"] if table == "variants" else []))))
    db.commit()
    before = list(db.iterdump())
    db.close()
    with Study.open(older) as opened, pytest.raises(StoreError) as refused:
        opened.trials  # noqa: B018 - reading is what is tried
    said = str(refused.value)
    assert f"{what} is not damaged, but of another version of reyn-jupyter" in said and "moods" in said
    assert WRITTEN_BY in said and code_version() in said and "pip install --upgrade" in said
    assert list(sqlite3.connect(older).iterdump()) == before


def test_what_is_damaged_is_still_called_so(older: Path) -> None:
    db = sqlite3.connect(older)
    db.execute('UPDATE variants SET data = replace(data, \'"max_steps":8\', \'"max_steps":"x"\')')
    db.commit()
    db.close()
    with Study.open(older) as opened:
        assert "variant base: cannot be read" in opened.verify().faults
        with pytest.raises(StoreError, match="file is damaged"):
            opened.trials  # noqa: B018 - reading is what is tried
