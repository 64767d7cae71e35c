"""The policy of capabilities: what plans may do, how long and how often, by the person's file and by the workspace's.

Invariant: a policy that cannot be read whole is an error and never a wider policy; of two policies the stricter holds
in every point, so that the file of a workspace narrows alone. Permission rules hold besides, for each call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reyn_jupyter.config.config_error import ConfigError
from reyn_jupyter.config.layers import user_path
from reyn_jupyter.config.yaml_document import SettingsDocument, parse, read_bytes
from reyn_jupyter.support.files.globs import glob_matches, is_literal
from reyn_jupyter.support.text import count, enumerate_words
from reyn_jupyter.support.validation_messages import fields_at, reason
from reyn_jupyter.workflows.planning.plan import WorkflowPlan, WorkflowStep
from reyn_jupyter.workflows.workflow_error import WorkflowError

POLICY_FILE = "policy.yaml"
_NO_LIMIT = sys.maxsize
_LONGEST_PATTERN = 300


@dataclass(frozen=True)
class CapabilityPolicy:
    """What plans may do.

    Attributes:
        allowed_capabilities: lists of patterns, one of each policy that has one: a step has to fit one pattern of every
            list. Without lists everything is allowed that is not denied.
        denied_capabilities: patterns; whatever fits one is denied, allowed or not.
        max_steps: of a plan.
        max_tool_retries: of a step, after its first attempt.
        max_run_seconds: of a run as a whole.
        max_llm_calls: of the planning of one request.
        require_idempotent_for_auto: whether only steps run that may safely be repeated.
    """

    allowed_capabilities: tuple[tuple[str, ...], ...] = ()
    denied_capabilities: tuple[str, ...] = ()
    max_steps: int = 10
    max_tool_retries: int = 1
    max_run_seconds: float = 600
    max_llm_calls: int = 1
    require_idempotent_for_auto: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the policy as JSON has it."""
        return {
            "allowed_capabilities": [list(each) for each in self.allowed_capabilities],
            "denied_capabilities": list(self.denied_capabilities),
            "max_steps": self.max_steps,
            "max_tool_retries": self.max_tool_retries,
            "max_run_seconds": self.max_run_seconds,
            "max_llm_calls": self.max_llm_calls,
            "require_idempotent_for_auto": self.require_idempotent_for_auto,
        }


DEFAULT_POLICY = CapabilityPolicy()
# What a file of a workspace is read over: where it says nothing it narrows nothing.
UNLIMITED_POLICY = CapabilityPolicy((), (), _NO_LIMIT, _NO_LIMIT, _NO_LIMIT, _NO_LIMIT)


@dataclass(frozen=True)
class PolicyViolation:
    """What of a plan a policy forbids.

    Attributes:
        step_id: the step; None where the plan as a whole is meant.
        capability: the capability or action of the step; "" for the plan.
        reason: why, in a sentence.
    """

    step_id: str | None
    capability: str
    reason: str

    def as_json(self) -> dict[str, Any]:
        """Return the violation as JSON has it."""
        return {"step_id": self.step_id, "capability": self.capability, "reason": self.reason}


@dataclass(frozen=True)
class EffectivePolicy:
    """The policy that holds in a workspace, and the files that it was read from."""

    policy: CapabilityPolicy
    sources: tuple[str, ...] = ()


def read_policy(data: Any, file: str, *, base: CapabilityPolicy = DEFAULT_POLICY) -> CapabilityPolicy:
    """Return the policy that data describe.

    Args:
        data: a mapping of the fields, ``allowed_capabilities`` a list of patterns.
        file: where it is from, for messages.
        base: what holds where the data say nothing.

    Raises:
        WorkflowError: "policy_invalid": an unknown key, a value of a wrong type, or a pattern that could fit nothing;
            ``details["problems"]`` holds every one.

    >>> read_policy({"denied_capabilities": ["drive.*"], "max_steps": 3}, "policy.yaml").max_steps
    3
    """
    try:
        given = _PolicyData.model_validate(data)
    except ValidationError as error:
        problems = [
            ("/".join(("", *map(str, item["loc"]))), reason(item, fields_at(_PolicyData, item["loc"][:-1])))
            for item in error.errors(include_url=False)
        ]
        raise _invalid(file, problems) from None
    lists = {name: getattr(given, name) for name in ("allowed_capabilities", "denied_capabilities")}
    found = [
        (f"/{name}/{at}", said)
        for name, patterns in lists.items()
        for at, pattern in enumerate(patterns or ())
        if (said := _pattern_fault(pattern)) is not None
    ]
    if found:
        raise _invalid(file, found)
    limits = {name: getattr(given, name) for name in given.model_fields_set - lists.keys()}
    allowed, denied = lists["allowed_capabilities"], lists["denied_capabilities"]
    return replace(
        base,
        allowed_capabilities=base.allowed_capabilities + ((tuple(allowed),) if allowed else ()),
        denied_capabilities=tuple(dict.fromkeys((*base.denied_capabilities, *(denied or ())))),
        **limits,
    )


def stricter(one: CapabilityPolicy, other: CapabilityPolicy) -> CapabilityPolicy:
    """Return the policy that allows what both allow."""
    return CapabilityPolicy(
        tuple(dict.fromkeys((*one.allowed_capabilities, *other.allowed_capabilities))),
        tuple(dict.fromkeys((*one.denied_capabilities, *other.denied_capabilities))),
        min(one.max_steps, other.max_steps),
        min(one.max_tool_retries, other.max_tool_retries),
        min(one.max_run_seconds, other.max_run_seconds),
        min(one.max_llm_calls, other.max_llm_calls),
        one.require_idempotent_for_auto or other.require_idempotent_for_auto,
    )


def load_policy(root: Path, is_trusted: Callable[[bytes], bool] = lambda content: False) -> EffectivePolicy:
    """Return the policy of a workspace: what the person's file and the workspace's both allow.

    What neither says is as the defaults have it. The workspace's file goes beyond the defaults only once the person
    trusts it, and never beyond the person's file.

    Args:
        root: the workspace. The person's file lies beside their configuration, see `config.layers.user_path`.
        is_trusted: whether the person trusts the workspace's file with this content.

    Raises:
        WorkflowError: "policy_invalid": one of the files cannot be read whole. Without a file the defaults hold.
    """
    own_path = user_path().with_name(POLICY_FILE)
    own = _document(own_path, str(own_path))
    shared = _document(root / POLICY_FILE, POLICY_FILE)
    policy = DEFAULT_POLICY if own is None else read_policy(own[0].values, own[0].source)
    if shared is not None:
        document, content = shared
        if is_trusted(content):
            said = UNLIMITED_POLICY
            if own is not None:
                said = read_policy(own[0].values, own[0].source, base=UNLIMITED_POLICY)
            policy = stricter(
                said, read_policy(document.values, document.source, base=_defaults_beside(said))
            )
        else:
            policy = stricter(policy, read_policy(document.values, document.source, base=UNLIMITED_POLICY))
    return EffectivePolicy(policy, tuple(each[0].source for each in (own, shared) if each is not None))


def _defaults_beside(said: CapabilityPolicy) -> CapabilityPolicy:
    """Return the defaults of the limits that a policy says nothing of, and no limit where it says one."""
    limits = ("max_steps", "max_tool_retries", "max_run_seconds", "max_llm_calls")
    silent = [name for name in limits if getattr(said, name) == _NO_LIMIT]
    return replace(UNLIMITED_POLICY, **{name: getattr(DEFAULT_POLICY, name) for name in silent})


def forbidden(policy: CapabilityPolicy, names: Iterable[str]) -> str | None:
    """Return why a policy forbids what has these names, or None where it allows it.

    One denied name is enough to forbid it. Of each list of allowed patterns one has to fit one of the names.

    Args:
        policy: the policy in force.
        names: a capability; for an action its category and entry with a dot between, and what capabilities it serves.

    >>> forbidden(CapabilityPolicy(denied_capabilities=("drive.*",)), ["drive.upload"])
    "'drive.upload' is denied by 'drive.*'."
    """
    known = tuple(names)
    for pattern in policy.denied_capabilities:
        for name in known:
            # Letter case is no way around a denial.
            if glob_matches(pattern.casefold(), name.casefold(), crossing=True):
                return f"{name!r} is denied by {pattern!r}."
    for patterns in policy.allowed_capabilities:
        if not any(glob_matches(pattern, name, crossing=True) for pattern in patterns for name in known):
            shown = ", ".join(patterns[:5]) + (", …" if len(patterns) > 5 else "")
            return f"{enumerate_words([repr(each) for each in known], 'or')} is not among what is allowed: {shown}."
    return None


def step_names(step: WorkflowStep) -> tuple[str, ...]:
    """Return the names by which a policy judges a step: its capability, or its action with a dot in the middle.

    >>> step_names(WorkflowStep("a", action="file__read"))
    ('file.read',)
    """
    return (step.capability,) if step.capability is not None else ((step.action or "").replace("__", ".", 1),)


def _own_names(step: WorkflowStep) -> Iterable[str]:
    return ()


def violations(
    plan: WorkflowPlan,
    policy: CapabilityPolicy,
    is_idempotent: Callable[[WorkflowStep], bool],
    *,
    serves: Callable[[WorkflowStep], Iterable[str]] = _own_names,
) -> tuple[PolicyViolation, ...]:
    """Return everything of a plan that a policy forbids; with any, nothing of the plan may run.

    Args:
        plan: its steps and the number of calls of a language model.
        policy: the policy in force.
        is_idempotent: whether a step may safely be repeated.
        serves: the capabilities of the utility that an action runs, so that it is judged by what the utility can do. A
            step of a capability is judged by that alone.
    """
    found = []
    if len(plan.steps) > policy.max_steps:
        found.append(
            PolicyViolation(
                None, "", f"The plan has {count(len(plan.steps), 'step')}; max_steps is {policy.max_steps:,}."
            )
        )
    if plan.llm_calls > policy.max_llm_calls:
        used = count(plan.llm_calls, "call")
        found.append(
            PolicyViolation(
                None,
                "",
                f"Planning took {used} of a language model; max_llm_calls is {policy.max_llm_calls:,}.",
            )
        )
    for step in plan.steps:
        names = (*step_names(step), *(serves(step) if step.action is not None else ()))
        said = forbidden(policy, names)
        if said is not None:
            found.append(PolicyViolation(step.step_id, step.operation, said))
        if policy.require_idempotent_for_auto and not is_idempotent(step):
            needed = "It is not declared safe to repeat, and require_idempotent_for_auto is on."
            found.append(PolicyViolation(step.step_id, step.operation, needed))
    return tuple(found)


class _PolicyData(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    allowed_capabilities: list[str] = Field(default_factory=list, max_length=1_000)
    denied_capabilities: list[str] = Field(default_factory=list, max_length=1_000)
    max_steps: int = Field(default=0, ge=0)
    max_tool_retries: int = Field(default=0, ge=0)
    max_run_seconds: float = Field(default=0, gt=0, allow_inf_nan=False)
    max_llm_calls: int = Field(default=0, ge=0)
    require_idempotent_for_auto: bool = False


def _pattern_fault(pattern: str) -> str | None:
    """Return why a pattern could fit nothing, or None."""
    shown = repr(pattern[:80])
    if not pattern or len(pattern) > _LONGEST_PATTERN or not pattern.isprintable() or " " in pattern:
        return f"{shown} is no pattern; write a capability or a glob, for example drive.upload or drive.*"
    if "__" in pattern:
        return (
            f"{shown} fits nothing: an action is written with a dot, {pattern[:80].replace('__', '.', 1)!r}"
        )
    if "." not in pattern and is_literal(pattern):
        return (
            f"{shown} fits nothing: a capability is domain.action; {pattern[:80] + '.*'!r} is a whole domain"
        )
    return None


def _document(path: Path, source: str) -> tuple[SettingsDocument, bytes] | None:
    """Return what a file says, with its bytes; None where there is none."""
    try:
        content = read_bytes(path, source)
        if content is None:
            return None
        document = parse(content, source)
    except ConfigError as error:
        raise _invalid(source, [("", str(error))]) from None
    if not document.values:
        # A file that was emptied or commented out by mistake must not mean that all is allowed.
        raise _invalid(source, [("", "it says nothing; take it away where no policy is meant")])
    return document, content


def _invalid(file: str, problems: Iterable[tuple[str, str]]) -> WorkflowError:
    listed = [{"file": file, "path": path, "message": message} for path, message in problems]
    said = "; ".join(
        f"{each['path'].lstrip('/').replace('/', '.')}: {each['message']}".lstrip(": ") for each in listed
    )
    return WorkflowError(
        f"The policy {file} cannot be used: {said}.",
        "Nothing of a plan runs until it is mended.",
        "policy_invalid",
        {"problems": listed},
    )
