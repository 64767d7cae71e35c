"""A run's log as a cassette: played back through a fresh session it gives the same turn, or says what moved."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.base import Request
from reyn_jupyter.models.cassettes.cassette import CassettePlayer, export
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.support.key_shapes import contains_key_shape
from tests.end_to_end.e2e_support import invoke, paired, scripted


def look_into_it(request: Request) -> Any:
    blob = re.findall(r"\[blob:([0-9a-f-]{36})\]", request.messages[-1].content)[-1]
    return [
        call("inspect", blob_id=blob, selector="lines:500-502"),
        call("inspect", blob_id=f"[blob:{blob}]", selector="lines:7-7"),
        invoke("file__grep", pattern="line 7", path="long.txt"),
    ]


STEPS = (
    call("list_actions", category=["file"]),
    invoke("file__read", path="long.txt"),
    look_into_it,
    "Done.",
)


@pytest.fixture
def workspace(workspace: Path) -> Path:
    (workspace / "long.txt").write_text("".join(f"line {n}\n" for n in range(1000)))
    return workspace


def log_of(workspace: Path, run: str) -> Path:
    return workspace / ".reyn" / "runs" / f"{run}.jsonl"


@pytest.fixture
def recorded(workspace: Path) -> Any:
    s, _ = scripted(workspace, *STEPS, store="files", tier="light")
    return s.ask("what is on line 500?")


def outputs(trace: Any, drop_ids: bool = True) -> list[str]:
    texts = [each.finished.output for each in trace.calls]
    return [re.sub(r"[0-9a-f-]{36}", "<id>", text) for text in texts] if drop_ids else texts


def test_a_run_plays_back_in_a_fresh_session_on_the_same_workspace(workspace: Path, recorded: Any) -> None:
    player = CassettePlayer(log_of(workspace, recorded.run), contains_key_shape)
    again = reyn.Session(workspace, model=player).ask("what is on line 500?")
    assert (again.status, again.answer, again.error) == ("ok", "Done.", None)
    assert outputs(again) == outputs(recorded) and all(each.ok for each in again.calls)
    assert player.remaining == 0 and paired(again)
    assert not again.started.real and again.started.tier == "light"


def test_the_stored_result_that_is_looked_into_is_the_one_of_the_playback(
    workspace: Path, recorded: Any
) -> None:
    """In a store of its own: the recorded id names nothing there, the one in its place does."""
    player = CassettePlayer(log_of(workspace, recorded.run), contains_key_shape)
    again = reyn.Session(workspace, model=player, store="memory").ask("what is on line 500?")
    assert again.answer == "Done." and again.calls[2].finished.output.startswith(
        "line 499\nline 500\nline 501"
    )


def test_the_model_events_alone_play_back_too(workspace: Path, recorded: Any, tmp_path: Path) -> None:
    export(log_of(workspace, recorded.run), tmp_path / "cassette.jsonl", contains_key_shape)
    player = CassettePlayer(tmp_path / "cassette.jsonl", contains_key_shape, tier="light")
    assert reyn.Session(workspace, model=player).ask("what is on line 500?").answer == "Done."


def test_a_recording_plays_back_on_another_day(
    workspace: Path, recorded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 40 * 86_400)
    player = CassettePlayer(log_of(workspace, recorded.run), contains_key_shape)
    assert reyn.Session(workspace, model=player).ask("what is on line 500?").answer == "Done."


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        ({"prompt": "what is on line 501?"}, "messages"),
        ({"config": {"router": {"edit_rule": "none"}}}, "messages"),
        ({"config": {"router": {"surface": "flat"}}}, "tools"),
        ({"config": {"router": {"discovery": "forced"}}}, "tool_choice"),
    ],
)
def test_what_moved_is_named_in_a_miss(
    workspace: Path, recorded: Any, change: dict[str, Any], moved: str
) -> None:
    player = CassettePlayer(log_of(workspace, recorded.run), contains_key_shape)
    s = reyn.Session(workspace, model=player, config=change.get("config"))
    trace = s.ask(change.get("prompt", "what is on line 500?"))
    assert trace.status == "error" and moved in str(trace.error).partition(" (")[0]
    assert trace.calls == ()


def test_a_workspace_that_changed_is_a_miss_at_the_step_that_saw_it(workspace: Path, recorded: Any) -> None:
    (workspace / "long.txt").write_text("other\n" * 1000)
    player = CassettePlayer(log_of(workspace, recorded.run), contains_key_shape)
    trace = reyn.Session(workspace, model=player).ask("what is on line 500?")
    assert trace.status == "error" and "messages moved" in str(trace.error)
    assert len(trace.steps) == 3


def test_parameters_of_the_recorded_model_belong_to_its_recording(workspace: Path) -> None:
    class Warm(ScriptedModel):
        parameters = {"temperature": 0.5}  # noqa: RUF012 - read only

    s = reyn.Session(workspace, model=Warm("ok"))
    run = s.ask("go").run
    player = CassettePlayer(log_of(workspace, run), contains_key_shape)
    assert reyn.Session(workspace, model=player).ask("go").answer == "ok"


def test_a_later_turn_holds_only_its_new_messages_and_turns_play_back_one_after_the_other(
    workspace: Path, tmp_path: Path
) -> None:
    s, _ = scripted(workspace, *STEPS, "Second.", store="files")
    runs = [s.ask("first").run, s.ask("second").run]
    later = s.trace(runs[1]).steps[0].requested
    assert [message["content"] for message in later.messages] == ["second"]
    assert later.tool_specs is None and later.total_messages > 5
    both = tmp_path / "both.jsonl"
    both.write_bytes(b"".join(log_of(workspace, run).read_bytes() for run in runs))
    again = reyn.Session(workspace, model=CassettePlayer(both, contains_key_shape))
    assert [again.ask("first").answer, again.ask("second").answer] == ["Done.", "Second."]


def test_keys_are_the_same_in_another_process_and_another_hash_seed(workspace: Path) -> None:
    from tests.support.processes import child

    code = """
        import sys
        from tests.end_to_end.e2e_support import scripted
        s, model = scripted(sys.argv[1], "ok", tier="light")
        s.ask("go")
        print(model.requests[0].key)
    """
    keys = {child(code, str(workspace), PYTHONHASHSEED=seed).stdout for seed in ("1", "2")}
    assert len(keys) == 1 and len(keys.pop().strip()) == 64


def test_keys_do_not_depend_on_how_fast_a_machine_embeds(workspace: Path) -> None:
    """Search is offered where a model is at hand, and its answer waits for the index that it is made from."""
    from tests.support.processes import child

    code = """
        import sys, time
        from pathlib import Path
        from tests.end_to_end.e2e_support import scripted
        from reyn_jupyter.models.scripted import call
        from reyn_jupyter.search.embedders.packaged import PackagedMiniLM

        embed = PackagedMiniLM.embed

        def late(self, texts):
            time.sleep(float(sys.argv[2]))
            return embed(self, texts)

        PackagedMiniLM.embed = late
        search = call("search_actions", query="amend part of a document")
        s, model = scripted(Path(sys.argv[1]), search, "ok", tier="light")
        s.ask("go")
        print(*(request.key for request in model.requests), "search_actions" in model.requests[0].tools.names)
    """
    said = [child(code, str(workspace), seconds) for seconds in ("0", "1.6")]
    assert [each.stderr for each in said] == ["", ""]
    first, second = (each.stdout.split() for each in said)
    assert first == second and len(first) == 3 and first[-1] == "True"
