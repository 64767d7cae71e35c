"""Two runs side by side as a card without a kernel: totals, aligned calls, what differs in them, both answers."""

from __future__ import annotations

from typing import Any

import pytest

from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.notebook.render.hosts.html import HTML_BYTES
from reyn_jupyter.runtime.record.compare import compare
from reyn_jupyter.runtime.record.trace import Trace
from tests.notebook.render.samples import ALLOWED, HOSTILE, Reader, call, every_kind, invoked, trace


def writes(content: str, **about: Any) -> Trace:
    return trace(call(1, "file__write", invoked("file__write", path="a.txt", content=content)), **about)


def text_of(a: Trace, b: Trace) -> str:
    return to_text(view(compare(a, b)))


def page_of(a: Trace, b: Trace) -> str:
    return Reader(to_html(view(compare(a, b)))).text


def test_equal_runs_say_that_they_are() -> None:
    text = text_of(writes("x"), writes("x", run="run-2"))
    assert "run-1 and run-2  [the same]" in text and "all of them the same" in text
    assert "The answer, the same in both" in text


def test_the_totals_stand_side_by_side_with_their_difference() -> None:
    page = page_of(writes("x", seconds=1.0), trace(run="run-2", seconds=3.5))
    assert "calls10−1" in page and "time1.00 s3.50 s+2.50 s" in page and "model" in page


def test_a_price_is_compared_where_there_is_one_or_should_be() -> None:
    assert "cost" not in page_of(writes("x"), writes("x"))
    assert "costnot knownnot knownsame" in page_of(writes("x", real=True), writes("x", real=True))


def test_prompts_and_answers_are_marked_word_by_word() -> None:
    html = to_html(view(compare(writes("x", prompt="sum of May"), writes("x", prompt="sum of June"))))
    assert "sum of <strong>May</strong>" in html and "sum of <strong>June</strong>" in html
    text = text_of(writes("x", answer="four rows"), writes("x", answer="five rows"))
    assert "a: four rows" in text and "b: five rows" in text, "each is whole where no marks are drawn"


def test_calls_are_aligned_and_those_that_differ_are_opened_up() -> None:
    page = page_of(writes("one\ntwo\n"), writes("one\nthree\n"))
    assert "other arguments" in page and "two" in page and "three" in page


def test_long_results_are_compared_line_by_line() -> None:
    lines = [f"line {n}" for n in range(200)]
    a = trace(call(1, "file__read", {}, "\n".join(lines)))
    b = trace(call(1, "file__read", {}, "\n".join([*lines[:99], "another", *lines[100:]])))
    page = page_of(a, b)
    assert "− only in a (1), + only in b (1)" in page
    assert "- line 99" in page and "+ another" in page and "line 50" not in page


def test_runs_by_hand_and_runs_that_stop_are_compared_too() -> None:
    manual = trace(call(1, "file__read", {}), text=None, run_kind="manual", answer="")
    cut = Trace.from_events(manual.events[:-1])
    page = page_of(manual, cut)
    assert "✗ cut off" in page and "tokens" not in page
    assert "no calls" in page_of(trace(text=None), trace(text=None))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts(text: str) -> None:
    other = every_kind(text + "!")["trace"]
    html = to_html(view(compare(every_kind(text)["trace"], other)))
    for tag, attributes in Reader(html).tags:
        assert tag in ALLOWED and set(attributes) <= ALLOWED[tag]
    assert not set(html) & set("\x1b\u202e\u2066\u200b\ufeff\x9b")


def test_two_very_long_runs_stay_within_the_budget_and_say_what_was_left_out() -> None:
    def long(word: str) -> Trace:
        calls = [call(n, "file__read", {"path": f"{word} {n} " * 40}, f"{word}\n" * 400) for n in range(400)]
        return trace(*calls, answer=f"{word} " * 20_000)

    diff = compare(long("one"), long("other"))
    html = to_html(view(diff))
    assert len(html.encode()) <= HTML_BYTES
    assert "400 pairs" in Reader(html).text and ".df" in Reader(html).text


def test_what_is_too_long_to_be_compared_says_so() -> None:
    assert "answer: too long to compare here" in text_of(trace(answer="x" * 300_000), trace(answer="y\nz"))
