"""Find the embedding class that is in force now, and the embedder for it.

Invariants: what works is remembered for as long as the settings stay, and what does not is looked for again at every
question, since it may have been installed or set meanwhile. Within a build or a turn the model stays the same, however
often it is asked for; that it was saved again is noticed by `renew`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from reyn_jupyter.config import Settings
from reyn_jupyter.search.embedders.embedding_classes import ResolvedClass, resolve

if TYPE_CHECKING:
    from reyn_jupyter.search.embedders.embedder import Embedder, Wait


class EmbeddingClassError(ValueError):
    """Nothing can be built with the configured class; `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ActiveClass:
    """The embedding class of a session. Arguments as of `ActionEmbeddingIndex`. Safe for threads.

    Example:
        >>> ActiveClass(Settings, environ={}).resolved.name
        'local-mini'
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        *,
        wait: Wait | None = None,
        redact: Callable[[str], str] = str,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._wait, self._redact, self._environ = wait, redact, environ
        self._lock = threading.RLock()
        self._now: tuple[Any, ResolvedClass, Embedder | None] | None = None

    @property
    def both(self) -> tuple[ResolvedClass, Embedder | None]:
        """Return what the configured class comes to here and now, and who embeds for it, if anybody."""
        settings = self._settings()
        seen = (settings.embedding, settings.action_retrieval.embedding_class)
        with self._lock:
            if self._now is None or self._now[0] != seen or self._now[1].in_force is None:
                resolved = resolve(settings, self._environ)
                self._now = seen, resolved, resolved.embedder(self._wait, self._redact, self._environ)
            return self._now[1:]

    @property
    def resolved(self) -> ResolvedClass:
        return self.both[0]

    @property
    def embedder(self) -> Embedder | None:
        return self.both[1]

    @property
    def key(self) -> str | None:
        """Return what the vectors of this class are stored under; None where it has nobody who embeds."""
        from reyn_jupyter.search.index_builder import store_key

        embedder = self.embedder
        return store_key(embedder) if embedder is not None else None

    def renew(self) -> None:
        """Take a local model as it lies on the disk now. A provider's embedder stays: it counts what was spent."""
        with self._lock:
            if self._now is not None and (embedder := self._now[2]) is not None:
                self._now = *self._now[:2], embedder.renew()
