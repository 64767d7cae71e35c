"""A reply of megabytes is redacted off the engine's loop, which hears an interrupt meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.support.secrets import Redactor
from tests.security.security_support import invoke


def test_the_loop_looks_through_no_large_argument(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = "a line of words\n" * 30_000
    text = Redactor.text
    threads: list[str] = []

    def watched(redactor: Redactor, given: Any) -> Any:
        if len(given) >= len(content):
            threads.append(threading.current_thread().name)
        return text(redactor, given)

    monkeypatch.setattr(Redactor, "text", watched)
    session = reyn.Session(
        workspace, model=ScriptedModel(invoke("file__write", path="new.txt", content=content), "Done.")
    )
    session.parts.ask_person = lambda question: "once"
    trace = session.ask("write it")
    assert trace.answer == "Done." and (workspace / "new.txt").read_text() == content
    assert len(threads) >= 2 and "reyn-engine" not in threads
