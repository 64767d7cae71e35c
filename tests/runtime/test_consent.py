"""The answers to a question of consent: what is offered, and what an unclear one means."""

from __future__ import annotations

from reyn_jupyter.runtime.consent import CHOICES, Question


def test_what_an_unclear_answer_means_does_not_allow() -> None:
    assert not CHOICES[-1].allows and "" in CHOICES[-1].keys
    assert not any("" in each.keys for each in CHOICES if each.allows)


def test_no_two_answers_share_a_key_a_verb_or_a_name() -> None:
    keys = [key for each in CHOICES for key in each.keys]
    assert len(keys) == len(set(keys))
    assert len({each.verb for each in CHOICES}) == len({each.answer for each in CHOICES}) == len(CHOICES)


def test_what_would_be_kept_is_offered_only_with_a_pattern() -> None:
    assert not any(each.keeps for each in Question("file__write", "", None).choices)
    kept = [each for each in Question("file__write", "", "file__write({a})").choices if each.keeps]
    assert [each.prompt for each in kept] == ["always for file__write({a})"]
