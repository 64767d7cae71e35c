"""A fake provider: a real HTTP server on this machine whose "models" misbehave as real ones do.

A study against it goes the whole way, LiteLLM, sockets, streams and retries included, without a key. What it measures
is the study, so everything that it answers counts as simulated.

    with fake_provider.serve() as server:
        study = reyn.Study("practice.sqlite", models={"weak": server.model("weak")})
"""

from __future__ import annotations

from reyn_jupyter.evaluation.models.fake_provider.behaviours import BEHAVIOURS, ProviderSettings
from reyn_jupyter.evaluation.models.fake_provider.server import FakeModel, FakeProvider, serve

__all__ = ["BEHAVIOURS", "FakeModel", "FakeProvider", "ProviderSettings", "serve"]
