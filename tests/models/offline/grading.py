"""What counts as right: the gold of a request against an answer, the actions that ran, and the files afterwards."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from tests.models.offline.worlds import World

REQUESTS = Path(__file__).with_name("requests.jsonl")
DECLINES = ("I cannot answer that", "I am the offline model")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")

Outcome = Literal["right", "abstained", "wrong"]


@dataclass(frozen=True)
class Verdict:
    """How one request ended, and why."""

    outcome: Outcome
    reason: str = ""


def requests(part: str | None = None) -> list[dict[str, Any]]:
    """The requests, of one part ("development", "held-out") or all."""
    lines = REQUESTS.read_text(encoding="utf-8").splitlines()
    return [request for line in lines if part in (None, (request := json.loads(line))["part"])]


def grade(
    request: dict[str, Any],
    world: World,
    text: str,
    actions: Sequence[str],
    file: Callable[[str], str | None],
) -> Verdict:
    """Grade one answer. `actions` are the resolved names that ran; `file` gives a file's text afterwards."""
    gold = request["gold"]
    if text.startswith(DECLINES):
        return Verdict("right" if gold.get("unanswerable") else "abstained", text[:300])
    if gold.get("unanswerable"):
        return Verdict("wrong", f"answered: {text[:300]}")
    if (
        not any(_in_order(wanted, actions) for wanted in gold["actions"] if wanted != ["list_actions"])
        and ["list_actions"] not in gold["actions"]
    ):
        return Verdict("wrong", f"called {list(actions)}: {text[:200]}")
    for piece in gold.get("contains", ()):
        wanted = str(world.gold(piece[1:])) if piece.startswith("@") else piece
        if wanted.lower() not in text.replace("\\", "").lower():
            return Verdict("wrong", f"lacks {wanted!r}: {text[:300]}")
    if "value" in gold and (why := _lacks(world.gold(gold["value"]), text)):
        return Verdict("wrong", f"{why}: {text[:300]}")
    return _file_verdict(gold.get("file"), file)


def _file_verdict(wanted: dict[str, str] | None, file: Callable[[str], str | None]) -> Verdict:
    if wanted is None:
        return Verdict("right")
    text = file(wanted["path"]) or ""
    if wanted["contains"] not in text or ("lacks" in wanted and wanted["lacks"] in text):
        return Verdict("wrong", f"{wanted['path']} holds {text[:200]!r}")
    return Verdict("right")


def _in_order(wanted: Sequence[str], actions: Sequence[str]) -> bool:
    rest = iter(actions)
    return all(name in rest for name in wanted)


def _lacks(value: Any, text: str) -> str:
    if isinstance(value, pd.Series):
        lines = text.replace("\\", "").splitlines()
        for label, number in value.items():
            words = [str(part).lower() for part in (label if isinstance(label, tuple) else (label,))]
            if not any(
                all(word in line.lower() for word in words) and _holds(line, number) for line in lines
            ):
                return f"no line with {words} and {number}"
        return ""
    return "" if _holds(text, value) else f"lacks {value}"


def _holds(text: str, number: float) -> bool:
    """A whole number must be there exactly, another one to within its rounding."""
    whole = float(number).is_integer() and not isinstance(number, float)
    slack = 0.0 if whole else max(0.0051, 5e-6 * abs(number))
    return any(
        math.isclose(float(found), number, rel_tol=0, abs_tol=slack) for found in _NUMBER.findall(text)
    )


def wilson(hits: int, total: int, z: float = 1.959964) -> tuple[float, float]:
    """The Wilson score interval of a rate (E. B. Wilson, 1927), 95 % by default."""
    if total == 0:
        return 0.0, 1.0
    rate = hits / total
    middle = (rate + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(rate * (1 - rate) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return max(0.0, middle - half), min(1.0, middle + half)
