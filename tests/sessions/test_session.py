"""The Python face: objects with payloads, errors as values, runs by hand, and the record behind all of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.config import ConfigError
from reyn_jupyter.models import server_finder
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.displays.mime import mimebundle
from reyn_jupyter.sessions.overviews import session_overview
from reyn_jupyter.sessions.runs.undo import NothingToUndoError
from tests.support.trusting import trust
from tests.support.waiting import awaited


@pytest.fixture
def session(workspace: Path) -> reyn.Session:
    return reyn.Session(workspace)


def test_payloads_are_what_a_model_receives(workspace: Path) -> None:
    model = ScriptedModel(
        call("list_actions", category=["file"], limit=3),
        call("describe_action", action_name="file__read"),
        call("invoke_action", action_name="file__read", args={"path": "notes.txt"}),
        "done",
    )
    session = reyn.Session(workspace, model=model)
    session.ask("go")
    listed, described, read = (m.content for m in model.requests[-1].messages if m.role == "tool")
    listing = json.loads(listed)
    listing.pop("search_hint", None)
    assert session.list_actions("file", limit=3).payload == listing
    assert session.describe_action("file__read").payload == json.loads(described)
    assert session.invoke_action("file__read", {"path": "notes.txt"}).payload == read


def test_what_fails_comes_back_with_error_set_and_is_never_raised(session: reyn.Session) -> None:
    failed = [
        session.list_actions("fiel"),
        session.describe_action("file__raed"),
        session.invoke_action("file__raed"),
        session.invoke_action("file__read", {"path": "missing"}),
        session.invoke_action("file__read", {"pth": "x"}),
        session.inspect("../../etc/passwd"),
        session.inspect("00000000-0000-7000-8000-000000000000"),
    ]
    for found in failed:
        assert isinstance(found.payload, dict) and found.error == found.payload["error"]


def test_the_value_of_a_failed_result_raises_with_the_reason(session: reyn.Session) -> None:
    with pytest.raises(RuntimeError, match="Unknown action"):
        _ = session.invoke_action("file__raed").value


def test_a_call_by_hand_is_consent_and_a_run_of_kind_manual(session: reyn.Session, workspace: Path) -> None:
    result = session.invoke_action("file__write", {"path": "new.txt", "content": "hello"})
    assert result.error is None and (workspace / "new.txt").read_text() == "hello"
    assert session.runs.rows[0]["kind"] == "manual"
    assert result.trace is not None and result.trace.status == "ok"


def test_deny_rules_hold_for_the_person_too(workspace: Path) -> None:
    session = reyn.Session(workspace, config={"permissions": {"deny": ["file__delete"]}})
    assert "denied" in str(session.invoke_action("file__delete", {"path": "notes.txt"}).error).lower()
    assert (workspace / "notes.txt").exists()


def test_undo_restores_writes_edits_and_deletions_of_a_run_byte_for_byte(workspace: Path) -> None:
    before = (workspace / "notes.txt").read_bytes()
    steps = [
        call(
            "invoke_action",
            action_name="file__edit",
            args={"path": "notes.txt", "old_string": "second", "new_string": "2nd"},
        ),
        call("invoke_action", action_name="file__write", args={"path": "new.txt", "content": "x"}),
        call("invoke_action", action_name="file__delete", args={"path": "data/orders.csv"}),
        "done",
    ]
    session = reyn.Session(workspace, model=ScriptedModel(*steps))
    trace = session.ask("change things", approve="all")
    assert b"2nd" in (workspace / "notes.txt").read_bytes()
    card = session.undo()
    assert (workspace / "notes.txt").read_bytes() == before
    assert not (workspace / "new.txt").exists() and (workspace / "data" / "orders.csv").exists()
    assert "3 files restored" in card.title
    drawn = mimebundle(card)["text/html"]
    assert drawn.count('class="r-diff"') == 3 and trace.run not in drawn, "like a question's, and no bare id"
    assert session.runs.rows[0]["prompt"] == f"undo {trace.run[-12:]}"


def test_undo_is_refused_with_the_difference_when_a_file_changed_since(
    session: reyn.Session, workspace: Path
) -> None:
    session.invoke_action("file__write", {"path": "notes.txt", "content": "by the action"})
    (workspace / "notes.txt").write_text("by hand, later")
    with pytest.raises(Exception, match="changed since") as refused:
        session.undo()
    assert "by hand, later" in refused.value.diff  # type: ignore[attr-defined]
    assert (workspace / "notes.txt").read_text() == "by hand, later"


def test_an_undo_that_was_killed_is_done_again_and_the_next_one_walks_back(workspace: Path) -> None:
    def write(name: str) -> object:
        return call("invoke_action", action_name="file__write", args={"path": name, "content": "x"})

    before = (workspace / "notes.txt").read_text()
    session = reyn.Session(workspace, model=ScriptedModel(write("notes.txt"), write("new.txt"), "done"))
    session.invoke_action("file__write", {"path": "older.txt", "content": "x"})
    trace = session.ask("go", approve="all")
    (workspace / "new.txt").unlink()  # what an undo had done when its process was killed
    card = session.undo()
    assert (workspace / "notes.txt").read_text() == before
    assert "1 file restored" in card.title and ("new.txt", "was as before already") in card.facts
    with pytest.raises(NothingToUndoError, match="undone already"):
        session.undo(trace.run)
    (workspace / "older.txt").unlink()  # an undo that was killed before it was recorded
    assert "0 files restored" in session.undo().title
    with pytest.raises(NothingToUndoError, match="everything"):
        session.undo()


def test_undo_of_one_step_leaves_the_others(workspace: Path) -> None:
    def write(name: str) -> object:
        return call("invoke_action", action_name="file__write", args={"path": name, "content": "x"})

    session = reyn.Session(workspace, model=ScriptedModel(write("a.txt"), write("b.txt"), "done"))
    trace = session.ask("go", approve="all")
    session.undo(f"{trace.run}:2")
    assert (workspace / "a.txt").exists() and not (workspace / "b.txt").exists()


def test_undo_without_a_store_says_that_nothing_was_kept(workspace: Path) -> None:
    session = reyn.Session(workspace, store=None)
    session.invoke_action("file__write", {"path": "notes.txt", "content": "x"})
    with pytest.raises(LookupError, match="not kept"):
        session.undo()


def test_the_script_of_a_run_repeats_it_without_a_model(workspace: Path) -> None:
    (workspace / "long.txt").write_text("".join(f"line {n}\n" for n in range(500)))
    seen: list[str] = []

    def inspect(request: object) -> object:
        text = request.messages[-1].content  # type: ignore[attr-defined]
        seen.append(text.partition("[blob:")[2].partition("]")[0])
        return call("inspect", blob_id=seen[0], selector="lines:3-4")

    read = call("invoke_action", action_name="file__read", args={"path": "long.txt"})
    session = reyn.Session(workspace, model=ScriptedModel(read, inspect, "done"))
    session.ask("it's \"quoted\"\n'''")
    code = session.script().code
    assert seen[0] not in code and "step_1.blob.id" in code
    names: dict[str, object] = {}
    exec(code.replace("reyn.session()", f"reyn.Session({str(workspace)!r})"), names)
    assert str(names["result"]).startswith("line 2\nline 3")


def test_a_script_holds_a_models_strings_as_literals_only(workspace: Path) -> None:
    evil = "'); import os; os.system('touch pwned') #\n\"\"\""
    write = call("invoke_action", action_name="file__write", args={"path": "a.txt", "content": evil})
    session = reyn.Session(workspace, model=ScriptedModel(write, "done"))
    session.ask(evil, approve="all")
    exec(session.script().code.replace("reyn.session()", f"reyn.Session({str(workspace)!r})"), {})
    assert (workspace / "a.txt").read_text() == evil and not (workspace / "pwned").exists()


def test_a_replay_takes_results_from_the_record_and_changes_nothing_again(workspace: Path) -> None:
    steps = [
        call("invoke_action", action_name="file__read", args={"path": "notes.txt"}),
        call("invoke_action", action_name="file__write", args={"path": "out.txt", "content": "x"}),
        "done",
    ]
    session = reyn.Session(workspace, model=ScriptedModel(*steps))
    first = session.ask("go", approve="all")
    (workspace / "out.txt").unlink()
    (workspace / "notes.txt").write_text("changed")
    again = session.replay(first.run)
    assert again.answer == "done" and not (workspace / "out.txt").exists()
    assert [c.finished.output for c in again.calls] == [c.finished.output for c in first.calls]
    assert again.started.run_kind == "replay" and again.started.replay_of == first.run
    assert session.history.rows[-1]["run"] == first.run


def test_a_replay_on_another_model_reads_again_and_asks_for_new_writes(workspace: Path) -> None:
    first_model = ScriptedModel(
        call("invoke_action", action_name="file__read", args={"path": "notes.txt"}), "old"
    )
    session = reyn.Session(workspace, model=first_model)
    first = session.ask("go")
    (workspace / "notes.txt").write_text("changed")
    other = ScriptedModel(
        call("invoke_action", action_name="file__read", args={"path": "notes.txt"}),
        call("invoke_action", action_name="file__write", args={"path": "out.txt", "content": "x"}),
        "new",
    )
    again = session.replay(first.run, model=other)
    assert again.answer == "new"
    assert again.calls[0].finished.output == "changed"
    assert again.calls[1].decision.decision == "denied" and not (workspace / "out.txt").exists()


def test_a_replay_from_a_step_keeps_the_earlier_replies(workspace: Path) -> None:
    model = ScriptedModel(
        call("invoke_action", action_name="file__read", args={"path": "notes.txt"}), "old", "new"
    )
    session = reyn.Session(workspace, model=model)
    first = session.ask("go")
    again = session.replay(first.run, from_step=2, model=model)
    assert (again.answer, len(again.calls)) == ("new", 1)


def test_runs_are_found_by_any_unique_part_of_their_id(session: reyn.Session) -> None:
    run = session.invoke_action("file__list", {"path": "."}).trace.run  # type: ignore[union-attr]
    assert session.trace(run[-12:]).run == session.trace(-1).run == session.trace().run == run
    with pytest.raises(LookupError, match="no run has"):
        session.trace("zzzz")


def test_two_runs_side_by_side(session: reyn.Session) -> None:
    a = session.invoke_action("file__read", {"path": "notes.txt"}).trace
    b = session.invoke_action("file__read", {"path": "data/orders.csv"}).trace
    assert a is not None and b is not None
    rows = session.diff(a.run, b.run).rows
    assert [row["same"] for row in rows] == ["same", "other arguments", "differs"]


def test_settings_are_shown_as_reyn_yaml_has_them_and_nothing_spent_is_no_row_of_zeros(
    session: reyn.Session,
) -> None:
    session.configure("web.private_hosts", ["wiki.example.org", "localhost:8080"])
    values = {row["key"]: row["value"] for row in session.config.rows}
    assert values["web.private_hosts"] == "[wiki.example.org, 'localhost:8080']"
    assert values["calls.seconds"] == "{}"
    assert dict(session.status.facts)["spent"] == "0 tokens, $0"


def test_where_no_server_of_models_answers_the_way_on_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_finder, "PORTS", {9: "Ollama"})  # nothing listens there
    found = asyncio.run(session_overview.found_models([], quick=True))
    assert (
        found.rows == () and "No server of models answers" in found.note and "-m local/smollm2" in found.note
    )


def test_a_cloned_workspace_brings_no_trust_no_model_and_no_approvals(workspace: Path) -> None:
    (workspace / "reyn.yaml").write_text(
        "models: {standard: {model: openai/x, api_base: 'http://evil.example'}}\npermissions: {allow: ['file__*']}\n"
    )
    (workspace / ".reyn").mkdir()
    (workspace / ".reyn" / "approvals.json").write_text('{"approvals": [{"pattern": "file__*"}]}')
    session = reyn.Session(workspace)
    assert {row["model"] for row in session.models.rows} == {None, "offline"}
    assert session.approvals.rows == ()
    assert "models" in session.config.note
    trust(session)
    assert "openai/x" in {row["model"] for row in session.models.rows}
    assert reyn.Session(workspace).models.rows == session.models.rows
    (workspace / "reyn.yaml").write_text("models: {standard: openai/other}\n")
    assert "openai/other" not in {row["model"] for row in reyn.Session(workspace).models.rows}


def test_trust_is_given_to_the_file_as_it_is_now_and_not_as_it_was_when_the_session_began(
    workspace: Path,
) -> None:
    session = reyn.Session(workspace)
    assert trust(session).title == "Nothing to trust"
    (workspace / "reyn.yaml").write_text("models: {light: openai/first}\n")
    assert "models" in str(trust(session).facts)
    assert "openai/first" in {row["model"] for row in session.models.rows}
    (workspace / "reyn.yaml").write_text("models: {light: openai/second}\n")
    trust(session)
    assert "openai/second" in {row["model"] for row in session.models.rows}
    assert "openai/second" in {row["model"] for row in reyn.Session(workspace).models.rows}
    (workspace / "reyn.yaml").write_text("models: {mine: openai/third}\n")
    assert "models.mine: unknown key" in str(trust(session).facts)


def test_settings_change_for_the_session_and_say_where_they_came_from(session: reyn.Session) -> None:
    rows = {row["key"]: row for row in session.configure("router.limits.max_steps", "12").rows}
    assert rows["router.limits.max_steps"]["value"] == 12
    assert rows["router.limits.max_steps"]["from"] == "session"
    with pytest.raises(ConfigError, match="max_steps"):
        session.configure("router.limits.max_step", "12")


async def test_the_awaited_face_works_in_a_running_loop(workspace: Path) -> None:
    session = reyn.Session(workspace, model=ScriptedModel("hello"))
    assert (await session.aio.ask("hi")).answer == "hello"
    read = await session.aio.invoke_action("file__read", {"path": "notes.txt"})
    assert read.value.startswith("first line")
    assert (await session.aio.list_actions("file")).total == 7


async def test_cancelling_an_awaited_turn_keeps_the_partial_run(workspace: Path) -> None:
    asked = threading.Event()

    async def hang(request: object) -> str:
        asked.set()
        await asyncio.sleep(600)
        return "never"

    session = reyn.Session(workspace, model=ScriptedModel(hang))
    task = asyncio.create_task(session.aio.ask("hi"))
    await awaited(asked.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert session.trace().status == "interrupted"


def test_killing_the_process_leaves_a_valid_partial_trace(workspace: Path) -> None:
    code = textwrap.dedent(
        f"""
        import reyn_jupyter as reyn, os, signal
        from reyn_jupyter.models.scripted import ScriptedModel, call
        read = call("invoke_action", action_name="file__read", args={{"path": "notes.txt"}})
        def die(request):
            os.kill(os.getpid(), signal.SIGKILL)
        reyn.Session({str(workspace)!r}, model=ScriptedModel(read, die)).ask("go")
        """
    )
    done = subprocess.run([sys.executable, "-c", code], env=os.environ, timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL
    trace = reyn.Session(workspace).trace()
    assert trace.status == "running" and trace.ended is None
    assert trace.calls[0].ok and trace.steps[1].replied is None


def test_a_torn_last_line_is_left_out_and_a_damaged_file_is_said(
    session: reyn.Session, workspace: Path
) -> None:
    session.invoke_action("file__list", {"path": "."})
    session.invoke_action("file__list", {"path": "."})
    older, newer = sorted((workspace / ".reyn" / "runs").glob("*.jsonl"))
    newer.write_bytes(newer.read_bytes()[:-20])
    older.write_bytes(b'{"type": "RunStarted"}\n' + older.read_bytes())
    other = reyn.Session(workspace)
    assert other.trace(newer.stem).ended is None
    with pytest.raises(ValueError, match="line 1"):
        other.trace(older.stem)
    assert [row["run"] for row in other.runs.rows] == [newer.stem]


def test_a_run_log_that_cannot_be_written_stays_in_memory_and_says_so(workspace: Path) -> None:
    (workspace / ".reyn").mkdir()
    (workspace / ".reyn" / "runs").write_text("a file where a folder should be")
    session = reyn.Session(workspace, model=ScriptedModel("hello"))
    trace = session.ask("hi")
    assert trace.answer == "hello"
    assert any("run log" in note for note in trace.ended.notes)  # type: ignore[union-attr]


def test_the_state_folder_keeps_itself_out_of_git(session: reyn.Session, workspace: Path) -> None:
    session.invoke_action("file__list", {"path": "."})
    assert (workspace / ".reyn" / ".gitignore").read_text() == "*\n"


def test_a_folder_that_does_not_exist_and_a_store_that_is_not_known_are_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no folder"):
        reyn.Session(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="store='disk'"):
        reyn.Session(tmp_path, store="disk")


def test_the_status_card_says_where_you_are_and_what_to_try(session: reyn.Session, workspace: Path) -> None:
    facts = dict(session.status.facts)
    assert facts["workspace"] == str(workspace)
    assert "not a language model" in facts["model"]
    assert session.status.tries


def test_a_replay_from_a_step_never_goes_to_another_host_under_the_same_name(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-0000000000000000")
    local = ScriptedModel("old", label="openai/local", host="127.0.0.1:9")
    first = reyn.Session(workspace, model=local).ask("go")
    with pytest.raises(Exception, match="not configured any more"):
        reyn.Session(workspace).replay(first.run, from_step=1)


def test_a_replay_runs_under_the_settings_of_its_run(workspace: Path) -> None:
    session = reyn.Session(workspace, model=ScriptedModel("a", "b"), config={"router": {"names": "shown"}})
    first = session.ask("go")
    again = reyn.Session(workspace, model=ScriptedModel("b")).replay(first.run)
    assert again.started.settings == first.started.settings


@pytest.mark.parametrize("step", [0, 99])
def test_a_replay_from_a_step_that_is_not_there_is_refused(workspace: Path, step: int) -> None:
    session = reyn.Session(workspace, model=ScriptedModel("a"))
    run = session.ask("go").run
    with pytest.raises(ValueError, match="--from takes 1 to 1"):
        session.replay(run, from_step=step)


def test_a_script_reads_a_secret_from_where_it_came_and_never_writes_its_mark(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "hunter2-hunter2")
    write = call(
        "invoke_action", action_name="file__write", args={"path": "a.txt", "content": "key=hunter2-hunter2\n"}
    )
    session = reyn.Session(workspace, model=ScriptedModel(write, "done"))
    session.ask("go", approve="all")
    code = session.script().code
    assert "hunter2" not in code and "redacted" not in code
    (workspace / "a.txt").unlink()
    exec(code.replace("reyn.session()", f"reyn.Session({str(workspace)!r})"), {})
    assert (workspace / "a.txt").read_text() == "key=hunter2-hunter2\n"


def test_what_a_local_model_saw_of_a_variable_is_left_out_for_a_hosted_one_and_the_rest_is_said(
    workspace: Path,
) -> None:
    pd = pytest.importorskip("pandas")
    names = {"people": pd.DataFrame({"name": ["alice-of-the-hill"]})}
    look = [
        call("invoke_action", action_name="variable__people", args={}),
        call("invoke_action", action_name="file__read", args={"path": "notes.txt"}),
    ]
    hosted = ScriptedModel("hello", "again", label="openai/x", host="api.openai.com")
    session = reyn.Session(workspace, namespace=names, config={"local_history": True})
    session.ask("look", model=ScriptedModel(look, "seen"))
    trace = session.ask("and now?", model=hosted)
    sent = json.dumps([request.wire for request in hosted.requests])
    assert "alice-of-the-hill" not in sent and "second line" in sent
    assert any("left out" in note for note in trace.ended.notes)  # type: ignore[union-attr]
    assert [(item["kind"], item["name"]) for item in trace.sent.contents] == [
        ("file", "notes.txt, from an earlier turn")
    ]
    assert session.ask("once more", model=hosted).sent.contents == []


def test_what_a_function_or_a_listing_returned_counts_as_sent(workspace: Path) -> None:
    hosted = ScriptedModel(
        call("invoke_action", action_name="function__rows", args={}),
        call("invoke_action", action_name="file__list", args={"path": "."}),
        "done",
        host="api.example.org",
    )
    session = reyn.Session(workspace, model=hosted)

    @session.action
    def rows() -> list[int]:
        """Give rows."""
        return list(range(10))

    sent = {(item["kind"], item["name"]): item["bytes"] for item in session.ask("go").sent.contents}
    assert sent[("result", "function__rows")] == len("[0,1,2,3,4,5,6,7,8,9]")
    assert ("result", "file__list") in sent


def test_a_replay_that_only_reads_denies_what_is_not_in_its_record_without_asking(workspace: Path) -> None:
    session = reyn.Session(workspace, model=ScriptedModel("nothing"))

    @session.action
    def ring() -> str:
        """Ring a bell."""
        return "rung"

    run = session.ask("go").run
    other = ScriptedModel(call("invoke_action", action_name="function__ring", args={}), "done")
    denied = session.replay(run, model=other, approve="read").calls[0]
    assert denied.decision is not None and (denied.decision.decision, denied.decision.by) == (
        "denied",
        "replay",
    )


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("read", {"category": "fiel"}),
        ("read", {"category": ["file", 3]}),
        ("read", {"limit": 0}),
        ("read", {"limit": -1}),
        ("", {}),
        ("  ", {}),
    ],
)
def test_a_search_that_cannot_be_read_is_answered_as_a_listing_is(
    session: reyn.Session, query: str, options: dict[str, Any]
) -> None:
    found = session.search_actions(query, **options)
    assert found.error and found.payload["hint"] and len(found) == 0
    if query == "read":
        assert found.payload == session.list_actions(**options).payload


def test_a_search_without_a_hit_leads_to_the_listing(session: reyn.Session) -> None:
    found = session.search_actions("zxqwv")
    assert found.payload["items"] == [] and "list_actions" in found.payload["hint"]
    assert "hint" not in session.search_actions("read file").payload


@pytest.mark.parametrize("prompt", ["", " \n", None, 7])
async def test_a_question_that_asks_nothing_is_refused_before_a_run_begins(
    session: reyn.Session, prompt: Any
) -> None:
    for face in (session.ask, session.start, session.dry):
        with pytest.raises(ValueError, match="Ask what"):
            face(prompt)
    with pytest.raises(ValueError, match="Ask what"):
        await session.aio.ask(prompt)
    assert not session.runs


def test_a_model_that_is_not_configured_leaves_the_missing_lines_as_the_hint(session: reyn.Session) -> None:
    ended = session.ask("x", model="light").ended
    assert ended is not None and ended.error == "No model is configured for the tier light."
    assert ended.hint is not None and ended.hint.startswith("Add to reyn.yaml:\nmodels:\n  light: ")


@pytest.mark.parametrize(("rows", "limit"), [(20, 5), (5000, 1000)])
def test_a_table_that_was_cut_says_so_and_names_the_knob(workspace: Path, rows: int, limit: int) -> None:
    session = reyn.Session(workspace)
    result = session.invoke_action(
        "table__query", {"sql": f"SELECT range AS n FROM range({rows})", "limit": limit}
    )
    assert isinstance(result.payload, str) and "limit" in result.payload.splitlines()[-1]
    assert result.blob is None or len(result.payload.encode()) <= 400
    rows = json.loads(result.payload.partition("\n[")[0]) if result.blob is None else result.blob.df
    assert len(rows) == limit


def test_a_look_into_a_variables_stored_description_is_left_out_too_and_a_query_over_it_is_not(
    workspace: Path,
) -> None:
    pd = pytest.importorskip("pandas")
    names = {"people": pd.DataFrame({f"column_{n}": [f"alice-{n}"] for n in range(40)})}

    def inspect(request: object) -> object:
        stored = request.messages[-1].content  # type: ignore[attr-defined]
        return call("inspect", blob_id=stored.partition("[blob:")[2].partition("]")[0], selector="key:head")

    sql = {"sql": "SELECT upper(column_7) AS found FROM people", "sources": {"people": "people"}}
    local = ScriptedModel(
        call("invoke_action", action_name="variable__people", args={}),
        inspect,
        call("invoke_action", action_name="table__query", args=sql),
        "seen",
    )
    hosted = ScriptedModel("hello", label="openai/x", host="api.openai.com")
    session = reyn.Session(workspace, namespace=names, config={"local_history": True})
    first = session.ask("look", model=local)
    assert "alice-7" in first.calls[1].finished.output  # type: ignore[union-attr]
    assert "blob" in {item["kind"] for item in first.contents} and first.sent.contents == []
    session.ask("and now?", model=hosted)
    sent = json.dumps(hosted.requests[0].wire)
    assert "alice-7" not in sent and "ALICE-7" in sent


def test_the_status_counts_the_categories_that_it_lists(workspace: Path) -> None:
    made = reyn.Session(workspace)
    counts = made.catalog.counts
    filled = [name for name, number in counts.items() if number]
    assert 0 < len(filled) < len(counts)
    said = str(dict(made.status.facts)["actions"])
    assert f"in {len(filled)} categories (" in said
    assert f"; {len(counts) - len(filled)} more with none yet)" in said
