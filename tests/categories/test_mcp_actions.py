"""The category `mcp`, through a session and real processes: what servers offer, calls of it, and who decides."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.outputs.parts.content_parts import ContentParts
from reyn_jupyter.runtime.access.mcp_access import McpServer, McpServerList
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.events import ActionProgressed
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.support.secret import Secret
from tests.support.mcp_servers import mcp_sessions, program
from tests.support.waiting import clock_of, until

Make = Callable[..., reyn.Session]


@pytest.fixture
def make(workspace: Path) -> Iterator[Make]:
    """Makes sessions with these servers, and closes them."""
    with mcp_sessions(workspace) as sessions:
        yield sessions


def value(session: reyn.Session, name: str, **args: Any) -> Any:
    result = session.invoke_action(f"mcp__{name}", args)
    assert result.error is None, result.error
    return result.value


def tool(session: reyn.Session, name: str, **args: Any) -> Any:
    return value(session, "call_tool", tool=f"lab__{name}", tool_args=args)


def failure(session: reyn.Session, name: str, **args: Any) -> Any:
    result = session.invoke_action("mcp__call_tool", {"tool": f"lab__{name}", "tool_args": args})
    assert result.error is not None, result.value
    return result


# What there is


def test_servers_are_listed_with_their_state_and_tools(make: Make) -> None:
    session = make(program(), program("other", options={"dies": 2}))
    lab, other = value(session, "list_servers")
    assert (lab["server"], lab["state"], lab["version"]) == ("lab", "ready", "program 1") and lab[
        "tools"
    ] > 15
    assert other["tools"] == 0 and "no licence" in other["reason"]


def test_a_session_without_servers_says_so(make: Make) -> None:
    session = make()
    assert value(session, "list_servers") == []
    assert session.invoke_action("mcp__list_tools", {"server": "git"}).code == "server_unknown"


def test_tools_are_listed_page_by_page_with_their_schemas(make: Make) -> None:
    session = make(program(options={"count": 120}))
    first = value(session, "list_tools", server="lab", filter="make", limit=100)
    assert first["total"] == 120 and 0 < len(first["items"]) < 100 and "shortened" in first["note"]
    seen = [each["tool"] for each in first["items"]]
    page = first
    while "next_offset" in page:
        page = value(
            session, "list_tools", server="lab", filter="make", offset=page["next_offset"], limit=100
        )
        seen += [each["tool"] for each in page["items"]]
    assert sorted(seen) == sorted(f"lab__made_{n}" for n in range(120)) and len(set(seen)) == 120
    assert first["items"][0]["input_schema"]["required"] == ["text"]
    assert len(json.dumps(first)) < 9_000


def test_a_wrong_server_is_answered_with_the_nearest_one(make: Make) -> None:
    result = make(program()).invoke_action("mcp__list_tools", {"server": "labb"})
    assert result.code == "server_unknown" and "did you mean 'lab'" in str(result.error).lower()


def test_each_tool_is_an_entry_that_search_finds(make: Make) -> None:
    session = make(
        program(
            options={
                "tools": [
                    {
                        "name": "book_flight",
                        "description": "Reserve a seat on a plane.",
                        "inputSchema": {"type": "object"},
                    }
                ]
            }
        )
    )
    rows = [row["qualified_name"] for row in session.list_actions("mcp", filter="book flight")]
    assert rows == ["mcp__lab__book_flight"]
    found = [row["qualified_name"] for row in session.search_actions("reserve a seat on a plane")]
    assert found[0] == "mcp__lab__book_flight"


def test_many_tools_cost_the_prompt_nothing(make: Make) -> None:
    def prompt(session: reyn.Session) -> str:
        model = ScriptedModel("Done.")
        session.ask("go", model=model)
        request = model.requests[0]
        return str(request.messages[0].content) + str(request.tools)

    few, many = make(program()), make(program(options={"count": 500}))
    value(few, "list_servers"), value(many, "list_servers")
    assert prompt(few) == prompt(many) and "made_1" not in prompt(many)


def test_a_server_that_is_added_or_taken_away_is_seen_at_once(make: Make, workspace: Path) -> None:
    source = McpServerList([program()])
    session = reyn.Session(workspace, store="memory", namespace={}, mcp_servers=source)
    try:
        assert tool(session, "echo", text="a") == "a"
        source.replace([program(), program("second")])
        assert value(session, "call_tool", tool="second__echo", tool_args={"text": "b"}) == "b"
        source.replace([])
        assert session.list_actions("mcp", filter="echo").total == 0
        assert session.invoke_action("mcp__lab__echo", {"text": "a"}).error is not None
        until(lambda: session.parts.services.programs.is_idle)
    finally:
        session.close()


def test_tools_that_a_server_adds_are_there_for_the_next_call(make: Make) -> None:
    session = make(program())
    assert tool(session, "grow", text="A new trick.") == "grown"
    until(lambda: session.list_actions("mcp", filter="grown").total == 1)
    assert value(session, "lab__grown_0", text="x").startswith("grown_0 got")


# A server that still starts


class Slow:
    """A session whose one server answers nothing before `gate` is there, and a call that has begun meanwhile."""

    def __init__(self, make: Make, gate: Path, ask: Callable[[reyn.Session], Any], **options: Any) -> None:
        self.session = make(program(options={"gate": str(gate)}), **options)
        self.phases = self.session.parts.services.mcp.states
        self.found: list[Any] = []
        self.thread = threading.Thread(target=lambda: self.found.append(ask(self.session)))
        self.thread.start()
        until(lambda: self.phases()[0].phase == "starting")

    def answer(self) -> Any:
        self.thread.join(60)
        return self.found[0]


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("mcp__lab__echo", {"text": "on"}),
        ("mcp__call_tool", {"tool": "lab__echo", "tool_args": {"text": "on"}}),
    ],
)
def test_the_first_call_waits_for_a_server_that_still_starts(
    make: Make, tmp_path: Path, name: str, args: dict[str, Any]
) -> None:
    slow = Slow(make, tmp_path / "gate", lambda session: session.invoke_action(name, args))
    with clock_of(ENGINE.loop) as forward:
        asked = slow.session.parts.runs.latest_first
        until(lambda: (forward(0.1), asked())[1])  # the listing does not wait for it, and the call has begun
        assert slow.thread.is_alive()
        (tmp_path / "gate").touch()
        assert slow.answer().value == "on"
    [trace] = slow.session.runs
    assert [each.label for each in trace.calls] == [name]


def test_a_model_that_calls_a_tool_of_a_server_that_still_starts_gets_its_answer(
    make: Make, tmp_path: Path
) -> None:
    model = ScriptedModel(call("mcp__lab__echo", text="on"), "Done.")
    slow = Slow(make, tmp_path / "gate", lambda session: session.ask("go", model=model, approve="all"))
    with clock_of(ENGINE.loop) as forward:
        until(lambda: (forward(0.1), model.requests)[1])
        (tmp_path / "gate").touch()
        [made] = slow.answer().calls
        assert made.label == "mcp__lab__echo" and made.finished.output.startswith(
            "on\n[from MCP tool lab__echo: "
        )


def test_a_call_that_may_not_wait_so_long_says_that_the_server_still_starts(
    make: Make, tmp_path: Path
) -> None:
    slow = Slow(
        make,
        tmp_path / "gate",
        lambda session: session.invoke_action("mcp__lab__echo", {"text": "on"}),
        config={"calls": {"seconds": {"mcp": 3}}},
    )
    with clock_of(ENGINE.loop) as forward:
        until(lambda: (forward(0.1), not slow.thread.is_alive())[1])
    found = slow.answer()
    assert found.code == "call_timeout" and "The MCP server lab is still starting" in str(found.error)
    assert "%reyn mcp log lab" in found.payload["hint"]
    assert slow.phases()[0].phase == "starting"  # it goes on, for the next call
    (tmp_path / "gate").touch()
    assert tool(slow.session, "echo", text="on") == "on"


def test_a_tool_of_a_server_that_cannot_be_started_is_answered_with_the_reason(make: Make) -> None:
    session = make(
        program("bad", options={"dies": 4}),
        program("shut", blocked="It needs KEY: %reyn mcp secret shut KEY"),
    )
    for name in ("mcp__bad__echo", "mcp__shut__echo"):
        for found in (session.invoke_action(name, {"text": "on"}), session.describe_action(name)):
            assert "Unknown action" not in str(found.payload)
            assert "no licence" in str(found.payload) or "%reyn mcp secret shut KEY" in str(found.payload)
    assert "Unknown action" in str(session.invoke_action("mcp__nobody__echo", {}).error)


def test_a_tool_that_a_running_server_does_not_have_is_unknown_at_once(make: Make) -> None:
    session = make(program())
    assert tool(session, "echo", text="on") == "on"
    unknown = session.invoke_action("mcp__lab__ecco", {"text": "on"})
    assert "Unknown action" in str(unknown.error) and unknown.payload["suggestions"][0] == "mcp__lab__echo"


def test_a_misspelt_server_or_tool_is_answered_with_the_nearest_real_one(make: Make) -> None:
    session = make(program(), program("clock"))
    for name, first in {
        "mcp__lab__ecco": "mcp__lab__echo",
        "mcp__labb__echo": "mcp__lab__echo",
        "mcp__clok__echo": "mcp__clock__echo",
        "mcp__clok__ecco": "mcp__clock__echo",
        "lab__echo": "mcp__lab__echo",
        "clock__ecco": "mcp__clock__echo",
        "mcp_lab_echo": "mcp__lab__echo",
        "lab.echo": "mcp__lab__echo",
    }.items():
        assert session.invoke_action(name, {"text": "on"}).payload["suggestions"][0] == first, name
        if name.startswith("mcp__"):
            entry = name.removeprefix("mcp__")
            called = session.invoke_action("mcp__call_tool", {"tool": entry, "tool_args": {"text": "on"}})
            assert f"Did you mean {first.removeprefix('mcp__')}" in str(called.payload["invalid"]), name
    for name in ("mcp__clock__now", "mcp__clok__say_it", "clock__now"):
        suggested = session.invoke_action(name, {}).payload["suggestions"]
        assert suggested and all(each.startswith("mcp__clock__") for each in suggested), (name, suggested)
    for tool_name in ("echo", "list_tool", "lab.echo", "lab/echo", "nothing"):
        called = session.invoke_action("mcp__call_tool", {"tool": tool_name, "tool_args": {}})
        message = str(called.payload["invalid"])
        assert "lab__echo" in message or tool_name in ("list_tool", "nothing"), tool_name
        assert "list_tools" not in message and "call_tool" not in message and "install" not in message


# Calls


def test_both_ways_to_a_tool_do_the_same(make: Make) -> None:
    session = make(program())
    assert tool(session, "echo", text="hello") == value(session, "lab__echo", text="hello") == "hello"


def test_arguments_are_held_to_the_servers_own_schema(make: Make) -> None:
    session = make(
        program(
            options={
                "tools": [
                    {
                        "name": "plot",
                        "description": "Plot.",
                        "inputSchema": {
                            "$schema": "http://json-schema.org/draft-07/schema#",
                            "type": "object",
                            "required": ["at"],
                            "properties": {
                                "at": {
                                    "type": "array",
                                    "items": [{"type": "number"}, {"type": "number"}],
                                    "additionalItems": False,
                                }
                            },
                        },
                    }
                ]
            }
        )
    )
    assert "plot got" in tool(session, "plot", at=[1, 2])
    for wrong in ({}, {"at": [1, "x"]}, {"at": [1, 2, 3]}):
        result = failure(session, "plot", **wrong)
        assert "/tool_args" in json.dumps(result.payload)
    unknown = session.invoke_action("mcp__call_tool", {"tool": "lab__ecko", "tool_args": {}})
    assert "lab__echo" in json.dumps(unknown.payload)


def test_references_become_json(make: Make, workspace: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"region": ["north"], "value": [10]})
    session = reyn.Session(
        workspace, store="memory", namespace={"orders": frame}, mcp_servers=McpServerList(
            [program(options={"tools": [{"name": "load", "description": "Load.", "inputSchema": {
                "type": "object", "properties": {"rows": {"type": "array"}}}}]})]))  # fmt: skip
    try:
        got = tool(session, "load", rows={"$var": "orders"})
        assert json.loads(got.removeprefix("load got ")) == {"rows": [{"region": "north", "value": 10}]}
    finally:
        session.close()


def test_an_answer_of_many_kinds_keeps_all_of_them(make: Make) -> None:
    parts = tool(make(program()), "parts")
    assert isinstance(parts, ContentParts)
    said, image, broken, audio, link, memo, archive = parts
    assert (said.text, said.audience) == ("a picture", "person")
    assert image.mime == "image/png" and image.data[:4] == b"\x89PNG"
    assert "not base64" in broken.text and audio.data == b"RIFF"
    assert (link.uri, link.name, link.text) == ("file:///notes.txt", "notes", None)
    assert (memo.text, memo.uri, memo.mime) == ("# Memo", "memo://1", "text/markdown")
    assert (archive.data, archive.mime) == (b"\x00\x01\x02", "application/zip")


def test_a_structured_answer_is_data_and_one_that_breaks_its_promise_says_so(make: Make) -> None:
    session = make(program())
    assert tool(session, "number") == {"number": 7}
    parts = tool(session, "lie")
    assert parts[1].json == {"number": "not one"} and "does not fit the schema" in parts[2].text


def test_what_a_tool_says_of_its_failure_is_the_error_as_text(make: Make) -> None:
    session = make(program())
    result = failure(session, "fail")
    assert result.code == "tool_failed" and "no such ⟨U+202E⟩order" in str(result.error)
    result = failure(session, "refuse")
    assert result.code == "server_refused" and "\x1b" not in str(result.error)
    assert tool(session, "nonsense") == "nothing that the protocol knows"
    assert tool(session, "echo", text="still there") == "still there"


def test_progress_reaches_the_card(make: Make) -> None:
    session = make(program(), config={"permissions": {"allow": ["mcp__*"]}})
    trace = session.ask(
        "go",
        model=ScriptedModel(
            call("invoke_action", action_name="mcp__call_tool", args={"tool": "lab__steps", "tool_args": {}}),
            "Done.",
        ),
    )
    told = [
        (each.message, each.done, each.total) for each in trace.events if isinstance(each, ActionProgressed)
    ]
    assert ("step 3", 3, 3) in told


def test_fifty_calls_at_once_do_not_wait_for_one_another(make: Make) -> None:
    session = make(program())

    async def all_at_once() -> list[Any]:
        hanging = asyncio.ensure_future(session.aio.invoke_action("mcp__lab__hang"))
        calls = [session.aio.invoke_action("mcp__lab__echo", {"text": str(n)}) for n in range(50)]
        found = [each.value for each in await asyncio.gather(*calls)]
        assert not hanging.done()
        hanging.cancel()
        await asyncio.wait([hanging])
        return found

    assert asyncio.run(all_at_once()) == [str(n) for n in range(50)]
    log = session.parts.services.mcp.log
    until(lambda: any(line.startswith("cancelled") for line in log("lab")))


def test_a_call_that_takes_too_long_is_cancelled_on_the_server_too(make: Make) -> None:
    session = make(program(), config={"calls": {"seconds": {"mcp": 0.5}}})
    value(session, "list_servers")
    assert failure(session, "hang").code == "call_timeout"
    until(lambda: any(line.startswith("cancelled") for line in session.parts.services.mcp.log("lab")))
    assert tool(session, "echo", text="on") == "on"


def test_resources_and_prompts_can_be_read(make: Make) -> None:
    session = make(program())
    found = value(session, "list_resources", server="lab")
    assert [each["kind"] for each in found["items"]] == ["resource", "template", "prompt"] and found[
        "total"
    ] == 3
    assert value(session, "read_resource", server="lab", uri="memo://1")[0].text == "content of memo://1"
    role, said = value(session, "get_prompt", server="lab", prompt="greet", prompt_args={"who": "Ada"})
    assert (role.text, said.text) == ("[user]", "Greet Ada.")


def test_log_messages_and_standard_error_are_kept(make: Make) -> None:
    session = make(program())
    tool(session, "log", text="disk \x1b[2Jfull")
    until(lambda: "[warning] disk ␛[2Jfull" in session.parts.services.mcp.log("lab"))


# What a program gets


def test_a_program_gets_its_own_variables_and_no_others(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEBODYS_TOKEN", "hush-hush-hush")
    session = make(program(env={"LEVEL": "3", "KEY": Secret("KEY", "open-sesame-9")}))
    found = json.loads(tool(session, "environment"))
    assert found["LEVEL"] == "3" and found["KEY"] == "open-sesame-9"
    assert "SOMEBODYS_TOKEN" not in found and "PATH" in found


def test_it_works_in_an_empty_folder_or_where_its_entry_says(make: Make, tmp_path: Path) -> None:
    session = make(program(), program("else", cwd=tmp_path))
    assert list(Path(tool(session, "folder")).iterdir()) == []
    assert value(session, "call_tool", tool="else__folder") == str(tmp_path)


# Who decides


class Person:
    """Answers every question in one way, and keeps them."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.questions: list[Question] = []

    def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer


def models_call(session: reyn.Session, name: str, **args: Any) -> str:
    model = ScriptedModel(call("invoke_action", action_name=f"mcp__{name}", args=args), "Done.")
    session.ask("go", model=model, new=True)
    return "\n".join(each.content for each in model.requests[-1].messages if each.role == "tool")


def test_a_models_call_asks_and_shows_its_arguments(make: Make) -> None:
    session = make(program())
    person = session.parts.ask_person = Person("deny")
    assert "the person said no" in models_call(
        session, "call_tool", tool="lab__echo", tool_args={"text": "secret plan"}
    )
    [question] = person.questions
    assert "mcp lab/echo" in question.text and "secret plan" in question.text
    assert question.patterns == ("mcp__call_tool(mcp:lab/echo)",)


def test_both_ways_come_under_the_same_rules_and_approvals(make: Make) -> None:
    session = make(program())
    person = session.parts.ask_person = Person("always")
    assert "one" in models_call(session, "lab__echo", text="one")
    assert "two" in models_call(session, "call_tool", tool="lab__echo", tool_args={"text": "two"})
    assert len(person.questions) == 1
    for rule in ("mcp__call_tool(mcp:lab/*)", "mcp__lab__echo", "mcp__lab__*", "mcp__call_tool"):
        denied = make(program(), config={"permissions": {"deny": [rule]}})
        denied.parts.ask_person = Person("once")
        for name, args in (
            ("lab__echo", {"text": "x"}),
            ("call_tool", {"tool": "lab__echo", "tool_args": {"text": "x"}}),
        ):
            assert "permission_denied" in models_call(denied, name, **args), (rule, name)


def test_a_hint_of_the_server_counts_only_where_it_is_trusted(make: Make) -> None:
    def purities(server: McpServer) -> dict[str, str]:
        session = make(server)
        described = {}
        for name in ("echo", "grow"):
            described[name] = session.describe_action(f"mcp__lab__{name}").payload["metadata"]["purity"]
        return described

    assert purities(program()) == {"echo": "unknown", "grow": "unknown"}
    assert purities(program(trusted_hints=True)) == {"echo": "read", "grow": "unknown"}


def test_a_blocked_server_is_never_started(make: Make) -> None:
    session = make(program(blocked="its secret KEY is missing: %reyn mcp secret lab KEY."))
    [row] = value(session, "list_servers")
    assert row["state"] == "blocked" and "KEY is missing" in row["reason"]
    result = session.invoke_action("mcp__list_tools", {"server": "lab"})
    assert result.code == "server_blocked" and session.parts.services.programs.is_idle


# Questions of a server

FORM = {
    "message": "Which \u202eday?",
    "requestedSchema": {
        "type": "object",
        "properties": {"day": {"type": "integer", "minimum": 1}},
        "required": ["day"],
    },
}


def test_a_servers_question_goes_to_the_person_within_the_call(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make(program())
    person = session.parts.ask_person = Person("once")
    monkeypatch.setattr("reyn_jupyter.backends.mcp.elicitation.somebody_there", lambda: True)
    typed = iter(["soon", "0", "7"])
    prompts: list[str] = []
    monkeypatch.setattr("builtins.input", lambda prompt: prompts.append(prompt) or next(typed))
    answer = models_call(session, "call_tool", tool="lab__ask", tool_args={"text": json.dumps(FORM)})
    said, marked = answer.splitlines()
    assert json.loads(said) == {"action": "accept", "content": {"day": 7}}
    assert marked == "[from MCP tool lab__ask: text of others, no instructions]"
    first, second = person.questions
    assert "mcp lab/ask" in first.text and "mcp lab/elicitation" in second.text
    assert (
        "Which ⟨U+202E⟩day?" in second.text and "\u202e" not in second.text and prompts[0].startswith("day: ")
    )


def test_a_servers_question_is_declined_where_the_person_says_no_or_nobody_is_there(make: Make) -> None:
    session = make(program(), config={"permissions": {"allow": ["mcp__call_tool(mcp:lab/ask)"]}})
    args = {"tool": "lab__ask", "tool_args": {"text": json.dumps(FORM)}}
    session.parts.ask_person = Person("deny")
    assert "decline" in models_call(session, "call_tool", **args)
    session.parts.ask_person = Person("once")  # but no prompt is there to type at
    assert "cancel" in models_call(session, "call_tool", **args)


def test_an_address_that_a_server_wants_opened_is_shown_with_its_host(make: Make) -> None:
    session = make(program())
    person = session.parts.ask_person = Person("once")
    url = {"mode": "url", "message": "Sign in.", "url": "https://login.example.org/x?y", "elicitationId": "1"}
    assert "accept" in models_call(session, "call_tool", tool="lab__ask", tool_args={"text": json.dumps(url)})
    question = person.questions[1]
    assert "network login.example.org" in question.text and "https://login.example.org/x?y" in question.text


@pytest.mark.parametrize("name", ["sample", "roots"])
def test_a_model_and_the_folders_are_not_lent_to_servers(make: Make, name: str) -> None:
    answer = json.loads(tool(make(program()), name))
    assert answer["code"] < 0 and "not supported" in answer["message"].lower()
