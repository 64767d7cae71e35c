"""The stretches of a run in which the person was asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.runtime.questions.person_wait import PersonWait
from reyn_jupyter.runtime.record.events import ActionFinished, ConsentAsked, PermissionDecided, RunEnded
from reyn_jupyter.runtime.record.question_spans import QuestionSpan, question_spans, seconds_open


def question(call: str, at: float) -> ConsentAsked:
    return ConsentAsked(call=call, at=at, name="file__write")


def decided(call: str, at: float) -> PermissionDecided:
    return PermissionDecided(
        call=call, at=at, name="file__write", effects=(), decision="allowed", by="person"
    )


def test_a_question_ends_with_its_decision_its_call_or_its_run() -> None:
    finished = ActionFinished(call="b", step=1, at=5.0, wrapper="w", name=None, ok=False, output="")
    events = [question("a", 1.0), question("b", 2.0), question("c", 3.0), decided("a", 4.0), finished]
    assert [each.end for each in question_spans(events)] == [4.0, 5.0, None]
    ended = RunEnded(run="r", at=6.0, status="ok")
    assert [each.end for each in question_spans([*events, ended])] == [4.0, 5.0, 6.0]


def test_a_call_may_ask_again_on_the_way() -> None:
    events = [question("a", 1.0), decided("a", 2.0), question("a", 5.0), decided("a", 9.0)]
    assert seconds_open(question_spans(events), 100.0) == 5.0


MOMENTS = st.integers(0, 50)


@given(st.lists(st.tuples(MOMENTS, MOMENTS).map(sorted), max_size=8), MOMENTS)
def test_what_is_open_at_once_counts_once(pairs: list[list[int]], now: int) -> None:
    spans = [QuestionSpan(str(place), "x", start, end) for place, (start, end) in enumerate(pairs)]
    by_hand = sum(any(start <= at < min(end, now) for start, end in pairs) for at in range(51))
    assert seconds_open(spans, now) == by_hand


def test_waits_within_each_other_count_once_for_the_run() -> None:
    waits = PersonWait()
    with waits.of("a"), waits.of("b"), waits.of("a"):
        pass
    assert waits.seconds() >= waits.seconds("a") >= waits.seconds("b") >= 0.0
    assert waits.seconds("c") == 0.0
