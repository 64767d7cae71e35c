"""Which calls a gold accepts: the conventions of BFCL's labelled calls, and one call a step."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reyn_jupyter.evaluation.checks.call_matching import (
    fault,
    maximum_matching,
    serve,
    standard_text,
    value_matches,
)
from reyn_jupyter.evaluation.models.gold_arguments import gold_arguments, written_out
from reyn_jupyter.evaluation.plan.scenario import Gold, Scenario
from reyn_jupyter.evaluation.suites import load_suite
from tests.evaluation.checks.check_support import (
    ARGUMENTS,
    NUMBERS,
    READ,
    SCALARS,
    TEXTS,
    VALUES,
    accepts,
    invoked,
    needs,
)

ANY = Scenario(id="s", family="f", prompts={"natural": "Hi"})


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        ("april 1 2024", "April 1, 2024"),
        ("NEW_YORK", "new york"),
        ("it's", 'it"s'),
        ("Sa\u0303o Paulo", "S\u00e3o Paulo"),  # one sign or two, the same letter
        (5, 5.0),
        (5.0, 5),
        (None, None),
        (True, True),
        ("", ""),
        ([1, "A b"], [1.0, "a-b"]),
        ([], []),
        ({"lateral": 10.5}, {"lateral": [10.5, 11]}),
        ({"lateral": 10.5}, {"lateral": 10.5}),
        ({"a": 1}, {"a": [1], "b": ["", 2]}),
        ({"John": ["2 of hearts", "3 of clubs"]}, {"John": [["2 of hearts", "3 of clubs"]]}),
        ([{"x": 1}, {"x": 2}], [{"x": [1]}, {"x": [2, 3]}]),
    ],
)
def test_values_that_an_accepted_one_takes(value: Any, accepted: Any) -> None:
    assert value_matches(value, accepted)


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        (True, 1),
        (1, True),
        ([True], [1]),
        ("5", 5),
        (5, "5"),
        (".", ""),
        ("-", "."),
        ("2024-04-01", "April 1, 2024"),  # dates are texts
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ("ab", ["a", "b"]),
        ({"a": 1, "z": 2}, {"a": [1]}),
        ({}, {"a": [1]}),
        ({"a": 2}, {"a": [1]}),
        (None, ""),
        ("none", None),
        ([], {}),
    ],
)
def test_values_that_an_accepted_one_refuses(value: Any, accepted: Any) -> None:
    assert not value_matches(value, accepted)


@given(SCALARS | st.lists(SCALARS, max_size=4))
def test_a_plain_value_is_matched_by_itself(value: Any) -> None:
    assert value_matches(value, value)


@given(VALUES)
def test_what_a_gold_writes_out_is_matched_by_it(accepted: Any) -> None:
    assume(accepted != "" and not _only_leaves_out(accepted))
    assert value_matches(written_out(accepted), accepted)


def _only_leaves_out(accepted: Any) -> bool:
    """Whether some list in it stands where a dict has its choices and offers none."""
    if isinstance(accepted, dict):
        return any(value == [] or _only_leaves_out(value) for value in accepted.values())
    return isinstance(accepted, list) and any(_only_leaves_out(item) for item in accepted)


@given(TEXTS)
def test_the_standard_form_is_stable(text: str) -> None:
    assert standard_text(standard_text(text)) == standard_text(text)


@given(NUMBERS, st.booleans())
def test_a_truth_value_is_never_a_number(number: float, truth: bool) -> None:
    assert not value_matches(truth, number)
    assert not value_matches(number, truth)


@given(st.dictionaries(st.sampled_from("abcd"), SCALARS.filter(lambda value: value != ""), min_size=1))
def test_a_needed_argument_that_is_left_out_never_matches(args: dict[str, Any]) -> None:
    accepted = accepts(**{name: (value,) for name, value in args.items()})
    assert fault(invoked(1, args=args), accepted) is None
    for name in args:
        rest = {key: value for key, value in args.items() if key != name}
        found = fault(invoked(1, args=rest), accepted)
        assert found is not None and (found.kind, found.argument) == ("omitted", name)


@given(st.dictionaries(TEXTS, SCALARS, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_keys_makes_no_difference(value: dict[str, Any], random: Any) -> None:
    keys = list(value)
    random.shuffle(keys)
    accepted = {key: [one] for key, one in value.items()}
    assert value_matches({key: value[key] for key in keys}, accepted)
    call = accepts(exact=True, **{f"a{key}": (one,) for key, one in value.items()})
    assert fault(invoked(1, args={f"a{key}": value[key] for key in keys}), call) is None


def test_an_argument_may_be_left_out_only_where_the_marker_says_so() -> None:
    call = accepts(path=("a.md",), limit=(20, ""))
    assert fault(invoked(1, args={"path": "a.md"}), call) is None
    assert fault(invoked(1, args={"path": "a.md", "limit": 20}), call) is None
    wrong = fault(invoked(1, args={"path": "a.md", "limit": 21}), call)
    assert wrong is not None and wrong.kind == "value" and "limit was 21, not 20" in wrong.reason


def test_an_argument_that_is_not_named_is_wrong_only_in_an_exact_gold() -> None:
    args = {"path": "a.md", "offset": 3}
    assert fault(invoked(1, args=args), accepts(path=("a.md",))) is None
    extra = fault(invoked(1, args=args), accepts(exact=True, path=("a.md",)))
    assert extra is not None and (extra.kind, extra.argument) == ("extra", "offset")


@pytest.mark.parametrize("args", ["a.md", ["a.md"], 3])
def test_arguments_that_are_no_object_are_no_match(args: Any) -> None:
    found = fault(invoked(1, args=args), accepts())
    assert found is not None and found.kind == "not_an_object"


@given(st.lists(st.lists(st.integers(0, 4), max_size=5), max_size=5))
def test_no_other_matching_is_larger(edges: list[list[int]]) -> None:
    found = maximum_matching(edges)
    taken = [right for right in found if right is not None]
    assert len(set(taken)) == len(taken)
    assert all(right in edges[left] for left, right in enumerate(found) if right is not None)
    best = max(
        sum(right in edges[left] for left, right in enumerate(order))
        for order in itertools.permutations(range(max(5, len(edges))), len(edges))
    )
    assert len(taken) == best


def test_a_thousand_steps_in_a_row_are_matched_without_recursion() -> None:
    size = 2000
    edges = [[left, left + 1] for left in range(size - 1)] + [[0]]
    assert None not in maximum_matching(edges)


def test_each_call_serves_one_step() -> None:
    task = needs(accepts(path=("a.md", "b.md")), accepts(path=("a.md",)))
    once = [invoked(1, args={"path": "a.md"})]
    both = [*once, invoked(1, args={"path": "b.md"})]
    assert serve(task.gold, once).count == 1
    assert serve(task.gold, both).by == (1, 0)  # the first step yields a.md, which the second one needs
    assert serve(task.gold, once, arguments=False).count == 1


def test_a_step_that_is_not_served_says_why() -> None:
    task = needs(accepts(path=("a.md",)), accepts("memory__recall"))
    served = serve(task.gold, [invoked(1, args={"path": "z.md"})])
    assert served.faults == {
        0: f"{READ}: path was 'z.md', not 'a.md'",
        1: "memory__recall was not called",
    }


def test_any_way_of_a_step_counts() -> None:
    step = (accepts(path=("a.md",)), accepts("file__grep", pattern=("total",)))
    gold = Gold(steps=(step,))
    assert serve(gold, [invoked(1, "file__grep", args={"pattern": "TOTAL"})]).complete


@given(ARGUMENTS, ARGUMENTS)
def test_matching_never_raises(args: dict[str, Any], gold: dict[str, Any]) -> None:
    call = accepts(exact=True, **{name: (value,) for name, value in gold.items()})
    fault(invoked(1, args=args), call)


def test_each_labelled_call_of_bfcl_is_matched_whole_and_in_no_other_way() -> None:
    """Written out, a shipped call matches; with an argument dropped, added or changed it does not."""
    seen = 0
    for task in load_suite("arguments").scenarios:
        for call in (step[0] for step in task.gold.steps):
            args = gold_arguments(call, task, {})
            assert fault(invoked(1, call.action, args=args), call) is None, (task.id, args)
            extra = fault(invoked(1, call.action, args={**args, "not_asked_for": 1}), call)
            assert extra is not None and extra.kind == "extra"
            for name, accepted in call.args.items():
                seen += 1
                changed = fault(invoked(1, call.action, args={**args, name: {"no": "such value"}}), call)
                assert changed is not None and (changed.kind, changed.argument) == ("value", name)
                rest = {key: value for key, value in args.items() if key != name}
                dropped = fault(invoked(1, call.action, args=rest), call)
                assert (dropped is None) == ("" in accepted)
    assert seen > 500


def test_arguments_of_any_depth_and_size_are_told_in_a_line() -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    for value in (deep, "x" * 100_000, 10**5000, {"k": deep}):
        found = fault(invoked(1, args={"path": value}), accepts(path=("a.md",)))
        assert found is not None and found.kind == "value" and len(found.reason) < 200


def test_a_gold_writes_out_a_call_that_the_schema_takes() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "unit": {"enum": ["km", "mi"]}, "note": {"type": "string"}},
        "required": ["n", "unit", "note"],
    }
    call = accepts("tool__go", n=("five", 5), note=("",), limit=("",))
    assert gold_arguments(call, ANY, schema) == {"n": 5, "unit": "km", "note": ""}
