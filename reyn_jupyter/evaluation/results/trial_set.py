"""The evidence of a study: its trials, and what the checks say of them, sorted into arms.

Invariants: a trial that ended in an error or a timeout is missing, never a failure; "not applicable" is counted, never
graded; trials of different sources (real, simulated, offline, replayed) never stand in one arm; a check that is not at
hand keeps the verdicts that it gave when it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from reyn_jupyter.evaluation.checks import CHECKS, find_check, is_broken
from reyn_jupyter.evaluation.checks.check import Check
from reyn_jupyter.evaluation.checks.check_registry import BROKEN
from reyn_jupyter.evaluation.plan.model_grader import ModelGrader
from reyn_jupyter.evaluation.plan.scenario import Scenario, Source
from reyn_jupyter.evaluation.plan.suite import Claim
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.store.judgement_record import JudgementRecord
from reyn_jupyter.evaluation.trial.trial import MISSING, Trial
from reyn_jupyter.runtime.record.verdict import Verdict, not_applicable
from reyn_jupyter.support.text import meant_clause
from reyn_jupyter.support.user_errors import UserError

# Where a variant has trials of several sources, the one that says most about a real model is taken.
PREFERENCE: tuple[Source, ...] = ("real", "replayed", "offline", "scripted", "simulated")

_NOBODY, _NO_JUDGE = "nobody labelled it", f"{BROKEN}: no judge was asked yet"


class EvidenceError(UserError, ValueError):
    """There is nothing to say about what was asked for; the message says what there is."""


@dataclass(frozen=True)
class TrialSet:
    """The trials of a study and what is needed to read them.

    Attributes:
        suite: the suite's name.
        primary: the check that was named in advance, by the runs or by the suite; `checks` all that are shown, the
            primary one first.
        scenarios, variants: by id and by name.
        trials: every stored trial of this version of the code.
        claims: what the suite re-measures.
        truths: variant → check → the true rate, where a simulator's table says it.
        runs: of each run of this code, in their order: its stopping "rule" and "alpha", "check", "variants", "repeats",
            and the "order" of its scenarios.
        provenance: versions, dates, hashes, notes.
        stored: the verdicts that the file keeps of a check, by variant, trial's key and source.
        graders: the models that judge answers, each a check among `checks`.
        judges: grader's name → the model that it stands for today, where that is known.
    """

    suite: str
    primary: str
    checks: tuple[str, ...]
    scenarios: Mapping[str, Scenario]
    variants: Mapping[str, Variant]
    trials: Sequence[Trial]
    claims: tuple[Claim, ...] = ()
    truths: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    runs: Sequence[Mapping[str, Any]] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    stored: Callable[[str], Mapping[tuple[str, str, str], Verdict]] = lambda _: {}
    graders: tuple[ModelGrader, ...] = ()
    judges: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def by_variant(self) -> dict[str, list[Trial]]:
        """Variant → its trials of the one source that `source` names."""
        kept: dict[str, list[Trial]] = {name: [] for name in self.variants}
        for trial in self.trials:
            if trial.variant in kept and trial.source == self.sources[trial.variant]:
                kept[trial.variant].append(trial)
        return kept

    @cached_property
    def sources(self) -> dict[str, Source]:
        """Variant → the source of the trials that are shown for it."""
        there: dict[str, set[Source]] = {}
        for trial in self.trials:
            there.setdefault(trial.variant, set()).add(trial.source)
        return {
            name: next(source for source in PREFERENCE if source in found) for name, found in there.items()
        }

    @cached_property
    def left_out(self) -> dict[str, Counter[str]]:
        """Variant → source → trials that are not shown, since the variant has better ones."""
        out: dict[str, Counter[str]] = {}
        for trial in self.trials:
            if trial.source != self.sources[trial.variant]:
                out.setdefault(trial.variant, Counter())[trial.source] += 1
        return out

    @property
    def tried(self) -> tuple[str, ...]:
        """The variants that have trials, in their order."""
        return tuple(name for name in self.variants if self.by_variant.get(name))

    def check(self, name: str) -> Check:
        """Return the check of a name; of one that is not registered here, what it said when the trials were graded.

        Raises:
            UnknownCheckError: it is not registered, and the file keeps nothing of it.
        """
        judge = next((each for each in self.graders if name in (each.name, each.people)), None)
        if judge is not None:
            return self._kept(name, judge)
        if name in CHECKS or not (kept := self._stored_verdicts(name)):
            return find_check(name)
        numeric = any(verdict.kind == "number" for verdict in kept.values())
        none = not_applicable("it was not graded by this check, which is not registered here")

        def grade(trial: Trial, scenario: Scenario) -> Verdict:
            return kept.get((trial.variant, trial.key, trial.source), none)

        return Check(name, name.replace("_", " "), "What was graded is shown.", grade, numeric=numeric)

    def _kept(self, name: str, judge: ModelGrader) -> Check:
        """Return a judge, or the people beside it, as a check: what it said where it was asked."""
        by_people = name == judge.people
        kept = self._stored_verdicts(name)
        none = not_applicable(_NOBODY if by_people else _NO_JUDGE)

        def grade(trial: Trial, scenario: Scenario) -> Verdict:
            return kept.get((trial.variant, trial.key, trial.source), none)

        title = f"{judge.label} by people" if by_people else judge.label
        version = judge.people_version if by_people else judge.version
        return Check(name, title, judge.rubric, grade, version=version)

    def judged_by(self, grader: ModelGrader) -> Counter[str]:
        """Return the models whose verdicts of a grader are shown, and how many each gave; see `judge_identity`."""
        records = (JudgementRecord.found_in(each.evidence) for each in self.verdicts(grader.name).values())
        return Counter(each.judge for each in records if each is not None)

    def verdicts(self, check: str) -> dict[str, Verdict]:
        """Trial key → verdict, for every trial that can be graded."""
        asked = self.check(check)
        by, kept = self._verdicts.get(check, (None, {}))
        # A check that was replaced, by a cell that ran again, is asked again.
        if by is None or (by is not asked and check in CHECKS):
            kept = {
                trial.key: asked.grade(trial, self.scenarios[trial.scenario])
                for trials in self.by_variant.values()
                for trial in trials
                if trial.outcome not in MISSING
            }
            self._verdicts[check] = asked, kept
        return kept

    def broken(self, check: str) -> tuple[int, str]:
        """Of how many trials a check could not be asked, since it raised or gave no verdict, and what one says."""
        said = [verdict.reason for verdict in self.verdicts(check).values() if is_broken(verdict)]
        return len(said), said[0] if said else ""

    @cached_property
    def _verdicts(self) -> dict[str, tuple[Check, dict[str, Verdict]]]:
        return {}

    def _stored_verdicts(self, check: str) -> Mapping[tuple[str, str, str], Verdict]:
        if check not in self._stored_by_check:
            self._stored_by_check[check] = self.stored(check)
        return self._stored_by_check[check]

    @cached_property
    def _stored_by_check(self) -> dict[str, Mapping[tuple[str, str, str], Verdict]]:
        return {}

    def arm(self, variant: str, check: str, family: str = "") -> dict[str, dict[int, float]]:
        """Scenario → repeat → value, of the trials that the check applies to.

        Raises:
            EvidenceError: the variant has no trial.
        """
        self.require_trials(variant)
        verdicts = self.verdicts(check)
        arm: dict[str, dict[int, float]] = {}
        for trial in self._of(variant, family):
            verdict = verdicts.get(trial.key)
            if verdict is not None and verdict.value is not None:
                arm.setdefault(trial.scenario, {})[trial.repeat] = verdict.value
        return arm

    def not_applicable(self, variant: str, check: str, family: str = "") -> int:
        """Return how many of a variant's trials the check does not apply to."""
        verdicts = self.verdicts(check)
        graded = (verdicts.get(trial.key) for trial in self._of(variant, family))
        return sum(verdict is not None and verdict.kind == "na" for verdict in graded)

    def awaits_judge(self, variant: str, check: str) -> bool:
        """Return whether a check is a model grader's, or that of people, and nobody judged a trial of the variant."""
        verdicts = self.verdicts(check)
        said = {verdicts[trial.key].reason for trial in self._of(variant, "") if trial.key in verdicts}
        return bool(said) and said <= {_NO_JUDGE, _NOBODY}

    def outcomes(self, variant: str) -> Counter[str]:
        """Return how a variant's trials ended."""
        return Counter(trial.outcome for trial in self.by_variant.get(variant, ()))

    def missing(self, variant: str, family: str = "") -> int:
        """Return how many of a variant's trials ended before they could be graded."""
        return sum(map(len, self.absent(variant, family).values()))

    def absent(self, variant: str, family: str = "") -> dict[str, list[int]]:
        """Scenario → the repeats whose trials ended before they could be graded."""
        found: dict[str, list[int]] = {}
        for trial in self._of(variant, family):
            if trial.outcome in MISSING:
                found.setdefault(trial.scenario, []).append(trial.repeat)
        return found

    def families(self) -> tuple[str, ...]:
        """Return the families that have trials, in the order of the scenarios."""
        there = {
            self.scenarios[trial.scenario].family for trials in self.by_variant.values() for trial in trials
        }
        return tuple(dict.fromkeys(s.family for s in self.scenarios.values() if s.family in there))

    def fingerprints(self, variant: str) -> tuple[str, ...]:
        """Return the distinct fingerprints that the provider gave, in order of appearance."""
        trials = sorted(self.by_variant.get(variant, ()), key=lambda trial: trial.started)
        return tuple(dict.fromkeys(mark for trial in trials for mark in trial.fingerprints))

    def _of(self, variant: str, family: str) -> list[Trial]:
        trials = self.by_variant.get(variant, [])
        return (
            [trial for trial in trials if self.scenarios[trial.scenario].family == family]
            if family
            else trials
        )

    def name_of(self, variant: str | Variant) -> str:
        """Return the name under which a variant's trials stand.

        Raises:
            EvidenceError: it is no variant, its name was tried with other settings, or nothing was under a mere name.
        """
        if isinstance(variant, str):
            self.require_trials(variant)
            return variant
        if not isinstance(variant, Variant):
            raise EvidenceError(f"{variant!r:.80} is no variant; give a variant, or the name of one")
        tried = self.variants.get(variant.name)
        if tried is not None and tried.behaviour_digest != variant.behaviour_digest:
            changes = variant.differences(tried).items()
            moved = ", ".join(f"{key}={there!r} and not {here!r}" for key, (here, there) in changes)
            raise EvidenceError(
                f"the trials of {variant.name!r} were made with {moved}; give the changed variant a name of its own "
                f"and run it, or name the one that was tried: {variant.name!r}"
            )
        return variant.name

    def require_trials(self, variant: str) -> None:
        """Raise EvidenceError where a variant has no trial; the message says which ones have."""
        if variant not in self.tried:
            there = ", ".join(self.tried) or "none yet; run some with study.run(…)"
            hint = meant_clause(variant, self.tried) or "."
            raise EvidenceError(
                f"there are no trials of a variant {variant!r}{hint} There are trials of: {there}"
            )
