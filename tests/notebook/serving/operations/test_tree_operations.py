"""Opening a blob, and its JSON as a tree: children by path, places, searches, whatever the document holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from reyn_jupyter.notebook.render.tree_view import kind_of, tree, value_text
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.outputs import json_index
from reyn_jupyter.outputs.blobs.ids import new_blob_id
from reyn_jupyter.outputs.blobs.read_progress import StoppedError, Watch, WatchedSource
from reyn_jupyter.outputs.byte_source import MemorySource
from reyn_jupyter.outputs.json_index import index_json
from reyn_jupyter.outputs.json_tree import IndexCache
from reyn_jupyter.outputs.line_index import LineIndex
from tests.notebook.serving.blob_requests import Refused, Viewer, children, dumped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    made = Viewer(tmp_path_factory.mktemp("workspace"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """The same without a disk."""
    made = Viewer(tmp_path_factory.mktemp("workspace"), store="memory")
    yield made
    made.close()


letters = some.text(alphabet=some.sampled_from('"\\[]{},:é漢\n\u202e ab'), max_size=12)
values = some.recursive(
    letters
    | some.integers()
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.booleans()
    | some.none(),
    lambda inner: some.lists(inner, max_size=6) | some.dictionaries(letters, inner, max_size=6),
    max_leaves=30,
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    value=some.lists(values, max_size=8) | some.dictionaries(letters, values, max_size=8),
    small=some.booleans(),
)
def test_walking_the_tree_gives_back_the_value(quick: Viewer, value: Any, small: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if small:  # borders of chunks inside everything
            patch.setattr(json_index, "CHUNK", 64)
        blob = quick.keep(value)
        waiting: list[tuple[list[int], dict[str, Any] | None, Any]] = [([], None, value)]
        while waiting:
            path, place, expected = waiting.pop()
            found = children(quick, blob, path=path)
            if place is not None:
                assert children(quick, blob, place=place) == found
            inside = list(expected.items() if isinstance(expected, dict) else enumerate(expected))
            look = Look()
            assert [each["key"] for each in found] == [look.line(key, 80) for key, _ in inside]
            assert [each["text"] for each in found] == [value_text(item, look) for _, item in inside]
            assert [each["kind"] for each in found] == [kind_of(item) for _, item in inside]
            for each, (key, item) in zip(found, inside, strict=True):
                assert each["count"] == (len(item) if isinstance(item, list | dict) else None)
                assert eval(f"whole{each['step']}", {"whole": expected}) is item
                if isinstance(item, list | dict):
                    waiting.append(([*path, each["position"]], each["place"], item))
                    named = [*path, key] if isinstance(expected, dict) else [*path, str(key)]
                    assert quick.ask("tree.way", blob=blob, path=named)["way"] == [*path, each["position"]]


def test_the_static_tree_and_the_live_one_use_the_same_words(viewer: Viewer) -> None:
    value = {
        "name": "x" * 500,
        "few": [1, "two", None],
        "many": list(range(5000)),
        "deep": {"a": [{"b": {}}]},
    }
    static = tree(value, Look(), "blob.json").root
    live = children(viewer, viewer.keep(value))
    assert [(each["key"], each["text"], each["kind"]) for each in live] == [
        (node.key, node.text, node.kind) for node in static.children
    ]


def test_a_large_array_is_read_where_it_is_asked_for(viewer: Viewer) -> None:
    blob = viewer.keep([{"id": number, "pad": "x" * 20} for number in range(100_000)])
    page = viewer.ask("tree.children", blob=blob, offset=99_990, limit=200)
    assert (page["total"], page["value"]["text"], page["offset"]) == (100_000, "100,000 items", 99_990)
    assert [each["key"] for each in page["children"]] == [str(number) for number in range(99_990, 100_000)]
    last = viewer.ask("tree.children", blob=blob, path=[99_999])
    assert next((each["key"], each["text"]) for each in last["children"]) == ("id", "99999")


def test_an_object_of_very_many_keys_is_paged_by_position(viewer: Viewer) -> None:
    blob = viewer.keep({f"key {number}": [number] for number in range(30_000)})
    page = viewer.ask("tree.children", blob=blob, offset=29_999, limit=10)
    assert [(each["key"], each["position"], each["text"]) for each in page["children"]] == [
        ("key 29999", 29_999, "[29999]")
    ]
    inner = viewer.ask("tree.children", blob=blob, path=["key 29999"])
    assert inner["children"][0]["text"] == "29999"
    assert viewer.ask("tree.way", blob=blob, path=["key 17"])["way"] == [17]


def test_ten_thousand_levels_open_one_after_the_other(viewer: Viewer) -> None:
    depth = 10_000
    blob = viewer.keep_json('{"a":[' * (depth // 2) + "7" + "]}" * (depth // 2))
    place, level = None, 0
    while level < 60:
        page = viewer.ask("tree.children", blob=blob, place=place)
        assert len(page["children"]) == 1
        place, level = page["children"][0]["place"], level + 1
    walked = viewer.ask("tree.children", blob=blob, path=[0] * 60)
    assert walked["value"]["place"] == place
    assert viewer.ask("tree.way", blob=blob, path=[0] * 1000)["found"]


def test_keys_and_texts_of_megabytes_are_cut_and_still_reached(viewer: Viewer) -> None:
    blob = viewer.keep({"k" * 3_000_000: {"inside": 1}, "text": "é\n" * 1_000_000})
    key, text = children(viewer, blob)
    assert (len(key["key"]), key["key"][-1], key["step"]) == (80, "…", "")
    assert children(viewer, blob, path=[0])[0]["key"] == "inside"
    assert text["text"].startswith('"é⏎é⏎')
    assert text["text"].endswith('…" (4.0 MB in all)')
    assert len(text["text"]) < 300


def test_integers_are_exact_however_large(viewer: Viewer) -> None:
    blob = viewer.keep_json(f"[{2**53 + 1}, {10**200 + 7}, {'9' * 5000}, 1e400]")
    assert [each["text"] for each in children(viewer, blob)] == [
        str(2**53 + 1),
        "1" + "0" * 118 + "…",
        "<int of about 5000 digits>",
        "Infinity",
    ]


def test_of_keys_that_stand_twice_the_last_one_counts(viewer: Viewer) -> None:
    blob = viewer.keep_json('{"a": 1, "b": 2, "a": 3}')
    assert [(each["key"], each["text"]) for each in children(viewer, blob)] == [("a", "3"), ("b", "2")]


def test_damaged_parts_say_where_and_the_rest_is_shown(viewer: Viewer) -> None:
    blob = viewer.keep({"good": [1], "bad": ["x" * 20]})
    path = viewer.store.path(blob)
    path.write_text(path.read_text().replace('"' + "x" * 20 + '"', "wrong!".ljust(22)))
    good, bad = children(viewer, blob)
    assert good["text"] == "[1]"
    assert [each["text"] for each in children(viewer, blob, path=["bad"])] == [
        f"damaged JSON at byte {bad['place']['start'] + 1}: Expecting value: line 1 column 1 (char 0)"
    ]
    path.write_text(path.read_text()[:-3])
    with pytest.raises(Refused, match=r"damaged.*left open.*\| The text pane shows"):
        children(viewer, blob)


def test_secrets_and_long_keys_are_in_no_answer(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "correct-horse-battery")
    blob = viewer.keep(
        {"correct-horse-battery": "say correct-horse-battery", "list": ["correct-horse-battery"]}
    )
    answers = [viewer.ask("tree.children", blob=blob), viewer.ask("tree.children", blob=blob, path=["list"])]
    place = answers[0]["value"]["place"]
    answers.append(viewer.ask("tree.value", blob=blob, place=place))
    answers.append(viewer.ask("lines.window", blob=blob))
    answers.append(viewer.ask("lines.whole", blob=blob, line=1))
    assert "horse" not in dumped(answers)
    assert answers[0]["children"][0]["step"] == ""


def test_a_search_goes_through_keys_and_values_in_order(viewer: Viewer) -> None:
    blob = viewer.keep([{"name": "Zürich", "n": 1}, {"ZÜRICH_KEY": [0, {"x": 'say "zürich"'}]}, "nothing"])
    found, after = [], 0
    while (answer := viewer.ask("tree.find", blob=blob, text="zürich", after=after))["found"]:
        found.append(answer["way"])
        after = answer["next"]
    assert found == [[0, 0], [1, 0], [1, 0, 1, 0]]
    assert viewer.ask("tree.find", blob=blob, text='say "z')["way"] == [1, 0, 1, 0]
    assert not viewer.ask("tree.find", blob=blob, text="absent")["found"]


def test_a_path_that_leads_nowhere_is_followed_as_far_as_it_goes(viewer: Viewer) -> None:
    blob = viewer.keep({"a": [1, {"b": 2}]})
    answer = viewer.ask("tree.way", blob=blob, path=["a", "1", "c", "d"])
    assert (answer["found"], answer["way"]) == (False, [0, 1])
    assert "'c' at step 3" in answer["note"]
    with pytest.raises(Refused, match="'zzz' at step 1"):
        viewer.ask("tree.children", blob=blob, path=["zzz"])


def test_opening_says_what_it_is_where_it_came_from_and_where_to_begin(viewer: Viewer) -> None:
    blob = viewer.keep([{"id": 1}, {"id": 2}], action="table__query", run="run-9")
    opened = viewer.ask("blob.open", blob=blob)
    assert (opened["id"], opened["panes"], opened["pane"]) == (blob, ["grid", "tree", "text"], "grid")
    assert opened["facts"][:4] == ["JSON array", "2 entries", "19 bytes", f"blob {blob[-12:]}"]
    about = dict(map(tuple, opened["about"]))
    assert (about["action"], about["run"], len(about["sha256"])) == ("table__query", "run-9", 64)
    assert opened["commands"][0][1] == f"%reyn inspect {blob}"


def test_a_result_of_an_action_knows_its_run_and_its_step(viewer: Viewer) -> None:
    @viewer.session.action
    def many() -> list[int]:
        """Very many numbers."""
        return list(range(50_000))

    result = viewer.session.invoke_action("function__many")
    assert result.blob is not None
    about = dict(map(tuple, viewer.ask("blob.open", blob=result.blob.id)["about"]))
    assert list(about) == ["id", "action", "run", "step", "size", "sha256"]
    assert (about["action"], about["run"]) == ("function__many", result.blob.run)
    assert about["step"].isdigit()


def test_the_line_for_python_works(viewer: Viewer) -> None:
    blob = viewer.keep([{"id": 1}, {"id": 2}])
    line = viewer.ask("blob.open", blob=blob)["commands"][1][1]

    class Reyn:
        session = staticmethod(lambda: viewer.session)

    assert list(eval(line, {"reyn": Reyn}).id) == [1, 2]


@pytest.mark.parametrize(
    ("content", "selector", "pane", "start"),
    [
        ([{"a": 1}], None, "grid", {}),
        ([{"a": 1}], "slice:5..9", "grid", {"row": 5}),
        ([1, 2], "slice:1..2", "tree", {"path": ["1"]}),
        ({"a": 1}, "key:a", "tree", {"path": ["a"]}),
        ({"a": [0]}, "path:/a/0", "tree", {"path": ["a", "0"]}),
        ({"a": 1}, "grep:a.b", "text", {"find": "a.b"}),
        ({"a": 1}, "bytes:3..9", "text", {"byte": 3}),
        (5, None, "tree", {}),
        ("a\nb\nc", "lines:2-3", "text", {"line": 2}),
        ("a\nb\nc", "lines:-1", "text", {"line": 3}),
    ],
)
def test_a_selector_opens_the_right_pane_at_the_right_place(
    viewer: Viewer, content: Any, selector: str | None, pane: str, start: dict[str, Any]
) -> None:
    blob = viewer.keep_text(content) if isinstance(content, str) else viewer.keep(content)
    opened = viewer.ask("blob.open", blob=blob, selector=selector)
    assert opened["pane"] == pane
    assert {key: opened["start"][key] for key in start} == start
    assert opened["start"]["note"] == ""


@pytest.mark.parametrize("selector", ["lines:0-0", "nonsense", "key:a"])
def test_a_selector_that_does_not_fit_opens_the_beginning_with_a_note(viewer: Viewer, selector: str) -> None:
    opened = viewer.ask("blob.open", blob=viewer.keep_text("x"), selector=selector)
    assert opened["pane"] == "text"
    assert selector.split(":")[0] in opened["start"]["note"]


def test_a_blob_that_was_collected_says_what_to_do(viewer: Viewer) -> None:
    blob = viewer.keep([1, 2, 3])
    assert viewer.ask("tree.children", blob=blob)["total"] == 3
    viewer.store.path(blob).unlink()
    for op, args in (
        ("tree.children", {}),
        ("blob.open", {}),
        ("lines.window", {}),
        ("tree.find", {"text": "x"}),
    ):
        with pytest.raises(Refused, match=r"collected.*Run the action again"):
            viewer.ask(op, blob=blob, **args)
    with pytest.raises(Refused, match="%reyn blobs"):
        viewer.ask("blob.open", blob=new_blob_id())
    with pytest.raises(Refused, match="%reyn blobs"):
        viewer.ask("blob.open", blob="../../etc/passwd")


def test_a_view_that_cancels_stops_the_reading(viewer: Viewer) -> None:
    told: list[int] = []

    def hear(done: float, total: float, note: str = "") -> None:
        told.append(int(done))
        watch.stop()

    watch = Watch(hear, "reading")
    source = WatchedSource(MemorySource(b"[" + b"1," * 2_000_000 + b"1]"), watch)
    with pytest.raises(StoppedError):
        while True:
            index_json(source)
    assert len(told) == 1
    number = viewer.send("lines.find", blob=viewer.keep_text("x" * 1_000_000), text="y")
    viewer.connection.receive({"type": "cancel", "id": number})
    assert viewer.ask("tree.children", blob=viewer.keep([1]))["total"] == 1


def test_indexes_are_kept_within_their_room() -> None:
    from array import array

    kept = IndexCache(room=10_000)
    made: list[int] = []

    def build(number: int) -> LineIndex:
        made.append(number)
        return LineIndex(1, 1, array("Q", [0] * 500))

    for number in (1, 2, 1, 3, 1, 2):
        kept.get(number, lambda number=number: build(number))  # type: ignore[misc]
    assert made == [1, 2, 3, 2]
    assert kept.used <= 10_000


def test_indexes_go_when_the_last_view_is_gone(tmp_path: Path) -> None:
    viewer = Viewer(tmp_path)
    viewer.ask("tree.children", blob=viewer.keep(list(range(10))))
    assert viewer.hub.caches
    viewer.close()
    assert not viewer.hub.caches
