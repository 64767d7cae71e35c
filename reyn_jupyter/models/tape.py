"""The file that a recording grows in: one for all recorders of a path, however many conversations run at once.

Invariant: a request and its answer are two whole lines, next to each other, in the order in which answers came; nothing
in which a key is left is written.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from reyn_jupyter.models.recording import KeyDetector, key_left, mend_end, reply_event, request_event
from reyn_jupyter.models.seam import ModelError, Request, Response

if TYPE_CHECKING:
    from pathlib import Path

_OPEN: WeakValueDictionary[Path, Tape] = WeakValueDictionary()
_LAST: deque[Tape] = deque(
    maxlen=8
)  # kept beyond their recorders: one for each trial would read the file again
_OPENING = threading.Lock()


class Tape:
    """Appends to one recording. Get it by `Tape.of`, so that two recorders of a file share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._step = 0
        self._tools: set[bytes] = set()
        self._size = -1

    @classmethod
    def of(cls, path: Path) -> Tape:
        """The tape of a path in this process."""
        with _OPENING:
            resolved = path.resolve()
            tape = _OPEN.get(resolved)
            if tape is None:
                tape = _OPEN[resolved] = cls(path)
            if tape not in _LAST:
                _LAST.append(tape)
            return tape

    def write(
        self,
        request: Request,
        reply: Response | ModelError,
        *,
        last: Request | None,
        conversation: str | None,
        times: tuple[float, float],
        contains_key_shape: KeyDetector,
    ) -> None:
        """Write a request and its answer down.

        Args:
            last: the request before it in its conversation, None for the first.
            conversation: which one it is, None in a file that holds one.
            times: when it was asked and answered.

        Raises:
            ModelError: kind "configuration", when one of the two holds a key.
        """
        with self._lock:
            if self._begins_anew():
                last = None
            step, (asked, now) = self._step + 1, times
            requested: dict[str, Any] = {"type": "ModelRequested", "step": step, "at": asked}
            requested |= request_event(request, last, tools_known=request.tools.digest in self._tools)
            if conversation is not None:
                requested["conversation"] = conversation
            replied = {"type": "ModelReplied", "step": step, "at": now, "seconds": now - asked}
            replied |= reply_event(request, reply)
            lines = [json.dumps(event, ensure_ascii=False) for event in (requested, replied)]
            if any(map(contains_key_shape, lines)):
                raise key_left(f"the request or the answer of step {step}", "It was not recorded.")
            with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write("\n".join(lines) + "\n")
                file.flush()
                self._size = file.tell()
            self._step = step
            self._tools.add(request.tools.digest)

    def _begins_anew(self) -> bool:
        """Whether the file is not as it was left: another one, one that a crash cut short, or none."""
        size = self._path.stat().st_size if self._path.exists() else 0
        if size == self._size:
            return False
        self._path.parent.mkdir(parents=True, exist_ok=True)
        mend_end(self._path)
        self._step = 0
        self._tools.clear()
        return True
