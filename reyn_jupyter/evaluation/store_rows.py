"""What goes into a study's file and comes out of it, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reyn_jupyter.evaluation.scenario import Scenario
from reyn_jupyter.evaluation.trial import Trial
from reyn_jupyter.evaluation.variant import Variant
from reyn_jupyter.evaluation.verdict import Verdict
from reyn_jupyter.runtime.events import Event

Found = tuple[str, str, str]  # what a trial is found by: key, source, ground (see `ground`)


@dataclass(frozen=True)
class Entry:
    """What one trial leaves: the trial, its events, what the checks say of it, and the variant that was tried.

    `ground` is what it stands on besides: the catalog, the study's settings (see `ground.ground_of`).
    """

    trial: Trial
    events: tuple[Event, ...]
    scenario: Scenario
    variant: Variant
    ground: str
    verdicts: Mapping[str, tuple[int, Verdict]]


@dataclass(frozen=True)
class Stored:
    """A trial as it stands in the file, with its row's number and the digests of what was tried."""

    id: int
    trial: Trial
    scenario: str
    behaviour: str
    ground: str
    attempt: int


@dataclass(frozen=True)
class Spent:
    """What the trials of a study have used so far. `unpriced` real trials have no known cost."""

    trials: int = 0
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
