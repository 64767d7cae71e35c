"""Files of suites as people really hand them over: broken, huge, hostile; each mistake with its file and line."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pytest

from reyn_jupyter.evaluation.suites import SuiteError, load_suite
from reyn_jupyter.evaluation.suites.suite_document import LARGEST

SUITE = """\
name: own
title: Own
primary: chain
scenarios:
- id: a
  family: f
  natural: Read notes.md
  workspace: {notes.md: hello}
  gold: [{file__read: {path: notes.md}}]
"""


def refused(tmp_path: Path, content: str | bytes, **files: str | bytes) -> str:
    """What is said of a suite's file, with further files beside it (``dot`` in a name stands for the point)."""
    for name, beside in {"own.yaml": content, **files}.items():
        path = tmp_path / name.replace("_dot_", ".")
        path.write_bytes(beside if isinstance(beside, bytes) else beside.encode())
    with pytest.raises(SuiteError) as caught:
        load_suite(tmp_path / "own.yaml")
    assert "pydantic" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("primary:", "primry:"), "own.yaml, line 3: primry: unknown key; did you mean 'primary'?"),
        (("natural:", "natral:"), "own.yaml, line 7, scenario 'a': natral: unknown key; did you mean 'natural'?"),
        (("file__read", "file__raed"), "own.yaml, line 5, scenario 'a', gold 0, file__raed: there is no action"),
        (("{path: notes.md}", "{pth: notes.md}"), "did you mean 'path'?"),
        (("[{file__read", "[file__read: x, {file__read"), "own.yaml, line 9"),
        (("  family", "\tfamily"), "own.yaml, line 6: no YAML: a tab stands where YAML wants spaces"),
        (("gold: [", "gold: [[["), "own.yaml, line 10: no YAML: "),
        (("family: f", "family: f\n  family: g"), "own.yaml, line 7: no YAML: the key 'family' stands twice here"),
        (("id: a", "id: 3"), "own.yaml, line 5, scenario 3: id: text is needed, not 3"),
        (("id: a", "id: a b"), "'a b' holds a space"),
        (("primary: chain", "primary: chain\nchecks: chain"), "checks: a list is needed, not 'chain'; put it into one"),
        (("family: f", "family: f\n  catalog: standrd"), "own.yaml: scenario 'a' runs on the catalog 'standrd'"),
        (("family: f", "family: f\n  says: [12]"), "own.yaml, line 7, scenario 'a': says.0: text is needed"),
        (("family: f", f"family: f\n  forecast: {'9' * 5000}"), "own.yaml: a value cannot be read"),
        (("hello", "h\0"), "own.yaml, line 8: a character that YAML does not allow"),
        (("family: f", "family: f\n  says: !!python/name:os.system x"), "own.yaml, line 7: no YAML: could not"),
        (("scenarios:", "variants: {a: {mandat: generic}}\nscenarios:"), "line 4, variant 'a': mandat: unknown"),
        (("scenarios:", "claims: [{id: c, famly: f}]\nscenarios:"), "'c': famly: unknown key; did you mean 'family'?"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line_and_the_nearest_name(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    assert said in refused(tmp_path, SUITE.replace(*change))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "it holds nothing, and a mapping is needed: name, title, primary"),
        ("- a", "it holds a list, and a mapping is needed"),
        ("name: own\ntitle: Own\nprimary: chain\n", "own.yaml: the suite 'own' has no scenario"),
        (SUITE.encode("utf-16"), "own.yaml, line 1: not UTF-8 text; save the file as UTF-8"),
        (SUITE.replace("hello", "h\xe9").encode("latin-1"), "own.yaml, line 8: not UTF-8 text"),
        (SUITE + SUITE[SUITE.index("- id") :], "line 10, scenario 'a': the id is taken in own.yaml, line 5"),
    ],
)
def test_what_is_no_suite_says_why(tmp_path: Path, content: str | bytes, said: str) -> None:
    assert said in refused(tmp_path, content)


def test_a_date_is_the_text_that_was_written(tmp_path: Path) -> None:
    suite = tmp_path / "own.yaml"
    suite.write_text(SUITE.replace("family: f", "family: f\n  says: [2020-01-01, 2020-99-99]"), "utf-8")
    assert load_suite(suite).scenario("a").says == ("2020-01-01", "2020-99-99")


def test_a_line_of_a_jsonl_file_is_named(tmp_path: Path) -> None:
    good = json.dumps({"id": "b", "family": "f", "natural": "x", "gold": [{"file__glob": {"pattern": "*"}}]})
    suite = SUITE + "files: [more.jsonl]\n"
    assert "more.jsonl, line 2: no JSON" in refused(tmp_path, suite, more_dot_jsonl=f'{good}\n{{"id":\n')
    assert "more.jsonl, line 3, scenario 'number 2'" in refused(
        tmp_path, suite, more_dot_jsonl=f"{good}\n\n[3]\n"
    )
    assert "line 2, scenario 'b': the id is taken" in refused(
        tmp_path, suite, more_dot_jsonl=f"{good}\n{good}\n"
    )
    assert "no JSON that can be read" in refused(tmp_path, suite, more_dot_jsonl="[" * 100_000)


def _aliases(first: str, last: str) -> str:
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join([*lines, last, ""])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (_aliases("[x, x, x, x]", "z: *a8") + SUITE, "aliases stand for more than"),
        (SUITE.replace("[{", "&g [*g, {"), "holds itself through an alias"),
        (SUITE + "files: " + "[" * 50_000, "nested deeper than 64"),
        (SUITE + "files: " + "[" * 900 + "]" * 900, "nested deeper than 64"),
        (SUITE + "files:\n" + "- a\n" * 1_000_001, "more than 1,000,000 values"),
    ],
    ids=["bomb", "cycle", "deep", "closed", "many"],
)
def test_a_hostile_file_costs_little_and_is_named(tmp_path: Path, content: str, said: str) -> None:
    began = time.process_time()
    told = refused(tmp_path, content)
    assert told.startswith("own.yaml, line ") and said in told
    assert time.process_time() - began < 30  # no figure of speed: unbounded work would take hours


def test_a_table_of_questions_among_the_files_is_sent_to_who_reads_it(tmp_path: Path) -> None:
    told = refused(tmp_path, SUITE + "files: [rows.csv]\n", rows_dot_csv="input,target\nWhen?,9:30\n")
    assert "rows.csv: further files are .yaml, .json or .jsonl" in told
    assert "reyn.Dataset.from_inspect('rows.csv')" in told


def test_a_file_that_is_too_large_is_refused_packed_or_not(tmp_path: Path) -> None:
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(SuiteError, match="larger than 64 MiB"):
        load_suite(huge)
    packed = gzip.compress(b" " * (LARGEST + 1))
    suite = SUITE.replace("family: f", "family: f\n  catalog: tools")
    suite += "catalogs: {tools: {records: tools.json.gz}}\n"
    assert "tools.json.gz is larger than 64 MiB" in refused(tmp_path, suite, tools_dot_json_dot_gz=packed)
    assert "cannot be read" in refused(tmp_path, suite, tools_dot_json_dot_gz=packed[:50])


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "more.jsonl")
    assert "no regular file" in refused(tmp_path, SUITE + "files: [more.jsonl]\n")
    assert "nosuch.yaml cannot be read: No such file" in refused(tmp_path, SUITE + "files: [nosuch.yaml]\n")


OUTSIDE = "leads outside the folder of the suite and the current one; only files inside them can be used"


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("files: [FILE]", "own.yaml, line 10"),
        ("choices: FILE", "own.yaml, line 10"),
        ("catalogs: {mine: {records: FILE}}", "own.yaml, line 10"),
    ],
)
def test_a_suite_reads_no_file_outside_its_folder_and_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, place: str
) -> None:
    (tmp_path / "there.yaml").write_text("scenarios: []\n")
    suites, here = tmp_path / "suites", tmp_path / "here"
    suites.mkdir()
    here.mkdir()
    (suites / "link.yaml").symlink_to(tmp_path / "there.yaml")
    (suites / ".env").write_text("scenarios: []\n")
    monkeypatch.chdir(here)
    for name in ("../there.yaml", str(tmp_path / "there.yaml"), "link.yaml"):
        assert f"{place}: {name!r} {OUTSIDE}" == refused(suites, f"{SUITE}{line.replace('FILE', name)}\n")
    said = refused(suites, f"{SUITE}{line.replace('FILE', '.env')}\n")
    assert said.startswith(f"{place}: ") and said.endswith("it is named like a file that holds secrets")


@pytest.mark.parametrize("name", ["loop.yaml", r"a\0b", "x" * 5_000, "~nobody/x", "\\ud800"])
def test_a_name_that_leads_nowhere_is_told_with_its_place(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    assert refused(tmp_path, f'{SUITE}files: ["{name}"]\n')


def test_a_suite_may_name_files_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = [{"name": "pay", "description": "Pay a bill.", "inputSchema": {"type": "object"}}]
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    (tmp_path / "suites").mkdir()
    own = tmp_path / "suites" / "own.yaml"
    own.write_text(SUITE + "catalogs: {mine: {records: ../tools.json}}\n")
    monkeypatch.chdir(tmp_path)
    assert load_suite("suites/own.yaml").catalogs["mine"]().names == {"pay": "tool__pay"}


def test_a_link_that_comes_after_a_suite_was_read_leads_its_records_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.json").write_text('[{"name": "pay", "description": "Pay a bill."}]')
    suites = tmp_path / "suites"
    suites.mkdir()
    monkeypatch.chdir(suites)
    Path("own.yaml").write_text(SUITE + "catalogs: {mine: {records: late.json}}\n")
    suite = load_suite("own.yaml")
    Path("late.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(SuiteError, match=OUTSIDE):
        suite.catalogs["mine"]()


@pytest.mark.parametrize("line", ["files: [FILE]", "choices: FILE", "catalogs: {mine: {records: FILE}}"])
def test_a_name_that_no_file_has_and_a_circle_of_links_are_mistakes_of_the_suite(
    tmp_path: Path, line: str
) -> None:
    (tmp_path / "circle.yaml").symlink_to("circle.yaml")
    (tmp_path / "there").symlink_to("back")
    (tmp_path / "back").symlink_to("there")
    for name in ('"a\\0b.yaml"', "circle.yaml", "there/in.yaml"):
        assert refused(tmp_path, f"{SUITE}{line.replace('FILE', name)}\n").startswith("own.yaml, line 10: ")


def test_a_file_that_is_named_a_thousand_times_is_read_twice(tmp_path: Path) -> None:
    more = SUITE.partition("scenarios:\n")[2].replace("id: a", "id: b")
    began = time.monotonic()
    said = refused(
        tmp_path, SUITE + f"files: [{', '.join(['more.yaml'] * 5000)}]\n", more_dot_yaml=f"scenarios:\n{more}"
    )
    assert "the id is taken in more.yaml, line 2" in said
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("name", "content"),
    [("r.jsonl.gz", b"0\n" * (16 << 20)), ("r.json.gz", b"[" + b"[]," * (16 << 20) + b"0]")],
)
def test_a_small_archive_of_millions_of_values_is_refused_before_they_are_made(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(gzip.compress(content, 1))
    (tmp_path / "own.yaml").write_text(SUITE + f"catalogs: {{mine: {{records: {name}}}}}\n")
    suite, began = load_suite(tmp_path / "own.yaml"), time.monotonic()
    with pytest.raises(SuiteError, match=f"{name}: more than 4,000,000 values"):
        suite.catalogs["mine"]()
    assert time.monotonic() - began < 10
