"""The rows of a study's file, as plain values.

Invariant: equal trials have equal rows, and a row names what it holds: its digest is over all of it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.trial.trial import Trial, TrialUsage
from reyn_jupyter.models.base import canonical
from reyn_jupyter.runtime.record.events import Event
from reyn_jupyter.runtime.record.verdict import Verdict

Found = tuple[str, str, str]  # what a trial is found by: key, source, ground (see `plan.conditions`)


@dataclass(frozen=True)
class TrialEntry:
    """The rows that one trial leaves: the trial, its events, what the checks say of it, and the variant that was tried.

    `conditions` is what it stands on besides: the catalog, the study's settings (see `conditions.conditions_of`).
    """

    trial: Trial
    events: tuple[Event, ...]
    scenario: Scenario
    variant: Variant
    conditions: str
    verdicts: Mapping[str, tuple[int, Verdict]]


@dataclass(frozen=True)
class StoredTrial:
    """A trial as it stands in the file, with its row's number and the digests of what was tried."""

    id: int
    trial: Trial
    scenario: str
    behaviour: str
    conditions: str
    attempt: int


@dataclass(frozen=True)
class StudyUsage(TrialUsage):
    """The usage of the `trials` of a study so far, and in the same figures that of others that did not come to an
    end (`unfinished`), so that they are no trials."""

    unfinished: TrialUsage = field(default_factory=TrialUsage)


def trial_row(run: str, entry: TrialEntry, attempt: int, events: int, facts: str) -> tuple[Any, ...]:
    """Return a trial's columns from `key` to `data`, in the order of the table."""
    trial = entry.trial
    return (
        trial.key, trial.source, entry.conditions, attempt, run, entry.scenario.digest, entry.variant.behaviour_digest,
        trial.repeat, trial.code, trial.outcome, trial.model_calls, trial.prompt_tokens + trial.completion_tokens,
        None if trial.cost is None else float(trial.cost), float(trial.seconds), events, facts,
    )  # fmt: skip


def digest_of_text(text: str | bytes, *without: str) -> str:
    """Return the digest of a scenario or a variant that is stored as JSON, as it was when it was stored.

    It is over what the text says, not over what this version makes of it: a field that was added since has no part.

    Args:
        text: JSON of an object.
        without: fields that are no part of the digest, such as the name of a variant's behaviour.

    Raises:
        ValueError: the text is no JSON of an object.
    """
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    kept = {key: value for key, value in found.items() if key not in without}
    return hashlib.sha256(canonical(kept)).hexdigest()


def digest_of(row: Iterable[Any], events: Iterable[bytes] = ()) -> bytes:
    """SHA-256 over the columns of a row, and over a trial's events.

    Example:
        >>> digest_of(("key", 1, None), [b"{}"]).hex()[:8]
        '0cc923d1'
    """
    digest = hashlib.sha256(json.dumps(list(row)).encode())
    for event in events:
        digest.update(b"\n%d\n" % len(event))
        digest.update(event)
    return digest.digest()


def verdict_row(number: int | None, check: str, version: int, verdict: Verdict) -> tuple[Any, ...]:
    """Return the columns of a verdict on a trial. SQLite refuses the lone surrogates that a model may write."""
    reason = verdict.reason.encode(errors="replace").decode()
    return number, check, version, verdict.kind, verdict.value, reason, plain_json(verdict.evidence)


def name_taken(variant: Variant, other: Variant) -> str:
    """Return what to say of a variant whose name another one has."""
    moved = ", ".join(
        f"{field}={there!r}, not {here!r}" for field, (here, there) in variant.differences(other).items()
    )
    return (
        f"The study knows another variant {variant.name!r} ({moved}). "
        f"Give this one a name of its own: variant.but({variant.name + '-2'!r})."
    )


def plain_json(value: Any) -> str:
    """JSON of whatever a run notes of itself."""
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)
