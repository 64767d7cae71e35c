"""Scaffolding: a utility to start from that runs, in three languages, and nothing overwritten or left behind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.guard.trust import Trust
from reyn_jupyter.workflows.utilities.capability_ranking import rank
from reyn_jupyter.workflows.utilities.manifest import Utility
from reyn_jupyter.workflows.utilities.registry import read_registry, utility_folders
from reyn_jupyter.workflows.utilities.scaffold import Language, scaffold
from reyn_jupyter.workflows.utilities.schema_sample import sample_object
from reyn_jupyter.workflows.utilities.schema_values import value_faults
from reyn_jupyter.workflows.utilities.utility_trust import trust_utility, trusted_utilities
from reyn_jupyter.workflows.workflow_error import WorkflowError
from tests.workflows.utilities.utility_samples import run

TAKES: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["channel", "file", "most", 'what\'s "this" $HOME `x`'],
    "properties": {
        "channel": {"type": "string", "minLength": 30},
        "file": {"type": "string", "format": "readable-path"},
        "most": {"type": "integer", "minimum": 5, "multipleOf": 4},
        'what\'s "this" $HOME `x`': {"const": 'it\'s $(touch pwn) \\ "quoted" \n – и по-русски'},
    },
}
GIVES: dict[str, Any] = {
    "type": "object",
    "required": ["posts", "text", "result"],
    "properties": {
        "posts": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/post"}},
        "text": {"const": 'it\'s $(touch pwn) \\ "quoted" \n ${x} – и по-русски'},
        "result": {"type": "string", "format": "artifact-path"},
    },
    "$defs": {"post": {"type": "object", "required": ["at"], "properties": {"at": {"type": "number"}}}},
}

DEEPER_THAN_YAML: dict[str, Any] = {"type": "object"}
for _ in range(15):
    DEEPER_THAN_YAML = {"type": "object", "properties": {"a": DEEPER_THAN_YAML}}


@pytest.mark.parametrize("language", ["python", "node", "shell"])
async def test_what_is_scaffolded_runs_and_serves_its_capability(tmp_path: Path, language: Language) -> None:
    async def smoke_run(utility: Utility, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return (await run(utility, tmp_path, inputs)).output

    made = await scaffold(
        "tg.scrape",
        tmp_path / "tools",
        input_schema=TAKES,
        output_schema=GIVES,
        language=language,
        smoke_run=smoke_run,
    )
    assert [(each.name, each.passed) for each in made.checks] == [("schema", True), ("smoke run", True)], (
        made.checks
    )
    assert (made.utility.id, made.utility.folder) == ("tg-scrape@0.1.0", tmp_path / "tools" / "tg-scrape")
    assert sorted(made.files) == sorted(path.name for path in made.utility.folder.iterdir())
    assert not list(tmp_path.rglob("pwn"))

    trust = Trust(StateFolder(tmp_path, tmp_path / "kept"))
    trust_utility(trust, made.utility)
    registry = read_registry(utility_folders(tmp_path), is_trusted=trusted_utilities(trust.hashes()))
    assert not registry.problems
    chosen = rank(registry, "tg.scrape").chosen
    assert chosen is not None
    assert (chosen.id, chosen.manifest.input_schema, chosen.manifest.output_schema) == (
        made.utility.id,
        TAKES,
        GIVES,
    )


async def test_nothing_is_overwritten(tmp_path: Path) -> None:
    await scaffold("tg.scrape", tmp_path / "tools")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(WorkflowError, match="is there already"):
        await scaffold("tg.scrape", tmp_path / "tools", language="node")
    (tmp_path / "tools" / "dangling").symlink_to("nowhere")
    with pytest.raises(WorkflowError, match="is there already"):
        await scaffold("tg.scrape", tmp_path / "tools", name="dangling")
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


async def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tools").symlink_to("elsewhere")
    with pytest.raises(WorkflowError, match="is a link"):
        await scaffold("tg.scrape", tmp_path / "tools")
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(
    ("capability", "more"),
    [
        ("Scrape!", {}),
        ("../x.y", {}),
        ("tg.scrape", {"name": "../x"}),
        ("tg.scrape", {"name": ""}),
        ("tg.scrape", {"language": "ruby"}),
        ("tg.scrape", {"input_schema": {"type": "array"}}),
        ("tg.scrape", {"output_schema": {"type": "strin"}}),
        ("tg.scrape", {"description": "x" * 3_000}),
        ("tg.scrape", {"input_schema": DEEPER_THAN_YAML}),
    ],
)
async def test_what_makes_no_manifest_leaves_nothing_behind(
    tmp_path: Path, capability: str, more: dict[str, Any]
) -> None:
    with pytest.raises(WorkflowError):
        await scaffold(capability, tmp_path / "tools", **more)
    assert not list(tmp_path.rglob("*.*"))


async def test_a_run_that_fails_is_a_check_that_does_not_hold(tmp_path: Path) -> None:
    async def fails(utility: Utility, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        raise WorkflowError("no sandbox works here.", "Install one.", "tool_failed")

    async def lies(utility: Utility, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"n": "no number"}

    needs = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    made = await scaffold("tg.scrape", tmp_path / "tools", smoke_run=fails)
    assert (made.checks[1].passed, made.checks[1].message) == (False, "no sandbox works here. Install one.")
    assert made.utility.folder.is_dir()
    made = await scaffold("tg.read", tmp_path / "tools", output_schema=needs, smoke_run=lies)
    assert made.checks[1].passed is False


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"required": ["a"], "properties": {"a": {"type": ["integer", "null"], "exclusiveMinimum": 3}}},
        {"required": ["a"], "properties": {"a": {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}}},
        {"required": ["a"], "properties": {"a": {"enum": ["x", "y"]}}},
        {"required": ["a"], "properties": {"a": {"anyOf": [{"type": "boolean"}, {"type": "string"}]}}},
        {"allOf": [{"required": ["a"], "properties": {"a": {"type": "null"}}}, {"required": ["b"]}]},
        {"required": ["a"], "properties": {"a": {"type": "string", "minLength": 9, "maxLength": 9}}},
    ],
)
def test_a_sample_fits_its_schema(schema: dict[str, Any]) -> None:
    made = sample_object(schema)
    assert made is not None and not value_faults(schema, made)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "string", "pattern": "^[0-9]{8}$"},
        {"not": {}},
        {"type": "array", "minItems": 10**9},
        {"type": "array", "minItems": 300, "items": {"type": "array", "minItems": 300}},
        {"$ref": "#/$defs/endless"},
    ],
)
def test_where_nothing_simple_fits_there_is_no_sample(part: dict[str, Any]) -> None:
    endless = {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/endless"}}}
    schema = {"required": ["a"], "properties": {"a": part}, "$defs": {"endless": endless}}
    assert sample_object(schema) is None
