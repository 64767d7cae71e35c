"""LiteLLM, imported once, on first use, and quietened.

It stays off the network apart from the calls themselves: no price list, no tokenizer and no header table is
fetched, no ``.env`` of the working folder is read, no callback is registered and nothing is logged. Every HTTP client
that it makes counts what it sends (`wire`).
"""

from __future__ import annotations

import os
import threading
from typing import Any

from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.providers import wire

# What LiteLLM reads on import or on first use: without these it asks GitHub for prices and headers, and in an
# interactive process reads `.env` in the working folder, by which a cloned workspace could redirect requests.
_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",
}

_loading = threading.Lock()
_loaded: Any = None


def loaded_module() -> Any:
    """The LiteLLM module when it has been imported here, else None."""
    return _loaded


def load() -> Any:
    """The LiteLLM module, imported and quietened on the first call. Safe from any thread; takes seconds once.

    Raises ModelError, kind "configuration", when it cannot be imported.
    """
    global _loaded
    with _loading:
        if _loaded is None:
            for name, value in _ENVIRONMENT.items():
                os.environ.setdefault(name, value)
            try:
                import litellm
            except ImportError as error:
                raise ModelError(
                    "configuration",
                    f"LiteLLM cannot be imported: {error}.",
                    "Install it again (pip install litellm mcp), or use the offline model: -m offline.",
                ) from error
            _quieten(litellm)
            _count_clients(litellm)
            _loaded = litellm
    return _loaded


def _quieten(litellm: Any) -> None:
    if "LITELLM_LOG" not in os.environ:
        # Its warnings quote requests and errors to stderr, past the redaction of this package.
        import logging

        logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.disable_hf_tokenizer_download = True
    litellm.disable_streaming_logging = True
    # Providers that want `tools` whenever the history holds a call get a placeholder in a closing call.
    litellm.modify_params = True


def _count_clients(litellm: Any) -> None:
    """Let every HTTP client count what it sends: LiteLLM keeps them all in one cache, also those of other libraries."""
    import httpx
    from litellm.caching.llm_caching_handler import LLMClientCache

    class CountedClients(LLMClientCache):  # type: ignore[misc]
        def set_cache(self, key: str, value: Any, *args: Any, **options: Any) -> Any:
            client = getattr(value, "_client", None)
            if isinstance(client, httpx.AsyncClient):
                wire.count_client(client)
            return super().set_cache(key, value, *args, **options)

    # Of the two transports that LiteLLM has, only httpx's own says when a body leaves.
    litellm.disable_aiohttp_transport = True
    litellm.in_memory_llm_clients_cache = CountedClients()
