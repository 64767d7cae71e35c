"""Servers as they are: one bad tool, part, or field is repaired if it has one reading, and else left out and named."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.backends.mcp.server_log import OLDER
from reyn_jupyter.backends.mcp_sdk.sdk import IS_FIRST
from reyn_jupyter.outputs.parts.content_parts import ContentParts
from reyn_jupyter.runtime.access.mcp_access import McpServer
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.sessions.overviews.server_overview import server_table

Make = Callable[..., reyn.Session]
PROGRAM = Path(__file__).parents[2] / "support" / "mcp_odd_program.py"
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
HELLO = {"type": "text", "text": "hello"}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def odd(make: Make, tmp_path: Path) -> Callable[..., reyn.Session]:
    """Makes a session with a server that answers word for word as given."""

    def session(**options: Any) -> reyn.Session:
        options.setdefault("listing", {})
        tools = options.pop("tools", None)
        if tools is not None:
            options["listing"] |= {"tools/list": {"tools": tools}}
        (tmp_path / "options.json").write_text(json.dumps(options))
        words = ("-I", "-S", str(PROGRAM), str(tmp_path / "options.json"))
        return make(McpServer("odd", "stdio", command=sys.executable, args=words))

    return session


def tool(name: str = "good", schema: Any = EMPTY, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "A tool.", "inputSchema": schema, **more}


def answered(odd: Callable[..., reyn.Session], answers: dict[str, Any]) -> dict[str, Any]:
    """Return the result of each call, by the name of its case."""
    names = {f"case_{number}": label for number, label in enumerate(answers)}
    session = odd(
        tools=[tool(name) for name in names],
        answers={name: answers[label] for name, label in names.items()},
    )
    return {label: session.invoke_action(f"mcp__odd__{name}", {}) for name, label in names.items()}


def page(session: reyn.Session) -> dict[str, Any]:
    result = session.invoke_action("mcp__list_tools", {"server": "odd", "limit": 100})
    assert result.error is None, result.error
    found: dict[str, Any] = result.value
    return found


# Tools


def test_a_schema_with_one_reading_is_repaired(odd: Callable[..., reyn.Session]) -> None:
    coin = {"type": "string"}
    odd_ones: dict[str, dict[str, Any]] = {
        "null": tool(schema=None),
        "missing": {"name": "x"},
        "list": tool(schema=[]),
        "dialect": tool(schema={"$schema": "http://json-schema.org/draft-07/schema#"}),
        "properties_list": tool(schema={"type": "object", "properties": []}),
        "properties_null": tool(schema={"type": "object", "properties": None, "required": None}),
        "required_inside": tool(
            schema={"type": "object", "properties": {"coin": coin, "required": ["coin"]}}
        ),
        "required_object": tool(schema={"type": "object", "properties": {}, "required": {}}),
        "required_of_one": tool(
            schema={"type": "object", "properties": {"coin": {**coin, "required": True}}}
        ),
        "any_of": tool(schema={"anyOf": [{"type": "object"}, {"type": "object"}]}),
        "ref": tool(schema={"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}),
        "capitals": tool(schema={"type": "OBJECT", "properties": {"coin": {"type": "STRING"}}}),
        "type_list": tool(schema={"type": ["object", "null"]}),
        "type_null": tool(schema={"type": None, "properties": {"coin": None}}),
        "word": tool(schema={"type": "object", "properties": {"coin": "string"}}),
        "inner": tool(schema={"type": "object", "properties": {"coin": {"enum": [], "items": None}}}),
        "deeper": tool(schema={"type": "object", "properties": {"a": {"type": "object", "properties": []}}}),
        "snake": {"name": "x", "input_schema": EMPTY},
        "output": tool(outputSchema={"type": "array", "items": {"type": "string"}}),
        "output_null": tool(outputSchema=None),
        "words": tool() | {"description": ["x"], "title": 5},
        "undescribed": tool() | {"description": None},
        "annotations": tool(annotations="x", icons={}, _meta=[]),
        "hint": tool(annotations={"readOnlyHint": "yes", "title": 5}),
        "remarks": tool(
            schema={"type": "object", "properties": {"a": {"$comment": "b\u200bc", "examples": ["\u200b"]}}}
        ),
    }
    tools = [each | {"name": name} for name, each in odd_ones.items()]
    session = odd(tools=[tool(), *tools, tool("Größe?"), tool("")])
    found = page(session)
    assert "left_out" not in found, found["left_out"]
    assert found["total"] == len(odd_ones) + 3
    for name in ("good", *odd_ones):
        args = {"coin": "1"} if name.startswith("required_") and name != "required_object" else {}
        result = session.invoke_action(f"mcp__odd__{name}", args)
        assert result.error is None and json.loads(str(result.payload)) == args, (name, result.error)
    for name in ("required_inside", "required_of_one"):
        assert session.invoke_action(f"mcp__odd__{name}", {}).error is not None
    assert session.invoke_action("mcp__odd__capitals", {"coin": []}).error is not None


def test_a_tool_that_cannot_be_read_is_left_out_alone_and_named(odd: Callable[..., reyn.Session]) -> None:
    bad = {
        "text": tool("text", {"type": "string"}),
        "number 3": tool("", 5) | {"name": None},
        "number 4": 5,
        "part": tool("part", {"type": "object", "properties": {"a": 5}}),
        "pattern": tool("pattern", {"type": "object", "properties": {"a": {"minimum": "x"}}}),
    }
    for name, each in bad.items():
        session = odd(tools=[tool(), tool("other"), *([tool("more")] if name == "number 4" else []), each])
        found = page(session)
        [reason] = found["left_out"]
        assert reason.startswith(f"{name}: it"), reason
        assert session.invoke_action("mcp__odd__good", {}).error is None
        [row] = session.invoke_action("mcp__list_servers", {}).value
        assert row["left_out"] == [reason] and row["tools"] == found["total"]
        assert reason[:40] in " ".join(session.parts.services.mcp.log("odd"))
        note = server_table(session.parts).note
        assert (
            "The MCP server odd leaves out 1 tool: " in note
            and reason[:40] in " ".join(session.problems)
            and reason[:40] in note
        )
        session.close()


def test_a_listing_is_read_whatever_its_form(odd: Callable[..., reyn.Session]) -> None:
    for listing in (
        {"tools": {"good": {"inputSchema": None}}},
        {"tools": [tool()], "nextCursor": ""},
        {"tools": [tool()], "nextCursor": 7},
        {"tools": [tool()], "nextCursor": None, "_meta": []},
        {"tools": [tool()], "_meta": {"reyn-jupyter/left-out": 5}},
    ):
        session = odd(listing={"tools/list": listing})
        assert [each["tool"] for each in page(session)["items"]] == ["odd__good"], listing
        session.close()
    assert page(odd(initialize={"capabilities": "-"}))["total"] == 0
    session = odd(
        tools=[],
        listing={
            "resources/list": {
                "resources": [{"uri": "a://b"}, 5, {"uri": "c://d", "name": "d", "size": "1"}]
            },
            "resources/templates/list": {"resourceTemplates": None},
            "prompts/list": {"prompts": [{"name": "p", "arguments": "x"}]},
        },
    )
    rows = session.invoke_action("mcp__list_resources", {"server": "odd"}).value["items"]
    assert [row["name"] for row in rows] == ["a://b", "d", "p"]


def test_a_handshake_with_odd_fields_is_a_handshake(odd: Callable[..., reyn.Session]) -> None:
    for told in (
        {"serverInfo": {"name": "odd"}},
        {"serverInfo": {"name": None, "version": 2}},
        {"serverInfo": "-"},
        {"capabilities": "-"},
        {"capabilities": []},
        {"capabilities": {"tools": True}},
        {"capabilities": {"tools": [], "logging": [], "prompts": None}},
        {"capabilities": {"tools": {"listChanged": "often"}, "experimental": {"a": True}}},
        {"protocolVersion": "2025-12-31"},
        {"protocolVersion": "2024-10-07"},
        {"protocolVersion": 1},
        {"protocolVersion": "-"},
        {"instructions": ["x"]},
    ):
        session = odd(tools=[tool()], initialize=told)
        result = session.invoke_action("mcp__odd__good", {})
        assert result.error is None, (told, result.error)
        session.close()


def test_a_property_with_a_default_is_not_required(odd: Callable[..., reyn.Session]) -> None:
    inner = {"type": "object", "properties": {"p": {"default": None}, "q": {}}, "required": ["p", "q"]}
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "default": 5}, "q": {"type": "string"}, "o": inner},
        "required": ["n", "q"],
    }
    session = odd(tools=[tool(schema=schema)])
    for args in ({"q": "x"}, {"q": "x", "n": 1}, {"q": "x", "o": {"q": 1}}):
        result = session.invoke_action("mcp__odd__good", args)
        assert result.error is None and json.loads(str(result.payload)) == args
    for args in ({}, {"n": 1}, {"q": "x", "o": {}}):
        assert session.invoke_action("mcp__odd__good", args).error is not None


# Answers


def test_one_odd_part_of_an_answer_is_noted_and_the_rest_arrives(odd: Callable[..., reyn.Session]) -> None:
    parts: dict[str, tuple[Any, str]] = {
        "type json": ({"type": "json", "json": {"a": 1}}, "unknown type json"),
        "no type": ({"text": "there"}, "there"),
        "a bare text": ("there", "there"),
        "a number": (42, "42"),
        "null": (None, ""),
        "text null": ({"type": "text", "text": None}, "could not be read"),
        "text number": ({"type": "text", "text": 42}, "42"),
        "text object": ({"type": "text", "text": {"a": "there"}}, "there"),
        "image without data": ({"type": "image", "mimeType": "image/png"}, "could not be read"),
        "link without name": ({"type": "resource_link", "uri": "x://there"}, "x://there"),
        "resource without text": ({"type": "resource", "resource": {"uri": "x://y"}}, "could not be read"),
        "resource of a text": ({"type": "resource", "resource": "there"}, "could not be read"),
        "resource without uri": ({"type": "resource", "resource": {"text": "there"}}, "there"),
        "odd audience": (HELLO | {"annotations": {"audience": ["everyone"], "priority": 5}}, "hello"),
        "annotations list": (HELLO | {"annotations": [], "_meta": "x"}, "hello"),
    }
    results = answered(
        odd, {name: {"result": {"content": [HELLO, part]}} for name, (part, _) in parts.items()}
    )
    for name, result in results.items():
        assert result.error is None, (name, result.error)
        assert "hello" in str(result.payload) and parts[name][1] in str(result.payload), (
            name,
            result.payload,
        )


def test_an_image_is_read_without_its_type_and_from_a_data_url(odd: Callable[..., reyn.Session]) -> None:
    images = {
        "untyped": {"type": "image", "data": PNG},
        "url": {"type": "image", "data": f"data:image/png;base64,{PNG}", "mimeType": "image/png"},
        "lines": {"type": "image", "data": f"{PNG[:40]}\n{PNG[40:]}", "mimeType": "image/png"},
        "bare": {"data": PNG.rstrip("="), "mimeType": "image/png"},
    }
    for name, result in answered(odd, {n: {"result": {"content": [i]}} for n, i in images.items()}).items():
        assert isinstance(result.value, ContentParts), (name, result.payload)
        [part] = result.value
        assert part.mime == "image/png" and part.data[:4] == b"\x89PNG", name


def test_a_part_for_the_user_stays_for_the_user_beside_a_bad_field(odd: Callable[..., reyn.Session]) -> None:
    part = HELLO | {"annotations": {"audience": ["user"], "priority": 5}}
    [result] = answered(odd, {"x": {"result": {"content": [part, HELLO]}}}).values()
    assert [each.audience for each in result.value] == ["person", "all"]


def test_an_answer_with_odd_fields_is_an_answer(odd: Callable[..., reyn.Session]) -> None:
    for name, result in answered(
        odd,
        {
            "structured alone": {"result": {"structuredContent": {"word": "hello"}}},
            "structured list": {"result": {"content": [HELLO], "structuredContent": [1]}},
            "structured text": {"result": {"structuredContent": "hello"}},
            "failed null": {"result": {"content": [HELLO], "isError": None}},
            "failed no": {"result": {"content": [HELLO], "isError": "false"}},
            "content text": {"result": {"content": "hello"}},
            "content object": {"result": {"content": HELLO}},
            "content null": {"result": {"content": None, "structuredContent": {"a": "hello"}}},
            "of old": {"result": {"toolResult": "hello"}},
            "bare text": {"result": "hello"},
            "bare list": {"result": [HELLO]},
            "meta": {"result": {"content": [HELLO], "_meta": []}},
            "error null": {"result": {"content": [HELLO]}, "error": None},
        },
    ).items():
        assert result.error is None and "hello" in str(result.payload), (name, result.error, result.payload)
    for name, result in answered(
        odd, {"empty": {"result": {}}, "null": {"result": None}, "none": {"result": {"content": None}}}
    ).items():
        assert result.error is None and result.value == "", name


def test_the_details_of_a_failure_reach_the_model(odd: Callable[..., reyn.Session]) -> None:
    refused = {"type": "text", "text": "refused"}
    failures: dict[str, dict[str, Any]] = {
        "structured": {"result": {"content": [], "isError": True, "structuredContent": {"hint": "WHY"}}},
        "both": {"result": {"content": [refused], "isError": True, "structuredContent": {"why": "WHY"}}},
        "list": {"result": {"isError": True, "structuredContent": ["WHY"]}},
        "word": {"result": {"content": "WHY", "isError": "true"}},
        "data": {"error": {"code": -32602, "message": "Invalid", "data": {"field": "q", "why": "WHY"}}},
        "data text": {"error": {"code": -32603, "message": "Internal error", "data": "WHY: no context"}},
        "no message": {"error": {"code": -32000, "data": "WHY"}},
        "message null": {"error": {"code": -32000, "message": None, "data": ["WHY"]}},
        "message object": {"error": {"code": -32000, "message": {"text": "WHY"}}},
        "code text": {"error": {"code": "E1", "message": "WHY"}},
        "error text": {"error": "WHY"},
        "beside a result": {"result": None, "error": {"code": -32000, "message": "WHY"}},
    }
    for name, result in answered(odd, failures).items():
        assert result.error is not None and "WHY" in str(result.payload), (name, result.payload)
    [result] = answered(odd, {"once": {"error": {"code": 1, "message": "WHY", "data": "WHY"}}}).values()
    assert str(result.payload).count("WHY") == 1


def test_what_an_answer_says_twice_is_sent_once(odd: Callable[..., reyn.Session]) -> None:
    long = "a sentence of the file"
    texts = lambda *words: [{"type": "text", "text": word} for word in words]  # noqa: E731
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    cases: dict[str, tuple[dict[str, Any], Any]] = {
        "FastMCP": ({"content": texts(long), "structuredContent": {"result": long}}, long),
        "FastMCP alone": ({"content": [], "structuredContent": {"result": long}}, long),
        "number": ({"content": texts("5"), "structuredContent": {"result": 5}}, 5),
        "other key": ({"content": texts(long), "structuredContent": {"content": long}}, long),
        "spaces": ({"content": texts(long + "\n"), "structuredContent": {"output": long}}, long),
        "more keys": (
            {"content": texts(long), "structuredContent": {"content": long, "n": 1}},
            {"content": long, "n": 1},
        ),
        "indented": (
            {"content": texts(json.dumps(rows[0], indent=2)), "structuredContent": rows[0]},
            rows[0],
        ),
        "list": ({"content": texts(*map(json.dumps, rows)), "structuredContent": {"result": rows}}, rows),
        "list whole": (
            {"content": texts(json.dumps(rows)), "structuredContent": {"rows": rows}},
            {"rows": rows},
        ),
        "words": ({"content": texts("x", "y"), "structuredContent": {"result": ["x", "y"]}}, ["x", "y"]),
        "rows": ({"content": texts(json.dumps(rows))}, rows),
        "rows in FastMCP": ({"content": [], "structuredContent": {"result": json.dumps(rows)}}, rows),
        "rows in lines": ({"content": texts("\n".join(map(json.dumps, rows)))}, rows),
        "rows in a fence": ({"content": texts(f"```json\n{json.dumps(rows)}\n```")}, rows),
        "rows in parts": ({"content": texts(*map(json.dumps, rows))}, rows),
        "no number": ({"content": texts("007"), "structuredContent": {"result": "7"}}, None),
        "an object": ({"content": texts('{"a": 1}')}, '{"a": 1}'),
    }
    for name, result in answered(odd, {name: {"result": said} for name, (said, _) in cases.items()}).items():
        assert result.error is None, (name, result.error)
        if cases[name][1] is None:
            assert [part.text for part in result.value] == ["007", "7"]
        else:
            assert result.value == cases[name][1], (name, result.value)
    different = {"content": texts("Summary: two rows"), "structuredContent": {"rows": rows}}
    [result] = answered(odd, {"x": {"result": different}}).values()
    assert [each.text or each.json for each in result.value] == ["Summary: two rows", {"rows": rows}]


def test_odd_resources_and_prompts_are_read(odd: Callable[..., reyn.Session]) -> None:
    for contents in (
        {"uri": "a://b", "text": "there"},
        "there",
        [{"text": "there"}],
        [{"uri": "a://b", "text": "there", "mimeType": 5, "_meta": []}],
        [{"uri": "a://b", "text": None}, {"uri": "a://c", "text": "there"}],
    ):
        session = odd(tools=[], listing={"resources/read": {"contents": contents}})
        result = session.invoke_action("mcp__read_resource", {"server": "odd", "uri": "a://b"})
        assert result.error is None and "there" in str(result.payload), (contents, result.payload)
        session.close()
    for messages in (
        [{"role": "system", "content": "there"}],
        [{"role": "assistant", "content": [HELLO, {"text": "there"}, {"type": "x"}]}],
        "there",
    ):
        session = odd(tools=[], listing={"prompts/get": {"messages": messages, "description": 5}})
        result = session.invoke_action("mcp__get_prompt", {"server": "odd", "prompt": "p"})
        assert result.error is None and "there" in str(result.payload), (messages, result.payload)
        session.close()
    for method, name, args in (
        ("resources/read", "read_resource", {"uri": "a://b"}),
        ("prompts/get", "get_prompt", {"prompt": "p"}),
    ):
        session = odd(tools=[], listing={method: {"other": 1}})
        assert session.invoke_action(f"mcp__{name}", {"server": "odd", **args}).code == "server_answer"
        session.close()


def test_a_server_of_the_newest_protocol_is_read_like_any_other(odd: Callable[..., reyn.Session]) -> None:
    found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
    session = odd(
        listing={
            "server/discover": found | {"ttlMs": 0, "cacheScope": "private"},
            "tools/list": {"tools": [tool(schema=None, outputSchema={"type": "array"}), tool("bad", 5)]},
        },
        answers={"good": {"result": {"content": [{"type": "json", "x": 1}], "structuredContent": [1, 2]}}},
    )
    assert page(session)["left_out"] == ["bad: its input schema is not an object"]
    newest = "2025-11-25" if IS_FIRST else "2026-07-28"
    assert session.parts.services.mcp.states()[0].protocol == newest
    parts = session.invoke_action("mcp__odd__good", {}).value
    assert "unknown type json" in parts[0].text and parts[1].json == [1, 2]


def test_a_server_that_ends_at_another_first_message_than_initialize_is_used(
    odd: Callable[..., reyn.Session],
) -> None:
    """As servers of older versions of the SDK for Rust do."""
    session = odd(tools=[tool()], strict=True)
    assert session.invoke_action("mcp__odd__good", {}).error is None
    access = session.parts.services.mcp
    refusal = "expected initialize, got server/discover"
    assert access.states()[0].errors == 0 and refusal in access.log("odd")
    ENGINE.run(access.restart("odd"))
    assert session.invoke_action("mcp__odd__good", {}).error is None
    assert access.log("odd").count(refusal) == 1  # it is not asked again


@pytest.mark.parametrize("single", [False, True])
def test_a_server_that_leaves_the_question_for_the_newest_protocol_unanswered_is_used(
    odd: Callable[..., reyn.Session], *, single: bool
) -> None:
    """As servers of the first versions of the SDK for Python do, and those that start slowly.

    One of the SDK for Go that starts slowly takes no second handshake.
    """
    session = odd(tools=[tool()], silent=True, single=single)
    assert session.invoke_action("mcp__odd__good", {}).error is None
    access = session.parts.services.mcp
    asked = [line for line in access.log("odd") if "not answered" in line]
    assert len(asked) == 1
    ENGINE.run(access.restart("odd"))
    assert session.invoke_action("mcp__odd__good", {}).error is None
    assert [line for line in access.log("odd") if "not answered" in line] == asked  # it is not asked again


CRASHES = {
    "node": (
        """node:internal/modules/run_main:107
    triggerUncaughtException(
    ^

Error: Cannot find module '/srv/index.js'
    at resolve (node:internal/modules/loader:1:2) {
  code: 'MODULE_NOT_FOUND'
}

Node.js v24.19.0
""",
        "Error: Cannot find module '/srv/index.js'",
    ),
    "go": (
        """Error: no current-context is set in kubeconfig.
Usage:
  server [flags]

Flags:
      --log-file string   Set to "stderr" to log to the standard error stream
      --version           Print version information and quit
""",
        "Error: no current-context is set in kubeconfig.",
    ),
    "rust": (
        """thread 'main' panicked at src/main.rs:5:9:
no calendar
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
""",
        "thread 'main' panicked at src/main.rs:5:9: no calendar",
    ),
    "click": (
        """Usage: server [OPTIONS]
Try 'server --help' for help.

Error: In-memory databases require --read-write.
Options:
- Add --read-write
""",
        "Error: In-memory databases require --read-write.",
    ),
    "plain": ("loading\nAPI key is missing\n", "API key is missing"),
}


@pytest.mark.parametrize(("writes", "reason"), CRASHES.values(), ids=CRASHES)
def test_a_program_that_ends_at_its_start_is_reported_with_its_error(
    odd: Callable[..., reyn.Session], writes: str, reason: str
) -> None:
    session = odd(writes=writes, ends=True)
    error = session.invoke_action("mcp__list_tools", {"server": "odd"}).error
    assert error is not None and reason in error, error


COMPLAINT = (
    "PingRequest.method",
    "  Input should be 'ping' [type=literal_error, input_value='server/discover', input_type=str]",
    "    For further information visit https://errors.pydantic.dev/2.14/v/literal_error",
)
# As Rich breaks it.
BROKEN = (
    "[11/29/26 11:06:45] INFO     Starting a server                 server.py:165",
    "                    WARNING  Failed to validate request: 31       session.py:383",
    "                             validation errors for ClientRequest                ",
    "                             InitializeRequest.params.protocolVer               ",
    "                             sion                                               ",
    "                               Field required [type=missing,                    ",
    "                             input_value={'_meta':                              ",
    "                             {}}}}}, input_type=dict]                           ",
    "                               Input should be 'initialize'                     ",
    "                             [type=literal_error,                               ",
    "                             input_value='server/discover',                     ",
    "                             input_type=str]                                    ",
    "                             https://errors.pydantic.dev/2.14/v/m               ",
    "                             issing                                             ",
    "                    INFO     Ready                             server.py:170",
)


@pytest.mark.parametrize("head", ["", "2026-11-29 10:55:42,424 root WARNING ", "WARNING:root:", None])
def test_a_complaint_about_the_newest_protocol_is_one_line_of_the_log(
    odd: Callable[..., reyn.Session], head: str | None
) -> None:
    lines = BROKEN
    if head is not None:
        first = f"{head}Failed to validate request: 31 validation errors for ClientRequest"
        lines = (BROKEN[0], first, *COMPLAINT, *COMPLAINT, BROKEN[-1].strip())
    session = odd(tools=[tool()], complains="\n".join(lines) + "\n")
    assert session.invoke_action("mcp__odd__good", {}).error is None
    assert session.parts.services.mcp.log("odd") == (BROKEN[0], OLDER, BROKEN[-1].strip())


def test_a_complaint_about_another_request_stays_in_the_log(odd: Callable[..., reyn.Session]) -> None:
    other = tuple(line.replace("server/discover", "tools/call") for line in BROKEN)
    session = odd(tools=[tool()], complains="\n".join((*BROKEN[:-1], *other)) + "\n")
    assert session.invoke_action("mcp__odd__good", {}).error is None
    kept = tuple(line.strip() for line in other)
    assert session.parts.services.mcp.log("odd") == (BROKEN[0], OLDER, *kept)


def test_an_address_that_takes_no_requests_is_reported_with_a_way_out(make: Make) -> None:
    """As one does that speaks SSE alone."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_error(405)

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        session = make(McpServer("old", "http", url=f"http://127.0.0.1:{served.server_address[1]}/sse"))
        error = session.invoke_action("mcp__list_tools", {"server": "old"}).error
        served.shutdown()
    assert error is not None and "streamable HTTP" in error and "mcp-proxy" in error


def test_odd_answers_over_http_are_read_like_those_of_a_program(make: Make) -> None:
    answers: dict[str, Any] = {
        "null": {"result": {"content": [HELLO, {"type": "x"}], "isError": None}},
        "bare": {"result": "hello"},
        "error": {"error": {"code": -32000, "data": "hello"}},
        "text": {"error": "hello"},
        "unnumbered": {"id": None, "error": {"code": -32600, "message": "hello"}},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            method = asked["method"]
            told: dict[str, Any] = {"error": {"code": -32601, "message": "Method not found"}}
            if method == "initialize":
                told = {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": []}}}
            elif method == "tools/list":
                told = {"result": {"tools": [tool(name, None) for name in answers]}}
            elif method == "tools/call":
                told = answers[asked["params"]["name"]]
            body = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), **told}).encode()
            self.send_response(200 if "id" in asked else 202)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body) if "id" in asked else 0))
            self.end_headers()
            if "id" in asked:
                self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_error(405)

        do_DELETE = do_GET  # noqa: N815

        def log_message(self, *args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        session = make(McpServer("odd", "http", url=f"http://127.0.0.1:{server.server_port}/mcp"))
        for name in answers:
            result = session.invoke_action(f"mcp__odd__{name}", {})
            assert "hello" in str(result.payload), (name, result.payload)
            assert (result.error is None) == ("result" in answers[name])
    finally:
        server.shutdown()
        server.server_close()
