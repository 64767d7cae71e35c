"""The vectors of the built-in actions' texts, made ahead: they take two seconds of every kernel's first minute.

Invariants: they are those of the model that `KEY` names, and serve no other. A text that is not among them, a
description that changed since, is embedded as any other: an old file costs time, and gives nothing wrong.
`python -m tests.search.embedders.built_in_vectors` writes the file.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

FILE = Path(__file__).with_suffix(".npz")  # "key", "digests" (n, 16), "vectors" (n, 384) in half precision


def digest_text(text: str) -> bytes:
    """Return what a text is known by in the file."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


@functools.cache
def built_in_vectors(key: str) -> Mapping[bytes, Floats]:
    """Return vectors of length 1 by the digests of their texts; none where the file is another model's, or unreadable.

    Args:
        key: the embedder's.

    Example:
        >>> len(built_in_vectors("another model"))
        0
    """
    import numpy as np

    try:
        with np.load(FILE, allow_pickle=False) as held:
            if str(held["key"]) != key:
                return {}
            digests, vectors = held["digests"], held["vectors"].astype(np.float32)
    except (OSError, EOFError, ValueError, KeyError, BadZipFile):
        return {}
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {digest.tobytes(): vector for digest, vector in zip(digests, vectors, strict=True)}
