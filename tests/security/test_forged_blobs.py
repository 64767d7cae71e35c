"""A stored result of a cloned folder says what its maker wrote: no description makes more of it than its bytes hold.

Each test lays a result and what is said of it into `.reyn/blobs`, and lets a model, a person and an undo use it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.sessions.runs.undo import NothingToUndoError
from tests.security.security_support import Attacker

BLOB = "0197f9a2-7c1b-7e3c-8a55-3b0f8e1d2c4a"
RUN = "0197f9a2-7c1b-7e3c-8a55-3b0f8e1d2c4b"
RECORDS = '[{"a":1},{"a":2}]'


def forge(
    root: Path, content: str, *, kind: str = "json_array", size: int | None = None, **said: Any
) -> None:
    """Lay a result into the state folder, with a manifest that says what it likes."""
    folder = root / ".reyn" / "blobs"
    folder.mkdir(parents=True)
    file = folder / f"{BLOB}{'.txt' if kind == 'text' else '.json'}"
    file.write_text(content)
    if size is not None:
        os.truncate(file, size)
    manifest = {"id": BLOB, "kind": kind, "size": size or len(content), "entries": 2, "created": 1.0, **said}
    (folder / f"{BLOB}.meta.json").write_text(json.dumps(manifest))


def column(**said: Any) -> dict[str, Any]:
    return {"key": "a", "label": "a", "dtype": "int64", **said}


def frame(*columns: Any, **said: Any) -> dict[str, Any]:
    return {"kind": "DataFrame", "rows": 2, "cols": len(columns), "columns": list(columns), **said}


HUGE = "S2000000000"
HOSTILE = {
    "rows that are not there": frame(column(), rows=10**10),
    "rows beyond any count": frame(column(), rows=10**30),
    "columns without end": frame(*[column()] * 100_000),
    "no column": frame(None),
    "a column without a name": frame({"dtype": "int64"}),
    "a wide dtype": frame(column(dtype=HUGE)),
    "a wide dtype of categories": frame(
        column(dtype="category", categories={"values": [1, 2], "dtype": HUGE}, ordered=False)
    ),
    "a wide dtype of an array": {**frame(column()), "kind": "ndarray", "dtype": HUGE, "shape": [2, 1]},
    "a dtype of a hundred thousand fields": frame(column(dtype="int64," * 100_000)),
    "a shape of another size": {
        **frame(column()),
        "kind": "ndarray",
        "dtype": "int64",
        "shape": [10**9, 10**9],
    },
    "a shape that is none": {**frame(column()), "kind": "ndarray", "dtype": "int64", "shape": "ab"},
    "an index without end": frame(column(), index={"range": [0, 10**12, 1], "label": None}),
    "an index that stands still": frame(column(), index={"range": [0, 2, 0], "label": None}),
    "an index of no level": frame(column(), index={"multi": False, "levels": [None]}),
    "a frequency that does not fit": frame(
        column(),
        index={
            "multi": False,
            "levels": [{"key": "b", "label": "x", "dtype": "datetime64[ns]"}],
            "frequency": "YE",
        },
    ),
    "a mark at a place that is not there": frame(column(dtype="float64", specials={"NaN": [10**9]})),
    "labels that are none": frame(column(label={"$tuple": 3})),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_a_manifest_says_of_a_table_makes_no_more_than_the_table_holds(
    workspace: Path, hostile: str
) -> None:
    forge(workspace, RECORDS, frame=HOSTILE[hostile])
    attacker = Attacker(workspace, answer="once")
    attacker.session = type(attacker.session)(workspace, namespace={})  # with the store of the folder
    attacker.session.parts.ask_person = attacker._asked
    assert attacker.session.blob(BLOB).df.shape == (2, 1)
    said = attacker.call("file__write", path="new.json", content={"$blob": BLOB})
    assert '"created":true' in said or "refers to a DataFrame" in said
    assert '{"a":1}' in repr(attacker.session.inspect(BLOB).payload)


def test_a_number_that_is_none_is_a_value_like_any_other(workspace: Path) -> None:
    forge(workspace, '[{"a":{"$number":"0xzz"}},{"a":{"$number":"-0x10"}}]')
    session = Attacker(workspace).session
    session = type(session)(workspace, namespace={})
    assert session.blob(BLOB).df["a"].tolist() == [{"$number": "0xzz"}, -16]


@pytest.mark.parametrize("kind", ["text", "json_array"])
def test_a_result_that_is_larger_than_the_memory_is_opened_by_no_reference_and_no_undo(
    workspace: Path, kind: str
) -> None:
    forge(workspace, "[", kind=kind, size=1 << 40)
    (workspace / "notes.txt").write_text("now\n")
    attacker = Attacker(workspace, answer="once")
    attacker.session = type(attacker.session)(workspace, namespace={})
    attacker.session.parts.ask_person = attacker._asked
    said = attacker.call("file__write", path="new.txt", content={"$blob": BLOB})
    assert "a reference opens at most" in said and not (workspace / "new.txt").exists()
    finished = {
        "type": "ActionFinished", "call": "1", "step": 1, "at": 3.0, "wrapper": "invoke_action", "ok": True,
        "name": "file__write", "output": "{}", "seconds": 1.0,
        "changes": [{"path": "notes.txt", "previous_blob": BLOB, "sha256": None, "mode": None}],
    }  # fmt: skip
    resolved = {
        "type": "ActionResolved", "call": "1", "step": 1, "at": 2.0, "actor": "model", "wrapper": "invoke_action",
        "arguments": {}, "name": "file__write",
    }  # fmt: skip
    started = {"type": "RunStarted", "run": RUN, "at": 1.0, "run_kind": "turn", "session": "s", "prompt": "p"}
    lines = "".join(json.dumps(each) + "\n" for each in (started, resolved, finished))
    (workspace / ".reyn" / "runs" / f"{RUN}.jsonl").write_text(lines)
    with pytest.raises(NothingToUndoError, match="larger than any that is kept"):
        attacker.session.undo(RUN)
    assert (workspace / "notes.txt").read_text() == "now\n"
