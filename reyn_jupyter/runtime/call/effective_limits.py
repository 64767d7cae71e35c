"""The limits of a call in force: what category and tool declare, and what the settings say in their place."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal

from reyn_jupyter.catalog.action import Category, Tool
from reyn_jupyter.config import Settings
from reyn_jupyter.runtime.action_error import CallTimeoutError


@dataclass(frozen=True)
class CallCap:
    """A cap of calls at once.

    Attributes:
        kind, name: the category or tool whose calls are counted.
        most: how many may run.
        why: which limit says so, for people.
        per: the target of a call, each of which has a cap of its own; None where all calls share one.
    """

    kind: Literal["category", "tool"]
    name: str
    most: int
    why: str
    per: Callable[[dict[str, Any]], Hashable] | None

    def key(self, arguments: dict[str, Any]) -> Hashable:
        """Return what the call is counted under."""
        return (self.kind, self.name, None if self.per is None else self.per(arguments))


@dataclass(slots=True)  # not frozen, like all that is made for one call
class EffectiveLimits:
    """The limits of one call.

    Attributes:
        seconds: its deadline; None for none.
        said_by: what sets the deadline.
        category, tool: those of the call, by their names.
        caps: those of the tool and of the category, in this order for every call.
    """

    seconds: float | None
    said_by: Literal["category", "tool", "setting"]
    category: str
    tool: str
    caps: tuple[CallCap, ...]

    @classmethod
    def of(cls, category: Category, tool: Tool, settings: Settings) -> EffectiveLimits:
        """Return the limits of a tool's calls: the person's word, else the tool's, else the category's."""
        name, own, shared = category.name, tool.limits, category.limits
        seconds = shared.seconds
        said_by: Literal["category", "tool", "setting"] = "category"
        if own.seconds is not None:
            seconds, said_by = own.seconds, "tool"
        if (configured := settings.calls.seconds.get(name)) is not None:
            seconds, said_by = configured, "setting"
        caps = []
        if own.at_once is not None:
            caps.append(CallCap("tool", tool.name, own.at_once, f"{own.at_once} at once", own.at_once_per))
        if (most := settings.calls.at_once.get(name)) is not None:
            caps.append(
                CallCap("category", name, most, f"{most} at once (calls.at_once)", shared.at_once_per)
            )
        elif (most := shared.at_once) is not None:
            caps.append(CallCap("category", name, most, f"{most} at once", shared.at_once_per))
        return cls(seconds, said_by, name, tool.name, tuple(caps))

    def timeout(self, action: str, stopped: bool) -> CallTimeoutError:
        """Return the error of a call that took too long; `stopped` is whether its handler has ended since."""
        limit = {
            "category": f"the category {self.category}",
            "tool": self.tool,
            "setting": f"the setting calls.seconds of {self.category}",
        }[self.said_by]
        end = "" if stopped else " It ignores its cancellation, so it may still be at work."
        return CallTimeoutError(
            f"{action} was stopped after {self.seconds:g} s: {limit} allows a call no more.{end}",
            f"Ask for less at once; the setting calls.seconds: {{{self.category}: …}} moves the limit.",
        )
