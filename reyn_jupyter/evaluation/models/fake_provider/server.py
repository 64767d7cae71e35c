"""The fake provider's HTTP server, and the models that reach it through LiteLLM.

Invariants: it listens on 127.0.0.1 alone, and no request leaves the machine; equal requests are counted, so that each
is a sample of its own; its models are never "real".
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from reyn_jupyter.evaluation.models.fake_provider.behaviours import (
    BEHAVIOURS,
    ProviderReply,
    ProviderSettings,
    ReceivedRequest,
)
from reyn_jupyter.evaluation.models.fake_provider.handler import Listener
from reyn_jupyter.models.base import Request
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel

if TYPE_CHECKING:
    from types import TracebackType

HOST = "127.0.0.1"


class FakeModel(LiteLLMModel):
    """A model of the fake provider: reached like any other, and marked as simulated wherever it is shown."""

    source = "simulated"

    @property
    def host(self) -> str:
        """A name of its own on this machine: each model plays a provider, and one that fails slows no other down."""
        name, here = self.label.rpartition("/")[2], urlsplit(self._api_base or "")
        return f"{name}.localhost:{here.port}"

    @property
    def real(self) -> bool:
        return False


class FakeProvider:
    """A provider that speaks chat completions, streamed and whole. Use it in a `with` statement, or close it.

    Args:
        port: where to listen; 0 takes a free one.
        manners: what its models share, the weak model behind them above all.

    Raises:
        OSError: the port is taken.

    Example:
        >>> with FakeProvider() as server:
        ...     server.url.startswith("http://127.0.0.1:")
        True
    """

    def __init__(self, port: int = 0, manners: ProviderSettings | None = None) -> None:
        self._manners = manners or ProviderSettings()
        self._lock = threading.Lock()
        self._asked: Counter[str] = Counter()
        self._seen: Counter[str] = Counter()
        self._closing = threading.Event()
        self._server = Listener((HOST, port), self)
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.02},
            name="practice-provider",
            daemon=True,
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The base address for clients; it ends in ``/v1``."""
        return f"http://{HOST}:{self._server.server_address[1]}/v1"

    @property
    def models(self) -> tuple[str, ...]:
        """The names of its models."""
        return tuple(BEHAVIOURS)

    @property
    def asked(self) -> dict[str, int]:
        """Requests so far, by model."""
        with self._lock:
            return dict(self._asked)

    def model(self, name: str) -> FakeModel:
        """Return one of its models, for `Study(models=…)` or `Session(model=…)`.

        Raises:
            ValueError: there is no such model; the message names those that there are.
        """
        if name not in BEHAVIOURS:
            raise ValueError(f"the fake provider has no model {name!r}; it has {', '.join(BEHAVIOURS)}")
        return FakeModel(f"openai/{name}", tier="light", api_base=self.url, environ={})

    def reply(self, request: Request) -> ProviderReply:
        """Return what the model that a request names answers to it; equal requests count up."""
        behaviour = BEHAVIOURS.get(request.model)
        if behaviour is None:
            known = ", ".join(BEHAVIOURS)
            return ProviderReply(
                status=404, message=f"The model {request.model} does not exist. There is {known}."
            )
        with self._lock:
            self._asked[request.model] += 1
            number, repeat = self._asked[request.model], self._seen[request.key]
            self._seen[request.key] += 1
        return behaviour(ReceivedRequest(replace(request, repeat=repeat), number, self._manners))

    def wait(self, seconds: float) -> None:
        """Let time pass, but not beyond the end of the server."""
        self._closing.wait(seconds)

    def close(self) -> None:
        """Stop listening; answers on their way are given up. Closing twice is fine."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve(port: int = 0, manners: ProviderSettings | None = None) -> FakeProvider:
    """Start a fake provider; see `FakeProvider`."""
    return FakeProvider(port, manners)
