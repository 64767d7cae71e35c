"""A change of a file as a unified diff: bounded for a message, whole for a question of consent.

Invariant: the work is bounded whatever the two sides are; what is left out is counted and said.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter

from reyn_jupyter.catalog.action import PartialPreview
from reyn_jupyter.support.text import count

MOST_LINES = 60
MOST_CHARACTERS = 8000
LONGEST_LINE = 240
LARGEST = 4 << 20  # bytes of either side that are compared line by line
COMPARED = 2000  # lines between the common head and tail that are compared at most
MOST_KEPT = 1 << 19  # changed lines of either side in a whole diff; no question shows as many
MOST_WORK = (
    10_000_000  # looks at a line while comparing: about a second; hostile texts would take more than a minute
)
CONTEXT = 3
_HUNK = re.compile(r"@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")


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
    lines, left = _diff_lines(before, after, old, new, path, most_lines // 2)
    return _bounded(lines, most_lines, left)


def whole_diff(before: bytes | None, after: bytes | None, path: str) -> str | PartialPreview:
    """Return a unified diff with every line that changes, none of them cut; None is a file that is not there.

    Returns:
        The diff; where a side is no text, the other side's lines and what is missing; where more than `MOST_KEPT` lines
        change, the first ones of each side and what is missing.
    """
    if before == after:
        return f"{path} stays as it is"
    old, new = _decoded(before), _decoded(after)
    lines, left = _diff_lines(before, after, old or "", new or "", path, MOST_KEPT)
    diff = "\n".join(lines)
    if left:
        return PartialPreview(diff, f"{count(left, 'more line')} of this change of {path} are not shown.")
    if old is None:
        return PartialPreview(diff, f"What {path} holds is no text ({_size(before)}) and is not shown.")
    if new is None:
        return PartialPreview(diff, f"What {path} would hold is no text ({_size(after)}) and is not shown.")
    return diff


def _diff_lines(
    before: bytes | None, after: bytes | None, old: str, new: str, path: str, most_kept: int
) -> tuple[list[str], int]:
    """Return the lines of a diff, and how many are left out.

    Of each side of a change that is too long to compare at most `most_kept` lines are given.
    """
    start = "/dev/null" if before is None else f"a/{path}"
    end = "/dev/null" if after is None else f"b/{path}"
    head, tail = _common_lines(old, new)
    # No list of all lines is made of what will not be compared: one of many empty lines takes much more than its text.
    sides = [text[head : len(text) - tail] for text in (old, new)]
    if max(text.count("\n") for text in sides) <= COMPARED and _is_quick(*map(_lines, sides)):
        above, below = _with_context(old, head, tail)
        one, other = (_lines(text[above : len(text) - below]) for text in (old, new))
        compared = difflib.unified_diff(one, other, start, end, lineterm="", n=CONTEXT)
        hidden = old.count("\n", 0, above)
        return [_moved(line, hidden) for line in compared], 0
    counts = [_line_count(text) for text in sides]
    kept = [_lines(text, most_kept) for text in sides]
    title = f"@@ from line {old.count(chr(10), 0, head) + 1}: {counts[0]} lines become {counts[1]} @@"
    lines = [
        f"--- {start}",
        f"+++ {end}",
        title,
        *(f"-{line}" for line in kept[0]),
        *(f"+{line}" for line in kept[1]),
    ]
    return lines, sum(counts) - sum(map(len, kept))


def _common_lines(old: str, new: str) -> tuple[int, int]:
    """Return how many characters the lines have that two texts begin with alike, and those that they end with."""
    head = old.rfind("\n", 0, _common_start(old, new)) + 1
    tail = _common_end(old, new, min(len(old), len(new)) - head)
    if not all(len(text) - tail == head or text[len(text) - tail - 1] == "\n" for text in (old, new)):
        end = old.find("\n", len(old) - tail) if tail else -1
        tail = len(old) - end - 1 if end >= 0 else 0
    return head, tail


def _with_context(text: str, head: int, tail: int) -> tuple[int, int]:
    """Return a head and a tail of a text without the `CONTEXT` lines that are next to what lies between them."""
    for _ in range(CONTEXT):
        head = text.rfind("\n", 0, max(0, head - 1)) + 1
        end = text.find("\n", len(text) - tail) if tail else -1
        tail = len(text) - end - 1 if end >= 0 else 0
    return head, tail


def _common_start(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    same, most = 0, min(len(one), len(other))
    while same < most:
        half = (most - same + 1) // 2
        if one[same : same + half] == other[same : same + half]:
            same += half
        else:
            most = same + half - 1
    return same


def _common_end(one: str, other: str, most: int) -> int:
    """Return how many characters, at most `most`, two texts end with alike."""
    same = 0
    while same < most:
        half = (most - same + 1) // 2
        if (
            one[len(one) - same - half : len(one) - same]
            == other[len(other) - same - half : len(other) - same]
        ):
            same += half
        else:
            most = same + half - 1
    return same


def _moved(line: str, above: int) -> str:
    """Return a line of a diff; the head of a hunk with the numbers that its lines have below those left out above."""
    head = _HUNK.fullmatch(line) if above else None
    if head is None:
        return line
    return f"@@ -{int(head[1]) + above}{head[2]} +{int(head[3]) + above}{head[4]} @@"


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


def _bounded(lines: list[str], most_lines: int, left_out: int) -> str:
    kept: list[str] = []
    room = MOST_CHARACTERS
    for line in lines[: most_lines + 2]:
        short = line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}… ({len(line)} characters)"
        room -= len(short)
        if room < 0:
            break
        kept.append(short)
    left = len(lines) - len(kept) + left_out
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


def _lines(text: str, most: int = -1) -> list[str]:
    """Return the lines of a text, the first `most` where that is not negative."""
    # Only \n ends a line; a lone \r or another break stays in the line, where it is shown as an escape.
    lines = text.split("\n", most)
    last = lines.pop()
    if 0 <= most == len(lines):  # what is left of a text that was not split to its end
        return lines
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


def _line_count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and text != "")


def _size(content: bytes | None) -> str:
    return "not there" if content is None else f"{len(content):,} bytes"
