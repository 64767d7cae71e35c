"""The errors of `%reyn`: one clear line that ends with what to do next. No hook, no patched traceback.

A verb's own line is all that the person wrote, so that no frame of theirs is shown, see `support.user_errors`.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from reyn_jupyter.notebook.advice import sentence, way_on
from reyn_jupyter.notebook.render.untrusted import Look
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.secrets import environment_redaction
from reyn_jupyter.support.user_errors import UserError, sanitize

_LINE = 600
_LINES = 40  # a message may bring a short diff along
_TOGETHER = 300  # characters that message and hint may have on one line


class ReynError(UserError):
    """What a verb could not do.

    Args:
        message: what happened and why.
        hint: what to do next.
        debug: show the whole traceback after all (`--debug`, `%reyn debug`).

    Example:
        >>> str(ReynError("Unknown action 'file__raed'.", "Did you mean file__read?"))
        "Unknown action 'file__raed'. Did you mean file__read?"
    """

    def __init__(self, message: str, hint: str = "", *, debug: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.debug = debug

    @classmethod
    def of(cls, payload: Mapping[str, Any] | str, *, debug: bool = False) -> ReynError:
        """The exception for an error payload, in a person's terms."""
        if isinstance(payload, str):
            return cls(payload, debug=debug)
        return cls(sentence(payload), way_on(payload), debug=debug)

    def __str__(self) -> str:
        return sanitize(f"{self.message} {self.hint}".strip())

    def _render_traceback_(self) -> list[str]:
        if self.debug:
            return [sanitize("".join(traceback.format_exception(self)))]
        return _shown(self.message, self.hint)


class ReynInterrupt(KeyboardInterrupt):
    """The person interrupted a verb: a loop around it stops, and the cell says so without a traceback."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message = message
        self.hint = hint

    def _render_traceback_(self) -> list[str]:
        return _shown(self.message, self.hint)


def _shown(message: str, hint: str) -> list[str]:
    """One line where it fits on one, else the hint on its own."""
    together = sanitize(f"{message} {hint}".strip())
    if len(together) <= _TOGETHER and "\n" not in together:
        return [together]
    lines = [line for part in (message, hint) if part for line in part.split("\n")]
    return [visible(line) for line in Look(redact=environment_redaction()).lines(lines[:_LINES], _LINE)]
