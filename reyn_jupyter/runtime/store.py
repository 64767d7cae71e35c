"""The runs of a workspace: `.reyn/runs/<id>.jsonl`, one file a run, named by people with any unique part of the id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reyn_jupyter.runtime import runlog
from reyn_jupyter.runtime.events import Event
from reyn_jupyter.runtime.runlog import FileSink, NoSink, RunLogError, Sink
from reyn_jupyter.runtime.trace import Trace


class RunNotFoundError(LookupError):
    """No run, or more than one, is meant by what was given."""


class RunStore:
    """Runs on disk and those of this session.

    Args:
        folder: where run files lie; None keeps them in memory alone.
        blobs: the store that traces open their blobs from.
    """

    def __init__(self, folder: Path | None, blobs: Any) -> None:
        self._folder = folder
        self._blobs = blobs
        self._own: dict[str, list[Event]] = {}

    def sink(self, run: str) -> Sink:
        return NoSink() if self._folder is None else FileSink(self._folder / f"{run}.jsonl")

    def track(self, run: str, events: list[Event]) -> None:
        """Keep a run of this session at hand, also while it goes on or when the disk is full."""
        self._own[run] = events

    def ids(self) -> list[str]:
        """All run ids, oldest first."""
        on_disk = {path.stem for path in self._folder.glob("*.jsonl")} if self._folder is not None else set()
        return sorted(on_disk | set(self._own))

    def find(self, wanted: str | int | None = None) -> str:
        """The id that is meant: none for the last turn or call, a negative index, or a unique part of an id.

        Raises:
            RunNotFoundError: says what there is instead.
        """
        ids = self.ids()
        if not ids:
            raise RunNotFoundError('there is no run yet. Try: %reyn ask "…"')
        if wanted is None or wanted == "last":
            return ids[-1]
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
        """The trace of a run. Raises RunNotFoundError, RunLogError."""
        run = self.find(wanted)
        if run in self._own:
            return Trace.from_events(self._own[run], self._blobs)
        assert self._folder is not None
        try:
            return Trace.from_events(runlog.read(self._folder / f"{run}.jsonl"), self._blobs)
        except (OSError, ValueError) as error:
            raise RunLogError(f"the run {run[-12:]} cannot be read: {error}") from error

    def all(self) -> list[Trace]:
        """Every readable run, oldest first."""
        traces = []
        for run in self.ids():
            try:
                traces.append(self.load(run))
            except (RunLogError, RunNotFoundError):
                continue
        return traces
