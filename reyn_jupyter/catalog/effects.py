"""Effects: what a call does to the world, for consent.

Invariant: a target is in its one spelling from the moment an effect is made, so that rule, question, approval, event
and audit speak of the same one.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from reyn_jupyter.support.effect_targets import EffectKind, TargetError, normalize_target

__all__ = ["Effect", "EffectKind", "TargetError"]


@dataclass(frozen=True, slots=True, init=False)
class Effect:
    """One thing that a call does: ``write data/out.csv``, ``network api.x.org``, ``exec git status``.

    Args:
        kind: one of `EffectKind`, or its word.
        target: for the first five kinds a path, for "network" a URL or a host, for "exec" the words of a command as a
            shell reads them, for "mcp" a server and its tool.

    Raises:
        ValueError: no such kind.
        TargetError: the target is none of its kind.

    Example:
        >>> Effect("network", "HTTPS://A.Example.org.:443/x")
        Effect(kind=<EffectKind.NETWORK: 'network'>, target='a.example.org')
    """

    kind: EffectKind
    target: str

    def __init__(self, kind: EffectKind | str, target: str) -> None:
        known = EffectKind(kind)
        object.__setattr__(self, "kind", known)
        object.__setattr__(self, "target", normalize_target(known, target))

    @classmethod
    def network(cls, url: str) -> Effect:
        """Return the effect of reaching a host, by a URL or its name."""
        return cls(EffectKind.NETWORK, url)

    @classmethod
    def exec(cls, argv: Sequence[str]) -> Effect:
        """Return the effect of running a program with these words, without a shell."""
        return cls(EffectKind.EXEC, shlex.join(argv))

    @classmethod
    def mcp(cls, server: str, tool: str) -> Effect:
        """Return the effect of calling a server's tool. Raises TargetError for a server with a slash in its name."""
        if "/" in server:
            raise TargetError(f"{server[:80]!a} is no name of a server: it has a slash.")
        return cls(EffectKind.MCP, f"{server}/{tool}")

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"
