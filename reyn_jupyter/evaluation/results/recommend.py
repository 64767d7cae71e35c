"""Recommend settings for a model, from the trials of a study, and written to `reyn.yaml` on request.

The rule is stated, not learned: of the variants of one model, the one that gets most tasks done is the candidate, and
a cheaper one takes its place where it is shown to be no more than `MARGIN` worse (the lower bound of the paired
difference).
Invariants: nothing but trials of a real model ever writes configuration; nothing is recommended of a model that is on
the floor of the suite, where every rate may be 0; the chance that a recommendation is called
clear while another variant is more than `MARGIN` better stays below 5 %, however many were tried and whichever came out
best. One variant is the best in truth, so only its comparisons with each of the others can mislead, and the intervals
are corrected for that many (Bonferroni; the best as in Hsu, 1984).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from reyn_jupyter.evaluation.plan.scenario import Source
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.comparison import ALPHA, Comparison, adjust, compare, other_scenarios
from reyn_jupyter.evaluation.results.decision import leading_check
from reyn_jupyter.evaluation.results.settings_file import RecommendationError, as_yaml, write_settings
from reyn_jupyter.evaluation.results.trial_set import EvidenceError, TrialSet
from reyn_jupyter.evaluation.statistics.rates import Rate, rate
from reyn_jupyter.support.text import count, enumerate_words

MARGIN = 0.05  # of the primary check's rate that a cheaper variant may cost
FEW = 20  # scenarios below which nothing is called clear
_DIFFERENCES = 4  # what is named where no settings are recommended
Confidence = Literal["clear", "leaning", "too little evidence"]
_ROUTER = ("surface", "discovery", "mandate", "reinforcement", "reinforce_with", "edit_rule", "list_schemas",
           "listing_order", "listing_limit", "constrain_names", "repair", "forgive", "names")  # fmt: skip
_WEAK = ("text_calls", "stop_repeats", "check_support", "fit_context", "short_errors", "required_first")


@dataclass(frozen=True)
class Candidate:
    """A variant of the model: its rate on the check that decides, and what a trial of it costs."""

    variant: Variant
    rate: Rate
    tokens: float
    cost: float | None


@dataclass(frozen=True)
class Recommendation:
    """The recommended settings, with the reasons.

    Attributes:
        model: the model that it is for.
        source: where the trials come from.
        chosen: the variant; `best` is the one with the highest rate, which may be another, dearer one.
        candidates: all variants of the model, best first.
        evidence: the chosen variant against each of the others.
        confidence: "clear" when it is shown to be at most `MARGIN` worse than each of the others.
        check: the title of the check that decides.
    """

    model: str
    source: Source
    chosen: Candidate
    best: Candidate
    candidates: tuple[Candidate, ...]
    evidence: tuple[Comparison, ...]
    confidence: Confidence
    check: str
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sentence!r})"

    def __str__(self) -> str:
        return "\n".join((self.sentence, *(f"- {each}" for each in self.warnings), f"- {self.measured_with}"))

    @property
    def tier(self) -> Literal["light", "standard"]:
        """ "light" where the chosen variant holds the model by mandates, a gate or a forced choice, or helps it."""
        variant = self.chosen.variant
        held = variant.discovery != "prompt" or (variant.mandate != "none" and variant.reinforcement > 0)
        helped = any(getattr(variant, name) for name in _WEAK)
        return "light" if held or helped or variant.edit_rule != "none" else "standard"

    @property
    def settings(self) -> dict[str, Any]:
        """Dotted key of `reyn.yaml` → value."""
        variant = self.chosen.variant
        found = {f"router.{name}": getattr(variant, name) for name in _ROUTER}
        found |= {f"router.weak.{name}": getattr(variant, name) for name in _WEAK}
        return {**found, "action_retrieval.hot_list_n": variant.hot_list_n}

    @property
    def sentence(self) -> str:
        """The recommendation in one sentence, with the evidence in brackets."""
        chosen, variant = self.chosen, self.chosen.variant
        share = f"{chosen.rate.estimate:.0%}".replace("%", " %")
        bounds = f"{100 * chosen.rate.low:.0f} to {100 * chosen.rate.high:.0f}"
        return (
            f"{self._mark}{self._use} {self._settings_words} ({variant.name}: {share} on {self.check}, "
            f"95 % CI {bounds}, {chosen.rate.trials} trials in {chosen.rate.scenarios} scenarios; {self._why})."
        )

    @property
    def advice(self) -> str:
        """The recommendation in plain words, and why it is not the variant with the highest rate where it is not."""
        why = {
            "clear": f"a safe choice: no other variant is more than {100 * MARGIN:.0f} points better",
            "leaning": f"not sure yet: another variant may be more than {100 * MARGIN:.0f} points better"
            if self.evidence
            else "nothing else was tried to compare it with",
            "too little evidence": f"too little evidence: try at least {FEW} scenarios",
        }
        said = f"{self._mark}{self._use} {self.chosen.variant.name}: {self._settings_words}; {why[self.confidence]}."
        return f"{said} {self.why_not_best}".rstrip()

    @property
    def why_not_best(self) -> str:
        """Why the variant with the highest rate was not chosen; "" where it was."""
        chosen, best = self.chosen, self.best
        if chosen is best:
            return ""
        return (
            f"Not {best.variant.name}, which has the highest rate on {self.check} ({100 * best.rate.estimate:.0f} % "
            f"against {100 * chosen.rate.estimate:.0f} %): {chosen.variant.name} is shown to be at most "
            f"{100 * MARGIN:.0f} points worse, and takes {chosen.tokens:,.0f} tokens a trial in place of "
            f"{best.tokens:,.0f}."
        )

    @property
    def _mark(self) -> str:
        """The words before a recommendation from trials of no real model."""
        real = self.source == "real"
        return "" if real else f"{self.source.capitalize()} trials, no advice for a real model: "

    @property
    def _use(self) -> str:
        return "use" if self._mark else "Use"

    @property
    def _settings_words(self) -> str:
        variant = self.chosen.variant
        held = f"the {variant.mandate} mandate ×{variant.reinforcement}"
        mandate = "no mandate" if variant.mandate == "none" else held
        helps = [name.replace("_", " ") for name in _WEAK if getattr(variant, name)]
        discovery = f"discovery by {variant.discovery.replace('_', ' ')}"
        settings = enumerate_words([f"the {variant.surface} surface", discovery, mandate, *helps])
        return f"{self.model} as tier {self.tier} with {settings}"

    @property
    def _why(self) -> str:
        return {
            "clear": f"clear: no other is more than {100 * MARGIN:.0f} points better",
            "leaning": "leaning: more scenarios would settle it"
            if self.evidence
            else "leaning: nothing else to compare it with",
            "too little evidence": "too little evidence",
        }[self.confidence]

    @property
    def measured_with(self) -> str:
        """The conditions of the trials that `write` leaves to the session: the rate holds under these."""
        variant = self.chosen.variant
        search = (
            "with search_actions on offer"
            if variant.search
            else "without search_actions, which a session with an embedding model offers (search=True tries it)"
        )
        said = f"Tried {search}, and with at most {variant.max_steps} steps a turn; neither is written to reyn.yaml."
        filled = f" The catalogs were filled up to {variant.catalog_size} actions."
        return said + filled if variant.catalog_size is not None else said

    @property
    def yaml(self) -> str:
        """The lines for `reyn.yaml`."""
        return as_yaml(self.settings)

    @property
    def is_writable(self) -> bool:
        """Whether `write` takes it: trials of a real model, and enough of them."""
        return self._objection is None

    @property
    def _objection(self) -> str | None:
        """Why no configuration is written from it."""
        if self.source != "real":
            return (
                f"These trials are {self.source}: they say how the measurement works, not how a model behaves, "
                "so nothing is written. Run the study with a real model: a tier, or a LiteLLM model string."
            )
        if self.confidence == "too little evidence":
            tried = self.chosen.rate.scenarios
            return f"{tried} scenarios are too few to write configuration from; run at least {FEW}."
        return None

    def write(self, path: str | Path = "reyn.yaml") -> Path:
        """Write the settings into a configuration file; comments and other keys in it stay.

        Raises:
            RecommendationError: the trials are not of a real model, the evidence is too thin, or the file cannot be
                written.
            ConfigError: the file that is there cannot be read; it stays as it is.
        """
        if self._objection is not None:
            raise RecommendationError(self._objection)
        return write_settings(Path(path), self.settings)


def recommend(evidence: TrialSet, model: str | None = None, check: str | None = None) -> Recommendation:
    """Recommend settings for a model.

    Args:
        evidence: a study's trials.
        model: which model, where the study tried several.
        check: what decides; the check that leads a report when None (`decision.leading_check`).

    Raises:
        RecommendationError: no trials, several models and none named, a check that gives numbers, or rates that cannot
            be told from 0, of which the message says what does differ.
        UnknownCheckError: there is no such check.
    """
    tried = [evidence.variants[name] for name in evidence.tried]
    models = list(dict.fromkeys(variant.model for variant in tried))
    if not models:
        raise RecommendationError("There are no trials yet; run some with study.run(…).")
    if model is None and len(models) > 1:
        raise RecommendationError(
            f"The study tried {', '.join(models)}; say which: study.recommend(model={models[0]!r})"
        )
    wanted = model or models[0]
    own = [variant for variant in tried if variant.model == wanted]
    if not own:
        raise RecommendationError(f"There are no trials of {wanted!r}; there are of {', '.join(models)}.")
    aside = [each.name for each in own if each.catalog_size != own[0].catalog_size]
    own = [each for each in own if each.catalog_size == own[0].catalog_size]
    sources = {evidence.sources[variant.name] for variant in own}
    if len(sources) > 1:
        raise RecommendationError(
            f"The variants of {wanted} have {' and '.join(sorted(sources))} trials, which are "
            "never pooled; run them alike."
        )
    decides = check or leading_check(evidence, [variant.name for variant in own])
    if evidence.check(decides).numeric:
        raise RecommendationError(
            f"{decides} gives numbers, and what is recommended is told by a rate; name a check that passes or fails: "
            "study.recommend(check=…)"
        )
    candidates, slight = _candidates(evidence, own, decides)
    if all(each.rate.on_floor for each in candidates):
        refusal = _refuse_floor(evidence, wanted, candidates, decides)
        raise RecommendationError(" ".join((refusal, *_other_size(own[0], aside))))
    best = candidates[0]
    chosen = _cheapest_as_good(evidence, best, candidates[1:], decides)
    others = [other for other in candidates if other is not chosen]
    rivals = adjust(
        [found for other in others if (found := _compare_candidate(evidence, chosen, other, decides))]
    )
    return Recommendation(
        wanted,
        sources.pop(),
        chosen,
        best,
        tuple(candidates),
        rivals,
        _confidence(evidence, chosen, others, decides),
        evidence.check(decides).title,
        (*_warnings(evidence, candidates, rivals), *slight, *_other_size(own[0], aside)),
    )


def _candidates(
    evidence: TrialSet, own: list[Variant], check: str
) -> tuple[list[Candidate], tuple[str, ...]]:
    """Return the variants by their rate, best first; those with too few scenarios stand aside where others have
    enough."""
    found = [_candidate(evidence, variant, check) for variant in own]
    enough = [each for each in found if each.rate.scenarios >= FEW]
    kept = enough or found
    aside = [each.variant.name for each in found if each not in kept]
    said = f"{', '.join(aside)}: fewer than {FEW} scenarios were tried, so not considered."
    return sorted(kept, key=lambda each: (-each.rate.estimate, each.tokens)), (said,) if aside else ()


def _other_size(first: Variant, aside: list[str]) -> tuple[str, ...]:
    """Return what is said of variants that were tried on catalogs of another size: no setting changes a catalog."""
    if not aside:
        return ()
    return (f"{', '.join(aside)}: tried on catalogs of another size than {first.name}, so not considered.",)


def _candidate(evidence: TrialSet, variant: Variant, check: str) -> Candidate:
    arm = evidence.arm(variant.name, check)
    trials = evidence.by_variant[variant.name]
    tokens = sum(trial.prompt_tokens + trial.completion_tokens for trial in trials) / len(trials)
    known = [trial.cost for trial in trials if trial.cost is not None]
    if not arm:
        raise RecommendationError(
            f"{check} applies to no trial of {variant.name!r}; name another check: study.recommend(check=…)"
        )
    return Candidate(variant, rate(arm), tokens, sum(known) / len(known) if known else None)


def _refuse_floor(evidence: TrialSet, model: str, candidates: list[Candidate], check: str) -> str:
    """Return why nothing is recommended of a model that is on the floor of the suite, and what does differ."""
    best, title = candidates[0], evidence.check(check).title
    passed = f"{best.rate.passed:,.0f} of {count(best.rate.trials, 'trial')} ({100 * best.rate.low:.0f} to "
    among = f"the best of {len(candidates)} variants" if len(candidates) > 1 else "the only variant"
    head = (
        f"No settings for {model} can be recommended: its rate on {title} cannot be told from 0. {best.variant.name}, "
        f"{among}, passes {passed}{100 * best.rate.high:.0f} %)"
    )
    few = best.rate.scenarios < FEW
    easier = other_scenarios(evidence.suite, "floor")
    head += f"; try at least {FEW} scenarios." if few else f", on the floor of this suite; {easier}."
    if len(candidates) == 1:
        return head
    found = _what_differs(evidence, candidates, check)
    if not found:
        return f"{head} All other checks of the suite, corrected together, do not tell the variants apart either."
    said = [each.headline for each in found[:_DIFFERENCES]]
    said += [f"{len(found) - _DIFFERENCES} more"] if len(found) > _DIFFERENCES else []
    return f"{head} What does differ: {enumerate_words(said)}."


def _what_differs(evidence: TrialSet, candidates: list[Candidate], check: str) -> list[Comparison]:
    """Return the comparisons with the first variant that are clear in other checks, corrected together."""
    names = [name for name in evidence.tried if any(each.variant.name == name for each in candidates)]
    found: list[Comparison] = []
    for other in evidence.checks:
        for name in names[1:] if other != check else ():
            try:
                found.append(compare(evidence, names[0], name, other))
            except EvidenceError:  # no pair in common that it applies to
                continue
    return [each for each in adjust(found) if each.clear]


def _cheapest_as_good(evidence: TrialSet, best: Candidate, others: list[Candidate], check: str) -> Candidate:
    """Return the cheapest variant that is shown to be at most `MARGIN` worse than the best one; the best one where
    none is."""
    chosen = best
    for other in sorted(others, key=lambda each: each.tokens):
        cheaper = other.tokens < chosen.tokens and not other.rate.on_floor
        if cheaper and _as_good(evidence, other, best, check, len(others)):
            return other
    return chosen


def _as_good(evidence: TrialSet, one: Candidate, other: Candidate, check: str, rivals: int) -> bool:
    """Return whether one variant is shown to be at most `MARGIN` worse than another, among so many comparisons."""
    found = _compare_candidate(evidence, one, other, check, 1 - ALPHA / rivals)
    return found is not None and found.difference.high is not None and found.difference.high <= MARGIN


def _compare_candidate(
    evidence: TrialSet, a: Candidate, b: Candidate, check: str, level: float = 1 - ALPHA
) -> Comparison | None:
    try:
        return compare(evidence, a.variant.name, b.variant.name, check, level=level)
    except EvidenceError:  # no pair in common: nothing can be said of the two
        return None


def _confidence(evidence: TrialSet, chosen: Candidate, others: list[Candidate], check: str) -> Confidence:
    if chosen.rate.scenarios < FEW:
        return "too little evidence"
    settled = all(_as_good(evidence, chosen, other, check, len(others)) for other in others)
    return "clear" if others and settled else "leaning"


def _warnings(
    evidence: TrialSet, candidates: list[Candidate], rivals: tuple[Comparison, ...]
) -> tuple[str, ...]:
    said = []
    if len(candidates) == 1:
        said.append("Only one variant was tried, so there is nothing to compare it with.")
    elif len(rivals) < len(candidates) - 1:
        said.append(
            "Some variants share no scenario and repeat with the chosen one; run them in one study.run(…)."
        )
    for candidate in candidates:
        missing = evidence.missing(candidate.variant.name)
        if missing:
            said.append(
                f"{candidate.variant.name}: {missing} trials ended in an error or a timeout and count for nothing."
            )
    return tuple(said)
