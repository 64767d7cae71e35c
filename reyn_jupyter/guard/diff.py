"""A change of a file as a unified diff: bounded for a message, whole for a question of consent.

Invariant: the work is bounded whatever the two sides are; what is left out is counted and said.
"""

from __future__ import annotations

import difflib
from collections import Counter

from reyn_jupyter.catalog.action import PartialPreview

MOST_LINES = 60
MOST_CHARACTERS = 8000
LONGEST_LINE = 240
LARGEST = 4 << 20  # bytes of either side that are compared line by line
COMPARED = 2000  # lines between the common head and tail that are compared at most
MOST_WORK = (
    10_000_000  # looks at a line while comparing: about a second; hostile texts would take more than a minute
)
CONTEXT = 3


def unified(before: bytes | None, after: bytes | None, path: str, *, most_lines: int = MOST_LINES) -> str:
    """Return a unified diff of a file before and after; None is a file that is not there.

    Args:
        before, after: the contents.
        path: the name in the head of the diff.
        most_lines: how many lines of the diff are given.

    Returns:
        Text without a last line break; for binary or very large contents one line that says what changes.

    >>> print(unified(b"a\\nb\\n", b"a\\nc\\n", "x.txt"))
    --- a/x.txt
    +++ b/x.txt
    @@ -1,2 +1,2 @@
     a
    -b
    +c
    """
    if before == after:
        return f"{path} stays as it is"
    old, new = _text(before), _text(after)
    if old is None or new is None:
        return f"Binary file {path}: {_size(before)} → {_size(after)}"
    return _bounded(_diff_lines(before, after, old, new, path, most_lines // 2), most_lines)


def whole_diff(before: bytes | None, after: bytes | None, path: str) -> str | PartialPreview:
    """Return a unified diff with every line that changes, none of them cut; None is a file that is not there.

    Returns:
        The diff; where a side is no text, the other side's lines and what is missing.
    """
    if before == after:
        return f"{path} stays as it is"
    old, new = _decoded(before), _decoded(after)
    diff = "\n".join(_diff_lines(before, after, old or "", new or "", path, None))
    if old is None:
        return PartialPreview(diff, f"What {path} holds is no text ({_size(before)}) and is not shown.")
    if new is None:
        return PartialPreview(diff, f"What {path} would hold is no text ({_size(after)}) and is not shown.")
    return diff


def _diff_lines(
    before: bytes | None, after: bytes | None, old: str, new: str, path: str, most_kept: int | None
) -> list[str]:
    """Return the lines of a diff; of each side of a change too long to compare at most `most_kept`."""
    start = "/dev/null" if before is None else f"a/{path}"
    end = "/dev/null" if after is None else f"b/{path}"
    old_lines, new_lines = _lines(old), _lines(new)
    head = _common(old_lines, new_lines)
    tail = _common(old_lines[head:][::-1], new_lines[head:][::-1])
    changed_old, changed_new = len(old_lines) - head - tail, len(new_lines) - head - tail
    if not _is_quick(old_lines[head : head + changed_old], new_lines[head : head + changed_new]):
        shown = f"@@ from line {head + 1}: {changed_old} lines become {changed_new} @@"
        lines = [f"--- {start}", f"+++ {end}", shown]
        lines += [f"-{line}" for line in old_lines[head : head + changed_old][:most_kept]]
        lines += [f"+{line}" for line in new_lines[head : head + changed_new][:most_kept]]
    else:
        skip = max(0, head - CONTEXT)
        keep = max(0, tail - CONTEXT)
        lines = list(
            difflib.unified_diff(
                [""] * skip + old_lines[skip : len(old_lines) - keep],
                [""] * skip + new_lines[skip : len(new_lines) - keep],
                start,
                end,
                lineterm="",
                n=CONTEXT,
            )
        )
    return lines


def _is_quick(old: list[str], new: list[str]) -> bool:
    """Return whether difflib compares these lines within `MOST_WORK`.

    It looks for the longest match in what is left, up to once for each line, and at each of its lines through all
    places that this line has on the other side. Lines that are more than a hundredth of 200 or more it leaves out.
    """
    if max(len(old), len(new)) > COMPARED:
        return False
    places = Counter(new)
    most = len(new) // 100 + 1 if len(new) >= 200 else len(new)
    looks = len(old) + sum(places[line] for line in old if places[line] <= most)
    return looks * min(len(old), len(new)) <= MOST_WORK


def _bounded(lines: list[str], most_lines: int) -> str:
    kept: list[str] = []
    room = MOST_CHARACTERS
    for line in lines[: most_lines + 2]:
        short = line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}… ({len(line)} characters)"
        room -= len(short)
        if room < 0:
            break
        kept.append(short)
    left = len(lines) - len(kept)
    if left:
        kept.append(f"… {left} more lines of this diff are not shown")
    return "\n".join(kept)


def _text(content: bytes | None) -> str | None:
    if content is None:
        return ""
    if len(content) > LARGEST or b"\0" in content[:8192]:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _decoded(content: bytes | None) -> str | None:
    """Return the text of a content of any size, control characters included; None where it is no UTF-8."""
    try:
        return "" if content is None else content.decode()
    except UnicodeDecodeError:
        return None


def _lines(text: str) -> list[str]:
    # Only \n ends a line; a lone \r or another break stays in the line, where it is shown as an escape.
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]


def _common(first: list[str], second: list[str]) -> int:
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def _size(content: bytes | None) -> str:
    return "not there" if content is None else f"{len(content):,} bytes"
