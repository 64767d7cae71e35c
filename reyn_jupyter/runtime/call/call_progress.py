"""The progress of a call: what its handler reports on the way, to whoever looks and to the record.

Invariants: a report costs the handler next to nothing, however many there are and from whichever thread; listeners
hear of at most ten a second; the record gets the first and the last, and between them fewer the longer a call takes.
What leaves here is redacted, on one line and short. After the call is over nothing more is said.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from contextlib import suppress

from reyn_jupyter.runtime.record.events import ActionProgressed
from reyn_jupyter.runtime.record.runlog import RunLog
from reyn_jupyter.support.encoding import clean
from reyn_jupyter.support.secrets import Redactor
from reyn_jupyter.support.text import shorten

INTERVAL = 0.1  # seconds between two words to a listener
FIRST_GAP = 1.0  # seconds between the first two events in the record; each further gap is twice as long
LONGEST = 200  # characters of a message
MOST_READ = (
    1 << 16
)  # characters of a message that secrets are looked for in; of a longer one only its length is said


class CallProgress:
    """Takes the reports of one call. Made on the loop that the call runs on.

    Args:
        call: the call's id.
        log: the run's log, and by it whoever looks.
        redactor: takes secrets out of messages.

    Attributes:
        partial: the last partial result that was reported; None where there was none.
    """

    def __init__(self, call: str, log: RunLog, redactor: Redactor) -> None:
        self.partial: object = None
        self._call = call
        self._log = log
        self._redactor = redactor
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._message: object = ""
        self._done: float | None = None
        self._total: float | None = None
        self._due = (
            False  # whether the loop was asked to look; guarded by the lock, as is all that is reported
        )
        self._over = False
        self._unrecorded = False
        self._said = self._recorded = float("-inf")
        self._gap = FIRST_GAP
        self._timer: asyncio.TimerHandle | None = None

    def report(
        self,
        message: str = "",
        done: float | None = None,
        total: float | None = None,
        partial: object = None,
    ) -> None:
        """Take a report, see `ToolContext.report`; from any thread."""
        with self._lock:
            if self._over:
                return
            self._message = message or self._message
            self._done = self._done if done is None else done
            self._total = self._total if total is None else total
            self.partial = self.partial if partial is None else partial
            if self._due:
                return
            self._due = True
        with suppress(RuntimeError):  # the loop is gone, and with it whoever looked
            self._loop.call_soon_threadsafe(self._look)

    def say(self, message: str) -> None:
        """Report words of our own in place of the handler's; "" takes them back."""
        with self._lock:
            self._message = ""
        self.report(message)

    def end(self) -> None:
        """End it: the last report goes into the record, and nothing after it. On the call's loop."""
        with self._lock:
            self._over = True
            pending, self._due = self._due, False
        if self._timer is not None:
            self._timer.cancel()
        if pending or self._unrecorded:
            self._log.append(self._event())

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        if self._over:
            return
        if now - self._said < INTERVAL:
            self._timer = self._loop.call_at(self._said + INTERVAL, self._look)
            return
        with self._lock:
            self._due = False
        self._said = now
        event = self._event()
        if now - self._recorded < self._gap:
            self._unrecorded = True
            self._log.tell(event)
            return
        if self._recorded > float("-inf"):
            self._gap *= 2
        self._recorded, self._unrecorded = now, False
        self._log.append(event)

    def _event(self) -> ActionProgressed:
        with self._lock:
            message, done, total = self._message, self._done, self._total
        return ActionProgressed(
            call=self._call,
            at=time.time(),
            message=self._short(message),
            done=_number(done),
            total=_number(total),
        )

    def _short(self, message: object) -> str:
        if not issubclass(type(message), str):
            return ""
        text = str.__str__(message)
        if len(text) > MOST_READ:
            return f"(a message of {len(text):,} characters)"
        return shorten(" ".join(self._redactor.text(clean(text)).split()), LONGEST)


def _number(value: object) -> float | None:
    """Return a finite number of at least 0; None for anything else that a handler may report."""
    if type(value) not in (int, float):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
