"""A rule holds for every file that is opened, not only for the folder that a call names.

Each test is an attack that a model makes under a rule of the person's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.models.scripted import ScriptedModel
from tests.security.security_support import Attacker, invoke

DENY = {"deny": ["*(archive/**)"]}
ASK = {"ask": ["*(archive/**)"]}


@pytest.fixture
def archive(workspace: Path) -> Path:
    """A workspace with a folder that the rules of these tests are about."""
    folder = workspace / "archive" / "deep"
    folder.mkdir(parents=True)
    (folder.parent / "old.csv").write_text("name,salary\nAnn,99123\n")
    (folder / "older.csv").write_text("name,salary\nBo,99124\n")
    (workspace / "plain.csv").write_text("name,salary\nCy,100\n")
    return workspace


BROAD: list[tuple[str, dict[str, Any]]] = [
    ("file__grep", {"pattern": "99"}),
    ("file__grep", {"pattern": "salary", "path": "."}),
    ("file__grep", {"pattern": "99", "path": "archive"}),
    ("file__grep", {"pattern": "99", "path": "./archive/"}),
    ("file__grep", {"pattern": "99", "glob": "archive/**"}),
    ("file__grep", {"pattern": "99", "glob": "archive/*.csv"}),
    ("file__glob", {"pattern": "**/*.csv"}),
    ("file__glob", {"pattern": "*.csv"}),
    ("file__glob", {"pattern": "archive/*"}),
    ("file__glob", {"pattern": "*", "path": "archive"}),
    ("file__list", {"path": "archive"}),
]


@pytest.mark.parametrize("rules", [DENY, ASK])
@pytest.mark.parametrize(("action", "args"), BROAD)
def test_a_search_of_a_folder_leaves_out_what_a_rule_is_about_and_says_how_much(
    archive: Path, rules: Mapping[str, Any], action: str, args: dict[str, Any]
) -> None:
    attacker = Attacker(archive, rules, answer="deny")
    said = attacker.call(action, **args)
    assert "old.csv" not in said and "older.csv" not in said and "99123" not in said and "Bo" not in said
    assert "left out" in said and ("denies" if rules is DENY else "consent") in said
    assert attacker.questions == []


@pytest.mark.parametrize("listed", ["deny", "ask"])
@pytest.mark.parametrize(
    "rule", ["file__read(archive/**)", "file__read(read:archive/**)", "file__*(archive/**)"]
)
@pytest.mark.parametrize(("action", "args"), BROAD)
def test_a_rule_about_reading_holds_for_every_search(
    archive: Path, listed: str, rule: str, action: str, args: dict[str, Any]
) -> None:
    attacker = Attacker(archive, {listed: [rule]}, answer="deny")
    said = attacker.call(action, **args)
    assert "old.csv" not in said and "older.csv" not in said and "99123" not in said and "Bo" not in said
    assert "left out" in said and attacker.questions == []


@pytest.mark.parametrize(
    ("action", "args"),
    [
        ("file__grep", {"pattern": "99", "path": "archive/old.csv"}),
        ("file__glob", {"pattern": "*", "path": "archive/old.csv"}),
        ("table__query", {"sql": "FROM t", "sources": {"t": "archive/old.csv"}}),
    ],
)
def test_a_rule_about_reading_holds_for_whatever_opens_a_file(
    archive: Path, action: str, args: dict[str, Any]
) -> None:
    denied = Attacker(archive, {"deny": ["file__read(archive/**)"]}, answer="once")
    said = denied.call(action, **args)
    assert "99123" not in said and "the rule file__read(archive/**) denies" in said and denied.questions == []
    asked = Attacker(archive, {"ask": ["file__read(archive/**)"]}, answer="deny")
    assert "99123" not in asked.call(action, **args) and len(asked.questions) == 1
    asked.answer = "once"
    assert "old.csv" in asked.call(action, **args) or action == "table__query"


@pytest.mark.parametrize("listed", ["deny", "ask"])
@pytest.mark.parametrize("path", ["archive", "archive/pay.md", "."])
def test_an_import_of_memories_leaves_out_the_notes_that_a_rule_is_about(
    archive: Path, listed: str, path: str
) -> None:
    (archive / "archive" / "pay.md").write_text("---\nname: Old pay\n---\nAnn earns 99123 a year.\n")
    attacker = Attacker(archive, {listed: ["file__read(archive/**)"]}, answer="once")
    said = attacker.calls(
        invoke("memory_operation__import", path=path, dry_run=True),
        invoke("memory_operation__import", path=path),
        invoke("memory_operation__list"),
    )
    assert "99123" not in said and "Old pay" not in said and "a rule does not allow reading it" in said


def test_what_loosens_file_read_loosens_no_other_action(archive: Path) -> None:
    rules = {"ask": ["*(archive/**)"], "allow": ["file__read(archive/**)"]}
    attacker = Attacker(archive, rules, answer="deny")
    attacker.session.parts.approvals.add("file__read(archive/**)")
    assert "99123" in attacker.call("file__read", path="archive/old.csv") and attacker.questions == []
    assert "99123" not in attacker.call("file__grep", pattern="99", path="archive/old.csv")
    assert len(attacker.questions) == 1


def test_a_rule_about_writing_is_about_one_action_and_one_by_kind_about_all(archive: Path) -> None:
    """What docs/permissions.md says of `file__write(…)` beside `*(write:…)`."""
    edit = {"path": "archive/old.csv", "old_string": "Ann", "new_string": "Di"}
    named = Attacker(archive, {"deny": ["file__write(archive/**)"]}, answer="once")
    assert "Denied" not in named.call("file__edit", **edit)
    by_kind = Attacker(archive, {"deny": ["*(write:archive/**)"]}, answer="once")
    assert "Denied" in by_kind.call("file__edit", **{**edit, "old_string": "Di"})
    assert "Denied" not in by_kind.call("file__delete", path="archive/old.csv")
    every = Attacker(archive, {"deny": ["*(archive/**)"]}, answer="once")
    assert "Denied" in every.call("file__delete", path="archive/deep/older.csv")


def test_what_no_rule_is_about_is_still_found(archive: Path) -> None:
    attacker = Attacker(archive, DENY)
    assert "plain.csv:1:name,salary" in attacker.call("file__grep", pattern="salary")
    assert "plain.csv" in attacker.call("file__glob", pattern="*.csv")
    listed = json.loads(attacker.call("file__list", path="."))
    assert {entry["name"] for entry in listed["entries"]} >= {"plain.csv", "archive", "data"}


@pytest.mark.parametrize("path", ["archive/old.csv", "./archive//old.csv", "archive/OLD.csv", "link.csv"])
@pytest.mark.parametrize(
    ("action", "args"),
    [
        ("file__read", {}),
        ("file__grep", {"pattern": "99"}),
        ("table__query", {"sql": "FROM t"}),
        ("file__edit", {"old_string": "Ann", "new_string": "Bo"}),
        ("file__edit", {"old_string": "name;salary", "new_string": "x"}),
    ],
)
def test_a_single_file_that_a_rule_denies_is_not_opened(
    archive: Path, path: str, action: str, args: dict[str, Any]
) -> None:
    (archive / "link.csv").symlink_to("archive/old.csv")
    attacker = Attacker(archive, DENY, answer="once")
    given = {**args, "sources": {"t": path}} if action == "table__query" else {**args, "path": path}
    said = attacker.call(action, **given)
    assert "99123" not in said and "salary" not in said.replace("name;salary", "")
    assert (archive / "archive" / "old.csv").read_text() == "name,salary\nAnn,99123\n"


def test_a_single_file_is_asked_about_and_read_once_the_person_says_yes(archive: Path) -> None:
    attacker = Attacker(archive, ASK, answer="once")
    assert "99123" in attacker.call("file__grep", pattern="Ann", path="archive/old.csv")
    assert "99123" in attacker.call("file__read", path="archive/old.csv")
    assert "99123" in attacker.call("table__query", sql="FROM t", sources={"t": "archive/old.csv"})
    assert len(attacker.questions) == 3


def test_a_yes_to_a_whole_search_is_a_yes_to_its_files_but_not_to_those_of_another_rule(
    archive: Path,
) -> None:
    attacker = Attacker(archive, {"ask": ["file__grep", "file__grep(archive/deep/**)"]}, answer="once")
    said = attacker.call("file__grep", pattern="99")
    assert "99123" in said and "99124" not in said and "1 file left out" in said
    assert len(attacker.questions) == 1
    attacker = Attacker(archive, {"ask": ["file__grep(**)"]}, answer="once")
    assert "99124" in attacker.call("file__grep", pattern="99")


def test_an_always_for_a_folder_lets_its_files_into_a_broad_search(archive: Path) -> None:
    attacker = Attacker(archive, ASK)
    attacker.session.parts.approvals.add("file__grep(archive/**)")
    assert "99124" in attacker.call("file__grep", pattern="99")


def test_a_missing_file_hints_at_no_name_that_a_rule_denies(archive: Path) -> None:
    said = Attacker(archive, DENY).call("file__read", path="old.csv")
    assert "archive" not in said


def test_a_run_that_only_reads_leaves_out_what_would_ask(archive: Path) -> None:
    attacker = Attacker(archive, ASK)
    trace = attacker.session.ask(
        "go",
        model=ScriptedModel(invoke("file__grep", pattern="99"), "done"),
        approve="read",
    )
    finished = trace.calls[-1].finished
    assert finished is not None and "99123" not in finished.output and "2 files left out" in finished.output


@pytest.mark.parametrize("rules", [{"deny": ["file__read(archive/**)"]}, {"ask": ["file__read(archive/**)"]}])
@pytest.mark.parametrize("answer", ["deny", "once"])
@pytest.mark.parametrize(
    "change",
    [
        {"old_string": "Ann,99124", "new_string": "x"},
        {"old_string": "n", "new_string": "x"},
        {"old_string": "Ann, 99123", "new_string": "x"},
    ],
)
def test_an_edit_quotes_nothing_of_a_file_that_may_not_be_read(
    archive: Path, rules: Mapping[str, Any], answer: Any, change: dict[str, str]
) -> None:
    attacker = Attacker(archive, rules, answer=answer)
    said = attacker.call("file__edit", path="archive/old.csv", **change)
    assert len(attacker.questions) == 1  # and only then anything is told
    assert "99123" not in said and "nearest" not in said and "times" not in said and "words occur" not in said
    assert ("Denied" in said) == (answer == "deny")


def test_an_edit_of_a_file_that_may_be_read_is_put_right_without_a_question(archive: Path) -> None:
    attacker = Attacker(archive, answer="once")
    said = attacker.call("file__edit", path="plain.csv", old_string="Cy;100", new_string="x")
    assert "Cy,100" in said and attacker.questions == []
