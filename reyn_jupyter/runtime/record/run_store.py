"""The runs of a workspace: `.reyn/runs/<id>.jsonl`, one file a run, named by people with any unique part of the id.

Inner runs lie beside them, as `<id>.inner.jsonl`: they stand under the run whose call made them.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from reyn_jupyter.runtime.engine import publisher
from reyn_jupyter.runtime.record import runlog
from reyn_jupyter.runtime.record.events import Event, InnerEvent, RunStarted
from reyn_jupyter.runtime.record.inner_runs import InnerRunFinder
from reyn_jupyter.runtime.record.runlog import FileSink, RunLog, RunLogError
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.sanitize import printable

SUFFIX = ".jsonl"
INNER_SUFFIX = ".inner.jsonl"
FIRST_LINE = 1 << 20  # bytes
# Ids stand in lines of code that people run: one of another shape could be a line of its own there.
_WHOLE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")


class RunNotFoundError(LookupError):
    """No run, or more than one, is meant by what was given."""


class RunStore:
    """Runs on disk and those of this session.

    Args:
        folder: where run files lie; None keeps them in memory alone.
        blobs: the store that traces open their blobs from.

    Attributes:
        problems: a sentence for each run that could not be read when somebody last tried, by its id.
    """

    def __init__(self, folder: PlainFolder | None, blobs: Any) -> None:
        self.problems: dict[str, str] = {}
        self._folder = folder
        self._blobs = blobs
        self._own: dict[str, RunLog | None] = {}
        self._inner: dict[str, RunLog | None] = {}
        self._inner_of: dict[str, list[str]] = {}  # runs under way and the inner runs that were begun in them

    def open(self, run: str) -> RunLog:
        """Open the log of a new run, which whoever looks hears of; its events stay at hand while it goes on."""
        sink = FileSink(self._folder, run + SUFFIX) if self._folder is not None else None
        log = RunLog(sink, publisher())
        self._own[run] = log
        return log

    def open_inner(self, run: str, outermost: str, listener: RunLog) -> RunLog:
        """Open the log of an inner run.

        Args:
            run: its id.
            outermost: the run at the top, until whose end the events of this one stay at hand.
            listener: the log of that run; who hears of its events hears of these too, as `InnerEvent`.
        """
        sink = FileSink(self._folder, run + INNER_SUFFIX) if self._folder is not None else None
        tell = listener.listener
        log = RunLog(sink, None if tell is None else lambda event: tell(InnerEvent(run, event)))
        self._inner[run] = log
        self._inner_of.setdefault(outermost, []).append(run)
        return log

    def close(self, run: str, log: RunLog) -> None:
        """Close the log of a run that is over; where its file has all of it, its events need no memory any more."""
        log.close()
        if self._folder is not None and log.problem is None:
            self._own[run] = None
        for inner in self._inner_of.pop(run, ()):
            kept = self._inner[inner]
            if self._folder is not None and kept is not None and kept.problem is None:
                self._inner[inner] = None

    def trace_of(self, events: Iterable[Event]) -> Trace:
        """Return the trace of events whose inner runs lie here."""
        return Trace.from_events(events, self._blobs, InnerRunFinder(self._read_inner))

    def is_own(self, run: str) -> bool:
        """Return whether this session began a run, by its whole id."""
        return run in self._own or run in self._inner

    def holds(self, run: str) -> bool:
        """Return whether a run, by its whole id, can be loaded."""
        if run in self._own or run in self._inner:
            return True
        folder = self._folder
        return folder is not None and any(folder.is_regular(run + end) for end in (SUFFIX, INNER_SUFFIX))

    def ids(self) -> list[str]:
        """Return all run ids, oldest first, those of inner runs left out."""
        return self._names()[0]

    def inner_ids(self) -> list[str]:
        """Return the ids of all inner runs, oldest first."""
        return self._names()[1]

    def _names(self) -> tuple[list[str], list[str]]:
        found, others = self._folder.entries() if self._folder is not None else ([], [])
        for name in others:
            if name.endswith(SUFFIX):
                run = name.removesuffix(INNER_SUFFIX).removesuffix(SUFFIX)
                self.problems[run] = f"{name} is no regular file, so it is not read"
        for name in [name for name in found if name.endswith(SUFFIX) and _ID.fullmatch(name) is None]:
            found.remove(name)
            self.problems[name] = f"{printable(name)} is no name of a run, so it is not read"
        inner = {name.removesuffix(INNER_SUFFIX) for name in found if name.endswith(INNER_SUFFIX)}
        runs = {name.removesuffix(SUFFIX) for name in found if name.endswith(SUFFIX)}
        runs -= {f"{run}{INNER_SUFFIX.removesuffix(SUFFIX)}" for run in inner}
        return sorted(runs | set(self._own)), sorted(inner | set(self._inner))

    def latest_first(self) -> list[str]:
        """Return all run ids, this session's before those of other kernels on the workspace, each newest first."""
        others = [run for run in self.ids() if run not in self._own]
        return [*sorted(self._own, reverse=True), *reversed(others)]

    def find(self, wanted: str | int | None = None) -> str:
        """Return the id of the run that is meant.

        Args:
            wanted: None or "last" for the newest, this session's before others'; an index into `ids`; or any unique
                part of an id, of an inner run too where no other has it.

        Raises:
            RunNotFoundError: says what there is instead.
        """
        if isinstance(wanted, str) and _WHOLE_ID.fullmatch(wanted) and self.holds(wanted):
            return wanted  # without a look at the names of all others
        ids = self.ids()
        if not ids:
            raise RunNotFoundError('there is no run yet. Try: %reyn ask "…"')
        if wanted is None or wanted == "last":
            return self.latest_first()[0]
        if isinstance(wanted, int) or (wanted.lstrip("-").isdecimal() and len(wanted) < 5):
            try:
                return ids[int(wanted)]
            except IndexError:
                raise RunNotFoundError(f"there is no run {wanted}: there are {len(ids)}") from None
        matches = [run for run in ids if run == wanted] or [run for run in ids if wanted in run]
        if not matches:
            inner = self.inner_ids()
            matches = [run for run in inner if run == wanted] or [run for run in inner if wanted in run]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise RunNotFoundError(f"{wanted!r} is in the ids of {len(matches)} runs; give more of it")
        raise RunNotFoundError(
            f"no run has {wanted!r} in its id; the last ones: {', '.join(r[-12:] for r in ids[-3:])}"
        )

    def load(self, wanted: str | int | None = None) -> Trace:
        """Read the trace of a run; the newest is the newest that can be read. Raises RunNotFoundError, RunLogError."""
        run = self.find(wanted)
        if wanted is None or wanted == "last":
            return next(self.back(), None) or self._read(run)
        return self._read(run)

    def orphans(self, runs: Iterable[Trace]) -> Iterator[Trace]:
        """Yield the inner runs that can be read and stand under none of these runs, oldest first."""
        under = {inner.run for run in runs for inner in run.all_inner}
        for run in self.inner_ids():
            if run not in under:
                with suppress(RunLogError):
                    yield self._read_inner(run)

    def _read(self, run: str) -> Trace:
        if run in self._own or self._folder is None or self._folder.is_regular(run + SUFFIX):
            return self._read_file(run, self._own.get(run), SUFFIX)
        return self._read_inner(run)

    def _read_inner(self, run: str) -> Trace:
        return self._read_file(run, self._inner.get(run), INNER_SUFFIX)

    def _read_file(self, run: str, log: RunLog | None, suffix: str) -> Trace:
        if log is not None:
            trace = self.trace_of(log.now)
            return replace(trace, grows=trace.ended is None)
        try:
            if self._folder is None:
                raise FileNotFoundError(errno.ENOENT, "it is not there")
            content = self._folder.read(run + suffix, runlog.LARGEST)
            trace = self.trace_of(runlog.events_of(content, run + suffix))
            if _ID.fullmatch(trace.run) is None:
                raise ValueError("the id that it gives itself is none")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self.problems[run] = f"{run}{suffix} cannot be read: {why}"
            raise RunLogError(f"the run {run[-12:]} cannot be read: {why}") from error
        self.problems.pop(run, None)
        return trace

    def started(self, run: str) -> RunStarted | None:
        """Return how a run began, by its whole id, from the first line of its record; None where that says nothing."""
        log = self._own.get(run)
        if log is not None:
            first = next(iter(log.now), None)
        else:
            try:
                line = b"" if self._folder is None else self._folder.first_line(run + SUFFIX, FIRST_LINE)
                first = runlog.decode(line)
            except (OSError, ValueError):  # what pydantic raises is a ValueError too
                return None
        return first if isinstance(first, RunStarted) else None

    def all(self) -> list[Trace]:
        """Return every readable run, oldest first."""
        return list(self._readable(self.ids()))

    def back(self) -> Iterator[Trace]:
        """Yield every readable run in the order of `latest_first`, read one by one."""
        return self._readable(self.latest_first())

    def _readable(self, runs: list[str]) -> Iterator[Trace]:
        for run in runs:
            try:
                trace = self._read(run)
            except RunLogError:
                continue
            yield trace
