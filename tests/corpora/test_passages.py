"""Cutting documents into passages: nothing lost, nothing twice, places that are true."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.corpora.document import Document, DocumentSection
from reyn_jupyter.corpora.passages import LONGEST, MOST, Passage, cut, passages_of

TEXTS = st.text(st.sampled_from(list("ab .\n\n漢")), max_size=4 * LONGEST) | st.text(max_size=300)


@given(TEXTS, st.integers(1, 50))
def test_passages_are_the_text_and_stand_where_they_say(text: str, first: int) -> None:
    lines = text.split("\n")
    passages = list(cut(DocumentSection(text, first=first)))
    assert "".join("".join(each.text.split()) for each in passages) == "".join(text.split())
    for passage in passages:
        assert 0 < len(passage.text) <= LONGEST
        held = "\n".join(lines[passage.first - first : passage.last - first + 1])
        assert passage.text in held
    assert all(a.last <= b.first for a, b in pairwise(passages))


def test_a_cut_falls_where_the_text_pauses() -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "word " * 60 for number in range(9))
    assert all(each.text.startswith("Paragraph") for each in cut(DocumentSection(text)))


def test_a_page_keeps_its_number_however_many_lines_it_has() -> None:
    passages = list(cut(DocumentSection("line\n" * 900, unit="page", first=7)))
    assert len(passages) > 3 and {(each.first, each.last) for each in passages} == {(7, 7)}


def test_ten_megabytes_of_one_line_are_cut_in_one_pass_and_bounded() -> None:
    passages, more = passages_of(Document("text", (DocumentSection("x" * 11_000_000),)))
    assert len(passages) == MOST and more and {len(each.text) for each in passages} == {LONGEST}


def test_equal_texts_under_equal_headings_share_a_digest_and_headings_count() -> None:
    one, other = Passage("Ten a month.", ("Prices",)), Passage("Ten a month.", ("Prices",), first=9)
    assert one.digest == other.digest != Passage("Ten a month.", ("Fees",)).digest
