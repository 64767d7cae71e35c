"""A run as people read it: a projection of its events, never a second record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reyn_jupyter.outputs.blob import open_blob
from reyn_jupyter.outputs.parts.content_parts import ContentPart
from reyn_jupyter.runtime.record import runlog
from reyn_jupyter.runtime.record.events import (
    Event,
    InnerRunOpened,
    ModelReplied,
    RequestSent,
    RunEnded,
    RunStarted,
    RunStatus,
)
from reyn_jupyter.runtime.record.question_spans import QuestionSpan, question_spans, seconds_open
from reyn_jupyter.runtime.record.run_outcome import RunOutcome, outcome_of, yields_result
from reyn_jupyter.runtime.record.run_result import NoTableError, RunResult
from reyn_jupyter.runtime.record.run_steps import Call, Step, attached_bytes, steps_of
from reyn_jupyter.runtime.record.sent import Sent, total_by_name
from reyn_jupyter.support.frames import frame_of_rows
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class InnerRuns:
    """The inner runs of one run.

    Attributes:
        traces: those that could be read, by the id of the call that they belong to.
        problems: why another one could not, in a sentence, by the id of its call.
    """

    traces: dict[str, Trace] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def out_of_reach(trace: Trace) -> InnerRuns:
    """Find no inner run: the trace is of a file by itself."""
    why = "its inner run is in a file of its own, which is not at hand here"
    return InnerRuns({}, dict.fromkeys(trace.opened, why))


@dataclass(frozen=True, repr=False)
class Trace:
    """One run.

    Attributes:
        events: the record itself.
        started, ended: its first and last event; `ended` is None in a partial trace.
        grows: whether its session was still writing it when it was read.
        steps: model calls with their tool calls.
        inner: the inner runs, which hold what calls of this run called in their turn, by the id of the call. Their
            tokens and costs are counted in those of this run.
        result: the data that the answer rests on; `df` is its table, `sql` its query.
        call_log: a table of the calls.
        payload: what a model receives for it: the answer's text.

    Example:
        >>> trace = session.ask("how many orders are there?")      # doctest: +SKIP
        >>> trace.answer, len(trace.steps), trace.tokens           # doctest: +SKIP
    """

    events: tuple[Event, ...]
    started: RunStarted
    ended: RunEnded | None
    blobs: Any = field(default=None, compare=False, repr=False)  # the store that holds its results
    find_inner: Callable[[Trace], InnerRuns] = field(default=out_of_reach, compare=False, repr=False)
    grows: bool = field(default=False, compare=False, repr=False)

    @classmethod
    def from_events(
        cls,
        events: Iterable[Event],
        blobs: Any = None,
        find_inner: Callable[[Trace], InnerRuns] = out_of_reach,
    ) -> Trace:
        """Build the trace; raises ValueError when the events do not begin with a `RunStarted`.

        Args:
            blobs: the store that holds its results.
            find_inner: reads its inner runs, once somebody looks at them.
        """
        listed = tuple(events)
        if not listed or not isinstance(listed[0], RunStarted):
            raise ValueError("not a run: its first event is no RunStarted")
        ended = next((event for event in reversed(listed) if isinstance(event, RunEnded)), None)
        return cls(listed, listed[0], ended, blobs, find_inner)

    def __repr__(self) -> str:
        said = self.answer if self.error is None else self.error
        line = shorten(said, 80)
        return f"Trace({self.run[-12:]!r}, {self.status!r}, steps={len(self.steps)}, calls={len(self.calls)}, {line!r})"

    @property
    def run(self) -> str:
        return self.started.run

    @property
    def prompt(self) -> str:
        return self.started.prompt

    @property
    def model(self) -> str | None:
        return self.started.model

    @property
    def status(self) -> RunStatus:
        return self.ended.status if self.ended else "running"

    @cached_property
    def outcome(self) -> RunOutcome:
        """How it ended: what the answer rests on, or why there is none."""
        last = self.steps[-1].replied if self.steps else None
        return outcome_of(self.started, self.ended, last, self.calls)

    @property
    def answer(self) -> str:
        return self.ended.answer if self.ended else ""

    @property
    def error(self) -> str | None:
        return self.ended.error if self.ended else None

    @property
    def advice(self) -> tuple[str, ...]:
        """What the person can do about what its calls came to, such as a line to type; no model was told it."""
        found = (call.finished.advice for call in self.calls if call.finished is not None)
        return tuple(dict.fromkeys(filter(None, found)))

    @property
    def payload(self) -> str | dict[str, Any]:
        if self.error is None:
            return self.answer
        return {"error": self.error, "hint": (self.ended.hint if self.ended else None) or ""}

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        return steps_of(self.events)

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        return tuple(call for step in self.steps for call in step.calls)

    @property
    def opened(self) -> dict[str, str]:
        """The ids of the inner runs that the record names, by the id of the call."""
        return {event.call: event.run for event in self.events if isinstance(event, InnerRunOpened)}

    @cached_property
    def _inner(self) -> InnerRuns:
        return self.find_inner(self)

    @property
    def inner(self) -> Mapping[str, Trace]:
        return self._inner.traces

    @property
    def inner_problems(self) -> Mapping[str, str]:
        """Why an inner run that the record names is not in `inner`, in a sentence, by the id of its call."""
        return self._inner.problems

    @property
    def all_inner(self) -> Iterator[Trace]:
        """Yield its inner runs and, after each, those inside it."""
        for inner in self.inner.values():
            yield inner
            yield from inner.all_inner

    @cached_property
    def replies(self) -> tuple[ModelReplied, ...]:
        """What models said, in this run and then in its inner runs."""
        return tuple(
            step.replied for run in (self, *self.all_inner) for step in run.steps if step.replied is not None
        )

    @property
    def parts(self) -> tuple[ContentPart, ...]:
        """The parts of its results that have several, or an image or a sound, in their order, read from the blobs.

        Raises:
            BlobNotFoundError, BlobStoreError: one of the blobs is gone or damaged.
            TypeError: the store cannot be read by ordinary calls.
        """
        blobs = [
            call.finished.blob
            for call in self.calls
            if call.finished and call.finished.content_kind == "parts"
        ]
        return tuple(part for blob in blobs if blob for part in open_blob(self.blobs, blob).parts)

    @property
    def tokens(self) -> int:
        return sum(reply.prompt_tokens + reply.completion_tokens for reply in self.replies)

    @property
    def cached_tokens(self) -> int:
        """The part of `tokens` that providers read from their caches."""
        return sum(reply.cached_tokens for reply in self.replies)

    @property
    def tokens_estimated(self) -> bool:
        return any(reply.estimated for reply in self.replies)

    @property
    def cost(self) -> float | None:
        """US dollars of the model calls whose price is known; None when none is."""
        known = [reply.cost for reply in self.replies if reply.cost is not None]
        return sum(known) if known else None

    @property
    def seconds(self) -> float:
        """The seconds that it took, without those for which it waited for the person."""
        if self.ended is not None:
            return self.ended.seconds
        now = self.events[-1].at
        return max(0.0, now - self.started.at - self.waited_until(now))

    @property
    def waited(self) -> float:
        """The seconds for which a question to the person was open."""
        return self.ended.waited if self.ended is not None else self.waited_until(self.events[-1].at)

    def waited_until(self, now: float) -> float:
        """Return the seconds for which a question was open until now (since the epoch), by the record alone."""
        return seconds_open(self._question_spans, now)

    @cached_property
    def open_questions(self) -> tuple[QuestionSpan, ...]:
        """The questions that the person is asked now, of this run and its inner runs, oldest first."""
        if self.ended is not None:
            return ()
        spans = [each for each in self._question_spans if each.end is None]
        return tuple(sorted(spans, key=lambda each: each.start))

    @cached_property
    def _question_spans(self) -> list[QuestionSpan]:
        return [each for run in (self, *self.all_inner) for each in question_spans(run.events)]

    @cached_property
    def contents_by_call(self) -> list[dict[str, Any]]:
        """Return the contents that each call put before the model: [{call, kind, name, bytes}]; bytes count once."""
        found: list[dict[str, Any]] = [{"call": "", **item} for item in self.started.sent]
        attached = attached_bytes(self.steps)
        for call in self.calls if self.started.model is not None else ():
            finished = call.finished
            if finished is None or not finished.ok or not (call.resolved.name or finished.sources):
                continue
            sources = finished.sources or ({"kind": "result", "name": call.label},)
            size = len(finished.output.encode("utf-8", "surrogatepass")) + attached.get(call.id, 0)
            share, rest = divmod(size, len(sources))
            found += [
                {
                    "call": call.id,
                    "kind": source["kind"],
                    "name": source["name"],
                    "bytes": share + rest * (place == 0),
                }
                for place, source in enumerate(sources)
            ]
        return found

    @property
    def contents(self) -> list[dict[str, Any]]:
        """Return the person's contents that the model was given: [{kind, name, bytes}], biggest first.

        The result of a call counts under its sources (variables, files, blobs), else as the action's result.
        """
        return total_by_name(self.contents_by_call)

    @property
    def sent(self) -> Sent:
        """Return what left the kernel: hosts, bytes, and the person's contents in these requests."""
        runs = [run._sent for run in (self, *self.all_inner)]
        return Sent.of(
            (request for requests, _ in runs for request in requests),
            (content for _, contents in runs for content in contents),
        )

    @property
    def _sent(self) -> tuple[list[RequestSent], list[dict[str, Any]]]:
        """The requests of this run alone, and what of the person's was in them."""
        requests = [event for event in self.events if isinstance(event, RequestSent)]
        last = max((each.step for each in requests if each.by == "model"), default=0)
        steps = {call.id: call.resolved.step for call in self.calls}
        return requests, [item for item in self.contents_by_call if steps.get(item["call"], 0) < last]

    @cached_property
    def result(self) -> RunResult | None:
        """The data that the answer rests on: of the last call that gave any. None where no call did."""
        found = next((call for call in reversed(self.calls) if yields_result(call)), None)
        return (
            None if found is None or found.finished is None else RunResult(found, found.finished, self.blobs)
        )

    @property
    def df(self) -> pd.DataFrame:
        """The result as a new DataFrame; `call_log` has the calls.

        Raises:
            NoTableError: no call gave data, or the last that did gave no table.
            BlobNotFoundError, BlobStoreError: the stored result is gone or damaged.
        """
        if self.result is None:
            raise NoTableError("no call of this run gave data; .call_log has its calls, .answer the answer")
        return self.result.df

    @property
    def sql(self) -> str | None:
        """The query that gave the result, None where the result comes of none."""
        return None if self.result is None else self.result.sql

    @property
    def call_log(self) -> pd.DataFrame:
        """One row a call: step, action, ok, problem, flags, seconds, bytes, blob, error, code."""

        rows = [
            {
                "step": call.resolved.step,
                "wrapper": call.resolved.wrapper,
                "action": call.resolved.name,
                "ok": call.ok,
                "problem": call.resolved.problem,
                "flags": ", ".join(call.resolved.flags),
                "decision": call.decision.decision if call.decision else None,
                "seconds": call.finished.seconds if call.finished else None,
                "bytes": call.finished.size if call.finished else None,
                "blob": call.finished.blob if call.finished else None,
                "error": call.finished.error if call.finished else None,
                "code": call.finished.code if call.finished else None,
            }
            for call in self.calls
        ]
        columns = [
            "step",
            "wrapper",
            "action",
            "ok",
            "problem",
            "flags",
            "decision",
            "seconds",
            "bytes",
            "blob",
            "error",
            "code",
        ]
        return frame_of_rows(rows, columns)

    def save(self, path: str | Path) -> Path:
        """Write the run as JSONL, the form of the run log, without its inner runs; `Trace.load` reads it back."""
        return runlog.write(Path(path), self.events)

    @classmethod
    def load(cls, path: str | Path, blobs: Any = None) -> Trace:
        """Read a saved run. A torn last line (the process was killed) is left out; the rest is a partial trace."""
        return cls.from_events(runlog.read(Path(path)), blobs)
