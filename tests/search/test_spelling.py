"""Words that are nearly known: the same as by comparing with each, and misspelt names in any inflection."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.search.action_records import Record
from reyn_jupyter.search.ranking.index import Index
from reyn_jupyter.search.ranking.spelling import ALIKE, BEGINNING, MOST, SHORTEST, Spelling, one_letter_off
from reyn_jupyter.search.ranking.tokens import stem

WORDS = st.text("abcdeé売лы", min_size=1, max_size=9)
INFLECTED = re.findall(
    r"\w+",
    """
accessibility achievements authentication availability batting billable bookings business calculation compatibility
conversions currencies deliveries forecasting hoping initialize invitations modelling notifications organizations
possibly relational searches shipping translated useful weather summarizes переводы отчёты продажами
    """,
)


def trigrams(word: str) -> set[str]:
    return {f" {word} "[place : place + 3] for place in range(len(word))}


def compared_with_each(known: set[str], word: str) -> list[tuple[str, float]]:
    words = sorted(each for each in known if len(each) > 1)
    longer = [each for each in words if each.startswith(word)][:MOST]
    found = dict.fromkeys(longer, BEGINNING) if len(word) > 2 or not word.isascii() else {}
    if not found and len(word) >= SHORTEST:
        mine = trigrams(word)
        shares = {each: len(mine & trigrams(each)) / len(mine | trigrams(each)) for each in words}
        found = {each: share for each, share in shares.items() if share >= ALIKE}
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST]


@given(st.sets(WORDS, max_size=25), WORDS)
def test_what_is_near_is_what_comparing_with_every_word_gives(known: set[str], word: str) -> None:
    expected = compared_with_each(known, word) if len(word) > 1 else []
    assert list(Spelling(known).near(word)) == expected


@pytest.mark.parametrize("word", INFLECTED)
def test_any_inflection_of_a_known_stem_is_meant_by_what_is_one_letter_off(word: str) -> None:
    spelling = Spelling({stem(word), "unrelated", "read"})
    for place in range(1, len(word)):
        for mistyped in (
            word[:place] + word[place + 1 :],
            word[:place] + word[place:][1::-1] + word[place + 2 :],
        ):
            if mistyped != word:
                assert word in spelling.mistyped(mistyped), mistyped


def test_few_of_the_neighbours_of_a_word_are_worth_stemming() -> None:
    spelling = Spelling(map(stem, INFLECTED))
    assert len(one_letter_off("tranzlate")) > 400
    assert spelling.mistyped("tranzlate") == ["translate"]
    assert len(spelling.mistyped("notifcations")) < 60


def test_a_misspelt_name_is_found_first_whatever_its_form() -> None:
    names = ("get_availability", "send_notifications", "track_shipping", "availability")
    index = Index([Record(name, name, f"Does {n} things.") for n, name in enumerate(names)])
    for asked, meant in (
        ("get_availabilty", "get_availability"),
        ("send_notifcation", "send_notifications"),
        ("track_shiping", "track_shipping"),
        ("availabiliyt", "availability"),
    ):
        assert index.search(asked)[0][0] == meant
