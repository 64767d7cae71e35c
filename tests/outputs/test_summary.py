"""Summaries: always within their bytes, fair to head and tail, honest about what is left out."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as some

from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.content import FileContent, OutputPolicy, Structured, Text
from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.outputs.summary import summarize
from tests.outputs.test_convert import json_values

POLICY = OutputPolicy()


@given(some.text(alphabet=some.sampled_from("ab\n\r é漢🙂\u2028\x0b\x00")) | some.text())
def test_a_text_summary_keeps_to_its_bytes(text: str) -> None:
    summary = summarize(Text(text * 20), POLICY)
    assert len(summary.encode()) <= 400 - 44


@given(some.lists(json_values) | some.dictionaries(some.text(max_size=300), json_values, max_size=60))
def test_a_json_summary_keeps_to_its_bytes(value: object) -> None:
    assert len(summarize(Structured(value), POLICY).encode()) <= 400 - 44


@given(json_values, some.integers(1, 200))
def test_any_budget_is_kept(value: object, limit: int) -> None:
    assert len(summarize(Structured([value]), OutputPolicy(summary_bytes=limit + 44)).encode()) <= limit


def test_up_to_eight_lines_are_all_shown_and_five_have_no_tail() -> None:
    five = summarize(Text("\n".join(c * 300 for c in "abcde")), POLICY)
    assert "tail" not in five
    assert [line[0] for line in five.splitlines()[2:]] == list("abcde")
    eight = summarize(Text("\n".join(c * 300 for c in "abcdefgh")), POLICY)
    assert [line[0] for line in eight.splitlines() if "──" not in line][1:] == list("abcdefgh")
    six = summarize(Text("\n".join(c * 300 for c in "abcdef")), POLICY)
    assert six.splitlines()[-2] == "── tail ──"
    assert six.splitlines()[-1].startswith("ff")


def test_short_lines_leave_their_share_to_long_ones() -> None:
    lines = summarize(Text("\n".join(["x" * 500, *"abcdefg"])), POLICY).splitlines()
    assert len(lines[2]) > 200
    assert lines[-1] == "g"


def test_only_newlines_separate_lines() -> None:
    assert summarize(Text("a\u2028b\x0bc\x85d\r\ne\r\n"), POLICY).startswith("text | 2 lines\n")


def test_what_is_left_out_is_announced_in_its_place() -> None:
    summary = summarize(Structured({f"key number {number}": number for number in range(50)}), POLICY)
    shown = [line for line in summary.splitlines() if line.startswith("key")]
    assert summary.splitlines()[-1] == f"… {50 - len(shown)} keys omitted"
    wide = summarize(Structured([{f"column {number}": number for number in range(50)}]), POLICY)
    assert "keys omitted\n── head ──\n{" in wide


def test_an_array_of_other_things_has_one_schema_line() -> None:
    assert "── schema ──\nnumber\n── head ──\n1\n2" in summarize(Structured([1, 2, 3]), POLICY)
    assert "── schema ──\narray(2)\n" in summarize(Structured([[1, 2]]), POLICY)
    assert summarize(Structured([]), POLICY) == "json_array | 0 entries"


def test_a_name_with_a_newline_stays_on_its_line() -> None:
    assert '"a\\nb": number' in summarize(Structured({"a\nb": 1}), POLICY)


async def test_a_handler_can_write_its_own_summary() -> None:
    from reyn_jupyter.outputs.content import Stored

    store = MemoryBlobStore()
    short = await deliver(Stored("42 tests passed", Text("log")), store=store)
    assert short.text == f"[blob:{short.blob}] 42 tests passed"
    long = await deliver(Stored("漢" * 400, Text("log")), store=store)
    assert len(long.text.encode()) <= 400
    assert long.text.endswith("…")


def test_a_handed_over_file_gets_the_summary_of_its_content(tmp_path) -> None:  # type: ignore[no-untyped-def]
    text = "\n".join(f"line {number}" + "y" * number for number in range(300)) + "\n"
    (tmp_path / "t").write_bytes(text.encode())
    assert summarize(FileContent(tmp_path / "t"), POLICY) == summarize(Text(text), POLICY)
    for value in (
        [{"id": 1, "n": "x" * 60}] * 30,
        {"a": [1, 2], "b": {}, "c": "x" * 99, "d": None},
        [1, 2],
        [],
    ):
        (tmp_path / "j").write_text(json.dumps(value, indent=1))
        assert summarize(FileContent(tmp_path / "j", "json"), POLICY) == summarize(Structured(value), POLICY)
