"""The runs of a workspace: `.reyn/runs/<id>.jsonl`, one file a run, named by people with any unique part of the id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reyn_jupyter.runtime.engine import publisher
from reyn_jupyter.runtime.record import runlog
from reyn_jupyter.runtime.record.runlog import FileSink, RunLog, RunLogError
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.support.plain_files import PlainFolder

SUFFIX = ".jsonl"


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

    def open(self, run: str) -> RunLog:
        """Open the log of a new run, which whoever looks hears of; its events stay at hand while it goes on."""
        sink = FileSink(self._folder, run + SUFFIX) if self._folder is not None else None
        log = RunLog(sink, publisher())
        self._own[run] = log
        return log

    def close(self, run: str, log: RunLog) -> None:
        """Close the log of a run that is over; where its file has all of it, its events need no memory any more."""
        log.close()
        if self._folder is not None and log.problem is None:
            self._own[run] = None

    def under_way(self, run: str) -> bool:
        """Return whether this session is still writing a run, by its whole id, or holds it in memory."""
        return self._own.get(run) is not None

    def holds(self, run: str) -> bool:
        """Return whether a run, by its whole id, can be loaded."""
        return run in self._own or (self._folder is not None and self._folder.is_regular(run + SUFFIX))

    def ids(self) -> list[str]:
        """Return all run ids, oldest first."""
        found, others = self._folder.entries() if self._folder is not None else ([], [])
        for name in others:
            if name.endswith(SUFFIX):
                self.problems[name.removesuffix(SUFFIX)] = f"{name} is no regular file, so it is not read"
        return sorted({name.removesuffix(SUFFIX) for name in found if name.endswith(SUFFIX)} | set(self._own))

    def latest_first(self) -> list[str]:
        """Return all run ids, this session's before those of other kernels on the workspace, each newest first."""
        others = [run for run in self.ids() if run not in self._own]
        return [*sorted(self._own, reverse=True), *reversed(others)]

    def find(self, wanted: str | int | None = None) -> str:
        """Return the id of the run that is meant.

        Args:
            wanted: None or "last" for the newest, this session's before others'; an index into `ids`; or any unique
                part of an id.

        Raises:
            RunNotFoundError: says what there is instead.
        """
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

    def _read(self, run: str) -> Trace:
        log = self._own.get(run)
        if log is not None:
            return Trace.from_events(log.now, self._blobs)
        assert self._folder is not None
        try:
            content = self._folder.read(run + SUFFIX, runlog.LARGEST)
            trace = Trace.from_events(runlog.events_of(content, run + SUFFIX), self._blobs)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self.problems[run] = f"{run}{SUFFIX} cannot be read: {why}"
            raise RunLogError(f"the run {run[-12:]} cannot be read: {why}") from error
        self.problems.pop(run, None)
        return trace

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
