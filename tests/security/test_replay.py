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


def test_what_no_rule_denies_comes_from_the_record(workspace: Path) -> None:
    (workspace / "old.csv").write_text(LINE + "\n")
    session, _ = scripted(workspace, invoke("file__read", path="old.csv"), "There is one.", store="files")
    first = session.ask("which orders are there?")
    (workspace / "old.csv").unlink()
    assert LINE in session.replay(first.run).calls[0].finished.output
