"""A replay answers nothing from an old run that a rule denies today, and the trace says which rule."""

from __future__ import annotations

from pathlib import Path

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel
from tests.end_to_end.e2e_support import invoke, scripted

LINE = "order 17, 4111 euro"


@pytest.mark.parametrize("on_another_model", [False, True])
@pytest.mark.parametrize("rule", ["file__read(archive/**)", "*(archive/**)", "file__read"])
def test_what_a_rule_denies_today_is_not_taken_from_the_record(
    workspace: Path, rule: str, on_another_model: bool
) -> None:
    (workspace / "archive").mkdir()
    (workspace / "archive" / "old.csv").write_text(LINE + "\n")
    before, _ = scripted(
        workspace, invoke("file__read", path="archive/old.csv"), "There is one.", store="files"
    )
    first = before.ask("which orders are there?")
    assert LINE in first.calls[0].finished.output

    later = reyn.Session(workspace, config={"permissions": {"deny": [rule]}})
    other = ScriptedModel(invoke("file__read", path="archive/old.csv"), "None.") if on_another_model else None
    again = later.replay(first.run, model=other)
    (call,) = again.calls
    assert call.ok is False
    assert LINE not in call.finished.output
    assert rule in call.finished.output
    assert (call.decision.decision, call.decision.by, call.decision.pattern) == ("denied", "policy", rule)
    if other is not None:
        assert not any(LINE in message.content for request in other.requests for message in request.messages)


@pytest.mark.parametrize(
    ("action", "args", "secret"),
    [
        ("file__grep", {"pattern": "order"}, LINE),
        ("file__grep", {"pattern": "order", "path": "archive"}, LINE),
        ("file__glob", {"pattern": "**/*.csv"}, "old.csv"),
        ("file__list", {"path": "archive"}, "old.csv"),
    ],
)
@pytest.mark.parametrize("rule", ["*(archive/**)", "file__read(ARCHIVE/old.csv)", "*(read:**/*.csv)"])
def test_a_search_of_a_folder_is_made_again_where_a_rule_is_about_something_in_it(
    workspace: Path, action: str, args: dict[str, str], secret: str, rule: str
) -> None:
    (workspace / "archive").mkdir()
    (workspace / "archive" / "old.csv").write_text(LINE + "\n")
    before, _ = scripted(workspace, invoke(action, **args), "There is one.", store="files")
    first = before.ask("which orders are there?")
    assert secret in first.calls[0].finished.output

    later = reyn.Session(workspace, config={"permissions": {"deny": [rule]}})
    (call,) = later.replay(first.run).calls
    assert call.ok and secret not in call.finished.output and "left out" in call.finished.output


def test_a_rule_about_another_folder_leaves_the_record_as_it_is(workspace: Path) -> None:
    (workspace / "old.csv").write_text(LINE + "\n")
    (workspace / "data").mkdir(exist_ok=True)
    (workspace / "data" / "x.csv").write_text(LINE + "\n")
    call = invoke("file__grep", pattern="order", path="data")
    before, _ = scripted(workspace, call, "There is one.", store="files")
    first = before.ask("which orders are there?")
    (workspace / "data" / "x.csv").unlink()
    rules = {"permissions": {"deny": ["*(archive/**)", "file__write", "*(network:example.org)"]}}
    later = reyn.Session(workspace, config=rules)
    assert LINE in later.replay(first.run).calls[0].finished.output


def test_what_no_rule_denies_comes_from_the_record(workspace: Path) -> None:
    (workspace / "old.csv").write_text(LINE + "\n")
    session, _ = scripted(workspace, invoke("file__read", path="old.csv"), "There is one.", store="files")
    first = session.ask("which orders are there?")
    (workspace / "old.csv").unlink()
    assert LINE in session.replay(first.run).calls[0].finished.output
