"""What an evaluation shows, in text, HTML and Markdown: whole, marked, harmless, and of a bounded size."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.comparison import compare
from reyn_jupyter.evaluation.results.recommend import recommend
from reyn_jupyter.evaluation.results.report import report
from reyn_jupyter.notebook.displays.mime import mimebundle
from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.notebook.render.blocks import Fold, Grid, Intervals, Pair, Scatter, Section, View
from reyn_jupyter.notebook.render.hosts.markdown_writer import to_markdown
from tests.evaluation.trial_set_support import evidence, many, mixed
from tests.notebook.render.samples import ALLOWED, HOSTILE, Reader
from tests.notebook.render.study_samples import empty, every_object, found, nine, study

KINDS = (
    "report",
    "comparison",
    "numbers",
    "recommendation",
    "study",
    "plan",
    "progress",
    "summary",
    "trials",
    "trial",
)
# What charts are drawn with: geometry and classes, and no attribute that could load or run anything.
_AT = {
    "class",
    "x",
    "y",
    "x1",
    "x2",
    "y1",
    "y2",
    "cx",
    "cy",
    "r",
    "width",
    "height",
    "d",
    "points",
    "transform",
}
CHART: dict[str, set[str]] = {
    **dict.fromkeys(("g", "rect", "circle", "line", "path", "polygon"), _AT),
    "text": _AT | {"text-anchor"}, "svg": _AT | {"role", "aria-label", "aria-hidden", "viewbox"}, "tfoot": set(),
}  # fmt: skip
objects = cache(every_object)


def blocks(shown: View) -> Iterator[Any]:
    """Every block, those inside of others too."""
    waiting = list(shown.blocks)
    while waiting:
        block = waiting.pop(0)
        yield block
        if isinstance(block, Section | Fold):
            waiting += block.blocks
        elif isinstance(block, Pair):
            waiting += [*block.left_blocks, *block.right_blocks]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("kind", KINDS)
def test_only_harmless_tags_and_attributes_are_written_whatever_a_study_holds(kind: str, text: str) -> None:
    page = Reader(to_html(view(objects(text)[kind])))
    for tag, attributes in page.tags:
        allowed = {**ALLOWED, **CHART}.get(tag)
        assert allowed is not None, f"<{tag}>"
        assert set(attributes) <= allowed, f"<{tag} {attributes}>"


@pytest.mark.parametrize("kind", KINDS)
def test_no_hidden_character_reaches_html_text_or_markdown(kind: str) -> None:
    shown = objects(HOSTILE[5])[kind]
    bundle = mimebundle(shown)
    for drawn in (Reader(bundle["text/html"]).text, bundle["text/plain"], to_markdown(view(shown))):
        assert [c for c in drawn if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t"] == []


@pytest.mark.parametrize(
    "text", [*HOSTILE, "| a | b |\n|---|", "# title\n- item `code` **bold**", "```\nfence\n```"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_no_text_becomes_markup_in_markdown(kind: str, text: str) -> None:
    document = to_markdown(view(objects(text)[kind]))
    outside, fence = [], ""
    for line in document.splitlines():
        mark = re.match("`{3,}", line)
        if mark and not fence:
            fence = mark[0]
        elif fence and line == fence:
            fence = ""
        elif not fence:
            outside.append(line)
    assert fence == "", "a text left its code block"
    prose = re.sub(r"<span>\\[$\\]</span>", "", "\n".join(outside))  # what begins a formula, alone
    assert not re.search(r"(?<!\\)<[a-zA-Z/!]", prose) and not re.search(
        r"(?<!\\)\[[^\]\n]*(?<!\\)\]\(", prose
    )
    rows = [line for line in outside if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", line)) >= 3 for line in rows)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_in_text_is_said_in_html_and_markdown_too(kind: str) -> None:
    shown = objects("x")[kind]
    made = view(shown)
    html, markdown = Reader(to_html(made)).text, to_markdown(made).replace("\\", "")
    sentence = getattr(shown, "sentence", None) or made.title
    for drawn in (html, markdown, " ".join(to_text(made).split())):
        assert sentence in drawn


def test_a_report_has_everything_that_a_reader_asks_for() -> None:
    text = to_text(view(report(found())))
    parts = ("a x finishes 48 of 49 trials at 25 tasks, b 48", "Cost against success", "What to use",
             "a x beats b on lists first", "passes again", "Every check", "What was claimed, and what was found",
             "How far to trust it", "Failures", "Provenance")  # fmt: skip
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions), "the sentence first, provenance last"
    markdown = to_markdown(view(report(found())))
    for told in ("Brier", "passes again", "tokens per trial", "missing", "fingerprint", "design effect"):
        assert told in markdown


def test_every_row_of_a_simulated_report_is_marked() -> None:
    made = view(report(nine()))
    assert any(badge.text == "simulated" for badge in made.badges)
    rows = 0
    for block in blocks(made):
        if isinstance(block, Intervals):
            texts = [f"{row.text} {row.detail}" for row in block.rows]
        elif isinstance(block, Scatter):
            texts = [f"{block.caption} {point.text}" for point in block.points]
        elif isinstance(block, Grid):
            texts = [" ".join(cell.text for cell in row) for row in block.rows]
        else:
            continue
        rows += len(texts)
        assert all("simulated" in text.lower() for text in texts), texts
    assert rows > 40
    assert "Simulated trials" in to_text(made) and "simulated" in to_markdown(made)


@pytest.mark.parametrize(
    "kind", ["study", "summary", "progress", "trials", "trial", "comparison", "recommendation"]
)
def test_every_other_view_of_trials_that_are_not_real_is_marked(kind: str) -> None:
    arms = {"a": mixed(3, 30), "b": mixed(20, 30)}
    on = evidence(arms, sources=dict.fromkeys(arms, "offline"))
    shown = {**objects("x"), "comparison": compare(on, "a", "b"), "recommendation": recommend(on)}[kind]
    made = view(shown)
    source = "offline" if kind in ("comparison", "recommendation") else "scripted"
    for block in blocks(made):
        if isinstance(block, Intervals):
            rows = [row for row in block.rows if row.label != "done"]
            assert all(source in f"{row.text} {row.detail}".lower() for row in rows)
    assert source in to_text(made).lower() and source in to_html(made).lower()


def test_a_report_of_real_trials_says_so_and_marks_nothing() -> None:
    text = to_text(view(report(evidence({"a": mixed(3, 30), "b": mixed(20, 30)}))))
    assert "real model" in text and "simulated" not in text and "offline" not in text


def test_a_real_recommendation_shows_lines_and_how_to_write_them_and_another_one_does_not() -> None:
    arms = {"a": mixed(3, 30), "b": mixed(28, 30)}
    variants = {"b": Variant("b", model="gpt-mini", discovery="gate")}
    real = to_text(view(recommend(evidence(arms, variants=variants), check="first_call_is")))
    assert "discovery: gate" in real and "write()" in real
    fake = to_text(view(recommend(evidence(arms, sources={"a": "offline", "b": "offline"}))))
    assert ".write()" not in fake and "no advice for a real model" in fake
    few = recommend(evidence({"a": mixed(1, 3), "b": mixed(3, 3)}, variants=variants), check="first_call_is")
    assert not few.is_writable and ".write()" not in to_text(view(few))  # it would only be refused


def test_failures_stand_beside_the_other_variants_trial_of_the_same_pair() -> None:
    arms = {"base": many(3, True), "best": {"s000": (True,), "s001": (False,), "s002": (True,)}}
    text = to_markdown(view(report(evidence(arms))))
    assert "Failures of best, beside base" in text
    failures = text[text.index("Failures") :].split("\n", 1)[1]
    assert failures.index("What do the notes say?") < failures.index("list\\_actions")
    assert failures.index("s001") < failures.index("base") < failures.index("best")
    assert "list\\_actions" in failures and "file\\_\\_read" in failures


def test_what_was_not_graded_is_shown_as_that() -> None:
    text = to_text(view(report(empty())))
    assert (
        "No trial could be graded" in text
        and "no graded trial" in text
        and "2 trials are missing (2 errors)" in text
    )


def test_a_study_without_a_trial_says_how_to_begin() -> None:
    made = study(count=2)
    assert "study.run(" in to_text(view(made)) and "No trial." in to_text(view(made.trials))
    assert "told once a few trials ran" in to_text(view(made.plan(Variant("a"), Variant("b"))))


def test_numbers_are_told_in_the_summary_too() -> None:
    made = study(count=3)
    summary = made.run(Variant("a", model="scripted"), check="tokens", repeats=1)
    text = to_text(view(summary))
    assert "a trial" in text and "3 trials · scripted" in text and "e+" not in text


def test_long_answers_and_many_calls_are_cut_with_a_word() -> None:
    long = found("y" * 20_000)
    assert len(to_html(view(report(long)))) < 400_000
    assert "…" in to_text(view(report(long)))


def test_a_trial_says_what_was_asked_and_what_would_have_been_right() -> None:
    trial = study(count=1)
    trial.run(Variant("base", model="scripted"), repeats=1)
    shown = to_text(view(trial.trials[0]))
    assert shown.index("What, 0?") < shown.index("the answer says") < shown.index("What the checks say")


def test_a_failure_in_the_report_says_what_would_have_been_right() -> None:
    text = to_markdown(view(report(evidence({"base": many(1, False)}))))
    failures = text[text.index("Failures") :]
    assert (
        failures.index("What do the notes say?") < failures.index("the answer says") < failures.index("1. ")
    )


def test_a_run_with_missing_trials_says_how_they_are_tried_again() -> None:
    with study(count=2) as made:
        summary = made.run(Variant("base", model="scripted"), repeats=1)
    assert "retry=True" not in to_text(view(summary))
    lacking = replace(summary, missing={"base": 1})
    assert "1 trial missing." in to_text(view(lacking)) and "retry=True" in to_text(view(lacking))


def test_a_run_that_was_stopped_before_its_first_trial_offers_nothing_to_look_at() -> None:
    with study(count=2) as made:
        summary = made.run(Variant("base", model="scripted"), repeats=1)
    assert "study.report()" in to_text(view(summary))
    assert "study.report()" not in to_text(view(replace(summary, done=0, ended="interrupted")))
