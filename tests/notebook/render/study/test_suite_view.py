"""What a study is about, shown: a suite, a scenario, a variant, a catalog, a budget."""

from __future__ import annotations

import unicodedata

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.notebook.displays.mime import mimebundle
from reyn_jupyter.notebook.render import to_html, to_text, view
from tests.notebook.render.samples import ALLOWED, HOSTILE, Reader
from tests.notebook.render.study_samples import suite_objects

SUITE = reyn.Study(None, "mandates").suite


@pytest.mark.parametrize("text", HOSTILE)
def test_only_harmless_tags_and_visible_characters_are_written(text: str) -> None:
    for kind, shown in suite_objects(text).items():
        bundle = mimebundle(shown)
        for tag, attributes in Reader(bundle["text/html"]).tags:
            assert tag in ALLOWED and set(attributes) <= ALLOWED[tag], (kind, tag, attributes)
        for drawn in (Reader(bundle["text/html"]).text, bundle["text/plain"]):
            hidden = [c for c in drawn if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t"]
            assert hidden == [], kind


def test_a_suite_tells_what_it_asks_family_by_family_and_what_it_compares() -> None:
    for drawn in (to_text(view(SUITE)), Reader(to_html(view(SUITE))).text):
        for told in ("140 scenarios", "discover", "obscure", "explicit-3x", "mandate='explicit', reinforcement=3",
                     "decides", "task done", "lists first"):  # fmt: skip
            assert told in drawn, told


def test_a_scenario_shows_what_counts_as_right_beside_what_is_asked() -> None:
    assert SUITE is not None
    drawn = to_text(view(SUITE.scenario("read-free-shipping")))
    for told in ("What did we decide in the May meeting", 'file__read(path="notes/2024-05-06.md", …) or',
                 "the answer says", "90 % get it right", "orders_archive.csv"):  # fmt: skip
        assert told in drawn
    drawn = to_text(view(SUITE.scenario("query-out-of-stock")))
    assert "file__grep(…)" in drawn and "Reading lamp or LK-02" in drawn  # any arguments; either word
    unanswerable = reyn.Scenario(
        id="a", family="f", prompts={"natural": "Hi"}, gold=reyn.Gold(unanswerable=True)
    )
    assert "to invoke nothing and say so" in to_text(view(unanswerable))
    nothing = reyn.Scenario(id="a", family="f", prompts={"natural": "Hi"})
    assert "Nothing is expected of it" in to_text(view(nothing))


def test_what_is_large_is_cut_and_says_so() -> None:
    scenarios = tuple(
        reyn.Scenario(id=f"s{n}", family=f"f{n}", prompts={"natural": "x" * 5_000}) for n in range(500)
    )
    variants = {f"v{n}": reyn.Variant(f"v{n}", max_steps=n + 1) for n in range(100)}
    suite = reyn.Suite(name="s", title="t" * 5_000, primary="chain", scenarios=scenarios, variants=variants,
                       catalogs={"standard": reyn.Catalog.standard})  # fmt: skip
    bundle = mimebundle(suite)
    assert len(bundle["text/html"]) < 64_000 and len(bundle["text/plain"]) < 8_000
    page = Reader(bundle["text/html"]).text
    assert "40 of 500; .scenarios holds all of them" in page and "40 of 100; .variants" in page
    long = suite_objects("x")["scenario"]
    assert "2,000 of 10,000 characters; .workspace holds all of it" in Reader(to_html(view(long))).text
