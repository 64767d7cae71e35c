"""The state of memories: how large, how old, when they were last used, and what they name that is not there.

Invariant: only what can be told is said: a memory of which no use is known is not called unused before it is old.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reyn_jupyter.backends.memory.memory_store import MemoryFacts
from reyn_jupyter.support.text import count, enumerate_words

STALE_DAYS = 90
_DAY = 86_400.0
_NAMED = 3  # files in a reason

# From a memory's action to the time at which it was last read, in seconds since the epoch; None where none is known.
LastUse = Callable[[str], float | None]


@dataclass(frozen=True)
class ReviewedMemory:
    """A memory and its state.

    Attributes:
        used: when it was last read; None where that is not known.
        missing: files that it names and that are not in the workspace.
        why: why it may be of no use any more; "" where nothing speaks against it.
    """

    facts: MemoryFacts
    used: float | None
    missing: tuple[str, ...]
    why: str


def review(
    memories: Iterable[MemoryFacts],
    root: Path,
    last_use: LastUse,
    now: float,
    stale_days: float = STALE_DAYS,
) -> list[ReviewedMemory]:
    """Return memories with their states: first those that something speaks against, the oldest of them first.

    Args:
        memories: those of both layers, since a name tells which one an action reads.
        root: the workspace, where files are looked for.
        now: seconds since the epoch.
        stale_days: days without a change and without a use after which a memory is stale.
    """
    memories = list(memories)
    shared = {each.slug for each in memories if each.layer == "shared"}
    there: dict[str, bool] = {}
    found = []
    for facts in memories:
        used = last_use(f"memory_entry__{entry_name(facts, shared)}")
        missing = tuple(name for name in facts.files if not _is_there(root, name, there))
        last = max(facts.changed, used or 0.0)
        reasons = []
        if now - last > stale_days * _DAY:
            idle = count(int((now - last) / _DAY), "day")
            reasons.append(
                f"not {'read or ' if used else ''}changed for {idle}" + ("" if used else ", no use known")
            )
        if missing:
            more = [f"{len(missing) - _NAMED} more"] if len(missing) > _NAMED else []
            reasons.append(f"names {enumerate_words([*missing[:_NAMED], *more])}, not there any more")
        found.append(ReviewedMemory(facts, used, missing, "; ".join(reasons)))
    return sorted(
        found, key=lambda each: (not each.why, max(each.facts.changed, each.used or 0.0), each.facts.slug)
    )


def entry_name(facts: MemoryFacts, shared: set[str]) -> str:
    """Return the entry under which a memory is read: of the agent's own with a shared slug, with its layer."""
    return f"agent.{facts.slug}" if facts.layer == "agent" and facts.slug in shared else facts.slug


def _is_there(root: Path, name: str, there: dict[str, bool]) -> bool:
    if name not in there:
        try:
            there[name] = ".." in name.split("/") or os.path.lexists(root / name)
        except ValueError:
            there[name] = True
    return there[name]


def as_row(each: ReviewedMemory, now: float) -> dict[str, Any]:
    """Return a reviewed memory as answers have it, times as whole days."""
    facts = each.facts
    row: dict[str, Any] = {
        "layer": facts.layer,
        "slug": facts.slug,
        "name": facts.memory.name,
        "type": facts.memory.type,
        "bytes": facts.size,
        "changed_days_ago": int((now - facts.changed) / _DAY),
        "used_days_ago": None if each.used is None else int((now - each.used) / _DAY),
    }
    if each.missing:
        row["missing_files"] = list(each.missing)
    if each.why:
        row["why_stale"] = each.why
    return row
