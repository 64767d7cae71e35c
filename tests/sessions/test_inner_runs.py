"""Inner runs in the record: undone with the run around them, shown under it, and read from files that lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Purity
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.render.displayables import view
from reyn_jupyter.notebook.render.hosts.html import to_html
from reyn_jupyter.notebook.render.hosts.plain_text import to_text
from reyn_jupyter.runtime.services import ToolContext
from reyn_jupyter.sessions.runs.undo import NothingToUndoError
from tests.runtime.call.test_inner_calls import calling, flow, session, turned, writer

PATH = "data/orders.csv"


async def three_writes(args: Any, context: ToolContext) -> None:
    """Write a file by a call, by itself and by a call again."""
    await context.invoke("file__write", {"path": PATH, "content": "one"})
    await context.invoke("file__write", {"path": "new.txt", "content": "made"})
    await context.invoke("nested__run")


def writing(workspace: Path) -> reyn.Session:
    """Return a session with the installed categories and `outer__run`, which writes through two levels."""
    made = reyn.Session(workspace)
    installed = made.catalog.categories
    nested = flow("nested", calling("file__write", path=PATH, content="two"), Purity.WRITE)
    return session(workspace, *installed, flow("outer", three_writes, Purity.WRITE), nested)


def another(workspace: Path) -> reyn.Session:
    """Return another session on the workspace, whose person says yes to undoing what it did not do."""
    made = reyn.Session(workspace)
    made.parts.ask_person = lambda question: "once"
    return made


def test_undo_of_the_outer_run_covers_the_inner_ones_newest_first(workspace: Path) -> None:
    before = (workspace / PATH).read_bytes()
    made = writing(workspace)
    turned(made, approve="all")
    assert (workspace / PATH).read_text() == "two" and (workspace / "new.txt").exists()
    made.undo()
    assert (workspace / PATH).read_bytes() == before and not (workspace / "new.txt").exists()


def test_undo_after_a_restart_reads_the_inner_runs_from_their_files(workspace: Path) -> None:
    before = (workspace / PATH).read_bytes()
    trace = turned(writing(workspace), approve="all")
    again = another(workspace)
    again.undo(trace.run)
    assert (workspace / PATH).read_bytes() == before
    with pytest.raises(NothingToUndoError):
        again.undo(trace.run)


def test_undo_covers_what_a_killed_run_had_changed_by_calls_within_calls(workspace: Path) -> None:
    before = (workspace / PATH).read_bytes()
    trace = turned(writing(workspace), approve="all")
    # What a kill leaves: no file has its last lines, and the innermost call announced its change alone.
    for file in (workspace / ".reyn" / "runs").iterdir():
        lines = file.read_text().splitlines(keepends=True)
        nested = any('"nested__run"' in line and '"RunStarted"' in line for line in lines)
        lost = (
            ("ActionFinished", "RunEnded") if nested or file.name == f"{trace.run}.jsonl" else ("RunEnded",)
        )
        file.write_text(
            "".join(
                line for line in lines if not line.startswith(tuple(f'{{"type":"{each}"' for each in lost))
            )
        )
    again = another(workspace)
    assert again.trace(trace.run).status == "running" and len(list(again.trace(trace.run).all_inner)) == 2
    again.undo(trace.run)
    assert (workspace / PATH).read_bytes() == before and not (workspace / "new.txt").exists()


def test_undo_says_which_inner_run_it_could_not_read(workspace: Path) -> None:
    made = writing(workspace)
    trace = turned(made, approve="all")
    (inner,) = trace.inner.values()
    (deepest,) = inner.inner.values()
    (workspace / ".reyn" / "runs" / f"{deepest.run}.inner.jsonl").unlink()
    again = another(workspace)
    (workspace / PATH).write_text("one")
    card = again.undo(trace.run)
    assert any(title == "Not undone" and deepest.run[-12:] in lines[0] for title, lines in card.sections)


def test_the_table_of_runs_folds_inner_runs_under_the_outer_one(workspace: Path) -> None:
    made = writing(workspace)
    trace = turned(made, approve="all")
    (row,) = made.runs.rows
    assert row["run"] == trace.run and row["calls"] == 1 and row["inner"] == 4
    assert reyn.Session(workspace).runs.rows == made.runs.rows
    assert made.trace().run == trace.run  # the last run is the outer one, though the inner ones are newer


def test_the_card_and_its_steps_show_inner_runs_nested(workspace: Path) -> None:
    made = writing(workspace)
    trace = turned(made, approve="all")
    drawn = view(trace)
    for shown in (to_text(drawn), to_html(drawn)):
        assert "Inner run · 3 calls" in shown and "nested__run" in shown and "Inner run · 1 call" in shown
    from reyn_jupyter.notebook.render.trace.steps import step_rows
    from reyn_jupyter.notebook.render.value_text import Look

    rows = [(row.id, row.title) for row in step_rows(trace, Look()) if row.kind == "call"]
    assert [row for row, _ in rows] == ["c0", "c0.c0", "c0.c1", "c0.c2", "c0.c2.c0"]
    assert rows[-1][1].startswith("↳ ↳ ")


def test_an_exported_page_holds_the_steps_of_inner_runs(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from reyn_jupyter.sessions import current

    made = writing(workspace)
    trace = turned(made, approve="all")
    monkeypatch.setattr(current, "_current", [made])
    reyn.export(tmp_path / "page.html", trace)
    page = (tmp_path / "page.html").read_text()
    assert "c0.c2.c0" in page


def test_blobs_of_inner_runs_are_kept_with_their_run(workspace: Path) -> None:
    async def large(args: Any, context: ToolContext) -> str:
        return "x" * 100_000

    made = session(workspace, flow("outer", calling("leaf__run")), flow("leaf", large))
    made.invoke_action("outer__run")
    (inner,) = made.trace().inner.values()
    made.collect_blobs()
    assert inner.calls[0].finished is not None and inner.calls[0].finished.blob is not None
    assert made.blob(inner.calls[0].finished.blob).size == 100_000


# Replay and script.


def test_a_replay_takes_the_outer_call_from_the_record_and_makes_no_inner_one(workspace: Path) -> None:
    made = writing(workspace)
    turned(made, approve="all")
    (workspace / PATH).write_text("untouched")
    again = made.replay()
    assert not again.inner and (workspace / PATH).read_text() == "untouched"


def test_a_read_that_runs_again_in_a_replay_asks_before_it_writes_by_a_call(workspace: Path) -> None:
    made = session(workspace, flow("outer", calling("store__put", path="out.txt", text="new")), writer())
    turned(made, approve="all")
    (workspace / "out.txt").unlink()
    made.parts.ask_person = lambda question: "deny"
    model = ScriptedModel(call("invoke_action", action_name="outer__run", args={}), "Done.")
    again = made.replay(model=model)
    (inner,) = again.inner.values()
    assert inner.calls[0].denied and not (workspace / "out.txt").exists()


def test_an_inner_run_is_not_replayed_by_itself(workspace: Path) -> None:
    outer, inner, _ = stored(workspace)
    with pytest.raises(ValueError, match=f"replay {outer[-12:]}"):
        reyn.Session(workspace).replay(inner)


def test_what_a_call_within_a_call_showed_of_a_variable_is_left_out_for_a_hosted_model(
    workspace: Path,
) -> None:
    pd = pytest.importorskip("pandas")
    names = {"people": pd.DataFrame({"name": ["alice-of-the-hill"]})}
    installed = reyn.Session(workspace, namespace=names).catalog.categories
    outer = flow("outer", calling("variable__people"))
    made = session(workspace, *installed, outer, namespace=names)
    assert "alice-of-the-hill" in turned(made).calls[0].finished.output
    hosted = ScriptedModel("hello", label="openai/x", host="api.openai.com")
    trace = made.ask("and now?", model=hosted)
    assert "alice-of-the-hill" not in json.dumps([request.wire for request in hosted.requests])
    assert trace.ended is not None and any(
        "was sent no answer or result" in note for note in trace.ended.notes
    )


def test_a_script_of_the_outer_run_makes_the_outer_call_alone(workspace: Path) -> None:
    made = writing(workspace)
    turned(made, approve="all")
    code = made.script().code
    assert "outer__run" in code and "file__write" not in code


# Files that lie: a cloned repository may bring any.


def stored(workspace: Path) -> tuple[str, str, Path]:
    """Return an outer run, its inner run and the folder of their files."""

    async def leaf(args: Any, context: ToolContext) -> int:
        return 3

    made = session(workspace, flow("outer", calling("leaf__run")), flow("leaf", leaf))
    made.invoke_action("outer__run")
    (inner,) = made.trace().inner.values()
    return made.trace().run, inner.run, workspace / ".reyn" / "runs"


def rewrite(path: Path, **changes: Any) -> None:
    """Change fields of the events of a file: TYPE__field=value."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for name, value in changes.items():
        kind, field = name.split("__")
        for line in lines:
            if line["type"] == kind:
                line[field] = value
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_missing_inner_run_is_said_and_the_rest_is_there(workspace: Path) -> None:
    outer, inner, folder = stored(workspace)
    (folder / f"{inner}.inner.jsonl").unlink()
    again = reyn.Session(workspace)
    trace = again.trace(outer)
    assert not trace.inner and inner[-12:] in next(iter(trace.inner_problems.values()))
    assert inner[-12:] in to_text(view(trace))
    assert [row["run"] for row in again.runs.rows] == [outer]


@pytest.mark.parametrize("run", ["../../../etc/passwd", "", "x" * 5000, ".", "a/b", "a\x00b", "日本"])
def test_an_id_that_no_run_can_have_is_not_looked_for(workspace: Path, run: str) -> None:
    outer, inner, folder = stored(workspace)
    rewrite(folder / f"{outer}.jsonl", InnerRunOpened__run=run)
    again = reyn.Session(workspace)
    assert "no id that a run can have" in next(iter(again.trace(outer).inner_problems.values()))
    assert [row["run"] for row in again.runs.rows] == [outer, inner]  # left under none, it stands for itself


def test_an_inner_run_that_names_another_parent_is_left_out_and_stands_for_itself(workspace: Path) -> None:
    outer, inner, folder = stored(workspace)
    rewrite(folder / f"{inner}.inner.jsonl", RunStarted__parent={"run": "another", "call": "1"})
    again = reyn.Session(workspace)
    assert "belongs to another call" in next(iter(again.trace(outer).inner_problems.values()))
    assert [row["run"] for row in again.runs.rows] == [outer, inner]


def test_an_inner_run_that_is_its_own_parent_ends(workspace: Path) -> None:
    outer, inner, folder = stored(workspace)
    path = folder / f"{inner}.inner.jsonl"
    rewrite(path, RunStarted__parent={"run": inner, "call": "1"})
    with path.open("a") as file:
        file.write(json.dumps({"type": "InnerRunOpened", "call": "1", "at": 1.0, "run": inner}) + "\n")
    again = reyn.Session(workspace)
    trace = again.trace(inner)
    assert "around itself" in next(iter(trace.inner_problems.values()))
    assert {row["run"] for row in again.runs.rows} == {outer, inner}
    assert "around itself" in to_text(view(trace))


def test_a_circle_of_two_inner_runs_ends_and_both_are_there(workspace: Path) -> None:
    outer, first, folder = stored(workspace)
    second = "0" * 12
    path = folder / f"{first}.inner.jsonl"
    other = folder / f"{second}.inner.jsonl"
    other.write_text(path.read_text())
    for file, run, around in ((path, first, second), (other, second, first)):
        rewrite(file, RunStarted__parent={"run": around, "call": "1"}, RunStarted__run=run)
        with file.open("a") as log:
            log.write(json.dumps({"type": "InnerRunOpened", "call": "1", "at": 1.0, "run": around}) + "\n")
    again = reyn.Session(workspace)
    assert {row["run"] for row in again.runs.rows} == {outer, first, second}
    assert [each.run for each in again.trace(first).all_inner] == [second]
    with pytest.raises(NothingToUndoError):
        again.undo(first)


def test_a_chain_deeper_than_any_call_goes_is_followed_so_far(workspace: Path) -> None:
    outer, inner, folder = stored(workspace)
    template = (folder / f"{inner}.inner.jsonl").read_text()
    names = [inner, *(f"{number:012}" for number in range(40))]
    for run, around, within in zip(names, [outer, *names], [*names[1:], None], strict=False):
        path = folder / f"{run}.inner.jsonl"
        path.write_text(template)
        rewrite(path, RunStarted__parent={"run": around, "call": "1"}, RunStarted__run=run)
        if within is not None:
            with path.open("a") as log:
                log.write(
                    json.dumps({"type": "InnerRunOpened", "call": "1", "at": 1.0, "run": within}) + "\n"
                )
    again = reyn.Session(workspace)
    trace = again.trace(outer)
    assert len(list(trace.all_inner)) == 8
    problems = [text for each in trace.all_inner for text in each.inner_problems.values()]
    assert len(problems) == 1 and "8 runs deep" in problems[0]
    assert len(again.runs.rows) == 1 + len(names) - 8


def test_a_pipe_in_place_of_an_inner_run_makes_nobody_wait(workspace: Path) -> None:
    import os

    outer, inner, folder = stored(workspace)
    (folder / f"{inner}.inner.jsonl").unlink()
    os.mkfifo(folder / f"{inner}.inner.jsonl")
    trace = reyn.Session(workspace).trace(outer)
    assert trace.inner_problems
