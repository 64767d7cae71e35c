"""Signing in to a remote server: by the person alone, at the right place, with tokens that stand nowhere."""

from __future__ import annotations

import getpass
import json
import re
import signal
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.backends.mcp_servers.sign_in_store import KeptSignIn
from reyn_jupyter.config import user_path
from reyn_jupyter.runtime.access.mcp_access import McpServer, McpServerList
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.sessions import sign_ins
from tests.support.mcp_http import http_server
from tests.support.mcp_oauth import SignInServer, browser, follow, sign_in_server

Make = Callable[..., reyn.Session]


@pytest.fixture(scope="module")
def shared() -> Iterator[SignInServer]:
    with sign_in_server() as server:
        yield server


@pytest.fixture
def locked(shared: SignInServer) -> Iterator[SignInServer]:
    yield shared
    shared.control("both", life=3600, iss=None, metadata={}, resource_metadata={}, challenge="", documents={})


@pytest.fixture
def make(workspace: Path) -> Iterator[Make]:
    made: list[reyn.Session] = []

    def session(*servers: McpServer, **options: Any) -> reyn.Session:
        source = McpServerList(servers) if servers else None
        made.append(reyn.Session(workspace, store="memory", namespace={}, mcp_servers=source, **options))
        return made[-1]

    yield session
    for each in made:
        each.close()


class Person:
    """Signs in, at the prompt of the test's own process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pages: list[str] = []
        self.answer = "y"
        self.questions: list[str] = []
        self.pastes: list[str] = []
        self.does: Callable[[str], Any] = lambda address: follow(browser(address))
        monkeypatch.setattr("sys.stdout.write", self._read)
        monkeypatch.setattr("builtins.input", self._asked)
        monkeypatch.setattr(getpass, "getpass", lambda prompt: self.pastes.pop(0))

    def _read(self, text: str) -> int:
        found = re.search(r"^http\S+/authorize\?\S+$", text, re.MULTILINE)
        if found:
            self.pages.append(text)
            threading.Thread(target=self.does, args=(found[0],)).start()
        return len(text)

    def _asked(self, prompt: str) -> str:
        self.questions.append(prompt)
        return self.answer


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Person:
    return Person(monkeypatch)


def called(session: reyn.Session, server: str = "locked") -> Any:
    return session.invoke_action("mcp__call_tool", {"tool": f"{server}__bearer", "tool_args": {}})


def listed(session: reyn.Session, server: str = "locked") -> Any:
    return session.invoke_action("mcp__list_tools", {"server": server})


def sign_in(session: reyn.Session, **options: Any) -> Any:
    return sign_ins.sign_in(session.parts, "locked", **options)


def signed_in(session: reyn.Session, person: Person) -> reyn.Session:
    sign_in(session)
    assert listed(session).error is None
    return session


def test_a_server_behind_a_sign_in_says_so_and_no_call_begins_one(make: Make, locked: SignInServer):
    session = make(locked.entry())
    before = len(locked.control()["paths"])
    refused = listed(session)
    assert refused.code == "sign_in_needed" and "%reyn mcp login locked" in refused.payload["hint"]
    [row] = session.mcp.rows
    assert row["state"] == "needs sign-in" and "%reyn mcp login locked" in row["last message"]
    assert session.parts.services.mcp.log("locked")[-1] == "[reyn] it needs a sign-in"
    [said] = session.invoke_action("mcp__list_servers").value
    assert said["state"] == "needs sign-in"
    assert set(locked.control()["paths"][before:]) == {"/mcp"}  # no metadata, no registration


def test_the_browser_comes_back_to_a_port_of_this_machine(make: Make, locked: SignInServer, person: Person):
    session = make(locked.entry())
    assert listed(session).code == "sign_in_needed"
    card = sign_in(session)
    assert card.title == "Signed in to locked" and f"127.0.0.1:{locked.port}" in person.pages[0]
    assert called_after_listing(session).value == "Bearer at-"
    assert locked.control()["resources"][-1] == f"http://127.0.0.1:{locked.port}/mcp"
    assert not person.questions  # it signs in at the server's own host


def called_after_listing(session: reyn.Session) -> Any:
    assert listed(session).error is None
    return called(session)


def test_a_pasted_address_signs_in_and_another_one_does_not(make: Make, locked: SignInServer, person: Person):
    session = make(locked.entry())
    ready = threading.Event()

    def does(address: str) -> None:
        there = browser(address)
        person.pastes += [
            there.replace("127.0.0.1", "evil.example"),
            re.sub("state=[^&]+", "state=x", there),
            there,
        ]
        ready.set()

    person.does = does
    waiting = person.pastes
    prompts: list[str] = []

    def getpass_now(prompt: str) -> str:
        prompts.append(prompt)
        assert ready.wait(100)
        return waiting.pop(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(getpass, "getpass", getpass_now)
        sign_in(session, paste=True)
    assert not waiting and listed(session).error is None
    assert "must begin with http://127.0.0.1" in prompts[1] and "another sign-in" in prompts[2]


def test_an_answer_of_another_sign_in_is_passed_over(make: Make, locked: SignInServer, person: Person):
    def does(address: str) -> None:
        there = browser(address)
        with pytest.raises(OSError, match="404"):
            follow(re.sub("state=[^&]+", "state=forged", there))
        follow(there)

    person.does = does
    sign_in(make(locked.entry()))


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "another issuer": ({"metadata": {"issuer": "https://evil.example"}}, "issuer mismatch"),
    "an answer of another issuer": ({"iss": "https://evil.example"}, "iss mismatch"),
    "no PKCE": ({"metadata": {"code_challenge_methods_supported": None}}, "PKCE"),
    "weak PKCE": ({"metadata": {"code_challenge_methods_supported": ["plain"]}}, "PKCE"),
    "tokens over http": (
        {"metadata": {"token_endpoint": "http://evil.example/token"}},
        "http, and not https",
    ),
    "a page over http": ({"metadata": {"authorization_endpoint": "http://evil.example/a"}}, "not https"),
    "a page with a user": (
        {"metadata": {"authorization_endpoint": "https://bank.example@evil.example/a"}},
        "user's name",
    ),
    "another resource": ({"resource_metadata": {"resource": "https://evil.example/mcp"}}, "does not match"),
    "a flood": ({"metadata": {"flood": 1}}, "more than 1 MiB"),
    "a door inside": (
        {"resource_metadata": {"authorization_servers": ["https://169.254.169.254"]}},
        "inside a network",
    ),
    "a door by redirect": ({"metadata": {"redirect": "http://169.254.169.254/latest"}}, "names no"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_metadata_ends_the_sign_in(make: Make, locked: SignInServer, person: Person, kind: str):
    settings, said = HOSTILE[kind]
    locked.control(**settings)
    session = make(locked.entry())
    with pytest.raises(ActionError, match=said):
        sign_in(session, seconds=200)
    assert listed(session).code == "sign_in_needed"


def test_another_host_is_asked_about_before_it_is_asked(make: Make, locked: SignInServer, person: Person):
    with sign_in_server() as other:
        locked.control(resource_metadata={"authorization_servers": [f"http://127.0.0.1:{other.port}"]})
        person.answer = "n"
        with pytest.raises(ActionError, match="you said no"):
            sign_in(make(locked.entry()))
        assert f"127.0.0.1:{other.port}" in person.questions[0] and not other.control()["paths"]


def test_nobody_signs_in_in_time(make: Make, locked: SignInServer, person: Person):
    person.does = browser
    with pytest.raises(ActionError, match="nobody signed in within"):
        sign_in(make(locked.entry()), seconds=0.05)


def test_an_interrupt_ends_the_sign_in_and_its_port(make: Make, locked: SignInServer, person: Person):
    ports: list[int] = []

    def does(address: str) -> None:
        ports.append(int(re.findall(r"127\.0\.0\.1%3A(\d+)%2Fcallback", address)[0]))
        signal.raise_signal(signal.SIGINT)

    person.does = does
    with pytest.raises(KeyboardInterrupt):
        sign_in(make(locked.entry()))
    with socket.socket() as tried:
        assert tried.connect_ex(("127.0.0.1", ports[0])) != 0


def test_a_workspace_that_is_not_trusted_starts_no_sign_in(
    make: Make, locked: SignInServer, person: Person, workspace: Path
):
    entry = {"locked": {"type": "http", "url": locked.entry().url}}
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": entry}))
    before = len(locked.control()["paths"])
    with pytest.raises(ActionError, match="is not trusted"):
        sign_in(make())
    assert len(locked.control()["paths"]) == before and not person.pages


def test_a_token_that_ended_is_renewed_by_one_of_two_sessions(
    make: Make, locked: SignInServer, person: Person
):
    first = signed_in(make(locked.entry()), person)
    second = make(locked.entry())
    assert listed(second).error is None
    before = locked.control("access")["refreshed"]
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda each=each: found.append(called(each))) for each in (first, second)
    ]  # type: ignore[misc]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert [each.error for each in found] == [None, None]
    assert locked.control()["refreshed"] == before + 1


def test_a_token_is_renewed_before_it_is_sent_once_its_time_is_over(
    make: Make, locked: SignInServer, person: Person
):
    locked.control(life=1)
    session = make(locked.entry())
    sign_in(session)
    before = locked.control(life=3600)["refreshed"]
    assert called_after_listing(session).error is None
    assert locked.control()["refreshed"] == before + 1


def test_a_sign_in_that_was_taken_back_needs_another(make: Make, locked: SignInServer, person: Person):
    session = signed_in(make(locked.entry()), person)
    locked.control("both")
    refused = called(session)
    assert refused.code == "sign_in_needed" and session.mcp.rows[0]["state"] == "needs sign-in"
    sign_in(session)
    assert called_after_listing(session).error is None


def test_an_authorization_server_in_trouble_does_not_end_the_sign_in(
    make: Make, locked: SignInServer, person: Person
):
    session = signed_in(make(locked.entry()), person)
    assert session.parts.sign_in is not None
    place = session.parts.sign_in(locked.entry())
    kept = place.read()
    assert isinstance(kept, KeptSignIn)
    place.write(replace(kept, token_endpoint="http://127.0.0.1:9/token"))
    locked.control("access")
    assert "could not be renewed" in str(called(session).error)
    place.write(kept)
    assert called(session).error is None


def test_a_host_that_a_rule_denies_renews_no_token_and_signs_nobody_in(
    make: Make, locked: SignInServer, person: Person
):
    session = signed_in(make(locked.entry()), person)
    strict = make(locked.entry(), config={"permissions": {"deny": ["*(network:localhost)"]}})
    assert listed(strict).error is None and session.parts.sign_in is not None
    place = session.parts.sign_in(locked.entry())
    kept = place.read()
    assert kept is not None
    place.write(replace(kept, token_endpoint=kept.token_endpoint.replace("127.0.0.1", "localhost")))
    before = locked.control("access")["refreshed"]
    refused = str(called(strict).error)
    assert "localhost" in refused and "a rule of yours denies it" in refused
    assert locked.control()["refreshed"] == before
    assert called(session).error is None and locked.control()["refreshed"] == before + 1
    stricter = make(locked.entry(), config={"permissions": {"deny": ["*(network:127.0.0.1)"]}})
    with pytest.raises(ActionError, match="a rule of yours denies it"):
        sign_in(stricter)


def test_an_address_of_a_document_is_the_client_where_the_server_takes_that(
    make: Make, locked: SignInServer, person: Person
):
    document = "https://client.example/reyn.json"
    locked.control(metadata={"client_id_metadata_document_supported": True})
    registered = locked.control(documents={document: {"redirect_uris": ["http://127.0.0.1/callback"]}})[
        "clients"
    ]
    session = make(locked.entry())
    sign_in(session, client={"client_id": document}, seconds=200)
    assert called_after_listing(session).error is None
    assert f"client_id={quote(document, safe='')}" in person.pages[0]
    assert locked.control()["clients"] == registered  # none was registered
    locked.control("access")
    assert called(session).error is None  # and renewed as this client


def test_more_rights_are_asked_for_by_the_person_alone(make: Make, locked: SignInServer, person: Person):
    session = signed_in(make(locked.entry()), person)
    locked.control(challenge="admin")
    refused = called(session)
    assert refused.code == "sign_in_needed" and "more rights" in str(refused.error)
    locked.control(challenge="")
    sign_in(session)
    assert sorted(locked.control()["scopes"][-1]) == ["admin", "use"]


def test_signing_out_takes_tokens_back_and_dropping_forgets(make: Make, locked: SignInServer, person: Person):
    session = make()
    entry = {"type": "http", "url": locked.entry().url}
    session.parts.mcp_store.add("locked", entry)  # type: ignore[union-attr]
    signed_in(session, person)
    card = sign_ins.sign_out(session.parts, "locked")
    assert ("tokens", "taken back") in card.facts and locked.control()["revoked"]
    assert called(session).code in ("sign_in_needed", "tool_unknown")
    sign_in(session)
    session.parts.mcp_store.drop("locked")  # type: ignore[union-attr]
    session.parts.mcp_store.add("locked", entry)  # type: ignore[union-attr]
    assert listed(session).code == "sign_in_needed"


def test_tokens_stand_in_one_file_and_go_to_one_server(
    make: Make, locked: SignInServer, person: Person, workspace: Path
):
    with http_server() as other:
        session = make()
        store = session.parts.mcp_store
        assert store is not None
        store.add("locked", {"type": "http", "url": locked.entry().url})
        store.add("far", {"type": "http", "url": other.entry().url})
        card = sign_in(session)
        assert called_after_listing(session).error is None
        listed(session, "far")
        seen = session.invoke_action("mcp__call_tool", {"tool": "far__headers", "tool_args": {}})
        assert seen.value == ""
        # Another address under the same name gets nothing either.
        store.drop("far")
        path = user_path().parent / "mcp.json"
        path.write_text(json.dumps({"mcpServers": {"locked": {"type": "http", "url": other.entry().url}}}))
        listed(session)
        seen = session.invoke_action("mcp__call_tool", {"tool": "locked__headers", "tool_args": {}})
        assert seen.value == ""
        tokens = locked.control()["tokens"][-2:]
        assert all("redacted" in session.parts.redactor.text(f"it is {each}.") for each in tokens)
        assert not any(each in f"{card}{person.pages}{session.mcp}" for each in tokens)
        holding = [
            file
            for folder in (user_path().parent.parent, workspace)
            for file in folder.rglob("*")
            if file.is_file() and any(each.encode() in file.read_bytes() for each in tokens)
        ]
        assert [file.name for file in holding] == ["mcp-sign-ins.json"]
        assert stat.S_IMODE(holding[0].stat().st_mode) == 0o600
