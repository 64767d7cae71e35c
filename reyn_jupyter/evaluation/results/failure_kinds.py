"""What failing trials did instead, counted: each failing trial of a variant is of one kind.

Invariants: the facts of a trial alone decide, which were read off its events; a trial that passed is counted nowhere,
and one that ended in an error or a timeout is counted as missing, not as failing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from reyn_jupyter.evaluation.results.trial_set import TrialSet
from reyn_jupyter.evaluation.trial.facts import is_overflow
from reyn_jupyter.evaluation.trial.trial import MISSING, Trial
from reyn_jupyter.models.base import canonical
from reyn_jupyter.models.written_calls import is_call
from reyn_jupyter.support.text import enumerate_words

LOOP = 3  # equal calls of one trial that count as a loop
REPEATS = 3  # times that a passage stands at the end of an answer, one after the other, for it to count as running on
_SHORTEST = 40  # characters of these together: an ellipsis or a short rule is no such passage
_END = 2_000  # characters at the end of an answer that are looked at


class FailureKind(StrEnum):
    """What a trial did in place of what was asked. The first that fits is its kind."""

    ERROR = "error or timeout"
    OVERFLOW = "context overflow"
    LOOP = "loop (the same call again)"
    STEP_LIMIT = "step limit"
    EMPTY = "empty answer"
    RAN_ON = "ran on until the limit of tokens"
    CALL_AS_TEXT = "call as text"
    PROSE = "prose without data"
    OTHER = "other action or answer"


@dataclass(frozen=True)
class FailureCount:
    """How often a variant's failing trials were of one kind.

    Attributes:
        variant, kind: whose, and what they did.
        times, of: how many trials of the kind there are, and how many failed or are missing at all.
        example: the first of them; `study.trials` holds it at `place` of those of the variant.
    """

    variant: str
    kind: FailureKind
    times: int
    of: int
    example: Trial
    place: int

    @property
    def link(self) -> str:
        """The line that shows the example."""
        return f'study.trials.of("{self.variant}")[{self.place}].transcript'


def kind_of(trial: Trial) -> FailureKind:
    """Return what a trial that did not pass did instead."""
    if trial.outcome in MISSING:
        return FailureKind.OVERFLOW if is_overflow(trial) else FailureKind.ERROR
    if is_overflow(trial):
        return FailureKind.OVERFLOW
    equal = Counter(canonical([call.wrapper, call.name, call.args]) for call in trial.calls)
    if equal and max(equal.values()) >= LOOP:
        return FailureKind.LOOP
    if trial.outcome == "limit":
        return FailureKind.STEP_LIMIT
    if not trial.answer.strip():
        return FailureKind.EMPTY
    if trial.cut_off and repeats_itself(trial.answer):
        return FailureKind.RAN_ON
    if is_call(trial.answer):
        return FailureKind.CALL_AS_TEXT
    if not any(call.ok and call.name is not None and call.problem is None for call in trial.calls):
        return FailureKind.PROSE
    return FailureKind.OTHER


def repeats_itself(text: str) -> bool:
    """Return whether a text ends in one passage again and again: three times at least, white space aside; where it
    was cut off, the last time may have been only begun.

    >>> repeats_itself("Well. " + "The function is called. " * 3 + "The fun")
    True
    >>> repeats_itself("The lamp in the hall is on. The lamp in the bedroom is on. The lamp in the cellar is on.")
    False
    """
    end = " ".join(text.split())[-_END:]
    for period in range(1, len(end) // REPEATS + 1):
        size = max(period * REPEATS, _SHORTEST)
        if size <= len(end) and end[-size:-period] == end[period - size :]:
            return True
    return False


def count_failures(evidence: TrialSet, check: str) -> tuple[FailureCount, ...]:
    """Return what the trials of each variant did that fail a check or are missing, most frequent first.

    Args:
        check: the name of a check that passes or fails; one that gives numbers has no failures.
    """
    if evidence.check(check).numeric:
        return ()
    verdicts = evidence.verdicts(check)
    found: list[FailureCount] = []
    for variant in evidence.tried:
        kinds: dict[FailureKind, list[tuple[int, Trial]]] = {}
        for place, trial in enumerate(each for each in evidence.trials if each.variant == variant):
            verdict = verdicts.get(trial.key)
            failing = trial.outcome in MISSING or (verdict is not None and verdict.kind == "fail")
            if trial.source == evidence.sources[variant] and failing:
                kinds.setdefault(kind_of(trial), []).append((place, trial))
        total = sum(map(len, kinds.values()))
        order = sorted(kinds, key=lambda kind: (-len(kinds[kind]), list(FailureKind).index(kind)))
        found += [
            FailureCount(variant, kind, len(kinds[kind]), total, kinds[kind][0][1], kinds[kind][0][0])
            for kind in order
        ]
    return tuple(found)


def failure_lines(counts: tuple[FailureCount, ...]) -> tuple[str, ...]:
    """Return what failing trials did, a line a variant: ``flat: 5 of 8 loop …, 3 prose without data``."""
    lines = []
    for variant in dict.fromkeys(each.variant for each in counts):
        own = [each for each in counts if each.variant == variant]
        did = enumerate_words([f"{each.times} {each.kind}" for each in own])
        missed = "trial that failed or is missing" if own[0].of == 1 else "trials that failed or are missing"
        lines.append(f"{variant}: of {own[0].of} {missed}, {did}; e.g. {own[0].link}")
    return tuple(lines)
