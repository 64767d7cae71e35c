"""The file changes of a call, as diffs.

A file change in the log names a path and the blob of the previous content; the new content stands in the call's own
arguments. Where one of the two cannot be had, the diff says so instead of guessing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from reyn_jupyter.guard.diff import unified
from reyn_jupyter.notebook.render.blocks import Diff, DiffLine
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.outputs.blobs.ids import InvalidBlobIdError
from reyn_jupyter.outputs.blobs.random_access import is_local
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.record.trace import Trace

FILES = 5
LINES = 60
COMPARED = 1 << 18  # bytes of either side; a live card is drawn often
_LINE = 260

Previous = Callable[[str], bytes | None]


def diffs(
    changes: tuple[dict[str, Any], ...], arguments: object, previous: Previous, look: Look
) -> tuple[Diff, ...]:
    """Return one diff a changed file, at most five.

    Args:
        changes: {path, previous_blob, sha256} each, of one call.
        arguments: the inner arguments of the call.
        previous: the bytes of a blob, None when they cannot be had.
    """
    given = arguments if isinstance(arguments, Mapping) else {}
    return tuple(_diff(change, given, previous, look) for change in changes[:FILES])


def previous_bytes(trace: Trace) -> Previous:
    """Return what reads the content that a file had before a run changed it, from the run's own store."""
    store = trace.blobs

    def read(blob_id: str) -> bytes | None:
        if store is None or not is_local(store):
            return None
        try:
            source = store.open(blob_id)
        except (BlobStoreError, InvalidBlobIdError):
            return None
        try:
            return source.read(0, COMPARED + 1)
        except OSError:
            return None
        finally:
            source.close()

    return read


def _diff(change: Mapping[str, Any], given: Mapping[str, Any], previous: Previous, look: Look) -> Diff:
    path = look.line(change.get("path") or "?", 200)
    blob = change.get("previous_blob")
    before = b"" if blob is None else previous(str(blob))
    deleted = change.get("sha256") is None
    after = b"" if deleted else _after(before, given)
    how = "deleted" if deleted else "created" if blob is None else "changed"
    if before is None and after is None and isinstance(given.get("old_string"), str):
        # The file as it was is not at hand: the piece that was replaced still tells what happened.
        before, after = (f"{given['old_string']}\n".encode(), f"{given.get('new_string', '')}\n".encode())
    if before is None or after is None:
        return Diff(path, how, (), "Its content is not at hand here; %reyn undo restores it.")
    if max(len(before), len(after)) > COMPARED:
        return Diff(path, how, (), f"Too long to compare here ({len(before):,} → {len(after):,} bytes).")
    return diff_block(path, how, _unified(before, after).split("\n"), look)


def _after(before: bytes | None, given: Mapping[str, Any]) -> bytes | None:
    """The new content: as it was given, or the old one with the replacement made."""
    content, old, new = given.get("content"), given.get("old_string"), given.get("new_string")
    if isinstance(content, str):
        return content.encode("utf-8", "replace")
    if before is None or not isinstance(old, str) or not isinstance(new, str) or old.encode() not in before:
        return None
    return before.replace(old.encode(), new.encode(), -1 if given.get("replace_all") else 1)


@lru_cache(maxsize=16)
def _unified(before: bytes, after: bytes) -> str:
    return unified(before, after, "file", most_lines=LINES)


def diff_block(path: str, how: str, lines: list[str], look: Look) -> Diff:
    """Return the lines of a unified diff of one file, its head included, as a block.

    Args:
        how: what became of the file, in a word.
    """
    if not lines[0].startswith("--- "):
        return Diff(path, how, (), "Nothing to compare line by line: it is binary, or the same as before.")
    body = lines[2:]
    more = body.pop() if body and body[-1].startswith("…") else ""
    added, removed = (sum(line.startswith(sign) for line in body) for sign in "+-")
    about = "at least " if more else ""
    body = [line for line in body if line[:1] != "\\"]
    texts = look.lines([line if line[:1] == "@" else line[1:] for line in body], _LINE)
    # Redaction may join lines (a private key); then the signs no longer belong to them.
    signs = [line[:1] for line in body] if len(texts) == len(body) else [" "] * len(texts)
    shown = tuple(DiffLine(sign, text) for sign, text in zip(signs, texts, strict=True))
    return Diff(path, f"{how}, {about}+{added} −{removed}", shown, more)
