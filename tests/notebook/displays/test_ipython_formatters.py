"""In a real IPython shell: rich where the front end is, text in a terminal, one line for an error."""

from __future__ import annotations

import atexit
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell

from reyn_jupyter.notebook.displays.frame_viewing import view
from reyn_jupyter.notebook.displays.ipython_formatters import register
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.sessions.result_objects import ActionTable, Card
from reyn_jupyter.sessions.session import Session
from tests.notebook.render.samples import row, trace


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    hooks = (sys.excepthook, sys.displayhook)
    made = InteractiveShell()
    made.history_manager.enabled = False
    yield made
    atexit.unregister(made.atexit_operations)
    made.displayhook.do_full_cache = (
        False  # or its end collects all garbage, a second where the whole suite is loaded
    )
    made.atexit_operations()
    sys.excepthook, sys.displayhook = hooks


def test_registered_twice_objects_show_once_in_every_representation(shell: InteractiveShell) -> None:
    register(shell)
    register(shell)
    data, _ = shell.display_formatter.format(ActionTable({"total": 1}, (row(),)))
    assert set(data) == {"application/vnd.reyn.actions+json", "text/html", "text/plain"}
    assert data["text/html"].startswith('<div class="reyn-view ')
    assert "file__read" in data["text/plain"]


def test_an_object_shown_before_takes_the_newer_formatter(shell: InteractiveShell) -> None:
    secret = Card("status", "Ready", (("key", "hunter2"),))
    register(shell)
    assert "hunter2" in shell.display_formatter.format(secret)[0]["text/html"]
    register(shell, redact=lambda text: text.replace("hunter2", "[redacted]"))
    assert "hunter2" not in shell.display_formatter.format(secret)[0]["text/html"]


def test_a_terminal_gets_text_alone(shell: InteractiveShell) -> None:
    register(shell)
    shell.display_formatter.active_types = ["text/plain"]
    data, _ = shell.display_formatter.format(trace())
    assert set(data) == {"text/plain"}
    assert "It is 4." in data["text/plain"]


def test_secrets_are_taken_out_of_what_is_shown(shell: InteractiveShell) -> None:
    register(shell, redact=lambda text: text.replace("hunter2", "[redacted]"))
    data, _ = shell.display_formatter.format(Card("status", "Ready", (("key", "hunter2"),)))
    assert "hunter2" not in str(data)
    assert "[redacted]" in data["text/plain"]


def test_other_objects_are_shown_as_before(shell: InteractiveShell) -> None:
    before = shell.display_formatter.format({"a": 1})
    register(shell)
    assert shell.display_formatter.format({"a": 1}) == before


def raised(shell: InteractiveShell, error: ReynError, capsys: pytest.CaptureFixture[str]) -> list[str]:
    shell.user_ns["error"] = error
    shell.run_cell("raise error")
    return capsys.readouterr().out.strip().splitlines()


def test_an_error_is_one_line_and_what_to_do_next(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    payload = {
        "error": "Unknown action 'file_raed'.",
        "suggestions": ["file__read"],
        "hint": "%reyn list shows all.",
    }
    assert raised(shell, ReynError.of(payload), capsys) == [
        "Unknown action 'file_raed'. Did you mean file__read?"
    ]


def test_an_error_cannot_move_the_cursor_or_fill_the_screen(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, *_ = lines = raised(
        shell, ReynError("bad \x1b[2J\u202e\r\n" + "x" * 9000 + "\n" * 500), capsys
    )
    assert first == "bad ␛[2J⟨U+202E⟩␍"
    assert len(second) <= 600 and len(lines) <= 40


def test_debug_gives_the_whole_traceback(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    lines = raised(shell, ReynError("It failed.", debug=True), capsys)
    assert lines[0].startswith("Traceback") and "It failed." in lines[-1]


def test_an_error_in_a_script_reads_well_too() -> None:
    assert str(ReynError("No such run.", "%reyn runs lists them.")) == "No such run. %reyn runs lists them."


def test_what_a_session_was_given_as_a_secret_is_in_no_display(
    shell: InteractiveShell, workspace: Path
) -> None:
    value = "given-to-the-session-9"
    (workspace / "note.txt").write_text(f"the key is {value}")
    session = Session(workspace, secrets={"EXPORT_KEY": value})
    register(shell)
    for shown in (
        session.invoke_action("file__read", {"path": "note.txt"}),
        view(pd.DataFrame({"key": [value], value: [1]})),
    ):
        data, _ = shell.display_formatter.format(shown)
        assert value not in json.dumps(data) and "[redacted:EXPORT_KEY]" in data["text/html"]
