"""References in inputs: what is one, where it leads, and that no text of others ever becomes one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.workflows.planning.references import (
    escape_literal,
    parse_reference,
    references_of,
    resolve_inputs,
    write_reference,
)
from reyn_jupyter.workflows.workflow_error import WorkflowError

ANY_TEXT = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["steps.a.outputs.b", "request.inputs.x", "steps.a.output.b", "request.inputs", "$value"]
    ),
)
ANY_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), ANY_TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(ANY_TEXT, inner, max_size=3)),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "step_id", "keys"),
    [
        ("request.inputs.url", None, ("url",)),
        ("steps.get.outputs.file_path", "get", ("file_path",)),
        ("steps.step-1.outputs.files[0].path", "step-1", ("files", 0, "path")),
        ('steps.a.outputs["the key"].имя', "a", ("the key", "имя")),
        ("steps.a.outputs", "a", ()),
    ],
)
def test_a_text_that_is_a_reference_as_a_whole_is_one(text, step_id, keys):
    found = parse_reference(text)
    assert found is not None
    assert (found.step_id, found.keys) == (step_id, keys)
    assert write_reference(step_id, keys) == text


@pytest.mark.parametrize(
    "text",
    ["see steps.a.outputs.b", "steps.a.outputs.b ", "steps.a.output.b", "request.json", "steps..outputs.x"],
)
def test_other_text_is_text(text):
    assert parse_reference(text) is None
    assert resolve_inputs({"note": text}, {}, {}) == {"note": text}


def test_references_are_found_and_filled_in_at_any_depth():
    inputs = {"to": ["request.inputs.folder", {"from": "steps.get.outputs.files[1].path"}], "n": 3}
    assert [each.path for each in references_of(inputs)] == ["/to/0", "/to/1/from"]
    outputs = {"get": {"files": [{"path": "a"}, {"path": "b"}]}}
    assert resolve_inputs(inputs, {"folder": "out"}, outputs) == {"to": ["out", {"from": "b"}], "n": 3}


def test_what_a_request_or_a_step_gives_is_not_resolved_again():
    inputs = {"a": "request.inputs.text", "b": "steps.get.outputs.text"}
    made = resolve_inputs(
        inputs, {"text": "steps.get.outputs.secret"}, {"get": {"text": "request.inputs.text", "secret": "s"}}
    )
    assert made == {"a": "steps.get.outputs.secret", "b": "request.inputs.text"}


def test_every_reference_that_leads_nowhere_is_named():
    inputs = {"a": "steps.get.outputs.fiel", "b": "steps.other.outputs.x", "c": "steps.get.outputs.list[7]"}
    with pytest.raises(WorkflowError) as caught:
        resolve_inputs(inputs, {}, {"get": {"file": "f", "list": [1]}})
    assert caught.value.code == "validation"
    problems = caught.value.details["problems"]
    assert [each["path"] for each in problems] == ["/a", "/b", "/c"]
    assert "did you mean 'file'" in problems[0]["message"]
    assert resolve_inputs(inputs, {}, {}, keep_unknown=True) == inputs


@given(ANY_JSON)
def test_an_escaped_value_comes_back_as_it_was(value):
    escaped = {"value": escape_literal(value)}
    assert references_of(escaped) == ()
    assert resolve_inputs(escaped, {}, {}) == {"value": value}
