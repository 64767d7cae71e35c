"""Arguments that a prompt gives to a function are passed as they are written, or the call is declined."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reyn_jupyter as reyn

CALLS: list[dict[str, Any]] = []


def word_count(text: str) -> int:
    """Count the words of a text."""
    CALLS.append({"text": text})
    return len(text.split())


def total(a: float, b: float = 1, *, exact: bool = False, note: str | None = None) -> float:
    """Add two numbers."""
    CALLS.append({"a": a, "b": b, "exact": exact, "note": note})
    return a + b


def size(df, items: list = [], label: str = "x"):  # noqa: B006
    """Return the size of something."""
    CALLS.append({"df": df, "items": items, "label": label})
    return len(df)


def stamp() -> str:
    """Return a stamp."""
    CALLS.append({})
    return "S"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[reyn.Session]:
    root: Path = tmp_path_factory.mktemp("offline")
    made = reyn.Session(root, store="memory", namespace={"orders": [1, 2, 3]})
    for function in (word_count, total, size, stamp):
        made.action(function)
    yield made
    made.close()


def called(session: reyn.Session, prompt: str) -> dict[str, Any] | None:
    """Return the arguments that a prompt passed, or None if the model declined without a call."""
    CALLS.clear()
    trace = session.ask(prompt, new=True)
    assert (trace.outcome.value == "declined") == (CALLS == []), (prompt, trace.answer)
    return CALLS[-1] if CALLS else None


def test_given_arguments_are_passed_as_written(session: reyn.Session) -> None:
    cases: dict[str, dict[str, Any]] = {
        'call word_count with text="a b c"': {"text": "a b c"},
        "call word_count with text='it's a b'": {"text": "it's a b"},
        "call word_count with text=“a b c”": {"text": "a b c"},
        'call word_count with text="a"': {"text": "a"},
        'call word_count with text=""': {"text": ""},
        'call word_count with text="a \\"b\\" c"': {"text": 'a "b" c'},
        'call word_count with {"text": "a b"}': {"text": "a b"},
        'call word_count("a b c")': {"text": "a b c"},
        "call total with a=1,200 and b=-3": {"a": 1200, "b": -3},
        "call total(a=1e3, b=.5)": {"a": 1000.0, "b": 0.5},
        "call total with a=1 exact=yes note=null": {"a": 1, "exact": True, "note": None},
        "call size with df=orders": {"df": [1, 2, 3]},
        "call size with df=@orders and items=[1, 2]": {"df": [1, 2, 3], "items": [1, 2]},
        'call size with df="orders"': {"df": "orders"},
        "call stamp": {},
    }
    for prompt, expected in cases.items():
        found = called(session, prompt)
        assert found is not None and {key: found[key] for key in expected} == expected, prompt


def test_arguments_that_have_no_place_decline_the_call(session: reyn.Session) -> None:
    for prompt in (
        'call word_count with txt="a b c"',
        "call word_count with text=a b c",
        'call word_count with text="a" and text="b"',
        'call word_count with text="a b" loudly',
        'call word_count with text="a b" then email the result',
        "call total with a=1 c=5",
        "call total with a=1 b=x",
        "call total with a=1 exact=maybe",
        "call total 1 2 3",
        "call total with a=1,5",
        'call total with a="1,5"',
        "call total with a=nan",
        "call total with a=1 twice",
        'call total with {"a": 1, "c": 2}',
        "call size with df=nosuch",
        "call stamp with x=1",
        "call stamp with 5",
        'call stamp "today"',
    ):
        assert called(session, prompt) is None, prompt


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from("ab =,'()[]{}:.-é1"), max_size=12))
def test_quoted_text_reaches_the_function_unchanged(session: reyn.Session, text: str) -> None:
    found = called(session, f'call word_count with text="{text}"')
    assert found in ({"text": text}, None)
