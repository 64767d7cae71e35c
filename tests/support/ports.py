"""Ports for servers of tests that are started, killed and started again, and ports where nobody listens."""

from __future__ import annotations

import random
import socket

# Below what Linux and macOS give away by themselves, so that no connection of another test takes one meanwhile.
_FIRST, _LAST = 20_000, 32_000
_CHANCE = random.SystemRandom()


def free_port() -> int:
    """Return a port that nobody listens at, and that the system gives to nobody who does not ask for it."""
    while True:
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", _CHANCE.randrange(_FIRST, _LAST)))
            except OSError:
                continue
            return int(tried.getsockname()[1])
