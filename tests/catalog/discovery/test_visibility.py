"""Which category a guessed name was after."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.catalog.discovery.visibility import nearest_category
from tests.catalog.samples import published

SNAPSHOT = published()


@pytest.mark.parametrize(
    ("guess", "category"),
    [
        ("file__write_text", "file"),
        ("file.write", "file"),
        ("agent.peer__bob", "agent.peer"),
        ("multi_agent__bob", "agent.peer"),
        ("mcp.tool__x", "mcp"),
        ("  FILE__READ ", "file"),
        ("read_file", "file"),
    ],
)
def test_a_guess_leads_to_the_category_it_was_after(guess: str, category: str) -> None:
    assert nearest_category(SNAPSHOT, guess) == category


@given(st.text(max_size=300))
def test_whatever_is_guessed_the_answer_is_a_category_on_offer_or_none(guess: str) -> None:
    assert nearest_category(SNAPSHOT, guess) in (*SNAPSHOT.category_names, None)
