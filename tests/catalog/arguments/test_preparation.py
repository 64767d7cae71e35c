from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.catalog.arguments.preparation import Prepared, invalid_arguments, lift, misplaced, prepare
from reyn_jupyter.catalog.arguments.references import Reference, find_references
from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.catalog.size_budget import encoded_size
from tests.catalog.samples import TEXT, WHOLE, published, schema

READ = schema("path", offset=WHOLE, limit=WHOLE)
EVERY = schema(
    "text_",
    whole=WHOLE,
    number={"type": "number"},
    flag={"type": "boolean"},
    items={"type": "array", "items": TEXT},
    mapping={"type": "object"},
    maybe={"anyOf": [WHOLE, {"type": "null"}]},
    either={"type": ["string", "integer"]},
    nested={"type": "object", "properties": {"a": WHOLE}, "required": ["a"]},
    kind={"type": "string", "enum": ["npm", "pypi"]},
    untyped={"description": "anything"},
    frame={"x-reference": True},
    many={"type": "array", "items": {"x-reference": True}},
)


def valid(prepared: Prepared) -> dict[str, Any]:
    assert prepared.invalid == []
    return prepared.args


def test_what_fits_passes_as_it_is() -> None:
    args = {"path": "a.txt", "limit": 5}
    prepared = prepare(READ, args)
    assert (valid(prepared), prepared.flags) == (args, ())
    assert prepared.args is not args


def test_no_arguments_are_an_empty_object() -> None:
    assert valid(prepare(schema(), None)) == {}


def test_text_that_holds_one_object_is_decoded() -> None:
    once = '{"path": "a.txt"}'
    for raw in (
        once,
        json.dumps(once),
        json.dumps(json.dumps(once)),
        f"{{}}{once}",
        f"{once} {once}",
        f"{once}{{}}",
    ):
        prepared = prepare(READ, raw)
        assert (valid(prepared), prepared.flags) == ({"path": "a.txt"}, ("decoded",)), raw


def test_null_for_an_optional_parameter_is_left_out() -> None:
    taken = schema("q", q=TEXT, n=WHOLE, maybe={"type": ["string", "null"]})
    prepared = prepare(taken, {"q": "x", "n": None, "maybe": None})
    assert (valid(prepared), prepared.flags) == ({"q": "x", "maybe": None}, ("coerced",))
    assert prepare(taken, {"q": None}).invalid


@pytest.mark.parametrize(
    "raw",
    [
        '{"path": "a"}{"path": "b"}',
        '{"path": "a"} x',
        "",
        "path=a.txt",
        "[1]",
        "5",
        "{",
        '{"path": "a", "path": "b"}',
        "[" * 100_000,
    ],
)
def test_a_string_with_no_reading_or_two_is_refused(raw: str) -> None:
    (fault,) = prepare(READ, raw).invalid
    assert fault["path"] == ""
    assert "must be a JSON object" in fault["message"]


@pytest.mark.parametrize("raw", [[], 5, True, ["a"], object(), b"{}"])
def test_anything_else_is_no_object(raw: object) -> None:
    assert "must be a JSON object" in prepare(READ, raw).invalid[0]["message"]


@pytest.mark.parametrize(
    ("name", "given_text", "read"),
    [
        ("whole", "20", 20),
        ("whole", " 20 ", 20),
        ("whole", "20.0", 20),
        ("number", "2.5", 2.5),
        ("number", "1e3", 1000.0),
        ("flag", "true", True),
        ("flag", "False", False),
        ("items", '["a", "b"]', ["a", "b"]),
        ("mapping", '{"a": 1}', {"a": 1}),
        ("nested", '{"a": 1}', {"a": 1}),
        ("maybe", "null", None),
        ("maybe", "None", None),
        ("maybe", "7", 7),
        ("frame", '{"$var": "orders"}', {"$var": "orders"}),
    ],
)
def test_a_string_for_another_type_is_read_where_one_reading_fits(
    name: str, given_text: str, read: Any
) -> None:
    prepared = prepare(EVERY, {"text_": "x", name: given_text})
    assert valid(prepared)[name] == read
    assert type(prepared.args[name]) is type(read)
    assert prepared.flags == ("coerced",)


@pytest.mark.parametrize(
    ("name", "given_text"),
    [
        ("whole", "twenty"),
        ("whole", "2.5"),
        ("whole", "true"),
        ("whole", "9" * 5_000),
        ("number", "NaN"),
        ("number", "1e999"),
        ("flag", "1"),
        ("flag", "yes"),
        ("items", "a"),
        ("items", "[1]"),
        ("items", "['a']"),
        ("mapping", '{"a": 1, "a": 2}'),
        ("nested", '{"a": "x"}'),
        ("frame", "orders"),
    ],
)
def test_a_string_without_a_fitting_reading_is_refused(name: str, given_text: str) -> None:
    prepared = prepare(EVERY, {"text_": "x", name: given_text})
    assert prepared.args[name] == given_text
    assert prepared.flags == ()
    assert prepared.invalid[0]["path"] == f"/{name}"


@pytest.mark.parametrize("name", ["text_", "either", "kind", "untyped"])
@given(text=st.text() | st.sampled_from(["5", "true", "null", "[]", "{}", '"x"', '{"$var": "x"}', " x "]))
def test_a_string_parameter_is_never_touched(name: str, text: str) -> None:
    args = {"text_": "x", name: text}
    prepared = prepare(EVERY, args)
    assert prepared.args == args
    assert "coerced" not in prepared.flags


def test_a_whole_number_with_a_point_is_a_whole_number() -> None:
    value = valid(prepare(READ, {"path": "a", "limit": 20.0}))["limit"]
    assert (value, type(value)) == (20, int)


@pytest.mark.parametrize(
    ("alias", "target"), [("text", "content"), ("source_id", "source"), ("message", "request")]
)
def test_a_known_alias_is_put_right(alias: str, target: str) -> None:
    prepared = prepare(schema(target), {alias: "x"})
    assert (valid(prepared), prepared.flags) == ({target: "x"}, ("aliased",))


def test_an_alias_stays_where_the_schema_knows_it_or_the_target_is_there() -> None:
    assert prepare(schema("text", content=TEXT), {"text": "x"}).args == {"text": "x"}
    assert prepare(schema("content"), {"text": "x", "content": "y"}).invalid[0]["path"] == "/text"
    assert prepare(schema("query"), {"text": "x"}).invalid[0]["path"] == "/text"


@pytest.mark.parametrize("raw", ['{"path": "a"}', {"path": "a", "limit": "5"}, {"path": "a", "limit": "[]"}])
def test_forgiveness_can_be_switched_off(raw: object) -> None:
    prepared = prepare(READ, raw, forgive=False)
    assert prepared.flags == ()
    assert prepared.invalid


def test_no_alias_without_forgiveness() -> None:
    assert prepare(schema("content"), {"text": "x"}, forgive=False).invalid


def test_an_unknown_argument_names_the_nearest() -> None:
    (fault,) = prepare(READ, {"path": "a", "limti": 5}).invalid
    assert fault == {"path": "/limti", "message": "unknown argument; did you mean 'limit'?"}
    (fault,) = prepare(READ, {"path": "a", "zzz": 5}).invalid
    assert "known are path, offset, limit" in fault["message"]
    (fault,) = prepare(schema(), {"zzz": 5}).invalid
    assert "takes none" in fault["message"]


@pytest.mark.parametrize(
    "opening",
    [
        {"additionalProperties": True},
        {"additionalProperties": {"type": "integer"}},
        {"patternProperties": {"^z": WHOLE}},
        {"allOf": [{"properties": {"zzz": WHOLE}}]},
    ],
)
def test_a_schema_may_be_open_to_others(opening: dict[str, Any]) -> None:
    assert valid(prepare({**READ, **opening}, {"path": "a", "zzz": 5}))


def test_an_open_schema_still_checks_what_it_says() -> None:
    typed = {**READ, "additionalProperties": {"type": "integer"}}
    assert prepare(typed, {"path": "a", "zzz": "x"}).invalid[0]["path"] == "/zzz"
    patterned = {**READ, "patternProperties": {"^z": WHOLE}, "additionalProperties": False}
    assert prepare(patterned, {"path": "a", "other": 5}).invalid
    assert prepare(patterned, {"path": "a", "zz": "x"}).invalid[0]["path"] == "/zz"


@pytest.mark.parametrize(
    ("args", "path", "message"),
    [
        ({}, "/text_", "is required"),
        ({"text_": 5}, "/text_", "must be a string, not the integer 5"),
        ({"text_": "x", "nested": {"a": None}}, "/nested/a", "must be an integer, not null"),
        ({"text_": "x", "whole": 2.5}, "/whole", "must be an integer, not the number 2.5"),
        ({"text_": "x", "flag": 1}, "/flag", "must be a boolean, not the integer 1"),
        ({"text_": "x", "items": ["a", 5]}, "/items/1", "must be a string, not the integer 5"),
        ({"text_": "x", "nested": {"a": "x"}}, "/nested/a", "must be an integer, not the string 'x'"),
        ({"text_": "x", "nested": {}}, "/nested/a", "is required"),
        ({"text_": "x", "kind": "conda"}, "/kind", "must be one of"),
        ({"text_": "x", "maybe": "x"}, "/maybe", "fits none of its forms"),
    ],
)
def test_what_is_wrong_is_told_in_plain_words(args: dict[str, Any], path: str, message: str) -> None:
    fault = prepare(EVERY, args).invalid[0]
    assert fault["path"] == path
    assert message in fault["message"]


REFERENCES = [{"$var": "orders"}, {"$blob": "0198-id"}, {"$blob": "0198-id", "path": "/rows"}]
PLACES = ["text_", "whole", "items", "mapping", "kind", "untyped", "nested", "either", "maybe"]


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("reference", REFERENCES)
def test_a_reference_stands_only_where_the_schema_asks_for_one(name: str, reference: dict[str, str]) -> None:
    (fault,) = prepare(EVERY, {"text_": "x", name: reference}).invalid
    assert fault == {"path": f"/{name}", "message": "takes the value itself, not a reference to it"}
    asking = {**EVERY["properties"], name: {**EVERY["properties"][name], "x-reference": ["any"]}}
    assert valid(prepare({**EVERY, "properties": asking}, {"text_": "x", name: reference}))[name] == reference


@pytest.mark.parametrize("reference", REFERENCES)
def test_what_takes_only_references_takes_every_one(reference: dict[str, str]) -> None:
    assert valid(prepare(EVERY, {"text_": "x", "frame": reference}))["frame"] == reference


@pytest.mark.parametrize("reference", REFERENCES)
def test_no_reference_hides_where_a_schema_says_nothing(reference: dict[str, str]) -> None:
    open_schema = {"type": "object", "properties": {"options": {"type": "object"}}}
    for args in (reference, {"options": {"deep": [reference]}}, {"text_": reference}):
        for each in (open_schema, {**open_schema, "additionalProperties": True}):
            assert prepare(each, args).invalid


def test_references_are_found_wherever_they_stand() -> None:
    args = {
        "a": {"$var": "orders"},
        "b": [1, {"c/d": {"$blob": "id", "path": "/rows"}}],
        "e": {"$blob": "id2"},
    }
    assert find_references(args) == [
        Reference("/a", "var", "orders"),
        Reference("/b/1/c~1d", "blob", "id", "/rows"),
        Reference("/e", "blob", "id2"),
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"$var": 5},
        {"$var": ""},
        {"$blob": None},
        {"$var": "x", "$blob": "y"},
        {"$var": "x", "path": "/a"},
        {"$blob": "x", "path": "rows"},
        {"$blob": "x", "path": 5},
        {"$blob": "x", "rows": 5},
    ],
)
def test_a_reference_gone_wrong_is_an_error_and_never_data(broken: dict[str, Any]) -> None:
    assert find_references({"mapping": broken}) == []
    for name in ("mapping", "whole", "untyped", "frame"):
        assert prepare(EVERY, {"text_": "x", name: broken}).invalid[0]["path"] == f"/{name}"


@pytest.mark.parametrize("literal", [[1, 2], {"a": 1}, 5, "orders"])
def test_a_parameter_for_references_takes_no_literal(literal: Any) -> None:
    (fault,) = prepare(EVERY, {"text_": "x", "frame": literal}).invalid
    assert '{"$var": "<name>"}' in fault["message"]
    assert prepare(EVERY, {"text_": "x", "many": [literal]}).invalid[0]["path"] == "/many/0"
    assert valid(prepare(EVERY, {"text_": "x", "many": [{"$var": "a"}]}))


def test_a_python_object_is_no_argument_but_can_be_referred_to() -> None:
    (fault,) = prepare(schema(data={}), {"data": object()}).invalid
    assert "object is no JSON value" in fault["message"]
    assert '{"$var": "<name>"}' in fault["message"]


def cycle() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


HOSTILE_ARGS: list[Any] = [
    {"path": "x" * 5_000_000, "nope" * 100_000: 1},
    {"path": ["x" * 1_000_000] * 3},
    {"path": deep(100_000)},
    {"path": "a", "limit": deep(500)},
    {"path": cycle()},
    {5: 6, None: 7},
    {"path": "a", "limit": float("nan")},
    {"path": "a", "limit": float("inf")},
    {"path": "a", "limit": 10**5_000, "offset": "x"},
    {"path": "a\0\ud800", "\ud800": 1},
    {f"unknown{i}": i for i in range(10_000)},
    {"path": {"$var": "x" * 1_000_000}, "limit": {"$blob": {}}},
]


@pytest.mark.parametrize("args", HOSTILE_ARGS, ids=range(len(HOSTILE_ARGS)))
@pytest.mark.parametrize("forgive", [True, False])
def test_hostile_arguments_end_in_a_short_answer(args: Any, forgive: bool) -> None:
    for target in (READ, {**READ, "minProperties": 1}, {**READ, "additionalProperties": True}):
        prepared = prepare(target, args, forgive=forgive)
        answer = json.dumps(prepared.invalid, ensure_ascii=False).encode("utf-8")
        assert len(answer) < 8_000


HOSTILE_SCHEMAS: list[Any] = [
    {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/schema.json"}}},
    {"type": "object", "properties": {"x": {"$ref": "#/$defs/missing"}}},
    {"type": "object", "properties": {"x": {"$ref": "#/properties/x"}}},
    {"type": "object", "properties": {"x": {"type": "strnig"}}},
    {"type": "object", "properties": {"x": {"type": "number", "multipleOf": 1e-320}}},
    {"type": "object", "properties": {"x": {"minimum": "many"}}},
    {"type": "object", "properties": 5},
    {"type": "object", "required": 5},
    {"type": 5},
    [],
]


@pytest.mark.parametrize("broken", HOSTILE_SCHEMAS, ids=range(len(HOSTILE_SCHEMAS)))
@pytest.mark.parametrize("args", [{"x": 5}, {"x": "5"}, '{"x": [1]}', None, 7])
def test_a_hostile_schema_raises_nothing(broken: Any, args: Any) -> None:
    assert isinstance(prepare(broken, args), Prepared)


def test_a_schema_that_points_elsewhere_opens_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        prepared = prepare(schema(x={"$ref": address}), {"x": 5})
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert "could not be checked" in prepared.invalid[0]["message"]


def test_a_wrong_schema_is_told_as_the_fault_of_the_category() -> None:
    (fault,) = prepare(HOSTILE_SCHEMAS[3], {"x": 5}).invalid
    assert "its category declared a wrong schema" in fault["message"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.sampled_from(["$var", "$blob"]), inner)
    ),
    max_leaves=8,
)


@given(JSON | st.dictionaries(st.sampled_from([*EVERY["properties"], "text", "zzz"]), JSON), st.booleans())
def test_preparing_raises_nothing_and_touches_no_input(raw: Any, forgive: bool) -> None:
    before = repr(raw)
    prepared = prepare(EVERY, raw, forgive=forgive)
    assert repr(raw) == before
    assert set(prepared.flags) <= {"decoded", "aliased", "coerced"}
    assert all(set(fault) == {"path", "message"} for fault in prepared.invalid)


def test_inner_arguments_beside_the_name_are_lifted_into_empty_args() -> None:
    for empty in ({}, None, "", "{}"):
        lifted = lift({"action_name": "file__read", "args": empty, "path": "a.txt"})
        assert lifted == ("file__read", {"path": "a.txt"}, ("lifted",))
    assert lift({"action_name": "file__read", "path": "a"}) == ("file__read", {"path": "a"}, ("lifted",))


def test_inner_arguments_beside_full_args_are_not_lifted_but_told() -> None:
    both = {"action_name": "file__read", "args": {"path": "a"}, "limit": 5}
    assert lift(both) == ("file__read", {"path": "a"}, ())
    assert [fault["path"] for fault in misplaced(both)] == ["/limit"]
    assert misplaced({"action_name": "file__read", "path": "a"}) == []
    assert [fault["path"] for fault in misplaced({"action_name": "x", "path": "a"}, forgive=False)] == [
        "/path"
    ]


def test_lifting_can_be_switched_off_and_raises_nothing() -> None:
    assert lift({"action_name": "file__read", "path": "a"}, forgive=False) == ("file__read", None, ())
    assert lift({"action_name": "file__read", "args": {"path": "a"}}) == ("file__read", {"path": "a"}, ())
    for raw in (None, [], "x", 5, {}, {"action_name": 5}):
        assert lift(raw)[0] == ""


def test_the_answer_to_invalid_arguments_carries_the_schema() -> None:
    action = published().get(ActionName("file", "read"))
    assert action is not None
    faults = prepare(action.input_schema, {"pth": "a"}).invalid
    answer = invalid_arguments(action, faults)
    assert list(answer) == ["error", "invalid", "input_schema", "hint"]
    assert answer["invalid"][0] == {"path": "/pth", "message": "unknown argument; did you mean 'path'?"}
    assert answer["input_schema"] == action.input_schema
    assert "file__read" in answer["error"]


def test_the_answer_to_invalid_arguments_is_bounded() -> None:
    action = published().get(ActionName("file", "read"))
    assert action is not None
    wide = schema(**{f"p{i}": {"type": "string", "description": "x" * 500} for i in range(500)})
    faults = prepare(wide, {f"q{i}" * 50: i for i in range(1_000)}).invalid
    object.__setattr__(action, "input_schema", wide)
    assert encoded_size(invalid_arguments(action, faults)) <= 8192


def test_a_string_that_spells_a_value_out_of_bounds_is_told_about_the_bound() -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "number", "minimum": 0}}}
    prepared = prepare(schema, {"amount": "-1"})
    assert prepared.invalid == [{"path": "/amount", "message": "must be at least 0, not the integer -1"}]
    assert prepared.flags == ()
