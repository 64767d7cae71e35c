"""Two runs side by side: which calls belong together, and what of them is the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.runtime.record.compare import RunDiff, compare
from reyn_jupyter.runtime.record.trace import Trace
from tests.notebook.render.samples import call, invoked, trace

OLD = "0198c0de-aaaa-7000-8000-000000000001"
NEW = "0198c0de-bbbb-7000-8000-000000000002"


def reads(*paths: str, output: str = "done", **about: Any) -> Trace:
    calls = [call(n, "file__read", invoked("file__read", path=path), output) for n, path in enumerate(paths)]
    return trace(*calls, **about)


def same(diff: RunDiff) -> list[str]:
    return [pair.same for pair in diff.pairs]


def test_equal_runs_are_equal_whatever_their_ids_and_times() -> None:
    diff = compare(reads("a", "b"), reads("a", "b", run="run-2", seconds=9.0))
    assert diff.equal and same(diff) == ["same", "same"]


def test_equal_calls_belong_together_before_those_of_the_same_action() -> None:
    diff = compare(reads("a", "b"), reads("b", "c"))
    assert same(diff) == ["only in a", "same", "only in b"]


def test_calls_of_the_same_action_are_paired_and_say_what_differs() -> None:
    assert same(compare(reads("a"), reads("b"))) == ["other arguments"]
    assert same(compare(reads("a", output="1"), reads("a", output="2"))) == ["other result"]


def test_the_ids_of_stored_results_are_no_difference() -> None:
    diff = compare(reads("a", output=f"Rows.\n[blob:{OLD}]"), reads("a", output=f"Rows.\n[blob:{NEW}]"))
    assert same(diff) == ["same"]


def test_a_call_that_did_not_come_back_differs_from_one_that_did() -> None:
    whole = reads("a")
    cut = Trace.from_events([event for event in whole.events if type(event).__name__ != "ActionFinished"])
    assert same(compare(whole, cut)) == ["other result"]


def test_a_run_without_a_step_stands_beside_any_other() -> None:
    empty = Trace.from_events([replace(reads().started, prompt="x"), reads().events[-1]])
    assert same(compare(empty, reads("a"))) == ["only in b"]
    assert compare(empty, empty).equal and len(compare(empty, empty)) == 2


def test_it_is_a_table_of_prompt_calls_and_answer() -> None:
    diff = compare(reads("a", answer="one"), reads("a", answer="two"))
    assert [row["step"] for row in diff] == ["prompt", "1", "answer"]
    assert [row["same"] for row in diff.rows] == ["same", "same", "differs"]
    assert diff[-1]["b"] == "two" and len(diff) == 3 and list(diff.df["same"])[-1] == "differs"
    assert diff.payload["total"] == 3 and not diff.equal


@given(a=st.lists(st.sampled_from("abc"), max_size=8), b=st.lists(st.sampled_from("abc"), max_size=8))
def test_every_call_of_both_runs_stands_in_one_pair_and_in_order(a: list[str], b: list[str]) -> None:
    left, right = reads(*a), reads(*b, run="run-2")
    diff = compare(left, right)
    assert [pair.a for pair in diff.pairs if pair.a] == list(left.calls)
    assert [pair.b for pair in diff.pairs if pair.b] == list(right.calls)
    assert all(pair.label == "file__read" for pair in diff.pairs)
