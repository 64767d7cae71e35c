"""Steps of workflows on an executor: the same results as here, judged here, and nothing lost or doubled."""

from __future__ import annotations

import _thread
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest
from distributed import Client

from reyn_jupyter.executors.executor import SentSpec
from reyn_jupyter.executors.processes import ProcessExecutor
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.runtime.pump import Interrupted
from reyn_jupyter.sessions import current
from reyn_jupyter.sessions.workflows.mapped_runs import MappedRun
from reyn_jupyter.sessions.workflows.workflow_action_error import WorkflowActionError
from reyn_jupyter.workflows.execution.sent_utility import SentUtility, UtilitySender
from reyn_jupyter.workflows.planning.plan import WorkflowPlan, read_plan
from reyn_jupyter.workflows.utilities.protocol import prepare_inputs
from reyn_jupyter.workflows.utilities.utility_files import read_folder
from reyn_jupyter.workflows.workflow_error import WorkflowError
from tests.support.courier import PageServer
from tests.support.dask_clusters import Cluster, local_client, workers_of
from tests.support.processes import is_gone
from tests.support.trusting import trust
from tests.support.waiting import until
from tests.workflows.acceptance.workshop import (
    TEXT,
    Json,
    Workshop,
    closed,
    gives,
    opened,
    plan_of,
    statuses,
    step,
    workflow_file,
)

FILE = {"type": "string", "format": "readable-path"}
MADE = {"type": "string", "format": "artifact-path"}
FOLDER = {"type": "string", "format": "writable-folder"}
MAKES = gives(
    '{"file": "made.txt", "cwd": os.getcwd()}',
    "import os\nif inputs['text'] == 'bad':\n    sys.exit(3)\nopen('made.txt', 'w').write(inputs['text'])\n",
)
READS = gives('{"text": open(inputs["file"]).read().upper(), "cwd": os.getcwd()}', "import os\n")
LISTS = gives(
    '{"found": found}',
    "import os\nfound = sorted(os.path.relpath(os.path.join(at, each), inputs['file'])"
    " for at, _, names in os.walk(inputs['file']) for each in names)\n",
)
WHERE = gives('{"cwd": os.getcwd()}', "import os\n")
ASKS = gives(
    '{"got": urllib.request.urlopen(inputs["url"], timeout=600).read().decode()}', "import urllib.request\n"
)
SHOUT_FILE = workflow_file(
    "shout-file",
    step("make", "makes.run", {"text": "request.inputs.text"}),
    step("read", "reads.run", {"file": "steps.make.outputs.file"}),
    outputs={
        "text": "steps.read.outputs.text",
        "file": "steps.make.outputs.file",
        "cwd": "steps.read.outputs.cwd",
    },
    takes={"text": TEXT},
)


class HeldSite(PageServer):
    """A site whose page answers once it is let go.

    Attributes:
        open: lets go.
    """

    def __init__(self) -> None:
        self.open = threading.Event()
        super().__init__({"/": self._answer})

    def _answer(self) -> str:
        self.open.wait()
        return "let go"

    @property
    def place(self) -> str:
        return self.url("/", "localhost").removeprefix("http://").rstrip("/")

    def __exit__(self, *error: object) -> None:
        self.open.set()
        super().__exit__(*error)


@pytest.fixture
def site() -> Iterator[HeldSite]:
    with HeldSite() as made:
        yield made


@pytest.fixture
def bench(workshop: Workshop) -> Workshop:
    workshop.write("makes", MAKES, input_schema=closed(text=TEXT), output_schema=opened(file=MADE))
    workshop.write("reads", READS, input_schema=closed(file=FILE))
    workshop.text("skills/shout-file.yaml", SHOUT_FILE)
    trust(workshop.session)
    return workshop


def add_asking(workshop: Workshop, site: HeldSite, **more: Any) -> None:
    workshop.add("asks", ASKS, dependencies=[{"host": site.place}], **more)


def asking(site: HeldSite, *ids: str) -> WorkflowPlan:
    return a_plan(*(step(each, "asks.run", {"url": site.url("/", "localhost")}) for each in ids))


def a_plan(*steps: Json) -> WorkflowPlan:
    return read_plan(plan_of(*steps))


def is_here(workshop: Workshop, cwd: str) -> bool:
    return Path(cwd).is_relative_to(workshop.root.resolve())


def expect_mapped(bench: Workshop, executor: Any) -> None:
    heard: list[MappedRun] = []
    texts = [f"text {n}" for n in range(8)]
    texts[3] = "bad"
    inputs = ({"text": each} for each in texts)
    table = bench.session.workflows.map("shout-file", inputs, executor=executor, on_result=heard.append)
    assert [each.number for each in table] == list(range(8)) == sorted(each.number for each in heard)
    frame = table.df.set_index("input")
    assert list(frame["status"]) == ["done"] * 3 + ["tool_failed"] + ["done"] * 4
    assert "exit code 3" in frame["error"][3] and "8 inputs, 1 failed" in table.note
    for n, row in frame.drop(index=3).iterrows():
        assert row["text"] == f"TEXT {n}" and not is_here(bench, row["cwd"])
        assert (bench.root / row["file"]).read_text() == f"text {n}", "what a worker made lies here"
    assert len(bench.run_files()) == 8 == len(set(frame["run"]))
    assert {json.loads(each.read_text())["status"] for each in bench.run_files()} == {
        "executed",
        "execution_failed",
    }


def test_a_workflow_is_mapped_over_inputs_on_workers_that_were_started_as_commands(
    bench: Workshop,
    client: Client,
    cluster: Cluster,
) -> None:
    expect_mapped(bench, client)
    assert len(cluster.busy()) == 2
    until(lambda: not client.processing() or not any(client.processing().values()))


def test_a_workflow_is_mapped_over_inputs_on_a_local_cluster_of_two_processes(bench: Workshop) -> None:
    with local_client() as client:
        expect_mapped(bench, client)


def test_without_an_executor_it_is_mapped_here_and_what_is_none_is_refused(bench: Workshop) -> None:
    table = bench.session.workflows.map("shout-file", [{"text": "a"}, {"txt": "b"}])
    assert table[0].error is None and is_here(bench, table[0].outputs["cwd"])
    said = "Invalid arguments for 'skill__shout-file': txt: unknown argument; did you mean 'text'?; text is required."
    assert (table[1].number, table[1].error, table[1].outputs) == (1, said, None)
    with pytest.raises(WorkflowActionError, match="no workflow 'shout-fil'"):
        bench.session.workflows.map("shout-fil", [])
    with pytest.raises(WorkflowActionError, match="executor='dask' runs nothing"):
        bench.session.workflows.map("shout-file", [], executor="dask")  # type: ignore[arg-type]


def test_the_verb_takes_inputs_and_executor_from_variables(
    bench: Workshop, run: Callable[[str], str]
) -> None:
    current._current.append(bench.session)
    with ProcessExecutor(1) as executor:
        names = bench.session.parts.services.namespace()
        assert isinstance(names, dict)
        names |= {"given": pd.DataFrame({"text": ["one", "bad"]}), "workers": executor, "word": "one"}
        said = run("%reyn workflow map shout-file --over given --on workers")
        assert executor.pids
    assert "ONE" in said and "tool_failed" in said and "2 inputs, 1 failed" in said
    for line, problem in (
        ("--over lacking", "no variable 'lacking'"),
        ("--over word", "no list of inputs"),
        ("", "over"),
    ):
        assert problem in run(f"%reyn workflow map shout-file {line}")


def test_branches_of_a_plan_run_on_both_workers_side_by_side(
    bench: Workshop,
    client: Client,
    site: HeldSite,
) -> None:
    add_asking(bench, site)
    bench.session.workflows.executor = client
    begun = threading.Thread(target=lambda: (until(lambda: len(site.requests) == 2), site.open.set()))
    begun.start()
    done = bench.session.workflows.execute(asking(site, "a", "b"))
    begun.join()
    assert done.status == "executed" and {each["got"] for each in done.outputs.values()} == {'"let go"'}
    bench.session.workflows.executor = None


def test_what_writes_in_the_workspace_needs_a_secret_or_is_an_action_runs_here(workspace: Path) -> None:
    bench = Workshop(workspace, secrets={"SEED_TOKEN": "s3cret-value"})
    try:
        bench.write("where", WHERE)
        bench.write("writes", WHERE, input_schema=closed(out=FOLDER))
        bench.write("secret", WHERE, dependencies=[{"secret": "SEED_TOKEN"}])
        bench.text("note.txt", "a note")
        trust(bench.session)
        steps = (
            step("away", "where.run"),
            step("writes", "writes.run", {"out": "out"}),
            step("secret", "secret.run"),
            step("read", inputs={"path": "note.txt"}, action="file__read"),
        )
        with ProcessExecutor(1) as executor:
            bench.session.workflows.executor = executor
            done = bench.session.workflows.execute(a_plan(*steps))
        assert done.status == "executed", done.run.text
        here = {each: is_here(bench, done.outputs[each]["cwd"]) for each in ("away", "writes", "secret")}
        assert here == {"away": False, "writes": True, "secret": True}
        assert "a note" in str(done.outputs["read"])
    finally:
        bench.close()


def test_what_rules_keep_back_is_not_sent(workspace: Path) -> None:
    bench = Workshop(workspace, config={"permissions": {"deny": ["file__read(mixed/private/**)"]}})
    try:
        for name in ("mixed/open.txt", "mixed/private/mine.txt", "mixed/.env"):
            bench.text(name, "x")
        (bench.root / "mixed" / "link.txt").symlink_to(bench.root / "mixed" / "private" / "mine.txt")
        bench.add("lists", LISTS, input_schema=closed(file=FILE))
        with ProcessExecutor(1) as executor:
            bench.session.workflows.executor = executor
            done = bench.session.workflows.execute(a_plan(step("a", "lists.run", {"file": "mixed"})))
        assert done.outputs == {"a": {"found": ["open.txt"]}}, done.run.text
    finally:
        bench.close()


def test_trust_and_policy_are_asked_before_anything_is_sent(bench: Workshop) -> None:
    with ProcessExecutor(1) as executor:
        bench.session.workflows.executor = executor
        bench.own_policy(denied_capabilities=["makes.run"])
        blocked = bench.session.workflows.execute(a_plan(step("a", "makes.run", {"text": "x"})))
        bench.own_policy(denied_capabilities=["others.run"])
        (bench.root / "tools" / "makes" / "more.py").write_text("changed = True\n")
        unserved = bench.session.workflows.execute(a_plan(step("a", "makes.run", {"text": "x"})))
        assert (blocked.status, unserved.status) == ("blocked_by_policy", "partial-complete")
        assert executor.pids == ()


async def test_a_worker_runs_no_other_files_than_those_that_are_trusted(
    bench: Workshop, tmp_path: Path
) -> None:
    utility = bench.session.parts.workflows.registry().by_id["makes@1.0.0"]
    contents: dict[str, bytes] = {}
    found = read_folder(utility.folder, "tool.yaml", contents)
    sent = SentUtility("makes", utility.digest, found.hashes, contents)
    assert sent.open(tmp_path / "whole") is not None
    with pytest.raises(WorkflowError, match="other files than those that are trusted"):
        replace(sent, contents={**contents, "main.py": b"print('{}')"}).open(tmp_path / "changed")
    SentSpec.of(sent, "executor")
    (utility.folder / "main.py").write_text("print('{}')")
    with ProcessExecutor(1) as executor, pytest.raises(WorkflowError, match="has changed since"):
        await UtilitySender(executor).run(
            utility, prepare_inputs(utility, {"text": "x"}, Workspace(bench.root)),
            run_folder=bench.root.resolve() / "state" / "runs" / "1" / "a", workspace=Workspace(bench.root),
            settings=bench.session.parts.settings.sandbox, timeout_seconds=60,
        )  # fmt: skip


def killing(site: HeldSite, cluster: Cluster) -> threading.Thread:
    """Kill the Dask worker that asks the site, with its processes, and let all later requests go."""

    def busy_workers() -> list[subprocess.Popen[bytes]]:
        return [each for each in cluster.workers if each.poll() is None and runs_a_program(each.pid)]

    def kill() -> None:
        until(lambda: site.requests)
        # What is looked at begins and ends processes meanwhile.
        (busy,) = until(lambda: found if len(found := busy_workers()) == 1 else None)
        busy.kill()
        site.open.set()

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def runs_a_program(pid: int) -> bool:
    """Return whether a process beside a Dask worker has one of its own."""
    with suppress(psutil.Error):
        return any(each.children() for each in psutil.Process(pid).children())
    return False


@pytest.mark.parametrize("idempotency", ["safe", "unsafe"])
def test_a_worker_that_dies_costs_its_step_once(
    bench: Workshop,
    client: Client,
    cluster: Cluster,
    site: HeldSite,
    idempotency: str,
) -> None:
    add_asking(bench, site, idempotency=idempotency)
    bench.session.workflows.executor = client
    thread = killing(site, cluster)
    done = bench.session.workflows.execute(asking(site, "a"))
    thread.join()
    if idempotency == "safe":
        assert done.status == "executed" and len(site.requests) == 2
    else:
        assert done.status == "execution_failed" and len(site.requests) == 1
        assert "may have done a part of its work" in done.run.text
        with pytest.raises(WorkflowActionError, match="resume with force"):
            bench.session.workflows.resume(done.run.run_id)
        assert len(site.requests) == 1
        assert bench.session.workflows.resume(done.run.run_id, force=True).status == "executed"


def test_an_interrupt_ends_what_workers_run_and_keeps_what_was_done(
    bench: Workshop,
    client: Client,
    cluster: Cluster,
    site: HeldSite,
) -> None:
    add_asking(bench, site)
    bench.text("skills/ask.yaml", workflow_file("ask", step("a", "asks.run", {"url": "request.inputs.url"}),
               outputs={"got": "steps.a.outputs.got"}, takes={"url": TEXT}))  # fmt: skip
    trust(bench.session)
    inputs: list[Json] = [{"nothing": 1}, *({"url": site.url("/", "localhost")} for _ in range(5))]
    busy: list[int] = []

    def interrupt() -> None:
        until(lambda: len(site.requests) == 2)
        busy.extend(cluster.busy())
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(Interrupted) as raised:
        bench.session.workflows.map("ask", inputs, executor=client)
    assert [each.number for each in raised.value.result] == [0] and "Interrupted" in raised.value.result.note
    until(lambda: busy and all(is_gone(pid) for pid in busy))
    site.open.set()
    assert len(site.requests) == 2, "what waited never began"


def test_the_time_of_a_run_counts_on_workers_too(
    bench: Workshop,
    client: Client,
    cluster: Cluster,
    site: HeldSite,
) -> None:
    add_asking(bench, site)
    bench.own_policy(max_run_seconds=5)
    bench.session.workflows.executor = client
    done = bench.session.workflows.execute(asking(site, "a"))
    assert statuses(done.run.as_json()) == {"a": "timed_out"}, done.run.text


def test_the_end_of_the_scheduler_begins_no_further_input(bench: Workshop, tmp_path: Path) -> None:
    with (
        Cluster(tmp_path / "cluster", workers=1) as made,
        Client(made.address, timeout=10) as client,  # so long it looks for a scheduler that went
    ):
        until(lambda: len(workers_of(client)) == 1)

        def hear(done: MappedRun) -> None:
            if done.number == 0:
                made.scheduler.kill()

        inputs = [{"text": f"text {n}"} for n in range(500)]
        table = bench.session.workflows.map("shout-file", inputs, executor=client, on_result=hear)
    assert table[0].error is None and len(table) < 500 and "out of reach" in table.note
    assert {each.code for each in table} <= {None, "worker_lost", "tool_failed"}
