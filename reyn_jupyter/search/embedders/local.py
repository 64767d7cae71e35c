"""The local embedder: the packaged weights at once, sentence-transformers when it has been loaded.

Invariants:

- Nobody waits for torch who did not ask for much: it is loaded by a thread of its own, and until then the packaged
  weights serve, whose vectors are the same; it is loaded only where there is a lot to embed, or nothing else that
  could. What was embedded lately is not embedded again. Who serves is decided once a process.
- Texts are embedded with one thread of linear algebra: on busy cores the threads of a small product wait for one
  another ten times as long as one alone computes. The number of threads that the person's own code had is back once
  the last block is left, whichever threads entered blocks and in which order.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from reyn_jupyter.search.embedders.built_in_vectors import built_in_vectors, digest_text
from reyn_jupyter.search.embedders.embedder import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


MUCH = 10_000  # records from which on the seconds of loading torch are worth it
REMEMBERED = 4_096  # texts, about 6 MB, for every session of a process
LIGHT, HEAVY = "packaged weights", "sentence-transformers"


class LocalEmbedder(Embedder):
    """One local model behind up to two ways to run it.

    Args:
        key: what the vectors of both belong to.
        dimension: numbers a vector; None where only the model itself tells.
        light: makes the embedder that is there at once; None where there is none.
        heavy: makes the one that takes seconds to load; None where it is not installed.
        is_there: tells whether the model lies on this machine; always, when None.
        renew: returns the embedder of the model as it lies on the disk now; this one, when None.
    """

    def __init__(
        self,
        key: str,
        dimension: int | None,
        light: Callable[[], Embedder] | None,
        heavy: Callable[[], Embedder] | None,
        is_there: Callable[[], bool] | None = None,
        renew: Callable[[], Embedder] | None = None,
    ) -> None:
        super().__init__()
        self.key = key
        self.dimension = dimension
        self._light, self._heavy = light, heavy
        self._is_there, self._renew = is_there, renew
        self._made: Embedder | None = None
        self._loaded: Embedder | None = None
        self._loading: Future[None] | None = None
        self._failure: Exception | None = None
        self._lock = threading.RLock()
        self._known: LRUCache[str, Floats] = LRUCache(REMEMBERED)

    @property
    def is_available(self) -> bool:
        """Return whether the model lies on this machine, as far as that shows without loading it."""
        return self._is_there is None or self._is_there()

    def renew(self) -> Embedder:
        """Return the embedder of the model as it lies on the disk now."""
        return self if self._renew is None else self._renew()

    @property
    def ready(self) -> bool:
        """Return whether `embed` answers without loading anything for seconds."""
        return self._loaded is not None or self._light is not None or self._failure is not None

    @property
    def is_loaded(self) -> bool:
        """Return whether either way is in memory."""
        return self._loaded is not None or self._made is not None

    @property
    def served_by(self) -> str:
        """Return who embeds now, in words."""
        if self._loaded is not None:
            return HEAVY
        if self._light is None:
            return f"{HEAVY}, being loaded" if self._loading is not None else f"{HEAVY}, not loaded yet"
        if self._loading is not None and self._failure is None:
            return f"{LIGHT}, while {HEAVY} is being loaded"
        return LIGHT

    def expect(self, records: int) -> None:
        """Say how many records are to be embedded, so that what pays only for a lot is loaded meanwhile."""
        if self._heavy is not None and (self._light is None or records >= MUCH):
            self.load()

    def load(self) -> Future[None] | None:
        """Begin to load the heavy way in a thread, once.

        Returns:
            Done when it was tried; cannot be cancelled. None where there is no such way.
        """
        with self._lock:
            if self._heavy is not None and self._loading is None:
                self._loading = Future()
                self._loading.set_running_or_notify_cancel()
                threading.Thread(
                    target=self._load, args=(self._loading,), name="reyn-embedder-load", daemon=True
                ).start()
            return self._loading

    def _load(self, loading: Future[None]) -> None:
        assert self._heavy is not None
        try:
            made = self._heavy()
            made.embed(["warm"])
        except Exception as error:  # noqa: BLE001 - whoever embeds next hears of it, or is served otherwise
            self._failure = error
        else:
            self._loaded = made
        finally:
            loading.set_result(None)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return one row of length 1 for each text. Raises what the model raises that cannot be loaded."""
        import numpy as np

        with self._lock:
            held = {text: self._known[text] for text in texts if text in self._known}
        missing = list(dict.fromkeys(text for text in texts if text not in held))
        if missing:
            ahead = built_in_vectors(self.key)
            held |= {text: ahead[digest] for text in missing if (digest := digest_text(text)) in ahead}
            missing = [text for text in missing if text not in held]
        if missing:
            serving = self._serving()
            with one_thread():
                held |= dict(zip(missing, serving.embed(missing), strict=True))
            with self._lock:
                for text in missing[:REMEMBERED]:
                    self._known[text] = held[text]
        if not texts:
            return np.empty((0, self.dimension or 0), np.float32)
        return np.stack([held[text] for text in texts])

    def _serving(self) -> Embedder:
        if self._loaded is None and self._light is None:
            loading = self.load()
            if loading is not None:
                loading.result()
            if self._loaded is None and self._failure is not None:
                raise self._failure
        if self._loaded is not None:
            return self._loaded
        assert self._light is not None
        with self._lock:
            if self._made is None:
                self._made = self._light()
            return self._made


_lock = threading.Lock()
_limits: list[Any] = []  # the limit in force, if any
_inside = 0


@contextmanager
def one_thread() -> Iterator[None]:
    """Enter a block in which numpy's products use one thread."""
    global _inside
    with _lock:
        if _inside == 0:
            _limits.append(_libraries().limit(limits=1, user_api="blas"))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limits.pop().restore_original_limits()


@functools.cache
def _libraries() -> Any:
    """Return the libraries of this process, looked for once: that takes 0.3 ms, and 1.6 ms beside torch."""
    import numpy  # noqa: F401 - only what is loaded is found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
