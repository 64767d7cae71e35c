"""Whether a utility serves a step: what goes in and what comes out, each in its own direction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from tests.support.trusting import trust
from tests.workflows.acceptance.workshop import (
    ANYTHING,
    NOTHING,
    TEXT,
    Json,
    Workshop,
    closed,
    needs,
    opened,
    step,
)  # fmt: skip

WHOLE: Json = {"type": "integer"}
NUMBER: Json = {"type": "number"}


def enum(*values: Any) -> Json:
    return {"enum": list(values)}


@dataclass(frozen=True)
class Case:
    """A schema of a step, one of a utility, and whether they go together; `path` is what a refusal has to name."""

    what: str
    direction: Literal["input", "output"]
    of_step: Json
    of_utility: Json
    fits: bool
    path: str = ""


def sends(what: str, of_step: Json, of_utility: Json, fits: bool, path: str = "") -> Case:
    """Input: whatever the step may send, the utility accepts."""
    return Case(what, "input", of_step, of_utility, fits, path)


def takes(what: str, of_step: Json, of_utility: Json, fits: bool, path: str = "") -> Case:
    """Output: whatever the step needs, the utility guarantees."""
    return Case(what, "output", of_step, of_utility, fits, path)


CASES = [
    # Input: tool.required ⊆ step.required
    sends("the same", closed(a=TEXT), closed(a=TEXT), True),
    sends("a utility that requires less", closed(a=TEXT), closed(a=TEXT, required=[]), True),
    sends("one that requires more", closed(a=TEXT), closed(a=TEXT, b=TEXT), False, "b"),
    sends("one that requires what the step may leave out", closed(a=TEXT, required=[]), closed(a=TEXT), False, "a"),
    sends("an optional property of both", closed(a=TEXT, required=[]), closed(a=TEXT, required=[]), True),
    # Input: types widen
    sends("a whole number for a number", closed(a=WHOLE), closed(a=NUMBER), True),
    sends("a number for a whole number", closed(a=NUMBER), closed(a=WHOLE), False, "a"),
    sends("a text for a number", closed(a=TEXT), closed(a=NUMBER), False, "a"),
    sends("a text for text or null", closed(a=TEXT), closed(a={"type": ["string", "null"]}), True),
    sends("text or null for a text", closed(a={"type": ["string", "null"]}), closed(a=TEXT), False, "a"),
    sends("a whole number for number or text", closed(a=WHOLE), closed(a={"type": ["number", "string"]}), True),
    sends("anything for a text", closed(a={}), closed(a=TEXT), False, "a"),
    sends("a text for anything", closed(a=TEXT), closed(a={}), True),
    sends("a boolean for a number", closed(a={"type": "boolean"}), closed(a=NUMBER), False, "a"),
    # Input: tool enum ⊇ step enum
    sends("fewer values", closed(a=enum("x")), closed(a=enum("x", "y")), True),
    sends("more values", closed(a=enum("x", "y")), closed(a=enum("x")), False, "a"),
    sends("any text for some values", closed(a=TEXT), closed(a=enum("x")), False, "a"),
    sends("some values for any text", closed(a=enum("x", "y")), closed(a=TEXT), True),
    sends("values of two types for a text", closed(a=enum("x", 1)), closed(a=TEXT), False, "a"),
    sends("a constant among the values", closed(a={"const": "x"}), closed(a=enum("x", "y")), True),
    sends("a constant that is not among them", closed(a={"const": "z"}), closed(a=enum("x", "y")), False, "a"),
    # Input: additionalProperties: false forbids the undeclared
    sends("an undeclared property", closed(a=TEXT, b=TEXT), closed(a=TEXT), False, "b"),
    sends("an undeclared property that may be left out", closed(a=TEXT, b=TEXT, required=["a"]), closed(a=TEXT),
          False, "b"),
    sends("more than is declared where all is welcome", closed(a=TEXT, b=TEXT), opened(a=TEXT), True),
    sends("more of a type that is not welcome", closed(a=TEXT, b=TEXT),
          {**opened(a=TEXT), "additionalProperties": NUMBER}, False, "b"),
    sends("more of a type that is welcome", closed(a=TEXT, b=WHOLE),
          {**opened(a=TEXT), "additionalProperties": NUMBER}, True),
    # Input: depth and bounds
    sends("a nested requirement", closed(o=closed(a=TEXT)), closed(o=closed(a=TEXT, b=TEXT)), False, "o"),
    sends("nested, and fits", closed(o=closed(a=WHOLE)), closed(o=closed(a=NUMBER)), True),
    sends("a list of whole numbers", closed(l={"type": "array", "items": WHOLE}),
          closed(l={"type": "array", "items": NUMBER}), True),
    sends("a list of texts", closed(l={"type": "array", "items": TEXT}),
          closed(l={"type": "array", "items": NUMBER}), False, "l"),
    sends("longer lists", closed(l={"type": "array", "items": TEXT, "maxItems": 5}),
          closed(l={"type": "array", "items": TEXT, "maxItems": 4}), False, "l"),
    sends("within the bounds", closed(a={"type": "integer", "minimum": 1, "maximum": 5}),
          closed(a={"type": "number", "minimum": 0, "maximum": 10}), True),
    sends("beyond the bounds", closed(a={"type": "integer", "minimum": 0}),
          closed(a={"type": "integer", "minimum": 1}), False, "a"),
    sends("unbounded for bounded", closed(a=NUMBER), closed(a={"type": "number", "maximum": 10}), False, "a"),
    sends("a text of any length", closed(a=TEXT), closed(a={"type": "string", "minLength": 1}), False, "a"),
    sends("a text long enough", closed(a={"type": "string", "minLength": 2}),
          closed(a={"type": "string", "minLength": 1}), True),
    sends("one of two types", closed(a=TEXT), closed(a={"anyOf": [TEXT, NUMBER]}), True),
    sends("either for one", closed(a={"anyOf": [TEXT, NUMBER]}), closed(a=TEXT), False, "a"),
    sends("a part of the schema by its name", {"$defs": {"n": WHOLE}, **closed(a={"$ref": "#/$defs/n"})},
          closed(a=NUMBER), True),
    sends("an array for an object", closed(a={"type": "array"}), closed(a={"type": "object"}), False, "a"),
    # Output: step.required ⊆ tool.required
    takes("the same guarantee", opened(a=TEXT), opened(a=TEXT), True),
    takes("a richer utility", opened(file_path=TEXT), opened(file_path=TEXT, sha=TEXT), True),
    takes("a richer and closed utility", opened(file_path=TEXT), closed(file_path=TEXT, sha=TEXT), True),
    takes("one that guarantees less", opened(a=TEXT, b=TEXT), opened(a=TEXT), False, "b"),
    takes("one that may leave it out", opened(file_path=TEXT), opened(file_path=TEXT, required=[]), False, "file_path"),
    takes("what the step can do without", opened(a=TEXT, required=[]), closed(a=TEXT, required=[]), True),
    # Output: types narrow
    takes("a whole number where a number is needed", opened(a=NUMBER), opened(a=WHOLE), True),
    takes("a number where a whole number is needed", opened(a=WHOLE), opened(a=NUMBER), False, "a"),
    takes("a text where text or null will do", opened(a={"type": ["string", "null"]}), opened(a=TEXT), True),
    takes("perhaps null where a text is needed", opened(a=TEXT), opened(a={"type": ["string", "null"]}), False, "a"),
    takes("anything where a text is needed", opened(a=TEXT), opened(a={}), False, "a"),
    # Output: tool enum ⊆ step enum
    takes("fewer values than will do", opened(a=enum("x", "y")), opened(a=enum("x")), True),
    takes("more values than will do", opened(a=enum("x")), opened(a=enum("x", "y")), False, "a"),
    takes("any text where values are needed", opened(a=enum("x")), opened(a=TEXT), False, "a"),
    # Output: depth and bounds
    takes("a nested guarantee", opened(o=opened(a=TEXT)), opened(o=opened(a=TEXT, b=TEXT)), True),
    takes("a nested lack", opened(o=opened(a=TEXT)), opened(o=opened(b=TEXT)), False, "o"),
    takes("a list of what is needed", opened(l={"type": "array", "items": NUMBER}),
          opened(l={"type": "array", "items": WHOLE}), True),
    takes("a list of something else", opened(l={"type": "array", "items": NUMBER}),
          opened(l={"type": "array", "items": TEXT}), False, "l"),
    takes("a list that may be empty", opened(l={"type": "array", "minItems": 1}), opened(l={"type": "array"}),
          False, "l"),
    takes("narrower bounds", opened(a={"type": "number", "minimum": 0}),
          opened(a={"type": "number", "minimum": 1}), True),
    takes("wider bounds", opened(a={"type": "number", "minimum": 1}),
          opened(a={"type": "number", "minimum": 0}), False, "a"),
    takes("nothing said where something is needed", opened(a=TEXT), ANYTHING, False, "a"),
    # What cannot be proved is incompatible
    takes("a pattern that nobody compares", opened(a={"type": "string", "pattern": "^[a-f]+$"}),
          opened(a={"type": "string", "pattern": "^[a-e]+$"}), False, "a"),
    takes("not", opened(a={"not": NUMBER}), opened(a={"not": WHOLE}), False, "a"),
    takes("if and then", {**opened(a=TEXT), "if": opened(a=enum("x")), "then": opened(b=TEXT)}, opened(a=TEXT),
          False),
]  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One state folder for the file, so that its tests share a session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REYN_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        patch.setenv("REYN_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="module")
def covered(own_state: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Json]:
    """All cases as one plan, a utility and a step each, covered at once."""
    made = Workshop(tmp_path_factory.mktemp("contracts"))
    steps = []
    for number, case in enumerate(CASES):
        schemas = {
            "input_schema": ANYTHING,
            "output_schema": ANYTHING,
            f"{case.direction}_schema": case.of_utility,
        }
        made.write(f"case-{number}", capabilities=[f"case.number-{number}"], **schemas)
        contract = (
            needs(case.of_step, ANYTHING) if case.direction == "input" else needs(NOTHING, case.of_step)
        )
        steps.append(step(f"s{number}", f"case.number-{number}", **contract))
    trust(made.session)
    yield made.cover(*steps)
    made.close()


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[f"{each.direction}: {each.what}" for each in CASES]
)
def test_a_utility_serves_a_step_or_says_where_it_does_not(covered: Json, number: int) -> None:
    case = CASES[number]
    (served,) = (each for each in covered["plan"]["steps"] if each["step_id"] == f"s{number}")
    gaps = [each for each in covered["gaps"] if each["step_id"] == f"s{number}"]
    if case.fits:
        assert served["tool"] == f"case-{number}@1.0.0" and gaps == []
        return
    (gap,) = gaps
    assert served["tool"] is None and gap["reason"] == "schema_incompatible"
    details = json.dumps(gap["reason_details"])
    assert f"case-{number}@1.0.0" in details and case.direction in details and case.path in details


def test_the_details_list_every_violated_path_of_every_candidate(workshop: Workshop) -> None:
    workshop.write(
        "first", capabilities=["c.d"], input_schema=closed(x=TEXT, y=NUMBER), output_schema=ANYTHING
    )
    workshop.write(
        "second", capabilities=["c.d"], input_schema=closed(a=NUMBER), output_schema=opened(r=WHOLE)
    )
    trust(workshop.session)
    gap = workshop.gap("c.d", **needs(closed(a=TEXT), opened(r=TEXT, s=TEXT)))
    details = json.dumps(gap["reason_details"])
    first, second = details.index("first@1.0.0"), details.index("second@1.0.0")
    of_first, of_second = (details[first:second], details[second:]) if first < second else (
        details[first:], details[second:first],
    )  # fmt: skip
    assert [each for each in ("x", "y", "a", "r", "s") if f'\\"{each}\\"' not in of_first] == []
    assert [each for each in ("/a", "/r", "/s") if each not in of_second] == []


def test_a_step_that_says_nothing_of_its_contract_takes_any_candidate(workshop: Workshop) -> None:
    workshop.add("any", input_schema=closed(a=TEXT), output_schema=closed(b=TEXT))
    assert workshop.cover(step("a", "any.run", {"a": "x"}))["status"] == "complete"


def test_one_compatible_candidate_is_enough_though_a_better_one_does_not_fit(workshop: Workshop) -> None:
    workshop.write("better", capabilities=["c.d"], priority=9, output_schema=opened(r=WHOLE))
    workshop.write("fits", capabilities=["c.d"], output_schema=opened(r=TEXT))
    trust(workshop.session)
    found = workshop.cover(step("a", "c.d", **needs(NOTHING, opened(r=TEXT))))
    assert (found["status"], found["plan"]["steps"][0]["tool"]) == ("complete", "fits@1.0.0")
