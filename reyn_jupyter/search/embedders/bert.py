"""The forward pass of a small BERT over numpy.

Invariant: a text's vector does not depend on what else is in its batch. The network: Devlin et al., "BERT" (2019);
mean pooling: Reimers and Gurevych, "Sentence-BERT" (2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reyn_jupyter.search.embedders.weights import Weights, times

if TYPE_CHECKING:
    from pathlib import Path

    from reyn_jupyter.search.embedders.weights import Floats, Linear

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
        """One row of length 1 for each list of token ids, shape (len(tokens), width)."""
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
    """The sum of the first two, in place of the first, each row with mean 0 and variance 1, then scaled."""
    x += more
    x -= x.mean(-1, keepdims=True)
    x /= np.sqrt(np.einsum("nd,nd->n", x, x) / np.float32(x.shape[-1]) + EPSILON)[:, None]
    x *= scale[0]
    x += scale[1]
    return x


def _gelu(x: Floats) -> Floats:
    """In place."""
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
