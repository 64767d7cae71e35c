"""Sessions that a test makes, and that end with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn


@pytest.fixture
def make(workspace: Path) -> Iterator[Callable[..., reyn.Session]]:
    made: list[reyn.Session] = []

    def session(namespace: dict[str, Any] | None = None, **options: Any) -> reyn.Session:
        made.append(reyn.Session(workspace, namespace=namespace or {}, **options))
        return made[-1]

    yield session
    for each in made:
        each.close()
