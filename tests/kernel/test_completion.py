"""Tab in a real kernel: `%reyn` completes what it knows, everywhere else IPython completes as before."""

from __future__ import annotations

import pytest

from tests.kernel.kernel_support import Kernel


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("%reyn li", "%reyn list"),
        ("x = %reyn desc", "x = %reyn describe"),
        ("    y = %reyn describe file__re", "    y = %reyn describe file__read"),
        ("print(1)\n%reyn desc", "print(1)\n%reyn describe"),
        ("%reyn list --f", "%reyn list --filter"),
        ("%reyn list fi", "%reyn list file"),
        ("%reyn list file fun", "%reyn list file function"),
        ("%reyn invoke file__re", "%reyn invoke file__read"),
        ("%reyn invoke file__read pa", "%reyn invoke file__read path="),
        ("%reyn invoke file__grep case_sensitive=t", "%reyn invoke file__grep case_sensitive=true"),
        ("%reyn invoke variable__cities rows=@ci", "%reyn invoke variable__cities rows=@cities"),
        ("%reyn describe variable__ci", "%reyn describe variable__cities"),
        ("%reyn ask --discovery g", "%reyn ask --discovery gate"),
        ("%reyn ask --surface=fl", "%reyn ask --surface=flat"),
        ("%reyn replay -m off", "%reyn replay -m offline"),
        ("%reyn trace la", "%reyn trace last"),
        ("%reyn history dr", "%reyn history drop"),
        ("%reyn config router.limits.max_s", "%reyn config router.limits.max_steps"),
        ("%reyn help sur", "%reyn help surface"),
        ("%reyn debug o", "%reyn debug on"),
        ("%%reyn --appr", "%%reyn --approve"),
        ("%%reyn --approve re", "%%reyn --approve read"),
        ("%%reyn --vars cities,li", "%%reyn --vars cities,limit"),
        ("%%reyn invoke file__re", "%%reyn invoke file__read"),
        ("%%reyn\nplease use @file__re", "%%reyn\nplease use @file__read"),
    ],
)
def test_a_word_after_reyn_is_completed(kernel: Kernel, typed: str, offered: str) -> None:
    kernel.run("cities = ['Oslo']\nlimit = 3")
    assert offered in kernel.complete(typed)


def test_runs_and_blobs_are_offered_by_id(kernel: Kernel) -> None:
    kernel.run("r = %reyn invoke file__read path=data/orders.csv")
    run, blob = eval(kernel.value("r.trace.run, r.blob.id"))
    assert f"%reyn trace {run[-12:]}" in kernel.complete("%reyn trace ")
    assert f"%reyn trace {run}" in kernel.complete(f"%reyn trace {run[:20]}")
    assert f"%reyn inspect {blob}" in kernel.complete("%reyn inspect ")
    assert f"%reyn inspect {blob} lines:1-50" in kernel.complete(f"%reyn inspect {blob} li")


def test_beside_an_id_stands_what_was_asked_or_stored(kernel: Kernel) -> None:
    kernel.run("says('Done.')")
    kernel.run("%%reyn\nhow many\nregions <b>are there</b>?")
    run = kernel.value("__import__('reyn_jupyter').session().trace().run")
    beside = kernel.meanings("%reyn trace ")
    assert beside[run[-12:]] == beside["last"] == "how many regions <b>are there</b>?"
    kernel.run("r = %reyn invoke file__read path=data/orders.csv")
    [blob] = eval(kernel.value("[r.blob.id]"))
    assert kernel.meanings("%reyn inspect ")[blob].startswith("file__read · text · ")
    assert kernel.meanings("%reyn sea")["search"].startswith("actions by what they do")
    assert kernel.meanings("%reyn describe file__re")["file__read"]


def test_arguments_that_are_there_are_not_offered_again(kernel: Kernel) -> None:
    offered = kernel.complete("%reyn invoke file__read path=notes.txt ")
    assert any(each.endswith(" limit=") for each in offered)
    assert not any(each.endswith(" path=") for each in offered)


def test_values_of_options_are_not_taken_for_arguments(kernel: Kernel) -> None:
    assert "%reyn search --limit 3 " not in kernel.complete("%reyn search --limit 3 ")
    assert "%reyn describe -o x file__read" in kernel.complete("%reyn describe -o x file__re")


@pytest.mark.parametrize(
    ("typed", "offered"), [("import paht", "import pathlib"), ("notebook_name.upp", "upper")]
)
def test_everything_else_completes_as_before(kernel: Kernel, typed: str, offered: str) -> None:
    kernel.run("notebook_name = 'x'")
    typed = typed.replace("paht", "path")
    assert any(offered in each for each in kernel.complete(typed))


def test_plain_text_below_a_question_is_left_to_ipython(kernel: Kernel) -> None:
    kernel.run("some_long_name = 1")
    assert "%%reyn\nsome_long_name" in kernel.complete("%%reyn\nsome_long_n")


@pytest.mark.parametrize(
    "typed",
    ["%reyn zzz ", "%reyn inspect '", "%reyn invoke no__such a", "%%reyn --model=", "x = '%reyn li", "%reyn"],
)
def test_odd_places_complete_without_an_error(kernel: Kernel, typed: str) -> None:
    kernel.complete(typed)
    assert kernel.value("1") == "1"


def test_completing_runs_nothing(kernel: Kernel) -> None:
    kernel.run(
        "@reyn.action\ndef count() -> int:\n    '''Count.'''\n    calls.append(1)\n    return 1\ncalls = []"
    )
    before = kernel.value("len(session.runs)")
    for typed in ("%reyn invoke function__co", "%reyn invoke function__count ", "%%reyn\nuse @function__co"):
        kernel.complete(typed)
    assert kernel.value("calls, len(session.runs)") == f"([], {before})"


def test_a_workspace_that_cannot_be_read_completes_nothing_and_says_nothing(kernel: Kernel) -> None:
    kernel.run("catalog = session.parts.catalog.refresh\nsession.parts.catalog.refresh = None")
    offered = kernel.complete("%reyn describe file__re")
    kernel.run("session.parts.catalog.refresh = catalog")
    assert "%reyn describe file__read" not in offered
