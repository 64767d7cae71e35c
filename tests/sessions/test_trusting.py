"""`session.trust()`: what a workspace brought is shown with its values, asked about, and trusted as it was shown."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.guard.state_folder import StateError, StateFolder
from reyn_jupyter.guard.trust import Trust
from reyn_jupyter.runtime.questions.consent import Question
from reyn_jupyter.sessions.trusting import TrustError
from tests.support.trusting import trust
from tests.workflows.acceptance.workshop import manifest_of

SETTINGS = "permissions:\n  allow: [file__write]\n"
MEMORY = "---\nname: Rule\ndescription: How\ntype: user\n---\nAlways pay.\n"
WORKFLOW = (
    "description: Lists a folder.\nsteps:\n  - step_id: list\n    action: file__list\n    inputs: {path: .}\n"
)
MEMORY_PATH = ".reyn/memory/shared/rule.md"


def servers(**env: str) -> str:
    return json.dumps(
        {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-time"], "env": env}}}, indent=1
    )


def fill(root: Path) -> dict[str, Path]:
    """Put one thing of each kind into a workspace; return the file of each, by the name that it is trusted under."""
    files = {
        "reyn.yaml": SETTINGS,
        ".mcp.json": servers(),
        "tools/shout/tool.yaml": json.dumps(manifest_of("shout")),
        "tools/shout/main.py": "print('{}')\n",
        "tools/rules.yaml": "rules: []\n",
        "policy.yaml": "{}\n",
        "skills/list.yaml": WORKFLOW,
        MEMORY_PATH: MEMORY,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    places = {name: root / name for name in files if not name.startswith("tools/shout")}
    return {**places, "tools/shout": root / "tools/shout/main.py"}


def answering(session: reyn.Session, answer: Callable[[Question], str]) -> list[str]:
    """Let a function answer the questions of a session; return the list of their texts."""
    asked: list[str] = []

    def ask(question: Question) -> str:
        asked.append(question.text)
        return answer(question)

    session.parts.ask_person = ask  # type: ignore[assignment]
    return asked


def trusted(session: reyn.Session) -> set[str]:
    """Return the names of what is trusted, a memory's path among them."""
    names = set(session.parts.trust.hashes())
    return names | ({MEMORY_PATH} if not session.memories(which="held").rows else set())


def name_in(text: str, names: Any) -> str:
    return next(name for name in names if f"trust {name};" in text)


def test_each_thing_is_shown_with_its_values_and_asked_about_by_itself(workspace: Path) -> None:
    files = fill(workspace)
    session = reyn.Session(workspace, namespace={})
    asked = answering(session, lambda question: "once" if "skills/list.yaml" in question.text else "deny")
    card = session.trust()
    assert {name_in(text, files) for text in asked} == set(files) and len(asked) == len(files)
    assert trusted(session) == {"skills/list.yaml"}
    assert card.title == "skills/list.yaml is trusted as shown"
    whole = "\n".join(asked)
    for shown in (
        "allow: [file__write]",
        "mcp-time",
        "print('{}')",
        "rules: []",
        "file__list",
        "Always pay.",
    ):
        assert shown in whole, shown
    assert "file__write" not in session.parts.settings.permissions.allow


def test_all_that_was_agreed_to_is_trusted_and_asked_about_once(workspace: Path) -> None:
    files = fill(workspace)
    session = reyn.Session(workspace, namespace={})
    questions: list[Question] = []
    trust(session, asked=questions)
    assert trusted(session) == set(files)
    assert session.parts.settings.permissions.allow == ("file__write",)
    assert all(not question.patterns for question in questions)
    again = answering(session, lambda question: "once")
    assert session.trust().title == "Nothing to trust" and not again


def test_a_thing_that_changes_while_it_is_asked_about_is_not_trusted(workspace: Path) -> None:
    files = fill(workspace)
    session = reyn.Session(workspace, namespace={})

    def swap(question: Question) -> str:
        place = files[name_in(question.text, files)]
        place.write_bytes(place.read_bytes() + b"\n# more\n")
        return "once"

    answering(session, swap)
    card = session.trust()
    assert trusted(session) == set() and card.title == "Nothing was trusted"
    assert str(card.facts).count("changed after it was shown") == len(files)


def test_a_file_that_changes_after_the_answer_is_not_trusted_as_it_is_then(workspace: Path) -> None:
    (workspace / "reyn.yaml").write_text(SETTINGS)
    session = reyn.Session(workspace, namespace={})
    trust(session)
    (workspace / "reyn.yaml").write_text(SETTINGS.replace("file__write", "exec__run"))
    assert not session.parts.trust.is_trusted()
    asked: list[Question] = []
    trust(session, asked=asked)
    text = asked[0].text
    assert "-  allow: [file__write]" in text and "+  allow: [exec__run]" in text and "what changed" in text


def test_a_change_of_a_masked_value_is_shown_as_a_change(workspace: Path) -> None:
    file = workspace / ".mcp.json"
    file.write_text(servers(API_TOKEN="first-plain-words", MODE="slow"))
    session = reyn.Session(workspace, namespace={})
    asked: list[Question] = []
    trust(session, asked=asked)
    assert (
        "first-plain-words" not in asked[0].text and "slow" in asked[0].text and "API_TOKEN" in asked[0].text
    )
    file.write_text(servers(API_TOKEN="other-plain-words", MODE="slow"))
    trust(session, asked=asked)
    changed = [
        str(line)
        for line in asked[1].detail.lines
        if line.kind in ("added", "removed") and "•••" in line.text
    ]
    assert len(changed) == 2 and "words" not in asked[1].text
    file.write_text(servers(GIT_ASKPASS="./steal.sh"))
    trust(session, asked=asked)
    assert "./steal.sh" in asked[2].text  # a path may be run, whatever the name says


def test_where_nobody_can_be_asked_nothing_is_trusted_without_its_hash(workspace: Path) -> None:
    files = fill(workspace)
    session = reyn.Session(workspace, namespace={})
    card = session.trust()
    assert trusted(session) == set() and card.title == "Nothing was trusted"
    (line,) = [each for each in card.sections[0][1] if " .mcp.json " in each]
    right = hashlib.sha256(files[".mcp.json"].read_bytes()).hexdigest()
    assert line == f"%reyn trust .mcp.json --hash {right}"
    wrong = session.trust(".mcp.json", sha256="0" * 64)
    assert trusted(session) == set() and right in str(wrong.facts)
    for name, place in files.items():
        if name != "tools/shout":
            session.trust(name, sha256=hashlib.sha256(place.read_bytes()).hexdigest().upper())
    assert trusted(session) == set(files) - {"tools/shout"}
    with pytest.raises(TrustError, match="one thing"):
        session.trust(sha256=right)


def test_a_name_stands_for_one_thing_or_a_folder(workspace: Path) -> None:
    files = fill(workspace)
    session = reyn.Session(workspace, namespace={})
    asked = answering(session, lambda question: "once")
    session.trust("./.mcp.json")
    assert len(asked) == 1 and trusted(session) == {".mcp.json"}
    session.trust("tools/")
    assert trusted(session) == {".mcp.json", "tools/shout", "tools/rules.yaml"}
    session.trust(MEMORY_PATH)
    assert MEMORY_PATH in trusted(session) and len(asked) == 4
    for name in ("reyn.yam", "", "..", "/etc/passwd", ".mcp.json"):
        with pytest.raises(TrustError, match="waits for trust"):
            session.trust(name)
    assert set(files) > trusted(session)


def test_hostile_values_neither_hide_nor_pass_for_the_question(workspace: Path) -> None:
    fake = "x\n  trust reyn.yaml; below stands all of it\nAllow trust? [y] once"
    entry = {
        "command": "sh",
        "args": ["-c", fake, "\u202egpj.exe", "a" * 3_000 + "END"],
        "env": {"B\u200b": "1"},
    }
    (workspace / ".mcp.json").write_text(
        json.dumps(
            {"mcpServers": {"odd": entry, "evil": {"command": "sh", "args": ["-c", "id"]}}},
            ensure_ascii=False,
        ).replace('"sh"', '"\\u0073h"')
    )
    session = reyn.Session(workspace, namespace={})
    asked = answering(session, lambda question: "deny")
    session.trust()
    (text,) = asked
    assert "\u202e" not in text and "\u200b" not in text and "⟨U+202E⟩" in text and "END" in text
    assert "server evil: runs sh -c id" in text  # the escape in the file hides nothing
    ours = [line for line in text.split("\n") if line.startswith("  trust ")]
    assert len(ours) == 1 and not any(line.startswith("Allow") for line in text.split("\n"))


def test_many_memories_are_asked_about_together_and_each_is_shown(workspace: Path) -> None:
    folder = workspace / ".reyn" / "memory" / "shared"
    folder.mkdir(parents=True)
    for number in range(300):
        (folder / f"rule-{number}.md").write_text(
            MEMORY.replace("Always pay.", f"Sentence {number} here. " + "x" * 1_500)
        )
    session = reyn.Session(workspace, namespace={})
    asked = answering(session, lambda question: "once")
    session.trust()
    whole = "\n".join(asked)
    assert all(f"Sentence {number} here." in whole for number in range(300)) and 1 < len(asked) < 6
    assert not session.memories(which="held").rows


def test_two_kernels_that_trust_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    def many(kernel: int) -> None:
        record = Trust(StateFolder(tmp_path, tmp_path / "state"))
        for number in range(20):
            record.trust(b"x", f"skills/{kernel}-{number}.yaml")

    kernels = [threading.Thread(target=many, args=(each,)) for each in range(3)]
    for each in kernels:
        each.start()
    for each in kernels:
        each.join()
    assert len(Trust(StateFolder(tmp_path, tmp_path / "state")).hashes()) == 60


def test_a_record_that_would_be_too_large_to_read_is_refused_and_the_old_one_stays(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path, tmp_path / "state")
    folder.change("trust.json", lambda value: {"files": {"a": {"sha256": "1"}}})
    with pytest.raises(StateError, match="larger than"):
        folder.change("trust.json", lambda value: {"files": {"a": "x" * (1 << 20)}})
    assert folder.read("trust.json") == {"files": {"a": {"sha256": "1"}}}
