"""One attempt of a model at a scenario under a variant, and the facts that checks read from it.

Invariants: a trial never changes once written; its key says what was tried, so that a study knows which trials are
missing; the facts are a projection of the run's events (resolved action names), made once, when the run is over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from reyn_jupyter.evaluation.plan.scenario import Scenario, Source
from reyn_jupyter.evaluation.plan.validation import FrozenModel
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.models.base import canonical
from reyn_jupyter.runtime.record.call_facts import CallFact, Surface
from reyn_jupyter.support.text import count

Outcome = Literal["ok", "error", "timeout", "limit"]
MISSING: tuple[Outcome, ...] = ("error", "timeout")  # neither a success nor a failure


def trial_key(scenario: Scenario, variant: Variant, repeat: int, code: str) -> str:
    """Return what a trial is found by: SHA-256 over scenario, variant (its name aside), repeat and code version, in
    hex.

    >>> s = Scenario(id="a", family="f", prompts={"natural": "Hi"})
    >>> trial_key(s, Variant("x"), 0, "1") == trial_key(s, Variant("y"), 0, "1")
    True
    """
    return key_of(scenario.digest, variant.behaviour_digest, repeat, code)


def key_of(scenario: str, behaviour: str, repeat: int, code: str) -> str:
    """Return the key of a trial from the digests of what was tried, as `trial_key` does."""
    parts = [scenario, behaviour, repeat, code]
    return hashlib.sha256(canonical(parts)).hexdigest()


class FileFact(FrozenModel):
    """A workspace file after the trial: its text where it is one (at most 64 KiB), and whether it differs."""

    exists: bool = True
    text: str | None = None
    sha256: str | None = None
    changed: bool = False


class Trial(FrozenModel):
    """One trial.

    Attributes:
        key: see `trial_key`.
        scenario, variant, repeat, code: what was tried; the scenario's id and the variant's name.
        phrasing: the name of the prompt that was used.
        surface: what the model was offered, an automatic surface resolved; on the flat one there is nothing to list.
        source: whether a real model answered; everything else is marked wherever it is shown.
        outcome: "error" (the model or its provider failed), "timeout", "limit" (steps, tokens, cost,
            context) or "ok".
        calls: every tool call, in order.
        cut_off: whether the model's last reply reached its limit of tokens; None where the version that ran the trial
            did not record it.
        helped: how often the harness helped, by kind (see `Help`; "shrunk" counts messages that were shortened to fit
            the context), kinds with 0 left out; None where the version that ran the trial did not record it.
        denied: the actions that were denied because they act outside the workspace and the study does not allow them.
        files: path → the file afterwards, for files that changed and for those that the scenario expects something of.
        model_calls, prompt_tokens, completion_tokens, cost (US dollars, None where unknown), seconds, retries: effort.
        model, host, fingerprints: who answered; more than one fingerprint means that the model changed meanwhile.
        catalog: the hash of the scenario's frozen catalog, without what a variant leaves out of it or adds.
        started: seconds since the epoch.
        run: the id of the run, whose events the study keeps.
    """

    key: str
    scenario: str
    variant: str
    repeat: int = Field(ge=0)
    code: str
    phrasing: str = ""
    surface: Surface = "universal"
    source: Source
    outcome: Outcome = "ok"
    error: str | None = None
    answer: str = ""
    cut_off: bool | None = None
    calls: tuple[CallFact, ...] = ()
    denied: tuple[str, ...] = ()
    helped: Mapping[str, int] | None = None
    files: Mapping[str, FileFact] = Field(default_factory=dict)
    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    retries: int = 0
    model: str = ""
    host: str | None = None
    fingerprints: tuple[str, ...] = ()
    catalog: str = ""
    started: float = 0.0
    run: str = ""


@dataclass(frozen=True)
class TrialUsage:
    """The usage of some trials: model calls, tokens, US dollars. `unpriced` real ones among them have no known cost."""

    trials: int = 0
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0

    @classmethod
    def of(cls, trial: Trial) -> TrialUsage:
        """Return what one trial used."""
        tokens = trial.prompt_tokens + trial.completion_tokens
        unpriced = trial.source == "real" and trial.cost is None and tokens > 0
        return cls(1, trial.model_calls, tokens, trial.cost or 0.0, int(unpriced))

    def __add__(self, other: TrialUsage) -> TrialUsage:
        return TrialUsage(*(here + there for here, there in zip(self._figures, other._figures, strict=True)))

    def __sub__(self, other: TrialUsage) -> TrialUsage:
        """Return what is left, never below nought: sums of dollars are not exact."""
        left = (here - there for here, there in zip(self._figures, other._figures, strict=True))
        trials, calls, tokens, usd, unpriced = (max(0, each) for each in left)
        return TrialUsage(trials, calls, tokens, round(usd, 12), unpriced)

    @property
    def _figures(self) -> tuple[Any, ...]:
        return self.trials, self.calls, self.tokens, self.usd, self.unpriced

    @property
    def sentence(self) -> str:
        """In words, of trials that did not come to an end; "" where nothing was used.

        >>> TrialUsage(2, 3, 0, 0.25).sentence
        '2 trials that did not come to an end used 3 model calls ($0.2500), which count for the budget alone'
        """
        if not self.calls:
            return ""
        tokens = f"{self.tokens:,} tokens in " if self.tokens else ""
        price = f" (${self.usd:,.4f})" if self.usd else ""
        return (
            f"{count(self.trials, 'trial')} that did not come to an end used {tokens}{count(self.calls, 'model call')}"
            f"{price}, which count for the budget alone"
        )
