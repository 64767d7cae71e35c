"""Runs a plan: in the order of its references, side by side where it can be, within one deadline.

Invariants: a step begins only after the steps that it needs are done, and after the file of the run says that it is
under way. Nothing of a plan with gaps runs. A step is tried again only where that is safe, or where the plan says so.
A result of an earlier start is used only if what its step read is still the same, or if that cannot be known, which is
reported.
After a failure that counts no further step begins; those under way come to their end. Whatever ends a run, its file
says how.
Source: the architecture of utilities and skills, 4 "workflow-executor".
"""

from __future__ import annotations

import asyncio
import graphlib
import heapq
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.runtime.deadline import Deadline, DeadlineError
from reyn_jupyter.support.text import enumerate_words, shorten
from reyn_jupyter.workflows.execution.run_file import (
    LOST,
    RUNS,
    STATE,
    RunFile,
    StoredRun,
    StoredStep,
    encode_json,
)
from reyn_jupyter.workflows.execution.summary import missing_operations, summary_text
from reyn_jupyter.workflows.execution.workflow_run import (
    UNDER_WAY,
    StepArtifact,
    StepAttempt,
    StepRun,
    StepSources,
    WorkflowRun,
    WorkflowRunStatus,
    unrunnable_status,
)
from reyn_jupyter.workflows.planning.plan import WorkflowPlan, WorkflowStep, plan_problems
from reyn_jupyter.workflows.planning.references import resolve_inputs
from reyn_jupyter.workflows.workflow_error import WorkflowError

if TYPE_CHECKING:
    from tenacity import RetryCallState

CallStep = Callable[[WorkflowStep, dict[str, Any], float], Awaitable[Mapping[str, Any]]]
FindSources = Callable[[WorkflowStep, dict[str, Any]], Awaitable[StepSources]]
JudgeStep = Callable[[WorkflowStep, dict[str, Any]], Awaitable[Literal["allow", "ask", "deny"]]]
FIRST_WAIT = (
    0.5  # the bound of the first wait before a step is tried again, in seconds; it doubles from there
)
LONGEST_WAIT = 20.0
OWN_RUN = "run_id"  # of the details of a failure: the run of its own that a step had begun
WORKER_LOST = "worker_lost"  # the kind of a failure: the worker that a step was sent to is gone
_REPEATABLE = ("tool_failed", "tool_timeout", "tool_invalid_output", "llm_error")
_MOST_PATHS = 5  # in a message
_LONGEST_MESSAGE = 2_000  # characters of an error


async def _no_sources(step: WorkflowStep, inputs: dict[str, Any]) -> StepSources:
    return StepSources()


@dataclass(frozen=True)
class RunLimits:
    """The limits of a run.

    Attributes:
        max_run_seconds: for all steps, their tries and the waits between them; not while the person is asked.
        max_tool_retries: further tries of a step after the first, where it may be tried again.
        max_parallel: steps side by side.
    """

    max_run_seconds: float = 600.0
    max_tool_retries: int = 1
    max_parallel: int = 4


@dataclass(frozen=True)
class ExecutionEvent:
    """Something that happened in a run.

    Attributes:
        kind: what.
        run_id: of the run.
        step: as it is now; None for what concerns the whole run.
        wait: seconds until a step is tried again.
        run: how it ended, of "run_ended".
    """

    kind: Literal["run_started", "step_started", "step_retried", "step_ended", "run_ended"]
    run_id: str
    step: StepRun | None = None
    wait: float = 0.0
    run: WorkflowRun | None = None


async def execute_plan(
    plan: WorkflowPlan,
    *,
    call_step: CallStep,
    limits: RunLimits | None = None,
    run_file: RunFile | None = None,
    on_event: Callable[[ExecutionEvent], None] | None = None,
    is_safe: Callable[[WorkflowStep], bool] = lambda step: False,
    digest_of: Callable[[WorkflowStep], str] = lambda step: "",
    artifact_paths: Callable[[WorkflowStep, Mapping[str, Any]], Sequence[str]] = lambda step, outputs: (),
    find_sources: FindSources = _no_sources,
    judge_again: JudgeStep | None = None,
    own_run: Callable[[WorkflowStep], RunFile | None] = lambda step: None,
    log_of: Callable[[WorkflowStep], str] = lambda step: "",
    resume: bool = False,
    force: bool = False,
) -> WorkflowRun:
    """Run a plan and return how it ended.

    Args:
        plan: of which every step is served; of one with gaps nothing runs.
        call_step: runs one step with its inputs, within so many seconds, and returns its outputs. It raises
            `WorkflowError`; with ``{"retryable": False}`` in its details the step is not tried again. It ends what
            it started when it is cancelled.
        limits: see `RunLimits`.
        run_file: where the run is written; None writes nothing, and then it cannot be resumed.
        on_event: hears what happens, in this loop.
        is_safe: whether what serves a step may run twice without harm.
        digest_of: the digest of what serves a step. With another one a step that was done is run again.
        artifact_paths: the files that a step made, from the root of the workspace, by its outputs.
        find_sources: Returns what a step reads and writes with its inputs. It raises `WorkflowError` if that cannot be
            found any more.
        judge_again: says whether what a step gave before may be given again, with its inputs; None lets all of it.
        own_run: the file of the run that a step has of its own; None for a step that has none. Called again, such a
            step goes on with that run, which does nothing twice and judges each of its steps anew, as long as its file
            is there.
        log_of: the end of what the program of a step logged in its last try.
        resume: go on with the run that the file holds: what was done there is not run again.
        force: run what was under way there again, although nobody knows how much of it was done.

    Raises:
        WorkflowError: "plan_invalid"; "validation" where another process runs this run, where there is none to
            resume or one already that is not to be resumed, or where a step that was under way may not be run again
            without `force`.
        asyncio.CancelledError: it was interrupted, and its file says so.
    """
    problems = plan_problems(plan)
    if problems:
        path, message = problems[0]
        raise WorkflowError(
            f"The plan cannot run: {path}: {message}.",
            "Mend its steps.",
            "plan_invalid",
            {"problems": [{"path": path, "message": message} for path, message in problems]},
        )
    if (status := unrunnable_status(plan)) is not None:
        return unstarted_run(plan, status, run_file)
    execution = _Execution(plan, limits or RunLimits(), run_file)
    execution.call_step, execution.on_event = call_step, on_event
    execution.is_safe, execution.digest_of, execution.artifact_paths = is_safe, digest_of, artifact_paths
    execution.judge_again, execution.own_run, execution.force = judge_again, own_run, force
    execution.find_sources = find_sources
    execution.log_of = log_of
    return await execution.run(resume)


def unstarted_run(
    plan: WorkflowPlan, status: WorkflowRunStatus, run_file: RunFile | None = None, problem: str = ""
) -> WorkflowRun:
    """Return the run of a plan of which nothing may run, and write it where there is no run of its id yet.

    Args:
        status: "partial-complete", "unroutable" or "blocked_by_policy".
        problem: why, in a sentence.
    """
    reasons = {gap.step_id: gap.reason_message for gap in plan.gaps}
    steps = [StepRun.of(step, "not_run", reasons.get(step.step_id, "")) for step in plan.steps]
    text = summary_text(status, steps, problem)
    missing = (
        *missing_operations(steps),
        *(gap.missing_capability for gap in plan.gaps if gap.step_id is None),
    )
    run_id = run_file.run_id if run_file is not None else ""
    run = WorkflowRun(run_id, status, tuple(steps), {}, text, missing, problem=problem)
    if run_file is not None and not run_file.exists:  # what an earlier start did stands
        try:
            run_file.begin(plan, steps, time.time())
            run_file.end(status, [], text, problem)
        except OSError as error:
            return replace(run, problem=" ".join(filter(None, (problem, _unwritten(error)))))
    return run


class _Execution:
    """One run of a plan."""

    call_step: CallStep
    on_event: Callable[[ExecutionEvent], None] | None
    is_safe: Callable[[WorkflowStep], bool]
    digest_of: Callable[[WorkflowStep], str]
    artifact_paths: Callable[[WorkflowStep, Mapping[str, Any]], Sequence[str]]
    find_sources: FindSources
    judge_again: JudgeStep | None
    own_run: Callable[[WorkflowStep], RunFile | None]
    log_of: Callable[[WorkflowStep], str]
    force: bool

    def __init__(self, plan: WorkflowPlan, limits: RunLimits, run_file: RunFile | None) -> None:
        self.plan, self.limits, self.run_file = plan, limits, run_file
        self.run_id = run_file.run_id if run_file is not None else ""
        self.states = {step.step_id: StepRun.of(step) for step in plan.steps}
        self.outputs: dict[str, Mapping[str, Any]] = {}
        self.earlier: StoredRun | None = None
        self.again: dict[str, str] = {}  # why steps that were done are run again
        self.stale: set[str] = set()  # of these, the ones that take what needs them along
        self.problem = ""
        self.stopped = False  # no further step begins
        self.loop = asyncio.get_running_loop()
        self.began = self.loop.time()
        self.clock = Deadline(limits.max_run_seconds)  # it stands still while a step waits for the person
        self.ended = False  # what a step that was let go still does is none of the run's any more

    async def run(self, resume: bool) -> WorkflowRun:
        try:
            if not self._begin(resume):
                return self._end(None)
            self._tell("run_started")
            try:
                await self.clock.within(self._run_steps)
            except DeadlineError:
                self._time_out()
            except BaseException:
                self._end("interrupted")
                raise
            return self._end(None)
        finally:
            if self.run_file is not None:
                self.run_file.let_go()

    def _begin(self, resume: bool) -> bool:
        """Write that the run is under way, with what an earlier start of it did; return whether that is in the file.

        Raises:
            WorkflowError: see `execute_plan`.
        """
        if self.run_file is None:
            return True
        try:
            self.run_file.hold()
            if resume:
                self.earlier = self.run_file.read()
                self._need_known_outcomes()
            elif self.run_file.exists:
                raise WorkflowError(
                    f"There is a run {self.run_id} already.",
                    "Resume it, or begin one of another id.",
                    "validation",
                )
            self.run_file.begin(self.plan, list(self.states.values()), time.time(), self.earlier)
        except OSError as error:
            self._stop(_unwritten(error))
            return False
        return True

    def _need_known_outcomes(self) -> None:
        """Raise WorkflowError where nobody knows how much of a step was done, and twice may do harm."""
        if self.earlier is None or self.force:
            return
        cut_off, unrecorded = [], []
        for step in self.plan.steps:
            stored = self.earlier.steps.get(step.step_id)
            if stored is None or self._may_repeat(step):
                continue
            error, own_run = stored.error or {}, self.own_run(step)
            was_under_way = stored.status in UNDER_WAY or _may_have_worked(error)
            if own_run is None and was_under_way:
                cut_off.append(step.step_id)
            elif own_run is not None and (was_under_way or _began_own_run(error)) and not own_run.exists:
                unrecorded.append(step.step_id)
        if cut_off or unrecorded:
            said = []
            if cut_off:
                said.append(
                    f"{enumerate_words(cut_off)} of the run {self.earlier.run_id} ended while under way, and may have "
                    "done a part of the work."
                )
            if unrecorded:
                said.append(
                    f"{enumerate_words(unrecorded)} of the run {self.earlier.run_id} may have done a part of the work, "
                    f"and no file in {STATE}/{RUNS} tells any more which."
                )
            raise WorkflowError(
                f"{' '.join(said)} Nothing says that running it twice is safe.",
                "Look at what was done, then resume with force, or take it out of the plan.",
                "validation",
                {"steps": cut_off + unrecorded},
            )

    async def _run_steps(self) -> None:
        by_id = {step.step_id: (place, step) for place, step in enumerate(self.plan.steps)}
        order = graphlib.TopologicalSorter({step.step_id: step.needed_steps for step in self.plan.steps})
        order.prepare()
        ready: list[int] = []  # places in the plan: of steps that could run, the first planned begins first
        running: dict[asyncio.Task[None], WorkflowStep] = {}
        try:
            while True:
                for each in order.get_ready():
                    heapq.heappush(ready, by_id[each][0])
                if ready and not self.stopped and len(running) < max(1, self.limits.max_parallel):
                    step = self.plan.steps[heapq.heappop(ready)]
                    if skipped := [at for at in step.needed_steps if self.states[at].status == "skipped"]:
                        reason = f"it needs what {enumerate_words(skipped)} did not give"
                        self._become(step, "skipped", reason=reason)
                        order.done(step.step_id)
                    else:
                        running[asyncio.create_task(self._run_step(step))] = step
                    continue
                if not running:
                    return
                ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    step = running.pop(task)
                    task.result()
                    if self.states[step.step_id].status in ("done", "skipped"):
                        order.done(step.step_id)
        finally:
            await _cancelled(running)

    async def _run_step(self, step: WorkflowStep) -> None:
        """Run a step to its end, which is in its state then. Raises nothing but a cancellation."""
        try:
            inputs = resolve_inputs(step.inputs, self.plan.request_inputs, self.outputs)
            encode_json(inputs)
            if await self._is_carried(step, inputs):
                return
        except (WorkflowError, TypeError, ValueError) as error:
            self._failed(step, _as_workflow_error(error, "validation"))
            return
        self._set(
            step,
            status="running",
            inputs=inputs,
            tool_digest=self.digest_of(step),
            again=self.again.get(step.step_id, ""),
        )
        if not self._write(step):
            self._set(step, status="not_run", reason=self.problem)
            return
        self._tell("step_started", step)
        try:
            sources = await self._note_sources(step, inputs)
            outputs = await self._call_with_retries(step, inputs)
            await self._keep(step, outputs, sources.writes)
        except asyncio.CancelledError:
            if self.states[step.step_id].status == "running":
                self._set(step, status="interrupted")
            raise
        except WorkflowError as error:
            self._failed(step, error)

    async def _is_carried(self, step: WorkflowStep, inputs: dict[str, Any]) -> bool:
        """Return whether a step was done before with the same inputs by the same tool, and take its result over.

        Raises:
            WorkflowError: it was done, its result is lost or denied by now, and running it again is not known to be
                safe.
        """
        stored = self.earlier.steps.get(step.step_id) if self.earlier is not None else None
        if stored is None or stored.status != "done" or self.run_file is None:
            return False
        own_run = self.own_run(step)
        if own_run is not None and own_run.exists:
            return False
        if (stored.operation, stored.tool_digest) != (step.operation, self.digest_of(step)):
            self.again[step.step_id] = f"{step.tool or step.operation} has changed"
            return False
        if stored.inputs_digest != self.run_file.inputs_digest(inputs):
            self.again[step.step_id] = "its inputs have changed"
            return False
        if why := await self._why_stale(step, stored, inputs, self.run_file):
            self.again[step.step_id] = why
            self.stale.add(step.step_id)
            return False
        if own_run is not None:  # without its record nothing judges its steps anew, so its result is not used
            if self.force or self._may_repeat(step):
                return False
            raise WorkflowError(
                f"it was done before, but the file of its own run, {own_run.run_id}, is gone from {STATE}/{RUNS}, and "
                "nothing says that running it twice is safe.",
                "Resume with force to run it again.",
                "validation",
            )
        decision = "allow" if self.judge_again is None else await self.judge_again(step, inputs)
        if decision != "allow" and self._may_repeat(step):
            return False  # it is called again, and refused or asked about by the gate of every call
        if decision != "allow":
            raise WorkflowError(
                f"a permission rule denies {step.action or step.tool or step.operation} by now, so what it gave "
                "before is not used.",
                "Take the rule back, or the step out of the plan.",
                "permission_denied",
            )
        outputs = await self.run_file.outputs_of(stored)
        changed = await self._changed(self.run_file, (*stored.artifacts, *stored.writes))
        if outputs is None or changed:
            if self.force or self._may_repeat(step):
                self.again[step.step_id] = f"{_listed(changed or ['its result'])} is not as it was"
                return False
            lost = f" ({_listed(changed)})" if changed else ""
            raise WorkflowError(
                f"it was done before, but what it gave is no longer there whole{lost}, and nothing says that "
                "running it twice is safe.",
                "Resume with force to run it again.",
                "validation",
            )
        self.outputs[step.step_id] = outputs
        self._become(
            step,
            "done",
            inputs=inputs,
            outputs=outputs,
            artifacts=stored.artifacts,
            reads=stored.reads or (),
            writes=stored.writes,
            unchecked=stored.unchecked,
            tool_digest=stored.tool_digest,
            carried=True,
        )
        return True

    async def _why_stale(
        self, step: WorkflowStep, stored: StoredStep, inputs: dict[str, Any], run_file: RunFile
    ) -> str:
        """Return why a step that was done may give something else now, or "" if what it read is the same."""
        if before := [each for each in step.needed_steps if each in self.stale]:
            return f"{enumerate_words(before)} {'was' if len(before) == 1 else 'were'} run again"
        if self.own_run(step) is not None:
            return ""  # it goes on with its own run, which compares what its steps read
        try:
            sources = await self.find_sources(step, inputs)
        except (WorkflowError, OSError) as error:
            return f"what it read is not there as it was: {error}"
        reads = {each.path: each for each in stored.reads or ()}
        if gone := sorted(reads.keys() ^ set(sources.reads)):
            changed: Sequence[str] = gone
        else:
            changed = await self._changed(run_file, [each for each in reads.values() if each.sha256])
        if changed:
            return f"{_listed(changed)} {'has' if len(changed) == 1 else 'have'} changed since"
        if self.is_safe(step) and (sources.is_open or not all(each.sha256 for each in reads.values())):
            return "what it reads cannot be compared"
        return ""

    async def _note_sources(self, step: WorkflowStep, inputs: dict[str, Any]) -> StepSources:
        """Keep what a step reads as it is before it runs, and return it."""
        if self.run_file is None or self.own_run(step) is not None:
            return StepSources()
        try:
            sources = await self.find_sources(step, inputs)
        except (WorkflowError, OSError):  # its call says what is wrong
            return StepSources()
        reads = await asyncio.to_thread(self.run_file.artifacts, sources.reads)
        unread = [each.path for each in reads if not each.sha256]
        unchecked = enumerate_words([*filter(None, [sources.unchecked]), *unread[:_MOST_PATHS]])
        self._set(step, reads=reads, unchecked=unchecked)
        return sources

    async def _changed(self, run_file: RunFile, artifacts: Sequence[StepArtifact]) -> tuple[str, ...]:
        """Return the files of a step that are not as it made or read them, read beside the loop while this waits."""
        stored = self.earlier.steps.values() if self.earlier is not None else ()
        own = [each for step in stored for each in (*step.artifacts, *step.writes)]
        over = threading.Event()
        try:
            return await asyncio.to_thread(run_file.changed, artifacts, over.is_set, own)
        finally:
            over.set()

    async def _call_with_retries(self, step: WorkflowStep, inputs: dict[str, Any]) -> dict[str, Any]:
        may_retry = step.on_failure == "retry" and self._may_repeat(step)
        if not may_retry or self.limits.max_tool_retries < 1:
            return await self._call(step, inputs)
        from tenacity import AsyncRetrying, retry_if_exception, wait_random_exponential

        def is_last(state: RetryCallState) -> bool:
            tried = state.attempt_number > self.limits.max_tool_retries
            return tried or state.upcoming_sleep >= self._left

        def before_sleep(state: RetryCallState) -> None:
            self._write(step)
            self._tell("step_retried", step, state.upcoming_sleep)

        retrying = AsyncRetrying(
            retry=retry_if_exception(_is_repeatable),
            stop=is_last,
            wait=wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT),
            before_sleep=before_sleep,
            sleep=asyncio.sleep,
            reraise=True,
        )
        return await retrying(self._call, step, inputs)

    async def _call(self, step: WorkflowStep, inputs: dict[str, Any]) -> dict[str, Any]:
        """Try a step once. Raises WorkflowError."""
        began, started_at = self.loop.time(), time.time()

        def attempted(error: str = "") -> None:
            attempt = StepAttempt(round(started_at, 3), round(self.loop.time() - began, 6), error)
            attempts = (*self.states[step.step_id].attempts, attempt)
            self._set(step, attempts=attempts, log=self.log_of(step))

        try:
            outputs = _checked_outputs(await self.call_step(step, inputs, self._left))
        except asyncio.CancelledError:
            attempted("it was ended while under way")
            raise
        except Exception as error:
            failure = _as_workflow_error(error, "tool_failed")
            attempted(shorten(failure.message, _LONGEST_MESSAGE))
            raise failure from error
        attempted()
        return outputs

    async def _keep(self, step: WorkflowStep, outputs: dict[str, Any], written: Sequence[str]) -> None:
        """Record that a step is done. An interrupt meanwhile waits until that is on the disk.

        Args:
            written: The files that it wrote in place.
        """

        async def keep() -> None:
            artifacts: tuple[StepArtifact, ...] = ()
            blob = None
            if self.run_file is not None:
                if paths := self.artifact_paths(step, outputs):
                    artifacts = await asyncio.to_thread(self.run_file.artifacts, paths)
                if written:
                    writes = await asyncio.to_thread(self.run_file.artifacts, written)
                    self._set(step, writes=tuple(each for each in writes if each.sha256))
                try:
                    blob = await self.run_file.store_outputs(outputs)
                except Exception as error:  # noqa: BLE001 - a store of somebody else's
                    blob = LOST
                    self._stop(f"The outputs of {step.step_id} cannot be stored: {error}")
            self.outputs[step.step_id] = outputs
            self._become(step, "done", outputs=outputs, artifacts=artifacts, blob=blob)

        keeping = asyncio.ensure_future(keep())
        try:
            await asyncio.shield(keeping)
        except asyncio.CancelledError:
            await asyncio.wait([keeping])
            raise

    def _failed(self, step: WorkflowStep, error: WorkflowError) -> None:
        """Record the failure of a step, and what it means for the run."""
        said: dict[str, Any] = {"code": error.code, "message": shorten(error.message, _LONGEST_MESSAGE)}
        if error.hint:
            said["hint"] = shorten(error.hint, _LONGEST_MESSAGE)
        if error.details:
            said["details"] = dict(error.details)
        if step.on_failure == "skip":
            self._become(step, "skipped", error=said)
            return
        self.stopped = True
        self._become(step, "timed_out" if error.code == "tool_timeout" else "failed", error=said)

    @property
    def _left(self) -> float:
        """The seconds that are left of the run."""
        return self.clock.left or 0.0

    def _time_out(self) -> None:
        """Record that the run's time was over, for what was under way and for the run."""
        said = f"the run's time of {self.limits.max_run_seconds:g} s was over"
        for step in self.plan.steps:
            if self.states[step.step_id].status in ("running", "interrupted"):
                error = {"code": "tool_timeout", "message": f"It did not end in time: {said}."}
                self._become(step, "timed_out", error=error)
        self._stop(f"{said[0].upper()}{said[1:]}.")

    def _may_repeat(self, step: WorkflowStep) -> bool:
        return step.retries or self.is_safe(step)

    def _stop(self, problem: str) -> None:
        self.stopped = True
        self.problem = self.problem or problem

    def _set(self, step: WorkflowStep, **changes: Any) -> None:
        if not self.ended:
            self.states[step.step_id] = replace(self.states[step.step_id], **changes)

    def _become(self, step: WorkflowStep, status: str, *, blob: str | None = None, **changes: Any) -> None:
        """Set how a step ended, write it and tell of it."""
        self._set(step, status=status, **changes)
        self._write(step, blob)
        self._tell("step_ended", step)

    def _write(self, step: WorkflowStep, blob: str | None = None) -> bool:
        """Write the state of a step; return whether it is in the file. Where it is not, no further step begins."""
        if self.run_file is None or self.ended or self._stands(self.states[step.step_id]):
            return True
        try:
            self.run_file.change(self.states[step.step_id], outputs_blob=blob)
        except OSError as error:
            self._stop(_unwritten(error))
            return False
        return True

    def _stands(self, state: StepRun) -> bool:
        """Return whether the file keeps what an earlier start did of a step, since this one did not call it."""
        stored = self.earlier.steps.get(state.step_id) if self.earlier is not None else None
        return (
            stored is not None
            and stored.status in ("done", *UNDER_WAY)
            and state.status != "running"
            and not state.attempts
        )

    def _tell(self, kind: Any, step: WorkflowStep | None = None, wait: float = 0.0) -> None:
        if self.on_event is not None and not self.ended:
            state = self.states[step.step_id] if step is not None else None
            self.on_event(ExecutionEvent(kind, self.run_id, state, wait))

    def _end(self, status: WorkflowRunStatus | None) -> WorkflowRun:
        """Return how the run ended, by its steps where no status is given; write it, and tell of it."""
        self.ended = True
        changed = []
        for each in self.states.values():
            if each.status == "waiting":
                changed.append(replace(each, status="not_run"))
            elif each.status == "interrupted":
                changed.append(each)
        self.states |= {each.step_id: each for each in changed}
        steps = tuple(self.states.values())
        ends = {each.status for each in steps}
        if status is None:
            status = "executed"
            if ends - {"done", "skipped"} or self.problem:
                status = "execution_failed"
            elif "skipped" in ends:
                status = "completed_with_skips"
            elif any(each.undone for each in steps):
                status = "partly_done"
        text = summary_text(status, steps, self.problem)
        seconds = self.loop.time() - self.began
        missing = missing_operations(steps)
        if self.run_file is not None:
            try:
                changed = [each for each in changed if not self._stands(each)]
                self.run_file.end(status, changed, text, self.problem)
            except OSError as error:
                self.problem = self.problem or _unwritten(error)
        outputs = {each.step_id: self.outputs[each.step_id] for each in steps if each.step_id in self.outputs}
        run = WorkflowRun(self.run_id, status, steps, outputs, text, missing, seconds, self.problem)
        if self.on_event is not None:
            self.on_event(ExecutionEvent("run_ended", self.run_id, run=run))
        return run


async def _cancelled(tasks: Mapping[asyncio.Task[None], WorkflowStep]) -> None:
    """Cancel tasks, and wait until what they started has ended."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _listed(paths: Sequence[str]) -> str:
    """Return paths for a message, the workspace's root among them."""
    shown = ["the workspace" if each == "." else each for each in paths[:_MOST_PATHS]]
    more = [f"{len(paths) - _MOST_PATHS:,} more"] if len(paths) > _MOST_PATHS else []
    return enumerate_words([*shown, *more])


def _is_repeatable(error: BaseException) -> bool:
    return (
        isinstance(error, WorkflowError)
        and error.code in _REPEATABLE
        and error.details.get("retryable") is not False
    )


def _may_have_worked(error: Mapping[str, Any]) -> bool:
    """Return whether an error leaves open how much of its step was done."""
    details = error.get("details")
    kind = details.get("kind") if isinstance(details, Mapping) else None
    return error.get("code") == "tool_timeout" or kind == WORKER_LOST


def _began_own_run(error: Mapping[str, Any]) -> bool:
    """Return whether an error is that of a step whose own run had begun."""
    details = error.get("details")
    return isinstance(details, Mapping) and OWN_RUN in details


def _checked_outputs(outputs: object) -> dict[str, Any]:
    if not isinstance(outputs, Mapping):
        kind = type(outputs).__name__
        raise WorkflowError(f"It gave no object but {kind}.", "", "tool_invalid_output")
    try:
        encode_json(dict(outputs))
    except (TypeError, ValueError, RecursionError) as error:
        raise WorkflowError(f"It gave what JSON does not have: {error}.", "", "tool_invalid_output") from None
    return dict(outputs)


def _as_workflow_error(error: Exception, code: Any) -> WorkflowError:
    """Return an error of anybody's as one of a step. A surprise is not worth another try."""
    if isinstance(error, WorkflowError):
        return error
    return WorkflowError(f"{type(error).__name__}: {error}", "", code, {"retryable": False})


def _unwritten(error: OSError) -> str:
    return (
        f"The file of the run cannot be written ({error.strerror or error}), so no further step began: without it "
        "nobody could tell afterwards what was done."
    )
