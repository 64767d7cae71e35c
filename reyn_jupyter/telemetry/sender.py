"""Sends runs to a collector when they end.

Invariants: a turn never waits for it and never fails by it: `send` puts the run into a row of bounded length, and a
thread of its own, which lives while there is work, makes the spans and sends them. What cannot be sent is lost, and
said in one sentence. Without the setting nothing is imported and no thread begins.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reyn_jupyter.config.settings import Otel
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.support.import_path import package_imports
from reyn_jupyter.support.network.hosts import HostError
from reyn_jupyter.support.text import count
from reyn_jupyter.telemetry.collector import Collector, collector_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from reyn_jupyter.telemetry.exporter import CollectorExporter

MOST_WAITING = 100  # runs
TOGETHER = 10  # runs in one request
FLUSH_SECONDS = 2.0  # that the end of a session waits for what is not sent yet


@dataclass(frozen=True)
class _Waiting:
    """A run that is to be sent, and what held when it ended."""

    trace: Trace
    settings: Otel


class RunSender:
    """Sends the runs of one session.

    Args:
        redact: takes secrets out of a text; called from a thread.
        environ: what OTEL_EXPORTER_OTLP_* are read from where the setting says "environment".

    Attributes:
        sent, lost: runs that a collector took, and those that none did.
        reason: why the last ones were lost, None where the last ones were not.
    """

    def __init__(self, redact: Callable[[str], str], environ: Mapping[str, str]) -> None:
        self.sent = self.lost = 0
        self.reason: str | None = None
        self._redact = redact
        self._environ = environ
        self._row: deque[_Waiting] = deque()
        self._lock = threading.Lock()
        self._work: Future[None] | None = None  # of the thread, while there is one

    def send(self, trace: Trace, settings: Otel) -> None:
        """Let a run be sent that is over; return at once. Nothing where the setting names no collector."""
        if settings.endpoint is None:
            return
        with self._lock:
            if len(self._row) >= MOST_WAITING:
                self._lose(1, f"{MOST_WAITING} runs wait for it already")
                return
            self._row.append(_Waiting(trace, settings))
            if self._work is None:
                self._work = Future()
                try:
                    threading.Thread(target=self._serve, args=(self._work,), name="otel", daemon=True).start()
                except RuntimeError:  # the interpreter exits
                    self._work = None

    async def flush(self) -> None:
        """Wait until all is sent, or given up, and no longer than `FLUSH_SECONDS`."""
        work = self._work
        if work is not None:
            await asyncio.wait({asyncio.wrap_future(work)}, timeout=FLUSH_SECONDS)

    @property
    def is_idle(self) -> bool:
        """True if nothing is being sent."""
        return self._work is None

    def state(self, settings: Otel) -> str:
        """Return what is done with runs, for people: where they go, whether that is this machine, how many went."""
        if settings.endpoint is None:
            return "off: no run is sent anywhere"
        try:
            collector = collector_of(settings.endpoint, self._environ)
        except HostError as error:
            return f"on, but {error}"
        where = "on this machine" if collector.is_here else "which leaves this machine"
        what = "with what was said" if settings.content else "without what was said"
        done = f"{count(self.sent, 'run')} sent" + (f", {self.lost} lost" if self.lost else "")
        return f"each run is sent to {collector.shown}, {where}, {what}; {done}"

    @property
    def problems(self) -> tuple[str, ...]:
        """Return why the last runs were not sent, in a sentence; nothing where they were."""
        if self.reason is None:
            return ()
        lost = f"{count(self.lost, 'run')} lost; %reyn export writes them to a file"
        return (f"runs are not sent as spans (otel.endpoint): {self.reason}; {lost}",)

    def _lose(self, runs: int, reason: str) -> None:
        self.lost += runs
        self.reason = reason

    def _serve(self, work: Future[None]) -> None:
        """Send what waits until nothing does."""
        package_imports()
        exporters: dict[Collector, CollectorExporter] = {}
        try:
            while waiting := self._next():
                self._send(waiting, exporters)
            for exporter in exporters.values():
                exporter.close()
        finally:
            work.set_result(None)

    def _next(self) -> list[_Waiting]:
        """Return the runs that go together: the next few of the same settings. With none, the thread is over."""
        with self._lock:
            found: list[_Waiting] = []
            while self._row and len(found) < TOGETHER:
                if found and self._row[0].settings != found[0].settings:
                    break
                found.append(self._row.popleft())
            if not found:
                self._work = None
            return found

    def _send(self, waiting: list[_Waiting], exporters: dict[Collector, CollectorExporter]) -> None:
        settings = waiting[0].settings
        assert settings.endpoint is not None
        try:
            from reyn_jupyter.telemetry.exporter import CollectorExporter

            collector = collector_of(settings.endpoint, self._environ)
            exporter = exporters.get(collector)
            if exporter is None:
                exporter = exporters[collector] = CollectorExporter(collector)
            problem = exporter.send(self._spans(waiting))
            reason = None if problem is None else f"{collector.shown}: {problem}"
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the session goes on
            reason = _reason(error)
        with self._lock:
            if reason is None:
                self.sent += len(waiting)
                self.reason = None
            else:
                self._lose(len(waiting), self._redact(reason))

    def _spans(self, waiting: list[_Waiting]) -> list[ReadableSpan]:
        from reyn_jupyter.telemetry.spans import spans_of

        return [
            span
            for each in waiting
            for span in spans_of(each.trace, content=each.settings.content, redact=self._redact)
        ]


def _reason(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed: pip install 'reyn-jupyter[otel]'"
    return str(error).rstrip(".") if isinstance(error, HostError) else type(error).__name__
