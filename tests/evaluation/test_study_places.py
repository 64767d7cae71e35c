"""Where studies are kept: no name and no link leads out of their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from reyn_jupyter.evaluation.store.study_file import StoreError
from reyn_jupyter.evaluation.study_places import FOLDER, default_study_file, find_study_file, study_files


@pytest.mark.parametrize("suite", ["../../../out", "/tmp/out", "a/b", "..", "x" * 1_000])
def test_a_suite_s_name_leads_to_no_other_folder(tmp_path: Path, suite: str) -> None:
    file = default_study_file(tmp_path, suite, ["../openai/gpt"])
    assert file.parent == tmp_path / FOLDER and file.name.endswith("openai-gpt.sqlite")
    file.touch()
    assert study_files(tmp_path) == {file.stem: file}


def test_a_link_among_the_studies_is_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside.sqlite"
    root.mkdir()
    link = default_study_file(root, "mandates", ["simulator"])
    link.symlink_to(outside)
    with pytest.raises(StoreError, match="is a link"):
        default_study_file(root, "mandates", ["simulator"])
    outside.touch()
    for name in (None, link.stem):
        with pytest.raises(StoreError, match=r"(?i)no study"):
            find_study_file(root, name)


def test_a_folder_of_studies_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (outside / "other.sqlite").touch()
    (root / ".reyn").mkdir(parents=True)
    (root / FOLDER).symlink_to(outside)
    assert study_files(root) == {}
    with pytest.raises(StoreError, match="cannot be made"):
        default_study_file(root, "mandates", [])
