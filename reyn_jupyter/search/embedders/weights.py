"""The weights of a network in a safetensors file, mapped into memory, and laid out for products with few rows.

Invariant: a tensor is a view of the mapped file until it is turned or joined, so what is only looked up (the vectors
of words, three quarters of the file) costs the process no memory.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Linear = tuple[Floats, Floats]

# OpenBLAS multiplies a few rows with a matrix of up to this size as it lies (AVX-512), and copies a larger one at every
# call, which takes longer than the product of 20 rows. Where it always copies, tiles cost nothing.
COLUMNS, ROWS = 64, 384


class Weights:
    """Tensors by name.

    Args:
        file: safetensors, all of float32.

    Example:
        weights = Weights(Path("model.safetensors"))
        weights.tensor("embeddings.word_embeddings.weight").shape     # (30522, 384)
    """

    def __init__(self, file: Path) -> None:
        raw = np.memmap(file, np.uint8, "r")
        start = 8 + int(raw[:8].view("<u8")[0])
        self._names: dict[str, Any] = json.loads(bytes(raw[8:start]))
        self._raw = raw[start:]

    def tensor(self, name: str) -> Floats:
        """A tensor as it lies in the file. Raises KeyError."""
        entry = self._names[name]
        first, last = entry["data_offsets"]
        return np.asarray(self._raw[first:last]).view("<f4").reshape(entry["shape"])

    def pair(self, *names: str) -> Linear:
        """Weights and biases of one or more maps side by side."""
        weights, biases = ([self.tensor(f"{name}.{part}") for name in names] for part in ("weight", "bias"))
        return np.concatenate(weights), np.concatenate(biases)

    def tiled(self, *names: str) -> Linear:
        """The same, the weights turned and cut: from shape (n, k) to (k / rows, n / columns, rows, columns)."""
        weights, bias = self.pair(*names)
        columns, rows = np.gcd(weights.shape, (COLUMNS, ROWS))
        cut = weights.T.reshape(-1, rows, len(weights) // columns, columns)
        return np.ascontiguousarray(cut.swapaxes(1, 2)), bias


def times(x: Floats, linear: Linear) -> Floats:
    """Rows, shape (m, k), through a map as `Weights.tiled` gives it: a new array of shape (m, n)."""
    tiles, bias = linear
    steps, across, rows, columns = tiles.shape
    found = np.empty((steps, len(x), across, columns), np.float32)
    np.matmul(x.reshape(len(x), steps, 1, rows).transpose(1, 2, 0, 3), tiles, out=found.swapaxes(1, 2))
    total: Floats = (found[0] if steps == 1 else found.sum(0)).reshape(len(x), -1)
    total += bias
    return total
