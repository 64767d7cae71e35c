"""The SDK's exporter over OTLP/HTTP, held to one address and to what an answer may cost.

Invariants: what is sent goes to the collector and nowhere else: no redirect is followed, and on the way to this machine
no proxy is asked. Of an answer the status is read and nothing more, so that no answer can fill the memory. Nothing is
written to the person's screen: `send` returns why it failed. Importing this module imports OpenTelemetry.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from reyn_jupyter.telemetry.collector import Collector


class CollectorExporter:
    """Sends spans to one collector, within the time that OTEL_EXPORTER_OTLP_TIMEOUT says (10 s without it).

    Attributes:
        collector: where they go.
    """

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._http = _OneAddress(trusts_environment=not collector.is_here)
        with _quiet():
            self._exporter = trace_exporter.OTLPSpanExporter(endpoint=collector.url, session=self._http)

    def send(self, spans: list[ReadableSpan]) -> str | None:
        """Send spans, with a few repeats where that may help; return why they did not arrive, None where they did."""
        with _quiet():
            sent = self._exporter.export(spans)
        return None if sent is SpanExportResult.SUCCESS else self._http.problem or "they are too many at once"

    def close(self) -> None:
        with _quiet():
            self._exporter.shutdown()  # type: ignore[no-untyped-call]


class _OneAddress(requests.Session):
    """Requests to one address.

    Attributes:
        problem: why the last one failed, None where it did not.
    """

    def __init__(self, *, trusts_environment: bool) -> None:
        super().__init__()
        self.trust_env = trusts_environment  # proxies, .netrc, bundles of certificates
        self.problem: str | None = None

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        kwargs.update(stream=True, allow_redirects=False)
        try:
            response = super().request(*args, **kwargs)
        except requests.Timeout:
            self.problem = "it does not answer in time"
            raise
        except requests.ConnectionError:
            self.problem = "it cannot be reached"
            raise
        except (requests.RequestException, ValueError, OSError) as error:
            self.problem = f"it cannot be asked ({type(error).__name__})"
            raise
        response.close()
        if 300 <= response.status_code < 400:
            self.problem = "it redirects to another address; name that one"
            raise requests.TooManyRedirects(self.problem)
        self.problem = None if response.ok else f"it answers with the status {response.status_code}"
        return response


_silent = threading.local()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep to itself what the exporter logs in this block: a kernel would write it below the cell that runs."""
    _silent.now = True
    try:
        yield
    finally:
        _silent.now = False


logging.getLogger(trace_exporter.__name__).addFilter(lambda record: not getattr(_silent, "now", False))
