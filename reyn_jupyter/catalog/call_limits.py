"""The limits of calls that a category or a tool declares."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CallLimits:
    """How long a call may take, and how many may run at once. None is no limit.

    Args:
        seconds: the deadline of a call, from the start of its handler; waiting for a person does not count.
        at_once: the calls that run at the same time; others wait in the order in which they came.
        at_once_per: the target of a call, by its arguments as the handler gets them (one server, say): `at_once` then
            holds for each target by itself. A pure function.

    Raises:
        ValueError: a limit that no call could keep.

    >>> CallLimits(seconds=30, at_once=2, at_once_per=lambda arguments: arguments["server"]).at_once
    2
    """

    seconds: float | None = None
    at_once: int | None = None
    at_once_per: Callable[[dict[str, Any]], Hashable] | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None and not self.seconds > 0:
            raise ValueError(f"seconds={self.seconds}: a call needs more than 0 seconds; None sets no limit")
        if self.at_once is not None and self.at_once < 1:
            raise ValueError(f"at_once={self.at_once}: one call at least must run; None sets no limit")


NO_LIMITS = CallLimits()
