"""Text that is marked has nothing left that acts on a terminal, a page or a reader."""

from __future__ import annotations

import sys
import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.support.sanitize import printable, visible


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
