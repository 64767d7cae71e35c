"""A workspace, a notebook's namespace and blobs, and actions called as the invoker calls them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from reyn_jupyter.catalog.action import Category, Effect, Entry, Tool
from reyn_jupyter.catalog.arguments.preparation import prepare
from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.config import Settings
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.convert import to_content
from reyn_jupyter.runtime.call.call_plan import closing_plan, make_plan
from reyn_jupyter.runtime.call.reference_resolver import open_references
from reyn_jupyter.runtime.namespace.functions import FunctionRegister
from reyn_jupyter.runtime.services import Actor, Services, Source, VariablesPolicy
from reyn_jupyter.support.programs.child_process import ChildProcesses
from reyn_jupyter.support.secrets import Redactor
from tests.support.plain_context import PlainContext

T = TypeVar("T")
SECRET = "correct-horse-battery"


class InvalidArgumentsError(Exception):
    """Arguments that the schema refuses; `invalid` as the caller reads it."""

    def __init__(self, invalid: list[Any]) -> None:
        super().__init__(str(invalid))
        self.invalid = invalid


async def on_this_thread(function: Callable[[], T]) -> T:
    return function()


@dataclass
class Notebook:
    """A notebook with one installed category."""

    root: Path
    names: dict[str, Any] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    main_thread: Any = on_this_thread
    functions: FunctionRegister = field(default_factory=FunctionRegister)
    blobs: MemoryBlobStore | None = field(default_factory=MemoryBlobStore)
    children: ChildProcesses = field(default_factory=ChildProcesses)

    @property
    def services(self) -> Services:
        workspace = Workspace(self.root)
        return Services(
            root=workspace.root,
            workspace=workspace,
            namespace=lambda: self.names,
            functions=self.functions.all,
            settings=lambda: self.settings,
            blobs=self.blobs,
            redactor=Redactor({"DEMO_API_KEY": SECRET}),
            main_thread=self.main_thread,
            children=self.children,
        )

    async def keep(self, value: object) -> str:
        """Store a value as a result would be; its blob id."""
        assert self.blobs is not None
        return await self.blobs.store(to_content(value))

    def caller(self, categories: Callable[[Services], tuple[Category, ...]], **context: Any) -> Caller:
        services = self.services
        return Caller(services, categories(services)[0], **context)


@dataclass
class Caller:
    """Calls actions of one category: arguments validated, references opened, then the handler."""

    services: Services
    category: Category
    actor: Actor = "model"
    variables: VariablesPolicy = "head"
    used: list[Source] = field(default_factory=list)

    async def entries(self) -> dict[str, Entry]:
        assert self.category.resources is not None
        return {entry.entry: entry for entry in await self.category.resources.entries()}

    async def call(self, entry: str, /, **args: Any) -> Any:
        schema, tool, target = await self._resolve(entry)
        prepared = prepare(schema, args)
        if prepared.invalid:
            raise InvalidArgumentsError(prepared.invalid)
        context = self.context(entry)
        target_args = target(await open_references(schema, prepared.args, context))
        with closing_plan(await make_plan(tool, target_args, context)) as context.plan:
            tool.effects(target_args, context)
            return await tool.handler(target_args, context)

    def effects(self, entry: str, **args: Any) -> tuple[Effect, ...]:
        """Return the effects that a call names of arguments without references."""
        tool = next(each.tool for each in self.category.operations if each.entry == entry)
        context = self.context(entry)
        plan = None if tool.plan is None else tool.plan(args, context)
        return tuple(tool.effects(args, replace(context, plan=plan)))

    def context(self, entry: str) -> PlainContext:
        name = ActionName(self.category.name, entry)
        return PlainContext(self.services, name, self.actor, variables=self.variables, sources=self.used)

    def under(self, **changes: Any) -> Caller:
        """The same notebook for another caller or policy."""
        return replace(self, used=[], **changes)

    async def _resolve(self, entry: str) -> tuple[Any, Tool, Callable[[Any], Any]]:
        for operation in self.category.operations:
            if operation.entry == entry:
                return operation.input_schema, operation.tool, operation.transform
        resources = self.category.resources
        assert resources is not None
        schema = (await self.entries())[entry].input_schema
        return schema, resources.tool, lambda args: resources.transform(entry, args)


class Hostile:
    """An object whose every hook records that it was called, and fails."""

    calls: list[str] = []  # noqa: RUF012 - one list for all, read by the tests

    def __getattribute__(self, name: str) -> Any:
        Hostile.calls.append(name)
        raise AttributeError(name)

    def __repr__(self) -> str:
        Hostile.calls.append("repr")
        raise RuntimeError("repr")

    __str__ = __repr__

    def __len__(self) -> int:
        Hostile.calls.append("len")
        raise RuntimeError("len")

    def __bool__(self) -> bool:
        Hostile.calls.append("bool")
        raise RuntimeError("bool")

    def __eq__(self, other: object) -> bool:
        Hostile.calls.append("eq")
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        Hostile.calls.append("hash")
        raise RuntimeError("hash")

    def __iter__(self) -> Any:
        Hostile.calls.append("iter")
        raise RuntimeError("iter")

    @property
    def __class__(self) -> Any:
        Hostile.calls.append("class")
        raise RuntimeError("class")

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise RuntimeError("class")
