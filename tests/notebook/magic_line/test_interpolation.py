"""Variables in a prompt: named ones alone, once, bounded, and counted."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.interpolation import PREVIEW, TEXT, interpolate, preview
from reyn_jupyter.support.secrets import Redactor

REDACTOR = Redactor({"DEMO_API_KEY": "correct-horse-battery"})


class Hostile:
    """Whoever looks at it closely is punished."""

    def _punish(self, *args: object) -> Any:
        raise SystemExit("a method of the value was called")

    __repr__ = __str__ = __len__ = __iter__ = __eq__ = __bool__ = _punish
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise SystemExit(f"{name} was looked up")


def fill(text: str, names: tuple[str, ...] = (), **variables: Any) -> str:
    return interpolate(text, names, variables, REDACTOR)[0]


@given(st.text().filter(lambda text: "{{" not in text))
def test_a_prompt_without_holes_is_literal(text: str) -> None:
    assert fill(text, x=1) == text


@pytest.mark.parametrize(
    "text",
    [
        "{x}",
        "${x}",
        "f'{x!r}'",
        "{{x.y}}",
        "{{ x + 1 }}",
        "{{x[0]}}",
        "{{1x}}",
        "{{}}",
        "{%x%}",
        "{ {x} }",
        "\\n\\t{",
    ],
)
def test_what_is_no_name_in_double_braces_stays(text: str) -> None:
    assert fill(text, x=1) == text


def test_a_hole_is_filled_once() -> None:
    assert fill("first {{limit}} of {{ word }}", limit=3, word="{{limit}}") == "first 3 of {{limit}}"


def test_a_backslash_keeps_the_braces() -> None:
    assert fill("\\{{limit}} is {{limit}}", limit=3) == "{{limit}} is 3"


def test_named_variables_are_added_below_and_said_with_their_bytes() -> None:
    prompt, sent = interpolate("sum it", ("orders",), {"orders": [1, 2]}, REDACTOR)
    assert prompt.startswith("sum it\n\nThe variable orders:\n") and '"head":[1,2]' in prompt
    assert sent == [{"kind": "variable", "name": "orders", "bytes": len(preview([1, 2]))}]


def test_a_frame_is_described_by_its_schema_and_first_rows() -> None:
    frame = pd.DataFrame({"region": ["north", "south"] * 5000, "value": range(10_000)})
    text = preview(frame)
    assert '"shape":[10000,2]' in text and "north" in text and len(text) < PREVIEW
    assert len(frame) == 10_000


def test_a_hostile_object_is_named_by_its_type_and_never_asked() -> None:
    assert '"Hostile"' in fill("{{x}}", x=Hostile())
    assert '"Hostile"' in fill("{{x}}", x=[Hostile()])
    assert '"Hostile"' in fill("look", ("x",), x={"a": Hostile()})


def test_long_values_are_cut_and_say_so() -> None:
    assert f"(cut: the first {TEXT:,} of {2 * TEXT:,} characters)" in fill("{{x}}", x="a" * (2 * TEXT))
    assert len(preview({f"key {number}": "v" * 500 for number in range(1000)})) < PREVIEW + 100


@pytest.mark.parametrize(
    ("text", "names", "said"),
    [
        (
            "{{ordrs}}",
            (),
            "There is no variable 'ordrs'. Did you mean orders? To send the braces as they stand",
        ),
        ("x", ("ordrs",), "There is no variable 'ordrs'. Did you mean orders?"),
        ("x", ("df.head",), "'df.head' is no variable name."),
        ("x", ("a b",), "'a b' is no variable name."),
        ("{{api_key}}", (), "The variable 'api_key' looks like a secret"),
        ("x", ("note",), "The variable 'note' looks like a secret"),
    ],
)
def test_a_name_that_cannot_be_sent_is_an_error(text: str, names: tuple[str, ...], said: str) -> None:
    variables = {"orders": 1, "api_key": "x", "note": "it is correct-horse-battery"}
    with pytest.raises(ReynError) as caught:
        interpolate(text, names, variables, REDACTOR)
    assert str(caught.value).startswith(said)
