"""Definitions of tools: names, ids, hashes, parameters that are declared, and values that are checked against them."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reyn_jupyter.dynamic.definition import (
    DynamicTool,
    Example,
    apply_parameters,
    check_name,
    detect_mode,
    read_examples,
    tool_id,
)
from reyn_jupyter.dynamic.tool_error import DynamicToolError
from reyn_jupyter.dynamic.tool_parameters import ToolParameter, read_parameters

AT = "2026-01-31T09:30:00+00:00"
LATER = "2026-01-31T09:31:00+00:00"
AVERAGE = {
    "numbers": {"type": "array", "description": "what to average", "required": True},
    "precision": {"type": "number", "description": "digits", "default": 2, "minimum": 0, "maximum": 10},
}


def tool(parameters: Any = None, **others: Any) -> DynamicTool:
    return DynamicTool.create(
        **{
            "name": "average",
            "description": "Average numbers",
            "code": "def execute(params):\n    return 1",
            "parameters": None if parameters is None else read_parameters(parameters),
            "at": AT,
            "safety_score": 1.0,
            "quality_score": 0.7,
            **others,
        }
    )


def refusal(function: Any, *given: Any) -> DynamicToolError:
    with pytest.raises(DynamicToolError) as caught:
        function(*given)
    assert caught.value.message and caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *((name, "E101") for name in ("", "  ", None, 3)),
        ("a" * 65, "E102"),
        *((name, "E103") for name in ("1st", "_a", "a b", "a.b", "é", "a\n", "../a")),
        *((name, "E104") for name in ("create_tool", "tool_reflection", "inspect", "Run-Dynamic-Tool")),
    ],
)
def test_a_name_that_is_none_is_refused_with_its_code(name, code):
    assert refusal(check_name, name).code == code


def test_names_of_the_rule_are_taken_and_a_near_one_is_offered():
    for name in ("a", "A", "string_reverse", "x-1", "a" * 64):
        check_name(name)
    assert "'my_tool'" in refusal(check_name, "my tool!").hint


def test_an_id_follows_from_name_and_code():
    assert tool_id("a", "b") == tool_id("a", "b") != tool_id("b", "a")
    assert tool_id("a", "b") == "dt_6783a31eabf6"  # of "a:b"


@pytest.mark.parametrize(
    ("code", "mode"),
    [
        ("def execute(params):\n    return 1", "python"),
        ("async def execute(params):\n    return 1", "python"),
        ("\nasync function execute(params) {\n  return 1;\n}\n", "typescript"),
        ("export default function execute(params: any): string { return '' }", "typescript"),
        ("const execute = async (params) => params.x;", "typescript"),
        ("let execute: (p: any) => any = p => p", "typescript"),
        ("def execute(params:\n    return 1", "python"),
        ("%timeit 1\ndef execute(params): return 1", "python"),
        ("(" * 100_000, "python"),
        ("x = '\\d'\n", "python"),
        ("a\0b", "python"),
    ],
)
def test_the_language_is_read_from_the_code(code, mode):
    assert detect_mode(code) == mode


def test_the_schema_is_closed_where_parameters_were_declared_and_open_otherwise():
    assert tool().input_schema == {"type": "object", "properties": {}, "additionalProperties": True}
    assert tool({}).input_schema["additionalProperties"] is False
    schema = tool(AVERAGE).input_schema
    assert schema["required"] == ["numbers"]
    assert schema["properties"]["precision"] == {
        "type": "number", "description": "digits", "default": 2, "minimum": 0, "maximum": 10,
    }  # fmt: skip


def test_defaults_reach_the_code_and_bounds_hold():
    average = tool(AVERAGE)
    assert apply_parameters(average, {"numbers": [1]}) == {"numbers": [1], "precision": 2}
    error = refusal(apply_parameters, average, {"numbers": [1], "precision": 11})
    assert error.code == "E106"
    assert "precision must be at most 10, not the integer 11" in error.message
    assert "precision (number, 0 to 10, default 2)" in error.hint


def test_all_faults_are_named_at_once_and_a_missing_parameter_leads():
    error = refusal(apply_parameters, tool(AVERAGE), {"precison": 1, "precision": True})
    assert error.code == "E105"
    for part in (
        "numbers is required",
        "'precison' is no parameter; did you mean 'precision'?",
        "must be a number",
    ):
        assert part in error.message


def test_where_nothing_was_declared_any_object_is_taken_and_nothing_else():
    assert apply_parameters(tool(), {"text": "x", "deep": [{"a": None}]}) == {
        "text": "x",
        "deep": [{"a": None}],
    }
    for wrong in ([], None, "x"):
        assert refusal(apply_parameters, tool(), wrong).code == "E106"


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        {1, 2},
        {"a": object()},
        b"x",
        {3: 4},
        "\ud800",
        [[["x", 1j]]],
        10**400,
        10**5000,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_json_is_refused(value):
    error = refusal(apply_parameters, tool(), {"x": value})
    assert error.code == "E106" and "x" in error.message


def test_a_value_that_is_nested_without_end_is_refused():
    endless: list[Any] = []
    endless.append(endless)
    assert refusal(apply_parameters, tool(), {"x": endless}).code == "E106"


def test_of_many_faults_the_first_are_told() -> None:
    error = refusal(apply_parameters, tool({}), {f"name_{number}": number for number in range(100_000)})
    assert error.message.count("is no parameter") == 10 and error.message.endswith("and more")


def test_what_the_tool_gets_is_its_own():
    average = tool({"rows": {"type": "array", "default": [1]}, "more": {"type": "object"}})
    mine = {"more": {"a": [1]}}
    first = apply_parameters(average, mine)
    first["rows"].append(2)
    first["more"]["a"].append(2)
    assert apply_parameters(average, mine) == {"rows": [1], "more": {"a": [1]}}


def test_a_default_of_null_is_one_and_null_may_then_be_given():
    either = tool({"a": {"type": "string", "default": None, "enum": ["x"]}, "b": {"type": "string"}})
    assert apply_parameters(either, {}) == {"a": None}
    assert apply_parameters(either, {"a": None}) == {"a": None}
    assert refusal(apply_parameters, either, {"b": None}).code == "E106"


def test_a_required_parameter_with_a_default_need_not_be_given():
    assert apply_parameters(tool({"a": {"type": "number", "default": 1, "required": True}}), {}) == {"a": 1}


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ({"type": "number", "default": 11, "maximum": 10}, "the default must be at most 10"),
        ({"type": "number", "default": "2"}, "the default must be a number"),
        ({"type": "number", "default": True}, "the default must be a number"),
        ({"type": "string", "default": "c", "enum": ["a", "b"]}, 'the default must be one of ["a", "b"]'),
        ({"type": "string", "enum": ["a", 1]}, "the allowed value must be a string"),
        ({"type": "string", "enum": []}, "enum must be an array"),
        ({"type": "string", "enum": "ab"}, "enum must be an array"),
        ({"type": "number", "minimum": 3, "maximum": 2}, "minimum 3 is more than maximum 2"),
        ({"type": "number", "minimum": "3"}, "minimum must be a number"),
        ({"type": "number", "minimum": float("nan")}, "minimum: nan is no number of JSON"),
        ({"type": "string", "minimum": 3}, "minimum is for numbers"),
        ({"type": "integer"}, "'integer' is no type; write 'number'"),
        ({"type": "strin"}, "did you mean 'string'?"),
        ({"type": ["string"]}, "is no type"),
        ({}, "type is missing"),
        ({"type": "string", "requird": True}, "unknown key 'requird'; did you mean 'required'?"),
        ({"type": "string", "allowed_values": ["a"]}, "did you mean 'enum'?"),
        ({"type": "string", "required": "yes"}, "required must be true or false"),
        ({"type": "string", "description": 3}, "description must be a string"),
        ("string", "its definition must be an object"),
        ({"type": "object", "default": {"a": {1}}}, "a set is no JSON"),
    ],
)  # fmt: skip
def test_a_declaration_that_does_not_fit_is_refused_in_words(definition, words):
    error = refusal(read_parameters, {"x": definition})
    assert error.code == "E106"
    assert "'x'" in error.message and words in error.message


def test_other_shapes_of_declarations_are_refused_with_the_right_one():
    for wrong in (
        [{"name": "x", "type": "string"}],
        "x",
        3,
        {"type": "object", "properties": {"x": {"type": "string"}}},
    ):
        error = refusal(read_parameters, wrong)
        assert error.code == "E106" and '"precision": {"type": "number"' in error.hint
    for name in ("", " ", "a" * 65, "$var", "a\n", 3):
        assert refusal(read_parameters, {name: {"type": "string"}}).code == "E106"
    assert refusal(read_parameters, {f"p{n}": {"type": "string"} for n in range(101)}).code == "E106"


def test_several_faulty_declarations_are_all_named():
    message = refusal(read_parameters, {"a": {"type": "x"}, "b": {"type": "number", "minimum": "1"}}).message
    assert "'a':" in message and "'b':" in message


def test_examples_must_fit_the_parameters():
    parameters = read_parameters(AVERAGE)
    assert read_examples([{"parameters": {"numbers": [1]}, "result": 1}], parameters) == (
        Example(parameters={"numbers": [1]}, result=1),
    )
    for wrong in (
        {},
        "x",
        [3],
        [{"parameters": {"numbers": [1]}}],
        [{"parameters": {"numbers": 1}, "result": 1}],
        [{"parameters": {}, "result": 1}],
        [{"parameters": {"numbers": []}, "result": 1, "more": 1}],
        [{"parameters": {"numbers": []}, "result": float("nan")}],
    ):
        assert refusal(read_examples, wrong, parameters).code == "E106"
    assert read_examples([{"parameters": {"any": 1}, "result": None}], None)[0].result is None


def test_the_hash_covers_what_the_tool_does_and_nothing_that_moves_by_use():
    made = tool(AVERAGE)
    assert (
        made.is_intact
        and made.used(True, LATER).is_intact
        and made.with_verification("passed", LATER).is_intact
    )
    for change in (
        {"code": "def execute(params): return 2"},
        {"mode": "typescript"},
        {"name": "other"},
        {"parameters": None},
        {"parameters": read_parameters({"numbers": {"type": "array"}})},
        {"permissions": ("network:example.com",)},
        {"examples": (Example(parameters={}, result=1),)},
        {"id": "dt_000000000000"},
    ):
        assert not made.model_copy(update=change).is_intact


def test_a_default_of_null_and_no_default_are_two_tools():
    without, null = (tool({"a": {"type": "string", **extra}}) for extra in ({}, {"default": None}))
    assert without.sha256 != null.sha256


def test_a_definition_survives_its_file():
    made = tool(
        {"a": {"type": "string", "default": None}, "b": {"type": "number", "enum": [1, 2.5]}}, tags=("x",)
    )
    again = DynamicTool.model_validate(json.loads(made.model_dump_json()))
    assert again == made and again.is_intact
    assert [each.has_default for each in again.parameters or ()] == [True, False]


def test_confidence_follows_success_and_failure_between_its_bounds():
    made = tool()
    assert made.confidence_score == 0.7  # the lesser of safety and quality
    assert made.used(True, LATER).confidence_score == 0.72
    after = made.used(False, LATER)
    assert (after.confidence_score, after.usage_count, after.failure_count, after.last_used_at) == (
        0.65,
        1,
        1,
        LATER,
    )
    best, worst, low = made, made, tool(safety_score=0.05)
    for _ in range(20):
        best, worst, low = best.used(True, LATER), worst.used(False, LATER), low.used(False, LATER)
    assert best.confidence_score == 1.0
    assert worst.confidence_score == 0.1
    assert low.confidence_score == 0.05  # a failure never raises it
    assert (worst.usage_count, worst.failure_count, best.failure_count) == (20, 20, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"code": "x" * 200_001},
        {"description": 3},
        {"at": "yesterday"},
        {"at": "2026-01-31T09:30:00"},
        {"safety_score": 1.5},
        {"tags": [""]},
        {"mode": "ruby"},
    ],
)
def test_a_tool_with_values_of_another_kind_is_not_made(wrong):
    assert refusal(lambda: tool(**wrong)).code == "E106"


# Whatever the schema is and whatever is given, this check and jsonschema, written by others, agree.

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 12)
    | st.floats(-3, 12).map(lambda x: round(x, 1))
    | st.sampled_from("abc")
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
    max_leaves=4,
)
big = st.sampled_from([2**53, 2**1023 - 1, 2**63, 2**64 + 1, -(2**70), 1e300, 1e16, 0.1, -0.0, 5e-324])


@st.composite
def definitions(draw) -> dict[str, Any]:
    kind = draw(st.sampled_from(["string", "number", "boolean", "object", "array"]))
    made: dict[str, Any] = {"type": kind}
    if draw(st.booleans()):
        made["required"] = draw(st.booleans())
    if draw(st.booleans()):
        made["default"] = draw(values)
    if draw(st.booleans()):
        made["enum"] = draw(st.lists(values, min_size=1, max_size=3))
    if kind == "number" and draw(st.booleans()):
        made["minimum"] = draw(st.integers(-3, 6) | big)
    if kind == "number" and draw(st.booleans()):
        made["maximum"] = draw(st.floats(3, 12) | big)
    return made


@given(st.data(), st.dictionaries(st.sampled_from(["a", "b", "c"]), definitions(), max_size=3))
def test_what_is_accepted_is_what_jsonschema_accepts(data, definitions_by_name):
    try:
        made = tool(definitions_by_name)
    except DynamicToolError as error:
        assert error.code == "E106"
        return
    schema = json.loads(json.dumps(made.input_schema))
    jsonschema.Draft202012Validator.check_schema(schema)
    args = data.draw(st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), values | big, max_size=4))
    valid = jsonschema.Draft202012Validator(schema).is_valid(args)
    try:
        applied = apply_parameters(made, args)
    except DynamicToolError as error:
        assert not valid, (schema, args, error.message)
        missing = [name for name in schema["required"] if name not in args]
        assert error.code == ("E105" if missing else "E106")
        assert all(name in error.message for name in missing)
        return
    assert valid, (schema, args)
    assert json.loads(json.dumps(applied, allow_nan=False)) == applied
    assert jsonschema.Draft202012Validator(schema).is_valid(applied)
    for parameter in made.parameters or ():
        if parameter.has_default:
            assert parameter.name in applied


@given(st.dictionaries(st.text(max_size=4), definitions() | values, max_size=3))
@example({"00": {"type": "string", "enum": [None]}})
def test_whatever_is_declared_is_read_or_refused_and_survives_its_file(declared):
    try:
        found = read_parameters(declared)
    except DynamicToolError as error:
        assert error.code == "E106"
        return
    assert [each.name for each in found] == list(declared)
    assert tuple(ToolParameter.model_validate(json.loads(each.model_dump_json())) for each in found) == found
