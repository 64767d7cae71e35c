"""Nothing outside the root is read, written or removed, whatever the path says and whoever swaps links meanwhile."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reyn_jupyter.guard.workspace import Workspace, WorkspaceError


@pytest.fixture
def outside(tmp_path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("not yours")
    return folder


@pytest.fixture
def workspace(tmp_path, outside) -> Workspace:
    root = tmp_path / "root"
    (root / "data").mkdir(parents=True)
    (root / "data" / "orders.csv").write_text("a,b\n1,2\n")
    return Workspace(root)


def refused(workspace: Workspace, path: str, **options) -> str:
    with pytest.raises(WorkspaceError) as caught:
        workspace.resolve(path, **options)
    return str(caught.value)


def test_a_path_inside_is_resolved_and_named_from_the_root(workspace):
    real = workspace.resolve("data/./orders.csv")
    assert real == workspace.root / "data" / "orders.csv"
    assert workspace.relative(real) == "data/orders.csv"
    assert workspace.resolve(str(real)) == real
    assert workspace.resolve(".") == workspace.root and workspace.relative(workspace.root) == "."
    assert workspace.relative("./data//orders.csv") == "data/orders.csv"


@pytest.mark.parametrize(
    "path",
    ["..", "../outside/secret.txt", "data/../../outside/secret.txt", "data\\..\\..\\x", "data/..", "./../x"],
)
def test_climbing_is_refused(workspace, path):
    assert "climbs" in refused(workspace, path)


@pytest.mark.parametrize("path", ["/etc/passwd", "/", "//etc/passwd", "/proc/self/environ", "/dev/null"])
def test_absolute_paths_outside_are_refused(workspace, path):
    assert "outside the workspace" in refused(workspace, path)


def test_a_sibling_whose_name_begins_like_the_root_is_outside(workspace, tmp_path):
    (tmp_path / "root-two").mkdir()
    assert "outside" in refused(workspace, str(tmp_path / "root-two" / "x"))


@pytest.mark.parametrize(
    "path", ["....//....//etc/hosts", "%2e%2e/etc/hosts", "..%2f..%2fx", "．．/etc", "..;/x"]
)
def test_encoded_climbing_is_just_a_strange_name_inside(workspace, path):
    assert workspace.resolve(path).is_relative_to(workspace.root)


@pytest.mark.parametrize(
    ("path", "words"),
    [("", "empty"), ("  ", "empty"), ("a\0b", "NUL"), ("x" * 256, "too long"), ("ä" * 128, "too long"),
     ("a/" * 2500, "too long"), ("a\ud800", "no file name"), ("~/x", "not expanded")],
)  # fmt: skip
def test_names_that_no_file_can_have_are_refused(workspace, path, words):
    assert words in refused(workspace, path)


def test_a_link_out_is_refused_for_reading_and_for_new_files_below_it(workspace, outside):
    (workspace.root / "out").symlink_to(outside)
    (workspace.root / "file.txt").symlink_to(outside / "secret.txt")
    (workspace.root / "dangling").symlink_to(outside / "new.txt")
    for path in ("out", "out/secret.txt", "out/deep/new.txt", "file.txt", "dangling"):
        assert "outside" in refused(workspace, path)
        with pytest.raises(WorkspaceError):
            workspace.write_atomic(path, b"x")
    assert not (outside / "new.txt").exists()


def test_a_link_that_stays_inside_leads_to_its_target(workspace):
    (workspace.root / "current").symlink_to("data")
    assert workspace.relative(workspace.resolve("current/orders.csv")) == "data/orders.csv"
    workspace.write_atomic("current/new.csv", b"x")
    assert (workspace.root / "data" / "new.csv").read_bytes() == b"x"


def test_a_circular_link_is_refused(workspace):
    (workspace.root / "a").symlink_to("b")
    (workspace.root / "b").symlink_to("a")
    refused(workspace, "a")
    with pytest.raises(WorkspaceError):
        workspace.write_atomic("a/b/c", b"x")


@pytest.mark.parametrize(
    "path",
    [
        ".reyn/state/uses.json", ".reyn", "data/.reyn/x", ".REYN/runs", ".reyn./x", ".re\u200byn/x",
        ".env", "data/.env.local",
        ".ENV", ".env ", ".Env.", "．env", ".env::$DATA",
        "prod.env", "key.pem", "KEY.PEM", "id_rsa", "id_rsa.bak", "id_ed25519",
        ".netrc", ".npmrc",
        ".pypirc",
        "server.key", "credentials.json", ".git/config", "sub/.git/config", ".git-credentials",
        ".aws/credentials", ".ssh/config", "service-account-7.json", ".streamlit/secrets.toml",
    ],
)  # fmt: skip
def test_state_and_secret_files_are_protected_however_they_are_spelled(workspace, path):
    assert "protected" in refused(workspace, path)
    assert "protected" in refused(workspace, path, for_write=True)


def test_a_link_with_a_harmless_name_to_a_secret_file_is_protected(workspace):
    (workspace.root / ".env").write_text("A=1")
    (workspace.root / "notes.txt").symlink_to(".env")
    (workspace.root / ".env.local").symlink_to("data/orders.csv")
    assert "protected" in refused(workspace, "notes.txt")
    assert "protected" in refused(workspace, ".env.local")


@pytest.mark.parametrize(
    "path", [".env.example", "environment.yml", "keys.md", "data/keyboard.json", ".gitignore", ".github/x"]
)
def test_ordinary_files_are_not_protected(workspace, path):
    workspace.write_atomic(path, b"x")


def test_git_is_readable_but_never_written(workspace):
    (workspace.root / ".git" / "hooks").mkdir(parents=True)
    (workspace.root / ".git" / "HEAD").write_text("ref")
    assert workspace.read_bytes(".git/HEAD") == b"ref"
    assert "run commands" in refused(workspace, ".git/hooks/pre-commit", for_write=True)


def test_permissions_and_trust_are_off_limits_when_the_root_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REYN_STATE_DIR", str(tmp_path / "state" / "reyn"))
    monkeypatch.setenv("REYN_CONFIG_DIR", str(tmp_path / "config" / "reyn"))
    (tmp_path / "state" / "reyn").mkdir(parents=True)
    (tmp_path / "state" / "reyn" / "trust.json").write_text("{}")
    workspace = Workspace(tmp_path)
    for path in (
        "state/reyn/trust.json",
        "state/reyn/workspaces/x/approvals.json",
        "config/reyn/config.yaml",
    ):
        assert "protected" in refused(workspace, path)
        with pytest.raises(WorkspaceError):
            workspace.write_atomic(path, b"{}")
    assert list(workspace.walk()) == []


def test_devices_pipes_sockets_and_folders_are_no_files(workspace, monkeypatch):
    os.mkfifo(workspace.root / "pipe")
    monkeypatch.chdir(workspace.root)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        for name in ("pipe", "sock"):
            assert "no regular file" in refused(workspace, name)
            with pytest.raises(WorkspaceError):
                workspace.open_read(name)
            with pytest.raises(WorkspaceError):
                workspace.write_atomic(name, b"x")
    for action in (workspace.open_read, workspace.delete, lambda path: workspace.write_atomic(path, b"")):
        with pytest.raises(WorkspaceError, match="folder"):
            action("data")


def test_a_missing_file_and_a_file_for_a_folder_are_said(workspace):
    with pytest.raises(WorkspaceError, match="does not exist"):
        workspace.open_read("data/none.csv")
    with pytest.raises(WorkspaceError):
        workspace.write_atomic("data/orders.csv/x", b"")


def test_writing_replaces_in_one_step_and_keeps_the_mode(workspace):
    script = workspace.root / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    with workspace.open_read("run.sh") as before:
        workspace.write_atomic("run.sh", b"new")
        assert before.read() == b"old"
    assert (script.read_bytes(), workspace.mode("run.sh")) == (b"new", 0o750)
    assert workspace.mode("none") is None
    assert sorted(path.name for path in workspace.root.iterdir()) == ["data", "run.sh"]


def test_new_files_and_folders_follow_the_umask(workspace):
    before = os.umask(0o027)
    try:
        workspace.write_atomic("new/deep/file.txt", b"x")
    finally:
        os.umask(before)
    assert workspace.mode("new/deep/file.txt") == 0o640
    assert stat.S_IMODE((workspace.root / "new").stat().st_mode) == 0o750


def test_a_read_only_file_is_not_replaced(workspace):
    (workspace.root / "fixed").write_text("keep")
    (workspace.root / "fixed").chmod(0o444)
    with pytest.raises(WorkspaceError, match="read-only"):
        workspace.write_atomic("fixed", b"x")
    assert (workspace.root / "fixed").read_text() == "keep"


def test_a_folder_is_not_taken_for_the_file_of_its_name_in_it(tmp_path):
    root = tmp_path / "data"
    root.mkdir()
    (root / "data").write_text("another one")
    with pytest.raises(WorkspaceError, match="is a folder"):
        Workspace(root).read_bytes(".")


@pytest.mark.parametrize(("durable", "synced"), [(True, 2), (False, 0)])
def test_what_is_written_is_on_the_disk_unless_the_workspace_is_thrown_away(
    tmp_path, monkeypatch, durable, synced
):
    calls = []
    monkeypatch.setattr(os, "fsync", calls.append)
    workspace = Workspace(tmp_path, durable=durable)
    workspace.write_atomic("notes.md", b"hello")
    assert workspace.read_bytes("notes.md") == b"hello" and len(calls) == synced  # the file, and its folder


def test_writing_a_hard_link_leaves_the_other_name_as_it_was(workspace, outside):
    os.link(outside / "secret.txt", workspace.root / "linked.txt")
    workspace.write_atomic("linked.txt", b"mine")
    assert (outside / "secret.txt").read_text() == "not yours"


class Raced(Workspace):
    """Plays the race: the path is swapped right after it was judged."""

    swap = staticmethod(lambda: None)

    def place(self, path, *, for_write=False):
        place = super().place(path, for_write=for_write)
        self.swap()
        return place


@pytest.mark.parametrize("swapped", ["file for a link", "file for a pipe", "folder for a link"])
@pytest.mark.parametrize("action", ["open_read", "delete", "write_atomic"])
def test_what_is_swapped_in_between_check_and_use_is_refused(workspace, outside, swapped, action):
    (outside / "orders.csv").write_text("not yours either")
    data = workspace.root / "data"

    def swap():
        if swapped == "folder for a link":
            data.rename(workspace.root / "moved")
            data.symlink_to(outside)
            return
        (data / "orders.csv").unlink()
        if swapped == "file for a pipe":
            os.mkfifo(data / "orders.csv")
        else:
            (data / "orders.csv").symlink_to(outside / "secret.txt")

    raced = Raced(workspace.root)
    raced.swap = swap
    arguments = ("data/orders.csv", b"evil") if action == "write_atomic" else ("data/orders.csv",)
    with pytest.raises(WorkspaceError):
        getattr(raced, action)(*arguments)
    assert (outside / "orders.csv").read_text() == "not yours either"
    assert (outside / "secret.txt").read_text() == "not yours"


def test_a_failed_write_leaves_no_trace(workspace):
    (workspace.root / "data" / "orders.csv").chmod(0o644)
    with pytest.raises(TypeError):
        workspace.write_atomic("data/orders.csv", "text")
    assert [path.name for path in (workspace.root / "data").iterdir()] == ["orders.csv"]


def test_walking_gives_regular_files_only_and_never_leaves_the_root(workspace, outside):
    for name in (".env", "b/two.txt", "b/one.txt", ".reyn/x", ".git/HEAD", "node_modules/y"):
        path = workspace.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (workspace.root / "out").symlink_to(outside)
    (workspace.root / "b" / "up").symlink_to(workspace.root)
    (workspace.root / "leak.txt").symlink_to(outside / "secret.txt")
    os.mkfifo(workspace.root / "pipe")
    found = [workspace.relative(path) for path in workspace.walk(".", lambda name: name == "node_modules")]
    assert found == ["b/one.txt", "b/two.txt", "data/orders.csv"]
    assert [workspace.relative(path) for path in workspace.walk("b")] == ["b/one.txt", "b/two.txt"]
    assert [workspace.relative(path) for path in workspace.walk("data/orders.csv")] == ["data/orders.csv"]
    with pytest.raises(WorkspaceError):
        list(workspace.walk("out"))


def test_a_root_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(WorkspaceError, match="no folder"):
        Workspace(tmp_path / "none")


def test_a_root_reached_through_a_link_works(workspace, tmp_path):
    (tmp_path / "alias").symlink_to(workspace.root)
    alias = Workspace(tmp_path / "alias")
    assert alias.read_bytes("data/orders.csv") == b"a,b\n1,2\n"
    assert alias.relative(alias.resolve(str(tmp_path / "alias" / "data"))) == "data"


parts = st.sampled_from(
    ["..", ".", "a", "data", "out", "in", "deep", "", "~", ".env", "a\\..", "%2e%2e", "/", "c:", "\u202e"]
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(parts | st.text(max_size=4), max_size=7), st.booleans())
def test_whatever_the_path_it_is_inside_or_refused(workspace, outside, pieces, absolute):
    if not (workspace.root / "out").is_symlink():
        (workspace.root / "out").symlink_to(outside)
        (workspace.root / "in").symlink_to("data")
    path = "/".join(pieces)
    path = f"{workspace.root}/{path}" if absolute else path
    try:
        real = workspace.resolve(path)
    except WorkspaceError:
        return
    assert Path(os.path.realpath(real)).is_relative_to(workspace.root)
    assert not os.path.realpath(real).startswith(str(outside))


@pytest.fixture
def branching(workspace, outside) -> Workspace:
    """A workspace with a folder that has the same names below it as the folder outside."""
    for folder in (workspace.root / "a" / "deep", outside / "deep"):
        folder.mkdir(parents=True)
        (folder / f"of-{folder.parent.name}.txt").write_text("x")
    (workspace.root / "a" / "first.txt").write_text("x")
    return workspace


def swap(workspace: Workspace, outside: Path) -> None:
    """Put a link that leads out in the place of a folder."""
    (workspace.root / "a").rename(workspace.root / "z")
    (workspace.root / "a").symlink_to(outside)


@pytest.mark.parametrize("at", ["judged", "wanted", "skipped"])
def test_a_folder_that_is_swapped_while_a_walk_is_in_it_leads_nowhere(branching, outside, at):
    def now(*args: object) -> bool:
        if (branching.root / "a").is_symlink() or ("first.txt" not in str(args) and at != "skipped"):
            return True
        swap(branching, outside)
        return True

    def verdict(place: str) -> str:
        return "allow" if at != "judged" or now(place) else "deny"

    found = [
        branching.relative(file)
        for file in branching.judged(verdict).walk(
            ".",
            (lambda name: not (name == "a" or now(name))) if at == "skipped" else None,
            now if at == "wanted" else None,
        )
    ]
    assert (branching.root / "a").is_symlink()
    assert not [name for name in found if "outside" in name or name.startswith("a/deep")]


def test_a_listing_of_a_place_follows_no_link(branching, outside):
    swap(branching, outside)
    for place in ("a", "a/deep"):
        with pytest.raises(OSError, match="directory"), branching.listing(place):
            pass
        assert list(branching.walk_place(place)) == []
    assert list(branching.walk_place("a/deep/of-outside.txt")) == []
    with branching.listing("z") as entries:
        assert [entry.name for entry in entries] == ["deep", "first.txt"]


def test_a_place_that_is_opened_is_reached_through_no_link(branching, outside):
    place = branching.place("a/first.txt")
    swap(branching, outside)
    (outside / "first.txt").write_text("not yours")
    with pytest.raises(WorkspaceError, match="link"):
        branching.open_place(place)


def test_a_walk_and_a_held_place_leave_no_descriptor_open(branching):
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(3):
        list(branching.walk())
        next(iter(branching.walk()))
        branching.held("a/first.txt")  # nobody closes it
        with pytest.raises(WorkspaceError):
            branching.held("a/first.txt/below")
    assert len(list(Path("/dev/fd").iterdir())) <= before
