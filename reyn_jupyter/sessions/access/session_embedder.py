"""The embedder of a session's search, for its categories.

Invariant: an embedder on another machine is asked about like any request to its host, and gets redacted text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from reyn_jupyter.catalog.action import Effect
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.providers.provider_facts import provider_host
from reyn_jupyter.runtime.action_error import ActionError, PermissionDeniedError, text_of
from reyn_jupyter.runtime.call.call_scope import current_call
from reyn_jupyter.search.embedders.embedder import EmbedderError
from reyn_jupyter.support.encoding import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from reyn_jupyter.search.embedders.embedder import Embedder

_HINT = "%reyn embeddings says what there is."


class SessionEmbedder:
    """Embeds for categories, see `EmbedderAccess`.

    Args:
        find: gives the embedder in force, None where there is none.
        environ: where the address of a provider is looked up.
    """

    def __init__(self, find: Callable[[], Embedder | None], environ: Mapping[str, str]) -> None:
        self._find = find
        self._environ = environ

    @property
    def key(self) -> str | None:
        """See `EmbedderAccess.key`."""
        embedder = self._find()
        return embedder.key if embedder is not None and embedder.is_available else None

    def expect(self, texts: int, /) -> None:
        """See `EmbedderAccess.expect`."""
        embedder = self._find()
        if embedder is not None:
            embedder.expect(texts)

    async def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """See `EmbedderAccess.embed`."""
        embedder = self._find()
        if embedder is None or not embedder.is_available:
            raise ActionError("There is no embedder here.", _HINT, code="not_available")
        if embedder.is_remote:
            await self._permit(embedder)
        try:
            return await embedder.embed_async([clean(text) for text in texts])
        except ModelError as error:
            raise ActionError(error.message, error.hint, code="embedder_failed") from None
        except (EmbedderError, OSError, ImportError) as error:
            raise ActionError(
                f"Nothing was embedded: {text_of(error)}", _HINT, code="embedder_failed"
            ) from None

    async def _permit(self, embedder: Embedder) -> None:
        """Wait for consent to the request. Raises PermissionDeniedError."""
        host = provider_host(embedder.model, None, self._environ) or embedder.model
        call = current_call()
        if call is None:
            raise PermissionDeniedError(
                f"Denied: {embedder.model} runs on {host}, and nobody can be asked outside a call.",
                "Embed within a call, or use a model on this machine.",
            )
        await call.permit(Effect("network", host), f"its texts go to the embedder {embedder.model}")
