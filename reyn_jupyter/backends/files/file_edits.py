"""Changes of a file: written whole, edited by exact replacement, deleted; and how each is reported.

Invariant: a change that cannot be made exactly as asked is refused before anyone is asked for consent. The old string
is found as it stands, character for character, or nothing is changed; a refusal says how many places match and on
which lines. A secret that a model sees only as a mark is neither met by its edits nor overwritten by that mark.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.backends.files.file_changes import LARGEST, AppliedChange, Make
from reyn_jupyter.backends.files.file_lines import kind_of
from reyn_jupyter.backends.files.file_tree import FileTree, human
from reyn_jupyter.catalog.action import Arguments
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import ToolContext
from reyn_jupyter.support.secrets import Redactor, SecretSpan
from reyn_jupyter.support.text import nearest

MOST_MATCHES = 1_000_000  # that one edit replaces
_MOST_LINES = 10  # line numbers that a refusal names
_HINT_LINES = 2000  # lines compared to find the nearest one
_HINT_CHARACTERS = 200  # of a line, in a comparison and in a hint


class EditError(ValueError):
    """The text was not changed: `matches` places match. `hint` says what to do next."""

    def __init__(self, message: str, hint: str, matches: int) -> None:
        super().__init__(message)
        self.hint = hint
        self.matches = matches


@dataclass(frozen=True)
class EditResult:
    """The new text, and on which lines (from 1) of the old text the replacements begin."""

    text: str
    lines: tuple[int, ...]


def replace(
    text: str, old: str, new: str, *, every: bool = False, secrets: Sequence[SecretSpan] = ()
) -> EditResult:
    """Put `new` in place of `old`, which must occur once (or, with `every`, at least once).

    Args:
        text: what is edited.
        old, new: what stands there, and what will.
        every: replace all matches.
        secrets: parts of the text that do not count as text: what meets one is no match.

    >>> replace("a = 1\\nb = 2\\n", "b = 2", "b = 3")
    Edited(text='a = 1\\nb = 3\\n', lines=(2,))

    Raises:
        EditError: no match, several matches, or nothing to change.
    """
    if old == new:
        raise EditError("old_string and new_string are the same", "There is nothing to change.", 1)
    _check_size(text, old, new)
    places = [at for at in positions(text, old) if not _meets(secrets, at, at + len(old))]
    lines = _line_numbers(text, places)
    if not lines:
        raise EditError("old_string does not occur (0 matches)", nearest_passage(text, old), 0)
    if len(lines) > 1 and not every:
        named = ", ".join(map(str, lines[:_MOST_LINES])) + (", …" if len(lines) > _MOST_LINES else "")
        raise EditError(
            f"old_string occurs {len(lines)} times, on lines {named}",
            "Add lines around it until it is the only match, or set replace_all to true.",
            len(lines),
        )
    pieces: list[str] = []
    position = 0
    for place in places:
        pieces += (text[position:place], new)
        position = place + len(old)
    return EditResult("".join([*pieces, text[position:]]), tuple(lines))


def _check_size(text: str, old: str, new: str) -> None:
    """Raise EditError, before any of it is made, for an edit whose work or whose result would fill the memory."""
    matches = text.count(old) if old else 0
    if matches > MOST_MATCHES:
        raise EditError(
            f"old_string occurs {matches:,} times, and at most {MOST_MATCHES:,} places are replaced at once",
            "Choose a longer old_string, or write the file anew.",
            matches,
        )
    size = len(text.encode("utf-8", "surrogatepass")) + matches * (len(new.encode()) - len(old.encode()))
    if size > LARGEST:
        raise EditError(
            f"it would have {human(size)} with all {matches:,} matches replaced, and at most {human(LARGEST)} are kept",
            "Put less in place of each match.",
            matches,
        )


def _meets(secrets: Sequence[SecretSpan], start: int, end: int) -> bool:
    # They follow each other, so that the last one to begin before the end is the one to end last.
    at = bisect_left(secrets, end, key=lambda span: span.start) - 1
    return at >= 0 and start < secrets[at].end


def positions(text: str, old: str) -> list[int]:
    """Return where `old` begins, without overlaps."""
    found: list[int] = []
    at = text.find(old) if old else -1
    while at >= 0:
        found.append(at)
        at = text.find(old, at + len(old))
    return found


def _line_numbers(text: str, places: list[int]) -> list[int]:
    numbers: list[int] = []
    line, last = 1, 0
    for place in places:
        line += text.count("\n", last, place)
        last = place
        numbers.append(line)
    return numbers


def nearest_passage(text: str, old: str) -> str:
    """Return where in `text` something like `old` is, as a hint for one who quoted it wrongly."""
    if "\r\n" in text and "\r" not in old and old.replace("\n", "\r\n") in text:
        return "The lines of this file end with \\r\\n: write the line ends in old_string and new_string so."
    if " ".join(old.split()) in " ".join(text.split()):
        return "Its words occur with other spaces or line ends: copy the text exactly as it was read."
    wanted = next((line.strip() for line in old.split("\n") if line.strip()), "")[:_HINT_CHARACTERS]
    lines = text.split("\n", _HINT_LINES)[:_HINT_LINES]
    shortened = [line.strip()[:_HINT_CHARACTERS] for line in lines]
    close = nearest(wanted, filter(None, shortened), cutoff=0.6)
    if close:
        return f"The nearest line is {shortened.index(close) + 1}: {close!r}. Copy the text exactly."
    return "Read the file first and copy the text exactly, without line numbers."


# The rule of a change, from the call and the place of the file as it was judged.
Maker = Callable[[FileTree, Arguments, ToolContext, str], Make]


def make_written(tree: FileTree, args: Arguments, context: ToolContext, place: str) -> Make:
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


def write_result(made: AppliedChange, args: Arguments, context: ToolContext) -> dict[str, Any]:
    """{bytes, created, changed?}"""
    size = len(made.after or b"")
    if made.before == made.after:
        return {"bytes": size, "created": False, "changed": False}
    return {"bytes": size, "created": made.before is None}


def make_edited(tree: FileTree, args: Arguments, context: ToolContext, place: str) -> Make:
    """{path, old_string, new_string, replace_all?}: one place of the text, or every one, is replaced."""
    old, new = args["old_string"], args["new_string"]
    _encoded(old, "old_string")
    _encoded(new, "new_string")

    def make(before: bytes | None) -> bytes:
        if before is None:
            raise tree.missing(args["path"])
        text = _decoded(before, args["path"])
        seen: str = text
        secrets: Sequence[SecretSpan] = ()
        if context.actor != "person":
            redactor = context.services.redactor
            seen, secrets = redactor.text(text), redactor.spans(text)
            _refuse_marks(text, old, redactor)
        try:
            every = args.get("replace_all", False)
            return replace(text, old, new, every=every, secrets=secrets).text.encode()
        except EditError as error:
            if not context.may_read(place):
                raise _unread(args["path"]) from None
            hint = error.hint if error.matches else nearest_passage(seen, old)
            raise ActionError(f"{args['path']} was not changed: {error}", hint) from error

    return make


def _unread(path: str) -> ActionError:
    """Return the refusal of an edit to whom may not read the file: it tells nothing of what is there."""
    return ActionError(
        f"{path} was not changed: old_string does not stand there exactly once",
        "The file may not be read in this call; ask the person for the text or to make the change.",
    )


def _refuse_marks(text: str, old: str, redactor: Redactor) -> None:
    """Refuse an edit that quotes a mark. What it stands for is no match either, so that no guess is confirmed."""
    if redactor.marked(old) and old not in text:
        raise ActionError(
            "old_string meets a secret that is redacted; what stands there is not what the file holds",
            "Choose an old_string that stays clear of it, or ask the person to make this change.",
        )


def edit_result(made: AppliedChange, args: Arguments, context: ToolContext) -> dict[str, Any]:
    """{replacements, lines}: on which lines of the old text, at most 20."""
    before = (made.before or b"").decode()
    secrets = () if context.actor == "person" else context.services.redactor.spans(before)
    lines = replace(before, args["old_string"], args["new_string"], every=True, secrets=secrets).lines
    return {"replacements": len(lines), "lines": list(lines[:20])}


def make_deleted(tree: FileTree, args: Arguments, context: ToolContext, place: str) -> Make:
    """{path}: the file is gone."""

    def make(before: bytes | None) -> None:
        if before is None:
            raise tree.missing(args["path"])

    return make


def delete_result(made: AppliedChange, args: Arguments, context: ToolContext) -> dict[str, Any]:
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
