"""A workspace with real services, and actions called as the invoker calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from reyn_jupyter.catalog.action import Category, Effect, Operation, Tool
from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.config import Settings
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.content import BlobStore
from reyn_jupyter.runtime.call.call_plan import closing_plan, make_plan
from reyn_jupyter.runtime.services import Actor, FileChange, Services, Source
from reyn_jupyter.support.secrets import Redactor
from tests.support.plain_context import PlainContext

T = TypeVar("T")

SECRET = "correct-horse-battery"


async def on_this_thread(function: Callable[[], T]) -> T:
    return function()


def build_services(root: Path, blobs: BlobStore | None = None) -> Services:
    workspace = Workspace(root)
    return Services(
        root=workspace.root,
        workspace=workspace,
        namespace=dict,
        functions=dict,
        settings=Settings,
        blobs=blobs,
        redactor=Redactor({"DEMO_API_KEY": SECRET}),
        main_thread=on_this_thread,
    )


@dataclass
class Actions:
    """The operations of some categories, by qualified name, with what their calls reported."""

    services: Services
    categories: tuple[Category, ...]
    actor: Actor = "model"
    changes: list[FileChange] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)

    def operation(self, name: str) -> Operation:
        parsed = ActionName.parse(name)
        return next(
            operation
            for category in self.categories
            if category.name == parsed.category
            for operation in category.operations
            if operation.entry == parsed.entry
        )

    def context(self, name: str) -> PlainContext:
        parsed = ActionName.parse(name)
        return PlainContext(self.services, parsed, self.actor, changes=self.changes, sources=self.sources)

    async def call(self, action: str, **args: Any) -> Any:
        tool = self.operation(action).tool
        context = self.context(action)
        with closing_plan(await make_plan(tool, args, context)) as context.plan:
            return await tool.handler(args, context)

    def effects(self, action: str, **args: Any) -> tuple[Effect, ...]:
        tool = self.operation(action).tool
        with self._planned(tool, args, self.context(action)) as context:
            return tuple(tool.effects(args, context))

    def preview(self, action: str, **args: Any) -> str | None:
        tool = self.operation(action).tool
        with self._planned(tool, args, self.context(action)) as context:
            return tool.preview(args, context) if tool.preview else None

    @staticmethod
    @contextmanager
    def _planned(tool: Tool, args: Any, context: PlainContext) -> Iterator[PlainContext]:
        with ExitStack() as held:
            plan = None if tool.plan is None else tool.plan(args, context)
            if (close := getattr(plan, "close", None)) is not None:
                held.callback(close)
            yield replace(context, plan=plan)


def file_actions(root: Path, *, keep: bool = True, actor: Actor = "model") -> Actions:
    from reyn_jupyter.categories.file import categories

    services = build_services(root, MemoryBlobStore() if keep else None)
    return Actions(services, categories(services), actor)
