"""Embeddings that LiteLLM reaches: a provider's, or a server of one's own that speaks the same protocol.

Invariants: what comes back is used only when it is one vector a text, all of one length, of finite numbers; every
vector leaves here with length 1. What is sent was redacted. Whatever fails is a `ModelError` in plain words, without
a key in it; what may go through later is tried again here, and nowhere below.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from reyn_jupyter.models.base import ModelError, estimate_tokens
from reyn_jupyter.models.providers import litellm_loader, provider_errors
from reyn_jupyter.models.providers.provider_facts import (
    base_override,
    provider_host,
    provider_name,
    required_key,
    set_key,
)
from reyn_jupyter.models.retry import DEFAULT_POLICY, RetryPolicy, call_with_retries
from reyn_jupyter.search.embedders.embedder import Embedder, EmbeddingUsage
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.text import for_models

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from reyn_jupyter.search.embedders.embedder import Wait

    Floats = NDArray[np.float32]

BATCH = 64  # texts a request
LONGEST = 8_000  # characters of a text that are sent


class _Zero(int):
    """No further attempts. A plain 0 counts as "not given" there, and is replaced by two attempts behind our back."""

    def __bool__(self) -> bool:
        return True


def _alone(work: Coroutine[Any, Any, Floats]) -> Floats:
    return asyncio.run(work)


class HostedEmbedder(Embedder):
    """One embedding model of a provider.

    Args:
        model: a LiteLLM embedding model string, as "openai/text-embedding-3-small".
        wait: runs a coroutine to its end for a thread that waits (on an engine's loop, in a session); a loop of its own
            when None.
        redact: takes secrets out of a text before it is sent.
        environ: where keys and addresses are looked up.
        timeout: seconds for one request.
        policy: how often a request is repeated, and after which waits.

    Raises:
        ModelError: kind "auth" when the key is missing; it names the variable.

    Example:
        embedder = HostedEmbedder("openai/text-embedding-3-small")
        embedder.embed(["read a file"]).shape     # (1, 1536)
    """

    is_remote = True
    batch = 21  # one request of 64 texts, three an action, so that what was paid for is kept
    spent: EmbeddingUsage

    def __init__(
        self,
        model: str,
        *,
        wait: Wait | None = None,
        redact: Callable[[str], str] = str,
        environ: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        policy: RetryPolicy = DEFAULT_POLICY,
    ) -> None:
        super().__init__(model)
        self.spent = EmbeddingUsage()
        self._wait = wait or _alone
        self._redact = redact
        self._environ = os.environ if environ is None else environ
        self._timeout = timeout
        self._policy = policy
        self._counting = threading.Lock()
        self._base = base_override(model, self._environ)
        host = provider_host(model, None, self._environ) if self._base else None
        # Another server than the provider's own may give other vectors.
        self.key = f"litellm:{model}" + (f"@{host}" if host else "")
        key = missing_key(model, self._environ)
        if key is not None:
            raise provider_errors.missing_key(model, key)

    @classmethod
    def create(
        cls, model: str, wait: Wait | None, redact: Callable[[str], str], environ: Mapping[str, str] | None
    ) -> HostedEmbedder:
        """Return the embedder of a provider's model. Raises ModelError as the constructor does."""
        return cls(model, wait=wait, redact=redact, environ=environ)

    @classmethod
    def problem(cls, name: str, model: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
        """Return what is wrong with the model string or lacks in the environment, and what to do."""
        if provider_name(model) is None and not model.startswith("text-embedding-"):
            line = reyn_line("config", f"embedding.classes.{name}", "openai/text-embedding-3-small")
            hint = f"Write it as provider/model: {line}"
            return f"has the model {model!r}, which names no provider", hint
        variable = missing_key(model, environ)
        if variable is not None:
            hint = f"Set {variable} in the environment that starts the kernel, or use the class local-mini."
            return f"needs a key for {model}, and {variable} is not set", hint
        return None

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return one row of length 1 for each text. Raises ModelError."""
        return self._wait(self.embed_async(texts))

    async def embed_async(self, texts: Sequence[str]) -> Floats:
        """Return the same, awaited; cancelling it ends the request that is under way."""
        import numpy as np

        litellm = litellm_loader.loaded_module() or await asyncio.to_thread(litellm_loader.load)
        rows: list[Floats] = []
        for start in range(0, len(texts), BATCH):
            batch = [self._redact(text[:LONGEST]) or " " for text in texts[start : start + BATCH]]
            rows.append(await call_with_retries(partial(self._request, litellm, batch), self._policy))
        return np.vstack(rows) if rows else np.empty((0, self.dimension or 0), np.float32)

    async def _request(self, litellm: Any, texts: list[str]) -> Floats:
        try:
            async with asyncio.timeout(self._timeout):
                answer = await litellm.aembedding(**self._arguments(texts))
        except TimeoutError:
            failure = provider_errors.timed_out(self.model, self._timeout)
        except Exception as error:  # noqa: BLE001 - LiteLLM raises whatever its clients do
            failure = _without_advice(provider_errors.explain(error, self.model, None, self._environ))
        else:
            found = self._vectors(answer, len(texts))
            self._count(litellm, answer, texts)
            return found
        # Raised out here, or the provider's own exception, which may quote the key, would travel along.
        raise failure

    def _arguments(self, texts: list[str]) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self.model,
            "input": texts,
            "encoding_format": "float",
            "drop_params": True,
            "num_retries": 0,
            "max_retries": _Zero(),
            "timeout": self._timeout,
        }
        if self._base is not None:
            arguments["api_base"] = self._base
        if required_key(self.model) is not None:
            name = set_key(self.model, self._environ)
            # Clients insist on some key, where a server of one's own mostly asks for none.
            arguments["api_key"] = self._environ[name] if name is not None else "no-key"
        return arguments

    def _vectors(self, answer: Any, count: int) -> Floats:
        import numpy as np

        data = getattr(answer, "data", None)
        if not isinstance(data, list) or len(data) != count:
            given = len(data) if isinstance(data, list) else "no list of"
            raise self._wrong(f"{given} vectors came back for {count} texts")
        ordered = sorted(data, key=lambda item: int(_field(item, "index") or 0))
        if [_field(item, "index") for item in ordered] not in ([None] * count, list(range(count))):
            raise self._wrong("the vectors do not say which text each belongs to")
        try:
            found = np.array([_field(item, "embedding") for item in ordered], np.float32)
        except (TypeError, ValueError):
            raise self._wrong("the vectors are not lists of numbers of one length") from None
        if found.ndim != 2 or not found.shape[1] or not np.isfinite(found).all():
            raise self._wrong("the vectors are not lists of finite numbers")
        if self.dimension not in (None, found.shape[1]):
            raise self._wrong(f"a vector has {found.shape[1]} numbers, those before had {self.dimension}")
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not lengths.all() or not np.isfinite(lengths).all():
            raise self._wrong("a vector is all zeros, or of numbers that are too large")
        self.dimension = found.shape[1]
        return np.asarray(found / lengths, np.float32)

    def _wrong(self, why: str) -> ModelError:
        return ModelError(
            "stream",
            f"The embeddings of {self.model} cannot be used: {why}.",
            "Look whether it is an embedding model, and whether its address ends where the provider says.",
        )

    def _count(self, litellm: Any, answer: Any, texts: list[str]) -> None:
        usage = getattr(answer, "usage", None)
        tokens = getattr(usage, "prompt_tokens", None) or sum(map(estimate_tokens, texts))
        cost: float | None
        try:
            cost = float(litellm.completion_cost(answer, model=self.model, call_type="aembedding"))
        except Exception:  # noqa: BLE001 - no price is known
            cost = None
        with self._counting:
            before = self.spent
            total = None if cost is None or before.cost is None else before.cost + cost
            self.spent = EmbeddingUsage(before.requests + 1, before.tokens + int(tokens), total)


def missing_key(model: str, environ: Mapping[str, str]) -> str | None:
    """Return the variable that a model's key should stand in, where it is needed and not set."""
    variable = required_key(model)
    if variable is None or set_key(model, environ) is not None or base_override(model, environ) is not None:
        return None
    return variable


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def _without_advice(failure: ModelError) -> ModelError:
    """Return a failure without what a provider's words tell a person to type: in a note of ours they would pass for
    ours."""
    return ModelError(
        failure.kind,
        for_models(failure.message),
        failure.hint,
        retryable=failure.retryable,
        retry_after=failure.retry_after,
    )
