"""The terms of statistics have one sentence each, in the report and in the manual."""

from __future__ import annotations

from pathlib import Path

import pytest

import reyn_jupyter
from reyn_jupyter.evaluation.statistics.glossary import GLOSSARY, terms_in

PAGE = Path(reyn_jupyter.__file__).parent / "docs" / "statistics.md"


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("34 v 9 discordant of 80 pairs, +31 points (95 % CI 18 to 43), design effect 1.7",
         ("pair", "discordant", "95 % CI", "design effect")),
        ("p = 0.003 (Holm), e-value 12, evidence (log e-value)", ("p", "Holm", "e-value", "log E")),
        ("exact McNemar; sign-flip permutation", ("McNemar", "sign-flip")),
        ("A finishes 18 of 100 tasks, B 11; too close to call", ()),
        ("repairs, a skillet, the tip, policies", ()),
    ],
)  # fmt: skip
def test_terms_are_found_as_words(text: str, terms: tuple[str, ...]) -> None:
    assert terms_in(text) == terms


def test_the_manual_has_the_same_sentences() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for term, sentence in GLOSSARY.items():
        assert f"| {term} | {sentence} |" in page
