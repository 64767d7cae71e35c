"""A run of a plan as it stands: its steps, how each ended, and how the whole did.

Invariant: what is not known to have worked is never called done. A step that was under way when its run ended keeps a
status of its own, since it may have done a part of its work.
Source: the architecture of utilities and skills, 4 "workflow-executor"; its exit codes.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reyn_jupyter.catalog.names import SEPARATOR
from reyn_jupyter.workflows.planning.plan import WorkflowPlan, WorkflowStep

WorkflowRunStatus = Literal[
    "running",
    "executed",
    "preview",
    "partly_done",
    "completed_with_skips",
    "partial-complete",
    "unroutable",
    "blocked_by_policy",
    "execution_failed",
    "interrupted",
]
StepStatus = Literal[
    "waiting", "running", "done", "failed", "timed_out", "skipped", "interrupted", "not_run", "preview"
]
EXIT_CODES: Mapping[WorkflowRunStatus, int] = {
    "executed": 0,
    "preview": 0,
    "partly_done": 0,
    "completed_with_skips": 0,
    "execution_failed": 1,
    "partial-complete": 2,
    "unroutable": 3,
    "blocked_by_policy": 4,
    "interrupted": 130,  # as a shell has it after Ctrl-C
    "running": 1,
}
UNDONE = ("failed", "skipped")  # outputs that list what a step could not do
PARTLY_DONE = "partly_done"  # in what a workflow gives, a sentence on what it did not do
UNDER_WAY: tuple[StepStatus, ...] = (
    "running",
    "timed_out",
    "interrupted",
)  # may have done part of their work


@dataclass(frozen=True)
class StepArtifact:
    """A file or folder that a step made or read: its path, its SHA-256 ("" if missing or unread), its bytes."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True)
class StepSources:
    """What a step reads and writes in place, as its call declares it.

    Attributes:
        reads: Files and folders from the workspace's root on, without those that it writes.
        writes: Files that it writes in place.
        unchecked: What else it may read, whose changes cannot be known: hosts, a command's files; "" if nothing.
        is_open: Whether it reads something of the session that is not compared: variables, memory, a corpus. Such a
            step is run again if that is safe.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    unchecked: str = ""
    is_open: bool = False


@dataclass(frozen=True)
class StepAttempt:
    """One try of a step: when it began (seconds since the epoch), how long it took, and its error, "" for none."""

    started_at: float
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class StepRun:
    """A step of a run.

    Attributes:
        step_id: of the plan's step.
        operation: its capability, or its action.
        tool: the utility that serves it, ``name@version``; None for an action.
        status: "done"; "failed"; "timed_out" where the time of the run or of the call was over; "skipped" where its
            failure was let pass, or where it needs what such a step did not give; "interrupted" where it was under
            way when the run was; "not_run" where the run ended before; "waiting", "running" and "preview".
        inputs: what it was given, with references replaced.
        outputs: what it gave; empty unless it is done.
        attempts: its tries in this run, in their order.
        error: ``{"code", "message", "hint", "details"}`` of the last one that failed; the last two where there are any.
        reason: why it did not run, in a sentence; "" where it did.
        artifacts: files that it made.
        tool_digest: the digest of what served it.
        carried: whether its result is that of an earlier start of the run, which was not run again.
        log: the end of what its program wrote on standard error in its last try.
        reads: What it read of the workspace, as it was before the step ran.
        writes: Files that it wrote in place, as they were after it.
        unchecked: What else it may have read, whose changes cannot be known; "" if nothing.
        again: Why it was run again although it was done before; "" if it was not.
    """

    step_id: str
    operation: str
    tool: str | None = None
    status: StepStatus = "waiting"
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    attempts: tuple[StepAttempt, ...] = ()
    error: Mapping[str, Any] | None = None
    reason: str = ""
    artifacts: tuple[StepArtifact, ...] = ()
    tool_digest: str = ""
    carried: bool = False
    log: str = ""
    reads: tuple[StepArtifact, ...] = ()
    writes: tuple[StepArtifact, ...] = ()
    unchecked: str = ""
    again: str = ""

    @classmethod
    def of(cls, step: WorkflowStep, status: StepStatus = "waiting", reason: str = "") -> StepRun:
        """Return a step that has not run."""
        return cls(step.step_id, step.operation, step.tool, status, reason=reason)

    @property
    def seconds(self) -> float:
        """How long its tries took together."""
        return sum(attempt.seconds for attempt in self.attempts)

    @property
    def undone(self) -> str:
        """How much of its work a step that is done reports as not done: "1 of 3", or "" for nothing."""
        return undone_part(self.outputs) if self.status == "done" else ""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it, for models and programs."""
        return {
            "step_id": self.step_id,
            "operation": self.operation,
            "capability": None if SEPARATOR in self.operation else self.operation,
            "tool": self.tool,
            "status": self.status,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "attempts": len(self.attempts),
            "seconds": round(self.seconds, 3),
            "error": self.error,
            **({"reason": self.reason} if self.reason else {}),
            **({"artifacts": [each.path for each in self.artifacts]} if self.artifacts else {}),
            **({"carried": True} if self.carried else {}),
            **({"again": self.again} if self.again else {}),
            **({"unchecked": self.unchecked} if self.unchecked else {}),
            **({"log": self.log} if self.log else {}),
        }


@dataclass(frozen=True)
class WorkflowRun:
    """A run of a plan that has ended, or that never began.

    Attributes:
        run_id: names its file.
        status: how it ended; its number for a command line is `exit_code`.
        steps: in the order of the plan.
        outputs: what each step that is done gave, by its id.
        text: for people: what was done, and what was not.
        missing: the operations that were not done, ``<step_id> <capability>``.
        seconds: how long it took.
        problem: what went wrong beside the steps: a file of the run that cannot be written, say; "" for nothing.
    """

    run_id: str
    status: WorkflowRunStatus
    steps: tuple[StepRun, ...] = ()
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    text: str = ""
    missing: tuple[str, ...] = ()
    seconds: float = 0.0
    problem: str = ""

    @property
    def exit_code(self) -> int:
        """The number that a command would end with."""
        return EXIT_CODES[self.status]

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it, for models and programs."""
        return {
            "run_id": self.run_id,
            "status": self.status,
            "exit_code": self.exit_code,
            "steps": [step.as_json() for step in self.steps],
            "outputs": dict(self.outputs),
            "text": self.text,
            "missing": list(self.missing),
            "seconds": round(self.seconds, 3),
            **({"problem": self.problem} if self.problem else {}),
        }


def unrunnable_status(plan: WorkflowPlan) -> Literal["partial-complete", "unroutable"] | None:
    """Return the status with which a plan ends before it begins, None where it can run."""
    if plan.status == "unroutable" or not plan.steps:
        return "unroutable"
    unserved = any(step.action is None and step.tool is None for step in plan.steps)
    return "partial-complete" if plan.gaps or plan.status != "complete" or unserved else None


def as_outputs(value: Any) -> dict[str, Any]:
    """Return what an action gave as the outputs of its step: an object as it is, anything else as its ``result``.

    >>> as_outputs({"rows": 3}), as_outputs([1, 2])
    ({'rows': 3}, {'result': [1, 2]})
    """
    return dict(value) if isinstance(value, Mapping) else {"result": value}


def undone_part(outputs: Mapping[str, Any]) -> str:
    """Return how much of its work a program reports as not done, or "" for nothing.

    By convention, the output "failed" or "skipped" lists what could not be done. The total is known if there is one
    other list among the outputs: what was done.

    >>> undone_part({"thumbnails": ["a.jpg", "b.jpg"], "skipped": ["c.png"]}), undone_part({"skipped": []})
    ('1 of 3', '')
    """
    if outputs.get(PARTLY_DONE):  # a workflow as a step
        return "a part"
    lists = {name: value for name, value in outputs.items() if isinstance(value, list | tuple)}
    left = sum(len(lists[name]) for name in UNDONE if name in lists)
    done = [len(value) for name, value in lists.items() if name not in UNDONE]
    total = f" of {left + done[0]:,}" if len(done) == 1 else ""
    return f"{left:,}{total}" if left else ""


def read_run(data: Mapping[str, Any]) -> WorkflowRun:
    """Return the run that `WorkflowRun.as_json` wrote; also of a dry run, whose steps have no state."""
    without_state: StepStatus = "preview" if data["status"] == "preview" else "not_run"
    steps = tuple(
        StepRun(
            each["step_id"],
            each["operation"],
            each.get("tool"),
            each.get("status", without_state),
            each.get("inputs") or {},
            each.get("outputs") or {},
            error=each.get("error"),
            attempts=(StepAttempt(0.0, float(each["seconds"])),) if each.get("seconds") else (),
            reason=each.get("reason") or shlex.join(each.get("argv") or ()),
            artifacts=tuple(StepArtifact(path, "", 0) for path in each.get("artifacts", ())),
            carried=each.get("carried", False),
            again=each.get("again", ""),
            unchecked=each.get("unchecked", ""),
            log=each.get("log", ""),
        )
        for each in data["steps"]
    )
    return WorkflowRun(
        data["run_id"], data["status"], steps, data["outputs"], data["text"], tuple(data["missing"]),
        float(data.get("seconds", 0.0)), data.get("problem", ""),
    )  # fmt: skip
