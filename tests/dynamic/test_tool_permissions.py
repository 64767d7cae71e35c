"""Permissions of a tool: one spelling, nothing protected, clear refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from reyn_jupyter.catalog.effects import Effect
from reyn_jupyter.dynamic.tool_error import DynamicToolError
from reyn_jupyter.dynamic.tool_permissions import read_permissions
from reyn_jupyter.guard.workspace import Workspace


def test_permissions_have_one_spelling_and_become_effects() -> None:
    given = [
        "network:HTTPS://API.Example.org.:443/x", "network:api.example.org", "network: localhost:8080",
        "read:./data//orders.csv", "write:out/", "allow:delete_files",
    ]  # fmt: skip
    permissions = read_permissions(given)
    assert permissions.spelled == (
        "network:api.example.org", "network:localhost:8080", "read:data/orders.csv", "write:out",
        "allow:delete_files",
    )  # fmt: skip
    assert permissions.effects() == (
        Effect("read", "data/orders.csv"), Effect("write", "out"), Effect.network("api.example.org"),
        Effect.network("localhost:8080"),
    )  # fmt: skip
    assert permissions.granted[2:] == ("read:data/orders.csv", "write:out", "delete_files")
    assert permissions.is_critical
    assert not read_permissions(["write:out"]).is_critical
    assert read_permissions(permissions.spelled) == permissions


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["netwrok:x.org"], "network"),
        (["api.example.org"], "no permission"),
        (["network:"], "what for"),
        (["network:a b"], "no host"),
        (["allow:delete-files"], "delete_files"),
        (["allow:everything"], "no operation"),
        (["read:/etc/passwd"], "below the workspace"),
        (["read:~/.ssh"], "below the workspace"),
        (["write:a/../../b"], "below the workspace"),
        (["read:.env"], "secrets"),
        (["write:.git/hooks"], ".git"),
        (["read:.reyn/runs"], "session's own"),
        ([7], "text"),
        ([f"read:f{number}" for number in range(21)], "more than 20"),
    ],
)
def test_what_is_no_permission_is_refused_with_what_there_is(given: list[str], words: str) -> None:
    with pytest.raises(DynamicToolError, match=words) as refused:
        read_permissions(given)
    assert (refused.value.code, bool(refused.value.hint)) == ("E403", True)


def test_places_are_there_and_inside_links_followed(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    (root / "out").mkdir(parents=True)
    (root / "data.csv").write_text("a,b", encoding="ascii")
    (tmp_path / "outside").mkdir()
    (root / "way").symlink_to(tmp_path / "outside")
    (root / ".git").mkdir()
    (root / "hooks").symlink_to(root / ".git")
    workspace = Workspace(root, off_limits=())
    permissions = read_permissions(["read:data.csv", "write:out"])
    assert permissions.places(workspace) == ((root / "data.csv",), (root / "out",))
    for given in ("write:way", "read:way", "write:hooks", "write:data.csv", "write:gone", "read:gone"):
        with pytest.raises(DynamicToolError) as refused:
            read_permissions([given]).places(workspace)
        assert refused.value.code == "E403"
