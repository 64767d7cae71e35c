"""Trust and approvals belong to the person and the place: nothing in a workspace brings them along."""

from __future__ import annotations

import json
import shutil
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reyn_jupyter.config import ConfigError, PatternError, load
from reyn_jupyter.guard.approvals import Approvals
from reyn_jupyter.guard.state_folder import StateError, StateFolder
from reyn_jupyter.guard.trust import Trust
from tests.support.waiting import PATIENCE


@pytest.fixture
def root(tmp_path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(tmp_path, root) -> StateFolder:
    return StateFolder(root, tmp_path / "state")


def test_the_folder_is_the_users_own_and_never_in_the_workspace(root, tmp_path, monkeypatch):
    monkeypatch.setenv("REYN_STATE_DIR", str(tmp_path / "elsewhere"))
    assert StateFolder(root).path.parent == tmp_path / "elsewhere" / "workspaces"
    monkeypatch.delenv("REYN_STATE_DIR")
    assert not StateFolder(root).path.is_relative_to(root)


def test_a_workspace_is_known_by_its_resolved_path(root, tmp_path):
    (tmp_path / "alias").symlink_to(root)
    assert StateFolder(tmp_path / "alias", tmp_path).path == StateFolder(root, tmp_path).path
    assert StateFolder(tmp_path, tmp_path).path != StateFolder(root, tmp_path).path


def test_an_always_is_kept_for_the_next_kernel_and_can_be_taken_back(folder):
    Approvals(folder).add(" file__write(data/out.csv) ")
    again = Approvals(folder)
    again.add("file__edit")
    again.add("file__write(data/out.csv)")
    assert again.list() == ("file__edit", "file__write(data/out.csv)")
    assert again.remove("file__edit") and not again.remove("file__edit")
    assert [entry.pattern.text for entry in again.entries()] == ["file__write(data/out.csv)"]
    assert again.entries()[0].at > 0
    again.clear()
    assert Approvals(folder).list() == ()


def test_two_kernels_see_each_others_answers(folder):
    one, two = Approvals(folder), Approvals(folder)
    assert two.list() == ()
    one.add("file__write(a)")
    assert two.list() == ("file__write(a)",)
    two.remove("file__write(a)")
    assert one.list() == ()


def test_files_are_private(folder):
    Approvals(folder).add("file__write(a)")
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder.path / "approvals.json").stat().st_mode) == 0o600
    assert sorted(path.name for path in folder.path.iterdir()) == [".lock", "approvals.json"]


def test_a_malformed_pattern_is_not_kept(folder):
    with pytest.raises(PatternError):
        Approvals(folder).add("everything")
    assert not folder.path.exists()


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"approvals": 1}', '{"approvals": [{"pattern": "nonsense", "at": 1}]}',
     '{"approvals": [{"pattern": 1}]}',
     "[" * 100_000, '{"approvals": [{"pattern": "file__*", "at": "x"}]}', "\x00\xff"],
)  # fmt: skip
def test_a_damaged_file_allows_nothing_is_kept_aside_and_said(folder, content):
    folder.path.mkdir(parents=True)
    (folder.path / "approvals.json").write_bytes(content.encode("latin-1"))
    approvals = Approvals(folder)
    assert approvals.list() == ()
    assert "not used" in approvals.problems[0]
    assert [path.name for path in folder.path.iterdir() if "damaged" in path.name]
    approvals.add("file__write(a)")
    assert Approvals(folder).list() == ("file__write(a)",)


def test_a_link_in_place_of_the_file_is_not_followed(folder, tmp_path):
    folder.path.mkdir(parents=True)
    planted = tmp_path / "planted.json"
    planted.write_text(json.dumps({"approvals": [{"pattern": "*", "at": 1}]}))
    (folder.path / "approvals.json").symlink_to(planted)
    assert Approvals(folder).list() == ()
    assert planted.exists()


def test_approvals_in_a_cloned_workspace_count_for_nothing(root, folder):
    Approvals(folder).add("file__write(a)")
    shutil.copytree(folder.path, root / ".reyn" / "state" / "workspaces" / folder.path.name)
    shutil.copy(folder.path / "approvals.json", root / "approvals.json")
    shutil.rmtree(folder.path)
    assert Approvals(folder).list() == ()


def test_kernels_that_answer_at_once_lose_nothing(root, tmp_path, folder):
    kernels = 4
    start = threading.Barrier(kernels)

    def answer(kernel: int) -> None:
        approvals = Approvals(StateFolder(root, tmp_path / "state"))
        for number in range(10):
            start.wait(PATIENCE)
            approvals.add(f"file__write({kernel}/{number})")

    with ThreadPoolExecutor(kernels) as pool:
        list(pool.map(answer, range(kernels)))
    assert len(Approvals(folder).list()) == kernels * 10


def test_a_folder_that_cannot_be_written_is_said(root, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="REYN_STATE_DIR"):
        Approvals(StateFolder(root, tmp_path / "file")).add("file__write(a)")


def test_trust_is_in_the_content_at_its_place(root, folder, tmp_path):
    (root / "reyn.yaml").write_text("models: {standard: a/b}")
    trust = Trust(folder)
    assert not trust.is_trusted() and not trust.known()
    trust.trust()
    assert trust.is_trusted() and trust.known()
    assert Trust(folder).is_trusted(b"models: {standard: a/b}")
    (root / "reyn.yaml").write_text("models: {standard: evil/b}")
    assert not trust.is_trusted() and trust.known()


def test_a_moved_or_copied_workspace_is_not_trusted(root, folder, tmp_path):
    (root / "reyn.yaml").write_text("llm_log: on")
    Trust(folder).trust()
    moved = tmp_path / "moved"
    root.rename(moved)
    assert not Trust(StateFolder(moved, tmp_path / "state")).is_trusted()


def test_the_persons_own_change_keeps_trust_and_another_does_not(folder):
    trust = Trust(folder)
    assert not trust.retrust(b"before", b"after") and not trust.is_trusted(b"after")
    trust.trust(b"before")
    assert trust.retrust(b"before", b"after") and trust.is_trusted(b"after")
    assert not trust.is_trusted(b"before")
    assert not trust.retrust(b"changed by someone else", b"and then by the person")


def test_trust_can_be_taken_back(folder):
    trust = Trust(folder)
    trust.trust(b"x")
    trust.trust(b"y", "servers.json")
    assert trust.forget() and not trust.forget()
    assert not trust.is_trusted(b"x") and trust.is_trusted(b"y", "servers.json")


@pytest.mark.parametrize(
    "content", ["", "[]", '{"files": []}', '{"files": {"reyn.yaml": "x"}}', '{"files": {"reyn.yaml": {}}}']
)
def test_a_damaged_record_is_no_trust_and_can_be_written_anew(folder, content):
    folder.path.mkdir(parents=True)
    (folder.path / "trust.json").write_text(content)
    trust = Trust(folder)
    assert not trust.is_trusted(b"x")
    trust.trust(b"x")
    assert trust.is_trusted(b"x")


def test_a_link_or_nothing_cannot_be_trusted(root, folder, tmp_path):
    with pytest.raises(ConfigError, match="not there"):
        Trust(folder).trust()
    (tmp_path / "real.yaml").write_text("llm_log: on")
    (root / "reyn.yaml").symlink_to(tmp_path / "real.yaml")
    with pytest.raises(ConfigError, match="is a link"):
        Trust(folder).trust()
    assert not Trust(folder).is_trusted()


def test_trust_and_configuration_work_together(root, folder, tmp_path):
    (root / "reyn.yaml").write_text("models: {standard: a/b}")
    trust, user = Trust(folder), tmp_path / "none.yaml"
    assert load(root, trusted=trust.is_trusted, user_file=user).settings.models.standard is None
    trust.trust(load(root, user_file=user).project)
    assert load(root, trusted=trust.is_trusted, user_file=user).settings.models.standard.model == "a/b"
