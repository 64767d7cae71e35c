"""Text that is marked has nothing left that acts on a terminal, a page or a reader."""

from __future__ import annotations

import sys
import unicodedata

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from reyn_jupyter.support.sanitize import printable, printable_path, visible


@given(st.text())
def test_printable_text_has_nothing_that_acts(text: str) -> None:
    assert printable(printable(text)) == printable(text) and printable(text).isprintable()


@given(st.text())
def test_text_that_was_marked_stays_as_it_is(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    visible(text).encode()


def test_ordinary_text_is_left_alone() -> None:
    text = "plain, äöü 漢字 🙂 “quoted”"
    assert visible(text) is text and printable(text) is text


PROPER = [
    "👨\u200d👩\u200d👧",
    "❤\ufe0f\u200d🔥",
    "1\ufe0f\u20e3",
    "می\u200cخواهم",
    "葛\U000e0100",
    "👩🏽\u200d🔬",
    "☺\ufe0e",
    "क्\u200dष",
    "a\u00a0b",
]


@pytest.mark.parametrize("text", PROPER)
def test_what_a_script_or_an_emoji_needs_stays_on_a_page_and_is_marked_where_a_person_decides(
    text: str,
) -> None:
    assert visible(text) == text
    assert printable(text) != text and printable(text).isprintable()


@pytest.mark.parametrize(
    "text", ["a\u200db", "x\ufe0f", "😀\ufe0f\ufe01", "می\u200c\u200cخ", "a\U000e0100", "\u200d👩"]
)
def test_a_joiner_or_a_selector_without_work_is_marked(text: str) -> None:
    assert "⟨U+" in visible(text)


def test_every_character_that_unicode_calls_invisible_is_marked() -> None:
    invisible = regex.compile(r"[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]")
    drawn = regex.compile(r"\p{Prepended_Concatenation_Mark}|[\n\t]")
    passed = [
        f"U+{code:04X}"
        for code in range(sys.maxunicode + 1)
        if visible(chr(code)) == chr(code) and invisible.match(chr(code)) and not drawn.match(chr(code))
    ]
    assert passed == []


def test_every_space_but_one_is_marked_where_a_person_decides() -> None:
    spaces = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Zs"]
    assert [each for each in spaces if printable(each) == each] == [" "]
    assert not any(printable(each) == " " for each in spaces if each != " ")


def drawn(text: str) -> str:
    """Return a text as a page draws it from the left: UAX 9 for what paths have, without embeddings."""
    kinds = []
    for character in text:
        kind = unicodedata.bidirectional(character)
        kinds.append({"AL": "R", "AN": "EN", "L": "L", "R": "R", "EN": "EN"}.get(kind, "N"))
    strong, levels = "L", []
    for kind in kinds:
        strong = kind if kind in "LR" else strong
        levels.append(kind if kind != "EN" or strong == "R" else "L")
    for at, kind in enumerate(
        levels
    ):  # neutrals go with their neighbours where these agree; a number counts as R
        if kind == "N":
            before = next((each for each in reversed(levels[:at]) if each != "N"), "L")
            after = next((each for each in levels[at + 1 :] if each != "N"), "L")
            levels[at] = "n" if {before, after} <= {"R", "EN", "n"} else "l"
    result, run = [], []
    for character, kind in [*zip(text, levels, strict=True), ("", "L")]:
        if kind in ("R", "EN", "n"):
            if kind == "EN" and run and run[-1][1] == "EN":
                run[-1] = (run[-1][0] + character, kind)
            else:
                run.append((character, kind))
            continue
        result += [each for each, _ in reversed(run)] + [character]
        run = []
    return "".join(result)


@given(st.text("\u05d0\u05d1\u0628a12/._ -", max_size=7), st.text("\u05d0\u05d1\u0628a12/._ -", max_size=7))
@example("\u05d0/1", "1/\u05d0")
@example("\u05d0 1", "1 \u05d0")
def test_two_paths_are_never_drawn_alike_whichever_way_their_letters_run(one: str, other: str) -> None:
    same = drawn(printable_path(one)) == drawn(printable_path(other))
    assert not same or one == other


def test_a_path_whose_letters_all_run_one_way_is_shown_as_it_is() -> None:
    for path in ("data/a 1.csv", "\u05d3\u05d5\u05d7.csv", "x/\u05d0\u05d1 \u05d2.txt", "1/\u05d0.csv"):
        assert printable_path(path) == path
    assert printable_path("\u05d0\u202e/1") == printable_path(printable_path("\u05d0\u202e/1"))
