"""The calls of MCP clients: each is a run of kind "client", by the very wrappers and the Invoker that a model has.

Invariants: a client is no person. What asks for consent asks the person in the notebook, for so many seconds, and is
denied after that; no answer of a client is ever one of theirs. Of all clients together there are never more calls under
way than `ConnectedClients` takes. A call that is cancelled, by its client or by the end of the server, leaves a whole
record, and its question is taken back.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from cachetools import LRUCache

from reyn_jupyter.backends.serving.connected_clients import MOST_CLIENTS, ConnectedClients
from reyn_jupyter.outputs.convert import to_json
from reyn_jupyter.runtime.large_values import look_through
from reyn_jupyter.runtime.run import Outcome
from reyn_jupyter.sessions.assembly import Parts
from reyn_jupyter.sessions.runs import background_run, run_lifecycle
from reyn_jupyter.sessions.serving.client_consent import ask_person
from reyn_jupyter.sessions.serving.client_progress import ClientProgress, Send
from reyn_jupyter.support.text import shorten

_MOST_NOTES = 8  # cancelled calls of one client that its next answer names
_CLEAN_UP = 5.0  # seconds that a cancelled call may take to end
_MOST_RESULTS = 1_000  # that are listed as resources
_LONGEST = 120  # characters of a run's title


class ClientCalls:
    """Runs calls for clients. All of it belongs on the engine's loop.

    Args:
        parts: the session's.
        clients: counts them, and bounds how many run.
        wait: seconds that a question stays open.
        changed: told after a call that may have changed what there is to read.
    """

    def __init__(
        self, parts: Parts, clients: ConnectedClients, wait: float, changed: Callable[[], None]
    ) -> None:
        self._parts = parts
        self._clients = clients
        self._wait = wait
        self._changed = changed
        # What calls of clients stored lately → the action that it is of.
        self.results: LRUCache[str, str] = LRUCache(_MOST_RESULTS)
        # What became of a client's cancelled calls, which get no answer of their own: its next answer says it.
        self._cancelled: LRUCache[str, list[str]] = LRUCache(MOST_CLIENTS)

    async def call(
        self, key: str, client: str, tool: str, arguments: dict[str, Any], send: Send, what: str = ""
    ) -> Outcome:
        """Make one call in a task of its own, which is cancelled once where this is cancelled.

        Args:
            key, client: the client, as `ConnectedClients` knows it and as it calls itself.
            tool, arguments: as they came.
            send: takes the call's progress.
            what: the title of its run; the tool and its action where there is none.

        Raises:
            TooManyCallsError: it did not begin.
        """
        with self._clients.call(key) as end:
            title = shorten(" ".join((what or _title(tool, arguments)).split()), _LONGEST)
            task = asyncio.create_task(self._run(key, client, tool, arguments, send, title))
            try:
                outcome = await asyncio.shield(task)
            except asyncio.CancelledError:
                task.cancel()
                await _ended(task)
                raise
            end(outcome.ok)
            return outcome

    def taken_notes(self, key: str) -> list[str]:
        """Return what became of a client's calls that were cancelled since its last answer."""
        return self._cancelled.pop(key, [])

    async def _run(
        self, key: str, client: str, tool: str, arguments: dict[str, Any], send: Send, title: str
    ) -> Outcome:
        progress = ClientProgress(send, f"{title} is under way")
        sender = asyncio.create_task(progress.run())
        try:
            outcome, repeatable = await self._recorded(key, client, tool, arguments, title, progress)
        finally:
            sender.cancel()
        await progress.flush()
        if outcome.blob is not None:
            self.results[outcome.blob] = outcome.name or tool
        if outcome.blob is not None or not repeatable:
            self._changed()
        return outcome

    async def _recorded(
        self,
        key: str,
        client: str,
        tool: str,
        arguments: dict[str, Any],
        title: str,
        progress: ClientProgress,
    ) -> tuple[Outcome, bool]:
        """Make one call once there is a place for it; return its outcome, and whether it only reads."""
        parts = self._parts
        async with self._clients.places:
            ask = ask_person(parts.questions, self._wait, progress)
            run = await run_lifecycle.by_client(parts, client, title, ask)
            # Of all clients together: a name, a version and a connection are the client's to choose.
            run.origins = parts.client_origins
            run.log.listener = progress.hear
            try:
                planned = await look_through(
                    arguments,
                    lambda: parts.wrappers.plan("1", tool, json.dumps(to_json(arguments)), run, 1),
                )
                outcome = await planned.run()
            except asyncio.CancelledError:
                error = (
                    f"The client cancelled the call, or it was ended. Its last report: {progress.message}."
                )
                run_lifecycle.finish(parts, run, "cancelled", error=error)
                notes = self._cancelled.setdefault(key, [])
                notes[:] = [*notes, f"{title}: {error}"][-_MOST_NOTES:]
                raise
            except Exception as error:
                run_lifecycle.finish(parts, run, "error", error=f"The call broke: {type(error).__name__}.")
                raise
            finally:
                for watcher in background_run.WATCHERS:
                    watcher(run.id, True)
            answer = outcome.text if outcome.ok else ""
            run_lifecycle.finish(
                parts, run, "ok" if outcome.ok else "error", answer=answer, error=outcome.error
            )
        return outcome, planned.repeatable


def _title(tool: str, arguments: dict[str, Any]) -> str:
    action = arguments.get("action_name")
    return f"{tool} {action}" if isinstance(action, str) else tool


async def _ended(task: asyncio.Task[Any]) -> None:
    """Wait until a cancelled task has cleaned up, within bounds, though the caller is cancelled itself."""
    import anyio

    with anyio.CancelScope(shield=True):
        await asyncio.wait([task], timeout=_CLEAN_UP)
