"""The registry: what is found, what is left out and why, and what is trusted."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.guard.trust import Trust
from reyn_jupyter.workflows.utilities.registry import (
    ScanCache,
    read_registry,
    utility_folders,
    write_cache,
)
from reyn_jupyter.workflows.utilities.utility_files import MOST_BYTES, MOST_FILES
from reyn_jupyter.workflows.utilities.utility_trust import (
    trust_utility,
    trusted_utilities,
)
from tests.workflows.utilities.manifest_samples import put, registry_of


def test_an_invalid_manifest_is_reported_and_hides_no_other(tmp_path: Path) -> None:
    put(tmp_path, "sound")
    put(tmp_path, "broken", version="one")
    put(tmp_path, "torn", text="name: [")
    (tmp_path / "tools" / "notes").mkdir()
    (tmp_path / "tools" / "rules.yaml").write_text("[]")
    registry = registry_of(tmp_path)
    assert [each.id for each in registry.utilities] == ["line-count@1.0.0"]
    assert [(each.file, each.path) for each in registry.problems] == [
        ("tools/broken/tool.yaml", "/version"),
        ("tools/torn/tool.yaml", ""),
    ]
    assert registry.candidates("text.count") == registry.utilities
    assert registry.candidates("text") == ()


def test_colliding_ids_are_told_and_trust_is_not_shadowed(tmp_path: Path) -> None:
    own = tmp_path / "own"
    put(own, "x")
    put(tmp_path / "w", "b")
    put(tmp_path / "w", "a")
    configured = str(own / "tools")
    registry = registry_of(tmp_path / "w", configured)
    assert [each.origin for each in registry.utilities] == ["workspace"]
    assert [each.file for each in registry.problems] == [f"{configured}/x/tool.yaml", "tools/b/tool.yaml"]
    registry = registry_of(tmp_path / "w", configured, trusted=False)
    assert [each.origin for each in registry.utilities] == ["configured"]
    assert "is trusted" in registry.problems[0].message


def test_a_bare_name_is_that_of_a_trusted_utility_even_if_others_are_higher(tmp_path: Path) -> None:
    own = tmp_path / "own"
    put(own, "x", version="1.0.0")
    put(own, "y", version="1.1.0")
    put(tmp_path / "w", "evil", version="99.0.0")
    registry = registry_of(tmp_path / "w", str(own / "tools"), trusted=False)
    assert {registry.entry(each) for each in registry.utilities} == {
        *("line-count", "line-count@1.0.0", "line-count@99.0.0")
    }
    assert registry.best["line-count"].manifest.version == "1.1.0"


def test_a_configured_folder_within_the_workspace_needs_trust(tmp_path: Path) -> None:
    put(tmp_path)
    (tmp_path / "tools").rename(tmp_path / "more")
    (utility,) = registry_of(tmp_path, "more", trusted=False).utilities
    assert (utility.trusted, utility.trust_name) == (False, "more/line-count")


def test_trust_is_in_every_file_and_an_edit_takes_it_back(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    folder = put(workspace)
    trust = Trust(StateFolder(workspace, tmp_path / "kept"))
    folders = [each for each in utility_folders(workspace) if each.origin != "package"]

    def utility() -> Any:
        return read_registry(folders, is_trusted=trusted_utilities(trust.hashes())).utilities[0]

    before = utility()
    assert not before.trusted
    assert trust_utility(trust, before) == before.digest
    assert utility().trusted
    (folder / "helper.py").write_text("import os\n")
    assert not utility().trusted
    (folder / "helper.py").unlink()
    assert utility().trusted
    (folder / "main.py").chmod(0o755)
    assert not utility().trusted
    (folder / "main.py").chmod(0o644)
    folder.rename(workspace / "tools" / "moved")
    assert not utility().trusted


def test_an_edit_is_seen_at_the_next_use_though_size_and_time_stay(tmp_path: Path) -> None:
    folder = put(tmp_path)
    cache = ScanCache()
    folders = [each for each in utility_folders(tmp_path) if each.origin != "package"]
    first = read_registry(folders, cache=cache, is_trusted=lambda name, digest: True)
    program = folder / "main.py"
    text, status = program.read_text(), program.stat()
    program.write_text(text.replace("1", "2"))
    os.utime(program, ns=(status.st_atime_ns, status.st_mtime_ns))
    second = read_registry(folders, cache=cache, is_trusted=lambda name, digest: True)
    assert first.utilities[0].digest != second.utilities[0].digest
    assert first.revision != second.revision


def test_what_did_not_move_is_not_read_again_and_trust_is_asked_about_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path)
    cache = ScanCache()
    folders = [each for each in utility_folders(tmp_path) if each.origin != "package"]
    later = time.time() + 60  # files that were written this very moment may change without a trace
    monkeypatch.setattr("reyn_jupyter.workflows.utilities.utility_files.time.time", lambda: later)
    first = read_registry(folders, cache=cache, is_trusted=lambda name, digest: True)
    monkeypatch.setattr("reyn_jupyter.workflows.utilities.registry.read_folder", None)
    assert read_registry(folders, cache=cache, is_trusted=lambda name, digest: True) is first
    assert not read_registry(folders, cache=cache, is_trusted=lambda name, digest: False).utilities[0].trusted


def test_the_cache_file_is_written_for_others_and_a_poisoned_one_gains_nothing(tmp_path: Path) -> None:
    folder = put(tmp_path)
    registry = registry_of(tmp_path, trusted=False)
    write_cache(registry, tmp_path)
    file = tmp_path / "state" / "registry-cache.json"
    assert (tmp_path / "state" / ".gitignore").read_text() == "*\n"
    cached = json.loads(file.read_text())
    (facts,) = cached["utilities"].values()
    assert facts["digest"] == registry.utilities[0].digest
    assert len(facts["manifest_sha256"]) == 64
    assert cached["capabilities"] == {"text.count": ["line-count@1.0.0"]}
    facts |= {"trusted": True, "digest": "0" * 64, "capabilities": ["drive.upload"], "priority": 1_000_000}
    cached["utilities"]["evil@1.0.0"] = facts
    file.write_text(json.dumps(cached))
    again = registry_of(tmp_path, trusted=False)
    assert again.utilities == registry.utilities and not again.candidates("drive.upload")
    assert not again.utilities[0].trusted
    assert folder.is_dir()


def test_the_cache_file_is_written_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "state").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        write_cache(registry_of(tmp_path / "w"), tmp_path / "w")
    assert not list((tmp_path / "elsewhere").iterdir())


def hold(folder: Path, kind: str) -> None:
    """Put something into a utility's folder that it may not hold."""
    match kind:
        case "link out":
            (folder / "x").symlink_to("/etc/passwd")
        case "link up":
            (folder / "x").symlink_to("../../secret")
        case "pipe":
            os.mkfifo(folder / "x")
        case "socket":
            with socket.socket(socket.AF_UNIX) as bound:
                here = Path.cwd()
                os.chdir(folder)  # the name of a socket is short
                bound.bind("x")
                os.chdir(here)
        case "many files":
            for number in range(MOST_FILES + 1):
                (folder / str(number)).touch()
        case "a large file":
            with (folder / "x").open("wb") as file:
                file.truncate(MOST_BYTES + 1)
        case "deep folders":
            (folder / "/".join("d" * 30)).mkdir(parents=True)
        case "a loop":
            (folder / "x").symlink_to("x")


@pytest.mark.parametrize(
    "kind",
    ["link out", "link up", "pipe", "socket", "many files", "a large file", "deep folders", "a loop"],
)
def test_a_hostile_folder_is_a_problem_and_hides_no_other(tmp_path: Path, kind: str) -> None:
    put(tmp_path, "sound")
    hold(put(tmp_path, "hostile", name="hostile"), kind)
    registry = registry_of(tmp_path)
    assert [each.manifest.name for each in registry.utilities] == ["line-count"]
    (problem,) = registry.problems
    assert problem.file.startswith("tools/hostile/")


def test_a_link_within_the_folder_is_part_of_what_is_trusted(tmp_path: Path) -> None:
    folder = put(tmp_path)
    (folder / "other").symlink_to("main.py")
    (utility,) = registry_of(tmp_path).utilities
    assert utility.files["other"] == '-> "main.py"'


@pytest.mark.parametrize("which", ["tools", "tools/line-count", "tools/line-count/tool.yaml"])
def test_a_link_in_place_of_a_folder_or_manifest_is_not_followed(tmp_path: Path, which: str) -> None:
    put(tmp_path / "w")
    real = tmp_path / "w" / which
    real.rename(tmp_path / "real")
    real.symlink_to(tmp_path / "real")
    registry = registry_of(tmp_path / "w")
    assert not registry.utilities
    assert ["link" in each.message for each in registry.problems] == [True]


def test_names_of_two_files_never_make_one_digest(tmp_path: Path) -> None:
    folder = put(tmp_path)
    digests = set()
    for name in ("a\nb", "a\\nb", '"a\\nb"', "b"):
        (folder / name).write_text("x")
        digests.add(registry_of(tmp_path).utilities[0].digest)
        (folder / name).unlink()
    assert len(digests) == 4


def test_a_workspace_without_tools_has_the_utilities_of_the_package(tmp_path: Path) -> None:
    registry = registry_of(tmp_path, shipped=True)
    assert not registry.problems
    assert all(each.trusted and each.origin == "package" for each in registry.utilities)
