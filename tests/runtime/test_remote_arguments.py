"""References in calls of tools that run elsewhere, as their handlers get them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import (
    CalledAction,
    Category,
    Effect,
    Entry,
    Operation,
    Purity,
    Resources,
    Tool,
)
from reyn_jupyter.catalog.arguments.reference_places import admit_references
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.call.json_arguments import LARGEST_ARGUMENTS

THEIRS = admit_references(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "object", "required": ["a"]}},
            "note": {"type": "string"},
            "thing": {},
        },
    }
)


class Opaque:
    """An object of the person's, whose own code must not run."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


NAMES: dict[str, Any] = {
    "frame": pd.DataFrame({"a": [1, 2], "when": pd.to_datetime(["2026-01-01", None]), "x": [0.5, np.nan]}),
    "other": pd.DataFrame({"b": [1]}),
    "matrix": np.array([[1, 2], [3, 4]]),
    "large": pd.DataFrame({"a": ["x" * 100] * 20_000}),
    "many": pd.DataFrame({"a": range(5_000_000)}),
    "text": "y" * (LARGEST_ARGUMENTS + 10),
    "numbers": [1.0, float("inf"), {"$number": 3}],
    "opaque": Opaque(),
    "raw": b"\x00\x01",
    "day": pd.Timestamp("2026-01-01"),
}


class Remote:
    """A session whose one category stands for a server."""

    def __init__(self, root: Path, remote: bool = True) -> None:
        self.received: list[dict[str, Any]] = []
        self.judged: list[dict[str, Any]] = []

        async def send(args: dict[str, Any], context: Any) -> Any:
            self.received.append(json.loads(json.dumps(args, allow_nan=False)) if remote else args)
            return "sent"

        def effects(args: dict[str, Any], context: Any) -> list[Effect]:
            self.judged.append(args)
            return [Effect("mcp", "their/tool")]

        async def entries() -> list[Entry]:
            return [Entry("put", "Put rows.", THEIRS, open_schema=True)]

        tool = Tool("send_their", send, Purity.NETWORK, effects, remote=remote)
        named = Operation(
            "call",
            "Call a tool by name.",
            {
                "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}},
                "required": ["tool"],
            },
            tool,
            calls=lambda args: CalledAction(f"their.tool__{args['tool']}", "tool", "arguments"),
        )
        rule = Resources(tool, lambda entry, args: args, "call it", entries)
        parts = (Category("their", "Call tools.", (named,)), Category("their.tool", "Their tools.", (), rule))
        config = {"permissions": {"allow": ["their__*", "their.tool__*"]}, "variables": "schema"}
        self.session = reyn.Session(root, store="memory", config=config, categories=parts, namespace=NAMES)

    def call(self, name: str, /, **args: Any) -> str:
        model = ScriptedModel(call("invoke_action", action_name=name, args=args), "done")
        trace = self.session.ask("go", model=model, new=True, approve="all")
        assert trace.answer == "done", trace.error
        return "\n".join(m.content for m in model.requests[-1].messages if m.role == "tool")


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path)


def var(name: str) -> dict[str, str]:
    return {"$var": name}


def test_a_frame_goes_as_its_records(remote: Remote) -> None:
    assert "sent" in remote.call("their.tool__put", rows=var("frame"), extra=1)
    (got,) = remote.received
    assert got["extra"] == 1
    assert [row["a"] for row in got["rows"]] == [1, 2]
    assert got["rows"][0]["when"].startswith("2026-01-01") and got["rows"][1]["when"] is None
    assert got["rows"][1]["x"] is None
    assert remote.judged == [got]


def test_other_values_go_as_json_has_them(remote: Remote) -> None:
    for name in ("matrix", "numbers", "day"):
        assert "sent" in remote.call("their.tool__put", thing=var(name))
    matrix, numbers, day = (got["thing"] for got in remote.received)
    assert numbers == [1.0, None, {"$number": 3}]
    assert day.startswith("2026-01-01")
    assert [list(row.values()) if isinstance(row, dict) else row for row in matrix] == [[1, 2], [3, 4]]


def test_a_frame_that_does_not_fit_the_schema_is_refused(remote: Remote) -> None:
    answer = remote.call("their.tool__put", rows=var("other"))
    assert "/rows" in answer and "does not fit" in answer
    assert remote.received == []


@pytest.mark.parametrize("name", ["large", "many", "text"])
def test_what_is_too_large_is_refused_with_its_bound(remote: Remote, name: str) -> None:
    answer = remote.call("their.tool__put", thing=var(name))
    assert "too large as JSON" in answer or "1,000,000 bytes" in answer
    assert "Refer to a smaller" in answer
    assert remote.received == []


@pytest.mark.parametrize(
    ("name", "what"), [("opaque", "a Opaque, which has no form"), ("raw", "bytes, which JSON")]
)
def test_what_json_does_not_have_is_refused(remote: Remote, name: str, what: str) -> None:
    assert what in remote.call("their.tool__put", thing=var(name))
    assert remote.received == []


def test_inner_arguments_of_a_call_by_name_are_opened_too(remote: Remote) -> None:
    answer = remote.call("their__call", tool="put", arguments={"rows": var("frame"), "note": "n"})
    assert "sent" in answer
    (got,) = remote.received
    assert got["tool"] == "put" and [row["a"] for row in got["arguments"]["rows"]] == [1, 2]


def test_a_fault_within_a_call_by_name_is_answered_with_the_schema_that_it_does_not_fit(
    remote: Remote,
) -> None:
    answer = remote.call("their__call", tool="put", arguments={"note": 5})
    assert "/arguments/note" in answer and "must be a string" in answer
    assert "their.tool__put" in answer and "with 'arguments' that match input_schema" in answer
    assert "Did you mean put?" in remote.call("their__call", tool="pt", arguments={})
    assert remote.received == []


def test_a_tool_that_runs_here_gets_the_very_object(tmp_path: Path) -> None:
    here = Remote(tmp_path, remote=False)
    assert "sent" in here.call("their.tool__put", thing=var("frame"))
    assert here.received[0]["thing"] is NAMES["frame"]
