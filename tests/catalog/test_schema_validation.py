"""Schemas beyond the ordinary: patterns of any dialect, forms of the whole, and what it costs to read them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from reyn_jupyter.catalog.arguments import Prepared, prepare
from tests.catalog.samples import schema


def taken(prepared: Prepared) -> bool:
    return prepared.invalid == []


def test_a_pattern_that_could_run_away_does_not() -> None:
    runaway = schema(x={"type": "string", "pattern": "^(a+)+$"})
    assert prepare(runaway, {"x": "a" * 50_000 + "b"}).invalid[0]["path"] == "/x"
    assert taken(prepare(runaway, {"x": "aaa"}))


@pytest.mark.parametrize(
    "whole",
    [
        {"anyOf": [{"required": ["x"]}, {"required": ["y"]}]},
        {"allOf": [{"required": ["x"]}]},
        {"minProperties": 1},
        {"$ref": "#/$defs/needed", "$defs": {"needed": {"required": ["x"]}}},
        {"if": {"not": {"required": ["y"]}}, "then": {"required": ["x"]}},
    ],
)
def test_no_arguments_at_all_are_held_to_what_a_schema_says_of_the_whole(whole: dict[str, Any]) -> None:
    described = {**schema(x={"type": "string"}, y={"type": "string"}), **whole}
    assert prepare(described, {}).invalid and prepare(described, None).invalid
    assert taken(prepare(described, {"x": "a"}))


def test_a_pattern_that_python_does_not_know_makes_no_wrong_schema() -> None:
    letters = schema(x={"type": "string", "pattern": "^\\p{L}+$"})
    assert taken(prepare(letters, {"x": "été"}))
    assert prepare(letters, {"x": "7"}).invalid[0]["path"] == "/x"
    for known_elsewhere in ("^(?<year>\\d+)$", "^\\u{1F600}$", "(?P<x"):
        assert taken(prepare(schema(x={"type": "string", "pattern": known_elsewhere}), {"x": "7"}))


def test_a_pattern_beyond_linear_time_is_left_to_the_handler() -> None:
    assert taken(prepare(schema(x={"type": "string", "pattern": "^(?=b)a$"}), {"x": "zzz"}))


def test_the_first_validation_builds_no_grammar_for_addresses_and_loses_no_format() -> None:
    program = (
        "import sys\n"
        "from reyn_jupyter.catalog.schema_validation import build_validator\n"
        "build_validator({'type': 'object', 'properties': {'a': {'type': 'string', 'pattern': '^x+$'}}})\n"
        "assert 'jsonschema' in sys.modules and 'rfc3987_syntax' not in sys.modules\n"
        "import jsonschema\n"
        "checker = jsonschema.Draft202012Validator.FORMAT_CHECKER\n"
        "from importlib.util import find_spec\n"
        "told_apart = any(find_spec(name) for name in ('rfc3987', 'rfc3987_syntax'))\n"  # jsonschema's, by its age
        "assert checker.conforms('no <address>', 'iri') is not told_apart\n"
        "assert checker.conforms('https://example.org/ä', 'iri')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
