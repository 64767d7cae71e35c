"""`%reyn embeddings build` in a terminal: how far it is stands on the error stream, from the start."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from reyn_jupyter.sessions.session import Session


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_an_interrupt_takes_the_line_away(run: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    said = Terminal()

    def interrupt(self: Session, on_event: object = None) -> None:
        assert said.getvalue().endswith("looking through the catalog")
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "build_embeddings", interrupt)
    monkeypatch.setattr(sys, "stderr", said)
    run("%reyn embeddings build")
    assert said.getvalue().endswith("\r\x1b[K")


def test_a_build_says_at_once_that_it_goes_on(
    run: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said, before = io.StringIO(), list[str]()
    build = Session.build_embeddings

    def look(self: Session, on_event: object = None) -> object:
        before.append(said.getvalue())
        return build(self, on_event)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "build_embeddings", look)
    monkeypatch.setattr(sys, "stderr", said)
    assert "new vectors" in run("%reyn embeddings build")
    assert before == ["looking through the catalog\n"]
