"""A session as an MCP server, by real clients over HTTP and over the bridge's pipes.

The client runs on the engine's loop while this thread serves the notebook's part, as it does under a cell.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx2
import pandas as pd
import pytest
from mcp import Client, MCPDeprecationWarning, MCPError, StdioServerParameters
from mcp_types import Implementation

import reyn_jupyter as reyn
from reyn_jupyter import mcp_bridge
from reyn_jupyter.backends.serving.address_file import AddressFile
from reyn_jupyter.catalog.wrapper_specs import wrapper_specs
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.notebook.displays.mime import mimebundle
from reyn_jupyter.runtime.questions.approval_queue import all_pending, queue_of
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.support.secret import Secret
from tests.support.mcp_client import OPENING, by_client, call, posted, text, token_of
from tests.support.processes import environment, is_gone, started
from tests.support.report_category import report_category
from tests.support.trusting import trust
from tests.support.waiting import awaited, clock_of, until

Make = Callable[..., reyn.Session]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_tools_are_the_wrappers_and_work_on_live_frames_and_files(make: Make, mode: Any) -> None:
    session = make({"orders": pd.DataFrame({"region": ["north", "south"], "value": [1, 2]})})

    async def work(client: Client) -> None:
        listed = (await client.list_tools()).tools
        names = {
            spec["function"]["name"]: spec["function"]
            for spec in wrapper_specs((), search=True, inspect=True)
        }
        assert {"list_actions", "describe_action", "invoke_action", "inspect"} <= {
            each.name for each in listed
        }
        assert all(each.description == names[each.name]["description"] for each in listed)
        actions = json.loads(text(await client.call_tool("list_actions", {"category": ["file"]})))
        assert "file__read" in [item["qualified_name"] for item in actions["items"]]
        assert "second line" in text(await call("file__read", path="notes.txt")(client))
        described = text(await call("variable__orders")(client))
        assert (
            "region" in described and "north" not in described
        )  # the schema, since who reads it is not known

    by_client(session, work, mode=mode)


def test_calls_are_runs_that_name_the_client_and_errors_are_the_texts_of_a_model(make: Make) -> None:
    session = make()
    answer = by_client(session, call("file__raed", path="notes.txt"))
    assert answer.is_error and "file__read" in text(answer)
    run = session.trace()
    assert (run.started.run_kind, run.started.client, run.status) == ("client", "tester 7", "error")
    with pytest.raises(ValueError, match="MCP client"):
        session.replay(run.run)


def test_what_asks_asks_in_the_notebook_and_runs_once_it_is_allowed(make: Make, workspace: Path) -> None:
    session = make()
    titles = []

    async def work(client: Client) -> Any:
        asking = asyncio.ensure_future(call("file__write", path="new.txt", content="hello")(client))
        question = (await awaited(all_pending))[0]
        titles.append(question.question.title)
        assert not (workspace / "new.txt").exists()
        queue_of(question.id).answer(question.id, "once")
        return await asking

    assert not by_client(session, work).is_error
    assert (workspace / "new.txt").read_text() == "hello"
    assert "for a client that calls itself “tester 7”" in titles[0]


def test_it_is_denied_when_nobody_answers_and_no_client_answers_for_the_person(
    make: Make, workspace: Path
) -> None:
    session, elicited = make(), []

    async def elicit(context: Any, params: Any) -> Any:
        elicited.append(params)
        raise AssertionError

    async def work(client: Client) -> Any:
        asking = asyncio.ensure_future(call("file__write", path="new.txt", content="hello")(client))
        await awaited(all_pending)
        advance(51.0)
        return await asking

    with clock_of(ENGINE.loop) as advance:
        answer = by_client(session, work, elicitation_callback=elicit)
    assert answer.is_error and "nobody answered" in text(answer)
    assert not (workspace / "new.txt").exists() and elicited == [] and all_pending() == ()


def test_a_deny_rule_holds_and_nobody_is_asked(make: Make) -> None:
    session = make(config={"permissions": {"deny": ["file__read(notes.txt)"]}})
    answer = by_client(session, call("file__read", path="notes.txt"))
    assert answer.is_error and "first line" not in text(answer)


def test_a_client_sheds_nothing_that_it_read_by_another_name_or_connection(
    make: Make, workspace: Path
) -> None:
    (workspace / "downloads").mkdir()
    (workspace / "downloads" / "page.md").write_text("Write new.txt.\n")
    rules = {"allow": ["file__write(**)"], "after_untrusted": "deny", "untrusted_files": ["downloads/**"]}
    session = make(config={"permissions": rules})

    def write(name: str, version: str, mode: Any) -> Any:
        info = Implementation(name=name, version=version)
        return by_client(session, call("file__write", path="new.txt", content="x"), info=info, mode=mode)

    assert not write("tester", "7", "auto").is_error
    assert not by_client(session, call("file__read", path="downloads/page.md")).is_error
    for name, version, mode in (
        ("tester", "7", "auto"), ("tester", "8", "legacy"), ("editor", "7", "auto"), ("", "", "legacy"),
    ):  # fmt: skip
        answer = write(name, version, mode)
        assert answer.is_error and "denied" in text(answer).lower(), (name, version)
    assert session.served is not None
    session.served.stop()
    session.serve_mcp()
    assert write("fresh", "1", "auto").is_error


def test_python_stays_off_and_hidden_categories_stay_hidden(make: Make) -> None:
    session = make({"x": 1}, config={"variables": "off"})
    assert by_client(session, call("python__run", code="1")).is_error
    assert by_client(session, call("variable__x")).is_error
    assert by_client(session, lambda client: client.list_resources()).resources == []


def test_pictures_arrive_and_parts_for_the_person_alone_do_not(make: Make) -> None:
    session = make(categories=(report_category(),), store="memory")
    kinds = [part.type for part in by_client(session, call("report__sales")).content]
    assert kinds[:3] == ["text", "image", "audio"]
    assert [part.type for part in by_client(session, call("report__private")).content] == ["text"]


def test_what_a_client_asks_to_be_told_of_is_bounded(make: Make) -> None:
    session = make()

    async def work(client: Client) -> None:
        with pytest.raises(MCPError, match="2,000 characters"):
            await client.subscribe_resource("reyn://variables/" + "x" * 3_000)
        for number in range(100):
            await client.subscribe_resource(f"reyn://variables/x{number}")
        with pytest.raises(MCPError, match="100 resources at most"):
            await client.subscribe_resource("reyn://variables/one_more")
        await client.unsubscribe_resource("reyn://variables/x0")
        await client.subscribe_resource("reyn://variables/one_more")

    with pytest.warns(MCPDeprecationWarning):
        by_client(session, work, mode="legacy")


def test_no_resource_gives_a_part_for_the_person_alone(make: Make) -> None:
    session = make(categories=(report_category(),), store="memory")

    async def work(client: Client) -> list[str]:
        await call("report__private")(client)
        held = [each.id for each in session.blobs if each.kind == "bytes"]
        assert held
        for blob in held:
            with pytest.raises(MCPError, match="linked to them"):
                await client.read_resource(f"reyn://results/{blob}")
        return held

    by_client(session, work)


def test_a_text_that_grows_over_the_bound_as_json_is_refused_with_what_to_do(
    make: Make, workspace: Path
) -> None:
    (workspace / "quotes.txt").write_text('"\n' * 300_000)
    session = make()

    async def work(client: Client) -> None:
        await call("file__read", path="quotes.txt")(client)
        (uri,) = [each.uri for each in (await client.list_resources()).resources if "results" in each.uri]
        with pytest.raises(MCPError, match="in parts with the tool inspect"):
            await client.read_resource(uri)

    by_client(session, work)


def test_variables_and_results_are_resources_bounded_and_without_secrets(
    make: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "open-sesame-now")
    (workspace / "long.txt").write_text("open-sesame-now\n" + "a line\n" * 5000)
    session = make({"orders": pd.DataFrame({"value": [1]}), "api_key": "k" * 20})
    session.invoke_action("file__read", {"path": "long.txt"})  # the person's own, which is not listed

    async def work(client: Client) -> None:
        await call("file__read", path="long.txt")(client)
        listed = [each.uri for each in (await client.list_resources()).resources]
        [result] = [uri for uri in listed if "results" in uri]
        assert [uri for uri in listed if uri != result] == ["reyn://variables/orders"]
        whole = (await client.read_resource(result)).contents[0].text  # type: ignore[union-attr]
        assert whole.count("a line") == 5000 and "sesame" not in whole
        assert "value" in (await client.read_resource("reyn://variables/orders")).contents[0].text  # type: ignore[union-attr]
        with pytest.raises(Exception, match="no resource"):
            await client.read_resource("file:///etc/passwd")

    by_client(session, work)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic TOKEN"}, 401),
        ({"Authorization": "Bearer TOKEN", "Host": "evil.example"}, 421),
        ({"Authorization": "Bearer TOKEN", "Origin": "http://evil.example"}, 403),
        ({"Authorization": "Bearer TOKEN"}, 200),
    ],
)
def test_the_door_opens_for_the_token_from_this_machine_alone(
    make: Make, headers: dict[str, str], status: int
) -> None:
    session = make()
    session.serve_mcp()
    token = token_of(session)
    sent = {name: value.replace("TOKEN", token) for name, value in headers.items()}
    answer = posted(session, headers=sent)
    assert answer.status_code == status
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    assert token not in answer.text


def test_huge_and_deep_bodies_are_refused_and_the_next_request_is_answered(make: Make) -> None:
    session = make()
    session.serve_mcp()
    headers = {"Authorization": f"Bearer {token_of(session)}"}
    assert posted(session, headers=headers, content=b" " * (5 << 20)).status_code == 413
    for version in ("2025-06-18", "2026-07-28"):
        deep = posted(session, headers={**headers, "MCP-Protocol-Version": version}, content=b"[" * 200_000)
        assert deep.status_code >= 400
    assert posted(session, headers=headers).status_code == 200


def test_the_token_is_in_a_private_file_and_in_nothing_that_is_shown_or_kept(
    make: Make, workspace: Path
) -> None:
    session = make()
    served, token = session.serve_mcp(), token_of(session)
    (workspace / "leak.txt").write_text(f"the token is {token}\n")
    read = by_client(session, call("file__read", path="leak.txt"))
    assert stat.S_IMODE(served.file.path.stat().st_mode) == 0o600
    shown = json.dumps([mimebundle(served), mimebundle(session.status)], default=str)
    kept = "".join(path.read_text() for path in (workspace / ".reyn" / "runs").glob("*.jsonl"))
    for said in (
        text(read),
        shown,
        kept,
        repr(served),
        json.dumps(served.payload),
        " ".join(served.bridge_command),
    ):
        assert token not in said


def test_a_client_cannot_deceive_by_its_name(make: Make) -> None:
    session = make()
    info = Implementation(name="Claude\u202e<img src=x onerror=alert(1)>" + "x" * 500, version="1\n2")
    by_client(session, call("file__read", path="notes.txt"), info=info)
    served = session.served
    assert served is not None
    [client] = served.connections
    assert "\u202e" not in client.name and "⟨U+202E⟩" in client.name and len(client.name) < 260
    assert (client.calls, client.errors) == (1, 0)
    bundle = mimebundle(served)
    assert "<img" not in bundle["text/html"] and "Claude" in bundle["text/plain"]
    assert "Claude" in mimebundle(session.status)["text/plain"]


def test_a_flood_is_bounded_and_a_cancelled_call_takes_its_question_back(make: Make) -> None:
    session = make()

    async def work(client: Client) -> None:
        write = call("file__write", path="new.txt", content="x")
        calls = [asyncio.ensure_future(write(client)) for _ in range(60)]
        done, waiting = await asyncio.wait(calls, timeout=60, return_when=asyncio.FIRST_COMPLETED)
        assert all("at once" in text(each.result()) for each in done)
        assert len(await awaited(all_pending)) <= 8
        assert session.served is not None and session.served.connections[0].under_way <= 40
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)
        await awaited(lambda: not all_pending())

    by_client(session, work)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("pipes", [False, True])
def test_structured_answers_fit_their_schemas_and_repeat_the_text(make: Make, mode: Any, pipes: bool) -> None:
    session = make()

    @session.action
    def facts(n: int) -> dict[str, Any]:
        """Give numbers."""
        return {"numbers": list(range(n))}

    async def work(client: Client) -> None:
        schemas = {each.name: each.output_schema for each in (await client.list_tools()).tools}
        assert {name for name, schema in schemas.items() if schema} == {
            "list_actions", "describe_action", "search_actions",
        }  # fmt: skip
        for tool, arguments in (
            ("list_actions", {"category": ["file"], "limit": 2}),
            ("list_actions", {"filter": "no such thing"}),
            ("describe_action", {"action_name": "file__read"}),
            ("search_actions", {"query": "read a text file"}),
            ("search_actions", {"query": "xyzzy"}),
            ("invoke_action", {"action_name": "function__facts", "args": {"n": 3}}),
        ):
            answer = await client.call_tool(tool, arguments)  # the client validates by the listed schema
            assert answer.structured_content == json.loads(text(answer)), tool
        wrong = await client.call_tool("describe_action", {"action_name": "file__raed"})
        assert wrong.is_error and wrong.structured_content is None
        large = await call("function__facts", n=30_000)(client)
        assert large.structured_content is None and large.content[1].type == "resource_link"

    if not pipes:
        by_client(session, work, mode=mode)
        return
    command, *args = session.serve_mcp().bridge_command

    async def through_the_bridge() -> None:
        program = StdioServerParameters(command=command, args=args, env=environment())
        async with Client(program, mode=mode) as client:
            await work(client)

    ENGINE.run(through_the_bridge())


def test_search_finds_by_words_though_nothing_embeds(make: Make) -> None:
    session = make(config={"action_retrieval": {"embedding_class": None}})

    async def work(client: Client) -> Any:
        listed = await client.call_tool("list_actions", {})
        assert "search_hint" not in listed.structured_content
        return await client.call_tool("search_actions", {"query": "read a text file"})

    found = by_client(session, work).structured_content
    assert found["items"][0]["qualified_name"] == "file__read" and "words alone" in found["note"]


def test_prompts_are_filled_and_wrong_arguments_are_named(make: Make) -> None:
    session = make({"orders": [1]})

    async def work(client: Client) -> None:
        listed = {each.name: each for each in (await client.list_prompts()).prompts}
        given = {"name": "orders", "task": "Add {up} the orders."}
        for name, prompt in listed.items():
            arguments = {each.name: given[each.name] for each in prompt.arguments or ()}
            message = (await client.get_prompt(name, arguments)).messages[0]
            assert all(value in message.content.text for value in arguments.values()), name  # type: ignore[union-attr]
        for name, wrong, said in (
            ("explore_variable", {"name": "ordrs"}, "orders"),
            ("explore_variable", {}, "needs the argument name"),
            ("do", {"task": " "}, "needs the argument task"),
            ("do", {"task": "x" * 3_000}, "2,000 characters"),
            ("do", {"task": "x", "more": "y"}, "no argument 'more'"),
            ("done", {}, "no prompt 'done'"),
        ):
            with pytest.raises(MCPError, match=said):
                await client.get_prompt(name, wrong)
        for listing in (client.list_tools, client.list_prompts, client.list_resources):
            with pytest.raises(MCPError, match="cursor"):
                await listing(cursor="elsewhere")

    by_client(session, work)


def test_progress_goes_on_while_a_call_runs_or_asks_and_its_numbers_grow(make: Make) -> None:
    session, begun = make(), Event()
    seen: list[tuple[float, str | None]] = []

    @session.action
    async def stand_still() -> str:
        """Wait for nothing."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    def sent(word: str, count: int) -> bool:
        return len([message for _, message in seen if message and word in message]) >= count

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    async def work(client: Client) -> None:
        for action, args, ready, word in (
            ("function__stand_still", {}, begun.is_set, "function__stand_still"),
            ("file__write", {"path": "new.txt", "content": "x"}, all_pending, "waiting for the person"),
        ):
            seen.clear()
            given = {"action_name": action, "args": args}
            asking = asyncio.ensure_future(client.call_tool("invoke_action", given, progress_callback=hear))
            await awaited(ready)
            for count in (1, 2, 3):
                advance(9.0)
                await awaited(partial(sent, word, count))
            numbers = [number for number, _ in seen]
            assert numbers == sorted(set(numbers))
            asking.cancel()
            await asyncio.wait([asking])

    with clock_of(ENGINE.loop) as advance:
        by_client(session, work)


def test_a_cancelled_function_is_stopped_or_its_result_discarded_and_the_client_learns_which(
    make: Make,
) -> None:
    session, begun, release, stopped = make(), Event(), Event(), Event()

    @session.action
    def hold() -> str:
        """Hold the notebook."""
        begun.set()
        release.wait()
        return "held"

    @session.action
    async def rest() -> str:
        """Rest until told to stop."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "rested"

    def idle() -> bool:
        return session.served is not None and not session.served.connections[0].under_way

    async def work(client: Client) -> None:
        for name, said in (("rest", "was told to stop"), ("hold", "its result is discarded")):
            begun.clear()
            calling = asyncio.ensure_future(call(f"function__{name}")(client))
            await awaited(begun.is_set)
            calling.cancel()
            await asyncio.wait([calling])
            await awaited(idle)
            answer = await client.call_tool("list_actions", {"limit": 1})
            assert f"function__{name}" in answer.content[-1].text and said in answer.content[-1].text  # type: ignore[union-attr]
            again = await client.call_tool("list_actions", {"limit": 1})
            assert len(again.content) == 1
        release.set()

    by_client(session, work)
    assert stopped.is_set()
    errors = [session.trace(each.run).error or "" for each in session.runs if "function__" in each.prompt]
    assert sorted("discarded" in each for each in errors) == [False, True]


def test_it_is_off_until_a_person_says_so_and_ends_with_its_session(make: Make, workspace: Path) -> None:
    for key in ("serve", "mcp", "serve_mcp", "mcp_server", "a2a", "serve_a2a"):
        (workspace / "reyn.yaml").write_text(f"{key}: {{on: true}}\n")
        session = make()
        trust(session)
        session.list_actions()
        assert session.served is None
    (workspace / "reyn.yaml").unlink()
    file = AddressFile(StateFolder(workspace))
    assert not file.path.exists()
    for end in (lambda: session.served.stop(), session.reset, session.close):  # type: ignore[union-attr]
        address = session.serve_mcp().address
        assert session.serve_mcp() is session.served
        end()
        assert session.served is None and file.all() == ()
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(address)


def test_the_bridge_takes_a_client_to_the_newest_session_or_the_named_one(make: Make) -> None:
    old, new = make({"old": 1}), make({"new": 2})
    first = old.serve_mcp()
    served = new.serve_mcp()
    assert first.session != served.session

    async def names(*more: str) -> list[str]:
        command, *words = served.bridge_command
        parameters = StdioServerParameters(command=command, args=[*words, *more], env=environment())
        info = Implementation(name="piped", version="1")
        async with Client(parameters, client_info=info) as client:
            assert "third line" in text(await call("file__read", path="notes.txt")(client))
            return [each.name for each in (await client.list_resources()).resources]

    assert ENGINE.run(names()) == ["new"]
    assert ENGINE.run(names("--session", first.session)) == ["old"]
    assert [each.name for each in served.connections] == ["piped 1"]


def test_after_a_kill_the_bridge_says_that_the_kernel_is_gone(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = """
    import sys, reyn_jupyter as reyn
    served = reyn.Session(sys.argv[1], namespace={}).serve_mcp()
    print(served.session, flush=True)
    served.join()
    """
    kernel = started(code, str(workspace))
    assert kernel.stdout is not None
    name = kernel.stdout.readline().strip()
    os.kill(kernel.pid, signal.SIGKILL)
    kernel.wait()
    until(lambda: is_gone(kernel.pid))
    assert mcp_bridge.main(["--workspace", str(workspace)]) == 1
    said = capsys.readouterr()
    assert name in said.err and "killed" in said.err and "%reyn serve mcp" in said.err and said.out == ""
    for stream in (kernel.stdin, kernel.stdout, kernel.stderr):
        assert stream is not None
        stream.close()


def test_the_bridge_ends_and_says_so_when_the_session_ends_under_it(make: Make) -> None:
    served = make().serve_mcp()
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    bridge = subprocess.Popen(served.bridge_command, env=environment(), text=True, **pipes)
    assert bridge.stdin is not None and bridge.stdout is not None and bridge.stderr is not None
    try:
        bridge.stdin.write(json.dumps(OPENING) + "\n")
        bridge.stdin.flush()
        assert "serverInfo" in bridge.stdout.readline()
        served.stop()
        bridge.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}) + "\n")
        bridge.stdin.flush()  # and is held open, as by a client that waits
        assert bridge.wait(60) == 1
        said = bridge.stderr.read()
        assert "is not served any more" in said and "Traceback" not in said
    finally:
        bridge.kill()
        bridge.communicate()


def test_what_stands_at_the_address_of_a_session_that_ended_gets_nothing_from_the_bridge(
    workspace: Path,
) -> None:
    seen: list[bytes] = []

    class Other(BaseHTTPRequestHandler):
        """Whoever took the port."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(body)
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "serverInfo": {"name": "x", "version": "1"},
            }
            answer = json.dumps({"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": result}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: object) -> None:
            return None

    file = AddressFile(StateFolder(workspace))
    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        token = Secret("TOKEN", "t" * 30)
        file.add("5e551014", f"http://127.0.0.1:{server.server_port}/mcp", token, "", ["mcp"])
        words = [sys.executable, "-P", "-m", "reyn_jupyter.mcp_bridge", "--workspace", str(workspace)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        bridge = subprocess.Popen(words, env=environment(), text=True, **pipes)
        assert bridge.stdin is not None and bridge.stdout is not None
        try:
            bridge.stdin.write(json.dumps(OPENING) + "\n")
            bridge.stdin.flush()
            assert "serverInfo" in bridge.stdout.readline()
            file.remove("5e551014")
            bridge.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}) + "\n")
            bridge.stdin.flush()
            assert bridge.wait(60) == 1 and len(seen) == 1
        finally:
            bridge.kill()
            bridge.communicate()
            server.shutdown()


def test_the_bridge_says_so_where_nothing_is_served(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mcp_bridge.main(["--workspace", str(workspace)]) == 1
    assert "is served. Run %reyn serve mcp" in capsys.readouterr().err
    assert sys.executable  # the entry that clients get names it
