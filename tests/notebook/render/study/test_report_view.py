"""How a report reads: whole where that is possible, its most important part first, nothing empty, nothing twice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reyn_jupyter.evaluation.results.failure_examples import FAILURES
from reyn_jupyter.evaluation.results.report import report
from reyn_jupyter.evaluation.results.trial_set import TrialSet
from reyn_jupyter.evaluation.run.progress import Progress, RunSummary
from reyn_jupyter.evaluation.statistics.glossary import GLOSSARY, terms_in
from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.notebook.render.blocks import Fold, Grid, Intervals, Paragraph, Scatter, Section, View
from reyn_jupyter.notebook.render.hosts.markdown_writer import to_markdown
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from tests.evaluation.trial_set_support import evidence, many, mixed, trial
from tests.notebook.render.study_samples import crowd, every_object, found, nine

REPORTS = {"two": lambda: found(), "nine": nine}
BOUNDS = {"text": 20 * 1024, "html": 96 * 1024, "snapshot": 72 * 1024}


def drawn(made: View) -> dict[str, str]:
    """A view in the forms that are bounded, and in the one that leaves nothing out."""
    snapshot = json.dumps(to_snapshot(made, "s"), ensure_ascii=False, separators=(",", ":"))
    return {"text": to_text(made), "html": to_html(made), "snapshot": snapshot, "markdown": to_markdown(made)}


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_of_a_usual_size_is_shown_whole_in_every_form(name: str) -> None:
    for form, shown in drawn(view(report(REPORTS[name]()))).items():
        assert not re.search("left out to keep|cut here", shown), form
        for bounded in BOUNDS.keys() & {form}:
            assert len(shown.encode()) <= BOUNDS[bounded]


def test_a_report_that_is_too_long_keeps_what_comes_first_and_names_what_it_leaves_out() -> None:
    made = view(report(crowd(60)))
    forms = drawn(made)
    for form, bound in BOUNDS.items():
        shown = forms[form]
        assert len(shown.encode()) <= bound and made.knob in shown.replace('\\"', '"')
        assert "Simulated trials: variant-0 finishes 80 of 80" in shown and "variant-1" in shown
        assert re.search("parts were left out to keep this view small|cut here|rows left out", shown)
    assert "variant-59" in forms["markdown"]


@pytest.mark.parametrize("variants", [9, 25, 60])
def test_no_heading_stands_over_nothing_however_much_there_is(variants: int) -> None:
    lines = to_text(view(report(crowd(variants)))).splitlines()
    titles = {block.title for block in view(report(crowd(9))).blocks if isinstance(block, Section)}
    for place, line in enumerate(lines):
        if line in titles:
            assert lines[place + 1].startswith("  ") and "cut here" not in lines[place + 1], line
    for place, line in enumerate(lines):
        if re.fullmatch(r" *─[─ ]+", line):
            assert "cut here" not in lines[place + 1], "a table has a row, or is not there"
    html = to_html(view(report(crowd(variants))))
    assert not re.search(r'<div class="r-sec"><p class="r-label"><strong>[^<]*</strong></p></div>', html)


@pytest.mark.parametrize(
    "on",
    [
        lambda: found(),
        nine,
        lambda: evidence({"a": mixed(3, 30), "b": mixed(11, 30)}),
        lambda: evidence({"a": mixed(0, 30, 2), "b": mixed(0, 30, 2)}, checks=("first_call_is",)),
    ],
)
def test_statistics_terms_stand_one_press_deeper_each_with_its_sentence(on: Callable[[], TrialSet]) -> None:
    made = view(report(on()))
    (fold,) = (
        block for block in made.blocks if isinstance(block, Fold) and block.title[0].text == "The statistics"
    )
    outside = replace(made, blocks=tuple(block for block in made.blocks if block is not fold))
    assert terms_in(to_text(outside)) == ()
    inside = to_text(replace(made, blocks=(replace(fold, open=True),)))
    assert "discordant" in inside
    for term in terms_in(inside.partition("The words")[0]):
        assert GLOSSARY[term] in " ".join(inside.split())


def test_the_first_screen_is_the_finding_a_chart_with_its_table_and_what_to_use() -> None:
    made = view(report(evidence({"a": mixed(3, 30), "b": mixed(11, 30)}, checks=("first_call_is",))))
    finding, costs, advice = made.blocks[:3]
    assert isinstance(finding, Paragraph) and finding.spans[0].text.startswith(
        "b passes “lists first” in 11 of 30"
    )
    assert isinstance(costs, Section) and [type(block) for block in costs.blocks] == [Scatter, Grid]
    chart, table = costs.blocks
    assert isinstance(chart, Scatter) and isinstance(table, Grid)
    assert [(point.label, point.low, point.high) for point in chart.points] == [
        (name, pytest.approx(low, abs=5e-4), pytest.approx(high, abs=5e-4))
        for name, low, high in (("a", 0.021, 0.265), ("b", 0.199, 0.561))
    ]
    words = [[cell.text for cell in row[:2]] for row in table.rows]
    assert words == [["a", "10 % (2 to 27)"], ["b", "37 % (20 to 56)"]]
    assert isinstance(advice, Section) and advice.title == "What to use"


@pytest.mark.parametrize("cost", [None, 0.0, 0.004])
def test_costs_are_drawn_in_dollars_where_all_have_a_price_and_in_tokens_elsewhere(
    cost: float | None,
) -> None:
    priced = [trial(name, f"s{n:03}", 0, n < 9, cost=cost) for name in ("a", "b") for n in range(20)]
    made = view(report(evidence({"a": {}, "b": {}}, more=priced)))
    (chart,) = (
        block
        for section in made.blocks
        if isinstance(section, Section)
        for block in section.blocks
        if isinstance(block, Scatter)
    )
    assert chart.x_name == ("cost per trial" if cost else "tokens per trial")
    assert chart.caption == f"task done against {chart.x_name}; lines: 95 % intervals"
    assert chart.points[0].x == pytest.approx(cost or 1_200) and chart.points[0].x < chart.x_axis[1]


def test_progress_is_printed_in_words() -> None:
    done = every_object("x")["progress"]
    assert str(done) == repr(done) and str(done).startswith(
        "Scripted trials: 3 of 9 trials done, 2 under way, 6 s to 10 s left, $0.0200, 12,000 tokens, 1 error"
    )
    assert "so far base x 100 % (40 to 100), best 100 % (40 to 100)." in str(done)


def test_the_other_variants_are_told_of_in_one_sentence() -> None:
    arms = {
        "base": mixed(10, 40),
        "up": mixed(35, 40),
        "more": mixed(38, 40),
        "down": mixed(0, 40),
        "same": mixed(10, 40),
    }
    made = report(evidence(arms))
    assert made.sentence.startswith("up beats base")
    assert made.others == (
        "Of the 3 other variants, 1 (more) beats base, 1 (down) does worse than it and 1 (same) cannot be told apart "
        "from it."
    )
    text = to_text(view(made))
    assert text.index(made.sentence) < text.index("Of the 3 other variants")
    three = report(evidence({name: arms[name] for name in ("base", "up", "same")}))
    assert three.others == "same cannot be told apart from base."
    assert report(nine()).others.startswith("Simulated trials: of the 7 other variants, ")
    assert report(evidence({"a": mixed(3, 30), "b": mixed(20, 30)})).others == ""


def test_a_variant_of_which_nothing_could_be_graded_has_a_row_too() -> None:
    made = view(report(evidence({"a": mixed(3, 30), "b": many(30, "error")})))
    chart = next(block for block in made.blocks if isinstance(block, Intervals))
    assert [(row.label, row.text, row.estimate is None) for row in chart.rows] == [
        ("a", "10 % (2 to 27)", False), ("b", "no graded trial", True),
    ]  # fmt: skip
    assert "30 missing" in chart.rows[1].detail


def test_the_card_of_a_run_has_all_its_rows_from_the_first_update_on() -> None:
    done = every_object("x")["summary"]
    assert isinstance(done, RunSummary)
    names = dict.fromkeys(done.variants, "scripted")
    first = Progress(done=0, total=9, running=2, seconds=0.1, rate=0.0, eta=None, usd=0.0, tokens=0, calls=0,
                     sources=names)  # fmt: skip
    later = replace(first, done=8, eta=(3.21, 3.21), estimates=done.estimates)

    def outline(shown: Progress) -> list[Any]:
        return [
            [row.label for row in block.rows] if isinstance(block, Intervals) else type(block)
            for block in view(shown).blocks
        ]

    assert outline(first) == outline(later) and list(names) in outline(first)
    loading = replace(first, loading=("loading weights.gguf (98 MB) for 4 s",))
    assert outline(loading) == outline(first)
    assert "2 under way, loading weights.gguf (98 MB) for 4 s" in to_text(view(loading))
    assert "no graded trial" in to_text(view(first)) and "3 s left" in to_text(view(later))


def test_failures_are_shown_with_what_was_asked_and_how_many_there_are() -> None:
    made = view(report(evidence({"base": mixed(40, 40), "best": mixed(10, 40)})))
    (section,) = (block for block in made.blocks if isinstance(block, Section) and "Failures" in block.title)
    assert section.title == "Failures of best, beside base"
    text = to_markdown(replace(made, blocks=(section,))).replace("\\", "")
    assert text.count("asked: What do the notes say?") == FAILURES
    assert (
        f'{FAILURES} of 30 failed trials; all of them: study.trials.of("best").failed("first_call_is")'
        in text
    )


def test_what_a_drawing_shows_stands_in_one_table_and_not_in_two() -> None:
    for shown in (to_text(view(report(nine()))), to_markdown(view(report(nine())))):
        costs = shown[shown.index("Cost against success") : shown.index("What to use")]
        assert costs.count("1,200") == 9, "the tokens of each variant, once"


def test_provenance_is_in_words_and_hashes_are_short() -> None:
    known = {"catalogs": {"standard": "d35f4c3610596e832dd80d402b7c4ed8fc678e0b07306f9f556caac09683185b"},
             "budget": {"usd": None, "tokens": None}, "sources": {"a": "real", "b": "real"}}  # fmt: skip
    text = to_markdown(view(report(evidence({"a": mixed(3, 9), "b": mixed(4, 9)}, provenance=known))))
    assert "- catalogs: standard d35f4c361059\n" in text
    assert (
        "- budget: none\n" in text and "- sources: real\n" in text and "{" not in text.split("Provenance")[1]
    )


def test_the_cost_part_draws_the_cost_of_a_trial_and_of_a_success() -> None:
    unpriced = [trial("free", f"s{n:03}", 1, True, cost=None) for n in range(8)]
    arms = {"a": mixed(2, 8), "none": many(8, False), "free": {}}
    made = report(evidence(arms, more=unpriced, checks=("first_call_is",)))
    row = made.df.set_index(["variant", "check"]).loc[("a", "first_call_is")]
    assert row["cost_per_success"] == pytest.approx(4 * row["cost_per_trial"])
    section = next(
        block for block in view(made).blocks if isinstance(block, Section) and "Cost" in block.title
    )
    table = next(block for block in section.blocks if isinstance(block, Grid))
    names = [column.name for column in table.columns]
    costs = [names.index("cost per trial"), names.index("cost per success")]
    by_variant = {cells[0].text: [cells[place].text for place in costs] for cells in table.rows}
    assert by_variant == {
        "a": ["$0.0010", "$0.0040"],
        "none": ["$0.0010", "–"],
        "free": ["not known", "not known"],
    }
    for form, drawing in drawn(view(made)).items():
        shown = drawing.replace(r"<span>\$</span>", "$")
        assert "cost per trial" in shown and "cost per success" in shown and "$0.0040" in shown, form


def test_what_n_a_means_is_said_only_where_it_stands() -> None:
    made = report(found())

    def words(shown: int, hidden: int) -> str:
        first, *_ = next(iter(made.figures.values()))
        figures = {
            name: {
                check: replace(figure, not_applicable=hidden, found=None)
                if check == first
                else replace(figure, not_applicable=shown)
                for check, figure in found_figures.items()
            }
            for name, found_figures in made.figures.items()
        }
        return to_text(view(replace(made, figures=figures)))

    assert "n/a" not in words(0, 3) and "does not apply" in words(0, 3)
    assert "n/a: trials that the check does not apply to." in words(2, 0)
