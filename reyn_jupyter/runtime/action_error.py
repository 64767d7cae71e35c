"""Errors that people and models read: what happened, why, and what to do next."""

from __future__ import annotations


class ActionError(Exception):
    """A handler's own refusal, in plain words. `hint` says what to do next.

    >>> raise ActionError("orders.csv has no column 'regoin'", hint="Columns: region, value.")
    Traceback (most recent call last):
    reyn_jupyter.runtime.action_error.ActionError: orders.csv has no column 'regoin'
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def text_of(error: BaseException) -> str:
    """Return the message of an error; its `__str__` may fail."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - another's code, which may raise anything
        return "the error has no readable text"
