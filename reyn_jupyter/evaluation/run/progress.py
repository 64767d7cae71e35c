"""The progress of a run, and how it ended, as plain values that a view can show.

Invariant: an estimate on the way is shown with its interval, and is never a reason to stop; what may stop a run is
said in `RunSummary.ended`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, Literal

from reyn_jupyter.evaluation.checks.check import Check
from reyn_jupyter.evaluation.plan.scenario import Source
from reyn_jupyter.evaluation.statistics.arms import significant
from reyn_jupyter.evaluation.statistics.rates import Mean, Rate, mean, rate
from reyn_jupyter.evaluation.trial.trial import TrialUsage
from reyn_jupyter.support.text import count

LEAST_DONE = 5  # trials of a run, before which nobody can say how long it takes
_RANGE = 1.28  # standard deviations on each side of an 80 % range
Ended = Literal["complete", "evalue", "budget", "interrupted", "disk", "errors"]
Values = Mapping[
    str, Mapping[str, Mapping[int, float]]
]  # variant → scenario → repeat → value of the primary check


@dataclass(frozen=True)
class Progress:
    """A run under way.

    Attributes:
        done, total: trials of this run that are stored, those of earlier runs among them, and all that are planned.
        running: trials under way.
        seconds: since the run began.
        rate: trials a second since then.
        eta: the least and the most seconds that are probably left (an 80 % range from how the times between two ends of
            trials spread); None before five trials of this run are done.
        usd, tokens, calls: what the whole study has used.
        missing: variant → trials that ended in an error or a timeout.
        timeouts: how many of the missing ones ran out of time.
        limits: provider → how many trials it gets at a time now.
        waits: provider → seconds until which it asked to be left alone.
        estimates: variant → the primary check's rate or mean so far; absent where nothing is graded yet.
        log_e: the evidence so far in a run that stops on it; None in others.
        sources: variant → where its trials come from.
        loading: what models of this machine load at this moment, and for how long.
    """

    done: int
    total: int
    running: int
    seconds: float
    rate: float
    eta: tuple[float, float] | None
    usd: float
    tokens: int
    calls: int
    missing: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    waits: Mapping[str, float] = field(default_factory=dict)
    estimates: Mapping[str, Rate | Mean] = field(default_factory=dict)
    log_e: float | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)
    timeouts: int = 0
    loading: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return how far the run is, in one line, marked where no real model answers."""
        others = sorted(set(self.sources.values()) - {"real"})
        lacking = sum(self.missing.values())
        parts = [
            f"{self.done:,} of {count(self.total, 'trial')} done, {self.running:,} under way",
            *self.loading,
        ]
        parts += [f"{format_range(self.eta)} left"] if self.eta is not None else []
        parts += [f"${self.usd:,.4f}"] if self.usd else []
        parts += [f"{self.tokens:,} tokens"] if self.tokens else []
        errors = lacking - self.timeouts
        parts += [count(errors, "error")] if errors else []
        parts += [count(self.timeouts, "timeout")] if self.timeouts else []
        rates = ", ".join(f"{name} {_format_estimate(found)}" for name, found in self.estimates.items())
        mark = f"{' and '.join(others).capitalize()} trials: " if others else ""
        return f"{mark}{', '.join(parts)}{f'; so far {rates}' if rates else ''}."


def _format_estimate(found: Rate | Mean) -> str:
    if isinstance(found, Rate):
        return f"{100 * found.estimate:.0f} % ({100 * found.low:.0f} to {100 * found.high:.0f})"
    return significant(found.estimate)


def format_range(seconds: tuple[float, float]) -> str:
    """Return a range of seconds in words.

    >>> format_range((40.0, 55.0)), format_range((600.0, 5400.0)), format_range((200.0, 201.0))
    ('40 s to 55 s', '10 min to 90 min', '3 min')
    """
    least, most = map(_duration, seconds)
    return least if least == most else f"{least} to {most}"


def remaining(ends: Sequence[float], left: int) -> tuple[float, float] | None:
    """Return the least and the most seconds that so many more trials probably take.

    Args:
        ends: when the trials ended that are done, and before them when the run began; in seconds.
        left: how many are not done.

    Returns:
        None where too few are done for a spread.

    Example:
        >>> remaining([0, 10, 20, 30, 40, 50], 10)
        (100.0, 100.0)
    """
    gaps = [later - earlier for earlier, later in itertools.pairwise(ends)]
    if len(gaps) < LEAST_DONE:
        return None
    mean_gap, spread = fmean(gaps), stdev(gaps)
    # What is left spreads by itself, and by what the mean is not known.
    off = _RANGE * spread * math.sqrt(left + left * left / len(gaps))
    return max(0.0, left * mean_gap - off), left * mean_gap + off


def _duration(seconds: float) -> str:
    """Return seconds that pass, in the units in which people say them.

    >>> _duration(9.6), _duration(200), _duration(7300)
    ('10 s', '3 min', '2 h 2 min')
    """
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


@dataclass(frozen=True)
class RunSummary:
    """The outcome of `study.run`.

    Attributes:
        run: the invocation's id in the study.
        variants: names.
        check: the primary check's name.
        ended: why it stopped.
        reason: the same in a sentence.
        planned: trials of this order; `done` are stored, `earlier` of them by runs before this one.
        scenarios, finished: scenarios of the order, and those of which every trial is there.
        missing: variant → trials that ended in an error or a timeout.
        usd, tokens, calls: what this run used; None for money where a real model's price is not known.
        unfinished: what of that trials used that did not come to an end, so that they count for nothing else.
        seconds: how long it took.
        stop: the stopping rule and what it saw ({"rule", "scenarios", "log_e", …}).
        warnings: what a reader of the figures should know.
        estimates: variant → the primary check's rate or mean.
        sources: variant → where its trials come from.
        file: the study's file, "" for one in memory.
    """

    run: str
    variants: tuple[str, ...]
    check: str
    ended: Ended
    reason: str
    planned: int
    done: int
    earlier: int
    scenarios: int
    finished: int
    missing: Mapping[str, int]
    usd: float | None
    tokens: int
    calls: int
    seconds: float
    stop: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    estimates: Mapping[str, Rate | Mean] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    unfinished: TrialUsage = field(default_factory=TrialUsage)
    file: str = ""

    @property
    def sentence(self) -> str:
        """The outcome of the run, in one or two sentences, marked where no real model answered."""
        fresh = self.done - self.earlier
        others = sorted(set(self.sources.values()) - {"real"})
        kept = f" and {self.earlier:,} from before" if self.earlier else ""
        lacking = sum(self.missing.values())
        left = self.planned - self.done
        mark = f"{' and '.join(others).capitalize()} trials: " if others else ""
        said = f"{mark}{count(fresh, 'new trial')}{kept}"
        said += f", {self.finished:,} of {count(self.scenarios, 'scenario')} finished"
        said += f"; {count(left, 'trial')} not run" if left else ""
        said += f"; {lacking:,} ended in an error or a timeout" if lacking else ""
        said += f"; {spent}" if (spent := self.unfinished.sentence) else ""
        return f"{said}. {self.reason}"

    def __repr__(self) -> str:
        lines = [self.sentence, *(f"! {warning}" for warning in self.warnings)]
        return "\n".join(lines)


def estimates(check: Check, values: Values) -> dict[str, Rate | Mean]:
    """Variant → the check's rate or mean with its interval, where anything is graded."""
    found: dict[str, Rate | Mean] = {}
    for variant, arm in values.items():
        if any(arm.values()):
            found[variant] = mean(arm) if check.numeric else rate(arm)
    return found
