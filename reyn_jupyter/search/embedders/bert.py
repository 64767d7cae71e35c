"""The forward pass of a small BERT over numpy, and its weights from a safetensors file mapped into memory.

Invariants: a text's vector does not depend on what else is in its batch; a tensor is a view of the mapped file until
it is turned or joined, so what is only looked up (the vectors of words, three quarters of the file) costs the process
no memory. The network: Devlin et al., "BERT" (2019); mean pooling: Reimers and Gurevych, "Sentence-BERT" (2019).
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


EPSILON, BOUND = np.float32(1e-12), np.float32(5.5)
# Minus the log odds of the normal distribution, over x, as a polynomial in x². Fitted between ±BOUND for the smallest
# greatest error of GELU, which is 3.1e-6; it takes half the steps of the error function.
ODDS = np.array([-2.23816338e-6, 6.11619952e-5, 2.49723354e-4, -7.2937582e-2, -1.59565627], np.float32)


class Bert:
    """An encoder with mean pooling.

    Args:
        file: a safetensors file of float32 tensors under the names of the transformers library.
        layers, heads: of the network; its width is read from the file.
    """

    def __init__(self, file: Path, layers: int, heads: int) -> None:
        weights = Weights(file)
        self._words, self._places, kinds = (
            weights.tensor(f"embeddings.{part}_embeddings.weight")
            for part in ("word", "position", "token_type")
        )
        self._kind, self._norm = kinds[0], weights.pair("embeddings.LayerNorm")
        self._heads, self._width = heads, self._words.shape[1]
        self._layers = []
        for layer in (f"encoder.layer.{number}." for number in range(layers)):
            fused = [f"{layer}attention.self.{part}" for part in ("query", "key", "value")]
            maps = [[f"{layer}{part}.dense"] for part in ("attention.output", "intermediate", "output")]
            norms = [weights.pair(f"{layer}{part}.LayerNorm") for part in ("attention.output", "output")]
            self._layers.append(([weights.tiled(*each) for each in (fused, *maps)], norms))

    def forward(self, tokens: list[list[int]]) -> Floats:
        """Return one row of length 1 for each list of token ids, shape (len(tokens), width)."""
        count, longest = len(tokens), max(map(len, tokens))
        ids = np.array([row + [0] * (longest - len(row)) for row in tokens])
        real = np.array([[1.0] * len(row) + [0.0] * (longest - len(row)) for row in tokens], np.float32)
        hidden = (self._words[ids] + self._places[:longest]).reshape(-1, self._width)
        hidden = _normed(hidden, self._kind, self._norm)
        shape, root = (count, longest, 3, self._heads, -1), np.float32((self._width / self._heads) ** 0.5)
        for (fused, out, up, down), (after_attention, after) in self._layers:
            mixed = times(hidden, fused).reshape(shape).transpose(2, 0, 3, 1, 4)
            weights = mixed[0] @ (mixed[1] / root).swapaxes(-1, -2)
            weights -= weights.max(-1, keepdims=True)
            weights = np.exp(weights, out=weights) * real[:, None, None, :]
            seen = (weights / weights.sum(-1, keepdims=True)) @ mixed[2]
            seen = seen.swapaxes(1, 2).reshape(-1, self._width)
            hidden = _normed(times(seen, out), hidden, after_attention)
            hidden = _normed(times(_gelu(times(hidden, up)), down), hidden, after)
        pooled = np.einsum("tl,tld->td", real, hidden.reshape(count, longest, -1))
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), np.float32)


def _normed(x: Floats, more: Floats, scale: Linear) -> Floats:
    """Add the second to the first in place, and scale each row to mean 0 and variance 1, then by `scale`."""
    x += more
    x -= x.mean(-1, keepdims=True)
    x /= np.sqrt(np.einsum("nd,nd->n", x, x) / np.float32(x.shape[-1]) + EPSILON)[:, None]
    x *= scale[0]
    x += scale[1]
    return x


def _gelu(x: Floats) -> Floats:
    """Apply GELU in place."""
    near = np.clip(x, -BOUND, BOUND)
    square = near * near
    curve = square * ODDS[0]
    for factor in ODDS[1:-1]:
        curve += factor
        curve *= square
    curve += ODDS[-1]
    curve *= near
    np.exp(curve, out=curve)
    curve += 1
    x /= curve
    return x


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
        """Return a tensor as it lies in the file. Raises KeyError."""
        entry = self._names[name]
        first, last = entry["data_offsets"]
        return np.asarray(self._raw[first:last]).view("<f4").reshape(entry["shape"])

    def pair(self, *names: str) -> Linear:
        """Return weights and biases of one or more maps side by side."""
        weights, biases = ([self.tensor(f"{name}.{part}") for name in names] for part in ("weight", "bias"))
        return np.concatenate(weights), np.concatenate(biases)

    def tiled(self, *names: str) -> Linear:
        """Return the same, the weights turned and cut: from (n, k) to (k / rows, n / columns, rows, columns)."""
        weights, bias = self.pair(*names)
        columns, rows = np.gcd(weights.shape, (COLUMNS, ROWS))
        cut = weights.T.reshape(-1, rows, len(weights) // columns, columns)
        return np.ascontiguousarray(cut.swapaxes(1, 2)), bias


def times(x: Floats, linear: Linear) -> Floats:
    """Return rows, shape (m, k), through a map as `Weights.tiled` gives it: a new array of shape (m, n)."""
    tiles, bias = linear
    steps, across, rows, columns = tiles.shape
    found = np.empty((steps, len(x), across, columns), np.float32)
    np.matmul(x.reshape(len(x), steps, 1, rows).transpose(1, 2, 0, 3), tiles, out=found.swapaxes(1, 2))
    total: Floats = (found[0] if steps == 1 else found.sum(0)).reshape(len(x), -1)
    total += bias
    return total
