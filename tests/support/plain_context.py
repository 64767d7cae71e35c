"""The surroundings of a call without a run: for tests of one category, and of what handlers use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from reyn_jupyter.catalog.effects import Effect
from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.guard.workspace import FileDecision, Workspace
from reyn_jupyter.runtime.access.progress_report import ProgressReport
from reyn_jupyter.runtime.access.reversals import Reversal
from reyn_jupyter.runtime.action_error import PermissionDeniedError
from reyn_jupyter.runtime.services import (
    Actor,
    FileChange,
    InnerActor,
    Services,
    Source,
    ToolContext,
    VariablesPolicy,
)


def _ignored(*_: object, **__: object) -> None:
    """Take a report that nobody hears."""


@dataclass
class PlainContext(ToolContext):
    """A context whose call belongs to no run: nothing more is granted, and no rules hold."""

    services: Services
    name: ActionName
    actor: Actor = "model"
    run_id: str = "run-1"
    variables: VariablesPolicy = "head"
    plan: Any = None
    report: ProgressReport = _ignored
    changes: list[FileChange] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    reversals: list[Reversal] = field(default_factory=list)

    @property
    def workspace(self) -> Workspace:
        return self.services.workspace

    def changed(self, change: FileChange) -> None:
        self.changes.append(change)

    def changing(self, change: FileChange) -> None:
        pass

    def used(self, source: Source) -> None:
        self.sources.append(source)

    def may_read(self, path: str) -> bool:
        return True

    async def ask(self, *effects: Effect, reason: str = "") -> None:
        raise PermissionDeniedError("Denied: the call belongs to no run.", "")

    def came_from(self, origin: str) -> None:
        pass

    def advise(self, advice: str) -> None:
        pass

    def quotes(self) -> bool:
        return False

    def origins(self) -> tuple[str, ...]:
        return ()

    def whose(self, *paths: str, folder: bool = False) -> str | None:
        return None

    def reversible(self, reversal: Reversal) -> None:
        self.reversals.append(reversal)

    async def invoke(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, actor: InnerActor = "workflow"
    ) -> Any:
        raise PermissionDeniedError("Denied: the call belongs to no run.", "")

    async def judge_again(
        self, name: str, arguments: Mapping[str, Any], *, effects: Collection[Effect] = ()
    ) -> FileDecision:
        return "deny"

    async def effects_of(self, name: str, arguments: Mapping[str, Any]) -> tuple[Effect, ...] | None:
        return None
