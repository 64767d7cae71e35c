"""Throwaway workspaces: what one trial writes, no other one sees; nothing temporary is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.evaluation.plan.scenario import Expected, Scenario
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.evaluation.trial.trial_runner import TrialRunner
from reyn_jupyter.evaluation.trial.workspaces import Template, TemplateError
from reyn_jupyter.models.base import Request
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.support.files.scratch import Scratch, sweep
from tests.evaluation.trial_support import ENGINE, WRITE, Scripts, bench, run, scenario, writing

PLAIN = Variant("plain", model="scripted")
LIST = call("list_actions", category=["file"])


def invoke(action: str, /, **args: Any) -> Any:
    return call("invoke_action", action_name=action, args=args)


def roots(base: Path) -> list[Path]:
    """The workspaces that lie on disk now."""
    return sorted(base.glob("*/*/workspace"))


def outputs(events: Any) -> list[str]:
    return [event.output for event in events if type(event).__name__ == "ActionFinished"]


def test_a_written_file_is_told_of_with_its_text_and_those_that_stayed_are_not() -> None:
    task = writing(workspace={"notes.md": "hello\n", "other.md": "same\n"})
    with bench(task, models={"scripted": Scripts(*WRITE)}) as on:
        trial, _ = run(on)
    assert list(trial.files) == ["notes.md"]
    fact = trial.files["notes.md"]
    assert (fact.exists, fact.changed, fact.text) == (True, True, "changed\n")


def test_expected_files_are_told_of_whether_or_not_they_changed() -> None:
    task = scenario(
        expected=(Expected(path="notes.md", unchanged=True), Expected(path="new.md", exists=False))
    )
    with bench(task) as on:
        trial, _ = run(on)
    assert trial.files["notes.md"].text == "hello\n" and not trial.files["notes.md"].changed
    assert not trial.files["new.md"].exists and not trial.files["new.md"].changed


def test_deleted_and_binary_files_are_told_of() -> None:
    script = (
        LIST,
        invoke("file__delete", path="notes.md"),
        invoke("file__write", path="big.txt", content="x" * 70_000),
        "Done.",
    )
    with bench(writing(), models={"scripted": Scripts(*script)}) as on:
        trial, _ = run(on)
    assert not trial.files["notes.md"].exists and trial.files["notes.md"].changed
    assert trial.files["big.txt"].text is None and trial.files["big.txt"].sha256 is not None


def test_no_trial_sees_what_another_wrote_whatever_order_they_run_in() -> None:
    """Eight trials at once: each writes its own word in every way there is, then reads everything back."""

    def steps(word: str) -> tuple[Any, ...]:
        return (
            LIST,
            invoke("file__grep", pattern="word-"),
            invoke("file__write", path="notes.md", content=f"word-{word}\n"),
            invoke("file__edit", path="kept/deep.md", old_string="deep", new_string=f"word-{word}"),
            invoke(
                "memory_operation__remember_shared",
                slug="word",
                name="Word",
                description="The word.",
                type="project",
                body=f"word-{word}",
            ),
            invoke("file__grep", pattern="word-"),
            invoke("memory_operation__list"),
            invoke("memory_entry__word"),
            "Done.",
        )

    class Words:
        label, host, tier, real = "words", None, "standard", False

        def for_scenario(self, task: Scenario) -> ScriptedModel:
            return ScriptedModel(*steps(task.id), label="words", delay=0.002)

    files = {"notes.md": "hello\n", "kept/deep.md": "deep\n"}
    tasks = [writing(f"w{number}", workspace=files, expected=()) for number in range(8)]
    with bench(*tasks, models={"scripted": Words()}) as on:

        async def all_at_once() -> list[Any]:
            return await asyncio.gather(*(on.run(on.plan(task, PLAIN, 0)) for task in tasks))

        for task, (trial, events) in zip(tasks, ENGINE.run(all_at_once()), strict=True):
            assert [made.ok for made in trial.calls] == [True] * 8, trial.calls
            told = "\n".join(outputs(events))
            assert f"word-{task.id}" in told
            for other in tasks:
                if other.id != task.id:
                    assert f"word-{other.id}" not in told
            assert "word-" not in outputs(events)[1]
            assert trial.files["notes.md"].text == f"word-{task.id}\n"
            assert trial.files["kept/deep.md"].text == f"word-{task.id}\n"


def test_a_model_that_knows_where_trials_lie_reaches_no_other_one(tmp_path: Path) -> None:
    tasks = [writing("first"), writing("second")]

    def climbing(task: Scenario) -> tuple[Any, ...]:
        (shared,) = roots(tmp_path)
        return (
            LIST,
            invoke("file__write", path="here.md", content="private\n"),
            invoke("file__read", path=str(shared / "notes.md")),
            invoke("file__write", path=str(shared / "notes.md"), content="planted\n"),
            invoke("file__write", path=f"../../{shared.parent.name}/workspace/notes.md", content="planted\n"),
            invoke("file__list", path=str(tmp_path)),
            "Done.",
        )

    models = {"scripted": Scripts(*WRITE), "climber": Scripts(make=climbing)}
    with bench(*tasks, models=models, scratch=tmp_path) as on:
        run(on, tasks[0])
        trial, _ = run(on, tasks[1], Variant("climber", model="climber"))
        assert [made.ok for made in trial.calls] == [True, True, False, False, False, False]
        (shared,) = roots(tmp_path)
        assert [path.name for path in shared.iterdir()] == ["notes.md"]
        assert (shared / "notes.md").read_text() == "hello\n"


@pytest.mark.parametrize("target", ["notes.md", "kept"])
def test_a_link_in_a_private_copy_is_never_followed_out_of_it(tmp_path: Path, target: str) -> None:
    """Somebody plants a link from one trial's workspace into the shared one, behind the actions' backs."""
    files = {"notes.md": "hello\n", "kept/deep.md": "deep\n"}
    planted: list[Path] = []

    def plant(request: Request) -> Any:
        # The one that readers share is not writable.
        shared, private = sorted(roots(tmp_path), key=lambda root: root.stat().st_mode & 0o200)
        (private / "link").symlink_to(shared / target)
        planted.append(shared)
        path = "link" if target == "notes.md" else "link/deep.md"
        return invoke("file__write", path=path, content="planted\n")

    script = LIST, invoke("file__write", path="here.md", content="mine\n"), plant, "Done."
    with bench(writing(workspace=files), models={"scripted": Scripts(*script)}, scratch=tmp_path) as on:
        trial, _ = run(on)
        assert trial.calls[2].ok is False and "outside" in str(trial.calls[2].error)
        assert (planted[0] / "notes.md").read_text() == "hello\n"
        assert (planted[0] / "kept" / "deep.md").read_text() == "deep\n"
        assert set(trial.files) == {"here.md", "notes.md"}


def test_all_trials_share_one_process_for_sql_which_ends_with_their_runner() -> None:
    def processes() -> list[int]:
        found = []
        for each in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):  # it ended meanwhile
                if "reyn_jupyter.backends.sql.sql_child" in each.cmdline():
                    found.append(each.pid)
        return found

    before = set(processes())
    query = invoke("table__query", sql="SELECT sum(n) FROM t", sources={"t": "numbers.csv"})
    models = {"scripted": Scripts(make=lambda task: (LIST, query, "Three."))}
    with bench(scenario(workspace={"numbers.csv": "n\n1\n2\n"}), models=models) as on:
        assert all(made.ok for made in run(on)[0].calls)
        (there,) = set(processes()) - before
        assert all(made.ok for made in run(on, repeat=1)[0].calls)
        assert set(processes()) - before == {there}
    assert set(processes()) <= before


def test_stored_results_belong_to_one_trial() -> None:
    blobs: list[str] = []

    def note(request: Request) -> str:
        blobs.append(request.messages[-1].content.split("[blob:")[1][:36])
        return "Stored."

    def stealing(task: Scenario) -> tuple[Any, ...]:
        query = invoke("table__query", sql="select 1", sources={"t": blobs[0]})
        return LIST, call("inspect", blob_id=blobs[0]), query, "No."

    models = {
        "scripted": Scripts(LIST, invoke("file__read", path="long.txt"), note),
        "thief": Scripts(make=stealing),
    }
    with bench(scenario(workspace={"long.txt": "line of text\n" * 200}), models=models) as on:
        run(on)
        trial, events = run(on, variant=Variant("thief", model="thief"))
    assert [made.ok for made in trial.calls[1:]] == [False, False]
    assert "line of text" not in "".join(outputs(events))


def test_trials_that_only_read_share_one_read_only_copy(tmp_path: Path) -> None:
    tasks = [scenario("a"), scenario("b"), scenario("c", workspace={"notes.md": "other\n"})]
    with bench(*tasks, scratch=tmp_path) as on:
        for task in (*tasks, *tasks):
            run(on, task)
        found = roots(tmp_path)
        assert {(root / "notes.md").read_text() for root in found} == {"hello\n", "other\n"}
        assert len(found) == 2
        assert {oct((root / "notes.md").stat().st_mode)[-3:] for root in found} == {"444"}


def test_a_trial_that_wrote_leaves_nothing_on_disk(tmp_path: Path) -> None:
    with bench(writing(), models={"scripted": Scripts(*WRITE)}, scratch=tmp_path) as on:
        run(on)
        assert len(roots(tmp_path)) == 1  # what readers share
    assert list(tmp_path.iterdir()) == []


def test_a_trial_waits_for_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = {
        "slug": "style",
        "name": "Style",
        "description": "How to write",
        "type": "user",
        "body": "Short.",
    }
    steps = (
        call("invoke_action", action_name="file__write", args={"path": "notes.md", "content": "changed\n"}),
        call("invoke_action", action_name="memory_operation__remember_shared", args=memory),
        "Done.",
    )
    on = bench(models={"scripted": Scripts(*steps)})
    monkeypatch.setattr(os, "fsync", lambda descriptor: pytest.fail("a trial's folder is thrown away"))
    trial, _ = run(on)
    on.close()
    assert [made.ok for made in trial.calls] == [True, True], trial.calls
    assert set(trial.files) == {"notes.md", ".reyn/memory/shared/style.md", ".reyn/memory/shared/MEMORY.md"}


def test_the_next_start_sweeps_what_a_killed_process_left(tmp_path: Path) -> None:
    code = f"""
        import sys, time
        from pathlib import Path
        from reyn_jupyter.evaluation.trial.workspaces import Template
        from reyn_jupyter.support.files.scratch import Scratch
        scratch = Scratch(Path({str(tmp_path)!r}))
        Template({{"a/b.md": "x"}}).lay_out(scratch.folder() / "workspace", read_only=True)
        print(scratch.path, flush=True)
        time.sleep(600)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    left = Path(child.stdout.readline().strip())
    assert left.is_dir()
    assert sweep(tmp_path) == 0  # its owner lives
    own = Scratch(tmp_path)
    assert left.is_dir()
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    again = Scratch(tmp_path)
    assert not left.exists()
    assert own.path.is_dir()
    own.close()
    again.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["../out.md", "/etc/passwd", "", ".", "a/../../b", "a\\b", "a\0b"])
def test_a_template_stays_inside_its_folder(path: str) -> None:
    with pytest.raises(TemplateError):
        Template({path: "x"})


def test_a_file_cannot_be_the_folder_of_another() -> None:
    with pytest.raises(TemplateError, match="'a' is a file and the folder of 'a/b'"):
        Template({"a": "x", "a/b": "y"})


NAMES = st.text("abc.é _-", min_size=1, max_size=8).filter(lambda name: name.strip(". ") == name)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(NAMES, st.text(max_size=50), min_size=1, max_size=5))
def test_a_template_laid_out_is_the_template_and_nothing_changed(files: dict[str, str]) -> None:
    template = Template(files)
    scratch = Scratch()
    try:
        root = template.lay_out(scratch.folder() / "workspace")
        assert template.facts(root, ()) == {}
        facts = template.facts(root, files)
        assert all(fact.exists and not fact.changed for fact in facts.values())
        first = next(iter(files))
        (root / first).unlink()
        assert template.facts(root, ())[first].exists is False
    finally:
        scratch.close()


def test_memories_of_a_template_are_there_and_large_files_are_read_from_a_private_copy(
    tmp_path: Path,
) -> None:
    memory = "---\nname: Style\ndescription: How to write.\ntype: project\n---\nShort sentences.\n"
    files = {".reyn/memory/shared/style.md": memory, "big.txt": "x" * 300_000}
    script = LIST, invoke("memory_entry__style"), invoke("file__read", path="big.txt"), "Done."
    with bench(scenario(workspace=files), models={"scripted": Scripts(*script)}, scratch=tmp_path) as on:
        trial, events = run(on)
        assert roots(tmp_path) == []
    assert [made.ok for made in trial.calls] == [True, True, True], outputs(events)
    assert "Short sentences." in outputs(events)[1]
    assert trial.files == {}


def test_two_benches_at_once_do_not_sweep_each_other(tmp_path: Path) -> None:
    one, two = bench(scratch=tmp_path), bench(scratch=tmp_path)
    assert isinstance(one, TrialRunner)
    first: Trial
    for on in (one, two, one):
        first, _ = run(on)
        assert first.outcome == "ok"
    one.close()
    second, _ = run(two)
    assert second.outcome == "ok"
    two.close()
    assert list(tmp_path.iterdir()) == []
