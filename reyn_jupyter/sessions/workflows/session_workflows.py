"""Utilities, plans and workflows for people: tables, a plan that is looked at, one that is run, what is kept.

Invariant: what a person plans, runs and scaffolds are calls of the same actions that a model makes, and stand in the
record; a call by hand is consent.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from reyn_jupyter.executors.clients import executor_of_client
from reyn_jupyter.executors.executor import Executor, ExecutorLostError
from reyn_jupyter.runtime.record.events import ActionProgressed, InnerEvent
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.sessions.result_objects import Card, Result, Table
from reyn_jupyter.sessions.workflows.mapped_runs import MappedRun, map_workflow
from reyn_jupyter.sessions.workflows.plan_run import OnChange, PlanRun, begun_run, report_end
from reyn_jupyter.sessions.workflows.workflow_action_error import WorkflowActionError
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.text import count, nearest, shorten
from reyn_jupyter.workflows.execution.run_file import RunFile, last_run_id
from reyn_jupyter.workflows.execution.sent_utility import UtilitySender, steps_sent_by
from reyn_jupyter.workflows.execution.workflow_file import write_workflow
from reyn_jupyter.workflows.execution.workflow_from_run import workflow_of_run
from reyn_jupyter.workflows.execution.workflow_run import WorkflowRun, read_run
from reyn_jupyter.workflows.planning.plan import Gap, MissingInput, WorkflowPlan, read_plan
from reyn_jupyter.workflows.utilities.capability_ranking import RankedUtility, rank
from reyn_jupyter.workflows.utilities.manifest import is_capability
from reyn_jupyter.workflows.utilities.program import missing_dependencies
from reyn_jupyter.workflows.workflow_error import WorkflowError
from reyn_jupyter.workflows.workflow_library import SKILL

if TYPE_CHECKING:
    from distributed import Client

    from reyn_jupyter.sessions.assembly import Parts
    from reyn_jupyter.sessions.async_session import AsyncSession
    from reyn_jupyter.workflows.utilities.manifest import Utility


_LOG_LINES = 200


class Workflows:
    """The utilities, plans and workflows of a session: ``session.workflows.dispatch("…")``.

    Args:
        parts: of the session.
        aio: the same session, awaited.
    """

    def __init__(self, parts: Parts, aio: AsyncSession) -> None:
        self._parts, self._aio = parts, aio
        self._gaps: dict[str, Gap] = {}  # of the last plan, by what is missing
        self._executor: Executor | Client | None = None
        self._sender: UtilitySender | None = None
        self._own: Executor | None = None  # made here, of a client

    @property
    def executor(self) -> Executor | Client | None:
        """Where steps of utilities run that a run from here has: an executor, the client of a Dask cluster, or None for
        this machine. What it may not run, runs here; see the manual, "More than one machine".

        >>> session.workflows.executor = Client("tcp://10.0.0.1:8786")                 # doctest: +SKIP
        """
        return self._executor

    @executor.setter
    def executor(self, given: Executor | Client | None) -> None:
        self.close()
        self._executor = given
        self._sender, self._own = _sender_of(given)

    def close(self) -> None:
        """Give back what was made for the executor; the executor or client that was given stays open."""
        self._executor = self._sender = None
        if self._own is not None:
            self._own.close()
            self._own = None

    def utilities(self, *, rebuild: bool = False) -> Table:
        """Return one row a utility: what it can do, whether it is ready, where it is from.

        Args:
            rebuild: write ``state/registry-cache.json`` anew.
        """
        library = self._parts.workflows
        registry = library.registry(fresh=True)
        self._write_cache(rebuild=rebuild)
        notes = [f"{each.file}{each.path}: {each.message}" for each in registry.problems[:5]]
        if len(registry.problems) > len(notes):
            notes.append(f"{len(registry.problems) - len(notes)} more: %reyn utilities --validate")
        waiting = count(sum(not each.trusted for each in registry.utilities), "utility", "utilities")
        if not waiting.startswith("0 "):
            notes.append(f"{waiting} held back: %reyn trust shows what would run, and asks")
        rows = tuple(map(_utility_row, registry.utilities))
        return Table("utilities", rows, "Utilities", "\n".join(notes), registry.utilities)

    def manifest_problems(self) -> Table:
        """Return one row for each thing that is wrong with a manifest."""
        registry = self._parts.workflows.registry(fresh=True)
        rows = tuple(
            {"file": each.file, "path": each.path or "/", "problem": each.message}
            for each in registry.problems
        )
        checked = f"{count(len(registry.utilities), 'manifest')} in order."
        return Table("manifests", rows, "Problems of manifests", checked)

    def resolve(self, capability: str) -> Table:
        """Return the utilities that declare a capability, best first, each with the reason.

        Raises:
            WorkflowActionError: it is no capability.
        """
        if not is_capability(capability):
            raise WorkflowActionError(
                f"{shorten(capability, 80)!r} is no capability: a domain, a dot and an action, in small letters.",
                "It is domain.action, for example video.convert.",
            )
        registry = self._parts.workflows.registry(fresh=True)
        found = rank(registry, capability)
        self._write_cache()
        rows = tuple(_ranked_row(place, each) for place, each in enumerate(found.rows, 1))
        begin = "" if found.chosen is not None else f" {reyn_line('scaffold', capability)} begins one."
        if not rows and (near := nearest(capability, registry.capabilities)) is not None:
            begin += f" Did you mean {near}?"
        return Table("ranking", rows, f"What serves {capability}", found.message + begin, found.rows)

    def plan(self, text: str, inputs: Mapping[str, Any] | None = None, *, llm: bool = True) -> WorkflowPlan:
        """Plan a request: the steps that it comes to, what serves each, and what is missing. Nothing runs.

        Args:
            text: the request, in plain words.
            inputs: values that steps may refer to as ``request.inputs.<name>``.
            llm: let a language model plan what no rule takes.

        Raises:
            WorkflowActionError: it cannot be planned.

        Example:
            >>> session.workflows.plan("unpack data.zip").status                       # doctest: +SKIP
            'complete'
        """
        given = {"text": text, "llm": llm, **({"inputs": dict(inputs)} if inputs else {})}
        made = read_plan(self._call("request-router", given))
        self._gaps = {gap.missing_capability: gap for gap in made.gaps}
        self._write_cache()
        return made

    def dispatch(
        self,
        text: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        llm: bool = True,
        dry: bool = False,
        on_change: OnChange | None = None,
    ) -> PlanRun:
        """Plan a request, check its gaps and the policy, and run it.

        Args:
            text, inputs, llm: as `plan` has them.
            dry: say what would run, and run nothing.
            on_change: hears the run as it stands, again and again.

        Raises:
            WorkflowActionError: it cannot be planned, or not be run.
        """
        asked = WorkflowPlan("", request_text=text, request_inputs=inputs or {})
        with report_end(begun_run(asked, "planning"), on_change):
            plan = self.plan(text, inputs, llm=llm)
        return self.execute(plan, dry=dry, on_change=on_change)

    def execute(self, plan: WorkflowPlan, *, dry: bool = False, on_change: OnChange | None = None) -> PlanRun:
        """Run a plan; one with gaps, or one that the policy forbids, does not begin. Raises WorkflowActionError."""
        run_id = str(uuid.uuid4())
        given = {"plan": plan.as_json(), "dry_run": dry, "run_id": run_id}
        return self._execute(plan, given, run_id, on_change)

    def resume(
        self, run_id: str | None = None, *, force: bool = False, on_change: OnChange | None = None
    ) -> PlanRun:
        """Go on with a run that ended before its end; what was done is not run again.

        Args:
            run_id: of the file in ``state/runs``; the run that was written last when None.
            force: run again what was under way, although it may then be done twice.
            on_change: hears the run as it stands, again and again.

        Raises:
            WorkflowActionError: there is no such run, or it may not go on.
        """
        try:
            run_id = last_run_id(self._parts.root) if run_id is None else run_id
            plan = read_plan(RunFile(self._parts.root, run_id).read().plan)
        except WorkflowError as error:
            raise WorkflowActionError(error.message, error.hint, error.code) from None
        if (note := self._changed_workflow(plan)) is not None:
            plan = replace(plan, notes=(*plan.notes, note))
        given = {"plan": plan.as_json(), "resume": run_id, "force": force}
        return self._execute(plan, given, run_id, on_change)

    def _changed_workflow(self, plan: WorkflowPlan) -> str | None:
        """Return a note if the workflow that a plan is of has other steps now, or None."""
        try:
            now = self._parts.workflows.workflow(plan.plan_id).steps
        except WorkflowError:  # it is of no workflow, or the file is gone
            return None
        if [replace(each, tool=None) for each in plan.steps] == [replace(each, tool=None) for each in now]:
            return None
        return f"The workflow {plan.plan_id} has changed since; this run goes on with the steps that it began with."

    def map(
        self,
        name: str,
        inputs: Iterable[Mapping[str, Any]],
        *,
        executor: Executor | Client | None = None,
        on_result: Callable[[MappedRun], None] | None = None,
    ) -> Table:
        """Run a workflow on each of many inputs, side by side, and return one row for each.

        Each input is a run of its own, in the record and in ``state/runs``; one that fails ends no other.

        Args:
            name: of a workflow of ``skills/`` that may run.
            inputs: what each run is given, taken as there is room, from a generator too.
            executor: where steps of utilities run, for this call; that of `executor` when None.
            on_result: hears what came of each input as it ends, in the order of their ends.

        Returns:
            A table in the order of the inputs, with ``.df``; its items are `MappedRun`.

        Raises:
            WorkflowActionError: there is no such workflow, or the executor is none.
            Interrupted: the person interrupted; ``.result`` is the table of what had ended.

        Example:
            >>> inputs = [{"file": each} for each in files]                            # doctest: +SKIP
            >>> session.workflows.map("thumbnail", inputs, executor=client).df         # doctest: +SKIP
        """
        try:
            self._parts.workflows.workflow(name)
        except WorkflowError as error:
            raise WorkflowActionError(error.message, error.hint, error.code) from None
        sender, own = (self._sender, None) if executor is None else _sender_of(executor)
        window = self._parts.settings.workflows.at_once if sender is None else sender.slots

        def hear(event: object) -> None:
            if on_result is not None and isinstance(event, MappedRun):
                on_result(event)

        try:
            return ENGINE.run(map_workflow(self._aio, name, inputs, sender, window), hear)
        finally:
            if own is not None:
                own.close()

    def scaffold(self, capability: str, language: str = "python", **schemas: Mapping[str, Any]) -> Card:
        """Begin a utility for a capability: a folder with a manifest and a program that runs.

        Args:
            capability: a domain and an action.
            language: "python", "node" or "shell".
            schemas: ``input_schema`` and ``output_schema``; without them those that a gap of the last plan proposes.

        Raises:
            WorkflowActionError: it cannot be made.
        """
        if not schemas and (gap := self._gaps.get(capability)) is not None:
            schemas = {
                "input_schema": gap.proposed_input_schema,
                "output_schema": gap.proposed_output_schema,
            }
        value = self._call("tool-scaffolder", {"capability": capability, "language": language, **schemas})
        facts = (
            ("folder", value["folder"]),
            *((each["name"], _check_words(each)) for each in value["checks"]),
        )
        tries = ("%reyn trust", reyn_line("resolve", capability))
        files = ("Files: write the program, then trust it as it is", tuple(value["files"]))
        return Card("scaffold", f"A draft of a utility for {capability}", facts, (files,), tries, value)

    @property
    def kept(self) -> Table:
        """The workflows in ``skills/``: what each takes and does, and whether it may run."""
        rows = tuple(
            {
                "workflow": each.name,
                "state": "cannot be used"
                if each.workflow is None
                else "ready"
                if each.trusted
                else "held back",
                "takes": ""
                if each.workflow is None
                else ", ".join(each.workflow.inputs.get("properties", {})),
                "steps": None if each.workflow is None else len(each.workflow.steps),
                "about": str(each.problem)
                if each.workflow is None
                else shorten(each.workflow.description, 100),
            }
            for each in self._parts.workflows.workflow_files()
        )
        note = "%reyn workflow save RUN --name NAME keeps a run as one; %reyn invoke skill__NAME runs one."
        held = sum(each["state"] == "held back" for each in rows)
        if held:
            note += f"\n{count(held, 'workflow')} held back: %reyn trust shows what would run, and asks"
        return Table("workflows", rows, "Workflows of skills/", note)

    def save(self, run: str | int | None, name: str, description: str = "") -> Card:
        """Keep a run as a workflow: its calls become steps, values of earlier results references.

        One of this session is trusted; an earlier one may have come with the folder, and is looked at first.

        Args:
            run: any unique part of a run's id; the last one when None.
            name: lower-case words with hyphens; the action that runs it is ``skill__<name>``.
            description: what it does; without one, what was asked for.

        Raises:
            RunNotFoundError: there is no such run.
            WorkflowActionError: it cannot be kept as one, or there is one of this name.
        """
        try:
            trace = self._parts.runs.load(run)
            made = workflow_of_run(trace, name, description)
            file = write_workflow(self._parts.root, made.workflow)
        except WorkflowError as error:
            raise WorkflowActionError(error.message, error.hint, error.code) from None
        is_own = self._parts.runs.is_own(trace.run)
        if is_own:
            self._parts.trust.trust(file.content, file.file)
        self._parts.services.changed(SKILL)
        takes = ", ".join(made.workflow.inputs.get("properties", {})) or "nothing"
        facts = (("file", file.file), ("steps", str(len(made.workflow.steps))), ("takes", takes))
        earlier = (
            () if is_own else ("The run is of an earlier session, so the workflow waits for your trust.",)
        )
        notes = (*made.notes, *earlier)
        sections = (("Look at this", notes),) if notes else ()
        tries = (reyn_line("invoke", f"{SKILL}__{name}"),) if is_own else ("%reyn trust",)
        return Card("workflow", f"{name} is saved", facts, sections, tries)

    def _execute(
        self, plan: WorkflowPlan, given: Mapping[str, Any], run_id: str, on_change: OnChange | None
    ) -> PlanRun:
        log: deque[str] = deque(maxlen=_LOG_LINES)
        is_due = False  # whether something came since it was quiet, when the listener may have left out the last word

        def hear(event: object) -> None:
            nonlocal is_due
            heard = event.event if isinstance(event, InnerEvent) else event
            if isinstance(heard, ActionProgressed):
                is_due = True
                if not log or log[-1] != heard.text:  # the last word of a call comes again when it ends
                    log.append(heard.text)
            elif event is None and is_due:
                is_due = False
            else:
                return
            if on_change is not None:
                with suppress(WorkflowError):  # its file is not there yet
                    on_change(PlanRun(plan, stored(), tuple(log), "running"))

        def stored() -> WorkflowRun:
            return RunFile(self._parts.root, run_id).read().run

        def ended() -> PlanRun | None:
            """Return how it ended without a value, by its file."""
            with suppress(WorkflowError):
                return PlanRun(plan, stored(), tuple(log), "running")
            return None

        with report_end(begun_run(plan, "gap check"), on_change, ended):
            if on_change is not None and not plan.gaps:
                on_change(begun_run(plan, "policy check"))
            value = self._call("workflow-executor", given, hear)
        if "missing_inputs" in value:  # of a dry run: as it is now
            missing = tuple(MissingInput(**each) for each in value["missing_inputs"])
            plan = replace(plan, missing_inputs=missing)
        return PlanRun(plan, read_run(value), tuple(log))

    def _call(
        self, skill: str, given: Mapping[str, Any], on_event: Callable[[object], None] | None = None
    ) -> Any:
        """Call a skill and return its value. Raises WorkflowActionError."""

        async def call() -> Result:
            with steps_sent_by(self._sender):
                return await self._aio.invoke_action(f"{SKILL}__{skill}", given)

        result = ENGINE.run(call(), on_event)
        if result.error is not None:
            payload = result.payload if isinstance(result.payload, dict) else {}
            raise WorkflowActionError(result.error, str(payload.get("hint") or ""), result.code)
        return result.value

    def _write_cache(self, *, rebuild: bool = False) -> None:
        with suppress(OSError):  # it is for people and other programs
            self._parts.workflows.write_cache(rebuild=rebuild)


def _sender_of(given: Executor | Client | None) -> tuple[UtilitySender | None, Executor | None]:
    """Return what sends steps to an executor, and the executor that was made of a client for it."""
    if given is None:
        return None, None
    try:
        made = executor_of_client(given)
    except ExecutorLostError as error:
        raise WorkflowActionError(str(error)) from None
    if made is None and (isinstance(given, str | type) or not isinstance(given, Executor)):
        raise WorkflowActionError(
            f"executor={shorten(repr(given), 80)} runs nothing.",
            "Give the client of a Dask cluster, or an executor such as ProcessExecutor(2).",
        )
    return UtilitySender(made or cast("Executor", given)), made


def _check_words(check: Mapping[str, Any]) -> str:
    """Return what a check came to: its message, and whether it holds where it does not."""
    held = {True: "", False: "failed: ", None: "not tried: "}[check["passed"]]
    return f"{held}{check['message']}"


def _utility_row(utility: Utility) -> dict[str, Any]:
    manifest, missing = utility.manifest, missing_dependencies(utility)
    state = f"needs {', '.join(each.name for each in missing)}" if missing else "ready"
    if not missing and (secrets := manifest.needs("secret")):
        state = f"ready, given {', '.join(secrets)}"
    return {
        "name": utility.id,
        "about": shorten(" ".join(manifest.description.split()), 200),
        "capabilities": ", ".join(manifest.capabilities),
        "state": state if utility.trusted else "held back",
        "stability": manifest.stability,
        "repeat": manifest.idempotency,
        "priority": manifest.priority,
        "from": utility.origin,
    }


def _ranked_row(place: int, row: RankedUtility) -> dict[str, Any]:
    manifest = row.utility.manifest
    return {
        "rank": place if row.verdict == "fits" else None,
        "name": row.utility.id,
        "state": row.verdict,
        "why": row.why,
        "priority": manifest.priority,
        "stability": manifest.stability,
    }
