"""`%reyn mcp` and `%reyn trust`: what a person sees of servers, and how they change which there are."""

from __future__ import annotations

import getpass
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.config import user_path
from reyn_jupyter.notebook.displays.mime import mimebundle
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.sessions import current
from reyn_jupyter.sessions.result_objects import Card, Table
from reyn_jupyter.support.secret import Secret
from tests.support.registry import RegistryServer
from tests.support.trusting import trust

Run = Callable[[str], str]
EVIL = {
    "mcpServers": {
        "evil": {"command": "sh", "args": ["-c", "id"], "env": {"T": "${OPENAI_API_KEY}", "A": "b"}}
    }
}


def table() -> Table:
    return current.session().mcp


def _html(shown: Table) -> str:
    return str(mimebundle(shown)["text/html"])


def rows() -> dict[str, dict[str, Any]]:
    return {row["server"]: row for row in table()}


def written() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((user_path().parent / "mcp.json").read_text())["mcpServers"]
    return found


def test_without_servers_the_table_says_how_to_get_one(run: Run):
    assert "%reyn mcp add NAME -- COMMAND" in run("%reyn mcp")


def test_a_command_after_two_hyphens_is_kept_word_by_word(run: Run):
    run("%reyn mcp add time --env TZ=UTC,LEVEL=a,b -- uvx mcp-server-time --local-timezone 'Europe/Berlin x'")
    assert written() == {
        "time": {
            "command": "uvx",
            "args": ["mcp-server-time", "--local-timezone", "Europe/Berlin x"],
            "env": {"TZ": "UTC", "LEVEL": "a,b"},
        }
    }
    row = rows()["time"]
    assert (row["state"], row["from"], row["calls"]) == ("idle", "you", 0)
    assert "%reyn list mcp" in table().note, "how it starts"
    assert row["runs"] == "uvx mcp-server-time --local-timezone 'Europe/Berlin x'"


def test_a_program_is_added_with_what_it_gets_in_its_sandbox(run: Run):
    line = "%reyn mcp add mine --sandbox --read data,. --write out --host HTTPS://Api.Example.org/v1 -- my-server"
    run(line)
    given = {"hosts": ["api.example.org"], "readable": ["data", "."], "writable": ["out"]}
    assert written()["mine"]["sandbox"] == given
    assert rows()["mine"]["isolation"] == "sandbox; reads data, .; writes out; reaches api.example.org"
    run("%reyn mcp add alone --sandbox -- my-server")
    assert written()["alone"]["sandbox"] == {} and rows()["alone"]["isolation"] == "sandbox; no network"
    assert "no sandbox holds it" in run("%reyn mcp add far --sandbox --url https://a.example/mcp")


def test_a_program_of_the_workspace_is_meant_wherever_the_entry_is_read(run: Run, workspace: Path):
    run("%reyn mcp add mine -- ./server.sh --fast")
    assert written()["mine"]["command"] == f"{workspace}/server.sh"
    run("%reyn mcp add theirs --scope workspace -- ./server.sh")
    shared = json.loads((workspace / ".mcp.json").read_text())
    assert shared["mcpServers"]["theirs"]["command"] == "./server.sh" and rows()["theirs"]["state"] == "idle"


def test_an_address_is_kept_with_its_headers(run: Run):
    run(
        '%reyn mcp add docs --url https://a.example/mcp --header "X-Region: eu,Authorization: Bearer ${input:KEY}"'
    )
    assert written()["docs"] == {
        "type": "http",
        "url": "https://a.example/mcp",
        "headers": {"X-Region": "eu", "Authorization": "Bearer ${input:KEY}"},
    }
    assert rows()["docs"]["state"] == "blocked"
    assert rows()["docs"]["last message"] == "It needs KEY: %reyn mcp secret docs KEY"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%reyn mcp add", "Add which server?"),
        ("%reyn mcp add time", "either a command after --, or --url"),
        ("%reyn mcp add time --url https://a.example -- uvx x", "either a command after --, or --url"),
        ("%reyn mcp add a__b -- x", "is no name of a server"),
        ("%reyn mcp add time --url ftp://a.example", "begins with https://"),
        ("%reyn mcp add git --env GITHUB_TOKEN=ghp_x -- git-server", "%reyn mcp secret git GITHUB_TOKEN"),
        ("%reyn mcp add far --url https://a.example --header 'Authorization: Bearer x'", "${input:API_KEY}"),
        ("%reyn mcp add time --env TZ -- x", "has no '='"),
        ("%reyn mcp drop nobody", "There is no server nobody"),
        ("%reyn mcp log nobody", "There is no server nobody"),
        ("%reyn mcp secret nobody KEY", "There is no server 'nobody'"),
        ("%reyn mcp secret nobody KEY value-on-the-line", "not written into a line"),
        ("%reyn mcp import /none.json", "cannot be read"),
        ("%reyn mcp ad time", "Did you mean %reyn mcp add time?"),
        ("%reyn mcp remove time", "Did you mean %reyn mcp drop time?"),
        ("%reyn mcp tools time", "%reyn list mcp --filter time"),
        ("%reyn mcp add https://a.example/mcp", "%reyn mcp add NAME --url https://a.example/mcp"),
        ("%reyn mcp search", "%reyn mcp search weather"),
        ("%reyn mcp install", "%reyn mcp install io.github.user/weather"),
    ],
)
def test_a_line_that_cannot_be_done_says_what_to_write(run: Run, line: str, said: str):
    assert said in run(line)
    assert not (user_path().parent / "mcp.json").exists()


def test_an_address_after_the_name_is_one_and_a_server_s_name_is_known(run: Run):
    run("%reyn mcp add docs https://a.example/mcp")
    assert written()["docs"] == {"type": "http", "url": "https://a.example/mcp"}
    assert "%reyn mcp log docs" in run("%reyn mcp docs")


def test_a_misspelt_server_is_answered_with_the_nearest_one(run: Run):
    run("%reyn mcp add weather https://a.example/mcp")
    for verb in (
        "log wether",
        "drop wether",
        "secret wether KEY",
        "login wether",
        "logout wether",
        "restart wether",
    ):
        said = run(f"%reyn mcp {verb}")
        assert "wether" in said and "did you mean 'weather'?" in said and "?." not in said, verb


def test_the_registry_is_searched_and_a_server_of_it_installed_after_a_question(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    asked: list[str] = []
    answer: list[Answer] = ["deny"]

    def ask(question: Question) -> Answer:
        asked.append(question.text)
        return answer[-1]

    with RegistryServer() as registry:
        run(f"%reyn config mcp.registry {registry.url}")
        monkeypatch.setattr(current.session().parts, "ask_person", ask)
        # A search by hand is the person's own; what is written, and from where, is asked.
        found = run("%reyn mcp search weather")
        assert "io.github.example/weather" in found and "%reyn mcp install SERVER" in found
        assert "Denied" in run("%reyn mcp install io.github.example/weather")
        assert not (user_path().parent / "mcp.json").exists()
        answer.append("once")
        said = run("%reyn mcp install io.github.example/weather")
        assert "%reyn mcp secret weather WEATHER_API_KEY" in said
        assert "uvx weather-mcp-server@1.2.0 serve" in asked[-1] and "mcp.json" in asked[-1]
    run("%reyn mcp install npm:@acme/tool@1.2")
    assert written()["tool"]["args"] == ["-y", "@acme/tool@1.2"] and "npx -y @acme/tool@1.2" in asked[-1]


def test_a_restart_says_why_a_server_does_not_come(run: Run):
    run("%reyn mcp add gone -- no-such-program")
    said = run("%reyn mcp restart gone")
    assert "no-such-program is not installed" in said and "Error" not in said
    run("%reyn mcp add runner --env PATH=/nowhere -- uvx mcp-server-time")
    assert "uvx is not installed: pip install uv brings it" in run("%reyn mcp restart runner")
    assert "no MCP server 'nobody'" in run("%reyn mcp restart nobody")


def test_a_dropped_server_is_gone(run: Run):
    run("%reyn mcp add time -- uvx mcp-server-time")
    assert "time" not in run("%reyn mcp drop time") and not rows()


def test_a_secret_is_asked_for_and_stands_nowhere(run: Run, monkeypatch: pytest.MonkeyPatch, workspace: Path):
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return "correct-horse"

    monkeypatch.setattr(getpass, "getpass", ask)
    run("%reyn mcp add git --env 'TOKEN=${input:TOKEN}' -- git-server")
    said = run("%reyn mcp secret git")  # the one that it needs
    assert asked == ["TOKEN for the MCP server git: "] and "git alone" in said and "horse" not in said
    store = current.session().parts.mcp_store
    assert store is not None
    handed = store.servers()["git"].env["TOKEN"]
    assert isinstance(handed, Secret) and handed.reveal() == "correct-horse"
    assert current.session().parts.redactor.text("correct-horse") == "[redacted:TOKEN]"
    assert not any(b"horse" in each.read_bytes() for each in workspace.rglob("*") if each.is_file())


def test_where_nobody_can_be_asked_a_secret_is_not_kept(run: Run, monkeypatch: pytest.MonkeyPatch):
    def refuse(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr(getpass, "getpass", refuse)
    run("%reyn mcp add git -- git-server")
    assert "Nobody can be asked" in run("%reyn mcp secret git TOKEN")


# A workspace's own file


def test_a_cloned_file_is_held_back_shown_and_named_by_trust(
    run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-correct-horse-battery")
    (workspace / ".mcp.json").write_text(json.dumps(EVIL))
    assert rows()["evil"]["state"] == "blocked" and "1 server of .mcp.json held back" in table().note
    status = dict(current.session().status.sections)
    said = "evil: runs sh -c id; sets A; without a sandbox; gets OPENAI_API_KEY of your environment"
    assert status["Servers of .mcp.json that wait until you say %reyn trust"] == (said,)

    card = trust(current.session())
    assert isinstance(card, Card) and card.title == ".mcp.json is trusted as shown"
    assert (
        dict(card.facts)["server evil"]
        == "runs sh -c id; sets A; without a sandbox; gets OPENAI_API_KEY of your environment"
    )
    assert rows()["evil"]["state"] == "idle" and rows()["evil"]["from"] == ".mcp.json"

    EVIL["mcpServers"]["evil"]["args"] = ["-c", "id; id"]
    (workspace / ".mcp.json").write_text(json.dumps(EVIL))
    assert rows()["evil"]["state"] == "blocked"


def test_trust_names_the_file_that_it_is_for(run: Run, workspace: Path):
    assert trust(current.session()).title == "Nothing to trust"
    (workspace / "reyn.yaml").write_text("llm_log: on\n")
    assert trust(current.session()).title == "reyn.yaml is trusted as shown"
    (workspace / ".mcp.json").write_text(json.dumps(EVIL))
    assert trust(current.session()).title == ".mcp.json is trusted as shown"


def test_a_broken_file_is_named_once_and_is_not_trusted(run: Run, workspace: Path):
    run("%reyn mcp add time -- uvx mcp-server-time")
    (workspace / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x", "command": "y"}}}')
    assert list(rows()) == ["time"] and "'command' is there twice" in table().note
    assert any("'command' is there twice" in each for each in current.session().problems)
    assert "cannot be used" in dict(trust(current.session()).facts)


def test_hostile_words_of_a_file_are_shown_as_text_and_refused(run: Run, workspace: Path):
    (workspace / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"a": {"command": "<img src=x onerror=alert(1)>", "args": ["'; id"]},
                                   "b": {"command": "x\u202e"}, "\x1b[2Jc": {"command": "x"}}})
    )  # fmt: skip
    row = rows()["a"]
    assert row["runs"] == "'<img src=x onerror=alert(1)>' ''\"'\"'; id'" and list(rows()) == ["a"]
    html = _html(table())
    assert "<img src=x" not in html and "&lt;img" in html
    assert table().note.isprintable()


# Other clients


def test_an_import_shows_what_it_would_take_before_it_takes_it(run: Run, tmp_path: Path):
    path = tmp_path / "claude_desktop_config.json"
    path.write_text(
        json.dumps({"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]},
                                   "git": {"command": "g", "env": {"API_KEY": "correct-horse"}},
                                   "old": {"type": "sse", "url": "https://a.example"}}})
    )  # fmt: skip
    said = run(f"%reyn mcp import {path}")
    assert "uvx mcp-server-time" in said and "left out" in said and "--take takes 2 servers" in said
    assert "correct-horse" not in said and not (user_path().parent / "mcp.json").exists()

    assert "no server none to take" in run(f"%reyn mcp import {path} none --take")
    run(f"%reyn mcp import {path} git --take")
    assert list(written()) == ["git"] and "correct-horse" not in (user_path().parent / "mcp.json").read_text()
    assert rows()["git"]["state"] == "idle"
    run(f"%reyn mcp import {path} --take")
    assert list(written()) == ["git", "time"]


def test_each_state_stands_in_a_badge(run: Run):
    run("%reyn mcp add time -- uvx mcp-server-time")
    run('%reyn mcp add docs --url https://a.example/mcp --header "Authorization: Bearer ${input:KEY}"')
    badges = re.findall(r'class="[^"]*badge[^"]*"[^>]*>([^<]+)<', _html(table()))
    assert sorted(badges) == ["blocked", "idle"]


def test_only_a_remote_server_is_signed_in_to(run: Run):
    run("%reyn mcp add time -- uvx mcp-server-time")
    assert "nothing to sign in to" in run("%reyn mcp login time")
    run('%reyn mcp add docs --url https://a.example/mcp --header "Authorization: Bearer ${input:KEY}"')
    assert "%reyn mcp secret docs KEY" in run("%reyn mcp login docs")
    assert "There was no sign-in" in run("%reyn mcp logout docs")
    run("%reyn mcp add plain --url http://a.example/mcp")
    assert "http, and not https" in run("%reyn mcp login plain")


def test_completion_knows_words_servers_and_missing_secrets(run: Run):
    from reyn_jupyter.notebook.verbs.mcp import VERB, WORDS

    run("%reyn mcp add git --env 'TOKEN=${input:TOKEN}' -- git-server")
    complete = VERB.completes
    assert complete is not None
    session = current.session()
    assert complete(session, [], "") == list(WORDS[1:])
    assert complete(session, ["drop"], "") == ["git"] and complete(session, ["secret", "git"], "") == [
        "TOKEN"
    ]
