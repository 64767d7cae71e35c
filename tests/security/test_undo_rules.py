"""An undo is no way around a rule: each restore is judged as the write or the deletion that it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.guard.file_restore import UndoRefusedError
from reyn_jupyter.models.scripted import ScriptedModel
from tests.security.security_support import invoke


@pytest.fixture
def changed(workspace: Path) -> Path:
    """A workspace in which a run wrote over one file, made another one and deleted a third."""
    (workspace / "archive").mkdir()
    (workspace / "notes.txt").write_text("before\n")
    (workspace / "archive" / "old.txt").write_text("before\n")
    session = reyn.Session(workspace, store="files", namespace={})
    calls = [
        invoke("file__write", path="notes.txt", content="after\n"),
        invoke("file__write", path="archive/new.txt", content="after\n"),
        invoke("file__delete", path="archive/old.txt"),
    ]
    trace = session.ask("go", model=ScriptedModel(calls, "done"), approve="all")
    assert all(call.ok for call in trace.calls)
    return workspace


def texts(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text()
        for path in (root / "notes.txt", *sorted((root / "archive").iterdir()))
    }


def undo(root: Path, *deny: str) -> None:
    """Undo the run in a session with rules, whose person says yes."""
    session = reyn.Session(root, config={"permissions": {"deny": deny}}, store="files", namespace={})
    session.parts.ask_person = lambda question: "once"
    session.undo(session.parts.runs.ids()[-1])


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("*(archive/**)", "archive/"),
        ("file__write(archive/**)", "archive/old.txt"),
        ("file__delete(archive/**)", "archive/new.txt"),
        ("*(delete:**)", "archive/new.txt"),
        ("file__write", ""),
        ("*", ""),
    ],
)
def test_what_a_rule_denies_is_not_restored_nor_is_anything_else(changed: Path, rule: str, path: str) -> None:
    before = texts(changed)
    with pytest.raises(UndoRefusedError) as refused:
        undo(changed, rule)
    assert rule in str(refused.value) and path in str(refused.value)
    assert "nothing was undone" in str(refused.value) and "Take the rule back" in str(refused.value)
    assert texts(changed) == before


@pytest.mark.parametrize("rule", ["*(other/**)", "file__edit", "*(read:**)", "file__read"])
def test_what_no_rule_denies_is_restored(changed: Path, rule: str) -> None:
    undo(changed, rule)
    assert texts(changed) == {"notes.txt": "before\n", "archive/old.txt": "before\n"}


def test_the_place_that_is_judged_is_the_one_that_a_link_leads_to_now(changed: Path) -> None:
    (changed / "archive").rename(changed / "frozen")
    (changed / "archive").symlink_to("frozen")
    with pytest.raises(UndoRefusedError, match=r"frozen/\*\*"):
        undo(changed, "*(frozen/**)")
    assert (changed / "frozen" / "new.txt").exists()
