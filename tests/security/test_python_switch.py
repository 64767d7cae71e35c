"""Attacks on the switch of Python: files of a workspace, models, studies and rules that try to get code run."""

from __future__ import annotations

from pathlib import Path

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Purity
from reyn_jupyter.categories.python import categories
from reyn_jupyter.config import Settings
from reyn_jupyter.evaluation.plan.folder_services import services_in
from reyn_jupyter.evaluation.trial.confinement import trial_policy
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.models.scripted import ScriptedModel
from tests.security.security_support import Attacker, invoke
from tests.support.trusting import trust


def test_python_is_hidden_and_refused_until_it_is_switched_on(tmp_path: Path) -> None:
    names: dict[str, object] = {}
    attacker = Attacker(tmp_path, {"allow": ["*", "python__run"]}, names, answer="once")
    session = attacker.session
    assert "python" not in session.catalog.category_names
    assert "not available" in attacker.call("python__run", code="x = 1")
    result = session.invoke_action("python__run", {"code": "x = 1"})
    assert "%reyn python on" in str(result.error) + str(result.payload)
    assert "python__run" not in str(session.search_actions("run python code").payload)
    assert names == {} and attacker.questions == []


def test_it_is_hidden_again_once_it_is_switched_off(tmp_path: Path) -> None:
    names: dict[str, object] = {}
    attacker = Attacker(tmp_path, {}, names, answer="once")
    assert "Python in this kernel is on" in str(attacker.session.python("on"))
    attacker.call("python__run", code="x = 1")
    attacker.session.python("off")
    assert "not available" in attacker.call("python__run", code="y = 1")
    assert names.get("x") == 1 and "y" not in names


def test_switching_off_while_the_question_is_open_stops_the_call(tmp_path: Path) -> None:
    names: dict[str, object] = {}
    session = reyn.Session(tmp_path, store="memory", namespace=names)
    session.python("on")

    def off_then_yes(question: object) -> str:
        session.parts.services.python.on = False
        return "once"

    session.parts.ask_person = off_then_yes  # type: ignore[assignment]
    trace = session.ask("go", model=ScriptedModel(invoke("python__run", code="x = 1"), "done"))
    assert trace.answer == "done" and "x" not in names
    assert not trace.calls[0].ok


@pytest.mark.parametrize(
    "text",
    [
        "python: true\n",
        "python:\n  on: true\n",
        "permissions:\n  allow: ['python__run', '*']\n",
        "categories: [python]\n",
    ],
)
def test_no_file_of_a_workspace_switches_it_on_trusted_or_not(tmp_path: Path, text: str) -> None:
    (tmp_path / "reyn.yaml").write_text(text)
    for _ in range(2):
        try:
            session = reyn.Session(tmp_path, store="memory", namespace={})
        except reyn.config.ConfigError:
            return
        assert not session.parts.services.python.on
        assert "python" not in session.catalog.category_names
        trust(session)


def test_sessions_have_a_switch_each(tmp_path: Path) -> None:
    one, other = (reyn.Session(tmp_path, store="memory", namespace={}) for _ in range(2))
    one.python("on")
    assert "python" in one.catalog.category_names and "python" not in other.catalog.category_names


def test_no_trial_runs_python_whatever_is_approved(tmp_path: Path) -> None:
    (category,) = categories(services_in(Workspace(tmp_path)))
    assert category.hidden() is not None
    policy = trial_policy(Settings.model_validate({"permissions": {"allow": ["*"]}}))
    for approve in ("ask", "read", "all"):
        assert policy.decide("python__run", Purity.UNKNOWN, (), "model", approve).decision == "deny"  # type: ignore[arg-type]


def test_an_always_is_never_kept_for_code(tmp_path: Path) -> None:
    names: dict[str, object] = {}
    attacker = Attacker(tmp_path, {}, names, answer="always")
    attacker.session.python("on")
    assert "Denied" in attacker.call("python__run", code="x = 1")
    assert list(attacker.session.parts.approvals) == []
    assert "x" not in names


def test_a_replay_does_not_run_code_again(tmp_path: Path) -> None:
    names: dict[str, object] = {"ran": []}
    attacker = Attacker(tmp_path, {}, names, answer="once")
    attacker.session.python("on")
    trace, _ = attacker.trace(invoke("python__run", code="ran.append(1)"))
    again = attacker.session.replay(trace.run)
    assert names["ran"] == [1] and again.calls[0].ok
