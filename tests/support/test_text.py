"""Names that were meant, words of sentences and cuts: every example of the bottom room gives what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter import support
from reyn_jupyter.support.encoding import clip, clip_line
from reyn_jupyter.support.text import (
    did_you_mean,
    enumerate_words,
    nearest,
    nearest_names,
    shorten,
    tells_to_type,
)


@pytest.mark.parametrize("name", [each.name for each in pkgutil.iter_modules(support.__path__)])
def test_the_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"{support.__name__}.{name}")).failed == 0


def test_a_name_is_found_whatever_its_case_and_given_back_as_it_is_written() -> None:
    assert nearest("ROUTER.surfce", ["Router.Surface", "models"]) == "Router.Surface"
    assert nearest(12, ["twelve"]) is None and nearest("", ["a"]) is None


def test_names_are_compared_in_bounded_work() -> None:
    assert nearest("x" * 10_000_000, ["x" * 100, "y"]) == "x" * 100


def test_a_stricter_cutoff_finds_less() -> None:
    assert nearest_names("antropic", ["anthropic", "openai"], cutoff=0.75) == ["anthropic"]
    assert nearest_names("ant", ["anthropic"], cutoff=0.75) == []


def test_what_cannot_be_meant_is_not_offered() -> None:
    assert did_you_mean(nearest_names("zzz", ["path"])) == ""
    assert did_you_mean(["a", "b"]) == "Did you mean a or b?" and enumerate_words(["a", "b"]) == "a and b"


@given(st.text(), st.integers(1, 50))
def test_a_cut_keeps_to_its_limit(text: str, most: int) -> None:
    assert len(shorten(text, most)) <= most
    assert len(clip(text, most).encode()) <= most
    line = clip_line(text, most)
    assert len(line.encode()) <= most and line.isprintable()


def test_a_value_that_holds_itself_is_looked_through_once() -> None:
    value: list[object] = ["nothing"]
    value.append({"again": value})
    assert not tells_to_type(value)
    value.append("type %REYN trust")
    assert tells_to_type(value)
