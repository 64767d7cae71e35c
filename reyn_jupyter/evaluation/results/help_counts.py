"""Count what the harness did for the models of a study, by variant and kind of help.

Invariant: trials whose help was not recorded are left out of the counts and of the number that they are held against.
"""

from __future__ import annotations

from dataclasses import dataclass

from reyn_jupyter.evaluation.checks.harness_help import HELP_WORDS
from reyn_jupyter.evaluation.results.trial_set import TrialSet
from reyn_jupyter.support.text import count, enumerate_words


@dataclass(frozen=True)
class HelpCount:
    """How often the harness helped a variant in one way.

    Attributes:
        variant, kind: whose, and how; a key of `HELP_WORDS`.
        times: how often, in all trials.
        trials, of: in how many trials at least once, of how many that recorded it.
    """

    variant: str
    kind: str
    times: int
    trials: int
    of: int

    @property
    def sentence(self) -> str:
        """The count in words: ``12 repeats pointed to their result in 5 of 24 trials``."""
        return f"{self.times:,} {HELP_WORDS[self.kind]} in {self.trials:,} of {count(self.of, 'trial')}"


def count_help(evidence: TrialSet) -> tuple[HelpCount, ...]:
    """Return every kind of help that was given, by variant; empty where there was none."""
    found = []
    for variant in evidence.tried:
        helped = [trial.helped for trial in evidence.by_variant[variant] if trial.helped is not None]
        for kind in HELP_WORDS:
            times = [each[kind] for each in helped if each.get(kind)]
            if times:
                found.append(HelpCount(variant, kind, sum(times), len(times), len(helped)))
    return tuple(found)


def help_lines(counts: tuple[HelpCount, ...]) -> tuple[str, ...]:
    """Return what the harness did, a line a variant."""
    return tuple(
        f"{variant}: the harness did {enumerate_words([each.sentence for each in counts if each.variant == variant])}"
        for variant in dict.fromkeys(each.variant for each in counts)
    )
