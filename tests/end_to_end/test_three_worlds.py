"""One turn of a model takes a real server, a command in the sandbox and the person's frame, through the wrappers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.access.mcp_access import McpServerList
from reyn_jupyter.runtime.questions.consent import Answer, Question
from tests.security.security_support import invoke
from tests.support.mcp_servers import REAL, from_python

MEETINGS = pd.DataFrame({"city": ["Lisbon", "Tokyo"], "here": ["09:00", "08:15"]})


@pytest.mark.skipif(not REAL.exists(), reason="make setup-test installs the servers")
def test_a_server_a_command_and_a_frame_serve_one_question(workspace: Path) -> None:
    questions: list[Question] = []

    def person(question: Question) -> Answer:
        questions.append(question)
        return "once"

    session = reyn.Session(
        workspace,
        namespace={"meetings": MEETINGS},
        mcp_servers=McpServerList([from_python("time", "--local-timezone=UTC")]),
    )
    session.parts.ask_person = person
    has_sandbox = any(row["qualified_name"] == "exec__run" for row in session.list_actions("exec"))
    asked = {"source_timezone": "Europe/Berlin", "time": "09:00", "target_timezone": "Europe/Lisbon"}
    model = ScriptedModel(
        call("search_actions", query="convert a time between time zones"),
        call("describe_action", action_name="mcp__time__convert_time"),
        [invoke("mcp__time__convert_time", **asked), invoke("exec__run", argv=["date", "-u", "+%Y"])],
        invoke(
            "table__query",
            sql="select city from meetings where here > '08:30'",
            sources={"meetings": "meetings"},
        ),
        "Lisbon begins at 08:00 on its own clock.",
    )
    try:
        trace = session.ask("Whose meeting begins before nine on their own clock?", model=model)
        assert trace.answer == "Lisbon begins at 08:00 on its own clock."
        told = {
            str(each.resolved.name): each for each in trace.calls if each.resolved.wrapper == "invoke_action"
        }
        time, query, command = (
            told.get(name) for name in ("mcp__time__convert_time", "table__query", "exec__run")
        )
        assert time is not None and time.ok and "T08:00:00" in time.finished.output
        assert query is not None and query.ok, query.finished.output
        assert "Lisbon" in query.finished.output
        assert command is not None and command.ok is has_sandbox
        assert list(trace.df["city"]) == ["Lisbon"]
        # The person saw where each goes; reading the own frame asks nobody.
        places = [question.text for question in questions]
        assert len(places) == 1 + has_sandbox and any("mcp time/convert_time" in text for text in places)
        again = session.trace(trace.run)
        assert [each.ok for each in again.calls] == [each.ok for each in trace.calls]
    finally:
        session.close()
