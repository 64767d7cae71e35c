"""Modules of an extra: what is there is looked for once, and what was installed meanwhile is noticed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reyn_jupyter.support import optional_modules
from reyn_jupyter.support.optional_modules import is_importable


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that were looked for, each time that they were."""
    names: list[str] = []
    real = optional_modules.find_spec

    def find_spec(name: str) -> object:
        names.append(name)
        return real(name)

    monkeypatch.setattr(optional_modules, "_looked_for", {})
    monkeypatch.setattr(optional_modules, "find_spec", find_spec)
    return names


def test_each_module_is_looked_for_once_in_a_moment(looked: list[str]) -> None:
    assert [is_importable("json") for _ in range(3)] == [True] * 3
    assert [is_importable("there_is_no_such_module") for _ in range(3)] == [False] * 3
    assert looked == ["json", "there_is_no_such_module"]


def test_what_was_absent_is_looked_for_again(
    looked: list[str], monkeypatch: pytest.MonkeyPatch, clock: Callable[[float], None]
) -> None:
    assert not is_importable("installed_a_moment_later")
    monkeypatch.setattr(optional_modules, "find_spec", lambda _: object())
    assert not is_importable("installed_a_moment_later")
    clock(optional_modules.ABSENT_SECONDS)
    assert is_importable("installed_a_moment_later")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let so many seconds pass on the module's clock, which stands still otherwise."""
    now = [100.0]
    monkeypatch.setattr(optional_modules, "monotonic", lambda: now[0])

    def later(seconds: float) -> None:
        now[0] += seconds

    return later
