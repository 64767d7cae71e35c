"""The runs of a workspace, for the categories of its session: to be read, without secrets.

Invariant: a run file may come from anywhere, so what is read is redacted again.
"""

from __future__ import annotations

import asyncio
from itertools import islice

from reyn_jupyter.runtime.access.session_access import PastCall, PastRun
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.record.run_steps import Call
from reyn_jupyter.runtime.record.run_store import RunNotFoundError, RunStore
from reyn_jupyter.runtime.record.runlog import RunLogError
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.support.secrets import Redactor

_HINT = "%reyn runs lists the runs of this workspace."


class SessionHistory:
    """Reads runs for categories, see `HistoryAccess`."""

    def __init__(self, runs: RunStore, redactor: Redactor) -> None:
        self._runs = runs
        self._redactor = redactor

    async def recent(self, limit: int = 20) -> tuple[PastRun, ...]:
        """See `HistoryAccess.recent`."""
        return await asyncio.to_thread(
            lambda: tuple(self._past(trace) for trace in islice(self._runs.back(), max(0, limit)))
        )

    async def get(self, run: str, /) -> PastRun:
        """See `HistoryAccess.get`."""
        try:
            return await asyncio.to_thread(lambda: self._past(self._runs.load(run)))
        except (RunNotFoundError, RunLogError) as error:
            raise ActionError(self._redactor.text(str(error.args[0])), _HINT, code="run_not_found") from None

    def _past(self, trace: Trace) -> PastRun:
        clean = self._redactor.text
        return PastRun(
            run=trace.run,
            at=trace.started.at,
            kind=trace.started.run_kind,
            prompt=clean(trace.prompt),
            status=trace.status,
            answer=clean(trace.answer),
            model=None if trace.model is None else clean(trace.model),
            tokens=trace.tokens,
            cost=trace.cost,
            seconds=trace.seconds,
            calls=tuple(map(self._call, trace.calls)),
        )

    def _call(self, call: Call) -> PastCall:
        given = call.resolved.arguments if call.resolved.inner is None else call.resolved.inner
        finished = call.finished
        return PastCall(
            action=self._redactor.text(call.label),
            arguments=self._redactor.value(given),
            ok=call.ok,
            output="" if finished is None else self._redactor.text(finished.output),
            error=None if finished is None or finished.error is None else self._redactor.text(finished.error),
        )
