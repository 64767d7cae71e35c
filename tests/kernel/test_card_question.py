"""A question stands in the card where the front end that runs the cell draws cards, and nowhere else in its place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kernel.kernel_support import Cell, Comm, Kernel

ASK = "%%reyn\nwrite it"
TRACE = "application/vnd.reyn.trace+json"


@pytest.fixture
def lab(kernel: Kernel) -> Iterator[Comm]:
    made = kernel.comm()
    made.hello("jupyterlab")
    yield made
    made.close()
    kernel.run("None")


def snapshots(cell: Cell) -> list[dict[str, Any]]:
    """Return the states of the card, in their order."""
    shown = [*cell.outputs, *cell.updates]
    return [each["data"][TRACE] for each in shown if TRACE in each.get("data", {})]


def questions(cell: Cell) -> list[dict[str, Any]]:
    return [each["question"] for each in snapshots(cell) if each.get("question")]


def texts(question: dict[str, Any]) -> list[str]:
    return [each["text"] for each in question["lines"]]


def test_the_card_holds_the_question_with_its_change_while_the_prompt_waits(
    kernel: Kernel, lab: Comm
) -> None:
    kernel.run("says(write('new.txt', 'hello\\n'), 'Done.')")
    cell = kernel.run(ASK, answers=["y"])
    (question,) = questions(cell)
    assert "+hello" in texts(question) and "write new.txt" in texts(question)
    assert {"kind": "added", "text": "+hello", "continued": False} in question["lines"]
    assert [question["prompt"]] == cell.questions
    assert [(each["answer"], each["key"]) for each in question["choices"]] == [
        ("once", "y"),
        ("always", "a"),
        ("deny", "n"),
    ]
    assert "+hello" not in cell.printed and "asks for consent" not in cell.printed
    waiting = next(each for each in snapshots(cell) if each.get("question"))
    assert waiting["view"]["badges"][0]["text"] == "❚❚ waiting for you"
    assert snapshots(cell)[-1].get("question") is None
    assert (kernel.workspace / "new.txt").read_text() == "hello\n"


def test_a_card_offers_always_only_once_it_holds_every_line(kernel: Kernel, lab: Comm) -> None:
    kernel.run("says(write('new.txt', 'line\\n' * 120 + 'the end\\n'), 'Done.')")
    cell = kernel.run(ASK, answers=["a", "m", "n"])
    first, again, whole = questions(cell)
    assert first["lines"] == again["lines"] and len(first["lines"]) < first["total"]
    assert "always" not in [each["answer"] for each in (*first["choices"], *again["choices"])]
    assert len(whole["lines"]) == whole["total"] and "+the end" in texts(whole)
    assert "always" in [each["answer"] for each in whole["choices"]]
    assert not (kernel.workspace / "new.txt").exists()  # "a" before the end was no answer


def test_a_question_of_another_client_is_printed(kernel: Kernel, lab: Comm) -> None:
    kernel.run(
        "from reyn_jupyter.notebook.serving.hub import kernel_hub\n"
        "for each in kernel_hub().connections: each.client = 'another'\n"
        "says(write('new.txt', 'hello\\n'), 'Done.')"
    )
    cell = kernel.run(ASK, answers=["n"])
    assert not questions(cell) and "+hello" in cell.printed


@pytest.mark.parametrize(("host", "approves"), [("jupyterlab", False), ("widget", True), ("page", True)])
def test_a_host_that_asks_nothing_in_cards_gets_the_question_printed(
    kernel: Kernel, host: str, approves: bool
) -> None:
    comm = kernel.comm()
    comm.hello(host, approves=approves)
    kernel.run("says(write('new.txt', 'hello\\n'), 'Done.')")
    cell = kernel.run(ASK, answers=["n"])
    comm.close()
    assert not questions(cell) and "+hello" in cell.printed


def test_an_interrupt_takes_the_question_off_the_card(kernel: Kernel, lab: Comm) -> None:
    kernel.run("says(write('new.txt', 'hello\\n'), 'Done.')")
    cell = kernel.run(ASK, answers=(), interrupt_at="waiting for you")
    last = snapshots(cell)[-1]
    assert last.get("question") is None and last["view"]["badges"][0]["text"] == "◼ interrupted"
    assert not (kernel.workspace / "new.txt").exists()


def test_the_time_of_an_answer_is_no_time_of_the_run(kernel: Kernel, lab: Comm) -> None:
    kernel.run(
        "import time\n"
        "def slow(prompt='', ask=get_ipython().kernel.raw_input):\n"
        "    time.sleep(1.5)\n"
        "    return ask(prompt)\n"
        "get_ipython().kernel.raw_input = slow\n"
        "says(write('new.txt', 'hello\\n'), 'Done.')"
    )
    began = time.monotonic()
    cell = kernel.run(ASK, answers=["y"])
    passed = time.monotonic() - began
    kernel.run("del get_ipython().kernel.raw_input")
    assert " s waiting for you" in cell.text
    trace = "session.trace('last')"
    waited, seconds = (float(kernel.value(f"{trace}.{name}")) for name in ("waited", "seconds"))
    assert 1.5 <= waited <= passed and seconds <= passed - 1.5
    call = f"{trace}.calls[-1].finished"
    assert float(kernel.value(f"{call}.waited")) >= 1.5
    assert float(kernel.value(f"{call}.seconds")) <= passed - 1.5
