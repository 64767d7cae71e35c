"""Results, blobs and parts of blobs: a tree for JSON, numbered lines for text, and what comes next."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.outputs.blob import open_blob
from reyn_jupyter.outputs.blobs.file_store import FsBlobStore
from reyn_jupyter.outputs.content import Structured, Text
from reyn_jupyter.sessions.result_objects import Inspection, Result
from tests.notebook.render.samples import Reader, blob


def text_of(shown: object) -> str:
    return to_text(view(shown))


def open_branches(value: object) -> list[bool]:
    tags = Reader(to_html(view(Result("f", "x", value)))).tags
    return ["open" in attributes for tag, attributes in tags if tag == "details"]


def test_json_is_a_tree_with_exact_numbers_and_short_lists_on_one_line() -> None:
    text = text_of(
        Result(
            "f",
            "x",
            {"big": 2**60 + 1, "nan": float("nan"), "list": [1, None, True, "a"], "deep": {"x": "y"}},
        )
    )
    for line in (
        "4 keys",
        "  big: 1152921504606846977",
        "  nan: NaN",
        '  list: [1, null, true, "a"]',
        '    x: "y"',
    ):
        assert line in text.splitlines()


def test_branches_of_a_tree_open_without_script() -> None:
    large = {"a": {str(n): {"c": 1} for n in range(40)}}
    opened = open_branches(large)
    assert opened[:2] == [True, False] and not any(opened[1:])


def test_a_small_tree_stands_open_whole_so_that_its_values_are_seen() -> None:
    assert (
        open_branches({"items": [{"name": "first", "takes": ["a"]}, {"name": "second"}], "total": 2})
        == [True] * 4
    )
    assert open_branches({"step": {str(n): {"c": 1} for n in range(15)}}) == [True, True, *[False] * 15]


def test_what_a_tree_leaves_out_is_counted() -> None:
    text = text_of(Result("f", "x", {f"k{i}": {"a": 1} for i in range(100)}))
    assert "… 70 more" in text and "all of it: result.value" in text
    deep: object = 1
    for _ in range(20):
        deep = {"a": deep}
    assert "deeper than shown here" in text_of(Result("f", "x", deep))


def test_text_is_numbered_lines_and_a_single_line_stands_alone() -> None:
    assert " 1  one\n 2  two" in text_of(Result("f", "x", "one\ntwo\r\n" + "x\n" * 9))
    assert text_of(Result("f", "x", "just this")) == "f  [✓ ok]\n    just this"
    assert "(empty)" in text_of(Result("f", "x", ""))


def test_scalars_and_nothing_are_shown_as_they_are() -> None:
    assert "    42" in text_of(Result("f", "42", 42))
    assert "    true" in text_of(Result("f", "true", True))
    assert "    null" in text_of(Result("f", "null", None))


def test_a_failed_result_says_why_and_what_to_correct() -> None:
    payload = {
        "error": "Invalid arguments.",
        "invalid": [{"path": "/limit", "message": "is no integer"}],
        "hint": "Correct it.",
    }
    text = text_of(Result("file__read", payload))
    assert "file__read  [✗ failed]" in text and "✗ Invalid arguments." in text
    assert "  limit     is no integer" in text and "Correct it." in text


def test_an_error_that_was_stored_offers_the_whole_of_it() -> None:
    assert "%reyn inspect 0198" in text_of(
        Result("f", {"error": "ValueError: long", "hint": "", "blob": "0198"})
    )


def test_a_stored_result_names_its_blob() -> None:
    kept = blob(Text("a\n" * 500))
    text = text_of(Result("file__read", "[blob:…]", "a\n" * 500, kept))
    assert f"Blob: text, 1.0 KB: %reyn inspect {kept.id}" in text


def test_a_text_blob_shows_its_head_its_origin_and_the_next_lines() -> None:
    kept = blob(Text("".join(f"line {i}\n" for i in range(1, 201))), action="file__read")
    shown = view(kept)
    assert shown.title == "file__read"
    assert shown.facts[:4] == ("text", "200 lines", "1.7 KB", f"blob {kept.id[-12:]}")
    text = to_text(shown)
    assert "40  line 40" in text and "The first 40 of 200 lines; all of it: blob.text" in text
    assert f"%reyn inspect {kept.id} lines:41-80" in text


def test_an_object_blob_shows_its_keys_and_offers_the_large_ones() -> None:
    kept = blob(Structured({"name": "orders", "rows": [{"a": "x" * 100}] * 2000, "n": 2**53 + 1}))
    text = text_of(kept)
    assert 'name: "orders"' in text and "9007199254740993" in text
    assert "array(2000)" in text and f"%reyn inspect {kept.id} key:rows" in text


def test_an_array_of_objects_is_a_grid_with_absent_and_null_apart() -> None:
    kept = blob(Structured([{"id": 1, "note": None}, {"id": 2}, {"id": 3, "note": "x", "extra": [1]}] * 10))
    page = Reader(to_html(view(kept)))
    assert "30 rows × 3 columns" in page.text and "null" in page.text
    assert "slice:20..40" in page.text


def test_a_list_of_scalars_is_no_grid() -> None:
    assert "The first 20 of 50 entries; all of it: blob.json" in text_of(blob(Structured(["x" * 40] * 50)))


def test_a_blob_that_is_gone_says_so(tmp_path: Path) -> None:
    store = FsBlobStore(tmp_path)
    kept = open_blob(store, store.put(Text("a\n" * 900), action="file__read").id)
    for path in tmp_path.iterdir():
        path.unlink()
    text = text_of(kept)
    assert "[✗ not readable]" in text and "Run the action again." in text


def test_a_part_of_a_blob_keeps_its_line_numbers_and_offers_the_next_part() -> None:
    kept = blob(Text("".join(f"line {i}\n" for i in range(1, 201))))
    text = text_of(Inspection(kept.inspect("lines:20-22"), kept, "lines:20-22"))
    assert "20  line 20" in text and "22  line 22" in text
    assert f"Next part: %reyn inspect {kept.id} lines:23-25" in text
    leading = text_of(Inspection(kept.inspect(), kept))
    assert "text | 200 lines | 1692 bytes" in leading and " 1  line 1" in leading


def test_a_part_of_an_array_of_objects_is_a_grid() -> None:
    kept = blob(Structured([{"id": i} for i in range(40)]))
    text = text_of(Inspection(kept.inspect("slice:3..5"), kept, "slice:3..5"))
    assert "2 rows × 1 column" in text and "slice:5..7" in text
    assert "5 rows × 1 column" in text_of(Inspection(kept.inspect(None), kept))


def test_a_part_of_any_other_json_blob_is_a_tree() -> None:
    kept = blob(Structured([[i, {"id": i}] for i in range(40)]))
    text = text_of(Inspection(kept.inspect("slice:3..5"), kept, "slice:3..5"))
    assert "2 items" in text and "id: 3" in text and "slice:5..7" in text


def test_a_wrong_selector_is_explained() -> None:
    text = text_of(Inspection({"error": "No key 'nope'.", "hint": "Keys: results."}, None, "key:nope"))
    assert "✗ No key 'nope'." in text and "Keys: results." in text


def test_showing_stored_json_imports_no_pandas() -> None:
    code = (
        "import sys; from reyn_jupyter.notebook.displays.mime import mimebundle;"
        "from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore;"
        "from reyn_jupyter.outputs.blob import open_blob;"
        "from reyn_jupyter.outputs.content import Structured; store = MemoryBlobStore();"
        "assert '2 rows' in mimebundle(open_blob(store, store.put(Structured([{'a': 1}] * 2)).id))['text/plain'];"
        "assert not {'pandas', 'markdown_it', 'IPython'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
