"""How often the files of a workspace are asked about whose they are: once a call, however many names it gives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import reyn_jupyter as reyn

_looked: list[str] = []
_listening = False


def _hear(event: str, args: tuple[object, ...]) -> None:
    if _listening and event == "os.scandir":
        _looked.append(str(args[0]))


sys.addaudithook(_hear)


@pytest.mark.parametrize(
    ("action", "args"), [("file__list", {"path": "data"}), ("file__glob", {"pattern": "data/*"})]
)
def test_many_names_are_one_question_about_trust(workspace: Path, action: str, args: dict[str, str]) -> None:
    global _listening  # a hook for audit events cannot be taken back
    (workspace / "skills").mkdir()
    (workspace / "data").mkdir(exist_ok=True)
    session = reyn.Session(workspace, store="memory", namespace={})
    looks = []
    for number in (2, 60):
        for at in range(number):
            (workspace / "data" / f"{at}.txt").write_text("x")
        assert session.invoke_action(action, args).ok
        _looked.clear()
        _listening = True
        assert session.invoke_action(action, args).ok
        _listening = False
        looks.append(sum(each.endswith("skills") for each in _looked))
    session.close()
    assert looks[0] == looks[1] > 0
