"""The notebook and its kernel as actions, in a real kernel: cells that a page sent, proposals, Python with consent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kernel.kernel_support import Comm, Kernel


def invokes(name: str, **args: Any) -> str:
    return f"call('invoke_action', action_name={name!r}, args={args!r})"


def runs(code: str) -> str:
    return invokes("python__run", code=code)


def read(kernel: Kernel) -> str:
    """Return what the model read of its calls."""
    return kernel.value(
        "'\\n'.join(each['content'] for each in session.parts.model.requests[-1].wire['messages'] "
        "if each['role'] == 'tool')"
    )


@pytest.fixture
def python(kernel: Kernel) -> Iterator[Kernel]:
    assert "is on" in kernel.run("%reyn python on").text
    yield kernel
    kernel.run("%reyn python off")


@pytest.fixture
def page(kernel: Kernel) -> Iterator[Comm]:
    comm = kernel.comm()
    comm.hello("jupyterlab")
    yield comm
    comm.close()


def send(page: Comm, *cells: dict[str, Any]) -> None:
    empty = {"kind": "code", "count": None, "outputs": [], "cut": 0, "more": 0}
    page.send({"type": "cells", "cells": [{**empty, **each} for each in cells], "more": 0})


def test_python_is_off_and_says_the_line_to_type(kernel: Kernel) -> None:
    assert "is off" in kernel.run("%reyn python").text
    assert "%reyn python on" in str(kernel.run("%reyn invoke python__run code=1+1").error)


def test_code_runs_after_a_yes_in_the_persons_namespace(python: Kernel) -> None:
    python.run(f"price = 20; says({runs('total = price * 2' + chr(10) + 'total')}, 'Done.')")
    cell = python.run("%%reyn\ngo", answers=["y"])
    assert cell.questions == ["Allow python__run? [y] once  [n] no: "]
    assert "│ total = price * 2" in cell.printed
    assert python.value("total") == "40"
    assert "made" in read(python) and "40" in read(python)
    undone = python.run("%reyn undo").text
    assert "removed: total" in undone
    assert python.run("total").error is not None


def test_code_does_not_run_after_a_no_or_with_nobody_there(python: Kernel) -> None:
    for answers in (["n"], None):
        python.run(f"says({runs('sneaked = 1')}, 'Done.')")
        assert "⊘ denied" in python.run("%%reyn\ngo", answers=answers).text
    assert python.run("sneaked").error is not None


def test_a_long_piece_of_code_is_paged_before_it_runs(python: Kernel) -> None:
    code = "\n".join(f"a{number} = {number}" for number in range(150))
    python.run(f"says({runs(code)}, 'Done.')")
    cell = python.run("%%reyn\ngo", answers=["m", "y"])
    assert "[m] 5" in cell.questions[0] and "│ a149 = 149" in cell.printed
    assert python.value("a149") == "149"


@pytest.mark.parametrize("wait", ["time.sleep(60)", "while True: pass"])
def test_an_interrupt_reaches_the_code_at_once(python: Kernel, wait: str) -> None:
    shows = "get_ipython().display_pub.publish({'text/plain': 'inside'})"
    code = f"import time\nbegun = 1\n{shows}\n{wait}\nlater = 1"
    python.run(f"says({runs(code)}, 'Done.')")
    cell = python.run("%%reyn --approve all\ngo", interrupt_at="inside")
    assert "◼ interrupted" in python.run("%reyn trace last").text, cell.text
    assert python.value("begun") == "1" and python.run("later").error is not None
    assert "removed: begun" in python.run("%reyn undo").text


def test_a_deadline_ends_the_code_and_the_kernel_goes_on(python: Kernel) -> None:
    python.run("session.configure('calls.seconds', {'python': 0.5})")
    python.run(f"says({runs('import time' + chr(10) + 'half = 1' + chr(10) + 'time.sleep(60)')}, 'Done.')")
    cell = python.run("%%reyn --approve all\ngo")
    python.run("session.configure('calls.seconds', {})")
    assert "Done." in cell.text and "was stopped after 0.5 s" in read(python)
    assert python.value("half") == "1"


def test_the_copy_of_a_page_is_what_a_model_reads(kernel: Kernel, page: Comm) -> None:
    output = {"kind": "result", "text": "north  3", "types": ["text/html"], "cut": 0}
    send(
        page,
        {"id": "one", "source": "orders = 1"},
        {"id": "two", "source": "orders", "count": 2, "outputs": [output]},
    )
    kernel.run(
        f"says({invokes('notebook__list_cells')}, {invokes('notebook__read_cell', id='two')}, 'Done.')"
    )
    assert "Done." in kernel.run("%%reyn\nread").text
    assert "the open notebook" in read(kernel) and "north  3" in read(kernel)


def test_a_proposal_reaches_the_page_below_the_cell_that_runs(kernel: Kernel, page: Comm) -> None:
    send(page, {"id": "asking", "source": "%%reyn"})
    kernel.run(f"says({invokes('notebook__propose_cell', source='1 / 0')}, 'Done.')")
    cell = kernel.run("%%reyn\npropose", cell="asking", answers=["y"])
    assert "1 / 0" in str(cell.messages) and cell.error is None
    event = page.event("proposal")
    assert (event["source"], event["below"]) == ("1 / 0", ["asking"])
    send(page, {"id": "asking", "source": "%%reyn"}, {"id": event["cell"], "source": "1 / 0"})
    assert "is taken out" in kernel.run("%reyn undo").text
    assert page.event("withdrawal")["cell"] == event["cell"]


def test_without_a_page_code_is_put_into_the_next_cell(kernel: Kernel) -> None:
    kernel.run(f"says({invokes('notebook__propose_cell', source='later = 1')}, 'Done.')")
    cell = kernel.run("%%reyn\npropose", answers=["y"])
    assert [each["text"] for each in cell.reply["payload"]] == ["later = 1"]
    assert kernel.run("later").error is not None


def test_what_was_run_is_read_from_the_history_where_no_page_is(kernel: Kernel) -> None:
    kernel.run("remembered = 41\nremembered + 1")
    kernel.run(f"says({invokes('notebook__list_cells', limit=100)}, 'Done.')")
    kernel.run("%%reyn\nread")
    assert "history" in read(kernel) and "remembered = 41" in read(kernel)
