"""What each kind of change makes of a file: written, edited, deleted; and how the change is told.

Invariant: a change that cannot be made exactly as asked is refused, before anyone is asked for consent. A
secret that a model sees only as a mark is neither met by its edits nor overwritten by that mark.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from reyn_jupyter.backends.changes import Changed, Make
from reyn_jupyter.backends.edits import EditError, nearest, positions, replace
from reyn_jupyter.backends.lines import kind_of
from reyn_jupyter.backends.tree import Tree, human
from reyn_jupyter.catalog.action import Arguments
from reyn_jupyter.runtime.errors import ActionError
from reyn_jupyter.runtime.services import ToolContext

Maker = Callable[[Tree, Arguments, ToolContext], Make]


def make_written(tree: Tree, args: Arguments, context: ToolContext) -> Make:
    """{path, content}: the file is the content, text or a JSON value."""
    given = args["content"]
    if isinstance(given, dict | list):  # a stored JSON result, given by reference
        given = json.dumps(given, ensure_ascii=False, indent=2) + "\n"
    data = _encoded(given, "content")

    def make(before: bytes | None) -> bytes:
        redactor = context.services.redactor
        text = (before or b"").decode("utf-8", "replace")
        if context.actor != "person" and redactor.redacts(text) and redactor.marked(given):
            raise ActionError(
                "content holds a mark [redacted:…] where the file holds a secret: writing it would lose that",
                "Edit the other parts of the file instead.",
            )
        return data

    return make


def written(made: Changed, args: Arguments) -> dict[str, Any]:
    """{bytes, created, changed?}"""
    size = len(made.after or b"")
    if made.before == made.after:
        return {"bytes": size, "created": False, "changed": False}
    return {"bytes": size, "created": made.before is None}


def make_edited(tree: Tree, args: Arguments, context: ToolContext) -> Make:
    """{path, old_string, new_string, replace_all?}: one place of the text, or every one, is replaced."""
    old, new = args["old_string"], args["new_string"]
    _encoded(old, "old_string")
    _encoded(new, "new_string")

    def make(before: bytes | None) -> bytes:
        if before is None:
            raise tree.missing(args["path"])
        text = _decoded(before, args["path"])
        seen = text
        if context.actor != "person":
            _spare_secrets(text, old, context)
            seen = context.services.redactor.text(text)
        try:
            return replace(text, old, new, every=args.get("replace_all", False)).text.encode()
        except EditError as error:
            hint = error.hint if error.matches else nearest(seen, old)
            raise ActionError(f"{args['path']} was not changed: {error}", hint) from error

    return make


def _spare_secrets(text: str, old: str, context: ToolContext) -> None:
    """Refuse an edit that meets what the model cannot have read."""
    redactor = context.services.redactor
    secrets = redactor.spans(text)
    met = any(at < span.end and span.start < at + len(old) for at in positions(text, old) for span in secrets)
    if met or (redactor.marked(old) and old not in text):
        raise ActionError(
            "old_string meets a secret that is redacted; what stands there is not what the file holds",
            "Choose an old_string that stays clear of it, or ask the person to make this change.",
        )


def edited(made: Changed, args: Arguments) -> dict[str, Any]:
    """{replacements, lines}: on which lines of the old text, at most 20."""
    before = (made.before or b"").decode()
    lines = replace(before, args["old_string"], args["new_string"], every=True).lines
    return {"replacements": len(lines), "lines": list(lines[:20])}


def make_deleted(tree: Tree, args: Arguments, context: ToolContext) -> Make:
    """{path}: the file is gone."""

    def make(before: bytes | None) -> None:
        if before is None:
            raise tree.missing(args["path"])

    return make


def deleted(made: Changed, args: Arguments) -> dict[str, Any]:
    """{deleted, bytes}"""
    return {"deleted": True, "bytes": len(made.before or b"")}


def _encoded(text: object, argument: str) -> bytes:
    if not isinstance(text, str):
        raise ActionError(
            f"{argument} must be text, not {type(text).__name__}",
            "Give the text itself, or a stored text.",
        )
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ActionError(
            f"{argument} holds half of a surrogate pair at character {error.start}, which UTF-8 cannot keep",
            "Write the whole character.",
        ) from error


def _decoded(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ActionError(
            f"{path} is not text: {kind_of(data[:8192], error)}, {human(len(data))}",
            "Only UTF-8 text can be edited; a whole file can be replaced.",
        ) from error
