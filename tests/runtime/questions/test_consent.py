"""The answers to a question of consent: what is offered, and what an unclear one means."""

from __future__ import annotations

from reyn_jupyter.runtime.questions.consent import CHOICES, PAGE, Choice, Question
from reyn_jupyter.runtime.questions.question_detail import DetailLine, QuestionDetail


def test_what_an_unclear_answer_means_does_not_allow() -> None:
    assert not CHOICES[-1].allows and "" in CHOICES[-1].keys
    assert not any("" in each.keys for each in CHOICES if each.allows)


def test_no_two_answers_share_a_key_a_verb_or_a_name() -> None:
    keys = [key for each in CHOICES for key in each.keys]
    assert len(keys) == len(set(keys))
    assert len({each.verb for each in CHOICES}) == len({each.answer for each in CHOICES}) == len(CHOICES)


def test_what_would_be_kept_is_offered_only_with_a_pattern() -> None:
    assert not any(each.keeps for each in Question("file__write", detail(1), ()).choices)
    (kept,) = kept_by(Question("file__write", detail(1), ("file__write({a})",)).choices)
    assert kept.prompt == "always for file__write({a})" and kept.label == "Always for file__write({a})"


def test_always_names_each_pattern_and_counts_them_on_a_button_where_they_are_many() -> None:
    patterns = tuple(f"file__copy(write:{name})" for name in "abcd")
    (few,) = kept_by(Question("file__copy", detail(1), patterns[:2]).choices)
    assert few.label == "Always for file__copy(write:a) and file__copy(write:b)"
    (many,) = kept_by(Question("file__copy", detail(1), patterns).choices)
    assert many.label == "Always for these 4 targets" and all(pattern in many.hint for pattern in patterns)


def test_what_would_be_kept_is_offered_once_every_line_was_shown_and_nothing_is_withheld() -> None:
    long = Question("file__write", detail(PAGE + 1), ("file__write(a)",))
    assert not kept_by(long.choices_after(PAGE)) and kept_by(long.choices_after(PAGE + 1))
    withheld = Question(
        "file__write", QuestionDetail((), ("A secret in it is masked.",)), ("file__write(a)",)
    )
    assert not kept_by(withheld.choices)


def test_an_excerpt_counts_the_lines_that_it_leaves_out() -> None:
    question = Question("file__write", detail(15), ())
    assert question.excerpt(12).splitlines()[-1] == "  … 3 more lines"
    assert question.excerpt(15) == question.text


def detail(lines: int) -> QuestionDetail:
    return QuestionDetail(tuple(DetailLine("text", f"line {number}") for number in range(lines)))


def kept_by(choices: tuple[Choice, ...]) -> list[Choice]:
    return [each for each in choices if each.keeps]
