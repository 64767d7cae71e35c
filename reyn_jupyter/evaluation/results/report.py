"""The report of a study, in the order in which people ask: what to decide, figures, caveats, failures.

Invariants: a report is a projection of stored trials, so it is made again at any time without a model; the primary
check was named in advance, and several comparisons on it are corrected together; a figure that did not come
from a real model is marked where it stands; what is missing or does not apply is counted beside what was graded; of the
caveats, what no real model did, what is missing, and a model that changed are always said, and nothing is said twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from reyn_jupyter.evaluation.checks import CHECKS
from reyn_jupyter.evaluation.checks.check import Check
from reyn_jupyter.evaluation.plan.model_grader import ModelGrader
from reyn_jupyter.evaluation.plan.scenario import Source
from reyn_jupyter.evaluation.results.agreement import agreement
from reyn_jupyter.evaluation.results.comparison import Comparison
from reyn_jupyter.evaluation.results.decision import Decision, compare_with_first, decide
from reyn_jupyter.evaluation.results.effort import Effort, cost_per_success, mean_effort
from reyn_jupyter.evaluation.results.failure_examples import Failure, find_failures
from reyn_jupyter.evaluation.results.failure_kinds import FailureCount, count_failures, failure_lines
from reyn_jupyter.evaluation.results.findings import ClaimFinding, find_claims
from reyn_jupyter.evaluation.results.help_counts import HelpCount, count_help, help_lines
from reyn_jupyter.evaluation.results.recommend import Recommendation, recommend
from reyn_jupyter.evaluation.results.reliability import Predictability, predictability
from reyn_jupyter.evaluation.results.settings_file import RecommendationError
from reyn_jupyter.evaluation.results.trial_set import EvidenceError, TrialSet
from reyn_jupyter.evaluation.statistics.arms import significant
from reyn_jupyter.evaluation.statistics.missing import worst_rate
from reyn_jupyter.evaluation.statistics.rates import Mean, Rate, mean, rate
from reyn_jupyter.support.text import count, enumerate_words

if TYPE_CHECKING:
    import pandas as pd


_NAMED = 4  # variants of a group that are called by their names


@dataclass(frozen=True)
class Figure:
    """One variant under one check.

    Attributes:
        found: the rate or, for a numeric check, the mean; None where the check applies to no trial.
        missing, not_applicable: trials that were left out for that reason.
        awaits_judge: whether somebody is to judge them, and nobody has.
        bounds: the rate if every missing trial had failed, and if every one had passed.
        truth: the true rate, where a simulator's table says it.
        cost_per_success: US dollars for one trial that passes, see `effort.cost_per_success`.
    """

    variant: str
    check: Check
    source: Source
    found: Rate | Mean | None
    missing: int = 0
    not_applicable: int = 0
    bounds: tuple[float, float] | None = None
    truth: float | None = None
    cost_per_success: float | None = None
    awaits_judge: bool = False


@dataclass(frozen=True)
class Report:
    """The findings of a study. Show it in a cell, or export it.

    Attributes:
        evidence: the trials that it is made from.
        figures: variant → check → figure.
        comparisons: the first variant against each other one, on the primary check.
        claims: what was published beside what was found.
        warnings: what stands in the way of believing the figures, most important first.
        did_instead: what failing trials did, by variant and kind, on the check that leads.
        helped: what the harness did for the model, by variant and kind of help.
        failures: scenarios to look at, those first in which two variants disagree.
        families: family → variant → rate on the primary check, for exploration.
        predictability: how often each variant repeats its success, and how well it was foretold.
        efforts: variant → what a trial of it took on average.
    """

    evidence: TrialSet
    figures: Mapping[str, Mapping[str, Figure]]
    comparisons: tuple[Comparison, ...]
    claims: tuple[ClaimFinding, ...] = ()
    warnings: tuple[str, ...] = ()
    did_instead: tuple[FailureCount, ...] = ()
    failures: tuple[Failure, ...] = ()
    families: Mapping[str, Mapping[str, Rate]] = field(default_factory=dict)
    predictability: tuple[Predictability, ...] = ()
    efforts: Mapping[str, Effort] = field(default_factory=dict)
    helped: tuple[HelpCount, ...] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sentence!r})"

    def __str__(self) -> str:
        lines = (
            self.finding,
            *self.rate_lines,
            *(f"  {each}" for each in (*failure_lines(self.did_instead), *help_lines(self.helped))),
            self.advice,
            *((self.sentence, self.others) if self.decision is not None else (self.others,)),
            *(f"- {each}" for each in self.warnings),
        )
        return "\n".join(filter(None, lines))

    @property
    def finding(self) -> str:
        """The finding for somebody who decides, in plain words; see `decision.Decision`."""
        return self.sentence if self.decision is None else self.decision.sentence

    @cached_property
    def decision(self) -> Decision | None:
        """The outcome that leads the report; None where only numbers were measured, or nothing could be graded."""
        return decide(self.evidence)

    @property
    def leading_check(self) -> str:
        """The name of the check that leads the report."""
        return self.evidence.primary if self.decision is None else self.decision.check.name

    @property
    def rate_lines(self) -> tuple[str, ...]:
        """The rates of each variant, a line each, on the check that leads and on the primary one, and what a trial
        costs."""
        names = list(dict.fromkeys((self.leading_check, self.evidence.primary)))
        lines = []
        for variant, found in self.figures.items():
            said = [
                f"{found[name].check.title} {format_figure(found[name])}{_size(found[name])}"
                for name in names
            ]
            effort = self.efforts.get(variant)
            said += [f"{effort.tokens:,.0f} tokens a trial"] if effort is not None else []
            said += [f"${effort.cost:,.4f} a trial"] if effort is not None and effort.cost else []
            source = (
                "" if self.evidence.sources[variant] == "real" else f" [{self.evidence.sources[variant]}]"
            )
            lines.append(f"  {variant}{source}: {', '.join(said)}")
        return tuple(lines)

    @cached_property
    def recommendation(self) -> Recommendation | RecommendationError:
        """The settings to use, as `study.recommend()` gives them, or why there are none."""
        try:
            return recommend(self.evidence)
        except RecommendationError as error:
            return error

    @property
    def advice(self) -> str:
        """The recommendation in plain words, and why it is not the variant that wins the headline; or why there is
        none."""
        found = self.recommendation
        if isinstance(found, RecommendationError):
            return str(found)
        return f"{found.advice} {self._why_not_headline(found)}".rstrip()

    def _why_not_headline(self, found: Recommendation) -> str:
        """Say why the variant that does best on the primary check is not the one to use, where it is not."""
        primary = self.evidence.check(self.evidence.primary)
        if self.leading_check == self.evidence.primary or primary.numeric:
            return ""
        wins = [each for each in self.comparisons if each.winner is not None]
        best = max(wins, key=lambda each: abs(each.difference.estimate), default=None)
        chosen = found.chosen.variant.name
        if best is None or best.winner in (None, chosen):
            return ""
        rates = {} if self.decision is None else self.decision.rates
        if best.winner not in rates or chosen not in rates:
            return ""
        return (
            f"{best.winner} does best on {primary.title}, but that is a means; what counts is {found.check}: "
            f"{100 * rates[best.winner].estimate:.0f} % for {best.winner}, {100 * rates[chosen].estimate:.0f} % for "
            f"{chosen}."
        )

    @property
    def sentence(self) -> str:
        """The sentence with the main finding, which comes first."""
        if self.comparisons:
            return self.comparisons[0].sentence
        for variant, figures in self.figures.items():
            found = figures[self.evidence.primary]
            if found.found is not None:
                return _single_sentence(variant, found)
        missing = sum(self.evidence.missing(variant) for variant in self.evidence.tried)
        return (
            f"No trial could be graded: {missing} ended in an error or a timeout."
            if missing
            else ("There are no graded trials yet.")
        )

    @property
    def others(self) -> str:
        """The results of the comparisons that the sentence does not tell of; "" where it tells of all."""
        rest = self.comparisons[1:]
        groups = (
            ("beats", "beat", [each for each in rest if each.winner == each.b]),
            ("does worse than", "do worse than", [each for each in rest if each.winner == each.a]),
            ("differs from", "differ from", [each for each in rest if each.clear and each.winner is None]),
            ("cannot be told apart from",) * 2 + ([each for each in rest if not each.clear],),
        )
        marks = sorted({source for each in rest for source in each.sources} - {"real"})
        source = f"{' and '.join(marks).capitalize()} trials: " if marks else ""
        told: list[str] = []
        for one, many, found in groups:
            if len(rest) == 1 and found:
                return f"{source}{found[0].b} {one} {found[0].a}."
            if found:
                names = f" ({', '.join(each.b for each in found)})" if len(found) <= _NAMED else ""
                whom = "it" if told else found[0].a
                told.append(f"{len(found)}{names} {one if len(found) == 1 else many} {whom}")
        if not told:
            return ""
        groups_text = enumerate_words(told)
        return f"{source}{'of' if source else 'Of'} the {len(rest)} other variants, {groups_text}."

    @cached_property
    def df(self) -> pd.DataFrame:
        """One row a variant and check: estimate, interval, trials, scenarios, cost, what was left out, source.

        `cost_per_trial` and `cost_per_success` are in US dollars; both are missing where no price is known, the
        second also where nothing passed and for checks that give numbers.
        """
        import pandas as pd

        rows = []
        for variant, figures in self.figures.items():
            effort = self.efforts.get(variant)
            for figure in figures.values():
                found = figure.found
                rows.append(
                    {
                        "variant": variant,
                        "model": self.evidence.variants[variant].model,
                        "check": figure.check.name,
                        "estimate": found.estimate if found else None,
                        "low": found.low if found else None,
                        "high": found.high if found else None,
                        "method": found.method if found else None,
                        "trials": found.trials if found else 0,
                        "scenarios": found.scenarios if found else 0,
                        "icc": found.icc if found else None,
                        "design_effect": found.design_effect if found else None,
                        "effective_n": found.effective_n if found else None,
                        "not_applicable": figure.not_applicable,
                        "missing": figure.missing,
                        "cost_per_trial": effort.cost if effort else None,
                        "cost_per_success": figure.cost_per_success,
                        "truth": figure.truth,
                        "source": figure.source,
                    }
                )
        return pd.DataFrame(rows)


def report(evidence: TrialSet) -> Report:
    """Return the report of a study's trials.

    Raises:
        EvidenceError: there are no trials.
    """
    if not evidence.tried:
        raise EvidenceError(
            "There are no trials to report on; run some with study.run(…). What a file holds of another suite, or of "
            "another version of the code, reyn.Study.open(path) reads."
        )
    figures = {
        variant: {check: figure(evidence, variant, check) for check in evidence.checks}
        for variant in evidence.tried
    }
    comparisons = compare_with_first(evidence, evidence.primary)
    claims = find_claims(evidence)
    return Report(
        evidence,
        figures,
        comparisons,
        claims,
        warnings(evidence, figures, comparisons),
        count_failures(evidence, _leading(evidence)),
        find_failures(evidence),
        _families(evidence),
        tuple(predictability(evidence, variant) for variant in evidence.tried),
        {variant: mean_effort(evidence, variant) for variant in evidence.tried},
        count_help(evidence),
    )


def _leading(evidence: TrialSet) -> str:
    decision = decide(evidence)
    return evidence.primary if decision is None else decision.check.name


def figure(evidence: TrialSet, variant: str, name: str) -> Figure:
    """Return one variant under one check."""
    check = evidence.check(name)
    arm = evidence.arm(variant, name)
    missing = evidence.missing(variant)
    found = (mean(arm) if check.numeric else rate(arm)) if arm else None
    return Figure(
        variant,
        check,
        evidence.sources[variant],
        found,
        missing,
        evidence.not_applicable(variant, name),
        worst_rate(arm, evidence.absent(variant)) if arm and missing and not check.numeric else None,
        evidence.truths.get(variant, {}).get(name),
        cost_per_success(evidence, variant, name),
        evidence.awaits_judge(variant, name),
    )


def format_figure(figure: Figure) -> str:
    """Return a figure in words: ``36 % (26 to 47)``, ``1,240 (1,100 to 1,380)``, ``$0.02``, ``does not apply``."""
    found = figure.found
    if found is None:
        if figure.awaits_judge:
            return "not judged yet"
        return "does not apply" if figure.not_applicable else "no graded trial"
    if figure.check.numeric:
        unit = "$" if figure.check.name == "cost" else ""
        text = f"{unit}{significant(found.estimate)}"
        if found.low is None or found.high is None:
            return text
        return f"{text} ({unit}{significant(found.low)} to {unit}{significant(found.high)})"
    assert isinstance(found, Rate)
    return f"{100 * found.estimate:.0f} % ({100 * found.low:.0f} to {100 * found.high:.0f})"


def _size(figure: Figure) -> str:
    return "" if figure.found is None else f", n = {figure.found.trials:,}"


def _single_sentence(variant: str, figure: Figure) -> str:
    """Return the sentence of a variant that is compared with nothing."""
    found = figure.found
    assert found is not None
    mark = "" if figure.source == "real" else f"{figure.source.capitalize()} trials: "
    rate = format_figure(figure).replace("(", f"({100 * found.level:.0f} % CI ")
    size = f"{count(found.trials, 'trial')} in {count(found.scenarios, 'scenario')}"
    return f"{mark}{rate} on {figure.check.title}, {size}, variant {variant}."


def _families(evidence: TrialSet) -> dict[str, dict[str, Rate]]:
    """Family → variant → rate on the primary check."""
    if evidence.check(evidence.primary).numeric:
        return {}
    found: dict[str, dict[str, Rate]] = {}
    for family in evidence.families():
        arms = {variant: evidence.arm(variant, evidence.primary, family) for variant in evidence.tried}
        found[family] = {variant: rate(arm) for variant, arm in arms.items() if arm}
    return {family: rates for family, rates in found.items() if rates}


_STAND_INS = {
    "offline": "The offline model is a small program; its rates say nothing of a language model.",
    "replayed": "They are recorded replies, sent through today's loop.",
    "scripted": "They show how the measurement works, not how a model behaves.",
    "simulated": "They show how the measurement works, not how a model behaves.",
}


def _say_denied(evidence: TrialSet) -> list[str]:
    """Return which actions trials were denied, in how many of them."""
    tried = {trial.key: trial for trial in evidence.trials}.values()
    times = Counter(name for trial in tried for name in trial.denied)
    if not times:
        return []
    named = ", ".join(f"{name} ({count(number, 'trial')})" for name, number in times.most_common(5))
    more = f" and {len(times) - 5} more actions" if len(times) > 5 else ""
    said = f"Denied, since a trial acts on nothing outside its own workspace: {named}{more}."
    return [f"{said} A study that is to run them names them in allow_actions."]


def _say_judged(evidence: TrialSet, grader: ModelGrader) -> list[str]:
    """Return who judged, what is known of how far it agrees with people, and which verdicts are of another model."""
    by, now = evidence.judged_by(grader), evidence.judges.get(grader.name)
    try:
        known = agreement(evidence, grader).sentence
    except EvidenceError:
        known = "its agreement with people is unknown; label some trials: study.label"
    said = [f"{grader.label} is judged by {enumerate_words(sorted(by)) or grader.model}; {known}."]
    if len(by) > 1:
        each = enumerate_words([f"{number:,} of {judge}" for judge, number in by.most_common()])
        said.append(f"{grader.label}: its figures mix the verdicts of several models: {each}.")
    stale = sum(number for judge, number in by.items() if judge != now)
    if now is not None and stale:
        others = f"{count(stale, 'verdict')} of {by.total():,} {'is' if stale == 1 else 'are'} not of {now}"
        said.append(
            f"{grader.label}: {others}, for which {grader.model} stands now; study.judge() asks it about these trials."
        )
    return said


def warnings(
    evidence: TrialSet, figures: Mapping[str, Mapping[str, Figure]], comparisons: Sequence[Comparison]
) -> tuple[str, ...]:
    """Return what stands in the way of believing a report's figures, most important first."""
    told: list[str] = []
    errors: list[str] = []
    sources = sorted({evidence.sources[name] for name in evidence.tried} - {"real"})
    for source in sources:
        names = [name for name in evidence.tried if evidence.sources[name] == source]
        whose = "These trials" if len(names) == len(evidence.tried) else f"The trials of {', '.join(names)}"
        told.append(f"{whose} are {source}. {_STAND_INS[source]}")
    told += [said for grader in evidence.graders for said in _say_judged(evidence, grader)]
    judged = {grader.name for grader in evidence.graders}
    for name in evidence.checks:
        if name not in CHECKS and name not in judged:
            told.append(
                f"{name} is no check of this session, so its verdicts are those of the run. Run the cell that "
                "defines it to have it asked anew."
            )
        times, why = evidence.broken(name)
        if times:
            graded = len(evidence.verdicts(name))
            told.append(
                f"{name}: {why}. So it is with {times:,} of {count(graded, 'trial')}, which it leaves ungraded."
            )
    for variant, left in evidence.left_out.items():
        counts = ", ".join(f"{count} {source}" for source, count in left.items())
        told.append(f"{variant}: {counts} trials stand apart from its {evidence.sources[variant]} ones.")
    for variant in evidence.tried:
        found = figures[variant][evidence.primary]
        if found.missing:
            bounds = found.bounds
            range_ = (
                f"; its rate lies between {bounds[0]:.0%} and {bounds[1]:.0%} whatever they would have shown"
                if bounds
                else ""
            )
            outcomes = evidence.outcomes(variant)
            how = ", ".join(count(outcomes[kind], kind) for kind in ("error", "timeout") if outcomes[kind])
            told.append(
                f"{variant}: {count(found.missing, 'trial')} {'is' if found.missing == 1 else 'are'} missing "
                f"({how}){range_}.".replace("%", " %")
            )
            error, times = _why_missing(evidence, variant)
            if error:
                errors.append(error)
                told.append(f"{variant}: {error}{f' ({times:,} times)' if times > 1 else ''}")
        marks = evidence.fingerprints(variant)
        if len(marks) > 1:
            told.append(
                f"{variant}: the model changed during the study ({len(marks)} fingerprints: {', '.join(marks[:4])})."
            )
    told += _say_denied(evidence)
    said_once: dict[str, list[str]] = {}
    for variant, found in zip(evidence.tried, _primary(evidence, figures), strict=True):
        for warning in found.found.warnings if found.found is not None else ():
            said_once.setdefault(warning, []).append(variant)
    told += [
        warning if len(variants) == len(evidence.tried) else f"{', '.join(variants)}: {warning}"
        for warning, variants in said_once.items()
    ]
    told += dict.fromkeys(
        f"{each.b} against {each.a}: {warning}" if len(comparisons) > 1 else warning
        for each in comparisons
        for warning in each.warnings
        if warning not in said_once
    )
    # A run notes each variant's first error; the most frequent one stands above already.
    notes = map(str, evidence.provenance.get("notes", ()))
    return (*told, *(note for note in notes if not note.endswith(tuple(errors))))


def _primary(evidence: TrialSet, figures: Mapping[str, Mapping[str, Figure]]) -> list[Figure]:
    return [figures[variant][evidence.primary] for variant in evidence.tried]


def _why_missing(evidence: TrialSet, variant: str) -> tuple[str, int]:
    """Return what most of a variant's missing trials ended with, and how many; "" where none says."""
    errors = Counter(
        trial.error for trial in evidence.by_variant[variant] if trial.outcome == "error" and trial.error
    )
    return errors.most_common(1)[0] if errors else ("", 0)
