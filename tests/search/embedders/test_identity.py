"""A local model that is saved again under its own name is another model; the same one is the same wherever it lies."""

from __future__ import annotations

import importlib.util
import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from reyn_jupyter.config import Settings
from reyn_jupyter.search.action_index import ActionEmbeddingIndex
from reyn_jupyter.search.embedders.embedder import MINI
from reyn_jupyter.search.embedders.embedding_classes import InstalledModels, resolve
from reyn_jupyter.search.embedders.identity import folder_of, key_of
from reyn_jupyter.search.embedders.packaged import KEY, weights_folder
from tests.search.action_indexes import LITTLE, configured, found, run

WEIGHTS = "model.safetensors"
COMMITS = ("a" * 40, "b" * 40)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mine"
    (made / "1_Pooling").mkdir(parents=True)
    (made / "config.json").write_text('{"hidden_size": 8}')
    (made / "1_Pooling" / "config.json").write_text("{}")
    (made / WEIGHTS).write_bytes(bytes(5_000_000))
    return made


def saved_again(file: Path, place: int, length: int) -> None:
    """Other content of the same size at the same time, as in an image that is built reproducibly."""
    before = file.stat()
    raw = bytearray(file.read_bytes())
    raw[place : place + length] = os.urandom(length)
    file.write_bytes(raw)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("place", [0, 2_000_000, 4_900_000], ids=["first", "within", "last"])
def test_other_weights_of_the_same_size_and_time_are_another_model(folder: Path, place: int) -> None:
    before = key_of(str(folder))
    assert key_of(str(folder)) == before
    saved_again(folder / WEIGHTS, place, 100_000)
    os.utime(folder / WEIGHTS, (1, 1))  # what was looked at before is remembered by size and time
    stamped = key_of(str(folder))
    assert stamped != before
    os.utime(folder / WEIGHTS, (2, 2))
    assert key_of(str(folder)) != stamped


@pytest.mark.parametrize("place", [0, 2_000_000, 4_900_000], ids=["first", "within", "last"])
def test_a_process_of_later_sees_other_weights_though_their_times_stand_still(
    folder: Path, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reyn_jupyter.search.embedders import identity

    before = key_of(str(folder))
    saved_again(folder / WEIGHTS, place, 100_000)
    identity._digest.cache_clear()
    assert key_of(str(folder)) != before


def test_a_part_in_a_folder_of_its_own_counts_and_a_hidden_file_does_not(folder: Path) -> None:
    before = key_of(str(folder))
    (folder / ".gitattributes").write_text("x")
    assert key_of(str(folder)) == before
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert key_of(str(folder)) != before


def test_in_the_cache_the_commit_names_the_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    name = "sentence-transformers/paraphrase"
    held = tmp_path / "models--sentence-transformers--paraphrase"
    assert key_of(name) == f"{name}@unknown" and folder_of(name) is None
    (held / "refs").mkdir(parents=True)
    keys = []
    for commit in COMMITS:
        (held / "snapshots" / commit).mkdir(parents=True)
        (held / "snapshots" / commit / "config.json").write_text("{}")
        (held / "refs" / "main").write_text(commit)
        keys.append(key_of(name))
        assert folder_of(name) == held / "snapshots" / commit
    assert keys == [f"{name}@{commit[:16]}" for commit in COMMITS]
    (held / "refs" / "main").write_text("../../../../etc")
    assert folder_of(name) is None
    assert folder_of("sentence-transformers/no such/name/..") is None


def test_the_packaged_model_has_one_key_whoever_runs_it() -> None:
    for machine in (InstalledModels(True, True), InstalledModels(True, False), InstalledModels(False, True)):
        embedder = resolve(Settings(), {}, lambda machine=machine: machine).embedder()  # type: ignore[misc]
        assert embedder is not None and embedder.key == KEY == key_of(MINI) == key_of("all-MiniLM-L6-v2")


def test_a_class_may_name_a_folder(folder: Path) -> None:
    settings = configured("mine", mine=f"sentence-transformers/{folder}")()
    here = InstalledModels(True, True)
    first = resolve(settings, {}, lambda: here).embedder()
    assert first is not None and first is resolve(settings, {}, lambda: here).embedder()
    saved_again(folder / WEIGHTS, 0, 10)
    os.utime(folder / WEIGHTS, (1, 1))
    second = resolve(settings, {}, lambda: here).embedder()
    assert second is not None and second.key != first.key and not second.key.endswith("unknown")


def test_a_model_that_is_saved_again_in_place_is_built_anew(tmp_path: Path) -> None:
    weights = weights_folder()
    if weights is None or importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers or the packaged weights are not installed")
    folder = tmp_path / "mine"
    shutil.copytree(weights, folder)
    index = ActionEmbeddingIndex(
        configured("mine", mine=f"sentence-transformers/{folder}"), tmp_path / "state"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what torch and its friends say while they load
        assert run(index.build(LITTLE)) == 3 and run(index.build(LITTLE)) == 0
        first = _vectors(index)
        raw = np.fromfile(folder / WEIGHTS, np.uint8)
        raw[-4_000_000:].view("<f4")[:] *= np.float32(1.7)
        raw.tofile(folder / WEIGHTS)
        assert run(index.build(LITTLE)) == 3, "another model has none of these vectors"
        second = _vectors(index)
    assert first.keys() == second.keys() and any(not np.allclose(first[each], second[each]) for each in first)
    assert len(index._store.counts()) == 1 and found(index, LITTLE, "mail").ranking == "hybrid"


def _vectors(index: ActionEmbeddingIndex) -> dict[str, np.ndarray]:
    (key,) = index._store.counts()
    digests = [record.digest for record in index._covering.now.records]  # type: ignore[union-attr]
    return {
        name: row
        for names, rows in index._store.read(key, digests)
        for name, row in zip(names, rows, strict=True)
    }
