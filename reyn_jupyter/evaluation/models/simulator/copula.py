"""The dice of the simulator: uniform numbers that depend on what is asked alone, and hang together as stated.

Invariants: the same seed, prompt, repeat, decision and arm give the same number in every process; over prompts and
repeats each number is uniform on (0, 1), so that a decision's marginal rate is exactly the table's; on the normal
scale two numbers correlate by what they share:

    same arm, two repeats of a prompt           icc
    two arms, the same repeat of a prompt       arm_correlation
    two arms, two repeats of a prompt           icc − interaction
    two prompts                                 0

An arm is what a request shows besides the person's text, so two variants that ask alike are one arm.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

_NORMAL = NormalDist()
_BITS = 52  # so that (n + ½) / 2⁵² is never rounded to 1


@dataclass(frozen=True)
class Latent:
    """A Gaussian copula over prompts, repeats and arms.

    Args:
        seed: another seed, other numbers.
        icc: correlation of repeats of one prompt in one arm, on the normal scale.
        arm_correlation: correlation of two arms at the same repeat of a prompt, on the normal scale.
        interaction: the part of `icc` that belongs to a prompt in one arm alone.

    Raises:
        ValueError: the three cannot hold together.

    Example:
        >>> latent = Latent(seed=1, icc=0.2, arm_correlation=0.5)
        >>> latent.uniform("Hello", 0, "a", "lists first") == latent.uniform("Hello", 0, "a", "lists first")
        True
    """

    seed: int = 0
    icc: float = 0.0
    arm_correlation: float = 0.0
    interaction: float = 0.0

    def __post_init__(self) -> None:
        if not all(-1e-12 <= share <= 1 + 1e-12 for share in self._shares):
            raise ValueError(
                f"icc={self.icc}, arm_correlation={self.arm_correlation} and interaction={self.interaction} cannot "
                "hold together; choose 0 ≤ interaction ≤ icc, icc − interaction ≤ arm_correlation, and "
                "arm_correlation + interaction ≤ 1"
            )

    @property
    def _shares(self) -> tuple[float, float, float, float]:
        """The variance of a prompt, of a prompt in an arm, of a repeat across arms, of a repeat in an arm."""
        prompt = self.icc - self.interaction
        return (
            prompt,
            self.interaction,
            self.arm_correlation - prompt,
            1 - self.arm_correlation - self.interaction,
        )

    @cached_property
    def _weights(self) -> tuple[float, float, float, float]:
        a, b, c, d = (math.sqrt(max(0.0, share)) for share in self._shares)
        return a, b, c, d

    def uniform(self, prompt: str, repeat: int, arm: str, decision: str) -> float:
        """Return a number from (0, 1) for one decision.

        Args:
            prompt: the person's text, or a digest of it.
            repeat: the index of the repeat.
            arm: a digest of what the request shows besides.
            decision: what is decided; decisions are independent of each other.
        """
        of_prompt, of_arm, of_repeat, own = self._weights
        stem = f"{self.seed}\0{decision}\0{prompt}"
        if own == 1.0:
            return _uniform(f"own\0{stem}\0{repeat}\0{arm}")
        score = 0.0
        for weight, part in (
            (of_prompt, f"prompt\0{stem}"),
            (of_arm, f"arm\0{stem}\0{arm}"),
            (of_repeat, f"repeat\0{stem}\0{repeat}"),
            (own, f"own\0{stem}\0{repeat}\0{arm}"),
        ):
            if weight:
                score += weight * _NORMAL.inv_cdf(_uniform(part))
        return _NORMAL.cdf(score)


def _uniform(text: str) -> float:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return ((int.from_bytes(digest, "big") >> (64 - _BITS)) + 0.5) / (1 << _BITS)
