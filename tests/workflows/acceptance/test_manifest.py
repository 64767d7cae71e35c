"""What `tool.yaml` has to say, row by row, and what becomes of one that says something else."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.trusting import trust
from tests.workflows.acceptance.workshop import (
    LOG,
    LOGS_AND_FAILS,
    SHOUT,
    TEXT,
    Notebook,
    Workshop,
    manifest_of,
    opened,
    step,
)  # fmt: skip

GOOD = {"input_schema": opened(text=TEXT), "output_schema": opened(text=TEXT)}


def validated(notebook: Notebook) -> str:
    """Return what `%reyn utilities --validate` says, on one line: a narrow table may break it."""
    return " ".join(notebook.say("%reyn utilities --validate").split())


def listed(workshop: Workshop) -> set[str]:
    """Return the names of the utilities in the catalog, all pages of it."""
    names: set[str] = set()
    offset: int | None = 0
    while offset is not None:
        page = workshop.session.list_actions("utility", offset=offset).payload
        names |= {each["qualified_name"].removeprefix("utility__") for each in page["items"]}
        offset = page.get("next_offset")
    return names


# Each row: the field, values that are valid, values that are not


ROWS: list[tuple[str, list[Any], list[Any]]] = [
    ("name", ["a", "a-b-9", "-"], ["A", "a_b", "a b", "", "größe", "a/b", "../a", "a\n", 7, None]),
    (
        "version",
        ["0.0.0", "1.2.3", "10.0.1-rc.1", "1.0.0-alpha+build.5", "1.0.0+20"],
        ["1", "1.2", "v1.2.3", "01.2.3", "1.2.3.4", "latest", "1.0.0-01", "", 1.2, None],
    ),
    ("description", ["ten letters", "x" * 10], ["x" * 9, "", 1234567890, None]),
    (
        "capabilities",
        [["a.b"], ["a-1.b-2", "c.d"]],
        [[], ["a"], ["A.b"], ["a.b.c"], ["a."], [".b"], ["a_b.c"], ["a b.c"], ["a.b\n"], "a.b", [7], None],
    ),
    (
        "entrypoint",
        [
            {"type": "python", "command": "main.py"},
            {"type": "python", "command": "main.py", "args": ["--fast", "a b"]},
            {"type": "shell", "command": "main.py"},
            {"type": "node", "command": "main.py"},
        ],
        [
            {"type": "ruby", "command": "main.py"},
            {"type": "python"},
            {"command": "main.py"},
            {"type": "python", "command": "main.py", "env": {}},
            {"type": "python", "command": "main.py", "args": "--fast"},
            {"type": "python", "command": ["main.py"]},
            "main.py",
            None,
        ],
    ),
    ("input_schema", [{"type": "object"}, opened(a=TEXT)], [{"type": "objekt"}, "object", [], None]),
    ("output_schema", [{"type": "object"}, opened(a=TEXT)], [{"type": 5}, "object", {"required": "a"}, None]),
    (
        "dependencies",
        [[], ["YouTube"], [{"host": "example.org"}, {"command": "python3"}]],
        ["YouTube", [{"host": "a b"}], [{"folder": "x"}], [{"host": "a.org", "command": "x"}], [7]],
    ),
    ("idempotency", ["safe", "unsafe", "unknown"], ["maybe", True, 1]),
    ("stability", ["experimental", "stable"], ["beta", "ready", False]),
    ("priority", [-5, 0, 100], ["high", 1.5, True]),
]  # fmt: skip
VALID = [(name, value) for name, valid, _ in ROWS for value in valid]
INVALID = [(name, value) for name, _, invalid in ROWS for value in invalid]


def test_every_valid_value_of_every_field_makes_a_utility(workshop: Workshop) -> None:
    wanted = set()
    for number, (field, value) in enumerate(VALID):
        name = value if field == "name" else f"row-{number}"
        wanted.add(name)
        workshop.write(name, folder=f"folder-{number}", **{field: value} if field != "name" else {})
    trust(workshop.session)
    assert wanted - listed(workshop) == set()


@pytest.mark.parametrize("field", [name for name, _, _ in ROWS])
def test_every_invalid_value_is_reported_by_file_and_path_and_hides_no_other(
    notebook: Notebook, field: str
) -> None:
    workshop = notebook.workshop
    folders = []
    for number, value in enumerate(value for name, value in INVALID if name == field):
        folders.append(f"bad-{number}")
        place = workshop.write(f"bad-{number}")
        manifest = manifest_of(f"bad-{number}")
        manifest[field] = value
        if value is None:
            del manifest[field]
        (place / "tool.yaml").write_text(yaml.safe_dump(manifest))
    workshop.add("good", SHOUT, **GOOD)
    said = validated(notebook)
    assert [each for each in folders if f"tools/{each}/tool.yaml" not in said] == []
    assert said.count(field) >= len(folders), "the path inside of the file stands there"
    assert listed(workshop) & {*folders} == set() and "good" in listed(workshop)
    assert workshop.call("good", text="a").value == {"text": "A"}


def test_a_key_that_no_manifest_has_is_an_error_at_its_path(notebook: Notebook) -> None:
    notebook.workshop.write("extra", capabilty=["a.b"])
    said = validated(notebook)
    assert "tools/extra/tool.yaml" in said and "capabilty" in said


def test_a_path_leads_into_the_depth_of_the_file(notebook: Notebook) -> None:
    notebook.workshop.write(
        "deep", capabilities=["a.b", "no capability"], input_schema=opened(a={"type": "strng"})
    )
    said = validated(notebook)
    assert "capabilities" in said and "1" in said and "input_schema" in said and "strng" in said


def test_every_problem_of_a_manifest_is_said_at_once(notebook: Notebook) -> None:
    notebook.workshop.write("many", version="one", description="short", stability="beta", priority="high")
    said = validated(notebook)
    assert [each for each in ("version", "description", "stability", "priority") if each not in said] == []


def test_what_is_left_out_has_its_default(workshop: Workshop) -> None:
    workshop.add("plain", capabilities=["p.q"])
    workshop.add("stable", capabilities=["p.q"], stability="stable", version="0.1.0")
    workshop.add("prior", capabilities=["p.q"], priority=1, version="0.0.1")
    workshop.add("below", capabilities=["p.q"], priority=-1, stability="stable")
    # priority 0 lies between 1 and -1; experimental comes after stable
    covered = [workshop.cover(step("a", "p.q"))["plan"]["steps"][0]["tool"]]
    for name in ("prior", "stable", "plain"):
        (workshop.root / "tools" / name / "tool.yaml").unlink()
        covered.append(workshop.cover(step("a", "p.q"))["plan"]["steps"][0]["tool"])
    assert covered == ["prior@0.0.1", "stable@0.1.0", "plain@1.0.0", "below@1.0.0"]


def test_idempotency_left_out_is_unknown_and_is_not_tried_again(workshop: Workshop) -> None:
    workshop.add("fails", LOGS_AND_FAILS, input_schema=opened(log=LOG))
    workshop.execute(step("a", "fails.run", {"log": "log"}, on_failure="retry"))
    assert workshop.log() == 1


# Hostile manifests


def bomb(place: Path) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    names = "abcdefghijkl"
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in pairwise(names)]
    (place / "tool.yaml").write_text("\n".join(lines))


def circle(place: Path) -> None:
    text = yaml.safe_dump(manifest_of("hostile", input_schema=None))
    (place / "tool.yaml").write_text(text + "input_schema: &s {type: object, properties: {a: *s}}\n")


def python_object(place: Path) -> None:
    (place / "tool.yaml").write_text("!!python/object/apply:os.system ['touch pwn']\n")


def duplicate_key(place: Path) -> None:
    (place / "tool.yaml").write_text(yaml.safe_dump(manifest_of("hostile")) + "name: another\n")


def huge(place: Path) -> None:
    (place / "tool.yaml").write_text(yaml.safe_dump(manifest_of("hostile")) + "# " + "x" * (32 << 20))


def deep(place: Path) -> None:
    (place / "tool.yaml").write_text("input_schema: " + "{a: " * 5000 + "1" + "}" * 5000)


def binary(place: Path) -> None:
    (place / "tool.yaml").write_bytes(b"\x00\xff\xfe" * 100)


def empty(place: Path) -> None:
    (place / "tool.yaml").write_text("")


def listing(place: Path) -> None:
    (place / "tool.yaml").write_text("- name: hostile\n")


def broken(place: Path) -> None:
    (place / "tool.yaml").write_text("name: [hostile\n")


def two_documents(place: Path) -> None:
    text = yaml.safe_dump(manifest_of("hostile"))
    (place / "tool.yaml").write_text(f"{text}---\n{text}")


def pipe(place: Path) -> None:
    (place / "tool.yaml").unlink()
    os.mkfifo(place / "tool.yaml")


def a_folder(place: Path) -> None:
    (place / "tool.yaml").unlink()
    (place / "tool.yaml").mkdir()


def link_out(place: Path) -> None:
    (place / "data").symlink_to("/etc/passwd")


def linked_manifest(place: Path) -> None:
    outside = place.parents[2] / "outside.yaml"
    outside.write_text((place / "tool.yaml").read_text())
    (place / "tool.yaml").unlink()
    (place / "tool.yaml").symlink_to(outside)


def a_socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(place)
        try:
            made.bind("s")
        finally:
            os.chdir(here)


def many_files(place: Path) -> None:
    for number in range(2_100):
        (place / f"{number}").touch()


def with_command(command: str, kind: str = "python") -> Callable[[Path], None]:
    def write(place: Path) -> None:
        entry = {"type": kind, "command": command}
        (place / "tool.yaml").write_text(yaml.safe_dump(manifest_of("hostile", entrypoint=entry)))

    return write


def with_schema(schema: Any) -> Callable[[Path], None]:
    def write(place: Path) -> None:
        (place / "tool.yaml").write_text(yaml.safe_dump(manifest_of("hostile", input_schema=schema)))

    return write


HOSTILE: dict[str, Callable[[Path], None]] = {
    "a bomb of aliases": bomb,
    "a circle of aliases": circle,
    "a Python object": python_object,
    "a key twice": duplicate_key,
    "32 MiB": huge,
    "5,000 levels": deep,
    "no text": binary,
    "nothing": empty,
    "a list": listing,
    "no YAML": broken,
    "two documents": two_documents,
    "a pipe": pipe,
    "a folder": a_folder,
    "a link out of the folder": link_out,
    "a manifest that lies elsewhere": linked_manifest,
    "a socket": a_socket,
    "too many files": many_files,
    "an absolute command": with_command("/bin/sh"),
    "a command above": with_command("../good/main.py"),
    "a hidden step up": with_command("sub/../../good/main.py"),
    "shell text": with_command("main.py; touch pwn", "shell"),
    "shell text in place of a program": with_command("sh -c 'touch pwn'", "shell"),
    "a program that is not declared": with_command("env", "shell"),
    "a file that is not there": with_command("nowhere.py"),
    "an address as schema": with_schema({"$ref": "http://127.0.0.1:9/schema.json"}),
    "a file as schema": with_schema({"$ref": "file:///etc/passwd"}),
    "a reference to nowhere": with_schema({"$ref": "#/$defs/nowhere"}),
    "a reference to itself": with_schema({"$ref": "#"}),
    "a circle of references": with_schema({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
                                           "$ref": "#/$defs/a"}),
    "a pattern that is none": with_schema(opened(a={"type": "string", "pattern": "("})),
}  # fmt: skip


def test_hostile_manifests_are_reported_each_and_hide_no_other(notebook: Notebook) -> None:
    workshop = notebook.workshop
    workshop.add("good", SHOUT, **GOOD)
    folders = {f"hostile-{number}": what for number, what in enumerate(HOSTILE)}
    for folder, what in folders.items():
        HOSTILE[what](workshop.write("hostile", folder=folder))
    rows = workshop.session.workflows.manifest_problems().rows  # the cell shows the first fifty
    said = " ".join(f"{each['file']}/" for each in rows)
    assert [what for folder, what in folders.items() if f"tools/{folder}/" not in said] == []
    assert "hostile" not in listed(workshop)
    assert workshop.call("good", text="a").value == {"text": "A"}
    assert [*workshop.root.rglob("pwn")] == []


def test_an_id_that_is_there_already_is_a_problem_that_names_both(notebook: Notebook) -> None:
    notebook.workshop.write("same", folder="first")
    notebook.workshop.write("same", folder="second")
    trust(notebook.workshop.session)
    said = validated(notebook)
    assert "same@1.0.0" in said and "tools/first" in said and "tools/second" in said


def test_two_versions_of_one_name_are_no_collision(workshop: Workshop) -> None:
    workshop.write("same", SHOUT, folder="first", **GOOD)
    workshop.write("same", folder="second", version="0.9.0")
    trust(workshop.session)
    assert workshop.call("same", text="a").value == {"text": "A"}
    assert workshop.call("same@0.9.0", text="a").value == {"echo": {"text": "a"}}


def test_a_schema_may_refer_to_a_part_of_itself(workshop: Workshop) -> None:
    schema = {"$defs": {"word": TEXT}, **opened(text={"$ref": "#/$defs/word"})}
    workshop.add("local", SHOUT, input_schema=schema)
    assert workshop.call("local", text="a").value == {"text": "A"}
    assert workshop.call("local", text=5).code == "validation"


def test_a_utility_without_tool_yaml_is_no_utility_and_no_problem(notebook: Notebook) -> None:
    (notebook.workshop.root / "tools" / "notes").mkdir(parents=True)
    notebook.workshop.add("good")
    assert "tools/notes" not in validated(notebook) and listed(notebook.workshop) >= {"good"}


# What the package ships


def shipped(path: str) -> str:
    return (resources.files("reyn_jupyter.workflows") / path).read_text("utf-8")


def test_the_package_ships_the_schema_of_manifests_which_is_of_2020_12_and_closed() -> None:
    import jsonschema

    schema = json.loads(shipped("schemas/tool-manifest.schema.json"))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False
    check = jsonschema.Draft202012Validator(schema)
    assert check.is_valid(manifest_of("a")) and not check.is_valid(manifest_of("a", extra=1))
    assert {*schema["required"]} == {
        "name", "version", "description", "capabilities", "entrypoint", "input_schema", "output_schema",
    }  # fmt: skip


def test_the_package_ships_templates_that_are_valid() -> None:
    import jsonschema

    schema = json.loads(shipped("schemas/tool-manifest.schema.json"))
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(shipped("templates/tool/tool.yaml")))
    assert isinstance(yaml.safe_load(shipped("templates/workflow/request.example.yaml")), dict)


def test_the_package_ships_the_utilities_of_the_seed_and_four_that_people_need(workshop: Workshop) -> None:
    assert listed(workshop) >= {
        "youtube-downloader", "drive-uploader", "webm-to-mp4-converter", "tg-scraper",
        "csv-to-parquet", "image-thumbnails", "html-to-markdown", "folder-archive",
    }  # fmt: skip


def test_what_the_package_ships_is_valid(workshop: Workshop) -> None:
    import jsonschema

    check = jsonschema.Draft202012Validator(json.loads(shipped("schemas/tool-manifest.schema.json")))
    folder = Path(str(resources.files("reyn_jupyter.workflows") / "shipped"))
    manifests = [yaml.safe_load(each.read_text()) for each in folder.glob("*/tool.yaml")]
    assert len(manifests) >= 8 and [each["name"] for each in manifests if not check.is_valid(each)] == []
