"""The file of a run, whatever ends it, and going on from where a run ended."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from reyn_jupyter.sessions.assembly import ENGINE
from tests.support.processes import is_gone, started
from tests.support.trusting import trust
from tests.support.waiting import clock_of, until
from tests.workflows.acceptance.test_utilities import ARTIFACT, alive
from tests.workflows.acceptance.workshop import (
    DONE,
    ECHO,
    FAILED,
    FAILS,
    FAILS_ONCE,
    INTERRUPTED,
    LATE,
    LOG,
    LOGS,
    PENDING,
    READ,
    Json,
    Workshop,
    closed,
    gives,
    opened,
    plan_of,
    statuses,
    step,
    steps_of,
    workflow_file,
)

# Says that it began, and is done only once there is a file `go`.
WAITS = gives(
    '{"text": "went"}',
    "import subprocess, time, uuid\nfrom pathlib import Path\n"
    "log = Path(inputs['log'])\n(log / uuid.uuid4().hex).touch()\n"
    "if not (log / 'go').exists():\n"
    "    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', inputs['mark']])\n"
    "    time.sleep(600)\n",
)
# A session of its own that runs a plan.
RUNS = """
import json, sys
import reyn_jupyter as reyn

session = reyn.Session(sys.argv[1], store="memory", namespace={})
session.parts.ask_person = lambda question: "once"
session.invoke_action("skill__workflow-executor", {"plan": json.loads(sys.argv[2])})
"""


@pytest.fixture
def bench(workshop: Workshop) -> Workshop:
    workshop.write("echo", ECHO, idempotency="safe")
    workshop.write("fails", FAILS)
    workshop.write("logs", LOGS, input_schema=opened(log=LOG))
    for name in ("safe", "unsafe"):
        workshop.write(f"{name}-waits", WAITS, input_schema=opened(log=LOG), idempotency=name)
    trust(workshop.session)
    return workshop


# The file


def test_a_run_has_a_file_by_its_id_with_all_of_its_steps(bench: Workshop) -> None:
    run = bench.execute(step("a", "echo.run", {"n": 1}), step("b", "echo.run", depends_on=["a"]))
    (file,) = bench.run_files()
    assert file.stem == run["run_id"]
    written = json.loads(file.read_text())
    assert (written["run_id"], written["status"]) == (run["run_id"], "executed")
    assert statuses(written) == {"a": DONE, "b": DONE}
    assert steps_of(written)["a"]["outputs"] == {"echo": {"n": 1}}


def test_a_run_that_failed_has_a_file_with_the_failed_step_and_the_remaining_ones(bench: Workshop) -> None:
    bench.execute(
        step("a", "echo.run"),
        step("b", "fails.run", depends_on=["a"]),
        step("c", "echo.run", depends_on=["b"]),
    )
    written = bench.run_file()
    assert written["status"] == "execution_failed"
    assert statuses(written) == {"a": DONE, "b": FAILED, "c": PENDING}
    assert "the pipe is broken" in json.dumps(steps_of(written)["b"])


def test_a_preview_and_a_refusal_leave_no_file_of_a_run_that_was_none(bench: Workshop) -> None:
    bench.execute(step("a", "echo.run"), dry_run=True)
    bench.policy(denied_capabilities=["echo.*"])
    bench.execute(step("a", "echo.run"))
    assert [each for each in bench.run_files() if json.loads(each.read_text())["status"] == "executed"] == []


def test_no_secret_stands_in_a_file_of_a_run(bench: Workshop) -> None:
    secret = f"hush-{secrets.token_hex(12)}"
    made = Workshop(bench.root, secrets={"MY_TOKEN": secret})
    body = "print('I know', inputs['text'], file=sys.stderr)\nprint(json.dumps(inputs))\nsys.exit(inputs['exit'])\n"
    made.add("tells", f"{READ}{body}")
    for status in (0, 1):
        made.execute(step("a", "tells.run", {"text": secret, "exit": status}))
    made.close()
    for file in (bench.root / "state").rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file


def test_of_a_long_log_the_end_is_kept_in_whole_lines_and_without_secrets(
    bench: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-" + "proj-abcdefghijklmnopqrstuvwx"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    says = f"for at in range(9000):\n    print('line', at, {secret!r}, file=sys.stderr)\n"
    bench.add("talks", gives("{}", says))
    bench.execute(step("a", "talks.run"))
    text = bench.run_files()[0].read_text()
    log = json.loads(text)["steps"][0]["log"].splitlines()
    assert secret not in text and "line 8999" in log[-1] and log[0].startswith("line ")
    assert 50 < len(log) < 300


def test_a_large_output_is_stored_apart(bench: Workshop) -> None:
    bench.add("large", gives('{"text": "x" * 1_000_000}'))
    bench.execute(step("a", "large.run"))
    (file,) = bench.run_files()
    assert file.stat().st_size < 64 << 10 and "blob" in file.read_text()


def test_the_file_is_whole_whenever_somebody_reads_it(bench: Workshop) -> None:
    broken: list[str] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            for file in bench.run_files():
                text = file.read_text()
                try:
                    json.loads(text)
                except ValueError:
                    broken.append(text)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        bench.execute(*(step(f"s{n}", "echo.run", {"text": "x" * 10_000}) for n in range(8)))
    finally:
        over.set()
        reader.join()
    assert broken == [] and len(bench.run_files()) == 1


# A run that ends in the middle


def under_way(bench: Workshop, kind: str) -> tuple[subprocess.Popen[str], list[Json], str]:
    """Start a run in a process of its own, and return once its second step has begun."""
    mark = f"waits-{secrets.token_hex(8)}"
    steps = [
        step("a", "logs.run", {"log": "log"}),
        step("b", f"{kind}-waits.run", {"log": "waits", "mark": mark}, depends_on=["a"]),
        step("c", "echo.run", {"from": "steps.b.outputs.text"}),
    ]
    process = started(RUNS, str(bench.root), json.dumps(plan_of(*steps)))
    until(lambda: alive(mark) or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return process, steps, mark


def test_the_file_says_what_is_done_while_the_run_goes_on(bench: Workshop) -> None:
    process, _, mark = under_way(bench, "safe")
    try:
        written = bench.run_file()
        assert statuses(written)["a"] == DONE and statuses(written)["c"] == "waiting"
        assert written["status"] not in ("executed", "execution_failed", INTERRUPTED)
    finally:
        process.kill()
        process.communicate()
    until(lambda: alive(mark) == [])


def test_an_interrupt_is_written_down_and_leaves_no_process(bench: Workshop) -> None:
    process, _, mark = under_way(bench, "safe")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert is_gone(process.pid) and alive(mark) == []
    written = bench.run_file()
    assert written["status"] == INTERRUPTED
    assert statuses(written)["a"] == DONE and statuses(written)["c"] == PENDING


def killed(bench: Workshop, kind: str) -> tuple[list[Json], str]:
    """Kill a run in the middle of its second step; return its steps and its id."""
    process, steps, mark = under_way(bench, kind)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    until(lambda: alive(mark) == [])
    (bench.root / "waits" / "go").touch()
    return steps, str(bench.run_file()["run_id"])


def test_after_a_kill_the_file_is_whole_and_the_run_goes_on_where_it_was(bench: Workshop) -> None:
    steps, run_id = killed(bench, "safe")
    run = bench.execute(*steps, resume=run_id)
    assert run["status"] == "executed" and bench.log() == 1, "what was done is not done again"
    assert steps_of(run)["a"]["outputs"] == {"text": "logged"}
    assert steps_of(run)["c"]["outputs"] == {"echo": {"from": "went"}}


def test_a_step_that_was_under_way_and_is_not_safe_is_not_run_again_by_itself(bench: Workshop) -> None:
    steps, run_id = killed(bench, "unsafe")
    before = bench.log("waits")
    result = bench.skill("workflow-executor", plan=plan_of(*steps), resume=run_id)
    assert bench.log("waits") == before and bench.log() == 1
    assert not result.ok or result.value["status"] != "executed"
    assert "b" in json.dumps(result.payload) and "force" in json.dumps(result.payload)


# Going on from the last good step


def test_a_failed_run_goes_on_from_its_last_good_step(bench: Workshop) -> None:
    place = bench.add("mends", FAILS)
    steps = [step("a", "logs.run", {"log": "log"}), step("b", "mends.run", depends_on=["a"])]
    failed = bench.execute(*steps)
    assert failed["status"] == "execution_failed"
    (place / "main.py").write_text(ECHO)
    trust(bench.session)
    run = bench.execute(*steps, resume=failed["run_id"])
    assert run["status"] == "executed" and bench.log() == 1


def test_a_step_whose_inputs_changed_is_run_again(bench: Workshop) -> None:
    failed = bench.execute(step("a", "logs.run", {"log": "log"}), step("b", "fails.run", depends_on=["a"]))
    bench.execute(step("a", "logs.run", {"log": "log", "n": 2}), step("b", "fails.run", depends_on=["a"]),
                  resume=failed["run_id"])  # fmt: skip
    assert bench.log() == 2


def test_a_step_whose_utility_changed_is_run_again(bench: Workshop) -> None:
    steps = [step("a", "logs.run", {"log": "log"}), step("b", "fails.run", depends_on=["a"])]
    failed = bench.execute(*steps)
    (bench.root / "tools" / "logs" / "main.py").write_text(LOGS + "# another\n")
    trust(bench.session)
    bench.execute(*steps, resume=failed["run_id"])
    assert bench.log() == 2


@pytest.mark.parametrize("harm", ["removed", "changed"])
def test_a_step_whose_artifact_is_not_as_it_was_is_run_again(bench: Workshop, harm: str) -> None:
    body = LOGS.rpartition("print(")[0] + "Path('made.txt').write_text('made')\n"
    bench.add("makes", f"{body}print(json.dumps({{'file': str(Path('made.txt').absolute())}}))\n",
              input_schema=opened(log=LOG), output_schema=closed(file=ARTIFACT), idempotency="safe")  # fmt: skip
    steps = [step("a", "makes.run", {"log": "log"}), step("b", "fails.run", depends_on=["a"])]
    failed = bench.execute(*steps)
    file = bench.root / steps_of(failed)["a"]["outputs"]["file"]
    bench.execute(*steps, resume=failed["run_id"])
    assert bench.log() == 1
    if harm == "removed":
        file.unlink()
    else:
        file.write_text("another")
    bench.execute(*steps, resume=failed["run_id"])
    assert bench.log() == 2


@pytest.mark.parametrize("harm", ["nothing", "added", "changed", "a link in place of it"])
def test_a_step_that_made_a_folder_is_run_again_only_where_something_in_it_is_not_as_it_was(
    bench: Workshop, harm: str
) -> None:
    body = LOGS.rpartition("print(")[0] + (
        "Path('made/deep').mkdir(parents=True)\nPath('made/deep/one.txt').write_text('one')\n"
        "Path('made/two.txt').symlink_to('deep/one.txt')\n"
    )
    bench.add("makes", f"{body}print(json.dumps({{'file': str(Path('made').absolute())}}))\n",
              input_schema=opened(log=LOG), output_schema=closed(file=ARTIFACT), idempotency="safe")  # fmt: skip
    steps = [step("a", "makes.run", {"log": "log"}), step("b", "fails.run", depends_on=["a"])]
    failed = bench.execute(*steps)
    file = bench.root / steps_of(failed)["a"]["outputs"]["file"] / "deep" / "one.txt"
    if harm == "added":
        file.with_name("three.txt").write_text("")
    elif harm == "changed":
        file.write_text("another")
    elif harm != "nothing":
        file.rename(file.with_name("aside.txt"))
        file.symlink_to("aside.txt")
    bench.execute(*steps, resume=failed["run_id"])
    assert bench.log() == (1 if harm == "nothing" else 2)


# A workflow that is a step


def kept(bench: Workshop, *steps: Json) -> Json:
    """Keep steps as a workflow, and return the step that runs it."""
    bench.text("skills/inner.yaml", workflow_file("inner", *steps, outputs={}, takes={}))
    trust(bench.session)
    return step("w", action="skill__inner")


def test_a_workflow_that_failed_as_a_step_goes_on_from_its_own_last_good_step(bench: Workshop) -> None:
    place = bench.add("mends", FAILS)
    inner = kept(bench, step("a", "logs.run", {"log": "log"}), step("b", "mends.run", depends_on=["a"]))
    failed = bench.execute(inner, step("z", "echo.run", depends_on=["w"]))
    assert statuses(failed) == {"w": FAILED, "z": PENDING} and bench.log() == 1
    (place / "main.py").write_text(ECHO)
    trust(bench.session)
    run = bench.execute(inner, step("z", "echo.run", depends_on=["w"]), resume=failed["run_id"])
    assert run["status"] == "executed" and bench.log() == 1


def test_a_workflow_that_is_done_as_a_step_is_not_run_again(bench: Workshop) -> None:
    inner = kept(bench, step("a", "logs.run", {"log": "log"}))
    failed = bench.execute(inner, step("z", "fails.run", depends_on=["w"]))
    run = bench.execute(inner, step("z", "fails.run", depends_on=["w"]), resume=failed["run_id"])
    assert statuses(run) == {"w": DONE, "z": FAILED} and bench.log() == 1


def test_another_try_of_a_workflow_does_not_repeat_what_it_did(bench: Workshop) -> None:
    bench.add("once", FAILS_ONCE, input_schema=opened(log=LOG), idempotency="safe")
    inner = kept(
        bench,
        step("a", "logs.run", {"log": "log"}),
        step("b", "once.run", {"log": "tries"}, depends_on=["a"]),
    )
    run = bench.execute({**inner, "on_failure": "retry", "retries": True})
    assert run["status"] == "executed" and bench.log("tries") == 2 and bench.log() == 1


@pytest.mark.parametrize("kind", ["safe", "unsafe"])
def test_a_step_that_was_under_way_within_a_workflow_is_run_again_only_where_that_is_safe(
    bench: Workshop, kind: str
) -> None:
    inner = kept(
        bench,
        step("a", "logs.run", {"log": "log"}),
        step("b", f"{kind}-waits.run", {"log": "waits", "mark": "inner"}, depends_on=["a"]),
    )
    bench.policy(max_run_seconds=300)

    def pass_time() -> None:
        until(lambda: alive("inner"))
        advance(300)

    with clock_of(ENGINE.loop) as advance:
        passing = threading.Thread(target=pass_time)
        passing.start()
        run = bench.execute(inner)
        passing.join()
    assert statuses(run) == {"w": LATE}
    (bench.root / "waits" / "go").touch()
    before = bench.log("waits")
    again = bench.execute(inner, resume=run["run_id"])
    assert bench.log() == 1
    if kind == "safe":
        assert statuses(again) == {"w": DONE} and bench.log("waits") == before + 1
    else:
        assert statuses(again) == {"w": FAILED} and bench.log("waits") == before
        assert "force" in json.dumps(again)
        forced = bench.execute(inner, resume=run["run_id"], force=True)
        assert statuses(forced) == {"w": DONE} and bench.log("waits") == before + 1


@pytest.mark.parametrize("end", ["done", "failed", "timed out"])
def test_a_workflow_as_a_step_whose_own_file_is_gone_is_run_again_only_with_force(
    bench: Workshop, end: str
) -> None:
    last = {
        "done": step("b", "echo.run", depends_on=["a"]),
        "failed": step("b", "fails.run", depends_on=["a"]),
        "timed out": step(
            "b", "safe-waits.run", {"log": "waits", "mark": "gone"}, depends_on=["a"], on_failure="fail"
        ),
    }[end]
    steps = [
        kept(bench, step("a", "logs.run", {"log": "log"}), last),
        step("z", "fails.run", depends_on=["w"]),
    ]
    bench.policy(max_run_seconds=4)
    first = bench.execute(*steps)
    assert statuses(first)["w"] == {"done": DONE, "failed": FAILED, "timed out": LATE}[end]
    (bench.root / "waits").mkdir(exist_ok=True)
    (bench.root / "waits" / "go").touch()
    (own,) = (each for each in (bench.root / "state" / "runs").glob("*.json") if each.stem != first["run_id"])
    own.unlink()
    said = json.dumps(bench.skill("workflow-executor", plan=plan_of(*steps), resume=first["run_id"]).payload)
    assert bench.log() == 1 and "othing says that running it twice is safe" in said and "state/runs" in said
    bench.skill("workflow-executor", plan=plan_of(*steps), resume=first["run_id"], force=True)
    assert bench.log() == 2


def test_a_workflow_as_a_step_that_never_began_is_run_on_resume(bench: Workshop) -> None:
    inner = kept(bench, step("a", "logs.run", {"log": "log"}), step("b", "late.run"))
    failed = bench.execute(inner)
    assert statuses(failed) == {"w": FAILED} and bench.log() == 0
    bench.add("late", ECHO)
    trust(bench.session)
    assert bench.execute(inner, resume=failed["run_id"])["status"] == "executed" and bench.log() == 1


@pytest.mark.parametrize("run_id", ["no-such-run", "../../policy", "", "/etc/passwd"])
def test_a_run_that_there_is_not_cannot_be_gone_on_with(bench: Workshop, run_id: str) -> None:
    assert not bench.skill("workflow-executor", plan=plan_of(step("a", "echo.run")), resume=run_id).ok


def test_a_run_file_that_somebody_else_wrote_says_nothing_of_what_is_trusted(bench: Workshop) -> None:
    """A file in state/ may come with a cloned workspace: it must not make a step of an untrusted utility run."""
    failed = bench.execute(step("a", "echo.run"), step("b", "fails.run", depends_on=["a"]))
    (file,) = bench.run_files()
    text = file.read_text()
    bench.write("evil", LOGS, input_schema=opened(log=LOG))
    file.write_text(text.replace("echo@1.0.0", "evil@1.0.0").replace("echo.run", "evil.run"))
    bench.skill(
        "workflow-executor", plan=plan_of(step("a", "evil.run", {"log": "log"})), resume=failed["run_id"]
    )
    assert bench.log() == 0


@pytest.mark.parametrize("content", ["", "{", "[]", '{"run_id": 7}', "null"])
def test_a_damaged_run_file_is_an_error_and_no_empty_success(bench: Workshop, content: str) -> None:
    failed = bench.execute(step("a", "fails.run"))
    (file,) = bench.run_files()
    file.write_text(content)
    result = bench.skill("workflow-executor", plan=plan_of(step("a", "fails.run")), resume=failed["run_id"])
    assert not result.ok or result.value["status"] == "execution_failed"


def test_no_run_is_written_through_a_link(bench: Workshop, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (bench.root / "state").mkdir(exist_ok=True)
    (bench.root / "state" / "runs").symlink_to(outside)
    bench.skill("workflow-executor", plan=plan_of(step("a", "echo.run")))
    assert [*outside.iterdir()] == []
