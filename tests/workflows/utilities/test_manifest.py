"""Manifests: what one may say, every problem at its place, and hostile files that cost little and get nowhere."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from reyn_jupyter.workflows.utilities.manifest import (
    Dependency,
    manifest_schema,
    parse_manifest,
    read_manifest,
    semver_key,
)
from reyn_jupyter.workflows.utilities.scaffold import TEMPLATES
from reyn_jupyter.workflows.workflow_error import WorkflowError
from tests.workflows.utilities.manifest_samples import SOUND, put


def problems_of(**values: Any) -> dict[str, str]:
    """Return what is wrong with the sound manifest after a change, by path."""
    data = {key: value for key, value in {**SOUND, **values}.items() if value is not None}
    with pytest.raises(WorkflowError) as caught:
        parse_manifest(data, "tools/x/tool.yaml")
    assert caught.value.code == "manifest_invalid"
    assert {each["file"] for each in caught.value.details["problems"]} == {"tools/x/tool.yaml"}
    return {each["path"]: each["message"] for each in caught.value.details["problems"]}


def test_a_whole_manifest_is_read(tmp_path: Path) -> None:
    folder = put(
        tmp_path,
        dependencies=["YouTube", {"host": "Example.org:8080"}, {"command": "ffmpeg"}, {"package": "pyarrow"}],
        idempotency="safe",
        stability="stable",
        priority=7,
    )
    manifest = read_manifest(folder / "tool.yaml")
    assert manifest.id == "line-count@1.0.0"
    assert manifest.dependencies[:2] == (
        Dependency("service", "YouTube"),
        Dependency("host", "example.org:8080"),
    )
    assert (manifest.needs("command"), manifest.needs("package")) == (("ffmpeg",), ("pyarrow",))
    assert (manifest.idempotency, manifest.stability, manifest.priority) == ("safe", "stable", 7)
    assert manifest.contract.output_schema["required"] == ["lines"]


def test_what_is_left_out_has_the_defaults_of_the_specification() -> None:
    manifest = parse_manifest(SOUND)
    assert (manifest.idempotency, manifest.stability, manifest.priority) == ("unknown", "experimental", 0)


def test_the_schema_that_is_shipped_is_one_and_the_template_fits_it(tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(manifest_schema())
    template = yaml.safe_load((TEMPLATES / "tool" / "tool.yaml").read_text())
    jsonschema.Draft202012Validator(manifest_schema()).validate(template)
    jsonschema.Draft202012Validator(manifest_schema()).validate(SOUND)
    assert parse_manifest(template).name == "my-utility"


def test_every_problem_is_listed_at_its_place() -> None:
    found = problems_of(
        name="Line Count",
        version="1.0",
        description="short",
        capabilities=["text"],
        entrypoint={"type": "ruby", "command": "x", "shell": True},
        input_schema={"type": "strin"},
        prority=3,
        stability="beta",
        priority="high",
    )
    assert found.keys() == {
        *("/name", "/version", "/description", "/capabilities/0", "/entrypoint/type", "/entrypoint"),
        *("/input_schema", "", "/stability", "/priority"),
    }
    assert found[""] == "'prority' is not known here; did you mean 'priority'?"


@pytest.mark.parametrize(
    "key", ["name", "version", "description", "capabilities", "entrypoint", "output_schema"]
)
def test_what_is_required_is_missed_by_name(key: str) -> None:
    assert problems_of(**{key: None}) == {"": f"'{key}' is missing"}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"version": "1.0.0\n"}, "/version"),
        ({"version": "01.0.0"}, "/version"),
        ({"version": "9" * 200 + ".0.0"}, "/version"),
        ({"name": "a/../b"}, "/name"),
        ({"capabilities": []}, "/capabilities"),
        ({"capabilities": ["a.b", "a.b"]}, "/capabilities"),
        ({"capabilities": ["a.b.c"]}, "/capabilities/0"),
        ({"priority": True}, "/priority"),
        ({"priority": 10**12}, "/priority"),
        ({"dependencies": [{"host": "a.example", "command": "b"}]}, "/dependencies/0"),
        ({"dependencies": [{"hosts": "a.example"}]}, "/dependencies/0"),
        ({"dependencies": [{"host": "http://a.example/x"}]}, "/dependencies/0/host"),
        ({"dependencies": [{"host": "*.example"}]}, "/dependencies/0/host"),
        ({"dependencies": [{"command": "rm -rf /"}]}, "/dependencies/0/command"),
        ({"dependencies": [{"command": "../x"}]}, "/dependencies/0/command"),
        ({"dependencies": [3]}, "/dependencies/0"),
        ({"input_schema": {"$ref": "https://example.org/schema.json"}}, "/input_schema"),
        ({"input_schema": {"$ref": "#"}}, "/input_schema"),
        ({"input_schema": {"type": "array"}}, "/input_schema"),
        ({"output_schema": {"properties": {"a": {"$ref": "#/$defs/none"}}}}, "/output_schema"),
        ({"output_schema": {"$schema": "http://json-schema.org/draft-04/schema#"}}, "/output_schema"),
        ({"output_schema": {"properties": {"a": {"minimum": "1"}}}}, "/output_schema"),
    ],
)
def test_what_is_no_manifest_is_refused(change: dict[str, Any], path: str) -> None:
    assert path in problems_of(**change)


@pytest.mark.parametrize("data", [None, 3, "name: x", [], [SOUND], {}])
def test_what_is_no_object_is_refused(data: object) -> None:
    with pytest.raises(WorkflowError):
        parse_manifest(data)


@pytest.mark.parametrize(
    "command",
    [
        *("/bin/sh", "../main.py", "a/../../main.py", "./main.py", "~/main.py", "C:\\main.py", "..\\main.py"),
        *(
            "main.py; rm -rf x",
            "$(touch pwn)",
            "main.py\n",
            "-c",
            "--version",
            "none.py",
            "a//main.py",
            "main.py/",
        ),
        *("sub", "link.py", "linked/main.py", "pipe"),
    ],
)
@pytest.mark.parametrize("kind", ["python", "node", "shell"])
def test_an_entry_point_is_a_file_of_the_folder(tmp_path: Path, kind: str, command: str) -> None:
    folder = put(tmp_path, entrypoint={"type": kind, "command": command})
    (folder / "sub").mkdir()
    (folder / "link.py").symlink_to("main.py")
    (folder / "linked").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    with pytest.raises(WorkflowError) as caught:
        read_manifest(folder / "tool.yaml")
    (problem,) = caught.value.details["problems"]
    assert problem["path"] == "/entrypoint/command"


def test_a_program_is_started_only_where_it_is_declared(tmp_path: Path) -> None:
    entry = {"type": "shell", "command": "ffmpeg", "args": ["$(touch pwn)", "; rm -rf x"]}
    with pytest.raises(WorkflowError, match="do not declare it as a program"):
        read_manifest(put(tmp_path, entrypoint=entry) / "tool.yaml")
    manifest = read_manifest(
        put(tmp_path, entrypoint=entry, dependencies=[{"command": "ffmpeg"}]) / "tool.yaml"
    )
    assert manifest.entrypoint.args == ("$(touch pwn)", "; rm -rf x")
    python = {**entry, "type": "python"}
    with pytest.raises(WorkflowError, match="is no file of the folder"):
        read_manifest(put(tmp_path, entrypoint=python, dependencies=[{"command": "ffmpeg"}]) / "tool.yaml")


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + at)}: &{chr(98 + at)} [{', '.join(['*' + chr(97 + at)] * 9)}]\n" for at in range(9)
)


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "name: &a [*a]\n",
        "input_schema: &a\n  properties: {b: *a}\n",
        "name: !!python/object/apply:os.system ['touch pwn']\n",
        "!!python/object:os.system {}\n",
        "name: x\nname: y\n",
        "{" * 5_000,
        "a: " * 5_000,
        "- x\n- y\n",
        "name: x\n---\nname: y\n",
        "name: .nan\n",
        "\tname: x\n",
        "name: \x00\n",
        "# " + "x" * (2 << 20),
    ],
)
def test_hostile_yaml_is_refused_soon(tmp_path: Path, text: str) -> None:
    folder = put(tmp_path, text=text)
    with pytest.raises(WorkflowError) as caught:
        read_manifest(folder / "tool.yaml")
    assert caught.value.code == "manifest_invalid"
    assert caught.value.details["problems"][0]["file"] == "line-count/tool.yaml"
    assert len(str(caught.value)) < 2_000
    assert not (tmp_path / "pwn").exists() and not Path("pwn").exists()


def test_a_manifest_that_is_a_link_or_not_there_is_refused(tmp_path: Path) -> None:
    folder = put(tmp_path)
    (folder / "tool.yaml").rename(tmp_path / "elsewhere.yaml")
    with pytest.raises(WorkflowError, match="is not there"):
        read_manifest(folder / "tool.yaml")
    (folder / "tool.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    with pytest.raises(WorkflowError, match="is a link"):
        read_manifest(folder / "tool.yaml")


def test_versions_have_the_precedence_of_semantic_versioning() -> None:
    # The chain of section 11 of the specification, with numbers of several digits.
    chain = [
        "0.9.0",
        "0.10.0",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
    ]
    chain += ["1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "10.0.0"]
    assert all(semver_key(lower) < semver_key(higher) for lower, higher in pairwise(chain))
    assert semver_key("1.0.0+a") == semver_key("1.0.0+b")
