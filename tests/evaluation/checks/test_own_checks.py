"""A person's own checks: tried out in a notebook, wrong at first, and not at hand for whoever gets the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.evaluation.checks import CHECKS, UnknownCheckError, check, find_check, forget, is_broken
from reyn_jupyter.evaluation.results.trial_set import EvidenceError
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.runtime.record.verdict import Verdict, failed, passed
from tests.evaluation.checks.check_support import accepts, grade, invoked, listed, needs, trial
from tests.evaluation.study_support import BASE, BEST, small, study


@pytest.fixture(autouse=True)
def own_checks() -> Iterator[None]:
    """Checks that a test registers are taken out after it."""
    before = set(CHECKS)
    yield
    for name in set(CHECKS) - before:
        forget(name)


def hello() -> None:
    """Register `polite`, as a cell does."""

    @check("polite", "Is it polite?")
    def polite(tried: Any, task: Any) -> Verdict:
        return passed("it does") if "hello" in tried.answer else failed("it does not")


def please() -> None:
    """The same cell, with another body."""

    @check("polite", "Is it polite?")
    def polite(tried: Any, task: Any) -> Verdict:
        return passed("it does") if "please" in tried.answer else failed("it does not")


def rate_of(opened: Study, name: str = "polite") -> float | None:
    found = opened.report().figures["base"][name].found
    return found.estimate if found is not None else None


def test_a_check_that_raises_costs_no_trial_and_is_named_until_it_is_mended(tmp_path: Path) -> None:
    @check("polite", "Is it polite?")
    def polite(tried: Any, task: Any) -> Verdict:
        return passed(tried.no_such_thing)

    with study(tmp_path / "s.sqlite", suite=small(checks=("polite",))) as opened:
        summary = opened.run(BASE, repeats=1)
        assert summary.done == len(opened.trials) == 4
        (said,) = [each for each in summary.warnings if each.startswith("polite: ")]
        assert "AttributeError" in said and "passed(tried.no_such_thing)" in said and "4 new trials" in said
        report = opened.report()
        assert report.figures["base"]["polite"].not_applicable == 4
        assert any("So it is with 4 of 4 trials" in each for each in report.warnings)
        with pytest.raises(EvidenceError, match=r"polite: .*AttributeError.* 4 of 4 trials; mend it"):
            opened.trials.failed("polite")

        hello()
        assert rate_of(opened) == 1.0
        assert not any("polite" in each for each in opened.report().warnings)
        assert not any("polite" in each for each in opened.run(BASE, repeats=1).warnings)


def test_a_primary_check_that_raises_leaves_the_trials_to_be_graded_later() -> None:
    @check("polite", "Is it polite?")
    def polite(tried: Any, task: Any) -> Verdict:
        raise RuntimeError("not yet")

    with study(suite=small(primary="polite", checks=())) as opened:
        assert opened.run(BASE, BEST, repeats=1).done == 8
        with pytest.raises(EvidenceError, match="RuntimeError: not yet"):
            opened.compare(BASE, BEST)
        hello()
        assert opened.compare(BASE, BEST).difference.estimate == 0.0


def test_a_cell_that_is_run_again_is_asked_anew_in_the_same_session() -> None:
    hello()
    with study(suite=small(checks=("polite",))) as opened:
        opened.run(BASE, repeats=1)
        assert rate_of(opened) == 1.0
        please()
        assert rate_of(opened) == 0.0
        assert len(opened.trials.failed("polite")) == 4
        assert not opened.trials.df["polite"].any()


def test_stored_verdicts_of_other_code_are_made_again_though_nobody_moved_the_version() -> None:
    hello()
    with study(suite=small(checks=("polite",))) as opened:
        opened.run(BASE, repeats=1)
        hello()
        assert opened.grade("polite") == 0, "the same code is the same version"
        please()
        assert opened.grade("polite") == 4
        assert opened.verify().faults == ()


def test_who_gets_the_file_alone_sees_the_verdicts_that_were_given(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    hello()
    with study(path, suite=small(primary="polite", checks=("first_call_is",))) as opened:
        opened.run(BASE, BEST, repeats=1)
        sentence = opened.compare(BASE, BEST).sentence
    forget("polite")
    with Study.open(path) as given:
        assert rate_of(given) == 1.0
        assert given.compare("base", "best").sentence == sentence
        assert len(given.trials.failed("polite")) == 0 and len(given.trials.passed("polite")) == 8
        assert given.trials[0].verdict("polite").reason == "it does"
        assert given.trials.df["polite"].all()
        assert any(each.startswith("polite is no check of this session") for each in given.report().warnings)
        assert given.export(tmp_path / "trials.jsonl").read_text().count('"it does"') == 8
        please()
        assert rate_of(given) == 0.0, "her own definition is asked, once it is there"


def test_a_plain_answer_stands_for_a_verdict() -> None:
    @check
    def answers_at_all(tried: Any, task: Any) -> bool:
        """Is there an answer?"""
        return bool(tried.answer)

    @check(numeric=True, better="less")
    def letters(tried: Any, task: Any) -> int:
        return len(tried.answer)

    assert grade("answers_at_all", trial(answer="yes")).kind == "pass"
    assert grade("answers_at_all", trial(answer="")).kind == "fail"
    assert grade("letters", trial(answer="four")).value == 4
    found = find_check("answers_at_all")
    assert (found.title, found.sentence) == ("answers at all", "Is there an answer?")
    assert find_check("letters").better == "less"


@pytest.mark.parametrize("given", [None, "pass", 0.5])
def test_an_answer_that_is_no_verdict_says_what_to_return(given: Any) -> None:
    @check("odd", "What does it give?")
    def odd(tried: Any, task: Any) -> Any:
        return given

    verdict = grade("odd", trial(answer="yes"))
    assert is_broken(verdict)
    assert f"it gave {given!r}; return passed(…)" in verdict.reason


def test_a_check_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="write it with def"):
        check("mine", "Mine?")(lambda tried, task: True)


@pytest.mark.parametrize("written", ["lists first", "lists_first"])
def test_the_title_that_tables_show_leads_to_the_name(written: str) -> None:
    with pytest.raises(UnknownCheckError, match="first_call_is is the one that tables call 'lists first'"):
        find_check(written)


def test_the_file_alone_holds_the_whole_run_while_the_notebook_is_still_open(tmp_path: Path) -> None:
    with study(tmp_path / "s.sqlite") as opened:
        opened.run(BASE, BEST, repeats=1)
        copied = tmp_path / "sent" / "s.sqlite"
        copied.parent.mkdir()
        copied.write_bytes((tmp_path / "s.sqlite").read_bytes())
        with Study.open(copied) as given:
            assert len(given.trials) == 8
            assert given.compare("base", "best").sentence == opened.compare(BASE, BEST).sentence


def test_a_call_that_the_schema_refused_is_not_told_as_missing_too() -> None:
    refused = trial(listed(), invoked(2, ok=False, problem="invalid", args={}))
    said = grade("arguments_correct", refused, needs(accepts(path=("a.md",)))).reason
    assert "the schema does not take the arguments" in said and "was not called" not in said
