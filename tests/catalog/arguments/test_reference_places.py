"""Where in arguments a schema takes a reference, whatever it is made of."""

from __future__ import annotations

from typing import Any

import pytest

from reyn_jupyter.catalog.arguments.reference_places import kind_of, misplaced_references, place_at

LIST = {"type": "array", "x-reference": ["array"]}
WAYS: list[tuple[dict[str, Any], str]] = [
    ({"properties": {"it": LIST}}, "/it"),
    ({"properties": {"a/b": LIST}}, "/a~1b"),
    ({"additionalProperties": LIST}, "/anything"),
    ({"properties": {"many": {"items": LIST}}}, "/many/3"),
    ({"properties": {"pair": {"prefixItems": [{}, LIST]}}}, "/pair/1"),
    ({"properties": {"it": {"anyOf": [{"type": "null"}, LIST]}}}, "/it"),
    ({"properties": {"it": {"$ref": "#/$defs/rows"}}, "$defs": {"rows": LIST}}, "/it"),
    ({"allOf": [{"properties": {"it": LIST}}]}, "/it"),
]


@pytest.mark.parametrize(("schema", "path"), WAYS)
def test_a_place_is_found_however_the_schema_leads_there(schema: dict[str, Any], path: str) -> None:
    place = place_at(schema, path)
    assert (place.kinds, place.admits([1]), place.admits("text")) == ({"array"}, True, False)
    assert place.checks([1]) and not place_at(schema, f"{path}/0").kinds


def test_a_schema_that_refers_to_itself_comes_to_an_end() -> None:
    node = {"properties": {"next": {"$ref": "#"}}, "anyOf": [{"$ref": "#"}]}
    assert not place_at(node, "/next" * 50).kinds


def test_a_reference_where_the_schema_says_nothing_is_named() -> None:
    schema = {"properties": {"it": LIST, "other": {"type": "object"}}}
    args = {"it": {"$var": "a"}, "other": {"deep": [{"$blob": "b"}]}}
    assert list(misplaced_references(schema, args)) == ["/other/deep/0"]


class Text(str):
    """A person's own kind of text."""

    def __eq__(self, other: object) -> bool:
        pytest.fail("its code ran")

    def __hash__(self) -> int:
        pytest.fail("its code ran")


def test_the_kind_of_a_value_is_told_by_its_type_alone() -> None:
    given = [Text("x"), "x", True, 1, None, {}, []]
    kinds = ["python", "string", "boolean", "number", "null", "object", "array"]
    assert list(map(kind_of, given)) == kinds
