"""Looking into a blob: every selector, its bounds, and that nothing stays out of reach."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.content import BlobStoreError, FileContent, Structured, Text
from reyn_jupyter.outputs.convert import to_content
from reyn_jupyter.outputs.inspect import inspect, inspect_now
from reyn_jupyter.outputs.selectors import (
    BytesSelector,
    KeySelector,
    LastLinesSelector,
    LinesSelector,
    PointerSelector,
    SelectorError,
    SliceSelector,
    parse_selector,
)
from tests.outputs.test_convert import json_values

if TYPE_CHECKING:
    from pathlib import Path

    from reyn_jupyter.outputs.blobs.random_access import LocalBlobStore

LINES = "\n".join(f"line {number}" for number in range(1, 201))


def lines_of(text: str) -> list[str]:
    """The rule: split at newlines, drop one carriage return, no line after a final newline."""
    parts = text.split("\n")
    if parts[-1] == "":
        parts.pop()
    return [part.removesuffix("\r") for part in parts]


def put(value: Any) -> tuple[MemoryBlobStore, str]:
    store = MemoryBlobStore()
    return store, store.put(value if isinstance(value, Text | Structured) else to_content(value)).id


async def ask(store: LocalBlobStore, blob: str, selector: str | None = None) -> tuple[str, str]:
    """The selected content, and the last line."""
    answer = await inspect(store, blob, selector)
    assert len(answer.encode()) <= 8192
    content, _, last = answer.rpartition("\n")
    return content, last


async def test_a_text_opens_with_kind_size_and_fifty_lines(store: LocalBlobStore) -> None:
    content, last = await ask(store, await store.store(Text(LINES)))
    assert content == f"text | 200 lines | {len(LINES)} bytes\n" + "\n".join(LINES.split("\n")[:50])
    assert last == "150 lines left · next: lines:51-100"


async def test_ranges_of_lines(store: LocalBlobStore) -> None:
    blob = await store.store(Text(LINES))
    assert await ask(store, blob, "lines:20-22") == (
        "line 20\nline 21\nline 22",
        "178 lines left · next: lines:23-25",
    )
    assert await ask(store, blob, "lines:199-") == ("line 199\nline 200", "0 lines left")
    assert await ask(store, blob, "lines:-2") == ("line 199\nline 200", "0 lines left")
    assert (await ask(store, blob, "lines:-5000"))[0] == LINES
    assert (await ask(store, blob, "lines:199-5000"))[0] == "line 199\nline 200"
    assert (await inspect(store, blob, "lines:500-600")) == "no line 500: the text has 200 lines"


async def test_slices(store: LocalBlobStore) -> None:
    blob = await store.store(Structured(list(range(20))))
    assert await ask(store, blob, "slice:3..8") == ("[3,4,5,6,7]", "12 entries left · next: slice:8..13")
    assert (await ask(store, blob, "slice:4..4"))[0] == "[]"
    assert await ask(store, blob, "slice:18..") == ("[18,19]", "0 entries left")
    assert await ask(store, blob, "slice:18..99") == ("[18,19]", "0 entries left")
    assert await ask(store, blob, "slice:30..40") == ("[]", "no element 30: the array has 20 entries")


async def test_an_array_opens_with_five_elements(store: LocalBlobStore) -> None:
    blob = await store.store(Structured([{"id": number} for number in range(60)]))
    content, last = await ask(store, blob)
    assert content.splitlines()[1:] == [f'{{"id":{number}}}' for number in range(5)]
    assert last == "55 entries left · next: slice:5..10"


async def test_an_object_opens_with_all_keys_and_three_values(store: LocalBlobStore) -> None:
    blob = await store.store(Structured({"a": [1, 2], "b": "x" * 60, "c": None, "d": {"e": 1}, "a:b": 5}))
    assert await inspect(store, blob) == (
        "json_object | 5 keys | 107 bytes\n"
        "── keys ──\na: array(2)\nb: string(60)\nc: null\nd: object(1)\na:b: number\n"
        f'── values ──\na: [1,2]\nb: "{"x" * 60}"\nc: null\n'
        "2 values left · next: key:d"
    )
    assert await inspect(store, blob, "key:d") == '{"e":1}'
    assert await inspect(store, blob, "key:a:b") == "5"


async def test_paths(store: LocalBlobStore) -> None:
    blob = await store.store(Structured({"a": [{"b": 'q"\\'}], "x/y": {"~": 1, "": 2}, "n": 5}))
    assert await inspect(store, blob, "path:/a/0/b") == '"q\\"\\\\"'
    assert await inspect(store, blob, "path:/x~1y/~0") == "1"
    assert await inspect(store, blob, "path:/x~1y/") == "2"
    assert (await inspect(store, blob, "path:")).startswith('{"a":')
    for wrong in (
        "path:/a/7",
        "path:/a/-1",
        "path:/a/00",
        "path:/a/x",
        "path:/n/0",
        "path:/none",
        "path:a",
        "path:/~2",
    ):
        with pytest.raises(SelectorError):
            await inspect(store, blob, wrong)


async def test_json_kept_as_written_takes_lines_too(store: LocalBlobStore) -> None:
    blob = await store.store(to_content('{\r\n  "rows": [ {"id": 1, "t": "a  b"},\n 1.10 ]\n}'))
    assert await inspect(store, blob, "key:rows") == '[{"id":1,"t":"a  b"},1.10]'
    assert (await ask(store, blob, "lines:3-3"))[0] == " 1.10 ]"
    with pytest.raises(SelectorError, match="lines:20-50"):
        await inspect(store, blob, "slice:0..1")


@pytest.mark.parametrize(
    ("value", "selector", "right"),
    [
        (Text("x"), "slice:0..1", "lines:20-50"),
        (Text("x"), "key:a", "lines:20-50"),
        (Text("x"), "path:/a", "lines:20-50"),
        ([1], "key:a", "slice:3..8"),
        ([1], "lines:1-2", "slice:3..8"),
        ({"a": 1}, "slice:0..1", "key:<name>"),
        ({"a": 1}, "lines:1-2", "key:<name>"),
    ],
)
async def test_a_selector_of_the_wrong_kind_names_the_right_one(
    value: Any, selector: str, right: str
) -> None:
    with pytest.raises(SelectorError, match=re.escape(right)):
        await inspect(*put(value), selector)


@pytest.mark.parametrize(
    "selector",
    [
        "", "lines", "lines:", "lines:0-5", "lines:9-3", "lines:a-b", "lines:1..2", "lines:-0", "lines:٣-٤", "lines:20",
        "slice:5..2", "slice:-1..2", "slice:1-2", "slice:", "key:", "foo:1", "bytes:1-2", "bytes:9..2", "path:x",
        "grep:", "grep:(a", "grep:(?=a)", "grep:(a)\\1", "grep:" + "a" * 2000, "LINES:1-2", "x" * 10_000,
        "lines:" + "9" * 400 + "-",
    ],
)  # fmt: skip
async def test_a_wrong_selector_is_a_bounded_argument_error(selector: str) -> None:
    with pytest.raises(SelectorError) as caught:
        await inspect(*put(Text(LINES)), selector)
    assert len(str(caught.value).encode()) < 1000
    assert caught.value.hint


async def test_a_missing_key_lists_the_keys_within_bounds() -> None:
    store, blob = put({f"{'k' * 150}{number}": number for number in range(500)})
    with pytest.raises(SelectorError, match=r"and \d+ more") as caught:
        await inspect(store, blob, "key:" + "z" * 4000)
    assert len(str(caught.value).encode()) < 1400


def test_selectors_are_read_strictly() -> None:
    assert parse_selector("lines:20-50") == LinesSelector(20, 50)
    assert parse_selector("lines:20-") == LinesSelector(20, None)
    assert parse_selector("lines:-20") == LastLinesSelector(20)
    assert parse_selector("slice:3..") == SliceSelector(3, None)
    assert parse_selector("key: a:b ") == KeySelector(" a:b ")
    assert parse_selector("path:/a~1b/~01/") == PointerSelector(("a/b", "~1", ""))
    assert parse_selector("bytes:0..0") == BytesSelector(0, 0)


@given(
    some.text(max_size=40) | some.from_regex(r"(lines|slice|bytes|path|key|grep):[0-9./~a-]*", fullmatch=True)
)
def test_any_text_is_a_selector_or_a_selector_error(text: str) -> None:
    store, blob = put(Text(LINES))
    try:
        assert len(inspect_now(store, blob, text).encode()) <= 8192
    except SelectorError as wrong:
        assert str(wrong)


mixed_text = some.text(alphabet=some.sampled_from("ab\r\n\n 漢🙂\u2028\x0b\x85\x00"), max_size=200)


@given(mixed_text, some.integers(1, 12), some.integers(0, 12))
def test_selected_lines_are_the_lines_of_the_rule(text: str, first: int, more: int) -> None:
    store, blob = put(Text(text))
    lines = lines_of(text)
    answer = inspect_now(store, blob, f"lines:{first}-{first + more}")
    chosen = lines[first - 1 : first + more]
    if first > len(lines):
        assert answer == f"no line {first}: the text has {len(lines)} lines"
    else:
        assert answer.rpartition("\n")[0] == "\n".join(chosen)
        assert answer.rpartition("\n")[2].startswith(f"{len(lines) - first - len(chosen) + 1} lines left")


@given(some.lists(json_values, max_size=12), some.integers(0, 14), some.integers(0, 14), some.booleans())
def test_a_slice_is_the_slice_of_the_parsed_list(
    values: list[Any], start: int, more: int, spread: bool
) -> None:
    store, blob = put(to_content(json.dumps(values, indent=2)) if spread else Structured(values))
    answer = inspect_now(store, blob, f"slice:{start}..{start + more}")
    assert json.loads(answer.rpartition("\n")[0]) == values[start : start + more]


@given(some.dictionaries(some.text(max_size=8), json_values, min_size=1, max_size=8), some.booleans())
def test_a_key_gives_the_value_of_the_parsed_object(value: dict[str, Any], spread: bool) -> None:
    store, blob = put(to_content(json.dumps(value, indent=1)) if spread else Structured(value))
    for key, expected in value.items():
        pointer = "path:/" + key.replace("~", "~0").replace("/", "~1")
        assert json.loads(inspect_now(store, blob, pointer)) == expected
        if key:
            assert json.loads(inspect_now(store, blob, f"key:{key}")) == expected


@given(some.text(alphabet="aé漢🙂\n", max_size=60), some.integers(0, 240), some.integers(4, 240))
def test_two_pages_of_bytes_join_to_the_whole(text: str, cut: int, more: int) -> None:
    """Whatever the cut, the character it falls into stands on exactly one of the two pages."""
    store, blob = put(Text(text))
    size = len(text.encode())
    cut = min(cut, size)
    pages = [
        inspect_now(store, blob, f"bytes:{start}..{end}").rpartition("\n")[0]
        for start, end in ((0, cut), (cut, cut + more), (cut + more, size + more + 4))
        if start < size and (end > start + 3 or end >= size)
    ]
    assert not any("\ufffd" in page for page in pages)
    if cut > 3 or cut == 0:
        assert text.startswith("".join(pages))


def follow(store: LocalBlobStore, blob: str, selector: str) -> list[str]:
    """Every page from a selector on, as a model would turn them."""
    pages = []
    while selector:
        content, _, last = inspect_now(store, blob, selector).rpartition("\n")
        pages.append(content)
        found = re.search(r"next: (\S+)$", last)
        selector = found[1] if found and len(pages) < 200 else ""
    return pages


def test_turning_pages_reaches_everything() -> None:
    text = "\n".join(f"{number} " + "漢" * (number % 90) for number in range(900))
    store, blob = put(Text(text))
    assert "\n".join(follow(store, blob, "lines:1-200")) == text
    assert "".join(follow(store, blob, "bytes:0..5000")) == text
    values = [{"id": number, "t": "é" * (number % 300)} for number in range(500)]
    store, blob = put(Structured(values))
    assert [item for page in follow(store, blob, "slice:0..60") for item in json.loads(page)] == values


def test_what_the_cap_cuts_goes_on_by_bytes() -> None:
    long = "漢" * 20_000
    store, blob = put(Text(long))
    assert "".join(follow(store, blob, "lines:1-1")) == long
    store, blob = put(Structured({"a": 1, "big": long}))
    assert "".join(follow(store, blob, "key:big")).startswith(f'"{long}"')
    store, blob = put(Structured([long, 2]))
    assert "".join(follow(store, blob, "slice:0..2")) == f'["{long}",2]'
    answer = inspect_now(store, blob)
    assert re.search(r"\n\d+ bytes left · next: bytes:\d+\.\.\d+$", answer)
    assert len(answer.encode()) <= 8192


def test_bytes_that_are_no_utf8_stay_within_the_cap() -> None:
    store = MemoryBlobStore()
    blob = store.put(Text("x")).id
    store._blobs[blob].data = b"\xff\xfe" * 50_000
    store._blobs[blob].index = None
    for selector in (None, "lines:1-3", "bytes:1..50000", "grep:x"):
        assert len(inspect_now(store, blob, selector).encode()) <= 8192


async def test_grep_finds_lines_with_their_numbers(store: LocalBlobStore) -> None:
    blob = await store.store(Text(LINES.replace("\n", "\r\n")))
    content, last = await ask(store, blob, "grep:^line 1[0-9]$")
    assert content.splitlines() == [f"{number}: line {number}" for number in range(10, 20)]
    assert last == "0 matches left after line 19"
    assert (await ask(store, blob, r"grep:\Aline 7\z"))[0] == "7: line 7"
    assert await inspect(store, blob, "grep:nowhere") == "no line matches 'nowhere'"
    many = await store.store(Text("match\n" * 5000))
    assert re.fullmatch(
        r"more matches from line (\d+) on · next: lines:\1-\d+", (await ask(store, many, "grep:m"))[1]
    )


async def test_grep_in_one_long_line_tells_the_byte(store: LocalBlobStore) -> None:
    blob = await store.store(Structured({"text": "é" * 5000 + "needle" + "x" * 5000}))
    content, _ = await ask(store, blob, "grep:needle")
    offset = int(re.findall(r"\(byte (\d+)\)", content)[0])
    assert "needle" in (await inspect(store, blob, f"bytes:{offset}..{offset + 600}"))


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x"])
async def test_a_pattern_that_would_run_away_does_not(pattern: str) -> None:
    store, blob = put(Text("a" * 200_000 + "!"))
    start = time.monotonic()
    await inspect(store, blob, f"grep:{pattern}")
    assert time.monotonic() - start < 200  # backtracking would take longer than the universe has


async def test_damaged_json_is_said_to_be_damaged(files: Any, tmp_path: Path) -> None:
    blob = await files.store(Structured({"a": 1, "b": [1, 2]}))
    for damaged in ('{"a": 1, "b": [1, 2', '{"a" 1}', "{1: 2}", '{"a": "\\x"}', ""):
        (files.folder / f"{blob}.json").write_text(damaged)
        for selector in ("key:a", None, "path:/b/0"):
            try:
                await inspect(files, blob, selector)
            except (BlobStoreError, SelectorError):
                continue
        assert len(await inspect(files, blob, "bytes:0..100")) < 200
    (tmp_path / "broken.json").write_text('{"a": [1, }]')
    with pytest.raises(BlobStoreError):
        await files.load(await files.store(FileContent(tmp_path / "broken.json", kind="json")))


async def test_empty_contents(store: LocalBlobStore) -> None:
    assert (await inspect(store, await store.store(Text("")))).startswith("text | 0 lines | 0 bytes\n")
    assert (await inspect(store, await store.store(Structured([])))).startswith(
        "json_array | 0 entries | 2 bytes\n"
    )
    assert (await inspect(store, await store.store(Structured({})))).startswith(
        "json_object | 0 keys | 2 bytes\n"
    )
    assert await inspect(store, await store.store(Structured(5))) == "json_value | 1 bytes\n5"


@settings(suppress_health_check=list(HealthCheck), max_examples=30)
@given(
    some.sampled_from([None, "lines:1-5", "bytes:0..4000", "lines:-3", "grep:l"]), some.integers(250, 2000)
)
def test_any_cap_is_kept(selector: str | None, cap: int) -> None:
    store, blob = put(Text("long line " * 50 + "\n" + LINES))
    assert len(inspect_now(store, blob, selector, cap=cap).encode()) <= cap
