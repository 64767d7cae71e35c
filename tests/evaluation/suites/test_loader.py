"""What a person writes as a suite, and what they are told when it cannot be one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.suites import SuiteError, check_suite, load_suite, suite_names
from reyn_jupyter.evaluation.suites.templates import Edit, LongText, apply_edits

MANUAL = Path(load_suite.__code__.co_filename).parents[2] / "docs" / "suites.md"
SMALL: dict[str, Any] = {
    "name": "mine",
    "title": "My own",
    "primary": "task_done",
    "family": "own",
    "scenarios": [
        {
            "id": "one",
            "natural": "What do the notes say?",
            "workspace": {"notes.md": "hello\n"},
            "gold": [{"file__read": {"path": "notes.md"}}],
            "says": ["hello"],
        }
    ],
}


def own(tmp_path: Path, **changes: Any) -> Path:
    """The small suite as a file, with the first scenario's fields changed."""
    first = {**SMALL["scenarios"][0], **changes}
    first = {key: value for key, value in first.items() if value is not None}
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**SMALL, "scenarios": [first]}), "utf-8")
    return path


def test_a_suite_of_ones_own_is_loaded_from_a_file(tmp_path: Path) -> None:
    suite = load_suite(own(tmp_path))
    assert suite.name == "mine"
    assert suite.scenario("one").workspace == {"notes.md": "hello\n"}
    assert suite.checks == ("task_done",)


def test_a_catalog_of_ones_own_comes_from_a_list_of_tools(tmp_path: Path) -> None:
    tool = {"name": "get_time", "description": "The time.", "inputSchema": {"type": "object"}}
    (tmp_path / "tools.json").write_text(json.dumps({"tools": [tool]}), "utf-8")
    path = own(tmp_path, catalog="mine", gold=[{"tool__get_time": {}}])
    data = yaml.safe_load(path.read_text("utf-8")) | {"catalogs": {"mine": {"records": "tools.json"}}}
    path.write_text(yaml.safe_dump(data), "utf-8")
    suite = load_suite(path)
    assert [action.name.text for action in suite.catalogs["mine"]().snapshot.actions] == ["tool__get_time"]


def test_what_a_file_forbids_holds_for_each_of_its_scenarios_that_has_a_gold(tmp_path: Path) -> None:
    first = SMALL["scenarios"][0]
    own_word = {**first, "id": "free", "no_other": []}
    nothing = {"id": "none", "natural": "Paint the wall.", "unanswerable": True}
    data = {**SMALL, "no_other": ["file__*"], "scenarios": [first, own_word, nothing]}
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(data), "utf-8")
    assert [each.no_other for each in load_suite(path).scenarios] == [("file__*",), (), ()]


def test_the_example_of_the_manual_is_a_suite(tmp_path: Path) -> None:
    page = MANUAL.read_text("utf-8")
    example = page.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "my_suite.yaml").write_text(example, "utf-8")
    suite = load_suite(tmp_path / "my_suite.yaml")
    assert [scenario.id for scenario in suite.scenarios] == ["port", "failed-disk", "new-port"]
    assert len(suite.scenario("failed-disk").workspace["long.log"].splitlines()) == 300


def test_the_manual_tells_of_every_suite() -> None:
    page = MANUAL.read_text("utf-8")
    assert all(f"| `{name}` |" in page for name in suite_names())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"gold": [{"file__raed": {}}]}, ["file__raed", "did you mean 'file__read'"]),
        ({"gold": [{"file__read": {}}]}, ["file__read", "/path", "is required"]),
        ({"gold": [{"file__read": {"path": "a", "limit": "many"}}]}, ["/limit", "integer"]),
        ({"gold": [{"file__read": {"path": ["a", 5]}}]}, ["/path"]),
        ({"gold": [{"read": {}}]}, ["no qualified name"]),
        ({"gold": [{}]}, ["gold", "no action"]),
        ({"gold": [{"file__read": "notes.md"}]}, ["gold", "arguments"]),
        ({"gold": None, "says": None}, ["nothing is expected"]),
        ({"says": ["notes"]}, ["says", "request"]),
        ({"expected": {"notes.md": {"contains": ["hell"]}}}, ["expected", "template already satisfies"]),
        ({"expected": {"old.md": "absent"}}, ["template already satisfies"]),
        ({"expected": {"old.md": "unchanged"}}, ["old.md", "unchanged"]),
        ({"expected": {"notes.md": {"contians": []}}}, ["expected", "contians"]),
        ({"edits": [{"path": "notes.md", "old": "l", "new": "L"}]}, ["stands 2 times in notes.md"]),
        ({"edits": [{"path": "nots.md", "old": "l", "new": "L"}]}, ["no file 'nots.md'"]),
        ({"workspace": "shop"}, ["workspace", "'shop'"]),
        ({"workspace": {"../notes.md": ""}}, ["../notes.md"]),
        (
            {"memories": {"Not A Slug": {"name": "n", "description": "d", "type": "user", "body": ""}}},
            ["Not A"],
        ),
        ({"gold": [{"memory_entry__unknown": {}}]}, ["memory_entry__unknown"]),
        ({"setup_error": {"file__reed": "busy"}}, ["setup_error", "file__reed"]),
        ({"no_other": ["file__raed"]}, ["no_other", "file__raed", "did you mean 'file__read'"]),
        ({"no_other": ["fiel__*"]}, ["no_other", "fiel__*", "no action"]),
        ({"natural": None}, ["prompts"]),
        ({"forecast": 2}, ["forecast"]),
        ({"colour": "red"}, ["colour"]),
        ({"says": [5]}, ["says.0"]),
        ({"unanswerable": True}, ["unanswerable"]),
    ],
)
def test_a_mistake_is_told_with_scenario_and_field(
    tmp_path: Path, changes: dict[str, Any], told: list[str]
) -> None:
    with pytest.raises(SuiteError) as caught:
        load_suite(own(tmp_path, **changes))
    assert "'one'" in str(caught.value)
    for part in told:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"scenarios": [SMALL["scenarios"][0]] * 2}, ["the id is taken", "'one'"]),
        ({"primary": "task_don"}, ["task_don", "task_done"]),
        ({"family": None}, ["mine.yaml", "'one'", "family"]),
        ({"variants": {"a": {"mandat": "generic"}}}, ["variant 'a'", "mandat"]),
        ({"claims": [{"id": "c", "sentence": "s"}]}, ["claim 'c'"]),
        (
            {"claims": [{"id": "c", "sentence": "", "family": "", "check": "calls", "variant": "a"}]},
            ["claim 'c'", "variant 'a'"],
        ),
        ({"catalog": "nowhere"}, ["'nowhere'"]),
        ({"files": ["more.yaml"]}, ["more.yaml", "cannot be read"]),
        ({"catalogs": {"standard": {"records": "none.json"}}}, ["none.json"]),
    ],
)
def test_a_mistake_of_the_whole_suite_is_told(
    tmp_path: Path, changes: dict[str, Any], told: list[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**SMALL, **changes}), "utf-8")
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    for part in told:
        assert part in str(caught.value)


def test_what_is_no_yaml_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\ntitle: [", "utf-8")
    with pytest.raises(SuiteError, match=r"mine\.yaml, line 3: no YAML"):
        load_suite(path)


def test_a_key_that_stands_twice_is_refused_instead_of_forgotten(tmp_path: Path) -> None:
    path = own(tmp_path)
    path.write_text(path.read_text("utf-8").replace("  id: one\n", "  id: one\n  natural: Hi?\n"), "utf-8")
    with pytest.raises(SuiteError, match="'natural' stands twice"):
        load_suite(path)


def test_a_file_of_choices_that_is_none_is_told(tmp_path: Path) -> None:
    path = own(tmp_path)
    (tmp_path / "choices.json").write_text('{"catalogs": {}}', "utf-8")
    path.write_text(path.read_text("utf-8") + "choices: choices.json\n", "utf-8")
    with pytest.raises(SuiteError, match=r"choices\.json: records"):
        load_suite(path)


def test_an_unknown_suite_is_answered_with_the_nearest() -> None:
    with pytest.raises(SuiteError, match="did you mean 'mandates'"):
        load_suite("mandate")


# --- the short forms


def test_a_long_file_is_said_in_a_few_words() -> None:
    long = LongText(before="[x]\n", line="k{n:03} = {on|off}", count=3, after="end\n", **{"except": {2: "!"}})
    assert long.text == "[x]\nk001 = on\n!\nk003 = on\nend\n"


@given(st.text("abc\n", min_size=1, max_size=30), st.data())
def test_several_edits_of_a_file_can_be_made_as_one(text: str, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(begin + 1, len(text)))
    chosen = text[begin:end]
    marked = f"<{chosen}>|{text}|<<{chosen}>>"
    edits = (
        Edit(path="f", old=f"|<<{chosen}>>", new="!"),
        Edit(path="f", old=f"<{chosen}>|", new=f"|<<{chosen}>>"),
    )
    after, one = apply_edits(marked, edits)
    assert after == f"|<<{chosen}>>{text}!"
    assert marked.count(one.old) == 1
    assert marked.replace(one.old, one.new) == after


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply_edits("abc", (Edit(path="f", old="ab", new="x"), Edit(path="f", old="bc", new="y")))


# --- the same in Python


def test_some_scenarios_are_picked_out_of_a_suite_with_what_concerns_them() -> None:
    suite = load_suite("mandates")
    some = suite.only(suite.scenarios[3].id, suite.scenarios[0].id)
    assert some.scenarios == (suite.scenarios[0], suite.scenarios[3]), "in the order of the suite"
    assert {claim.family for claim in some.claims} <= {"", *(each.family for each in some.scenarios)}
    assert suite.only(*(each.id for each in suite.scenarios)) == suite
    with pytest.raises(SuiteError, match=r"no scenario 'read-package-versio'.*read-package-version"):
        suite.only("read-package-versio")
    with pytest.raises(SuiteError, match="at least one id"):
        suite.only()


def test_a_suite_that_is_picked_from_many_catalogs_holds_and_is_held_to_its_own_only() -> None:
    first = reyn.load_suite("arguments").only("simple_python_182")
    assert set(first.catalogs) == {"simple_python_182"}
    check_suite(first)


def test_a_step_that_is_played_in_python_is_the_one_of_a_file(tmp_path: Path) -> None:
    play = {"pattern": "failed", "path": ["long.log", "./long.log"]}
    gold = [{"file__grep": {"max_results": [20, ""]}, "file__read": {"path": "long.log"}, "play": play}]
    written = load_suite(own(tmp_path, gold=gold)).scenario("one").gold
    grep = reyn.AcceptedCall(action="file__grep", args={"max_results": (20, "")})
    read = reyn.AcceptedCall(action="file__read", args={"path": ("long.log",)})
    assert (
        reyn.Gold(steps=((*grep.play(pattern="failed", path=("long.log", "./long.log")), read),)) == written
    )


def test_a_line_separator_inside_a_text_of_jsonl_is_no_end_of_the_line(tmp_path: Path) -> None:
    row = {**SMALL["scenarios"][0], "natural": "One\u2028two?", "family": "own"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\r\n\n", "utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**SMALL, "scenarios": [], "files": ["rows.jsonl"]}), "utf-8")
    assert load_suite(path).scenario("one").prompts == {"natural": "One\u2028two?"}
