"""Evidence of any shape without a run: trials that list first or do not, and that end as told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reyn_jupyter.evaluation.plan.scenario import AcceptedCall, Gold, Scenario, Source
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.trial_set import TrialSet
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.runtime.record.call_facts import CallFact

LISTS = CallFact(step=1, wrapper="list_actions", ok=True, listed=("file__read",))
READS = CallFact(step=2, wrapper="invoke_action", name="file__read", args={"path": "notes.md"}, ok=True)
BLIND = CallFact(step=1, wrapper="invoke_action", name="file__read", args={"path": "notes.md"}, ok=True)
CHECKS = ("first_call_is", "task_done", "tokens")
Outcomes = Sequence[bool | str]  # whether a trial lists first, or how it ended instead


def scenario(identity: str, **fields: Any) -> Scenario:
    """A scenario that is solved by reading a file."""
    gold = Gold(steps=((AcceptedCall(action="file__read", args={"path": ("notes.md",)}),),))
    known = {
        "family": "discover",
        "prompts": {"natural": "What do the notes say?"},
        "says": ("hello",),
        "gold": gold,
    }
    return Scenario(id=identity, **{**known, **fields})


def trial(variant: str, identity: str, repeat: int, lists: bool | str, **fields: Any) -> Trial:
    """A trial that lists first or not; a word in place of that is the outcome of one that says nothing."""
    known: dict[str, Any] = {
        "key": f"{variant}:{identity}:{repeat}", "scenario": identity, "variant": variant, "repeat": repeat,
        "code": "1", "source": "real", "model": "gpt-mini", "prompt_tokens": 1_000, "completion_tokens": 200,
        "model_calls": 3, "seconds": 2.0, "cost": 0.001, "answer": "The notes say hello.", "fingerprints": ("fp_1",),
        "catalog": "c1", "started": float(repeat),
    }  # fmt: skip
    if isinstance(lists, str):
        known |= {"outcome": lists, "error": f"it ended as {lists}", "answer": ""}
    else:
        known["calls"] = (LISTS, READS) if lists else (BLIND,)
    return Trial(**{**known, **fields})


def evidence(
    arms: Mapping[str, Mapping[str, Outcomes]],
    *,
    sources: Mapping[str, Source] | None = None,
    variants: Mapping[str, Variant] | None = None,
    tokens: Mapping[str, int] | None = None,
    more: Sequence[Trial] = (),
    forecast: float | None = None,
    families: Mapping[str, str] | None = None,
    **fields: Any,
) -> TrialSet:
    """Evidence of variants: variant → scenario → one outcome a repeat."""
    trials = [
        trial(name, identity, repeat, lists, source=(sources or {}).get(name, "real"),
              prompt_tokens=(tokens or {}).get(name, 1_000))
        for name, arm in arms.items() for identity, outcomes in arm.items() for repeat, lists in enumerate(outcomes)
    ]  # fmt: skip
    identities = dict.fromkeys(
        [*(each for arm in arms.values() for each in arm), *(t.scenario for t in more)]
    )
    scenarios = {
        each: scenario(each, forecast=forecast, family=(families or {}).get(each, "discover"))
        for each in identities
    }
    known = {name: Variant(name, model="gpt-mini") for name in arms}
    given: dict[str, Any] = {"suite": "small", "primary": "first_call_is", "checks": CHECKS, **fields}
    return TrialSet(
        scenarios=scenarios, variants=known | dict(variants or {}), trials=[*trials, *more], **given
    )


def many(count: int, *outcomes: bool | str) -> dict[str, Outcomes]:
    """The same outcomes in so many scenarios."""
    return {f"s{number:03}": outcomes for number in range(count)}


def mixed(passing: int, count: int, repeats: int = 1) -> dict[str, Outcomes]:
    """Scenarios of which the first ones list first in every repeat."""
    return {f"s{number:03}": (number < passing,) * repeats for number in range(count)}
