"""The errors of `%reyn`: one clear line that ends with what to do next. No hook, no patched traceback.

A verb's own line is all that the person wrote, so that no frame of theirs is shown, see `support.user_errors`.
The error payload of a call speaks to a model (it names wrappers); here it becomes a sentence whose way on is a verb.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.sessions.error_sentence import error_sentence, payload_list
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.secrets import environment_redaction
from reyn_jupyter.support.text import did_you_mean, end_sentence
from reyn_jupyter.support.user_errors import UserError, sanitize

_LINE = 600
_LINES = 40  # a message may bring a short diff along
_TOGETHER = 300  # characters that message and hint may have on one line
_SUGGESTED = 3  # names that are suggested
_CATEGORIES = 20  # categories that are listed


class ReynError(UserError):
    """A verb that could not be done.

    Args:
        message: what happened and why.
        hint: what to do next.
        debug: show the whole traceback after all (`--debug`, `%reyn debug`).
        lines: ready lines that do what was meant; a notebook shows them with buttons.

    Example:
        >>> str(ReynError("Unknown action 'file__raed'.", "Did you mean file__read?"))
        "Unknown action 'file__raed'. Did you mean file__read?"
    """

    def __init__(
        self, message: str, hint: str = "", *, debug: bool = False, lines: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.debug = debug
        self.lines = lines

    @classmethod
    def of(
        cls, payload: Mapping[str, Any] | str, *, debug: bool = False, lines: tuple[str, ...] = ()
    ) -> ReynError:
        """Return the exception for an error payload, in a person's terms."""
        if isinstance(payload, str):
            return cls(payload, debug=debug, lines=lines)
        return cls(error_sentence(payload), way_on(payload), debug=debug, lines=lines)

    def __str__(self) -> str:
        return sanitize(f"{self.message} {self.hint}".strip())

    def _render_traceback_(self) -> list[str]:
        if self.debug:
            return [sanitize("".join(traceback.format_exception(self)))]
        return _render_lines(self.message, self.hint)


class ReynInterrupt(KeyboardInterrupt):
    """The person interrupted a verb: a loop around it stops, and the cell says so without a traceback."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message = message
        self.hint = hint

    def _render_traceback_(self) -> list[str]:
        return _render_lines(self.message, self.hint)


def _render_lines(message: str, hint: str) -> list[str]:
    """Return message and hint on one line where they fit, else on lines of their own."""
    message = end_sentence(message) if hint else message
    together = sanitize(f"{message} {hint}".strip())
    if len(together) <= _TOGETHER and "\n" not in together:
        return [together]
    lines = [line for part in (message, hint) if part for line in part.split("\n")]
    return [visible(line) for line in Look(redact=environment_redaction()).lines(lines[:_LINES], _LINE)]


def way_on(payload: Mapping[str, Any]) -> str:
    """Return what to try instead, in a person's terms; "" when there is nothing to say."""
    suggestions = [str(name) for name in payload_list(payload, "suggestions")[:_SUGGESTED]]
    redirects = payload.get("redirects")
    if isinstance(redirects, Mapping) and redirects:
        return "Renamed: " + ", ".join(f"{old} → {new}" for old, new in redirects.items()) + "."
    if suggestions:
        return did_you_mean(suggestions)
    if "valid_categories" in payload:
        return f"Categories: {', '.join(map(str, payload_list(payload, 'valid_categories')[:_CATEGORIES]))}."
    if "suggestions" in payload:
        return "%reyn list shows what there is."
    if "invalid" in payload:
        return "%reyn describe shows its arguments." if "input_schema" in payload else ""
    if str(payload.get("error", "")).startswith("Denied"):
        return "%reyn approvals shows the rules."
    return str(payload.get("hint") or "")
