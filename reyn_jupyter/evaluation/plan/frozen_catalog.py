"""`Catalog`: the actions that a study's trials are offered, frozen.

Invariant: the faces (names, descriptions, schemas, purity) and with them `hash` never change once made; what runs is
made anew for every trial, in that trial's own workspace, or is of another package and serves all trials of a runner, or
is a recording handler, which does nothing but answer.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reyn_jupyter import categories as installed
from reyn_jupyter.catalog.action import (
    Action,
    Arguments,
    Category,
    Entry,
    Operation,
    Purity,
    Tool,
    calls_nothing,
)
from reyn_jupyter.catalog.dispatch import ToolRegistry
from reyn_jupyter.catalog.names import SEPARATOR
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.evaluation.plan.folder_services import services_in
from reyn_jupyter.evaluation.plan.tool_records import ToolRecord, read_records
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.runtime.live_catalog.catalog_cache import CatalogCache
from reyn_jupyter.runtime.live_catalog.category_lifecycle import CategoryLifecycle
from reyn_jupyter.runtime.services import Services
from reyn_jupyter.support import text
from reyn_jupyter.support.user_errors import UserError

if TYPE_CHECKING:
    from reyn_jupyter.sessions.session import Session

RECORDED = "record_call"
# The categories of a suite that names none. It never grows, or stored trials would be of another catalog: a suite that
# wants a newer category names it.
STANDARD_CATEGORIES = (
    "file",
    "memory_entry",
    "memory_operation",
    "reyn_source",
    "table",
    "variable",
    "function",
)


class SharedCategories:
    """The categories of other packages, which the trials of one runner share: each is made once, and so starts once.

    What they are made with belongs to the runner; a trial's own workspace comes with each call, in its `ToolContext`.

    Args:
        services: gives the runner's; called for the first category that there is.
    """

    def __init__(self, services: Callable[[], Services]) -> None:
        self._services = services
        self._made: dict[installed.Factory, tuple[Category, ...]] = {}

    def of(self, factories: Sequence[tuple[str, installed.Factory]]) -> tuple[Category, ...]:
        """Return the categories of these factories."""
        for origin, factory in factories:
            if factory not in self._made:
                self._made[factory] = tuple(installed.make([(origin, factory)], self._services())[0])
        return tuple(category for _, factory in factories for category in self._made[factory])


class MissingCategoryError(UserError, ValueError):
    """A catalog names a category that is not installed."""


class MissingActionError(UserError, ValueError):
    """A catalog is narrowed to an action that it does not hold."""


async def _record(args: Arguments, context: object) -> dict[str, Any]:
    return {"ok": True, "received": args}


RECORDING = Tool(RECORDED, _record, Purity.PURE)


@dataclass(frozen=True, eq=False, repr=False)
class Catalog:
    """Frozen categories.

    Attributes:
        fixed: categories that need nothing of a session: those with recording handlers.
        factories: what makes the others for a trial's own workspace, each with the place it is from.
        left_out: categories that the factories make and this catalog does not hold.
        names: record id → qualified name, for catalogs made from records.
        types: qualified name → JSON Pointer → the type that a record's schema named there in other words.
        operations: qualified names of the operations that it holds of those categories, all of them when None;
            resources are not narrowed.
        pinned: the categories that it holds of those that the factories make; all of them when None. A category that
            is installed later is then in no stored catalog.
        distractors: qualified names of the actions that fill it up (`filled`).

    Example:
        >>> catalog = Catalog.from_records([{"name": "get_time", "parameters": {"type": "dict"}}])
        >>> catalog.name_of("get_time"), len(catalog.snapshot)
        ('tool__get_time', 1)
    """

    fixed: tuple[Category, ...] = ()
    factories: tuple[tuple[str, installed.Factory], ...] = ()
    left_out: frozenset[str] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pinned: frozenset[str] | None = None
    operations: frozenset[str] | None = None
    distractors: frozenset[str] = frozenset()

    @classmethod
    def from_records(
        cls, records: Any, *, category: str = "tool", capability: str = "Call one of many tools."
    ) -> Catalog:
        """Plain schemas with recording handlers, which answer ``{"ok": true, "received": args}`` and do nothing.

        Args:
            records: a list of records, an MCP ``tools/list`` answer, or the path of a file with either; see
                `tool_records.read_records` for the shapes. Names may repeat; ids may not.
            category, capability: the category that they become, and its sentence in the system prompt.

        Raises:
            ToolRecordError: names the record, and says what it needs.
        """
        read = read_records(records)
        made = Category(category, capability, tuple(map(_operation, read)))
        names = {record.id: f"{category}{SEPARATOR}{record.entry}" for record in read}
        types = {names[record.id]: MappingProxyType(dict(record.types)) for record in read if record.types}
        return cls((made,), names=MappingProxyType(names), types=MappingProxyType(types))

    @classmethod
    def standard(cls, categories: Collection[str] = STANDARD_CATEGORIES) -> Catalog:
        """Return installed categories, in each trial's own workspace, without functions or variables of a notebook.

        Args:
            categories: which of them, by name. One of another package has to be named: what is installed changes with
                the machine, and a suite does not.

        Raises:
            MissingCategoryError: one of them is not installed.
        """
        found, _ = installed.factories()
        wanted = frozenset(categories)
        if wanted <= set(STANDARD_CATEGORIES):
            found = tuple(made for made in found if not made[0].startswith(installed.PACKAGE))
        catalog = cls(factories=found, pinned=wanted)
        missing = sorted(wanted - set(catalog.snapshot.slices))
        if missing:
            raise MissingCategoryError(
                f"the category {missing[0]!r} is not installed; install its package, or leave it out of the catalog "
                "(%reyn doctor names what is installed and what could not be loaded)"
            )
        return catalog

    @classmethod
    def from_session(cls, session: Session) -> Catalog:
        """Return the catalog that a session offers now, for a suite of one's own.

        The installed categories run in each trial's workspace. Everything that is the person's own (functions,
        variables, memories, categories given to the session) gets handlers that record the call and do nothing, so
        that no trial touches it. What the session hides stays hidden.

        Example: ``catalogs={"mine": reyn.Catalog.from_session(reyn.session())}`` of a suite.
        """
        found, _ = installed.factories()
        standard = cls(factories=found).snapshot
        recorded = []
        for part in session.catalog.visible:
            name = part.category.name
            known = standard.slices.get(name)
            if known is not None and known.digest == part.digest:
                continue
            faces = tuple(_recorded(action, session.catalog) for action in part.actions)
            recorded.append(Category(name, part.category.capability, faces))
        hidden = {name for name, part in standard.slices.items() if part.visible}
        hidden -= {part.category.name for part in session.catalog.visible}
        own = frozenset({*hidden, *(category.name for category in recorded)})
        return cls(tuple(recorded), found, own)

    def __add__(self, other: Catalog) -> Catalog:
        """Return both catalogs together; a category that both make is this one's."""
        mine = set(self.snapshot.slices)
        known = {name for name, _ in self.factories}
        return Catalog(
            (*self.fixed, *(category for category in other.fixed if category.name not in mine)),
            (*self.factories, *(made for made in other.factories if made[0] not in known)),
            self.left_out | other.left_out if other.factories else self.left_out,
            MappingProxyType({**other.names, **self.names}),
            MappingProxyType({**other.types, **self.types}),
            _pinned_of(self, other),
            _operations_of(self, other),
            self.distractors | other.distractors,
        )

    def __repr__(self) -> str:
        count = len(self.snapshot)
        held = ", ".join(self.snapshot.category_names)
        return f"Catalog({text.count(count, 'action')} of {held})"

    def name_of(self, record: str) -> str:
        """Return the qualified name that a record got. Raises KeyError with what to look at."""
        try:
            return self.names[record]
        except KeyError:
            raise KeyError(
                f"no record {record!r} is in this catalog; `names` holds {len(self.names)}"
            ) from None

    def without(self, categories: Collection[str]) -> Catalog:
        """Return the catalog without these categories; one that it does not hold changes nothing.

        Example:
            >>> Catalog.from_records([{"name": "get_time"}]).without(["tool"])
            Catalog(0 actions of )
        """
        left = frozenset(categories)
        return replace(
            self,
            fixed=tuple(category for category in self.fixed if category.name not in left),
            left_out=self.left_out | left,
        )

    def filled(self, records: Sequence[ToolRecord], category: str, capability: str) -> Catalog:
        """Return the catalog with these records too, as distractors with recording handlers.

        Args:
            records: with entries that the category does not hold.
            category, capability: where they go; a category of records that the catalog has goes on as it is.

        Raises:
            ValueError: the category is there, and is an installed one.
        """
        before = next((each for each in self.fixed if each.name == category), None)
        if before is None and category in self.snapshot.slices:
            raise ValueError(f"the category {category!r} is an installed one, which no record can stand in")
        made = before or Category(category, capability)
        made = replace(made, operations=(*made.operations, *map(_operation, records)))
        names = {record.id: f"{category}{SEPARATOR}{record.entry}" for record in records}
        types = {names[record.id]: MappingProxyType(dict(record.types)) for record in records if record.types}
        return replace(
            self,
            fixed=(*(each for each in self.fixed if each is not before), made),
            names=MappingProxyType({**names, **self.names}),
            types=MappingProxyType({**self.types, **types}),
            distractors=self.distractors | frozenset(names.values()),
        )

    def only(self, operations: Collection[str]) -> Catalog:
        """Return the catalog with these operations alone of its installed categories.

        Args:
            operations: qualified names.

        Raises:
            MissingActionError: the catalog does not hold one of them.

        Example:
            >>> Catalog.standard(["file"]).only(["file__read", "file__write"])
            Catalog(2 actions of file)
        """
        held = {action.name.text for action in self.snapshot.actions}
        missing = [name for name in operations if name not in held]
        if missing:
            hint = text.meant_clause(missing[0], held) or "."
            raise MissingActionError(f"there is no action {missing[0]!r} in the catalog{hint}")
        return replace(self, operations=frozenset(operations))

    def _narrow(self, category: Category) -> Category:
        if self.operations is None:
            return category
        kept = (
            each
            for each in category.operations
            if f"{category.name}{SEPARATOR}{each.entry}" in self.operations
        )
        return replace(category, operations=tuple(kept))

    @property
    def foreign(self) -> bool:
        """True if another package makes some of it."""
        return any(name.startswith(installed.PACKAGE) for name, _ in self.factories)

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the faces of every action on offer in an empty workspace, in hex."""
        return self.snapshot.hash

    @cached_property
    def snapshot(self) -> CatalogSnapshot:
        """The faces, as an empty workspace has them."""
        # The folder only has to be there while the categories are made: nothing of this snapshot ever runs.
        with tempfile.TemporaryDirectory(prefix="reyn-faces-") as folder:
            workspace, own = Workspace(Path(folder), off_limits=()), Path(folder, "own")
            services = services_in(workspace, own_folder=own) if self.factories else None
            made = self.make(services) if services is not None else ()
            snapshot = CatalogSnapshot.build((*made, *self.fixed), {})
            # Made once, and shared by the snapshots of all trials.
            _ = snapshot.hash, snapshot.category_names, snapshot.actions, snapshot.ranges
            return snapshot

    @cached_property
    def _fixed_tools(self) -> ToolRegistry:
        return ToolRegistry.of(self.fixed)

    def make(self, services: Services, shared: SharedCategories | None = None) -> tuple[Category, ...]:
        """Return the categories that run: ours, made anew over one trial's services, and those of other packages.

        Args:
            shared: gives the latter; they are made anew too when None.
        """
        theirs = [made for made in self.factories if made[0].startswith(installed.PACKAGE)]
        ours = [made for made in self.factories if made not in theirs]
        others = shared.of(theirs) if shared is not None else installed.make(theirs, services)[0]
        return tuple(
            self._narrow(category)
            for category in (*installed.make(ours, services)[0], *others)
            if category.name not in self.left_out and (self.pinned is None or category.name in self.pinned)
        )

    def live(
        self, services: Services, shared: SharedCategories, lifecycle: CategoryLifecycle
    ) -> CatalogCache:
        """Return the catalog of one trial: the frozen faces, run in its workspace, whose own resources come beside
        them.

        Args:
            services: the trial's.
            shared, lifecycle: the runner's, which all trials share.
        """

        def load() -> tuple[Sequence[Category], Sequence[str]]:
            return (*self.make(services, shared), *self.fixed), ()

        return CatalogCache(load, self._build, lifecycle)

    def _build(
        self, categories: Sequence[Category], entries: Mapping[str, Sequence[Entry]]
    ) -> CatalogSnapshot:
        faces = self.snapshot
        same = {category.name: category.hidden() is None for category in categories} == {
            name: part.visible for name, part in faces.slices.items()
        }
        if not same:
            return CatalogSnapshot.build(categories, entries)
        fixed = {category.name for category in self.fixed}
        own = [category for category in categories if category.name not in fixed]
        snapshot = faces
        if own:
            snapshot = faces.with_tools(ToolRegistry({**self._fixed_tools, **ToolRegistry.of(own)}))
        for name, found in entries.items():
            if found:
                snapshot = snapshot.replace(name, found)
        return snapshot


def _pinned_of(one: Catalog, other: Catalog) -> frozenset[str] | None:
    parts = [each.pinned for each in (one, other) if each.factories]
    pinned: frozenset[str] = frozenset()
    for part in parts:
        if part is None:
            return None
        pinned |= part
    return pinned if parts else None


def _operations_of(one: Catalog, other: Catalog) -> frozenset[str] | None:
    parts = [each for each in (one, other) if each.factories]
    if all(part.operations is None for part in parts):
        return None
    held = (
        {action.name.text for action in part.snapshot.actions} if part.operations is None else part.operations
        for part in parts
    )
    return frozenset(name for names in held for name in names)


def _recorded(action: Action, snapshot: CatalogSnapshot) -> Operation:
    """Return an action with a recording handler, its arguments checked as they are in the session."""
    rule = snapshot.tables.rule(action.name)
    calls = calls_nothing if rule is None else rule.calls
    return Operation(action.name.entry, action.description, action.input_schema, RECORDING, calls=calls)


def _operation(record: ToolRecord) -> Operation:
    return Operation(record.entry, record.description, record.schema, RECORDING)
