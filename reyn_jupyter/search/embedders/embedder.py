"""The base class of all embedders: what the index of a session needs, with defaults for a model on this machine.

Invariant: two embedders with one key give the same vectors, so what one stored the other may use.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    import numpy as np
    from numpy.typing import NDArray

# A batch takes seconds on a busy machine: the loop's own threads, in which files are read, are not for that.
_THREADS = ThreadPoolExecutor(2, "reyn-embed")
LOCAL = "sentence-transformers/"  # what the model strings of local classes begin with
MINI = f"{LOCAL}all-MiniLM-L6-v2"
Wait = Callable[[Coroutine[Any, Any, "NDArray[np.float32]"]], "NDArray[np.float32]"]


@dataclass(frozen=True)
class EmbeddingUsage:
    """The cost of the embeddings of a process so far. `cost` in US dollars; None where no price is known."""

    requests: int = 0
    tokens: int = 0
    cost: float | None = 0.0


class Embedder(ABC):
    """Texts to vectors whose inner product is their cosine similarity.

    A subclass sets `key` and writes `embed`; the rest has defaults. `embedding_classes.EMBEDDERS` says which model
    strings it serves.

    Args:
        model: the model string of the class, as configured.

    Attributes:
        key: what the vectors belong to: the model, and the digest of its weights where that is known.
        dimension: numbers a vector; None where the model tells only with its first answer.
        is_remote: whether texts leave this machine. Then nothing is embedded unasked: a person builds the index.
        english_only: whether requests in other languages are far from actions that are described in English.
        batch: actions, of up to three texts each, that are embedded and stored together.
        spent: the usage so far; None where embedding costs nothing.

    Example:
        class Letters(Embedder):
            key, dimension = "letters", 26

            def embed(self, texts):
                rows = np.array([[1 + text.count(chr(97 + n)) for n in range(26)] for text in texts], np.float32)
                return rows / np.linalg.norm(rows, axis=1, keepdims=True)
    """

    key: str
    dimension: int | None = None
    is_remote: ClassVar[bool] = False
    english_only: bool = False
    batch: ClassVar[int] = 16  # about a third of a second on one core, so that an interrupt is heard soon
    spent: EmbeddingUsage | None = None

    def __init__(self, model: str = "") -> None:
        self.model = model

    @classmethod
    def create(
        cls, model: str, wait: Wait | None, redact: Callable[[str], str], environ: Mapping[str, str] | None
    ) -> Embedder:
        """Return the embedder of a model. A remote one sends each text through `redact` first.

        Args:
            model: the model string of the class.
            wait: runs a coroutine to its end for a thread that waits; None for a loop of its own.
            redact: takes secrets out of a text.
            environ: where keys and addresses are looked up; the process's environment when None.
        """
        return cls(model)

    @classmethod
    def problem(cls, name: str, model: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
        """Return why the class `name` cannot use `model` here, and what to do; None where it can.

        The first text ends a sentence that begins "the class 'name'". Nothing is loaded or asked of a provider.
        """
        return None

    @property
    def is_available(self) -> bool:
        """Return whether a local model lies on this machine, as far as that shows without loading it."""
        return True

    @property
    def ready(self) -> bool:
        """Return whether `embed` answers without loading anything for seconds."""
        return True

    @property
    def is_loaded(self) -> bool:
        """Return whether the model is in memory, so that the first texts take no longer than others."""
        return True

    @property
    def served_by(self) -> str:
        """Return who embeds now, in words; empty for the model itself."""
        return ""

    def expect(self, records: int) -> None:
        """Prepare for this many records, for example by loading what pays only for a lot."""
        return

    def load(self) -> Future[None] | None:
        """Begin, once, to load what `ready` waits for, in a thread; None where there is nothing to load."""
        return None

    def renew(self) -> Embedder:
        """Return who embeds from now on: this one, or another where the model was saved again."""
        return self

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 for each text, shape (len(texts), dimension). Any thread may call it."""

    async def embed_async(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the same without blocking the loop: here in a thread of its own kind."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_THREADS, copy_context().run, self.embed, texts)


class EmbedderError(Exception):
    """A local model is not there, or is not the one it should be. The message says what to do."""
