"""The embedded model that needs no key: rules and retrieval over what the request shows, nothing else.

Invariant: `answer` is a pure function of a request's JSON, with the standard library alone;
``python -m reyn_jupyter.models.offline`` is the same function as a process, from standard input to output.
"""

from __future__ import annotations

from reyn_jupyter.models.offline.model import OfflineModel, answer

__all__ = ["OfflineModel", "answer"]
