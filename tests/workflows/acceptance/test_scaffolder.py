"""The scaffolder: from a gap or a capability to a folder that runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.workflows.acceptance.workshop import (
    TEXT,
    Json,
    Notebook,
    Workshop,
    closed,
    code_of,
    needs,
    opened,
    sample_of,
    skill_call,
    step,
)

TAKES = closed(channel=TEXT, limit={"type": "integer", "minimum": 1}, required=["channel"])
RETURNS = opened(
    messages={"type": "array", "items": TEXT}, count={"type": "integer"}, format={"enum": ["json"]}
)


def read_manifest(workshop: Workshop, name: str) -> Json:
    read: Json = yaml.safe_load((workshop.root / "tools" / name / "tool.yaml").read_text())
    return read


def test_a_capability_becomes_a_folder_with_manifest_stub_and_readme(workshop: Workshop) -> None:
    made = workshop.scaffold("tg.scrape")
    folder = workshop.root / "tools" / "tg-scrape"
    assert (workshop.root / made["folder"]).resolve() == folder.resolve()
    files = {each.name for each in folder.iterdir()}
    manifest = read_manifest(workshop, "tg-scrape")
    assert {"tool.yaml", "README.md", manifest["entrypoint"]["command"]} <= files
    assert {Path(each).name for each in made["files"]} == files
    assert (manifest["name"], manifest["capabilities"]) == ("tg-scrape", ["tg.scrape"])
    assert made["manifest"]["name"] == "tg-scrape" and made["checks"]
    assert "tg.scrape" in (folder / "README.md").read_text()


def test_the_schemas_are_copied(workshop: Workshop) -> None:
    workshop.scaffold("tg.scrape", input_schema=TAKES, output_schema=RETURNS)
    manifest = read_manifest(workshop, "tg-scrape")
    assert (manifest["input_schema"], manifest["output_schema"]) == (TAKES, RETURNS)


@pytest.mark.parametrize("language", [None, "python", "shell", "node"])
def test_the_stub_runs_and_keeps_to_its_schemas(workshop: Workshop, language: str | None) -> None:
    given = {} if language is None else {"language": language}
    workshop.scaffold("tg.scrape", input_schema=TAKES, output_schema=RETURNS, **given)
    manifest = read_manifest(workshop, "tg-scrape")
    assert manifest["entrypoint"]["type"] == (language or "python")
    output = workshop.call("tg-scrape", **sample_of(TAKES)).value
    assert {"messages", "count", "format"} <= set(output)


def test_schema_check_and_smoke_run_are_reported(workshop: Workshop) -> None:
    checks = json.dumps(workshop.scaffold("tg.scrape")["checks"]).lower()
    assert "schema" in checks and "smoke" in checks


def test_what_a_person_scaffolds_is_trusted_and_chosen_at_once(workshop: Workshop) -> None:
    workshop.scaffold("no.body")
    found = workshop.cover(step("a", "no.body"))
    assert (found["status"], found["plan"]["steps"][0]["tool"].partition("@")[0]) == ("complete", "no-body")


def test_nothing_is_overwritten(workshop: Workshop) -> None:
    place = workshop.write("tg-scrape")
    (place / "main.py").write_text("mine")
    result = workshop.skill("tool-scaffolder", capability="tg.scrape")
    assert not result.ok and "tg-scrape" in str(result.payload)
    assert (place / "main.py").read_text() == "mine" and {each.name for each in place.iterdir()} == {
        "tool.yaml",
        "main.py",
    }


def test_an_empty_folder_and_a_link_of_that_name_are_left_alone(workshop: Workshop, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (workshop.root / "tools").mkdir()
    (workshop.root / "tools" / "tg-scrape").symlink_to(outside)
    assert not workshop.skill("tool-scaffolder", capability="tg.scrape").ok
    assert [*outside.iterdir()] == []


def test_a_folder_tools_that_leads_out_is_not_written_into(workshop: Workshop, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (workshop.root / "tools").symlink_to(outside)
    assert not workshop.skill("tool-scaffolder", capability="tg.scrape").ok
    assert [*outside.iterdir()] == []


@pytest.mark.parametrize("capability", ["nonsense", "A.b", "a.b.c", "../x.y", "a/b.c", "a.b\n", ""])
def test_what_is_no_capability_is_refused(workshop: Workshop, capability: str) -> None:
    assert not workshop.skill("tool-scaffolder", capability=capability).ok
    assert not (workshop.root / "tools").exists() or [*(workshop.root / "tools").iterdir()] == []


@pytest.mark.parametrize("schema", [{"type": "objekt"}, {"$ref": "http://127.0.0.1:9/x"}, {"$ref": "#"}])
def test_a_schema_that_is_none_leaves_nothing_behind(workshop: Workshop, schema: Json) -> None:
    assert not workshop.skill("tool-scaffolder", capability="tg.scrape", input_schema=schema).ok
    assert not (workshop.root / "tools" / "tg-scrape").exists()


def test_an_output_schema_that_no_value_fits_is_a_check_that_does_not_hold(workshop: Workshop) -> None:
    impossible = {**closed(n={"allOf": [{"type": "integer"}, {"type": "string"}]})}
    made = workshop.scaffold("tg.scrape", output_schema=impossible)
    (held,) = (each["passed"] for each in made["checks"] if each["name"] == "smoke run")
    assert held is not True


def test_a_gap_closes_by_its_proposed_schemas(workshop: Workshop) -> None:
    wanted = step("a", "no.body", {"channel": "x"}, **needs(closed(channel=TEXT), RETURNS))
    (gap,) = workshop.cover(wanted)["gaps"]
    workshop.scaffold(gap["missing_capability"], input_schema=gap["proposed_input_schema"],
                      output_schema=gap["proposed_output_schema"])  # fmt: skip
    assert read_manifest(workshop, gap["proposed_tool_name"])["capabilities"] == ["no.body"]
    assert workshop.execute(wanted)["status"] == "executed"


def test_an_editor_takes_the_trust_back_like_any_edit(workshop: Workshop) -> None:
    workshop.scaffold("no.body")
    folder = workshop.root / "tools" / "no-body"
    (folder / "more.py").write_text("x = 1\n")
    assert workshop.cover(step("a", "no.body"))["status"] == "partial-complete"


def test_a_model_asks_before_it_scaffolds_and_a_no_leaves_nothing(workshop: Workshop) -> None:
    workshop.answer = "deny"
    trace, _ = workshop.turn(skill_call("tool-scaffolder", capability="tg.scrape"))
    assert code_of(trace) == "permission_denied" and "tg-scrape" in workshop.questions[0].text
    assert not (workshop.root / "tools").exists()


def test_the_verb_scaffolds_and_says_what_to_do_next(notebook: Notebook) -> None:
    said = notebook.say("%reyn scaffold tg.scrape")
    assert "tools/tg-scrape" in said
    assert "tg-scrape@" in notebook.say("%reyn resolve tg.scrape")
    assert "tg-scrape" in notebook.say("%reyn scaffold tg.scrape"), "it is there already"
