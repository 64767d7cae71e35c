"""A run as people read it: the answer first, what was done, what was sent, and how it ended, plainly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
from reyn_jupyter.runtime.record.events import ActionProgressed, Event, RequestSent
from reyn_jupyter.runtime.record.trace import Trace
from tests.notebook.render.samples import (
    BLOB,
    NOW,
    Reader,
    asked,
    call,
    invoked,
    running,
    said,
    started,
    trace,
)


def text_of(run: Trace, tail: str | None = None) -> str:
    return to_text(view(run, tail=tail, now=NOW + 5))


def page_of(run: Trace, tail: str | None = None) -> str:
    return Reader(to_html(view(run, tail=tail, now=NOW + 5))).text


def facts_of(run: Trace) -> str:
    """The line under an answer, and the one beside the heading of its details."""
    lines = text_of(run).split("\n")
    return (
        next(line for line in lines if " · sent " in line) + "\n" + next(x for x in lines if "▸ Details" in x)
    )


def test_the_head_says_who_answered_and_what_the_answer_rests_on() -> None:
    shown = view(
        trace(call(1, "f__x", invoked("f__x")), text="openai/gpt-4o-mini", real=True, host="api.openai.com")
    )
    assert shown.title == "openai/gpt-4o-mini"
    assert [badge.text for badge in shown.badges] == ["✓ answered from data"] and not shown.facts


def test_the_line_under_an_answer_says_what_it_cost_and_the_details_how_it_was_found() -> None:
    run = trace(text="openai/gpt-4o-mini", real=True, host="api.openai.com", turn=3, history_tokens=2000)
    assert facts_of(run) == (
        "1.20 s · price not known · sent nothing\n"
        "▸ Details  1 step · 0 calls · 100 tokens · turn 3, 2,000 tokens of history, --new starts afresh"
    )


def test_a_short_history_is_no_reason_to_start_afresh() -> None:
    assert facts_of(trace(turn=2, history_tokens=1999)).endswith("turn 2, 1,999 tokens of history")


def test_what_failed_and_was_denied_is_counted_beside_what_did_not() -> None:
    denied = call(
        2,
        "file__write",
        invoked("file__write"),
        ok=False,
        error="Denied.",
        decision=("denied", "person", None),
    )
    failed = call(3, "f__y", invoked("f__y"), ok=False, error="no")
    assert "1 call · 1 denied · 1 failed" in facts_of(trace(call(1, "f__x", invoked("f__x")), denied, failed))


def test_the_line_under_an_answer_tells_stored_results_by_their_number_and_none_that_the_run_made() -> None:
    earlier, own = "01a1f95c-1c9b-754c-9afc-b4b9c3b12d96", "01a1f95c-1c9b-754c-9afc-b4b9c3b12d97"
    source = {"kind": "variable", "name": "orders", "rows": 500}
    made = call(1, "table__query", invoked("table__query"), blob=own, sources=(source,))
    read = call(2, "f__x", invoked("f__x"), sources=({"kind": "blob", "name": own},))
    assert facts_of(trace(made, read)).startswith("orders, 500 rows · 2 calls")
    other = call(3, "f__x", invoked("f__x"), sources=({"kind": "blob", "name": earlier},))
    assert facts_of(trace(made, read, other)).startswith("orders, 500 rows · 1 stored result · 3 calls")


def test_an_answer_without_data_is_amber_and_says_so_in_words() -> None:
    shown = view(trace(answer="The mean is 30.00."), now=NOW)
    assert shown.badges[0].text == "! answered without any data" and shown.badges[0].tone == "warn"
    assert "nothing here was checked" in text_of(trace(answer="The mean is 30.00."))


@pytest.mark.parametrize(
    ("model", "discovery", "is_told"),
    [
        ("local/smollm2", "prompt", True),
        ("local/smollm2", "two_steps", False),
        ("openai/gpt-4o", "prompt", False),
    ],
)
def test_a_model_from_a_file_that_looked_at_nothing_is_sent_to_two_steps(
    model: str, discovery: str, is_told: bool
) -> None:
    run = trace(answer="def mean(…)", model=model, settings={"discovery": discovery})
    assert ("%reyn config router.discovery two_steps" in text_of(run)) == is_told
    found = trace(call(1, "f__x", invoked("f__x")), model=model, settings={"discovery": discovery})
    assert "two_steps" not in text_of(found)


def test_estimated_tokens_and_costs_say_that_they_are() -> None:
    events = [started(real=True), asked(1), said(1, estimated=True, cost=0.0031, completion_tokens=40)]
    facts = facts_of(Trace.from_events(events))
    assert "≈ 140 tokens" in facts and "$0.0031" in facts


def test_what_is_no_language_model_says_so() -> None:
    assert "[not a language model]" in text_of(trace())
    assert "not a language model" not in text_of(trace(real=True))


def test_the_answer_comes_before_the_steps() -> None:
    page = page_of(trace(call(1, "file__read", invoked("file__read", path="a"))))
    assert page.index("It is 4.") < page.index("Step 1")


def out(host: str, step: int = 1, size: int = 2000) -> list[Event]:
    return [RequestSent(step=step, at=NOW, host=host, size=size)]


def test_nothing_sent_is_said_and_what_was_sent_is_listed_with_its_host() -> None:
    sent = {"sent": ({"kind": "variable", "name": "orders", "bytes": 120},)}
    assert "nothing left the kernel" in text_of(trace(host="api.x.org"))
    said = text_of(trace(host="api.x.org", **sent))
    assert "nothing left the kernel; read here: orders (variable, 120 bytes)" in said
    said = text_of(trace(out("api.x.org"), **sent))
    assert "2.0 KB to api.x.org: orders (variable, 120 bytes)" in said
    assert "to api.x.org: the conversation alone" in text_of(trace(out("api.x.org")))
    assert "2.0 KB to 127.0.0.1:80 on this machine: the conv" in text_of(trace(out("127.0.0.1:80")))


def test_files_that_a_call_read_count_as_sent_once_a_request_carried_them() -> None:
    read = call(
        1,
        "file__read",
        invoked("file__read", path="a"),
        "12345",
        sources=({"kind": "file", "name": "a.csv"},),
    )
    assert "to h: the conversation alone" in text_of(trace([*out("h"), *read]))
    assert "to h: a.csv (file, 5 bytes)" in text_of(trace([*out("h"), *read, *out("h", 2)]))


def test_a_call_shows_its_action_state_flags_and_time_on_one_line() -> None:
    line = call(1, "table__query", invoked("table__query", sql="select 1"), flags=("decoded",))
    assert '▸ table__query {"sql": "select 1"}  [✓ ok]  [decoded]  20 ms' in text_of(trace(line))


def test_arguments_that_came_as_text_are_shown_as_what_they_were_taken_for() -> None:
    given = {"action_name": "f__x", "args": '{"a": 1}'}
    assert 'f__x {"a": 1}' in text_of(trace(call(1, "f__x", given, flags=("decoded",))))


@pytest.mark.parametrize(
    ("problem", "words"),
    [("unknown", "✗ unknown action"), ("malformed", "✗ malformed call"), ("invalid", "✗ invalid arguments"),
     ("stale", "✗ old name"), ("gated", "↷ sent to the listing first"), ("not_installed", "✗ not installed")],
)  # fmt: skip
def test_a_problem_is_named_in_words(problem: str, words: str) -> None:
    failed = call(
        1, None, invoked("fiel__read"), ok=False, error="Unknown action 'fiel__read'", problem=problem
    )
    text = text_of(trace(failed))
    assert f"[{words}]" in text and "fiel__read Unknown action 'fiel__read'" in text


def test_a_denial_says_who_denied() -> None:
    denied = call(
        1, "exec__run", invoked("exec__run"), ok=False, error="Denied.", decision=("denied", "nobody", None)
    )
    page = page_of(trace(denied))
    assert "⊘ denied" in page and "denied: nobody was there to ask (write report.md)" in page


def test_a_stored_result_offers_the_line_that_opens_it() -> None:
    stored = call(
        1, "table__query", invoked("table__query"), blob=BLOB, content_kind="json_array", size=18231
    )
    page = page_of(trace(stored))
    assert "blob: json array, 18.2 KB" in page and f"%reyn inspect {BLOB}" in page


def test_an_edit_shows_what_changed_in_the_file_as_it_was(tmp_path: Path) -> None:
    store = FsBlobStore(tmp_path)
    before = store.put_bytes(b"one\ntwo\nthree\nfour\n").id
    change = ({"path": "notes.md", "previous_blob": before, "sha256": "f"},)
    edit = call(
        1,
        "file__edit",
        invoked("file__edit", path="notes.md", old_string="three", new_string="3"),
        changes=change,
    )
    text = text_of(trace(edit, blobs=store))
    assert "notes.md (changed, +1 −1)" in text
    assert "@@ -1,4 +1,4 @@" in text and "- three" in text and "+ 3" in text
    assert "file__edit notes.md changed, +1 −1  [✓ ok]" in text


def test_an_edit_whose_file_is_no_longer_at_hand_still_shows_the_piece() -> None:
    change = ({"path": "notes.md", "previous_blob": BLOB, "sha256": "f"},)
    edit = call(1, "file__edit", invoked("file__edit", old_string="three", new_string="3"), changes=change)
    assert "- three" in text_of(trace(edit))


def test_a_new_file_and_a_deleted_one_and_a_lost_one_are_told_apart(tmp_path: Path) -> None:
    store = FsBlobStore(tmp_path)
    old = store.put_bytes(b"gone\n").id
    made = call(1, "file__write", invoked("file__write", content="new\n"),
                changes=({"path": "a", "previous_blob": None, "sha256": "f"},))  # fmt: skip
    gone = call(
        2,
        "file__delete",
        invoked("file__delete"),
        changes=({"path": "b", "previous_blob": old, "sha256": None},),
    )
    lost = call(3, "file__write", invoked("file__write", content="x"),
                changes=({"path": "c", "previous_blob": BLOB, "sha256": "f"},))  # fmt: skip
    text = text_of(trace(made, gone, lost, blobs=store))
    assert "a (created, +1 −0)" in text and "b (deleted, +0 −1)" in text
    assert "c (changed)" in text and "not at hand here; %reyn undo restores it" in text


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("interrupted", "You interrupted this run"),
        ("limit", "stopped at a limit"),
        ("cancelled", "was cancelled"),
    ],
)
def test_a_run_that_was_cut_short_says_so_and_keeps_what_it_did(status: str, words: str) -> None:
    run = trace(
        call(1, "file__read", {}),
        status=status,
        answer="",
        error="8 steps were used up.",
        hint="Ask for less.",
    )
    text = text_of(run)
    assert (
        words in text and "8 steps were used up." in text and "Ask for less." in text and "file__read" in text
    )


def test_a_record_without_an_end_says_that_it_stops() -> None:
    text = text_of(running(call(1, "file__read", {})))
    assert "[✗ cut off]" in text and "The record stops here" in text


def test_a_running_run_shows_its_step_its_text_and_its_clock() -> None:
    waiting = Trace.from_events([started(), asked(1)])
    assert "Step 1: waiting for offline …" in text_of(waiting, tail="")
    assert "waiting for offline … · 0:05" in text_of(waiting, tail="")
    assert "waiting for offline … · 1:02:05" in to_text(view(waiting, tail="", now=NOW + 3725))
    busy = running(call(1, "file__read", {})[:1])
    text = text_of(busy, tail="The mean is")
    assert "[… running]" in text and "Step 1: running file__read …" in text and "The mean is" in text
    assert "Interrupt the cell to stop." in text


def test_a_model_that_failed_says_why() -> None:
    events = [started(), asked(1), said(1, error="the key was refused", error_kind="auth")]
    assert "the model failed: the key was refused" in text_of(Trace.from_events(events), tail="")


def test_mandates_notes_and_prompt_are_there() -> None:
    run = trace(mandates=("list first", "edit, never rewrite"), notes=("Old results shrank to their stubs.",))
    text, page = text_of(run), page_of(run)
    assert "mandates in force  list first, edit, never rewrite" in text
    assert "Old results shrank to their stubs." in text
    assert "What is the mean value?" in page


def test_a_call_by_hand_has_no_model_and_sent_nothing() -> None:
    text = text_of(
        trace(call(1, "file__read", invoked("file__read", path="a")), text=None, run_kind="manual", answer="")
    )
    assert text.startswith("file__read  [✓ ok]  [by hand]")
    assert "sent" not in text and "tokens" not in text


def under_way(message: str, done: float | None = None, total: float | None = None) -> Trace:
    resolved = call(1, "file__read", invoked("file__read", path="a"))[0]
    progressed = ActionProgressed(call=resolved.call, at=NOW, message=message, done=done, total=total)
    return Trace.from_events([started(), asked(1), said(1), resolved, progressed])


def test_a_call_under_way_shows_a_bar_with_its_words() -> None:
    run = under_way("page 12", 12, 40)
    for shown in (text_of(run, ""), page_of(run, "")):
        assert "page 12 (12 of 40)" in shown and "30 %" in shown
    assert "<svg" in to_html(view(run, tail="", now=NOW + 5))
    more_than_all = text_of(under_way("", 50, 40), "")
    assert "100 %" in more_than_all and "50 of 40" in more_than_all


def test_a_call_that_does_not_know_of_how_much_says_what_it_does() -> None:
    assert "looking around" in text_of(under_way("looking around"), "")
    assert "page 12 (12)" in text_of(under_way("page 12", 12), "")


def test_words_of_progress_are_shown_as_text() -> None:
    run = under_way("<img src=x onerror=alert(1)> \x1b[31mred \u202egnp", 1, 2)
    page = to_html(view(run, tail="", now=NOW + 5))
    assert "<img" not in page and "\x1b" not in page and "\u202e" not in page
    shown = text_of(run, "")
    assert "\x1b" not in shown and "\u202e" not in shown and "<img src=x" in shown


def test_a_partial_result_is_said_to_be_one() -> None:
    resolved, finished = call(1, "file__read", invoked("file__read", path="a"), ok=False)
    run = Trace.from_events([started(), asked(1), said(1), resolved, replace(finished, partial=True)])
    for shown in (text_of(run), page_of(run)):
        assert "partial result" in shown
