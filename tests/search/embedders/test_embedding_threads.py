"""Embedding, however much of it, leaves the threads alone in which files are read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reyn_jupyter.search.embedders.embedder import Embedder


class Slow(Embedder):
    """Embeds when it is let go."""

    def __init__(self, go: threading.Event) -> None:
        self._go = go

    @property
    def key(self) -> str:
        return "slow"

    @property
    def dimension(self) -> int | None:
        return 1

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        assert self._go.wait(60)
        return np.ones((len(texts), 1), np.float32)


async def test_work_of_other_kinds_goes_on_while_many_sessions_embed() -> None:
    go = threading.Event()
    work = [asyncio.ensure_future(Slow(go).embed_async(["a"])) for _ in range(100)]
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(30):
            assert await asyncio.to_thread(lambda: "read") == "read"
        assert not any(each.done() for each in work)
    finally:
        go.set()
    assert all(row.shape == (1, 1) for row in await asyncio.gather(*work))
