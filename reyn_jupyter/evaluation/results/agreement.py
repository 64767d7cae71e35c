"""How far a judge agrees with people, and what its rates are once its errors are taken out.

Invariants: only trials that both graded count; the corrected rate rests on the labels of people, so it is as good as
they are, and holds where the labelled trials are a random sample of all.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from reyn_jupyter.evaluation.plan.model_grader import ModelGrader
from reyn_jupyter.evaluation.results.trial_export import written_cell
from reyn_jupyter.evaluation.results.trial_set import EvidenceError, TrialSet
from reyn_jupyter.evaluation.statistics.paired import difference
from reyn_jupyter.evaluation.statistics.rates import Rate, rate
from reyn_jupyter.runtime.record.verdict import Verdict, failed, passed
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    import pandas as pd

LabelledTrial = tuple[str, str, int]  # variant, scenario, repeat
_WORDS = {
    "pass": True,
    "1": True,
    "true": True,
    "yes": True,
    "fail": False,
    "0": False,
    "false": False,
    "no": False,
}


@dataclass(frozen=True)
class CorrectedRate:
    """A variant's rate of a judge, and the same with the judge's errors taken out.

    Attributes:
        judged: what the judge says.
        estimate, low, high: the rate that people would give, with its confidence limits.
        labelled: trials that people graded.
    """

    judged: Rate
    estimate: float
    low: float
    high: float
    labelled: int


@dataclass(frozen=True)
class Agreement:
    """A judge beside people.

    Attributes:
        grader: the judge.
        agree: the share of trials in which both say the same, every scenario weighing alike.
        passed_both, passed_judge, passed_people, failed_both: how many trials went so.
        corrected: variant → its corrected rate; those alone of which people graded a trial.
    """

    grader: ModelGrader
    agree: Rate
    passed_both: int
    passed_judge: int
    passed_people: int
    failed_both: int
    corrected: Mapping[str, CorrectedRate] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The agreement in one sentence."""
        found = self.agree
        return (
            f"{self.grader.model} agrees with people in {100 * found.estimate:.0f} % ({100 * found.low:.0f} to "
            f"{100 * found.high:.0f}) of {found.trials:,} labelled trials; of the others it passes {self.passed_judge} "
            f"that people fail, and fails {self.passed_people} that people pass"
        )

    def __repr__(self) -> str:
        lines = [f"  {name}: {100 * each.judged.estimate:.0f} % by the judge, {100 * each.estimate:.0f} % "
                 f"({100 * each.low:.0f} to {100 * each.high:.0f}) corrected by {each.labelled} labels"
                 for name, each in self.corrected.items()]  # fmt: skip
        return "\n".join([f"{self.sentence}.", *lines])

    @property
    def df(self) -> pd.DataFrame:
        """One row a variant: the judge's rate, the corrected one, and their limits."""
        import pandas as pd

        return pd.DataFrame([
            {"variant": name, "judged": each.judged.estimate, "judged_low": each.judged.low,
             "judged_high": each.judged.high, "corrected": each.estimate, "low": each.low, "high": each.high,
             "labelled": each.labelled, "trials": each.judged.trials}
            for name, each in self.corrected.items()
        ])  # fmt: skip


def read_labels(labels: Mapping[LabelledTrial, bool] | str | Path) -> dict[LabelledTrial, bool]:
    """Return the labels of people.

    Args:
        labels: (variant, scenario, repeat) → whether it passes; or a CSV file with the columns variant, scenario,
            repeat and label (pass or fail, yes or no, 1 or 0), such as an export of the trials with a column more.
            Rows without a label are left out.

    Raises:
        EvidenceError: the file cannot be read, lacks a column, or holds a label that is none.
    """
    if not isinstance(labels, str | Path):
        return {_place(place): _label(place, said) for place, said in labels.items()}
    path, found = Path(labels).expanduser(), {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            for number, row in enumerate(csv.DictReader(lines), 2):
                said = (row["label"] or "").strip().lower()
                if said and said not in _WORDS:
                    raise EvidenceError(
                        f"{path.name}, row {number}: the label {said!r:.40} is neither pass nor fail; write one of "
                        f"{', '.join(_WORDS)}"
                    )
                if said:
                    place = written_cell(row["variant"]), written_cell(row["scenario"]), int(row["repeat"])
                    found[place] = _WORDS[said]
    except (OSError, UnicodeDecodeError) as error:
        raise EvidenceError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except csv.Error as error:
        raise EvidenceError(
            f"{path.name} is no CSV ({error}); leave out columns of long texts: variant, scenario, repeat and label "
            "are all that is read"
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, EvidenceError):
            raise
        raise EvidenceError(
            f"{path.name} needs the columns variant, scenario, repeat (a whole number) and label"
        ) from error
    return found


def _place(given: LabelledTrial) -> LabelledTrial:
    try:
        variant, scenario, repeat = given
        return str(variant), str(scenario), int(repeat)
    except (TypeError, ValueError) as error:
        raise EvidenceError(f"{given!r:.80} names no trial; give (variant, scenario, repeat)") from error


def _label(place: LabelledTrial, said: object) -> bool:
    """Return a label that is one: a word or a missing value must not pass for True."""
    with suppress(TypeError, ValueError):  # what pandas has for a missing value is equal to nothing
        if said in (True, False):
            return bool(said)
    raise EvidenceError(f"the label {said!r:.40} of {place} is neither True nor False")


def label_verdicts(
    evidence: TrialSet, rows: Mapping[tuple[str, str, str], int], labels: Mapping[LabelledTrial, bool]
) -> list[tuple[int, Verdict]]:
    """Return the labels as verdicts of rows in the file. Raises EvidenceError for a trial that there is not."""
    places = {
        (trial.variant, trial.scenario, trial.repeat): rows[trial.variant, trial.key, trial.source]
        for trials in evidence.by_variant.values()
        for trial in trials
    }
    unknown = [place for place in labels if place not in places]
    if unknown:
        raise EvidenceError(
            f"there is no trial {unknown[0]}: a label names variant, scenario and repeat as study.trials.df does"
        )
    said = {True: passed("a person says so"), False: failed("a person says so")}
    return [(places[place], said[label]) for place, label in labels.items()]


def agreement(evidence: TrialSet, grader: ModelGrader) -> Agreement:
    """Return how far a judge agrees with the labels that the file keeps.

    The corrected rate is the judge's rate over all its trials plus the mean difference, people less judge, over those
    that people labelled (the difference estimator of survey sampling; Angelopoulos et al., 2023, call it
    prediction-powered). Its limits join those of the two parts by MOVER (Zou and Donner, 2008): the judge's rate as
    `rate` gives it, the difference as `difference` does, over scenarios, with Tango's interval.

    Raises:
        EvidenceError: no trial has a verdict of both.
    """
    alike: dict[str, dict[int, float]] = {}
    counts = {(a, b): 0 for a in (0.0, 1.0) for b in (0.0, 1.0)}
    corrected: dict[str, CorrectedRate] = {}
    for variant in evidence.tried:
        judged = evidence.arm(variant, grader.name)
        people = evidence.arm(variant, grader.people)
        pairs = [(scenario, judged[scenario][repeat], label) for scenario, labels in people.items()
                 for repeat, label in labels.items() if repeat in judged.get(scenario, {})]  # fmt: skip
        for scenario, verdict, label in pairs:
            counts[verdict, label] += 1
            own = alike.setdefault(scenario, {})
            own[len(own)] = float(verdict == label)
        if pairs:
            corrected[variant] = _correct(judged, people, len(pairs))
    if not alike:
        raise EvidenceError(_nothing_in_common(evidence, grader))
    return Agreement(
        grader, rate(alike), counts[1.0, 1.0], counts[1.0, 0.0], counts[0.0, 1.0], counts[0.0, 0.0], corrected
    )


def _nothing_in_common(evidence: TrialSet, grader: ModelGrader) -> str:
    labels = sum(
        len(each) for variant in evidence.tried for each in evidence.arm(variant, grader.people).values()
    )
    said = f"no trial has both a verdict of {grader.name} and a label of people"
    if not labels:
        return f"{said}; give some with study.label({grader.name!r}, …)"
    return (
        f"{said}: {count(labels, 'label')} of people {'is' if labels == 1 else 'are'} kept, and the judge gave none of "
        "these trials a verdict that can be read; study.judge() asks about those that it was not asked about yet"
    )


def _correct(
    judged: dict[str, dict[int, float]], people: dict[str, dict[int, float]], labelled: int
) -> CorrectedRate:
    found, gap = rate(judged), difference(judged, people)
    estimate = found.estimate + gap.estimate
    low, high = (-1.0 if gap.low is None else gap.low), (1.0 if gap.high is None else gap.high)
    below = math.hypot(found.estimate - found.low, gap.estimate - low)
    above = math.hypot(found.high - found.estimate, high - gap.estimate)
    return CorrectedRate(
        found, _share(estimate), _share(estimate - below), _share(estimate + above), labelled
    )


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))
