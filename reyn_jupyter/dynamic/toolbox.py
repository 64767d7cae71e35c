"""The tools that were made at run time in one workspace, and all that is done with them.

Invariants: a tool is drafted before anybody is asked, and what was drafted is what is kept; the code that runs is the
code that was consented to; every creation, run, deletion and verification leaves a line in the audit, refused ones too.
Source: dynamic tool generation, API reference (flows of the five tools).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.schema_check import check_schema
from reyn_jupyter.config import Settings
from reyn_jupyter.dynamic.analysis.quality import QualityAssessment, assess_quality
from reyn_jupyter.dynamic.analysis.safety import (
    SafetyAnalysis,
    ToolCodeError,
    analyze_safety,
    critical_issues,
)
from reyn_jupyter.dynamic.audit import FILE as AUDIT_FILE
from reyn_jupyter.dynamic.audit import AuditLog
from reyn_jupyter.dynamic.definition import (
    DynamicTool,
    Verification,
    apply_parameters,
    check_name,
    detect_mode,
    read_examples,
    result_fault,
)
from reyn_jupyter.dynamic.tool_error import DynamicToolError
from reyn_jupyter.dynamic.tool_parameters import read_parameters
from reyn_jupyter.dynamic.tool_permissions import ToolPermissions, read_permissions
from reyn_jupyter.dynamic.tool_runner import ToolRun, run_tool
from reyn_jupyter.dynamic.tool_store import ToolStore
from reyn_jupyter.guard.sandbox import SandboxError
from reyn_jupyter.guard.sandbox.private_copies import ChangeRecord
from reyn_jupyter.support.text import count, enumerate_words, shorten

if TYPE_CHECKING:
    from reyn_jupyter.guard.sandbox.runner import OnOutput
    from reyn_jupyter.guard.workspace import Workspace
    from reyn_jupyter.runtime.services import Services
    from reyn_jupyter.support.secrets import Redactor

TIMEOUT_MS = 30_000
PERSON = "person"
_MOST_ORIGINS = 50
_CHANGE_CODE = "Change the code so that it does without, or tell the person what it needs."


@dataclass(frozen=True)
class ToolDraft:
    """A tool that could be kept, with what was found in its code."""

    tool: DynamicTool
    permissions: ToolPermissions
    safety: SafetyAnalysis
    quality: QualityAssessment


@dataclass(frozen=True)
class PreparedRun:
    """A run that may begin: the tool, its parameters with defaults, and what it may reach."""

    tool: DynamicTool
    parameters: dict[str, Any]
    permissions: ToolPermissions
    timeout_ms: int = TIMEOUT_MS


class Toolbox:
    """The tools of a workspace.

    Args:
        folder: the person's own folder of this workspace, which lies outside of it.
        settings: those in force now.
        redactor: takes secrets out of the audit.
    """

    def __init__(self, folder: Path, settings: Callable[[], Settings], redactor: Redactor) -> None:
        self.store = ToolStore(folder)
        self.audit = AuditLog(folder / AUDIT_FILE, redactor)
        self._settings = settings

    @classmethod
    def of(cls, services: Services) -> Toolbox | None:
        """Return the tools of a session's workspace; None where nothing is kept."""
        folder = services.own_folder
        return None if folder is None else cls(folder, services.settings, services.redactor)

    @property
    def problems(self) -> list[str]:
        """Return a sentence for each definition that is damaged or was changed."""
        return [f"tool {each.name or each.file.name}: {each.problem}" for each in self.store.all()[1]]

    def draft(self, given: Mapping[str, Any], *, actor: str, origins: Sequence[str] = ()) -> ToolDraft:
        """Return the tool that a call of ``create_tool`` describes, in the order of the reference; nothing is kept yet.

        Args:
            given: the arguments of the call.
            actor: who calls; only "person" may admit critical operations.
            origins: where texts of others came from that the model has read.

        Raises:
            DynamicToolError: E101 to E106, E201, E202, E401, E403.
        """
        try:
            return self._draft(given, actor, origins)
        except DynamicToolError as error:
            self.audit.write(
                "tool.create", actor=actor, tool=str(given.get("name", "")), success=False, error=str(error)
            )
            raise

    def _draft(self, given: Mapping[str, Any], actor: str, origins: Sequence[str]) -> ToolDraft:
        settings = self._settings().dynamic_tools
        name, code = given["name"], given["code"]
        check_name(name)
        self.store.check_free(name, settings.most)
        parameters = read_parameters(given["parameters"]) if given.get("parameters") is not None else None
        examples = read_examples(given.get("examples") or (), parameters)
        permissions = read_permissions(given.get("permissions") or ())
        output_schema = given.get("output_schema")
        if output_schema is not None and (fault := check_schema(output_schema)) is not None:
            raise DynamicToolError(
                f"The output schema of {name} {fault}.", "Give a JSON Schema of an object.", "E106"
            )
        mode = given.get("mode") or detect_mode(code)
        if permissions.is_critical and actor != PERSON:
            asked = enumerate_words(permissions.operations)
            raise DynamicToolError(
                f"Only the person may admit {asked}; a model cannot ask for it.",
                _CHANGE_CODE,
                "E403",
            )
        try:
            safety = analyze_safety(code, mode=mode, strict=settings.strict, granted=permissions.granted)
        except ToolCodeError as error:
            where = f"line {error.line}: " if error.line and "line" not in str(error) else ""
            raise DynamicToolError(
                f"The code of {name} cannot be used: {where}{error}.",
                "Define a function execute(params), plain or async.",
                "E106",
            ) from None
        self._check_critical(name, safety)
        quality = assess_quality(code, description=given["description"], parameters=parameters, mode=mode)
        tool = DynamicTool.create(
            name=name,
            code=code,
            at=_now(),
            safety_score=safety.score,
            quality_score=quality.score,
            description=given["description"],
            mode=mode,
            parameters=parameters,
            created_from_task=given.get("generated_from"),
            tags=tuple(given.get("tags") or ()),
            created_by=actor,
            permissions=permissions.spelled,
            capability=given.get("capability"),
            output_schema=output_schema,
            examples=examples,
            origins=tuple(shorten(each, 500) for each in origins[-_MOST_ORIGINS:]),
            verification_status="pending" if examples else "unverified",
        )
        return ToolDraft(tool, permissions, safety, quality)

    @staticmethod
    def _check_critical(name: str, safety: SafetyAnalysis) -> None:
        """Raise E401 for what is critical and was not admitted."""
        if not safety.blocked_operations:
            return
        critical = [each for each in safety.issues if each.type in safety.blocked_operations]
        lines = "; ".join(f"line {each.line}: {each.description}" for each in critical[:5])
        raise DynamicToolError(
            f"The code of {name} has {count(len(critical), 'critical risk')}: {lines}.",
            f"{_CHANGE_CODE} The person can admit it: permissions=["
            + ", ".join(f'"allow:{each}"' for each in safety.blocked_operations)
            + "].",
            "E401",
        )

    def keep(self, draft: ToolDraft) -> DynamicTool:
        """Keep a tool that was consented to. Raises DynamicToolError: E201, E202, or that it cannot be written."""
        tool = draft.tool
        try:
            self.store.add(tool, self._settings().dynamic_tools.most)
        except DynamicToolError as error:
            self._note("tool.create", tool, success=False, error=str(error))
            raise
        self._note("tool.create", tool, success=True)
        return tool

    async def verify(
        self, tool: DynamicTool, workspace: Workspace, *, record: ChangeRecord | None = None
    ) -> DynamicTool:
        """Run the examples of a tool, and return it with the status that follows: passed or failed.

        Args:
            workspace: as the call may see it.
            record: keeps what files held that the tool changes.

        Raises:
            SandboxError, DynamicToolError: as `run`.
        """
        wrong = ""
        for number, example in enumerate(tool.examples, 1):
            run = await self._run(self.prepare(tool, example.parameters), workspace, record)
            if not run.ok:
                wrong = f"example {number}: {run.error}"
            elif run.value != example.result:
                wrong = f"example {number} gave another result"
            if wrong:
                break
        status: Verification = "failed" if wrong else "passed"
        verified = await asyncio.to_thread(self._with_status, tool, status)
        action = "verification.fail" if wrong else "verification.pass"
        await asyncio.to_thread(self._note, action, tool, not wrong, wrong or None)
        return verified

    def deprecate(self, wanted: str) -> DynamicTool:
        """Mark a tool as one that should not be used any more; it can still be run. Raises DynamicToolError E203."""
        tool = self._with_status(self.find(wanted), "deprecated")
        self._note("tool.deprecate", tool, success=True)
        return tool

    def _with_status(self, tool: DynamicTool, status: Verification) -> DynamicTool:
        return self.store.update(tool.name, lambda now: now.with_verification(status, _now()))

    def find(self, wanted: str) -> DynamicTool:
        """Return a tool by name or id. Raises DynamicToolError: E203 where there is none, E204 where it was changed."""
        tool = self.store.get(wanted)
        tool.check_intact()
        return tool

    def prepare(
        self, tool: DynamicTool, parameters: Mapping[str, Any], timeout_ms: int = TIMEOUT_MS
    ) -> PreparedRun:
        """Return a run that may begin, in the order of the reference: schema, then a quick look for what is critical.

        Raises:
            DynamicToolError: E105, E106, E303, E403.
        """
        values = apply_parameters(tool, parameters)
        permissions = read_permissions(tool.permissions)
        found = critical_issues(tool.code, mode=tool.mode, granted=permissions.granted)
        if found:
            first = found[0]
            raise DynamicToolError(
                f"{tool.name} failed the safety check: line {first.line}: {first.description}.",
                "Make the tool anew with other code.",
                "E303",
            )
        return PreparedRun(tool, values, permissions, timeout_ms)

    async def run(
        self,
        call: PreparedRun,
        workspace: Workspace,
        *,
        actor: str,
        record: ChangeRecord | None = None,
        on_output: OnOutput | None = None,
    ) -> ToolRun:
        """Run a tool in its sandbox, and keep its use, its confidence and a line of the audit.

        Args:
            workspace: as the call may see it: what its rules keep back is kept from the tool.
            record: keeps what files held that the tool changes.

        Raises:
            SandboxError: no sandbox is in force, or a process of the tool does not end.
            DynamicToolError: E403, a place that it may reach is not there.
        """
        tool = call.tool
        try:
            run = await self._run(call, workspace, record, on_output)
        except SandboxError as error:
            if error.began:
                await asyncio.to_thread(
                    self.audit.write,
                    "tool.run",
                    actor=actor,
                    tool=tool,
                    success=False,
                    error=str(error),
                    parameters=call.parameters,
                )
            raise
        with suppress(DynamicToolError):  # it was deleted meanwhile
            await asyncio.to_thread(self.store.update, tool.name, lambda now: now.used(run.ok, _now()))
        await asyncio.to_thread(
            self.audit.write,
            "tool.run",
            actor=actor,
            tool=tool,
            success=run.ok,
            error=run.error or None,
            seconds=round(run.seconds, 3),
            parameters=call.parameters,
        )
        return run

    async def _run(
        self,
        call: PreparedRun,
        workspace: Workspace,
        record: ChangeRecord | None,
        on_output: OnOutput | None = None,
    ) -> ToolRun:
        run = await run_tool(
            call.tool.code,
            call.parameters,
            mode=call.tool.mode,
            name=call.tool.name,
            permissions=call.permissions,
            timeout_ms=call.timeout_ms,
            settings=self._settings().sandbox,
            workspace=workspace,
            record=record,
            on_output=on_output,
        )
        fault = result_fault(call.tool, run.value) if run.ok else None
        return run if fault is None else replace(run, ok=False, error=fault, error_kind="failed")

    def delete(self, wanted: str, *, actor: str) -> DynamicTool:
        """Remove a tool and return it as it was. Raises DynamicToolError E203."""
        tool = self.store.remove(wanted)
        self.audit.write("tool.delete", actor=actor, tool=tool, success=True)
        return tool

    def select(
        self,
        *,
        name: str | None = None,
        tags: Sequence[str] = (),
        min_safety_score: float | None = None,
    ) -> list[DynamicTool]:
        """Return tools by name.

        Args:
            name: a part of their names, in any case.
            tags: they have one of these.
            min_safety_score: from 0 to 1.
        """
        tools, _ = self.store.all()
        return [
            tool
            for tool in tools
            if (name is None or name.casefold() in tool.name.casefold())
            and (not tags or set(tags) & set(tool.tags))
            and (min_safety_score is None or tool.safety_score >= min_safety_score)
        ]

    def _note(self, action: str, tool: DynamicTool, success: bool, error: str | None = None) -> None:
        self.audit.write(action, actor=tool.created_by, tool=tool, success=success, error=error)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
