"""Which variants can be tried at all: found out by one trial each, before many of them run at once.

Invariant: until a trial of a variant has come to an end, no other of it runs; once one met an error that every other
one would meet too (the key, the model's name, the account), none of it starts any more in this run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from reyn_jupyter.evaluation.facts import NOT_THE_VARIANT
from reyn_jupyter.evaluation.trial import Trial
from reyn_jupyter.models.seam import LASTING
from reyn_jupyter.runtime.events import Event, ModelReplied, ModelRequested, RunEnded

_WITHOUT = "Take the variant out, or another discovery."


@dataclass(frozen=True)
class Fault:
    """Why a variant cannot be tried, and what to do about it, a sentence each."""

    why: str
    hint: str = ""


def lasting_fault(trial: Trial, events: Sequence[Event]) -> Fault | None:
    """What no retry and no other scenario would cure, where that ended a trial.

    Args:
        trial: what came of it. One that is replayed met what was recorded for it, and nothing follows for others.
        events: its run's.
    """
    if trial.outcome != "error" or trial.source == "replayed":
        return None
    if any(isinstance(event, ModelRequested) and event.not_forced for event in events):
        return Fault(f"{NOT_THE_VARIANT}.", _WITHOUT)
    last = next((event for event in reversed(events) if isinstance(event, ModelReplied)), None)
    if last is None or last.error is None or last.error_kind not in LASTING:
        return None
    ended = next((event for event in reversed(events) if isinstance(event, RunEnded)), None)
    return Fault(last.error, (ended.hint if ended is not None else None) or "")


class Admission:
    """Lets trials in, by the digest of their variant's behaviour.

    Attributes:
        faults: the behaviours of which nothing starts any more, and why.

    Example:
        >>> async def trial(admission: Admission) -> bool:
        ...     async with admission.turn("a variant"):
        ...         if "a variant" in admission.faults:
        ...             return False
        ...         admission.ended("a variant", Fault("There is no such model."))
        ...         return True
        >>> async def two() -> list[bool]:
        ...     admission = Admission()
        ...     return list(await asyncio.gather(trial(admission), trial(admission)))
        >>> asyncio.run(two())
        [True, False]
    """

    def __init__(self) -> None:
        self.faults: dict[str, Fault] = {}
        self._known: set[str] = set()
        self._alone: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def turn(self, behaviour: str) -> AsyncIterator[None]:
        """Wait until a trial may run: alone, as long as none of its variant has ended."""
        first = self._alone.setdefault(behaviour, asyncio.Lock())
        await first.acquire()
        if behaviour in self._known:
            first.release()
            yield
            return
        try:
            yield
        finally:
            first.release()

    def ended(self, behaviour: str, fault: Fault | None) -> None:
        """A trial came to its end."""
        self._known.add(behaviour)
        if fault is not None:
            self.faults.setdefault(behaviour, fault)


def told(faults: Mapping[str, Fault], named: Iterable[tuple[str, str]]) -> str:
    """What is to be said of variants that cannot be tried.

    Args:
        faults: by the digest of a behaviour.
        named: (name, digest of its behaviour) of each variant.

    Example:
        >>> fault = Fault("There is no key.", "Set OPENAI_API_KEY.")
        >>> told({"d": fault}, [("base", "d"), ("best", "d")])
        'base and best cannot be tried: There is no key. Set OPENAI_API_KEY. Then run it again, and they are tried.'
    """
    found = [(name, faults[behaviour]) for name, behaviour in named if behaviour in faults]
    names: dict[Fault, list[str]] = {}
    for name, fault in found:
        names.setdefault(fault, []).append(name)
    said = [
        f"{' and '.join(each)} cannot be tried: {fault.why.rstrip('.')}. {fault.hint}".strip()
        for fault, each in names.items()
    ]
    return " ".join((*said, f"Then run it again, and {'it is' if len(found) == 1 else 'they are'} tried."))
