"""The forward pass of a small BERT over numpy, its vectors of words mapped from a safetensors file.

Invariant: a text's vector does not depend on what else is in its batch. The network: Devlin et al., "BERT" (2019);
mean pooling: Reimers and Gurevych, "Sentence-BERT" (2019). The error function of GELU is Abramowitz and Stegun
(1964), 7.1.26, exact to 1.5e-7.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

EPSILON, ROOT_HALF = np.float32(1e-12), np.float32(0.5**0.5)
ERF = np.array([-1.453152027, 1.421413741, -0.284496736, 0.254829592], np.float32)


class Bert:
    """An encoder with mean pooling.

    Args:
        weights: a safetensors file of float32 tensors under the names of the transformers library.
        layers, heads: of the network; its width is read from the file.
    """

    def __init__(self, weights: Path, layers: int, heads: int) -> None:
        raw = np.memmap(weights, np.uint8, "r")
        start = 8 + int(raw[:8].view("<u8")[0])
        names: dict[str, Any] = json.loads(bytes(raw[8:start]))

        def tensor(name: str) -> Floats:
            first, last = (start + offset for offset in names[name]["data_offsets"])
            return np.asarray(raw[first:last]).view("<f4").reshape(names[name]["shape"])

        def pair(*names: str) -> tuple[Floats, Floats]:
            """Weights of one or more maps side by side, turned once: a short text then takes a third less time."""
            weights = np.concatenate([tensor(f"{name}.weight") for name in names])
            biases = np.concatenate([tensor(f"{name}.bias") for name in names])
            return np.ascontiguousarray(weights.T), biases

        self._words = tensor("embeddings.word_embeddings.weight")
        self._places = tensor("embeddings.position_embeddings.weight")
        self._kind = tensor("embeddings.token_type_embeddings.weight")[0]
        self._norm, self._heads, self._width = pair("embeddings.LayerNorm"), heads, self._words.shape[1]
        self._layers = []
        for layer in (f"encoder.layer.{number}." for number in range(layers)):
            fused = pair(*(f"{layer}attention.self.{part}" for part in ("query", "key", "value")))
            rest = [pair(f"{layer}{part}.dense") for part in ("attention.output", "intermediate", "output")]
            norms = [pair(f"{layer}{part}.LayerNorm") for part in ("attention.output", "output")]
            self._layers.append((fused, *rest, *norms))

    def forward(self, tokens: list[list[int]]) -> Floats:
        """One row of length 1 for each list of token ids, shape (len(tokens), width)."""
        count, longest = len(tokens), max(map(len, tokens))
        ids = np.array([row + [0] * (longest - len(row)) for row in tokens])
        real = np.array([[1.0] * len(row) + [0.0] * (longest - len(row)) for row in tokens], np.float32)
        hidden = _normed(self._words[ids] + (self._places[:longest] + self._kind), self._norm)
        hidden = hidden.reshape(-1, self._width)
        shape, root = (count, longest, 3, self._heads, -1), np.float32((self._width / self._heads) ** 0.5)
        for fused, out, up, down, after_attention, after in self._layers:
            mixed = (hidden @ fused[0] + fused[1]).reshape(shape).transpose(2, 0, 3, 1, 4)
            weights = mixed[0] @ (mixed[1] / root).swapaxes(-1, -2)
            weights = np.exp(weights - weights.max(-1, keepdims=True)) * real[:, None, None, :]
            seen = (weights / weights.sum(-1, keepdims=True)) @ mixed[2]
            seen = seen.swapaxes(1, 2).reshape(-1, self._width)
            hidden = _normed(seen @ out[0] + out[1] + hidden, after_attention)
            hidden = _normed(_gelu(hidden @ up[0] + up[1]) @ down[0] + down[1] + hidden, after)
        pooled = np.einsum("tl,tld->td", real, hidden.reshape(count, longest, -1))
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), np.float32)


def _normed(x: Floats, scale: tuple[Floats, Floats]) -> Floats:
    x -= x.mean(-1, keepdims=True)
    x /= np.sqrt(np.einsum("...d,...d->...", x, x) / np.float32(x.shape[-1]) + EPSILON)[..., None]
    x *= scale[0]
    x += scale[1]
    return x


def _gelu(x: Floats) -> Floats:
    size = np.abs(x)
    size *= ROOT_HALF
    t = 1 / (1 + np.float32(0.3275911) * size)
    series = np.float32(1.061405429) * t
    for factor in ERF:
        series += factor
        series *= t
    series *= np.exp(-size * size)  # now 1 - erf(|x| / sqrt(2))
    series *= ROOT_HALF * size
    return np.subtract(np.maximum(x, 0), series, out=series)
