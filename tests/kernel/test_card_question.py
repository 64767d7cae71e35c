"""A question of a cell goes to every page that shows questions; a front end without buttons has a text prompt."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kernel.kernel_support import TIMEOUT, Comm, Kernel
from tests.support.waiting import until

ASK = "%%reyn\nwrite it"
LIMIT = "permissions.question_seconds"


@pytest.fixture
def lab(kernel: Kernel) -> Iterator[Comm]:
    made = kernel.comm(control=True)
    made.hello("jupyterlab")
    yield made
    made.close()
    kernel.run("None")


@pytest.fixture
def limit(kernel: Kernel) -> Iterator[None]:
    kernel.run(f"%reyn config {LIMIT} 4")  # more than a page has for its arrival
    yield
    kernel.run(f"%reyn config {LIMIT} 600")


@pytest.fixture
def alone(kernel: Kernel) -> None:
    """The front end has never shown a page."""
    kernel.run("from reyn_jupyter.runtime.questions import approval_queue; approval_queue.PAGES.clear()")


def prepare(kernel: Kernel, content: str = "'hello\\n'") -> None:
    kernel.run(f"says(write('new.txt', {content}), 'Done.')")


def trace(kernel: Kernel, what: str) -> str:
    return kernel.value(f"session.trace('last').{what}")


def test_a_page_answers_while_the_cell_waits(kernel: Kernel, lab: Comm) -> None:
    prepare(kernel)
    kernel.send(ASK, cell="the-cell", allow_stdin=True)
    asked = lab.event("approval")
    assert asked["cell"] == "the-cell"
    assert {"kind": "added", "text": "+hello", "continued": False} in asked["lines"]
    assert lab.ask("approval.pending")["value"]["questions"][0]["id"] == asked["id"]
    assert lab.consent(asked, "once")["type"] == "answer"
    assert lab.event("settled") == {"name": "settled", "id": asked["id"], "outcome": "Allowed once."}
    assert trace(kernel, "status") == "ok" and (kernel.workspace / "new.txt").read_text() == "hello\n"


def test_always_has_no_secret_before_the_last_line_was_sent(kernel: Kernel, lab: Comm) -> None:
    prepare(kernel, "'line\\n' * 120 + 'the end\\n'")
    kernel.send(ASK, allow_stdin=True)
    asked = lab.event("approval")
    assert [each["answer"] for each in asked["choices"] if each["secret"] is None] == ["always"]
    page = lab.ask("approval.page", id=asked["id"], start=len(asked["lines"]))["value"]
    assert page["lines"][-1]["text"] == "+the end" and all(each["secret"] for each in page["choices"])
    lab.consent(asked, "deny")
    assert not (kernel.workspace / "new.txt").exists()


def test_a_page_that_connects_in_the_middle_is_asked(kernel: Kernel, lab: Comm) -> None:
    prepare(kernel)
    kernel.send(ASK, allow_stdin=True)
    first = lab.event("approval")
    lab.close()  # the page is loaded again
    late = kernel.comm(control=True)
    late.hello("jupyterlab")
    again = late.event("approval")
    assert again["id"] == first["id"]
    late.consent(again, "deny")
    assert "denied" in late.event("settled")["outcome"].lower()
    late.close()


def test_the_last_answer_of_two_pages_is_told_that_it_does_not_count(kernel: Kernel, lab: Comm) -> None:
    other = kernel.comm(control=True)
    other.hello("notebook")
    prepare(kernel)
    kernel.send(ASK, allow_stdin=True)
    one, two = lab.event("approval"), other.event("approval")
    lab.consent(one, "deny")
    late = other.consent(two, "once")
    assert late["type"] == "error" and "No open question" in late["message"]
    assert other.event("settled")["outcome"] == "Denied."
    other.close()
    assert not (kernel.workspace / "new.txt").exists()


def test_a_page_that_went_away_leaves_a_limited_time(kernel: Kernel, lab: Comm, limit: None) -> None:
    prepare(kernel)
    kernel.send(ASK, allow_stdin=True)
    lab.event("approval")
    lab.close()
    after = kernel.run("print('the next cell runs')")
    assert "the next cell runs" in after.printed
    assert "nobody answered in time" in trace(kernel, "calls[-1]")
    assert not (kernel.workspace / "new.txt").exists()


def test_a_prompt_that_nobody_answers_ends_in_time(kernel: Kernel, alone: None, limit: None) -> None:
    prepare(kernel)
    cell = kernel.run(ASK, answers=())
    assert "+hello" in cell.printed and "denied" in cell.text
    assert (
        kernel.run("given = input('? ')", answers=["typed"]).error is None
    )  # no answer of ours is left over
    assert kernel.value("given") == "typed"


def test_a_page_answers_a_question_that_stands_at_a_prompt(kernel: Kernel, alone: None) -> None:
    prepare(kernel)
    kernel.send(ASK, allow_stdin=True)
    until(lambda: kernel._client.get_stdin_msg(timeout=TIMEOUT))
    late = kernel.comm(control=True)
    late.hello("jupyterlab")
    late.consent(late.event("approval"), "once")
    late.event("settled")
    assert trace(kernel, "status") == "ok" and (kernel.workspace / "new.txt").exists()
    late.close()


@pytest.mark.parametrize(
    ("host", "approves", "control"), [("jupyterlab", False, True), ("widget", True, False)]
)
def test_a_page_that_cannot_answer_in_a_cell_leaves_the_prompt(
    kernel: Kernel, alone: None, host: str, approves: bool, control: bool
) -> None:
    comm = kernel.comm(control=control)
    comm.hello(host, approves=approves)
    prepare(kernel)
    cell = kernel.run(ASK, answers=["n"])
    comm.close()
    assert cell.questions and "+hello" in cell.printed


def test_an_interrupt_withdraws_the_question(kernel: Kernel, lab: Comm) -> None:
    prepare(kernel)
    cell = kernel.run(ASK, answers=(), interrupt_at="waiting for you")
    assert "interrupted" in cell.text
    asked = lab.event("approval")
    assert lab.event("settled") == {"name": "settled", "id": asked["id"], "outcome": ""}
    assert not (kernel.workspace / "new.txt").exists()


def test_the_time_of_an_answer_is_no_time_of_the_run(kernel: Kernel, lab: Comm) -> None:
    prepare(kernel)
    began = time.monotonic()
    kernel.send(ASK, allow_stdin=True)
    asked = lab.event("approval")
    opened = time.monotonic()
    until(lambda: time.monotonic() - opened > 1.5)
    lab.consent(asked, "once")
    lab.event("settled")
    waited, seconds = (float(trace(kernel, name)) for name in ("waited", "seconds"))
    passed = time.monotonic() - began
    assert 1.4 <= waited <= passed and seconds <= passed - 1.4


def test_a_kernel_without_the_extension_has_no_comm_of_its_target(kernel: Kernel) -> None:
    def targets() -> dict[str, Any]:
        message = kernel._client.session.msg("comm_info_request", {"target_name": "reyn.v1"})
        kernel._client.control_channel.send(message)
        reply = kernel._client.control_channel.get_msg(timeout=TIMEOUT)
        return dict(reply["content"]["comms"])

    assert "reyn.v1" in targets()
    kernel.run("%unload_ext reyn_jupyter")
    assert "reyn.v1" not in targets()
    kernel.run("%load_ext reyn_jupyter")
