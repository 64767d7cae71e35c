"""How a run ended is what its record shows: a model that says it looked, or is done, does not count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reyn_jupyter.models.written_calls import is_call
from reyn_jupyter.notebook.render import to_text, view
from reyn_jupyter.runtime.record.events import ActionResolved, Event, ModelReplied
from reyn_jupyter.runtime.record.run_outcome import RunOutcome
from reyn_jupyter.runtime.record.trace import Trace
from tests.notebook.render.samples import call, invoked, trace

QUERY = call(1, "table__query", invoked("table__query", sql="select 1"))
LISTING = call(1, None, {"category": ["table"]}, wrapper="list_actions")
FAILED = call(1, "table__query", invoked("table__query"), ok=False, error="SQL: no such column")
DENIED = call(
    1, "file__write", invoked("file__write"), ok=False, error="Denied.", decision=("denied", "person", None)
)
INSPECTED = call(1, None, {"blob_id": "b"}, wrapper="inspect", sources=({"kind": "blob", "name": "b"},))
WRITTEN = call(1, "file__write", invoked("file__write"), changes=({"path": "a", "sha256": "f"},))


def remembered() -> list[Event]:
    resolved, finished = call(1, "memory_operation__remember", invoked("memory_operation__remember"))
    assert isinstance(resolved, ActionResolved)
    return [replace(resolved, purity="write"), finished]


@pytest.mark.parametrize(
    ("calls", "given", "outcome"),
    [
        ((QUERY,), {}, RunOutcome.FROM_DATA),
        ((INSPECTED,), {}, RunOutcome.FROM_DATA),
        ((), {"sent": ({"kind": "variable", "name": "orders", "bytes": 9},)}, RunOutcome.FROM_DATA),
        ((WRITTEN,), {}, RunOutcome.CHANGED),
        ((remembered(),), {}, RunOutcome.CHANGED),
        ((), {}, RunOutcome.WITHOUT_DATA),
        ((LISTING,), {}, RunOutcome.WITHOUT_DATA),
        ((FAILED,), {}, RunOutcome.WITHOUT_DATA),
        ((), {"history_tokens": 90}, RunOutcome.FROM_CONVERSATION),
        ((DENIED,), {}, RunOutcome.DENIED),
        ((), {"answer": "  "}, RunOutcome.NO_ANSWER),
        ((QUERY,), {"status": "limit"}, RunOutcome.LIMIT),
        ((QUERY,), {"status": "error", "error": "gone"}, RunOutcome.ERROR),
        ((QUERY,), {"status": "interrupted"}, RunOutcome.INTERRUPTED),
        ((QUERY,), {"text": None, "run_kind": "manual"}, RunOutcome.CALLED),
        ((FAILED,), {"text": None, "run_kind": "manual"}, RunOutcome.CALL_FAILED),
        ((DENIED,), {"text": None, "run_kind": "manual"}, RunOutcome.DENIED),
    ],
)
def test_the_record_decides_how_a_run_ended(
    calls: tuple[list[Event], ...], given: dict[str, Any], outcome: RunOutcome
) -> None:
    assert trace(*calls, **given).outcome is outcome


def test_an_invented_figure_is_no_answer_from_data() -> None:
    run = trace(answer="The mean amount by product is 30.00. I queried the table and checked it. ✓ done")
    assert run.outcome is RunOutcome.WITHOUT_DATA


def test_a_record_without_an_end_runs_or_was_cut_off() -> None:
    whole = trace(QUERY)
    assert Trace.from_events(whole.events[:-1]).outcome is RunOutcome.RUNNING


def stopped_by(run: Trace, reason: str) -> Trace:
    """The same run whose model stopped for a reason."""
    return Trace.from_events(
        [
            replace(event, finish_reason=reason) if isinstance(event, ModelReplied) else event
            for event in run.events
        ]
    )


def test_passages_that_may_be_no_answer_have_a_neutral_badge() -> None:
    run = stopped_by(trace(QUERY), "nearest")
    assert run.outcome is RunOutcome.NEAREST_PASSAGE
    said = to_text(view(run))
    assert "[nearest passages]" in said and "answered from data" not in said


def test_an_answer_that_only_asks_is_a_question_back_whatever_was_looked_at() -> None:
    asked = (
        "Which column do you mean?",
        "Do you mean?\n- `a`\n- `b`",
        "**Which one?** Or both?",
        "1 row or 2?",
    )
    for answer in asked:
        for calls in ((QUERY,), (INSPECTED,), (LISTING,), ()):
            run = trace(*calls, answer=answer)
            assert run.outcome is RunOutcome.ASKED_BACK, answer
            assert "✓" not in to_text(view(run)).splitlines()[0]
    for answer in (
        "It is 4. Shall I plot it?",
        "What is it? It is 4.",
        "| a |\n| --- |\n| 1? |",
        "It is 4.",
        "a?b",
    ):
        assert trace(QUERY, answer=answer).outcome is RunOutcome.FROM_DATA, answer


@pytest.mark.parametrize("reason", ["refusal", "content_filter"])
def test_a_refusal_of_the_model_is_one(reason: str) -> None:
    assert stopped_by(trace(QUERY), reason).outcome is RunOutcome.DECLINED


def test_an_answer_that_was_cut_off_at_the_limit_of_tokens_is_none_from_data() -> None:
    for calls in ((QUERY,), (WRITTEN,), ()):
        cut = stopped_by(trace(*calls, answer="It is 4. It is 4. It is"), "length")
        assert cut.outcome is RunOutcome.RAN_ON
        said = to_text(view(cut))
        assert "[! ran on until the limit of tokens]" in said
        assert "The model wrote on until its limit of tokens, so this answer has no end." in said
    written = '{"name": "list_actions", "arguments": {}}'
    assert stopped_by(trace(answer=written), "length").outcome is RunOutcome.CALL_AS_TEXT
    stopped = stopped_by(trace(QUERY, status="limit"), "length")
    assert stopped.outcome is RunOutcome.LIMIT


@pytest.mark.parametrize(
    "answer",
    [
        '{"name": "invoke_action", "arguments": {"action_name": "table__query"}}',
        '```json\n{"action_name": "table__query", "args": {"sql": "select 1"}}\n```',
        '[{"name": "list_actions", "parameters": {}}]',
        '<tool_call>\n{"name": "list_actions"}\n</tool_call>',
        "[TOOL_CALLS] [{}]",
        '<|python_tag|>table.query("x")',
        "Action: table__query\nAction Input: {}",
        "file__read(path='a.txt')",
    ],
)
def test_a_call_written_as_text_is_no_answer(answer: str) -> None:
    assert trace(answer=answer).outcome is RunOutcome.CALL_AS_TEXT


@pytest.mark.parametrize(
    "answer",
    [
        "It is 4.",
        '{"mean": 30.0}',
        "[1, 2, 3]",
        "[]",
        'Call it like this: `{"name": "invoke_action", "arguments": {}}`.',
        "```python\nprint(1)\n```",
        "df.head(n=3)",
        "{" * 5000,
        "[" * 100_000,
        "",
    ],
)
def test_prose_and_data_are_answers(answer: str) -> None:
    assert not is_call(answer)
