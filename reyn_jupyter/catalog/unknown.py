"""The answer to an action name that leads nowhere: never a bare exception for the model, always a way on.

Source of the shape `{error, reason, suggestions, hint}`: Universal Action Catalog (FP-0034), error response.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.catalog.text import clip, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

NameProblem = Literal["malformed", "unknown", "hidden", "stale", "not_installed"]
NO_SEPARATOR = "An action name is a category, two underscores and an entry; this text is not of that form."


class UnknownActionError(LookupError):
    """A name that leads to no action now.

    Attributes:
        problem: malformed, unknown, hidden, stale or not_installed.
        payload: what the caller reads: error, reason, suggestions, hint.
    """

    def __init__(self, problem: NameProblem, payload: dict[str, Any]) -> None:
        super().__init__(payload["error"])
        self.problem: NameProblem = problem
        self.payload = payload


def unknown_action(
    name: object,
    problem: NameProblem,
    reason: str,
    suggestions: Sequence[str] = (),
    category: str | None = None,
) -> UnknownActionError:
    """Build the error. `category` is the one to look into, where it is known."""
    where = f"category={json.dumps([category], ensure_ascii=False)}" if category else "category=[...]"
    listing = f"list_actions({where})"
    if suggestions:
        hint = f"Use one of the suggestions exactly as written, or {listing} to discover the correct name."
    else:
        hint = f"Use {listing} to discover the correct name."
    shown = [clip(suggestion, 600) for suggestion in suggestions]
    return UnknownActionError(
        problem,
        {"error": f"Unknown action {quoted(name)}", "reason": reason, "suggestions": shown, "hint": hint},
    )
