"""`%reyn embeddings build` in a terminal: how far it is stands on the error stream, from the start."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from reyn_jupyter.sessions.session import Session


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
