"""What changes something asks the person, through the front end's own input; nobody there means no."""

from __future__ import annotations

from tests.kernel.kernel_support import Cell, Kernel

ASK = "%%reyn\nwrite it"


def prepare(kernel: Kernel) -> None:
    kernel.run("says(write('new.txt', 'hello\\n'), 'Done.')")


def written(kernel: Kernel) -> bool:
    return (kernel.workspace / "new.txt").exists()


def denied(cell: Cell) -> bool:
    return "⊘ denied" in cell.text


def test_the_question_shows_the_target_and_the_change_above_it(kernel: Kernel) -> None:
    prepare(kernel)
    cell = kernel.run(ASK, answers=["n"])
    assert "write new.txt" in cell.printed and "+hello" in cell.printed
    assert cell.questions == [
        "Allow file__write? [y] once  [a] always for file__write(write:new.txt)  [n] no: "
    ]


def test_no_means_no(kernel: Kernel) -> None:
    prepare(kernel)
    cell = kernel.run(ASK, answers=["n"])
    assert denied(cell) and "the person said no" in cell.text and not written(kernel)


def test_yes_allows_it_once(kernel: Kernel) -> None:
    prepare(kernel)
    assert not denied(kernel.run(ASK, answers=["y"])) and written(kernel)
    prepare(kernel)
    assert kernel.run(ASK, answers=["n"]).questions


def test_always_allows_it_from_then_on_and_is_listed(kernel: Kernel) -> None:
    prepare(kernel)
    kernel.run(ASK, answers=["a"])
    assert "file__write(write:new.txt)" in kernel.run("%reyn approvals").text
    (kernel.workspace / "new.txt").unlink()
    prepare(kernel)
    again = kernel.run(ASK, answers=[])
    assert not again.questions and written(kernel)


def test_a_long_question_is_shown_part_by_part_and_always_waits_for_the_end(kernel: Kernel) -> None:
    kernel.run("says(write('new.txt', 'line\\n' * 120 + 'the end\\n'), 'Done.')")
    cell = kernel.run(ASK, answers=["a", "m", "a"])
    first, again, last = cell.questions
    assert first == again and "more lines" in first and "always" not in first
    assert last == "Allow file__write? [y] once  [a] always for file__write(write:new.txt)  [n] no: "
    assert "+the end" in cell.printed and written(kernel)


def test_an_answer_that_is_none_is_asked_again_and_then_means_no(kernel: Kernel) -> None:
    prepare(kernel)
    cell = kernel.run(ASK, answers=["perhaps", "later", "???"])
    assert len(cell.questions) == 3 and denied(cell) and not written(kernel)


def test_where_nobody_can_be_asked_it_is_denied_and_said(kernel: Kernel) -> None:
    prepare(kernel)
    cell = kernel.run(ASK, answers=None)
    assert denied(cell) and "nobody is there to ask; --approve all allows it for one run" in cell.text
    assert not written(kernel)


def test_approve_read_denies_without_asking(kernel: Kernel) -> None:
    prepare(kernel)
    cell = kernel.run("%%reyn --approve read\nwrite it", answers=["y"])
    assert not cell.questions and denied(cell) and not written(kernel)


def test_approve_all_allows_this_run_alone(kernel: Kernel) -> None:
    prepare(kernel)
    assert not kernel.run("%%reyn --approve all\nwrite it").questions and written(kernel)
    (kernel.workspace / "new.txt").unlink()
    prepare(kernel)
    assert denied(kernel.run(ASK))


def test_deny_rules_hold_under_approve_all(kernel: Kernel) -> None:
    kernel.run("%reyn config permissions.deny '[\"file__write\"]'")
    prepare(kernel)
    cell = kernel.run("%%reyn --approve all\nwrite it")
    kernel.run("%reyn config permissions.deny '[]'")
    assert denied(cell) and not written(kernel)


def test_a_call_by_hand_is_consent(kernel: Kernel) -> None:
    cell = kernel.run("%reyn invoke file__write path=new.txt content=hello", answers=["n"])
    assert not cell.questions and written(kernel)
