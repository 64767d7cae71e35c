"""The trials of a study as people handle them: a table, and one trial with its transcript.

Invariant: these are views of what is stored; only `fork` makes a new trial, and it is stored like every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from reyn_jupyter.evaluation.checks import find_check, is_broken
from reyn_jupyter.evaluation.checks.check import Check
from reyn_jupyter.evaluation.checks.harness_help import HELP_WORDS
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.trial_set import EvidenceError, TrialSet
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.events import Event
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.runtime.record.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

# The columns of a table of trials: before its checks, and after them; between them the kinds of help.
_TRIED = ("variant", "catalog_size", "scenario", "family", "repeat", "phrasing", "source", "outcome")
_FACTS = ("model_calls", "prompt_tokens", "completion_tokens", "cost", "seconds", "retries", "model", "host",
          "fingerprints", "catalog", "code", "started", "error", "answer", "key")  # fmt: skip
_HELP = tuple(f"help_{kind}" for kind in HELP_WORDS)
_EFFORT = ("cost", "model_calls", "seconds")  # checks that read the fact of their name

Replay = Callable[["TrialView"], "TrialView"]
Fork = Callable[["TrialView", Variant], "TrialView"]


@dataclass(frozen=True)
class TrialActions:
    """The services of a study that a view of a trial needs: its events, and ways to run it again."""

    events: Callable[[Trial], tuple[Event, ...]]
    replay: Replay
    fork: Fork


@dataclass(frozen=True, repr=False)
class TrialView:
    """One trial with what was tried.

    Attributes:
        trial: the facts.
        scenario, variant: what was tried.
        checks: the study's.

    Example:
        >>> view = study.trials.failed("first_call_is")[0]   # doctest: +SKIP
        >>> view.transcript, view.verdict("first_call_is")   # doctest: +SKIP
    """

    trial: Trial
    scenario: Scenario
    variant: Variant
    actions: TrialActions = field(repr=False, compare=False)
    checks: tuple[str, ...] = ()
    find: Callable[[str], Check] = field(default=find_check, repr=False, compare=False)

    def __repr__(self) -> str:
        trial = self.trial
        tried = f"{trial.scenario!r}, {trial.variant!r}, repeat={trial.repeat}"
        return f"TrialView({tried}, {trial.source}, {trial.outcome})"

    @property
    def transcript(self) -> Trace:
        """The run as it was, from its stored events."""
        return Trace.from_events(self.actions.events(self.trial))

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Check → its word on the trial, for every check of the study."""
        return {name: self.verdict(name) for name in self.checks}

    def verdict(self, check: str) -> Verdict:
        """Return what a check says of it. Raises UnknownCheckError."""
        return self.find(check).grade(self.trial, self.scenario)

    def replay(self) -> TrialView:
        """Return the trial through today's router loop, with the replies that the model gave then; no model is
        called.

        The result has the source "replayed" and is not stored.
        """
        return self.actions.replay(self)

    def fork(self, variant: Variant) -> TrialView:
        """Return the same scenario and repeat under another variant: run, and stored in the study."""
        return self.actions.fork(self, variant)


class TrialTable:
    """Trials, in the order in which they were stored.

    Example:
        >>> study.trials.of("explicit-3x").failed("task_done").df   # doctest: +SKIP
    """

    def __init__(self, evidence: TrialSet, trials: tuple[Trial, ...], actions: TrialActions) -> None:
        self._evidence = evidence
        self._trials = trials
        self._actions = actions

    def __len__(self) -> int:
        return len(self._trials)

    def __iter__(self) -> Iterator[TrialView]:
        return (self._view(trial) for trial in self._trials)

    @overload
    def __getitem__(self, place: int) -> TrialView: ...
    @overload
    def __getitem__(self, place: slice) -> TrialTable: ...
    def __getitem__(self, place: Any) -> TrialView | TrialTable:
        if isinstance(place, slice):
            return self._only(self._trials[place])
        if isinstance(place, str):
            raise TypeError(f"trials are counted from 0; those of a variant are .of({place!r})")
        if not -len(self) <= place < len(self):
            there = f"{len(self)} are here, from 0 on" if len(self) else "none is here, so nothing to look at"
            raise IndexError(f"there is no trial {place}; {there}")
        return self._view(self._trials[place])

    def __repr__(self) -> str:
        variants = ", ".join(dict.fromkeys(trial.variant for trial in self._trials))
        return f"TrialTable({len(self)} trials of {variants})" if self._trials else "TrialTable(no trials)"

    def of(self, variant: str | Variant) -> TrialTable:
        """Return those of one variant.

        Raises:
            EvidenceError: the study has none of it, or tried other settings under its name.
        """
        name = self._evidence.name_of(variant)
        self._evidence.require_trials(name)
        return self._only(tuple(trial for trial in self._trials if trial.variant == name))

    def failed(self, check: str) -> TrialTable:
        """Return those that fail a check. What is missing, and what it does not apply to, is not among them.

        Raises:
            UnknownCheckError: there is no such check.
            EvidenceError: it gives numbers, which neither pass nor fail, or it could not be asked of a trial.
        """
        return self._where(check, "fail")

    def passed(self, check: str) -> TrialTable:
        """Return those that pass a check. Raises UnknownCheckError, EvidenceError."""
        return self._where(check, "pass")

    @property
    def df(self) -> pd.DataFrame:
        """One row a trial: what was tried, how it ended, a column a check (<NA>: missing or not applicable), effort,
        how the harness helped (a column a kind, empty where that was not recorded), and who answered on which catalog
        and code when (UTC). A check is of pandas' "boolean", or a number.

        The checks `cost`, `model_calls`, `seconds` and `help_…` ask for a fact that has its column anyway; another
        check that is called like a fact has `check_` before its name."""
        import pandas as pd

        graded = {
            f"check_{name}" if name in (*_TRIED, *_FACTS) else name: self._evidence.check(name)
            for name in self._evidence.checks
            if name not in (*_EFFORT, *_HELP)
        }
        columns = [*_TRIED, *graded, *_HELP, *_FACTS]
        rows = [self._row(trial, columns, graded) for trial in self._trials]
        found = pd.DataFrame(rows, columns=columns)
        found["started"] = pd.to_datetime(found["started"], unit="s", utc=True)
        # As objects they would be left out of a mean, and "no price" would be no number.
        kinds = {column: "float64" if check.numeric else "boolean" for column, check in graded.items()}
        numbers = {**dict.fromkeys(_HELP, "float64"), "cost": "float64", "catalog_size": "Int64"}
        return found.astype({**kinds, **numbers})

    def _row(self, trial: Trial, columns: list[str], checks: Mapping[str, Check]) -> list[Any]:
        scenario = self._evidence.scenarios[trial.scenario]
        graded = {column: _verdict_cell(check.grade(trial, scenario)) for column, check in checks.items()}
        marks = ", ".join(trial.fingerprints)
        helped = {
            column: None if trial.helped is None else trial.helped.get(kind, 0)
            for column, kind in zip(_HELP, HELP_WORDS, strict=True)
        }
        size = self._evidence.variants[trial.variant].catalog_size
        row: Mapping[str, Any] = {
            "catalog_size": size,
            "family": scenario.family,
            "fingerprints": marks,
            **helped,
            **graded,
        }
        return [row[name] if name in row else getattr(trial, name) for name in columns]

    def _where(self, check: str, kind: str) -> TrialTable:
        found = self._evidence.check(check)
        if found.numeric:
            raise EvidenceError(
                f"{check} gives a number, which neither passes nor fails; look at trials.df[{check!r}]"
            )
        scenarios = self._evidence.scenarios
        said = [(trial, found.grade(trial, scenarios[trial.scenario])) for trial in self._trials]
        broken = [verdict.reason for _, verdict in said if is_broken(verdict)]
        if broken:
            raise EvidenceError(
                f"{check}: {broken[0]}. So it is with {len(broken)} of {len(said)} trials; mend it and run its cell "
                "again"
            )
        return self._only(tuple(trial for trial, verdict in said if verdict.kind == kind))

    def _only(self, trials: tuple[Trial, ...]) -> TrialTable:
        return TrialTable(self._evidence, trials, self._actions)

    def _view(self, trial: Trial) -> TrialView:
        scenario, variant = self._evidence.scenarios[trial.scenario], self._evidence.variants[trial.variant]
        return TrialView(trial, scenario, variant, self._actions, self._evidence.checks, self._evidence.check)


def _verdict_cell(verdict: Verdict) -> bool | float | None:
    if verdict.kind in ("pass", "fail"):
        return verdict.kind == "pass"
    return verdict.value
