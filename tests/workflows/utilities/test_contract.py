"""Contracts: what a step may send a utility accepts, what a step needs a utility guarantees."""

from __future__ import annotations

from typing import Any

import pytest

from reyn_jupyter.workflows.utilities.contract import (
    Contract,
    contract_violations,
    schema_fault,
    step_violations,
)

TEXT = {"type": "string"}


def object_of(required: tuple[str, ...] = (), closed: bool = False, **properties: Any) -> dict[str, Any]:
    closing = {"additionalProperties": False} if closed else {}
    return {"type": "object", "properties": properties, "required": list(required), **closing}


def test_both_directions_are_judged_and_each_violation_is_listed() -> None:
    step = Contract(object_of(("url",), True, url=TEXT, mode=TEXT), object_of(("n",), n={"type": "integer"}))
    tool = Contract(
        object_of(("url", "token"), True, url=TEXT, token=TEXT), object_of(("n",), n={"type": "number"})
    )
    found = {(each.direction, each.path) for each in contract_violations(step, tool)}
    assert found == {
        ("input", "/required"),
        ("input", "/additionalProperties"),
        ("output", "/properties/n/type"),
    }


def test_a_step_sends_the_properties_that_it_names() -> None:
    tool = Contract(object_of(("url",), True, url=TEXT))
    step = Contract(object_of(("url",), url=TEXT))
    assert contract_violations(step, tool)[0].path == "/additionalProperties"  # it may send anything else
    assert step_violations(step, tool) == ()
    assert (
        step_violations(Contract(object_of(("url",), url=TEXT, more=TEXT)), tool)[0].path
        == "/additionalProperties"
    )
    assert step_violations(Contract({"properties": {"a": TEXT}, "required": ["url"]}), tool)
    assert step_violations(Contract({"minProperties": 1}), tool)
    assert step_violations(Contract({"properties": 3}), tool)  # what a model may write


def test_an_empty_input_schema_says_nothing_of_what_is_sent() -> None:
    tool = Contract(object_of(("url",), True, url=TEXT))
    assert step_violations(Contract({}, {}), tool) == ()
    assert contract_violations(Contract({}, {}), tool)
    assert step_violations(Contract({}, object_of(("n",))), tool)[0].direction == "output"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"properties": {"a": {"$ref": "https://example.org/schema.json"}}},
        {"properties": {"a": {"$ref": "#/$defs/b"}}},
        {"$ref": "#"},
        {"type": "strin"},
        {"properties": {"a": {"pattern": "("}}},
        {"required": "url"},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"properties": {"a": {"minimum": "1"}}},
        "object",
        None,
    ],
)
def test_what_is_no_schema_serves_nothing(schema: Any) -> None:
    assert schema_fault(schema)
    for contract in (Contract(schema, {}), Contract({}, schema)):
        assert contract_violations(contract, Contract())
        assert contract_violations(Contract(), contract)
