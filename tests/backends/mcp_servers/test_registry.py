"""Asking a registry: what is kept, what is refused, and what happens without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reyn_jupyter.backends.mcp_servers import registry as registry_module
from reyn_jupyter.backends.mcp_servers.registry import DAY, Registry, RegistryError, describe
from reyn_jupyter.backends.mcp_servers.server_entry import EntryError
from tests.support.registry import FAR, WEATHER, RegistryServer, said


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running


async def test_a_search_and_a_server_come_from_the_published_routes(server: RegistryServer):
    registry = Registry(server.url)
    found, answer = await registry.search("weather & more")
    assert found == [] and answer.why_old is None
    found, _ = await registry.search("weather")
    assert found == [WEATHER]
    manifest, _ = await registry.latest("com.example/far")
    assert manifest == FAR
    assert server.asked == [
        "/v0.1/servers?search=weather+%26+more&limit=20&version=latest",
        "/v0.1/servers?search=weather&limit=20&version=latest",
        "/v0.1/servers/com.example%2Ffar/versions/latest",
    ]


async def test_an_answer_is_kept_for_a_day_and_an_older_one_only_helps_out(
    server: RegistryServer, tmp_path: Path
):
    now = 1_000_000.0
    registry = Registry(server.url, tmp_path / "kept", lambda: now)
    await registry.latest(WEATHER["name"])
    await registry.latest(WEATHER["name"])
    assert len(server.asked) == 1
    now += DAY + 1
    await registry.latest(WEATHER["name"])
    assert len(server.asked) == 2
    now += DAY + 1
    server.answer = lambda path: (503, {}, b"")
    manifest, answer = await registry.latest(WEATHER["name"])
    assert manifest == WEATHER and answer.at == now - DAY - 1
    assert "cannot be reached: it answered 503" in (answer.why_old or "")
    again = Registry(server.url, tmp_path / "kept", lambda: now)  # another kernel, later
    assert (await again.latest(WEATHER["name"]))[1].why_old


async def test_without_the_registry_a_clear_error_says_so(tmp_path: Path):
    with RegistryServer() as gone:
        url = gone.url
    with pytest.raises(RegistryError, match="cannot be reached") as offline:
        await Registry(url, tmp_path).search("x")
    assert offline.value.code == "registry_offline" and "mcp.registry" in offline.value.hint


async def test_a_server_that_hangs_ends_with_the_limit(
    server: RegistryServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(registry_module, "SECONDS", 0.2)
    server.answer = lambda path: (200, {"Content-Length": "1000"}, b"{")
    with pytest.raises(RegistryError, match="cannot be reached"):
        await Registry(server.url).search("x")


@pytest.mark.parametrize(
    ("answer", "said_of_it"),
    [
        ((200, {}, b"<html>"), "is no JSON"),
        ((200, {}, b"[" * 100_000), "is no JSON"),
        ((200, {}, b"x" * (3 << 20)), "larger than 2 MiB"),
        ((302, {"Location": "http://169.254.169.254/"}, b""), "not followed"),
        ((403, {}, b""), "answered 403"),
        (said({"servers": "none"}), "no list of servers"),
        (said([]), "no list of servers"),
    ],
)
async def test_a_registry_that_answers_something_else_is_refused(server, answer, said_of_it, tmp_path):
    server.answer = lambda path: answer
    with pytest.raises(RegistryError, match=said_of_it):
        await Registry(server.url, tmp_path / "kept").search("x")
    assert len(server.asked) == 1 and not list(tmp_path.rglob("*.json"))


async def test_servers_of_odd_names_are_left_out_of_a_search(server: RegistryServer):
    odd = [{"name": name} for name in ("-x/--y", "a/b c", "a/b\u202e", "a/" + "b" * 300, "plain", 3)]
    server.answer = lambda path: said(
        {"servers": [*({"server": each} for each in odd), 7, {"server": WEATHER}]}
    )
    assert (await Registry(server.url).search("x"))[0] == [WEATHER]


async def test_another_server_than_the_one_that_was_asked_for_is_refused(server: RegistryServer):
    server.answer = lambda path: said({"server": FAR})
    with pytest.raises(RegistryError, match="in place of"):
        await Registry(server.url).latest(WEATHER["name"])


@pytest.mark.parametrize(
    "text", ["../../admin", "a/b?x=1", "a/b/c", "--x/y", "a/ b", "a/b\n", "", "ä/b", "a/" + "b" * 300]
)
async def test_an_id_that_is_none_asks_nobody(server: RegistryServer, text: str):
    with pytest.raises(EntryError, match="is no id"):
        await Registry(server.url).latest(text)
    assert not server.asked


async def test_a_server_that_is_not_there_is_said_so(server: RegistryServer):
    with pytest.raises(RegistryError, match="no such server") as refused:
        await Registry(server.url).latest("com.example/none")
    assert refused.value.code == "not_in_registry"


async def test_a_damaged_kept_answer_is_asked_for_again(server: RegistryServer, tmp_path: Path):
    registry = Registry(server.url, tmp_path)
    await registry.search("weather")
    for path in tmp_path.glob("*.json"):
        path.write_bytes(b'{"at": "yesterday", "value": []}')
    assert (await registry.search("weather"))[0] == [WEATHER] and len(server.asked) == 2


async def test_only_so_many_answers_are_kept(
    server: RegistryServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(registry_module, "MOST_KEPT", 3)
    registry = Registry(server.url, tmp_path)
    for text in "abcde":
        await registry.search(text)
    assert len(list(tmp_path.glob("*.json"))) == 3


@pytest.mark.parametrize(
    "address",
    ["http://registry.example", "ftp://a.example", "https://u:p@a.example", "", "https://a.example?x=1"],
)
def test_an_address_in_clear_or_with_more_than_a_host_is_refused(address: str):
    with pytest.raises(EntryError, match=r"mcp\.registry"):
        Registry(address)


def test_what_a_server_says_of_itself_is_one_bounded_line():
    assert describe({"description": "a\n\u202eb" + "c" * 1000}).startswith("a ⟨U+202E⟩bccc")
    assert len(describe({"description": "c" * 1000})) <= 300 and describe({"description": 3}) == ""
