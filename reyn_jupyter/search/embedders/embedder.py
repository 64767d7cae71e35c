"""What the index asks of an embedder.

Invariant: two embedders with one key give the same vectors, so what one stored the other may use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

LOCAL = "sentence-transformers/"  # what the model strings of local classes begin with
MINI = f"{LOCAL}all-MiniLM-L6-v2"


@runtime_checkable
class Embedder(Protocol):
    """Texts to vectors whose inner product is their cosine similarity.

    Attributes:
        key: what the vectors belong to: the model, and the digest of its weights where that is known.
        dimension: numbers a vector; None where the model tells only with its first answer.
    """

    @property
    def key(self) -> str: ...

    @property
    def dimension(self) -> int | None: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of length 1 for each text, shape (len(texts), dimension). May be called by any thread."""
        ...


class EmbedderError(Exception):
    """A local model is not there, or is not the one it should be. The message says what to do."""
