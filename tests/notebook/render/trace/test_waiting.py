"""What a card says while its run waits: for a model, for another try, for the person."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reyn_jupyter.notebook.render import to_text, view
from reyn_jupyter.runtime.record.events import ActionResolved, ConsentAsked, Event, RetryScheduled
from reyn_jupyter.runtime.record.trace import Trace
from tests.notebook.render.samples import NOW, asked, invoked, said, started, trace


def shown(*events: Event, now: float = NOW, **begun: Any) -> str:
    return to_text(view(Trace.from_events([started(**begun), *events]), tail="", now=now))


def retry(wait: float = 3.0, **given: Any) -> RetryScheduled:
    made = RetryScheduled(step=1, at=NOW, attempt=2, most=4, wait=wait, reason="rate limit of api.openai.com")
    return replace(made, **given)


def resolved() -> ActionResolved:
    return ActionResolved(
        call="c1", step=1, at=NOW, actor="model", wrapper="invoke_action",
        arguments=invoked("file__write", path="a.txt"), name="file__write",
    )  # fmt: skip


def test_a_card_says_which_repeat_of_a_call_comes_when_and_why() -> None:
    text = shown(asked(1), retry(), now=NOW + 0.5)
    assert "retry 2 of 4 in 3 s: rate limit of api.openai.com" in text
    assert "retry 2 of 4 in 1 s" in shown(asked(1), retry(), now=NOW + 2.4)
    assert "retry 2 of 4 under way" in shown(asked(1), retry(), now=NOW + 5)
    assert "retry" not in shown(asked(1), retry(), said(1), now=NOW + 5)


def test_what_failed_is_text_of_a_stranger(text: str = "<img src=x onerror=run()>\u202e") -> None:
    page = view(Trace.from_events([started(), asked(1), retry(reason=text)]), tail="", now=NOW)
    assert "\u202e" not in to_text(page) and "<img src=x" in to_text(page)


def test_a_paid_request_says_its_size_and_its_cost_before_it_is_answered() -> None:
    request = replace(asked(1), estimated_tokens=1200, estimated_cost=0.0003)
    assert "this request ≈ 1,200 tokens, ≈ $0.0003 before its answer" in shown(request, real=True)
    for nothing in (None, 0.0):  # not known, and a model of this machine
        assert "before its answer" not in shown(replace(request, estimated_cost=nothing), real=True)
    assert "this request" not in shown(request, real=False)


def test_a_card_that_waits_for_the_person_says_so_and_its_clock_stands_still() -> None:
    asks = [asked(1), said(1), resolved(), ConsentAsked(call="c1", at=NOW + 2, name="file__write")]
    for later in (2.0, 30.0, 500.0):
        text = shown(*asks, now=NOW + later)
        assert "[❚❚ waiting for you]" in text and "0:02" in text
        assert "waiting for you to answer about file__write" in text


def test_what_the_person_took_stands_apart_from_what_the_run_took() -> None:
    whole = trace()
    assert whole.ended is not None
    ended = replace(whole.ended, seconds=0.4, waited=12.0)
    text = to_text(view(Trace.from_events([*whole.events[:-1], ended]), now=NOW))
    assert "0.40 s · 12.00 s waiting for you" in text
    assert "waiting for you" not in to_text(view(whole, now=NOW))


def test_a_run_that_was_cut_off_while_it_asked_waits_for_nobody() -> None:
    asks = [asked(1), said(1), resolved(), ConsentAsked(call="c1", at=NOW, name="file__write")]
    text = to_text(view(Trace.from_events([started(), *asks]), now=NOW))
    assert "cut off" in text and "waiting for you" not in text
