"""However much there is to show, a display stays small, and says what it left out and how to see it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.notebook.render.hosts.fit import byte_size, share_fairly
from reyn_jupyter.outputs.content import Structured, Text
from reyn_jupyter.runtime.record.compare import compare
from reyn_jupyter.runtime.record.script import Script
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.result_objects import (
    ActionCard,
    ActionTable,
    Card,
    CatalogExplorer,
    Inspection,
    Result,
    Table,
)
from tests.notebook.render.samples import Reader, blob, call, every_kind, invoked, row, running, trace

LONG = "漢<&> " * 200_000


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"end": 1}
    for _ in range(levels):
        value = {"inner": value, "beside": "x" * 300}
    return value


def wide_schema() -> dict[str, Any]:
    return {
        "properties": {
            f"p{i}<": {"type": "object", "description": LONG[:5000], "properties": {"a": {}}}
            for i in range(999)
        }
    }


def long_diff(word: str) -> Trace:
    text = f"{word} <&>\n" * 3000
    calls = [call(i, "file__read", invoked("file__read", path=f"{i}{text}"), text) for i in range(60)]
    return trace(*calls, prompt=text, answer=text, notes=(text,) * 99)


def huge() -> dict[str, Any]:
    calls = [
        call(i, "file__read", invoked("file__read", path=LONG), LONG, flags=("coerced",)) for i in range(5000)
    ]
    changed = call(1, "file__write", invoked("file__write", content=LONG[:90_000].replace(" ", "\n")), "ok",
                   changes=({"path": "a", "previous_blob": None, "sha256": "f"},) * 9)  # fmt: skip
    actions = ActionTable(
        {"total": 9999, "next_offset": 999, "categories": {f"c{i}": i for i in range(999)}},
        tuple(row(f"file__{i}", description=LONG, arguments=LONG) for i in range(999)),
    )
    long_run = trace(*calls, prompt=LONG, notes=(LONG,) * 99, mandates=(LONG,) * 99)
    return {
        "actions": actions,
        "explorer": CatalogExplorer(actions, LONG),
        "script": Script("run-1", LONG),
        "stored result": Result("f", LONG, None, blob(Structured([{"a": LONG[:3000]}] * 500))),
        "failed result": Result(
            LONG, {"error": LONG, "hint": LONG, "invalid": [{"path": LONG, "message": LONG}] * 99}
        ),
        "diff": compare(*(long_diff(word) for word in ("one", "other"))),
        "error": ActionTable({"error": LONG, "hint": LONG, "suggestions": ["x" * 999] * 999}),
        "card": ActionCard(
            {"qualified_name": "a__b", "description": LONG, "input_schema": wide_schema(), "metadata": {}}
        ),
        "frame": Result(
            "f", "x", pd.DataFrame({f"column {i} {'<' * 60}": ["<&>" * 200] * 1000 for i in range(500)})
        ),
        "numbers": Result("f", "x", np.zeros((1000, 10_000))),
        "tree": Result("f", "x", {f"k{i}": [LONG[:9000]] * 99 for i in range(9999)}),
        "deep": Result("f", "x", deep(900)),
        "text": Result("f", "x", LONG),
        "lines": Result("f", "x", ("<" * 500 + "\n") * 9999),
        "digits": Result("f", "x", [10**5000, -(10**300)]),
        "inspection": Inspection(LONG, None, "lines:1-9"),
        "blob array": blob(Structured([{"a": LONG[:3000]}] * 500)),
        "blob object": blob(Structured({f"k{i}": LONG[:3000] for i in range(500)})),
        "blob text": blob(Text(("&" * 900 + "\n") * 2000)),
        "table": Table("events", tuple({f"c{i}": LONG for i in range(40)} for _ in range(999)), LONG, LONG),
        "status": Card("status", LONG, ((LONG, LONG),) * 99, ((LONG, (LONG,) * 999),) * 30, (LONG,) * 99),
        "answer": trace(answer=LONG),
        "answer blocks": trace(answer="a\n\n" * 9000),
        "answer quotes": trace(answer=">" * 9000 + " x\n\n" + "- " * 3000 + "y\n\n" + "*" * 9000),
        "answer table": trace(
            answer="|" + "a|" * 300 + "\n|" + "-|" * 300 + "\n" + ("|" + "<|" * 300 + "\n") * 9
        ),
        "calls": long_run,
        "changes": trace(changed),
    }


HUGE = huge()


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_object_is_shown_within_the_budgets_and_says_that_it_was_cut(name: str) -> None:
    shown = view(HUGE[name])
    html, text = to_html(shown), to_text(shown)
    assert byte_size(html) <= 32 * 1024
    assert byte_size(text) <= 4 * 1024
    page = Reader(html)
    assert any(mark in page.text for mark in ("…", "all of it", "Too long", "digits>"))
    assert any(mark in text for mark in ("…", "all of it", "Too long", "digits>"))


def test_a_live_run_with_much_text_stays_small() -> None:
    shown = view(running(*[call(i, "f__x", invoked("f__x", a=LONG), LONG) for i in range(40)]), tail=LONG)
    assert byte_size(to_html(shown)) <= 32 * 1024 and byte_size(to_text(shown)) <= 4 * 1024


def test_a_diagnosis_keeps_its_facts_whatever_servers_wrote() -> None:
    facts = tuple((f"fact {n}", "a folder with a long name/" * 4) for n in range(12))
    sections = tuple((f"Model from {n}.gguf", ("a line of a log " * 9,) * 12) for n in range(6))
    shown = view(Card("doctor", "What is here", facts, sections))
    for text in (to_text(shown), to_html(shown)):
        assert all(label in text for label, _ in facts)
    assert "all of it: .payload" in to_text(shown)


def test_the_style_leaves_most_of_the_budget_to_the_content() -> None:
    assert byte_size(to_html(view(Card("status", "Ready")))) < 8 * 1024


@pytest.mark.parametrize("name", every_kind("x"))
def test_every_view_is_plain_json(name: str) -> None:
    shown = asdict(view(every_kind("x")[name]))
    assert json.loads(json.dumps(shown))["kind"] == shown["kind"]


def test_what_was_cut_names_its_knob() -> None:
    lines = Reader(to_html(view(Result("f", "x", "a\n" * 500)))).text
    assert "The first 40 of 500 lines; all of it: result.value" in lines
    rows = to_text(view(Result("f", "x", pd.DataFrame(np.zeros((30, 30))))))
    assert "the first 20 of 30 rows and the first 12 of 30 columns; all of it: result.value" in rows
    assert "all of it: trace.answer" in to_text(view(trace(answer="word " * 9000)))


def test_many_calls_show_the_first_and_the_last_and_count_the_rest() -> None:
    text = Reader(to_html(view(HUGE["calls"]))).text
    assert "4,970 more calls not shown here; all of them: trace.call_log" in text


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=30), st.integers(0, 50_000))
def test_shares_never_pass_the_limit_and_nobody_gets_more_than_they_need(
    sizes: list[int], limit: int
) -> None:
    shares = share_fairly(sizes, limit)
    assert sum(shares) <= limit
    assert all(share <= size for share, size in zip(shares, sizes, strict=True))
    if sum(sizes) <= limit:
        assert shares == sizes
