"""The diffs of file changes: they say exactly what changes, at the cost of what changes."""

from __future__ import annotations

import re
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.catalog.action import PartialPreview
from reyn_jupyter.guard.diff import CONTEXT, MOST_KEPT, unified, whole_diff

TEXTS = st.lists(st.sampled_from(["a", "b", "", "ab"]), max_size=30).map("\n".join)
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def lines_of(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def applied(diff: str, old: str) -> str:
    """Make the change that a unified diff describes, and check its line numbers and its context."""
    rest = re.sub(r"\n\\ No newline at end of file", "\0", diff).split("\n")[2:]
    before, made, at = lines_of(old), [], 0
    for line in rest:
        ends = line.endswith("\0")
        sign, text = line[:1], line[1:].removesuffix("\0") + ("" if ends else "\n")
        if head := HUNK.fullmatch(line):
            start = int(head[1]) - (head[2] != "0")
            made += before[at:start]
            at = start
            assert int(head[3]) == len(made) + (head[4] != "0")
        elif sign == "+":
            made.append(text)
        else:
            assert before[at] == text
            at += 1
            if sign == " ":
                made.append(text)
    return "".join(made + before[at:])


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_a_diff_makes_the_new_text_of_the_old_one(head: str, one: str, other: str, tail: str) -> None:
    old, new = head + one + tail, head + other + tail
    diff = whole_diff(old.encode(), new.encode(), "x.txt")
    assert isinstance(diff, str)
    if old == new:
        assert diff == "x.txt stays as it is"
    else:
        assert applied(diff, old) == new


def test_lines_around_a_change_are_shown_with_their_numbers() -> None:
    old = "".join(f"{number}\n" for number in range(1, 101))
    diff = unified(old.encode(), old.replace("50\n", "fifty\n").encode(), "x.txt")
    shown = [" 47", " 48", " 49", "-50", "+fifty", " 51", " 52", " 53"]
    assert diff.split("\n") == ["--- a/x.txt", "+++ b/x.txt", "@@ -47,7 +47,7 @@", *shown]
    assert len(shown) == 2 * CONTEXT + 2


def test_a_small_change_of_a_file_of_empty_lines_takes_no_more_memory_than_the_file() -> None:
    old = b"\n" * 4_000_000
    tracemalloc.start()
    try:
        diff = whole_diff(old + b"end", old + b"END", "x.txt")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "-end" in str(diff) and "+END" in str(diff)
    assert peak < 10 * len(old)


def test_a_change_of_more_lines_than_can_be_read_says_how_many_are_left_out() -> None:
    diff = whole_diff(b"\n" * (2 * MOST_KEPT), b"new\n", "x.txt")
    assert isinstance(diff, PartialPreview)
    assert diff.missing == f"{MOST_KEPT:,} more lines of this change of x.txt are not shown."
    assert diff.text.endswith("\n+new")
    assert f"@@ from line 1: {2 * MOST_KEPT} lines become 1 @@" in diff.text
