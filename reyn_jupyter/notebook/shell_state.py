"""The state of a loaded extension for one shell. It stands on the shell itself, so that a reload finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_ATTRIBUTE = "_reyn_jupyter"


@dataclass
class ShellState:
    """The state of one shell.

    Attributes:
        debug: whether errors are shown with their whole traceback.
        last_traceback: of the last verb that failed; "" before one has.
        matcher: the completion that the shell was given.
    """

    debug: bool = False
    last_traceback: str = ""
    matcher: Any = None


def create_state(shell: Any) -> ShellState:
    """Give a shell a new state and return it."""
    state = ShellState()
    setattr(shell, _ATTRIBUTE, state)
    return state


def find_state(shell: Any) -> ShellState | None:
    """Return a shell's state, None where the extension is not loaded."""
    state: ShellState | None = getattr(shell, _ATTRIBUTE, None)
    return state


def shell_state(shell: Any) -> ShellState:
    """Return the state of a shell that has the extension.

    Raises:
        AttributeError: the extension is not loaded there.
    """
    state: ShellState = getattr(shell, _ATTRIBUTE)
    return state


def delete_state(shell: Any) -> None:
    """Forget a shell's state."""
    delattr(shell, _ATTRIBUTE)
