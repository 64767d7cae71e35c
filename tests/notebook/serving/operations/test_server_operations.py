"""The operations of MCP servers in the side panel: what is shown, asked before it is written, and pushed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter import Session
from reyn_jupyter.config import user_path
from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.notebook.serving.protocol import ServersChanged, ViewEvent
from reyn_jupyter.runtime.access.mcp_access import WATCHERS, McpServer, McpServerList
from reyn_jupyter.runtime.questions.approval_queue import VIEWERS, OpenQuestion, queue_of
from reyn_jupyter.runtime.questions.consent import PersonAnswer
from reyn_jupyter.sessions import current
from tests.notebook.serving.operations.test_run_operations import Ask, asking
from tests.notebook.serving.test_catalog_push import Page
from tests.support.mcp_oauth import sign_in_server
from tests.support.mcp_servers import PROGRAM, program
from tests.support.waiting import until

FILE = ".mcp.json"
CLONED = {"command": "sh", "args": ["-c", "id"], "env": {"T": "${OPENAI_API_KEY}", "A": "b"}}
OFF = {"action_retrieval": {"embedding_class": None}}  # whether search is on depends on no clock


@pytest.fixture
def session(workspace: Path) -> Iterator[Session]:
    made = Session(workspace, store="memory", config=OFF, namespace={})
    yield made
    made.close()


@pytest.fixture
def person(session: Session) -> Iterator[Callable[[PersonAnswer], list[str]]]:
    """Answers each question that is put from now on, and gives what they said."""
    said: list[str] = []
    answers: list[PersonAnswer] = ["deny"]

    class Viewer:
        def shows(self, in_cell: bool) -> bool:
            return True

        def question_asked(self, waiting: OpenQuestion) -> None:
            said.append(waiting.question.text)
            queue_of(waiting.id).answer(waiting.id, answers[-1])

        def question_settled(self, waiting: OpenQuestion) -> None:
            return None

    def answer(given: PersonAnswer) -> list[str]:
        answers.append(given)
        return said

    VIEWERS.append(viewer := Viewer())
    yield answer
    VIEWERS.remove(viewer)


def written() -> dict[str, Any]:
    path = user_path().parent / "mcp.json"
    found: dict[str, Any] = json.loads(path.read_text())["mcpServers"] if path.exists() else {}
    return found


def rows(ask: Ask) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in ask("servers.list")["servers"]}


def test_without_a_server_one_sentence_says_how_to_add_one(session: Session) -> None:
    page = asking(session)("servers.list")
    assert page["servers"] == [] and page["can_add"]
    assert page["empty"].count(".") == 1 and "add one here" in page["empty"]


def test_nothing_is_written_before_the_person_saw_the_command_line_and_said_yes(
    session: Session, person: Callable[[PersonAnswer], list[str]], workspace: Path
) -> None:
    ask = asking(session)
    said = person("deny")
    line = "./tool 'two words' --zone=UTC"
    assert "you said no" in ask("servers.add", name="mine", runs=line)["error"]
    assert written() == {} and len(said) == 1
    shown = f"{workspace}/tool 'two words' --zone=UTC"
    assert shown in said[0] and "mcp.json" in said[0] and "with your rights, without a sandbox" in said[0]
    person("once")
    assert "mine is added" in ask("servers.add", name=" mine ", runs=line)["said"]
    assert written()["mine"] == {"command": f"{workspace}/tool", "args": ["two words", "--zone=UTC"]}
    assert rows(ask)["mine"]["runs"] == shown and rows(ask)["mine"]["dropped_from"].endswith("mcp.json")
    assert "a server mine already" in ask("servers.add", name="mine", runs=line)["error"] and len(said) == 2

    person("deny")
    assert "you said no" in ask("servers.drop", name="mine")["error"] and "mine" in written()
    person("once")
    assert ask("servers.drop", name="mine")["said"] and written() == {}
    assert "forget its secrets" in said[-1]


def test_a_server_is_added_into_a_sandbox_or_at_an_address(
    session: Session, person: Callable[[PersonAnswer], list[str]], workspace: Path
) -> None:
    ask, said = asking(session), person("once")
    ask("servers.add", name="held", runs="my-server", sandbox=True)
    assert written()["held"]["sandbox"] == {"readable": [str(workspace)]}
    assert f"reads {workspace}" in said[-1] and "without a sandbox" not in said[-1]
    ask("servers.add", name="far", runs="https://docs.example.org/mcp")
    assert written()["far"] == {"type": "http", "url": "https://docs.example.org/mcp"}
    assert "https://docs.example.org/mcp" in said[-1]


@pytest.mark.parametrize(
    ("name", "runs", "said"),
    [
        ("", "uvx x", "is no name of a server"),
        ("a__b", "uvx x", "is no name of a server"),
        ("a", " ", "There is no command and no address yet"),
        ("a", "uvx 'x", "a quote without its end"),
        ("a", "cd x && uvx y", "No shell reads the line, so && would be a word"),
        ("a", "TZ=UTC uvx y", "%reyn mcp add NAME --env TZ=… -- COMMAND"),
        ("a", "ftp://a.example/mcp", "begins with https://"),
    ],
)
def test_what_cannot_be_a_server_is_refused_before_anybody_is_asked(
    session: Session, person: Callable[[PersonAnswer], list[str]], name: str, runs: str, said: str
) -> None:
    asked = person("once")
    assert said in asking(session)("servers.add", name=name, runs=runs)["error"]
    assert asked == [] and written() == {}


def test_the_next_step_is_the_line_that_does_it(session: Session, workspace: Path) -> None:
    ask = asking(session)
    store = session.parts.mcp_store
    assert store is not None
    store.add("git", {"command": "g", "env": {"TOKEN": "${input:TOKEN}"}})
    (workspace / FILE).write_text(json.dumps({"mcpServers": {"cloned": CLONED}}))
    found = rows(ask)
    assert found["git"]["gets"] == "the secret TOKEN"
    assert found["cloned"]["gets"] == "OPENAI_API_KEY of your environment"  # before anybody trusts it
    assert found["git"]["line"] == "%reyn mcp secret git TOKEN" and found["git"]["label"] == "Give TOKEN …"
    assert found["cloned"]["line"] == "%reyn trust" and found["cloned"]["origin"] == FILE
    assert not found["cloned"]["may_start"] and "is not trusted" in found["cloned"]["why"]
    assert any("held back" in each for each in ask("servers.list")["remarks"])
    assert "may not be started" in ask("servers.restart", name="cloned")["error"]


def test_a_server_that_wants_a_sign_in_offers_it(session: Session) -> None:
    ask = asking(session)
    store = session.parts.mcp_store
    assert store is not None
    with sign_in_server() as server:
        store.add("locked", {"type": "http", "url": server.entry().url})
        session.invoke_action("mcp__list_servers")
        row = rows(ask)["locked"]
    assert row["state"]["text"] == "needs sign-in" and row["line"] == "%reyn mcp login locked"


def served(workspace: Path, *servers: McpServer) -> Session:
    return Session(workspace, store="memory", config=OFF, namespace={}, mcp_servers=McpServerList(servers))


def test_calls_errors_and_the_log_are_shown_and_a_restart_begins_anew(workspace: Path) -> None:
    session = served(workspace, program())
    ask = asking(session)
    try:
        assert rows(ask)["lab"]["facts"] == "" and not ask("servers.list")["can_add"]
        session.invoke_action("mcp__call_tool", {"tool": "lab__echo", "tool_args": {"text": "on"}})
        session.invoke_action("mcp__call_tool", {"tool": "lab__crash", "tool_args": {}})
        found = rows(ask)["lab"]
        assert "2 calls · p50 " in found["facts"] and found["facts"].endswith(" · 1 error")
        assert found["state"]["text"] in ("idle", "waiting") and "Its program ended" in found["why"]
        assert "about to fall over" in ask("servers.log", name="lab")["lines"]
        assert ask("servers.restart", name="lab") == {"said": "lab runs."}
        assert rows(ask)["lab"]["state"] == {"text": "ready", "tone": "good"}
    finally:
        session.close()


def test_what_a_server_writes_is_bounded_masked_and_without_hidden_characters(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "correct-horse-battery")
    code = "import sys; sys.stderr.write('correct-horse-battery \\u202e\\x1b[2J<b>' + 'x' * 9000 + '\\n'); sys.exit(3)"
    session = served(workspace, McpServer("sick", "stdio", command=sys.executable, args=("-c", code)))
    ask = asking(session)
    try:
        session.invoke_action("mcp__list_servers")
        said = json.dumps([ask("servers.list"), ask("servers.log", name="sick")], ensure_ascii=False)
    finally:
        session.close()
    assert "correct-horse" not in said and "\u202e" not in said and "\x1b" not in said
    assert "⟨U+202E⟩" in said and len(said) < 6_000


def test_views_hear_of_a_server_that_starts_learns_writes_and_dies(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = served(workspace, program())
    monkeypatch.setattr(current, "_current", [session])
    hub, page = Hub(lambda: session), Page()

    def heard() -> int:
        events = [each.event for each in page.sent if isinstance(each, ViewEvent)]
        return sum(isinstance(each, ServersChanged) for each in events)

    def after(tool: str, **args: Any) -> None:
        before = heard()
        session.invoke_action("mcp__call_tool", {"tool": f"lab__{tool}", "tool_args": args})
        until(lambda: heard() > before)

    hub.join(page)
    try:
        after("echo", text="on")
        after("log", text="a line")
        after("grow", text="A trick.")
        after("crash")
        few = heard()
        for _ in range(1000):
            for watcher in WATCHERS:
                watcher(session.parts.services.mcp)
        assert heard() - few <= 2  # a storm is told together
    finally:
        hub.leave(page)
        session.close()


def test_a_server_of_a_file_starts_as_soon_as_somebody_looks(session: Session) -> None:
    ask = asking(session)
    store = session.parts.mcp_store
    assert store is not None
    store.add("lab", {"command": sys.executable, "args": ["-I", "-S", str(PROGRAM), "{}"]})
    assert ask("servers.restart", name="lab") == {"said": "lab runs."}
    assert rows(ask)["lab"]["facts"].startswith("2") and rows(ask)["lab"]["origin"] == "you"
