"""Text that is marked has nothing left that acts on a terminal, a page or a reader."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.support.sanitize import printable, visible


@given(st.text())
def test_printable_text_has_nothing_that_acts(text: str) -> None:
    shown = printable(text, one_line=False)
    assert all(character.isprintable() or character in "\n\t" for character in shown)
    assert printable(printable(text)) == printable(text) and printable(text).isprintable()


@given(st.text())
def test_text_that_was_marked_stays_as_it_is(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    visible(text).encode()


def test_ordinary_text_is_left_alone() -> None:
    text = "plain, äöü 漢字 🙂 “quoted”"
    assert visible(text) is text and printable(text) is text


def test_joined_letters_stay_on_a_page_and_are_marked_where_a_person_decides() -> None:
    assert visible("a\u200db") == "a\u200db" and printable("a\u200db") == "a⟨U+200D⟩b"
