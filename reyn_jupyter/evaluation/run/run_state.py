"""The state of a run: counted trial by trial, and looked at only as announced.

Invariants: the evidence is looked at once a finished scenario, in the planned order, and for the primary check alone; a
scenario is finished when all its repeats under all variants are there; a trial that ended in an error or a timeout is
missing, and neither a success nor a failure.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reyn_jupyter.evaluation.checks.check import Check
from reyn_jupyter.evaluation.plan.scenario import Scenario, Source
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.run.budget import Budget, Ledger
from reyn_jupyter.evaluation.run.progress import Ended, Progress, estimates, remaining
from reyn_jupyter.evaluation.statistics.confidence_sequence import Sequential
from reyn_jupyter.evaluation.statistics.rates import Mean, Rate
from reyn_jupyter.evaluation.trial.trial import MISSING, Trial

StopRule = Literal["fixed", "evalue"]
GIVE_UP = 10  # missing trials of one variant in a row, after which nothing is gained by going on
Looked = Mapping[str, float | None]
_TELL = 0.2  # seconds between two words of progress
_LOOK = 0.05  # share of the run's time that estimates on the way may take
_SPREAD = 201  # trials whose ends say how long the rest takes
_MARKS = 4  # fingerprints of a model that are told one by one


@dataclass(frozen=True)
class RunPlan:
    """The work of a run.

    Attributes:
        variants, scenarios: in their order; `repeats` are the indices of the repeats.
        check: the primary check, the only one that is looked at on the way.
        stop: "fixed" tries everything; "evalue" stops once the evidence for a difference of the two variants suffices.
        others: the checks that are graded beside it.
        alpha: of the e-value.
        retry: try again what ended in an error or a timeout; the earlier attempts stay in the file.
        budget: of the whole study.
        seed: of the order.
        stamps: model's name → what its trials stand on besides the catalog (see `conditions.conditions_digest`).
        provenance: what else is to be noted of the run.
    """

    variants: tuple[Variant, ...]
    scenarios: tuple[Scenario, ...]
    repeats: tuple[int, ...]
    check: Check
    stop: StopRule = "fixed"
    others: tuple[Check, ...] = ()
    alpha: float = 0.05
    retry: bool = False
    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    stamps: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Trials of the order."""
        return len(self.variants) * len(self.scenarios) * len(self.repeats)


class RunState:
    """The count of one run.

    Attributes:
        ended, reason: why nothing more starts; None and "" while trials go on.
        done, earlier: trials that are stored, and those of them that runs before this one made.
        looked: scenario → its difference for the variant whose name comes last in the alphabet, None without a pair;
            in the order of looking.
    """

    def __init__(self, run_plan: RunPlan) -> None:
        self.run_plan = run_plan
        self.ended: Ended | None = None
        self.reason = ""
        self.done = 0
        self.earlier = 0
        self.looked: dict[str, float | None] = {}
        self.missing: Counter[str] = Counter()
        self.timeouts = 0
        self.ends: deque[float] = deque(
            [time.monotonic()], maxlen=_SPREAD
        )  # of trials of this run, by the clock
        self._left = {each.id: len(run_plan.variants) * len(run_plan.repeats) for each in run_plan.scenarios}
        self._values: dict[str, dict[str, dict[int, float]]] = {each.name: {} for each in run_plan.variants}
        self._in_a_row: Counter[str] = Counter()
        self._errors: dict[str, str] = {}
        self._fingerprints: dict[str, dict[str, None]] = {each.name: {} for each in run_plan.variants}
        self._changed: dict[str, None] = {}
        self._evidence = Sequential(run_plan.alpha)
        self._next = 0  # the scenario that is looked at next, by its place in the order

    def end(self, ended: Ended, reason: str) -> None:
        """Let nothing more start; the first reason stands."""
        if self.ended is None:
            self.ended, self.reason = ended, reason

    def count(self, variant: str, scenario: str, repeat: int, outcome: str, value: float | None) -> None:
        """Count a trial that is stored, and look at its scenario once that is finished."""
        self.done += 1
        self.missing[variant] += outcome in MISSING
        self.timeouts += outcome == "timeout"
        if value is not None:
            self._values[variant].setdefault(scenario, {})[repeat] = value
        self._left[scenario] -= 1
        scenarios = self.run_plan.scenarios
        while (
            self.run_plan.stop == "evalue"
            and self._next < len(scenarios)
            and self._left[scenarios[self._next].id] == 0
        ):
            self._look(scenarios[self._next].id)
            self._next += 1

    def _look(self, scenario: str) -> None:
        """Give a finished scenario's difference to the e-value; a scenario without a pair has none."""
        first, second = (each.name for each in self.run_plan.variants)
        a, b = (self._values[name].get(scenario, {}) for name in (first, second))
        pairs = [b[repeat] - a[repeat] for repeat in sorted(a.keys() & b.keys())]
        if self._evidence.state.stopped:
            return
        self.looked[scenario] = None
        if not pairs:
            return
        gap = math.fsum(pairs) / len(pairs)
        if self.run_plan.check.numeric:
            gap = (gap > 0) - (gap < 0)
        self.looked[scenario] = gap if first < second else -gap
        state = self._evidence.add(gap)
        if state.stopped:
            said = f"the evidence suffices after {state.stopped_at} scenarios (log E {state.log_e:.2f})"
            self.end("evalue", f"Stopped: {said}.")

    def note_fingerprints(self, variant: str, fingerprints: Iterable[str]) -> None:
        """Note what the provider of a variant called its model in runs before this one."""
        self._fingerprints[variant].update(dict.fromkeys(fingerprints))

    def watch(self, variant: str, trial: Trial) -> None:
        """Note of a fresh trial what a reader should know: a changed model, an error, one that never answers."""
        self.ends.append(time.monotonic())
        known = self._fingerprints[variant]
        for mark in trial.fingerprints:
            if known and mark not in known:
                self._changed[variant] = None
            known[mark] = None
        if trial.outcome == "error" and trial.error:
            self._errors.setdefault(variant, trial.error)
        self._in_a_row[variant] = self._in_a_row[variant] + 1 if trial.outcome in MISSING else 0
        if self._in_a_row[variant] >= GIVE_UP:
            said = f"the last {GIVE_UP} trials of {variant} ended in an error or a timeout ({trial.error})"
            self.end("errors", f"Stopped: {said}. Mend that, and run it again with retry=True.")

    def warnings(self, earlier: Iterable[Looked] = ()) -> tuple[str, ...]:
        """Return what a reader of the figures should know.

        Args:
            earlier: `looked` of runs before this one that looked at the same two variants and check.
        """
        said = [
            f"{variant}: the model changed during the study (fingerprint {_marks(self._fingerprints[variant])}); "
            "trials before and after may differ."
            for variant in self._changed
        ]
        said += [f"{variant}: a trial ended in an error: {error}" for variant, error in self._errors.items()]
        others = sum(
            any(self.looked.get(scenario, gap) != gap for scenario, gap in looked.items())
            for looked in earlier
        )
        if others and self.run_plan.stop == "evalue":
            said.append(
                f"The evidence was looked at {others + 1} times on different trials of the same scenarios (tried "
                "again, or another number of repeats), so the chance of stopping where there is no difference is up "
                f"to {others + 1} × {self.run_plan.alpha:g}."
            )
        return tuple(said)

    @property
    def finished(self) -> int:
        """Scenarios of which every trial is there."""
        return sum(left == 0 for left in self._left.values())

    @property
    def log_e(self) -> float | None:
        """The evidence so far, in a run that stops on it."""
        return self._evidence.state.log_e if self.run_plan.stop == "evalue" else None

    def estimates(self) -> dict[str, Rate | Mean]:
        """Variant → the primary check's rate or mean so far."""
        return estimates(self.run_plan.check, self._values)

    def stop(self) -> dict[str, Any]:
        """Return the stopping rule and what it saw."""
        found: dict[str, Any] = {"rule": self.run_plan.stop, "ended": self.ended, "scenarios": self.finished}
        if self.run_plan.stop == "evalue":
            state = self._evidence.state
            found |= {"log_e": state.log_e, "peak": state.peak, "wins": state.wins, "losses": state.losses,
                      "ties": state.ties, "stopped_at": state.stopped_at, "alpha": self.run_plan.alpha}  # fmt: skip
        return found


def _marks(found: Iterable[str]) -> str:
    marks = list(found)
    more = f" and {len(marks) - _MARKS} more" if len(marks) > _MARKS else ""
    return f"{', then '.join(marks[:_MARKS])}{more}"


class ProgressReporter:
    """Tells of progress, not too often; estimates only as often as they cost little beside the trials."""

    def __init__(
        self, run_state: RunState, listener: Callable[[Progress], None] | None, sources: Mapping[str, Source]
    ) -> None:
        self._run_state = run_state
        self._listener = listener
        self._sources = dict(sources)
        self._began = time.monotonic()
        self._told = 0.0
        self._looking = 0.0
        self._estimates: dict[str, Rate | Mean] = {}

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.monotonic() - self._began

    def tell(
        self,
        running: int,
        ledger: Ledger,
        limits: Mapping[str, int],
        waits: Mapping[str, float],
        *,
        loading: tuple[str, ...] = (),
        force: bool = False,
    ) -> None:
        """Tell how far the run is, where it is time to."""
        now, run_state = time.monotonic(), self._run_state
        if self._listener is None or not (force or now - self._told >= _TELL):
            return
        self._told = now
        seconds = now - self._began
        if force or self._looking < _LOOK * seconds:
            self._estimates = run_state.estimates()
            self._looking += time.monotonic() - now
        rate = (run_state.done - run_state.earlier) / seconds if seconds > 0 else 0.0
        total = run_state.run_plan.size
        self._listener(
            Progress(
                done=run_state.done,
                total=total,
                running=running,
                seconds=seconds,
                rate=rate,
                eta=remaining(tuple(run_state.ends), total - run_state.done),
                usd=ledger.usd,
                tokens=ledger.tokens,
                calls=ledger.calls,
                missing=dict(run_state.missing),
                limits=dict(limits),
                waits=dict(waits),
                estimates=self._estimates,
                log_e=run_state.log_e,
                sources=self._sources,
                timeouts=run_state.timeouts,
                loading=loading,
            )
        )
