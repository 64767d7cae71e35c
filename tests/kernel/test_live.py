"""What a front end gets to go on with: representations of every kind, a comm that answers, questions to settle."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kernel.kernel_support import Comm, Kernel
from tests.support.waiting import until

WIDGET = "application/vnd.jupyter.widget-view+json"
LARGE = "invoke file__read path=data/large.csv"


@pytest.fixture(autouse=True)
def large(workspace: Path) -> None:
    (workspace / "data" / "large.csv").write_text("a,b\n" + "1,2\n" * 20_000)


@pytest.fixture
def comm(kernel: Kernel) -> Iterator[Comm]:
    made = kernel.comm()
    made.hello()
    yield made
    made.close()
    kernel.run("None")


def data_of(kernel: Kernel, code: str) -> dict[str, Any]:
    """The one display of a cell as it stands in the end."""
    cell = kernel.run(code, answers=())
    assert cell.error is None, cell.error
    assert len(cell.outputs) == 1
    shown: dict[str, Any] = (cell.updates or cell.outputs)[-1]["data"]
    return shown


def snapshot(data: dict[str, Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = data[f"application/vnd.reyn.{kind}+json"]
    return found


# Representations


@pytest.mark.parametrize(
    ("code", "kind", "live"),
    [
        ("%reyn list", "actions", None),
        ("%reyn describe file__read", "actions", None),
        ("%reyn explore file", "actions", {"type": "catalog", "query": "file"}),
        ("%reyn invoke file__read path=notes.txt", "blob", None),
        (f"%reyn {LARGE}", "blob", "blob"),
        ("%reyn inspect last", "blob", "blob"),
        ("%reyn inspect last lines:3-5", "blob", "blob"),
        ("session.blob('last')", "blob", "blob"),
        ("big = pd.DataFrame({'n': range(5000)})\n%reyn view big", "blob", "frame"),
        ("reyn.view(pd.DataFrame({'n': [1]}))", "blob", "frame"),
        ("%reyn blobs", "table", None),
        ("%reyn runs", "table", None),
        ("%reyn", "status", None),
        ("%reyn doctor", "status", None),
        ("%%reyn\nhello", "trace", "trace"),
        ("%reyn trace last", "trace", "trace"),
        ("%reyn diff -1 -2", "trace", "diff"),
        ("%reyn script last", "status", None),
    ],
)
def test_every_kind_has_all_representations_within_their_budgets(
    kernel: Kernel, code: str, kind: str, live: Any
) -> None:
    kernel.run(
        f"import pandas as pd\nsays('Hello.', 'Hello.', 'Hello.')\n%reyn ask hello\n%reyn ask again\nr = %reyn {LARGE}"
    )
    kernel.run("says('Hello to you.')")
    if code.startswith("%reyn script"):
        kernel.run("%reyn invoke file__read path=notes.txt")
    data = data_of(kernel, code)
    shown = snapshot(data, kind)
    assert ([key for key in data if key.startswith("application/vnd.reyn")]) == [
        f"application/vnd.reyn.{kind}+json"
    ]
    assert len(json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()) <= 24 * 1024
    assert len(data["text/html"].encode()) <= 32 * 1024 and len(data["text/plain"].encode()) <= 4 * 1024
    assert "<script" not in data["text/html"]
    assert shown["session"] == kernel.value(
        "__import__('reyn_jupyter.sessions.current', fromlist=['x']).SESSION_ID"
    )
    found = shown["live"]
    assert (found if isinstance(live, dict) else found and found["type"]) == live
    assert (WIDGET in data) == (live is not None)


def test_an_inspection_goes_on_where_it_stands(kernel: Kernel) -> None:
    kernel.run(f"r = %reyn {LARGE}")
    blob = kernel.value("r.blob.id")
    live = snapshot(data_of(kernel, f"%reyn inspect {blob[-8:]} lines:3-5"), "blob")["live"]
    assert live == {"type": "blob", "blob": blob, "selector": "lines:3-5"}


def test_an_object_of_another_session_stays_a_snapshot(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(f"other = reyn.Session({str(tmp_path)!r})\nother.parts.model = ScriptedModel('Hello.')")
    assert snapshot(data_of(kernel, "other.ask('hello')"), "trace")["live"] is None


def test_a_card_that_still_streams_has_no_widget(kernel: Kernel) -> None:
    kernel.run("says(call('list_actions'), 'Hello.', delay=0.15)")
    cell = kernel.run("%%reyn\nhello", answers=())
    shown = [each["data"] for each in (*cell.outputs, *cell.updates)]
    assert [WIDGET in data for data in shown] == [False] * (len(shown) - 1) + [True]
    assert len(shown) >= 3


def test_a_page_that_draws_our_types_itself_gets_no_widgets(kernel: Kernel) -> None:
    made = kernel.comm()
    made.hello("jupyterlab")
    assert WIDGET not in data_of(kernel, "%reyn explore")
    made.close()
    assert WIDGET in data_of(kernel, "%reyn explore")


def test_where_nobody_looks_there_is_no_widget(kernel: Kernel) -> None:
    (output,) = kernel.run("%reyn explore").outputs
    assert WIDGET not in output["data"] and "text/html" in output["data"]


def test_a_background_run_has_one_widget_that_hears_of_its_end(kernel: Kernel) -> None:
    kernel.run("says(call('list_actions'), 'Done.', delay=0.2)")
    cell = kernel.run("run = %reyn ask --bg hello", answers=())
    updates = [each["content"]["data"] for each in kernel.later(" · sent ")]
    shown = [cell.outputs[0]["data"], *updates]
    assert {data[WIDGET]["model_id"] for data in shown} == {shown[0][WIDGET]["model_id"]}
    run = kernel.value("run.run_id")
    lives = [snapshot(data, "trace")["live"] for data in shown]
    assert lives[0] == {"type": "trace", "run": run, "running": True}
    assert lives[-1] == {"type": "trace", "run": run, "running": False}
    assert kernel.value("session.background[run.run_id] is run") == "True"


def test_a_widget_answers_over_its_own_channel(kernel: Kernel) -> None:
    data = data_of(kernel, "%reyn explore")
    model = data[WIDGET]["model_id"]
    hello = {"protocol": 1, "host": "widget", "version": "", "approves": True}
    request = {"type": "request", "id": 1, "op": "hello", "args": hello}
    kernel.put("comm_msg", {"comm_id": model, "data": {"method": "custom", "content": request}})
    while True:
        heard = kernel.heard(model)["content"]["data"]
        if heard["method"] == "custom":
            break
    assert heard["content"]["value"]["session"] == snapshot(data, "actions")["session"]
    hub = "__import__('reyn_jupyter.notebook.serving.hub', fromlist=['x']).kernel_hub()"
    assert kernel.value(f"len({hub}.connections)") == "1"
    kernel.put("comm_close", {"comm_id": model, "data": {}})
    assert kernel.value(f"len({hub}.connections)") == "0"


# The comm


def test_hello_and_a_request(kernel: Kernel, comm: Comm) -> None:
    assert comm.hello()["value"]["versions"]["ipykernel"]
    assert comm.ask("approval.pending") == {"type": "answer", "id": 2, "value": {"questions": []}} | {
        "id": comm._number
    }


def test_nonsense_is_answered_or_let_be_and_the_kernel_goes_on(kernel: Kernel, comm: Comm) -> None:
    for data in (
        {},
        [],
        "x",
        7,
        {"type": "request"},
        {"id": 10**30},
        {"type": "cancel", "id": 3},
        {"type": "answer"},
    ):
        comm.send(data)
    comm.send({"type": "request", "id": 70, "op": "x" * 1_000_000})
    assert comm.answer(70)["code"] == "unknown"
    comm.send({"type": "request", "id": 71, "op": "approval.answer", "args": {"id": [[[[{}]]]]}})
    assert comm.answer(71)["code"] == "invalid"
    assert kernel.value("1 + 1") == "2"


def test_an_unknown_target_is_closed(kernel: Kernel) -> None:
    kernel.comm("reyn.v0").wait_closed()


def test_two_connections_hear_each_their_own_answers(kernel: Kernel, comm: Comm) -> None:
    other = kernel.comm()
    other.hello()
    one, two = comm.request("approval.pending"), other.request("no.such")
    assert other.answer(two)["type"] == "error" and comm.answer(one)["type"] == "answer"
    other.close()


def test_a_request_of_a_busy_kernel_is_answered_after_the_cell(kernel: Kernel, comm: Comm) -> None:
    began = time.monotonic()
    kernel.send("time.sleep(0.5)")
    assert comm.ask("approval.pending")["type"] == "answer"
    assert time.monotonic() - began >= 0.5


def test_a_connection_over_a_thread_of_its_own_is_answered_while_a_cell_runs(
    kernel: Kernel, tmp_path: Path
) -> None:
    subshell = kernel.subshell()
    if subshell is None:  # this kernel reads all its messages in one thread
        return
    over = kernel.comm(subshell=subshell)
    over.hello()
    began, go_on = tmp_path / "began", tmp_path / "go-on"
    kernel.send(
        f"import pathlib\npathlib.Path({str(began)!r}).touch()\n"
        f"while not pathlib.Path({str(go_on)!r}).exists():\n    time.sleep(0.05)"
    )
    until(began.exists)
    for _ in range(5):
        assert over.ask("approval.pending")["type"] == "answer"
    go_on.touch()
    over.close()
    kernel.run("None")


def test_an_interrupt_hurts_no_connection(kernel: Kernel, comm: Comm) -> None:
    kernel.run("print('on')\ntime.sleep(20)", interrupt_at="on")
    assert comm.ask("approval.pending")["type"] == "answer"
    kernel.run("says(call('list_actions'), 'x', delay=60)")
    kernel.run("%%reyn\nhello", interrupt_at="waiting for")
    assert comm.ask("approval.pending")["type"] == "answer"


def test_a_reload_leaves_connections_and_an_unload_takes_the_target(kernel: Kernel, comm: Comm) -> None:
    assert kernel.run("%reload_ext reyn_jupyter").error is None
    assert comm.ask("approval.pending")["type"] == "answer"
    kernel.run("%unload_ext reyn_jupyter")
    kernel.comm().wait_closed()
    assert comm.ask("approval.pending")["type"] == "answer"
    assert kernel.run("%load_ext reyn_jupyter").error is None


def test_a_new_action_is_told_after_the_cell_that_registered_it(kernel: Kernel, comm: Comm) -> None:
    kernel.run("None")
    first = comm.event("catalog")["revision"]
    cell = kernel.run("@reyn.action\ndef fresh() -> int:\n    '''A fresh one.'''\n    return 1")
    assert not cell.outputs
    assert comm.event("catalog")["revision"] != first
    comm.event("session")
    kernel.run("1 + 1")
    comm.event("session")  # runs, results and what was spent may be others after any cell
    assert not [each for each in comm.messages if each.get("event", {}).get("name") == "catalog"]


# Calls from a panel


@pytest.mark.parametrize("own_thread", [True, False])
def test_a_panel_calls_a_function_of_the_notebook_where_the_notebook_lives(
    kernel: Kernel, own_thread: bool
) -> None:
    panel = kernel.comm(subshell=kernel.subshell() if own_thread else None)
    panel.hello()
    kernel.run(
        'import threading\n@reyn.action\ndef where() -> str:\n    """Tell the thread."""\n'
        "    return threading.current_thread().name"
    )
    answer = panel.ask("catalog.invoke", name="function__where", typed={})
    panel.close()
    assert answer["type"] == "answer" and "MainThread" in json.dumps(answer["value"]["view"])


@pytest.mark.parametrize(("answer", "written"), [("once", True), ("deny", False)])
def test_a_call_from_a_panel_asks_what_a_model_would_be_asked(
    kernel: Kernel, comm: Comm, answer: str, written: bool
) -> None:
    typed = {"path": "new.txt", "content": "from a panel"}
    number = comm.request("catalog.invoke", name="file__write", typed=typed)
    asked = comm.event("approval")
    assert (
        asked["action"] == "file__write"
        and {"kind": "added", "text": "+from a panel", "continued": False} in asked["lines"]
    )
    comm.consent(asked, answer)
    assert comm.answer(number)["value"]["ok"] is written
    assert (kernel.workspace / "new.txt").exists() is written


# Questions of background runs


def write_in_background(kernel: Kernel, options: str = "") -> None:
    kernel.run("says(write('new.txt', 'hello\\n'), 'All done.', delay=0.2)")
    assert kernel.run(f"run = %reyn ask --bg {options} write it", answers=["y"]).error is None


@pytest.mark.parametrize(("answer", "written"), [("once", True), ("deny", False)])
def test_a_background_run_is_answered_over_the_comm(
    kernel: Kernel, comm: Comm, answer: str, written: bool
) -> None:
    write_in_background(kernel)
    asked = comm.event("approval")
    assert asked["run"] == kernel.value("run.run_id") and asked["lines"][0]["text"] == "write new.txt"
    assert comm.consent(asked, answer)["type"] == "answer"
    kernel.later(" · sent ")
    assert (kernel.workspace / "new.txt").exists() is written


def test_a_front_end_may_connect_just_after_the_run_has_begun(kernel: Kernel) -> None:
    kernel.run("from reyn_jupyter.runtime import consent\npatience, consent.ARRIVING = consent.ARRIVING, 120")
    write_in_background(kernel)
    late = kernel.comm()
    late.hello()
    late.consent(late.event("approval"), "once")
    kernel.later(" · sent ")
    late.close()
    kernel.run("consent.ARRIVING = patience")
    assert (kernel.workspace / "new.txt").exists()


def test_where_nobody_is_there_it_is_denied_at_once(kernel: Kernel) -> None:
    kernel.run("from reyn_jupyter.runtime import consent\npatience, consent.ARRIVING = consent.ARRIVING, 300")
    kernel.run("says(write('new.txt', 'hello'), 'All done.')")
    kernel.run("run = %reyn ask --bg write it")
    assert "nobody is there to ask" in kernel.value("run.result(60).calls[0].finished.output")
    kernel.run("consent.ARRIVING = patience")
    assert not (kernel.workspace / "new.txt").exists()


@pytest.mark.parametrize(("verb", "written"), [("allow", True), ("deny", False)])
def test_a_question_is_shown_on_the_card_and_answered_by_a_verb(
    kernel: Kernel, comm: Comm, verb: str, written: bool
) -> None:
    write_in_background(kernel)
    question = comm.event("approval")["id"]
    card = kernel.later(f"%reyn approvals allow {question}")[-1]["content"]["data"]["text/plain"]
    assert "file__write asks for consent to" in card and "write new.txt" in card
    assert question in kernel.run("%reyn approvals").text
    assert kernel.run(f"%reyn approvals {verb} {question}").error is None
    kernel.later(" · sent ")
    assert comm.event("settled")["id"] == question
    assert (kernel.workspace / "new.txt").exists() is written
    assert "no open question" in str(kernel.run(f"%reyn approvals {verb} {question}").error).lower()


def test_a_long_question_is_read_by_a_verb_before_always_is_taken(kernel: Kernel, comm: Comm) -> None:
    kernel.run("says(write('new.txt', 'line\\n' * 20 + 'the end\\n'), 'All done.', delay=0.2)")
    kernel.run("run = %reyn ask --bg write it")
    question = comm.event("approval")["id"]
    assert "once all of the question was shown" in str(kernel.run(f"%reyn approvals always {question}").error)
    assert "No open question" in str(kernel.run(f"%reyn approvals allow {question[:6]}").error)
    assert "+the end" in kernel.run(f"%reyn approvals show {question}").printed
    assert kernel.run(f"%reyn approvals always {question}").error is None
    kernel.later(" · sent ")
    assert (kernel.workspace / "new.txt").exists()


def test_a_run_of_the_cell_still_asks_by_input(kernel: Kernel, comm: Comm) -> None:
    # A page that could answer in a cell was here before, and is not expected back.
    kernel.run("from reyn_jupyter.runtime.questions import approval_queue; approval_queue.PAGES.clear()")
    kernel.run("says(write('new.txt', 'hello'), 'All done.')")
    assert kernel.run("%%reyn\nwrite it", answers=["y"]).questions
    assert (kernel.workspace / "new.txt").exists()
    assert not [each for each in comm.messages if each.get("event", {}).get("name") == "approval"]


# The doctor


def test_the_doctor_says_who_is_connected_and_what_to_do_about_another_version(
    kernel: Kernel, comm: Comm
) -> None:
    assert "no page has connected" in kernel.run("%reyn doctor").text
    made = kernel.comm()
    made.hello("jupyterlab")
    said = kernel.run("%reyn doctor").text
    made.close()
    assert "connected: jupyterlab (0)" in said and "the page has version 0" in said
