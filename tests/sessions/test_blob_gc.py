"""Stored results go when the person says so, and never those that a kept run needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn

LONG = {"path": "long.txt"}


@pytest.fixture
def folder(workspace: Path) -> Path:
    (workspace / "long.txt").write_text("a line of text\n" * 200)
    return workspace


def stored(session: reyn.Session) -> tuple[str, str]:
    """The run and the blob of one long result."""
    result = session.invoke_action("file__read", LONG)
    assert result.trace is not None and result.blob is not None
    return result.trace.run, result.blob.id


def forget(folder: Path, run: str) -> None:
    (folder / ".reyn" / "runs" / f"{run}.jsonl").unlink()


def test_blobs_of_runs_that_are_gone_go_and_those_of_kept_runs_stay(folder: Path) -> None:
    session = reyn.Session(folder)
    (gone, orphan), (_, kept) = stored(session), stored(session)
    forget(folder, gone)
    card = reyn.Session(folder).collect_blobs()
    assert card.data == {"blobs": [orphan], "bytes": 3000}
    assert dict(card.facts) == {"removed": "1 blob, 3,000 bytes", "kept": "1 blob, 3,000 bytes"}
    assert [blob.id for blob in session.blobs] == [kept]
    assert session.collect_blobs().title == "Nothing to collect"


def test_a_limit_bounds_what_goes_of_them(folder: Path) -> None:
    session = reyn.Session(folder)
    made = [stored(session) for _ in range(3)]
    for run, _ in made[:2]:
        forget(folder, run)
    session = reyn.Session(folder)
    assert session.collect_blobs(max_age_days=1).data["blobs"] == []
    assert session.collect_blobs(max_bytes=6000).data["blobs"] == [made[0][1]]
    assert session.collect_blobs(max_bytes=0).data["blobs"] == [made[1][1]]
    assert [blob.id for blob in session.blobs] == [made[2][1]]


def test_with_keep_only_what_is_named_stays(folder: Path) -> None:
    session = reyn.Session(folder)
    (run, first), (_, second), (_, third) = stored(session), stored(session), stored(session)
    assert session.collect_blobs(keep=[]).data["blobs"] == []
    assert session.collect_blobs(max_age_days=0, keep=[run, second]).data["blobs"] == [third]
    assert {blob.id for blob in session.blobs} == {first, second}


@pytest.mark.parametrize("store", ["memory", None])
def test_other_stores_answer_too(folder: Path, store: str | None) -> None:
    session = reyn.Session(folder, store=store)
    session.invoke_action("file__read", LONG)
    assert dict(session.collect_blobs().facts)["removed"] in ("0 blobs, 0 bytes", "nothing")


@pytest.mark.parametrize(
    "limits", [{"max_age_days": -1}, {"max_age_days": float("nan")}, {"max_bytes": "1 GB"}, {"keep": "id"}]
)
def test_limits_that_mean_nothing_are_refused(folder: Path, limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"max_|keep"):
        reyn.Session(folder).collect_blobs(**limits)
