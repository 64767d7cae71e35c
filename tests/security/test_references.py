"""A reference opens nothing that the rules do not judge, and its content comes out of no error.

Each test is an attack that a model makes: it passes `$blob` or `$var` where an action wants data of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.security.security_support import Attacker, invoke

DENY = {"deny": ["*(archive/**)"]}
NOTE = "the launch code is 7781"


@pytest.fixture
def archive(workspace: Path) -> Path:
    """A workspace whose folder `archive` nobody may touch under `DENY`."""
    (workspace / "archive").mkdir()
    (workspace / "archive" / "old.csv").write_text("name,salary\nAnn,99123\n")
    return workspace


@pytest.mark.parametrize(
    ("action", "args"),
    [
        ("table__query", {"sql": "FROM t", "sources": {"t": "REF"}}),
        ("file__grep", {"pattern": "Ann", "path": "REF"}),
        ("file__read", {"path": "REF"}),
        ("file__list", {"path": "REF"}),
        ("file__glob", {"pattern": "*", "path": "REF"}),
        ("file__glob", {"pattern": "REF"}),
    ],
)
def test_a_path_inside_a_blob_reads_nothing_that_the_rules_deny(
    archive: Path, action: str, args: dict[str, Any]
) -> None:
    attacker = Attacker(archive, DENY)
    blob = attacker.stored("archive/old.csv")
    reference = {"$blob": blob}
    given = {
        name: reference if value == "REF" else {"t": reference} if isinstance(value, dict) else value
        for name, value in args.items()
    }
    said = attacker.call(action, **given)
    assert "99123" not in said and "salary" not in said and "old.csv" not in said


def test_a_slug_inside_a_blob_forgets_nothing_that_the_rules_deny(workspace: Path) -> None:
    attacker = Attacker(workspace, {"deny": ["memory_operation__forget(memory/shared/keep)"]}, answer="once")
    kept = {"slug": "keep", "name": "n", "description": "d", "type": "user", "body": "b"}
    attacker.call("memory_operation__remember_shared", **kept)
    attacker.call("memory_operation__forget", layer="shared", slug={"$blob": attacker.stored("keep")})
    assert (workspace / ".reyn/memory/shared/keep.md").exists()


@pytest.mark.parametrize(
    ("action", "args"),
    [
        ("file__grep", {"pattern": "REF"}),
        ("file__grep", {"pattern": "x", "path": "REF"}),
        ("file__grep", {"pattern": "x", "glob": "REF"}),
        ("file__grep", {"pattern": "x", "max_results": "REF"}),
        ("file__read", {"path": "REF"}),
        ("file__read", {"path": "notes.txt", "offset": "REF"}),
        ("file__read", {"path": "notes.txt", "limit": "REF"}),
        ("file__list", {"path": "REF"}),
        ("file__glob", {"pattern": "REF"}),
        ("file__edit", {"path": "notes.txt", "old_string": "REF", "new_string": "x"}),
        ("file__edit", {"path": "notes.txt", "old_string": "first line", "new_string": "REF"}),
        ("table__query", {"sql": "REF"}),
        ("table__query", {"sql": "SELECT 1", "limit": "REF"}),
        ("table__query", {"sql": "FROM t", "sources": {"t": "REF"}}),
        ("table__query", {"sql": "FROM t", "sources": "REF"}),
        ("variable__numbers", {"rows": "REF"}),
        ("memory_operation__list", {"layer": "REF"}),
        ("memory_operation__forget", {"layer": "shared", "slug": "REF"}),
        ("reyn_source__grep", {"pattern": "REF"}),
        ("reyn_source__read", {"path": "REF"}),
        ("reyn_source__list", {"path": "REF"}),
    ],
)
@pytest.mark.parametrize("note", [NOTE, f"({NOTE}", f"{NOTE}.csv", f"{NOTE}/x.csv", "07" + NOTE])
def test_no_error_says_what_a_reference_opened(
    workspace: Path, action: str, args: dict[str, Any], note: str
) -> None:
    attacker = Attacker(workspace, names={"note": note, "numbers": [1, 2, 3]}, answer="once")
    reference = {"$var": "note"}
    given: dict[str, Any] = {
        name: {"t": reference} if isinstance(value, dict) else reference if value == "REF" else value
        for name, value in args.items()
    }
    said = attacker.call(action, **given)
    assert "launch" not in said and "7781" not in said


class Trap:
    """An object of the person's: whatever is asked of it is recorded."""

    touched: list[str] = []  # noqa: RUF012 - one list for all

    def __getattr__(self, name: str) -> Any:
        Trap.touched.append(name)
        raise AttributeError(name)

    def __int__(self) -> int:
        Trap.touched.append("__int__")
        return 5

    __index__ = __int__

    def __str__(self) -> str:
        Trap.touched.append("__str__")
        return "orders"

    __repr__ = __str__

    def __float__(self) -> float:
        Trap.touched.append("__float__")
        return 5.0

    def __iter__(self) -> Any:
        Trap.touched.append("__iter__")
        return iter([1])

    def __len__(self) -> int:
        Trap.touched.append("__len__")
        return 1

    def __eq__(self, other: object) -> bool:
        Trap.touched.append("__eq__")
        return True

    def __hash__(self) -> int:
        Trap.touched.append("__hash__")
        return 1


class Impostor(Trap):
    """It answers for its own class, and for its copies."""

    @property
    def __class__(self) -> Any:
        Trap.touched.append("__class__")
        return str

    def __deepcopy__(self, memo: Any) -> Any:
        Trap.touched.append("__deepcopy__")
        return self

    __copy__ = __deepcopy__

    def __eq__(self, other: object) -> bool:
        Trap.touched.append("__eq__")
        return self is other

    def __hash__(self) -> int:
        Trap.touched.append("__hash__")
        return id(self)


@pytest.mark.parametrize(
    ("action", "args"),
    [
        ("table__query", {"sql": "SELECT 1", "limit": "REF"}),
        ("table__query", {"sql": "FROM t", "sources": {"t": "REF"}}),
        ("variable__numbers", {"rows": "REF"}),
        ("file__read", {"path": "notes.txt", "limit": "REF"}),
        ("file__read", {"path": "REF"}),
        ("file__write", {"path": "new.txt", "content": "REF"}),
        ("file__grep", {"pattern": "x", "max_results": "REF"}),
        ("function__numbered", {"count": "REF"}),
        ("function__numbered", {"rate": "REF"}),
        ("function__numbered", {"items": "REF"}),
        ("function__numbered", {"name": "REF"}),
    ],
)
def test_no_code_of_the_persons_objects_runs_because_of_a_reference(
    workspace: Path, action: str, args: dict[str, Any]
) -> None:
    names = {"trap": Trap(), "numbers": [1, 2, 3]}
    attacker = Attacker(workspace, names=names, answer="once")

    @attacker.session.action
    def numbered(count: int = 0, rate: float = 0.0, items: list[int] | None = None, name: str = "") -> str:
        return f"{count} {rate} {items} {name}"

    Trap.touched.clear()
    reference = {"$var": "trap"}
    given: dict[str, Any] = {
        name: {"t": reference} if isinstance(value, dict) else reference if value == "REF" else value
        for name, value in args.items()
    }
    attacker.call(action, **given)
    # Looking for the classes of variables is no business of a reference.
    assert [name for name in Trap.touched if name.startswith("__") or name in ("keys", "items")] == []


def test_the_question_of_a_write_shows_what_the_reference_brings(workspace: Path) -> None:
    attacker = Attacker(workspace, names={"note": NOTE}, answer="deny")
    said = attacker.call("file__write", path="out.txt", content={"$var": "note"})
    assert any(NOTE in line.text for line in attacker.questions[0].detail.lines) and NOTE not in said
    assert not (workspace / "out.txt").exists()


def test_what_was_shown_is_what_is_written(workspace: Path) -> None:
    rows = ["harmless"]
    attacker = Attacker(workspace, names={"rows": rows}, answer="once")
    attacker.session.parts.ask_person = lambda question: rows.append("added since") or "once"
    attacker.call("file__write", path="out.json", content={"$var": "rows"})
    assert "harmless" in (workspace / "out.json").read_text()
    assert "added since" not in (workspace / "out.json").read_text()


def test_a_result_still_goes_from_one_action_to_the_next(workspace: Path) -> None:
    frame = pd.DataFrame({"n": range(3)})
    attacker = Attacker(workspace, names={"frame": frame}, answer="once")

    @attacker.session.action
    def same(df: pd.DataFrame) -> bool:
        return df is frame

    @attacker.session.action
    def total(rows: list[dict[str, int]]) -> int:
        return sum(row["n"] for row in rows)

    blob = attacker.stored({"rows": [{"n": 1}, {"n": 2}], "text": "words"})
    rows = {"$blob": blob, "path": "/rows"}
    assert "true" in attacker.call("function__same", df={"$var": "frame"})
    assert "3" in attacker.call("function__total", rows=rows)
    assert "3" in attacker.call("table__query", sql="SELECT sum(n) AS s FROM t", sources={"t": rows})
    assert "3" in attacker.call(
        "table__query", sql="SELECT sum(n) AS s FROM t", sources={"t": {"$var": "frame"}}
    )
    attacker.call("file__write", path="rows.json", content=rows)
    assert '"n": 2' in (workspace / "rows.json").read_text()
    attacker.call("file__write", path="text.txt", content={"$blob": blob, "path": "/text"})
    assert (workspace / "text.txt").read_text() == "words"


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [("words", "words"), ([1, "secretive"], "secretive"), ({"n": 1}, "'n'"), ([[1]], "[1]")],
)
def test_an_opened_value_has_to_fit_the_schema_and_the_refusal_quotes_nothing_of_it(
    workspace: Path, rows: object, wrong: str
) -> None:
    attacker = Attacker(workspace)
    called: list[object] = []

    @attacker.session.action
    def total(rows: list[int]) -> int:
        called.append(rows)
        return 0

    trace, _ = attacker.trace(invoke("function__total", rows={"$blob": attacker.stored(rows)}))
    assert not trace.calls[-1].ok and called == []
    assert wrong not in trace.calls[-1].finished.output  # type: ignore[union-attr]


def test_a_reference_that_stands_in_for_all_arguments_is_refused(workspace: Path) -> None:
    attacker = Attacker(workspace, names={"note": {"path": "notes.txt"}})
    said = attacker.calls(invoke("file__read", **{"$var": "note"}))
    assert "first line" not in said


def _frames() -> dict[str, Any]:
    with_attrs = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    with_attrs.attrs = {"of": Impostor(), Impostor(): 1}
    column = with_attrs["a"].copy()
    column.attrs = {"of": Impostor()}
    traps = np.empty(2, dtype=object)
    traps[:] = [Impostor(), Impostor()]
    indexed = pd.DataFrame({"a": [1, 2]}, index=pd.Index(traps, name="i"))
    several = pd.MultiIndex([pd.Index([1, 2]), pd.Index(traps)], [[0, 1], [0, 1]], names=["n", "i"])
    return {
        "trap": Impostor(), "with_attrs": with_attrs, "column": column, "indexed": indexed,
        "several": pd.DataFrame({"a": [1, 2]}, index=several), "cells": pd.DataFrame({"a": traps}),
    }  # fmt: skip


def _touches(workspace: Path, names: dict[str, Any], action: str, **args: Any) -> list[str]:
    attacker = Attacker(workspace, names=names, answer="once")
    Trap.touched.clear()
    attacker.call(action, **args)
    return [touch for touch in Trap.touched if touch.startswith("__")]


@pytest.mark.parametrize("name", ["trap", "with_attrs", "column", "indexed", "several", "cells"])
def test_no_code_of_objects_in_frames_runs(workspace: Path, name: str) -> None:
    assert _touches(workspace, _frames(), f"variable__{name}") == []
    for source in (name, {"$var": name}):
        args = {"sql": "SELECT count(*) FROM t", "sources": {"t": source}}
        assert _touches(workspace, _frames(), "table__query", **args) == []


@pytest.mark.parametrize("name", ["with_attrs", "cells"])
def test_no_code_of_objects_runs_where_a_query_is_planned_over_a_few_rows(workspace: Path, name: str) -> None:
    few = _frames()[name]
    many = pd.DataFrame(few.loc[few.index.repeat(60_000)])
    many.attrs = few.attrs
    for source in ("many", {"$var": "many"}):
        args = {"sql": "SELECT count(*) FROM t", "sources": {"t": source}}
        assert _touches(workspace, {"many": many}, "table__query", **args) == []


@pytest.mark.parametrize(
    "value",
    [
        {"user": "me", "password": "swordfish"},
        [{"user": "me"}, {"apiKey": "swordfish"}],
        {"deep": [[{"more": {"client_secret": "swordfish"}}]]},
    ],
)
def test_what_stands_under_a_secret_key_of_a_variable_is_written_to_no_file_that_a_model_reads(
    workspace: Path, value: Any
) -> None:
    attacker = Attacker(workspace, names={"conf": value}, answer="once")
    said = attacker.call("file__write", path="conf.json", content={"$var": "conf"})
    assert "is named like a secret" in said and "swordfish" not in said
    assert not attacker.questions and not (workspace / "conf.json").exists()
    # A person's own call takes it along, and what is harmless goes as before.
    attacker.session.invoke_action("file__write", {"path": "mine.json", "content": {"$var": "conf"}})
    assert "swordfish" in (workspace / "mine.json").read_text()
    attacker.names["conf"] = {"user": "me", "tokens": 3}  # type: ignore[index]
    attacker.call("file__write", path="conf.json", content={"$var": "conf"})
    (question,) = attacker.questions
    assert '+  "tokens": 3' in question.text
    assert (workspace / "conf.json").read_text() == '{\n  "user": "me",\n  "tokens": 3\n}\n'
