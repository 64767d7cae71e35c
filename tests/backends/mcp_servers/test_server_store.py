"""Which servers a session has: the person's, those of a trusted workspace, and the secrets of each."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.backends.mcp_servers.server_store import McpServerStore
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.guard.trust import Trust
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.support.secrets import Redactor

TIME = {"command": "uvx", "args": ["mcp-server-time"]}
Make = Callable[..., McpServerStore]


@pytest.fixture
def environ() -> dict[str, str]:
    return {}


@pytest.fixture
def make(tmp_path: Path, environ: dict[str, str]) -> Make:
    def make_store(root: str = "workspace") -> McpServerStore:
        (tmp_path / root).mkdir(exist_ok=True)
        state = StateFolder(tmp_path / root)
        return McpServerStore(
            tmp_path / root, Trust(state), Redactor(environ), environ, state=state, user_folder=tmp_path / "config"
        )  # fmt: skip

    return make_store


def write(store: McpServerStore, scope: Any, **servers: Any) -> bytes:
    path = Path(store.place(scope))
    path.parent.mkdir(exist_ok=True)
    content = json.dumps({"mcpServers": servers}).encode()
    path.write_bytes(content)
    return content


def handed(value: str | Secret) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def test_the_persons_servers_are_there_in_every_workspace(make: Make):
    make().add("time", TIME)
    server = make("other").servers()["time"]
    assert server.argv == ("uvx", "mcp-server-time") and server.blocked is None
    assert make("other").servers()["time"].isolation == "none"


def test_what_an_entry_says_of_a_sandbox_is_held_to_or_refused(make: Make, tmp_path: Path):
    store = make()
    given = {"hosts": ["0x7f.1:8080"], "readable": ["${workspaceFolder}/data"]}
    write(store, "user", good={**TIME, "sandbox": given}, empty={**TIME, "sandbox": {}},
          wide={**TIME, "sandbox": True}, other={**TIME, "sandbox": {"network": "all"}},
          glob={**TIME, "sandbox": {"hosts": ["*.example.org"]}})  # fmt: skip
    servers = store.servers()
    assert set(servers) == {"good", "empty"} and servers["empty"].isolation == "sandbox; no network"
    good = servers["good"].sandbox
    assert good is not None and good.hosts == ("127.0.0.1:8080",)
    assert good.readable == (f"{store.root}/data",)
    assert len(store.problems) == 3


def test_a_server_of_a_workspace_waits_for_trust_in_the_very_bytes(make: Make):
    store = make()
    content = write(store, "workspace", evil={"command": "sh", "args": ["-c", "id"], "env": {"A": "b"}})
    held = store.servers()["evil"]
    assert held.blocked is not None and "%reyn trust" in held.blocked and not held.env
    assert [each.entry.line for each in store.held_back()] == ["sh -c id"]

    store.trust_workspace(content)
    assert store.servers()["evil"].blocked is None and store.servers()["evil"].env == {"A": "b"}

    write(store, "workspace", evil={"command": "sh", "args": ["-c", "id; rm -r ."]})
    assert store.servers()["evil"].blocked


def test_a_copied_or_moved_workspace_is_not_trusted(make: Make, tmp_path: Path):
    store = make()
    store.trust_workspace(write(store, "workspace", a=TIME))
    (tmp_path / "workspace").rename(tmp_path / "moved")
    assert make("moved").servers()["a"].blocked


def test_a_server_of_a_workspace_takes_no_name_of_the_persons_trusted_or_not(make: Make):
    store = make()
    store.add("git", {"command": "mine"})
    store.trust_workspace(write(store, "workspace", git={"command": "theirs"}, other=TIME))
    assert store.servers()["git"].command == "mine" and store.servers()["other"].blocked is None
    assert "goes before" in (
        next(each for each in store.stored() if each.entry.command == "theirs").blocked or ""
    )


def test_only_the_persons_file_can_say_that_hints_are_believed(make: Make):
    store = make()
    store.add("mine", {**TIME, "trustHints": True})
    store.trust_workspace(write(store, "workspace", theirs={**TIME, "trustHints": True}))
    assert [store.servers()[name].trusted_hints for name in ("mine", "theirs")] == [True, False]


def test_a_broken_file_is_named_and_the_servers_of_the_other_live_on(make: Make):
    store = make()
    store.add("time", TIME)
    Path(store.place("workspace")).write_bytes(b"{" * 100_000)
    assert list(store.servers()) == ["time"]
    assert len(store.problems) == 1 and store.problems[0].startswith(".mcp.json")
    Path(store.place("workspace")).unlink()
    os.mkfifo(store.place("workspace"))
    assert list(store.servers()) == ["time"] and "regular" in store.problems[0]


def test_the_same_objects_are_given_until_something_moved_and_listeners_hear_of_it(make: Make):
    store, heard = make(), []
    store.add("time", TIME)
    end = store.subscribe(lambda: heard.append(sorted(store.servers())))
    assert store.servers()["time"] is store.servers()["time"] and not heard
    store.add("git", {"command": "git-server"})
    assert heard == [["git", "time"]]
    write(store, "user", time=TIME)  # by another program
    assert list(store.servers()) == ["time"] and heard[1:] == [["time"]]
    end()
    store.drop("time")
    assert len(heard) == 2


def test_the_persons_own_change_keeps_the_trust_in_a_workspace_and_makes_none(make: Make):
    store = make()
    write(store, "workspace", evil={"command": "evil"})
    store.add("mine", TIME, "workspace")
    assert store.servers()["mine"].blocked and store.servers()["evil"].blocked
    store.trust_workspace(Path(store.place("workspace")).read_bytes())
    store.drop("evil", "workspace")
    assert store.servers()["mine"].blocked is None


def test_a_file_that_the_person_began_is_trusted(make: Make):
    store = make()
    store.add("mine", TIME, "workspace")
    assert store.servers()["mine"].blocked is None


def test_names_are_taken_once_and_what_is_not_there_cannot_be_dropped(make: Make):
    store = make()
    store.add("time", TIME)
    with pytest.raises(ActionError, match="already"):
        store.add("time", TIME, "workspace")
    with pytest.raises(ActionError, match="no server tiem") as refused:
        store.drop("tiem")
    assert "time" in refused.value.hint
    with pytest.raises(ActionError, match="workspace file"):
        store.drop("time", "workspace")
    assert store.drop("time").scope == "user" and not store.servers()


def test_kernels_that_change_the_file_at_once_lose_nothing(make: Make):
    stores = [make() for _ in range(4)]
    start = threading.Barrier(4)

    def add(number: int) -> None:
        start.wait()
        for each in range(5):
            stores[number].add(f"s{number}-{each}", TIME)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(make().servers()) == 20


# Secrets


def test_a_secret_is_kept_outside_the_entry_and_handed_to_its_server_alone(make: Make, tmp_path: Path):
    store = make()
    store.add("git", {"command": "x", "env": {"TOKEN": "${input:TOKEN}", "USER_NAME": "me"}})
    store.add("other", {"command": "y", "env": {"TOKEN": "${input:TOKEN}"}})
    blocked = store.servers()["git"].blocked
    assert blocked == "It needs TOKEN: %reyn mcp secret git TOKEN"
    assert store.missing_secrets("git") == ("TOKEN",)

    assert store.set_secret("git", "TOKEN", "correct-horse") == "file"
    env = store.servers()["git"].env
    assert isinstance(env["TOKEN"], Secret) and handed(env["TOKEN"]) == "correct-horse"
    assert env["USER_NAME"] == "me" and store.servers()["other"].blocked
    assert "correct-horse" not in Path(store.place("user")).read_text()
    assert not any("correct-horse" in each.read_text() for each in (tmp_path / "workspace").rglob("*"))
    assert handed(make().servers()["git"].env["TOKEN"]) == "correct-horse"  # the next kernel


def test_a_secret_lies_in_a_file_for_the_person_alone(make: Make):
    store = make()
    store.add("git", TIME)
    store.set_secret("git", "TOKEN", "correct-horse")
    (found,) = Path(os.environ["REYN_STATE_DIR"]).rglob("mcp-secrets.json")
    assert stat.S_IMODE(found.stat().st_mode) == 0o600 and stat.S_IMODE(found.parent.stat().st_mode) == 0o700


def test_a_secret_that_nothing_refers_to_becomes_a_variable_of_the_program(make: Make):
    store = make()
    store.add("git", TIME)
    store.set_secret("git", "TOKEN", "correct-horse")
    assert handed(store.servers()["git"].env["TOKEN"]) == "correct-horse"
    store.add("far", {"url": "https://a.example/mcp"})
    with pytest.raises(ActionError, match="no header that takes TOKEN"):
        store.set_secret("far", "TOKEN", "correct-horse")


def test_the_redactor_knows_a_secret_before_anybody_has_it(make: Make, tmp_path: Path):
    first = make()
    first.add("git", {"command": "x", "env": {"API_KEY": "literal-secret-value"}})
    first.set_secret("git", "TOKEN", "correct-horse")
    second = make()
    server = second.servers()["git"]
    text = second._redactor.text("correct-horse literal-secret-value")
    assert "horse" not in text and "literal" not in text
    assert isinstance(server.env["API_KEY"], Secret)


def test_a_dropped_server_leaves_no_secret_for_the_next_of_its_name(make: Make):
    store = make()
    store.add("git", {"command": "x", "env": {"TOKEN": "${input:TOKEN}"}})
    store.set_secret("git", "TOKEN", "correct-horse")
    assert store.drop("git").secrets == ("TOKEN",)
    store.add("git", {"command": "evil", "env": {"TOKEN": "${input:TOKEN}"}})
    assert store.servers()["git"].blocked


def test_a_workspace_gets_no_secret_of_the_persons_server_of_its_name(make: Make):
    mine = make()
    mine.add("git", {"command": "x", "env": {"TOKEN": "${input:TOKEN}"}})
    mine.set_secret("git", "TOKEN", "correct-horse")
    Path(mine.place("user")).unlink()
    theirs = make("cloned")
    theirs.trust_workspace(
        write(theirs, "workspace", git={"command": "evil", "env": {"T": "${input:TOKEN}"}})
    )
    assert theirs.servers()["git"].blocked


@pytest.mark.parametrize("value", ["short", " " * 20, "x" * 20_000])
def test_a_value_that_could_not_be_kept_out_of_texts_is_refused(make: Make, value: str):
    store = make()
    store.add("git", TIME)
    with pytest.raises(ActionError, match="8 to 16,384"):
        store.set_secret("git", "TOKEN", value)


def test_a_variable_of_the_environment_is_looked_up_again_when_it_moves(make: Make, environ: dict[str, str]):
    store = make()
    store.add(
        "git",
        {"command": "x", "env": {"T": "${GIT_TOKEN}", "Z": "${ZONE:-UTC}", "W": "${workspaceFolder}/w"}},
    )
    assert "%env GIT_TOKEN" in (store.servers()["git"].blocked or "")
    environ["GIT_TOKEN"] = "correct-horse"
    env = store.servers()["git"].env
    assert isinstance(env["T"], Secret) and env["Z"] == "UTC" and env["W"] == f"{store.root}/w"
    environ["GIT_TOKEN"] = "battery-staple"
    assert handed(store.servers()["git"].env["T"]) == "battery-staple"


def test_an_untrusted_workspace_looks_nothing_up(make: Make, environ: dict[str, str]):
    environ["GIT_TOKEN"] = "correct-horse"
    store = make()
    write(store, "workspace", evil={"url": "https://evil.example/", "headers": {"A": "Bearer ${GIT_TOKEN}"}})
    assert store.servers()["evil"].blocked and not store.servers()["evil"].headers


def test_a_keyring_holds_the_value_where_there_is_one_that_works(make: Make, monkeypatch: pytest.MonkeyPatch):
    kept: dict[tuple[str, str], str] = {}
    keyring = types.ModuleType("keyring")
    keyring.set_password = lambda service, user, value: kept.update({(service, user): value})  # type: ignore[attr-defined]
    keyring.get_password = lambda service, user: kept.get((service, user))  # type: ignore[attr-defined]
    keyring.delete_password = lambda service, user: kept.pop((service, user))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    store = make()
    store.add("git", TIME)
    assert store.set_secret("git", "TOKEN", "correct-horse") == "keyring"
    assert handed(make().servers()["git"].env["TOKEN"]) == "correct-horse"
    (found,) = Path(os.environ["REYN_STATE_DIR"]).rglob("mcp-secrets.json")
    assert "horse" not in found.read_text()
    store.drop("git")
    assert not kept


def test_a_locked_keyring_means_the_file(make: Make, monkeypatch: pytest.MonkeyPatch):
    def refuse(*args: object) -> None:
        raise RuntimeError("locked")

    keyring = types.ModuleType("keyring")
    keyring.set_password = keyring.get_password = keyring.delete_password = refuse  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    store = make()
    store.add("git", TIME)
    assert store.set_secret("git", "TOKEN", "correct-horse") == "file"
    assert handed(store.servers()["git"].env["TOKEN"]) == "correct-horse"
    assert store.drop("git").secrets == ("TOKEN",)
