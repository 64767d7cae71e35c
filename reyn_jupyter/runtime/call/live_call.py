"""One call of an action: what came, what runs, and what its handler may report and ask for.

Invariants: it is the `ToolContext` of its tool from the plan to the end. Nothing more is granted before its handler
runs, nor once it is over. Where rules have a say on files, the handler sees the workspace through them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import asdict
from typing import Any, Protocol

from reyn_jupyter.catalog.action import Action, Arguments, Purity, Tool
from reyn_jupyter.catalog.effects import Effect
from reyn_jupyter.guard.workspace import FileDecision, Workspace
from reyn_jupyter.runtime.access.reversals import Reversal
from reyn_jupyter.runtime.action_error import PermissionDeniedError
from reyn_jupyter.runtime.call.call_progress import CallProgress
from reyn_jupyter.runtime.call.origins import whose
from reyn_jupyter.runtime.call.outcomes import Reports
from reyn_jupyter.runtime.record.events import FileChanging
from reyn_jupyter.runtime.run import Run
from reyn_jupyter.runtime.services import FileChange, InnerActor, Services, Source, ToolContext
from reyn_jupyter.support.text import tells_to_type

FileRules = Callable[[str], FileDecision]  # the rules' word on a file, by its path


class Within(Protocol):
    """What the handler of a call may ask for while it runs; see the methods of `ToolContext`."""

    async def ask(self, *effects: Effect, reason: str = "") -> None: ...

    async def invoke(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, actor: InnerActor
    ) -> Any: ...

    async def judge_again(
        self, name: str, arguments: Mapping[str, Any], *, effects: Collection[Effect] = ()
    ) -> FileDecision: ...

    async def effects_of(self, name: str, arguments: Mapping[str, Any]) -> tuple[Effect, ...] | None: ...


class LiveCall(ToolContext):
    """A call of an action.

    Args:
        services: what its handler gets.
        run: the run that the call is of.
        call_id: its id in the run.
        step: the step of the run that asked for it.
        action: what is invoked.
        args: its arguments, valid, before references are opened.
        progress: takes the reports of how far it is.
        readable: whether the caller may read a file without a question.

    Attributes:
        given: the arguments as they came, before references were opened.
        described: the action whose description and schema stand for what happens: the one called by name, if any.
        tool, arguments: what runs; the arguments as the handler gets them.
        purity: of this very call.
        judged_name: the action whose rules and approvals hold; another one where an entry can be called by name.
        restricting_names: actions whose rules restrict it too.
        effects: those that it is judged by.
        file_rules: the rules' word on each file that it opens; None where no rule has a say.
        reports: what its handler reported so far.
        lends: the places that it holds, and the keys under which it lends them, one at a time, to calls within it: they
            would wait for its end otherwise, and it for theirs.
        within: what its handler may ask for; None while no handler runs.
    """

    def __init__(
        self,
        services: Services,
        run: Run,
        call_id: str,
        step: int,
        action: Action,
        args: Arguments,
        progress: CallProgress,
        readable: Callable[[str], bool],
    ) -> None:
        self.services = services
        self.run = run
        self.id = call_id
        self.step = step
        self.action = self.described = action
        self.name = action.name
        self.actor = run.actor
        self.run_id = run.id
        self.variables = run.variables
        self.given = self.arguments = args
        self.tool: Tool = run.snapshot.tools[action.target_tool_name]
        self.purity = Purity.UNKNOWN
        self.judged_name = self.title
        self.restricting_names: tuple[str, ...] = ()
        self.effects: tuple[Effect, ...] = ()
        self.file_rules: FileRules | None = None
        self.plan: Any = None
        self.progress, self.report = progress, progress.report
        self.reports = Reports(given=[self.title, args])
        self.lends: dict[Hashable, Hashable] = {}
        self.within: Within | None = None
        self._readable = readable
        self._workspace: Workspace | None = None

    @property
    def title(self) -> str:
        """Return the qualified name of its action."""
        return self.action.name.text

    @property
    def workspace(self) -> Workspace:
        """Return the workspace as the call may see it."""
        if self._workspace is None:
            whole = self.services.workspace
            self._workspace = whole if self.file_rules is None else whole.judged(self._decision)
        return self._workspace

    def judge_files(self, rules: FileRules | None) -> None:
        """Open files by these rules from now on."""
        self.file_rules, self._workspace = rules, None

    def enter(self, tool: Tool, services: Services) -> None:
        """Run with another tool and other services from now on."""
        self.tool, self.services, self._workspace = tool, services, None

    def _decision(self, path: str) -> FileDecision:
        return "allow" if self.file_rules is None else self.file_rules(path)

    # What a handler reports and asks, see `ToolContext`.

    def changed(self, change: FileChange) -> None:
        self.reports.changes.append(change)

    def used(self, source: Source) -> None:
        self.reports.sources.append(source)

    def changing(self, change: FileChange) -> None:
        said = self.services.redactor.value(asdict(change))
        self.run.log.append(FileChanging(call=self.id, at=time.time(), **said))

    def may_read(self, path: str) -> bool:
        return self._readable(path)

    def came_from(self, origin: str) -> None:
        self.reports.origins.append(origin)

    def advise(self, advice: str) -> None:
        self.reports.advice.append(advice)

    def quotes(self) -> bool:
        return tells_to_type(self.reports.given)

    def origins(self) -> tuple[str, ...]:
        return tuple(self.run.outermost.origins)

    def whose(self, *paths: str, folder: bool = False) -> str | None:
        return whose(paths, self.run, self.services.trust, folder=folder)

    def reversible(self, reversal: Reversal) -> None:
        self.services.reversals.keep(self.run.id, self.id, reversal)

    async def ask(self, *effects: Effect, reason: str = "") -> None:
        await self._running.ask(*effects, reason=reason)

    async def invoke(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, actor: InnerActor = "workflow"
    ) -> Any:
        return await self._running.invoke(name, arguments, actor=actor)

    async def judge_again(
        self, name: str, arguments: Mapping[str, Any], *, effects: Collection[Effect] = ()
    ) -> FileDecision:
        return await self._running.judge_again(name, arguments, effects=effects)

    async def effects_of(self, name: str, arguments: Mapping[str, Any]) -> tuple[Effect, ...] | None:
        return await self._running.effects_of(name, arguments)

    @property
    def _running(self) -> Within:
        if self.within is None:
            raise PermissionDeniedError(
                f"Denied: {self.title} does not run yet, so it may ask for nothing.", ""
            )
        return self.within
