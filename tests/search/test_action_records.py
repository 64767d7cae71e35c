"""Records: what they take, what they refuse, and what their digest follows from."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.search.action_records import Record, RecordError
from reyn_jupyter.search.ranking.index import Index


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"name": "x"}, "id is missing"),
        ({"id": "a"}, "name is missing"),
        ({"id": "a", "name": " "}, "name is empty"),
        ({"id": "", "name": "x"}, "id is empty"),
        ({"id": 7, "name": "x"}, "id must be text, not int"),
        ({"id": "a", "name": None}, "name must be text, not NoneType"),
        ({"id": "a", "name": "x", "description": ["no"]}, "description must be text, not list"),
        ({"id": "a", "name": "x", "parameters": "path"}, "parameters must be a JSON Schema object"),
        ({"id": "a", "name": "x", "parameters": {("a", "b"): 1}}, "no JSON"),
        ("read_file", "mapping with id and name, not str"),
    ],
)
def test_a_bad_record_is_refused_with_its_reason(given_: Any, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        _ = Record.of(given_).digest


def test_ids_are_unique_and_the_error_names_the_one_that_stands_twice() -> None:
    with pytest.raises(RecordError, match=r"'a'.*stands twice"):
        Index([{"id": "a", "name": "x"}, {"id": "b", "name": "x"}, {"id": "a", "name": "y"}])


@pytest.mark.parametrize("records", ["abc", {"id": "a", "name": "x"}, 7])
def test_records_come_as_a_list(records: Any) -> None:
    with pytest.raises(RecordError, match="list of records"):
        Index(records)


def test_none_means_the_default_and_other_keys_are_left_aside() -> None:
    found = Record.of({"id": "a", "name": "x", "description": None, "parameters": None, "colour": "red"})
    assert found == Record("a", "x")


@given(st.text(), st.text(), st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.none())))
def test_the_digest_follows_from_what_ranking_reads(
    text: str, other: str, parameters: dict[str, object]
) -> None:
    one = Record("1", "name", text, parameters, "here")
    assert one.digest == Record("2", "name", text, dict(reversed(parameters.items())), "there").digest
    assert (one.digest == Record("1", "name", other, parameters).digest) == (text == other)
