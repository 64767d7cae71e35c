"""Read how a request holds the model to the catalog, from wording and tools alone.

Invariant: pure functions of the system prompt's text, the tools and the person's text; what changes from day to day
(folder, date) is not read, so that the same question under the same settings has the same features in every trial.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

from reyn_jupyter.evaluation.models.simulator.stopwords import OPERATIONS
from reyn_jupyter.models.base import Request, ToolSet, canonical

_DYNAMIC = "\n## Now\n"
_WORD = re.compile(r"[a-z]+")
_CATEGORY = re.compile(r"^- ([a-z][\w.-]*): (.+)$", re.MULTILINE)
_NAMES = re.compile(r"^Actions: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class RequestFeatures:
    """The ways in which a request holds the model to the catalog.

    Attributes:
        mandate: the wording of the list-first mandate: none, generic, or explicit (it enumerates operations).
        times: how often it stands in the prompt.
        edit_rule: the wording of the rule to edit in place.
        names: action names that the prompt shows.
        surface: "flat" when actions are offered as tools alone.
        categories: (name, capability) of the categories that the prompt lists.
        schemas_promised: whether the prompt says that listings show arguments.
        direct: names of tools that stand for actions.
        constrained: names that `action_name` is narrowed to.
        parameters: the model's own parameters, as canonical JSON.
    """

    mandate: Literal["none", "generic", "explicit"] = "none"
    times: int = 0
    edit_rule: Literal["none", "reasoned", "must"] = "none"
    names: tuple[str, ...] = ()
    surface: Literal["universal", "flat"] = "universal"
    categories: tuple[tuple[str, str], ...] = ()
    schemas_promised: bool = True
    direct: tuple[str, ...] = ()
    constrained: tuple[str, ...] = ()
    parameters: str = "{}"

    @cached_property
    def arm(self) -> str:
        """A digest of everything but the names just listed, which change from step to step."""
        plain = {key: value for key, value in asdict(self).items() if key != "constrained"}
        return hashlib.blake2b(canonical(plain), digest_size=12).hexdigest()


@dataclass(frozen=True)
class _Said:
    """The features that the system prompt shows."""

    mandate: Literal["none", "generic", "explicit"]
    times: int
    edit_rule: Literal["none", "reasoned", "must"]
    names: tuple[str, ...]
    categories: tuple[tuple[str, str], ...]
    schemas_promised: bool


def features(request: Request) -> RequestFeatures:
    """Return the features of a request. Costs a few dictionary look-ups once a prompt and its tools were seen."""
    first = request.messages[0] if request.messages else None
    system = first.content if first is not None and first.role == "system" else ""
    offered = tools(request.tools)
    return _features(
        _static(system),
        offered.direct,
        offered.wrappers,
        offered.constrained,
        _parameters(request.parameters),
    )


@lru_cache(1024)
def _features(
    prompt: str,
    direct: tuple[str, ...],
    wrappers: frozenset[str],
    constrained: tuple[str, ...],
    parameters: str,
) -> RequestFeatures:
    said = _prompt_features(prompt)
    return RequestFeatures(
        mandate=said.mandate,
        times=said.times,
        edit_rule=said.edit_rule,
        names=said.names,
        surface="universal" if "invoke_action" in wrappers else "flat",
        categories=said.categories,
        schemas_promised=said.schemas_promised,
        direct=direct,
        constrained=constrained,
        parameters=parameters,
    )


def _static(system: str) -> str:
    return system.rpartition(_DYNAMIC)[0] or system


def _parameters(parameters: Mapping[str, Any]) -> str:
    return canonical(dict(parameters)).decode("utf-8", "replace") if parameters else "{}"


@lru_cache(256)
def _prompt_features(prompt: str) -> _Said:
    mandates: list[bool] = []
    edit_rule: Literal["none", "reasoned", "must"] = "none"
    for line in prompt.splitlines():
        words = set(_WORD.findall(line.lower()))
        if "list_actions" in line and "first" in words:
            mandates.append(len(words & OPERATIONS) >= 2)
        elif words & {"edit", "edits", "change", "changes"} and {"not", "rest"} & words:
            edit_rule = "must" if "must" in words else "reasoned" if "prefer" in words else edit_rule
    named = _NAMES.search(prompt)
    return _Said(
        mandate="none" if not mandates else "explicit" if any(mandates) else "generic",
        times=len(mandates),
        edit_rule=edit_rule,
        names=tuple(named[1].split(", ")) if named else (),
        categories=tuple((name, line) for name, line in _CATEGORY.findall(_categories(prompt))),
        schemas_promised="and the arguments it takes" in prompt,
    )


def _categories(prompt: str) -> str:
    return prompt.partition("## Action categories\n")[2].partition("\n\n")[0]


@dataclass(frozen=True)
class Tools:
    """The tools of a request: which are wrappers, which stand for actions, and what a call may name."""

    wrappers: frozenset[str]
    direct: tuple[str, ...]
    constrained: tuple[str, ...]


WRAPPERS = ("list_actions", "describe_action", "invoke_action", "search_actions", "inspect")
_TOOLS: dict[bytes, Tools] = {}
_MOST_TOOLS = 256


def tools(offered: ToolSet) -> Tools:
    """Return the tools sorted out; remembered by their digest."""
    known = _TOOLS.get(offered.digest)
    if known is None:
        if len(_TOOLS) >= _MOST_TOOLS:
            _TOOLS.clear()
        enum: Any = ()
        for spec in offered.specs:
            function = spec["function"]
            if function["name"] == "invoke_action":
                enum = (
                    function.get("parameters", {})
                    .get("properties", {})
                    .get("action_name", {})
                    .get("enum", ())
                )
        known = _TOOLS[offered.digest] = Tools(
            frozenset(name for name in offered.names if name in WRAPPERS),
            tuple(name for name in offered.names if name not in WRAPPERS),
            tuple(str(name) for name in enum),
        )
    return known
