"""What stands under a cell where an error says all that a person needs."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell

from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.support.user_errors import UserError

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def shown(shell: InteractiveShell, cell: str, capsys: pytest.CaptureFixture[str]) -> str:
    shell.run_cell(cell)
    return COLOUR.sub("", capsys.readouterr().out)


def test_a_cell_shows_the_persons_lines_and_the_sentence(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = "import reyn_jupyter as reyn\n\ndef mine():\n    return reyn.Study('.')\n\nmine()"
    said = shown(shell, cell, capsys)
    assert "return reyn.Study('.')" in said and "mine()" in said
    assert "is no file" in said.splitlines()[-1] or "is a folder" in said.splitlines()[-1]
    assert "store/study_file.py" not in said and "reyn_jupyter/evaluation" not in said


def test_what_led_to_it_and_what_libraries_did_between_is_left_out_but_not_lost(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    cell = (
        "import reyn_jupyter as reyn\n"
        "reyn.Study(None).run(reyn.Variant('a', model='openai/gpt-4o-mini'), n=1)"
    )
    said = shown(shell, cell, capsys)
    assert "OPENAI_API_KEY" in said and "direct cause" not in said
    assert len(said.splitlines()) < 12
    with pytest.raises(UserError) as caught:
        Study(".")
    assert "store/study_file.py" in "".join(traceback.format_exception(caught.value))


def test_verbose_mode_shows_all_of_it(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_line_magic("xmode", "Verbose")
    try:
        said = shown(shell, "import reyn_jupyter as reyn\nreyn.Study('.')", capsys)
    finally:
        shell.run_line_magic("xmode", "Context")
    assert "store/study_file.py" in said


def test_outside_ipython_it_is_an_ordinary_error() -> None:
    try:
        raise ModelError("auth", "There is no key.", "Set it.") from ValueError("why")
    except ModelError as error:
        assert "ValueError: why" in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("mode", ["Context", "Verbose"])
def test_no_secret_and_no_hidden_character_stands_under_the_cell(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "correct-horse-battery")
    cell = (
        "import os\nfrom reyn_jupyter.support.user_errors import UserError\n"
        "why = ValueError('because of ' + os.environ['DEMO_API_KEY'])\n"
        "error = UserError('refused ' + os.environ['DEMO_API_KEY'] + ' \\u202eand \\x1b[2Kmore')\n"
        "error.add_note('noted: ' + os.environ['DEMO_API_KEY'])\n"
        "raise error from why"
    )
    shell.run_line_magic("xmode", mode)
    try:
        said = shown(shell, cell, capsys)
    finally:
        shell.run_line_magic("xmode", "Context")
    assert "refused [redacted:DEMO_API_KEY] ⟨U+202E⟩and ␛[2Kmore" in said
    assert "correct-horse-battery" not in said and "\u202e" not in said and "\x1b[2K" not in said
    assert ("because of" in said) == (mode == "Verbose")
    assert "correct-horse-battery" in str(shell.user_ns["error"])
