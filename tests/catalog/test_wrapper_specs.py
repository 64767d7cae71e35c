from __future__ import annotations

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reyn_jupyter.catalog.discovery.visibility import is_exec_available, is_search_available, search_hint
from reyn_jupyter.catalog.names import WRAPPERS
from reyn_jupyter.catalog.wrapper_specs import wrapper_specs
from tests.catalog.samples import of_size, published

CATEGORIES = list(published("bubblewrap").category_names)


def specs(**arguments: Any) -> dict[str, dict[str, Any]]:
    options = {"search": True, "inspect": True, **arguments}
    return {spec["function"]["name"]: spec["function"] for spec in wrapper_specs(CATEGORIES, **options)}


def test_the_wrappers_are_the_published_ones_and_inspect() -> None:
    assert tuple(specs()) == WRAPPERS
    assert "search_actions" not in specs(search=False)
    assert "inspect" not in specs(inspect=False)


@pytest.mark.parametrize("schemas", [True, False])
def test_no_action_is_named_in_a_wrapper(schemas: bool) -> None:
    text = json.dumps(specs(schemas=schemas))
    assert not [action.name.text for action in published("bubblewrap") if action.name.text in text]
    assert not re.search(r"[a-z]__[a-z]", text)


def test_the_arguments_are_the_published_ones() -> None:
    assert {name: list(spec["parameters"]["properties"]) for name, spec in specs().items()} == {
        "list_actions": ["category", "filter", "offset", "limit"],
        "describe_action": ["action_name"],
        "invoke_action": ["action_name", "args"],
        "search_actions": ["query", "category", "limit"],
        "inspect": ["blob_id", "selector"],
    }


def test_categories_are_an_enum_of_what_is_on_offer() -> None:
    for name in ("list_actions", "search_actions"):
        assert specs()[name]["parameters"]["properties"]["category"]["items"]["enum"] == CATEGORIES
    empty = wrapper_specs([], search=False, inspect=False)
    assert "enum" not in json.dumps(empty)


def test_names_just_listed_can_constrain_the_name() -> None:
    constrained = specs(constrain=["file__read", "file__grep"])
    for name in ("describe_action", "invoke_action"):
        assert constrained[name]["parameters"]["properties"]["action_name"]["enum"] == [
            "file__read",
            "file__grep",
        ]
    assert "enum" not in specs(constrain=[])["invoke_action"]["parameters"]["properties"]["action_name"]


def test_every_selector_is_documented() -> None:
    described = specs()["inspect"]["parameters"]["properties"]["selector"]["description"]
    for example in ("lines:20-50", "slice:3..8", "key:name", "path:/a/0/b", "bytes:", "grep:"):
        assert example in described


def test_the_size_does_not_depend_on_the_number_of_actions() -> None:
    few, many = (
        json.dumps(wrapper_specs(of_size(count).category_names, search=True, inspect=True))
        for count in (20, 10_000)
    )
    assert few == many


def test_the_definitions_are_small_and_sound() -> None:
    assert len(json.dumps(list(specs().values()))) < 5_000
    for spec in specs().values():
        Draft202012Validator.check_schema(spec["parameters"])
        assert set(spec["parameters"]["required"]) <= set(spec["parameters"]["properties"])


def test_two_sets_of_definitions_share_nothing_that_can_be_changed() -> None:
    first = wrapper_specs(CATEGORIES, search=True, inspect=True)
    first[0]["function"]["parameters"]["properties"].clear()
    assert wrapper_specs(CATEGORIES, search=True, inspect=True)[0]["function"]["parameters"]["properties"]


@pytest.mark.parametrize(
    ("embedding_class", "vectors", "local", "available"),
    [
        ("light", 1, False, True),
        ("light", 0, False, False),
        ("local-mini", 0, True, True),
        (None, 1, False, False),
        (None, 0, True, False),
    ],
)
def test_search_needs_a_class_and_a_vector_or_a_machine_that_makes_it(
    embedding_class: str | None, vectors: int, local: bool, available: bool
) -> None:
    assert is_search_available(embedding_class, vectors, local=local) is available


def test_the_hint_says_why_and_what_to_do() -> None:
    assert list(search_hint()) == ["reason", "status"]
    absent = search_hint("nothing runs it", install="pip install x")
    assert absent == {
        "reason": "Search by meaning is off: nothing runs it.",
        "install": "pip install x",
        "status": "%reyn embeddings status",
    }
    assert search_hint("it is null", hint="set it")["hint"] == "set it"


@pytest.mark.parametrize(
    ("backend", "available"),
    [
        ("bubblewrap", True),
        ("landlock", True),
        ("noop", False),
        (" NoOp ", False),
        ("", False),
        (None, False),
    ],
)
def test_commands_need_a_real_sandbox(backend: str | None, available: bool) -> None:
    assert is_exec_available(backend) is available
