"""The category that code runs for: in a call, in its start and close, in its listings and in its tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_category: ContextVar[str | None] = ContextVar("category", default=None)


def current_category() -> str | None:
    """Return the name of the category that the running code is of; None for code of none."""
    return _category.get()


def enter_category(name: str) -> None:
    """Let what runs in this context from now on run for a category."""
    _category.set(name)


@contextmanager
def category_scope(name: str | None) -> Iterator[None]:
    """Let code run for a category."""
    token = _category.set(name)
    try:
        yield
    finally:
        _category.reset(token)
