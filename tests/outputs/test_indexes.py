"""The indexes: where lines and elements lie, for any text, across every border of chunks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from reyn_jupyter.outputs import json_index, line_index
from reyn_jupyter.outputs.blobs.blob_writer import dump_index, load_index
from reyn_jupyter.outputs.byte_source import MemorySource
from reyn_jupyter.outputs.convert import label_of
from reyn_jupyter.outputs.json_index import (
    NotJsonError,
    elements,
    find_member,
    index_json,
    label_at,
    members,
    parse_at,
)
from reyn_jupyter.outputs.line_index import file_lines, index_lines, read_lines
from tests.outputs.test_convert import json_values

nasty_text = (
    some.text(alphabet=some.sampled_from('"\\[]{},:é漢\n ab')) | some.just('\\"' * 9) | some.just("\\" * 65)
)
nasty_values = some.recursive(
    nasty_text | some.integers() | some.none(),
    lambda inner: some.lists(inner, max_size=6) | some.dictionaries(nasty_text, inner, max_size=6),
    max_leaves=25,
)


@pytest.fixture(params=[64, 192, 1 << 18])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Small chunks put a border into every string, escape and bracket."""
    monkeypatch.setattr(json_index, "CHUNK", request.param)
    return int(request.param)


def dumped(value: Any, style: int) -> bytes:
    return json.dumps(value, ensure_ascii=style % 2 == 0, indent=None if style < 2 else 2).encode(
        "utf-8", "surrogatepass"
    )


@settings(max_examples=60)
@given(some.data())
def test_the_index_agrees_with_the_parser(data: some.DataObject) -> None:
    size = data.draw(some.sampled_from([64, 128, 1 << 18]))
    value = data.draw(
        some.lists(nasty_values, max_size=8) | some.dictionaries(nasty_text, nasty_values, max_size=8)
    )
    raw = b" \n" + dumped(value, data.draw(some.integers(0, 3))) + b"\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_index, "CHUNK", size)
        source = MemorySource(raw)
        index = index_json(source)
        assert index.count == len(value)
        if isinstance(value, list):
            assert [parse_at(source, *span) for span in elements(source, index, 0, 99)] == value
            assert [label_at(source, *span) for span in elements(source, index, 0, 99)] == [
                label_of(v) for v in value
            ]
            first = data.draw(some.integers(0, 9))
            assert [parse_at(source, *span) for span in elements(source, index, first, first + 2)] == value[
                first : first + 2
            ]
        else:
            found = {
                member.key: parse_at(source, member.start, member.end) for member in members(source, index)
            }
            assert found == value
            labels = [
                label_at(source, member.start, member.end, member.inner) for member in members(source, index)
            ]
            assert labels == [label_of(item) for item in value.values()]


@settings(max_examples=40)
@given(some.dictionaries(nasty_text, nasty_values, min_size=3, max_size=8), some.integers(0, 3))
def test_keys_are_found_without_a_table(value: dict[str, Any], style: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_index, "CHUNK", 64)
        patch.setattr(json_index, "KEYS_KEPT", 1)
        source = MemorySource(dumped(value, style))
        index = index_json(source)
        assert (index.count, index.members) == (len(value), None)
        for key, item in value.items():
            member = find_member(source, index, key)
            assert member is not None
            assert parse_at(source, member.start, member.end) == item
        assert find_member(source, index, "no such key") is None


def test_many_elements_across_chunks(chunk: int) -> None:
    value = [{"id": number, "text": 'a "quoted\\" [text],' * (number % 5)} for number in range(3000)]
    source = MemorySource(json.dumps(value).encode())
    index = index_json(source)
    for first in (0, 1, 7, 1499, 2998, 2999):
        spans = list(elements(source, index, first, first + 3))
        assert [parse_at(source, *span) for span in spans] == value[first : first + 3]


def test_a_key_that_is_also_a_value_or_deeper_is_not_mistaken(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_index, "KEYS_KEPT", 1)
    value = {
        "a": {"wanted": 1},
        "b": "wanted",
        "c": ["wanted", '"wanted":'],
        "pad": "x" * 500,
        "wanted": 2,
        "z": 3,
    }
    source = MemorySource(json.dumps(value).encode())
    member = find_member(source, index_json(source), "wanted")
    assert member is not None
    assert parse_at(source, member.start, member.end) == 2


def test_the_last_of_equal_keys_wins() -> None:
    source = MemorySource(b'{"a": 1, "b": 2, "a": [3, 4]}')
    index = index_json(source)
    member = find_member(source, index, "a")
    assert member is not None
    assert (index.count, member.inner, parse_at(source, member.start, member.end)) == (2, 2, [3, 4])


@pytest.mark.parametrize("text", ["", "   ", "[", '["a]', "[1] 2", "[[1]", '{"a": 1} x', '["\\"]'])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(NotJsonError):
        index_json(MemorySource(text.encode()))


def test_nesting_of_any_depth_needs_no_stack() -> None:
    deep = b"[" * 200_000 + b"1" + b"]" * 200_000
    assert index_json(MemorySource(deep)).count == 1


@settings(max_examples=60)
@given(some.text(alphabet="a\r\n漢"), some.integers(1, 7), some.integers(0, 40), some.integers(1, 9))
def test_lines_are_found_across_chunks(text: str, piece: int, first: int, number: int) -> None:
    raw = text.encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_index, "CHUNK", 4)
        index = index_lines(raw[at : at + piece] for at in range(0, len(raw), piece))
        source = MemorySource(raw)
        expected = raw.split(b"\n")[: index.count]
        assert index.count == raw.count(b"\n") + (bool(raw) and not raw.endswith(b"\n"))
        found, count, _ = read_lines(source, index, first, first + number, 10_000)
        assert found.split(b"\n")[:count] == expected[first : first + number]
        for line in range(index.count):
            assert index.line_at(source, index.offset(source, line)) == line


@given(some.lists(json_values) | some.dictionaries(some.text(), json_values))
def test_an_index_survives_the_disk(value: Any) -> None:
    source = MemorySource(json.dumps(value).encode())
    for index in (index_json(source), file_lines(source)):
        assert load_index(dump_index(index, source.size), source.size) == index
        with pytest.raises(ValueError, match="index"):
            load_index(dump_index(index, source.size), source.size + 1)


@given(some.binary(max_size=60))
def test_a_torn_index_is_a_value_error(raw: bytes) -> None:
    with pytest.raises(ValueError):
        load_index(raw, 10)
