"""The catalog as it was at one moment.

Invariant: a snapshot never changes. Actions stand in the order of their qualified names; each category's
actions are contiguous, because no name of another category can begin with its name and the separator.
Replacing one category's live entries builds that slice anew and shares all others.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

from reyn_jupyter.catalog.action import Action, Category, Entry, Operation, Purity, Schema, Tool
from reyn_jupyter.catalog.dispatch import CatalogError, DispatchTables, ToolRegistry
from reyn_jupyter.catalog.face_checks import FaceChecker, check_category, hidden_reason
from reyn_jupyter.catalog.names import SEPARATOR, ActionName
from reyn_jupyter.catalog.taxonomy import in_order
from reyn_jupyter.catalog.text_normalization import fold, quoted
from reyn_jupyter.support.encoding import clean, clip_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

__all__ = ["CatalogError", "CatalogSnapshot", "CategorySlice"]

# What is derived from a few thousand actions can wait for the first call that needs it; for more it would
# be felt there (0.3 s at 100,000 actions), so it is made with the rest.
DERIVED_AT_ONCE = 5_000
_RECORD = "\x1e"  # a control character: in no name, and in no short description


@dataclass(frozen=True, eq=False)
class CategorySlice:
    """One category's part of a snapshot: its actions by name, why it is hidden, and what is derived from them."""

    category: Category
    actions: tuple[Action, ...]
    hidden: str | None

    @classmethod
    def build(cls, category: Category, entries: Sequence[Entry]) -> CategorySlice:
        """Build the slice of a category. Raises CatalogError when it or one of its entries cannot be used."""
        check_category(category)
        checker = FaceChecker(category.name)
        rule = category.resources
        if not isinstance(entries, (list, tuple)):
            raise CatalogError(category.name, f"its live entries are a {type(entries).__name__}, no list")
        if rule is None and entries:
            raise CatalogError(category.name, "it has live entries but no rule for them")
        actions = [_action(*checker.check(face), face, face.tool, None) for face in category.operations]
        if rule is not None:
            default = rule.canonical_default
            actions += [_action(*checker.check(face), face, rule.tool, default) for face in entries]
        actions.sort(key=lambda action: action.name.text)
        for before, after in pairwise(actions):
            if before.name.text == after.name.text:
                raise CatalogError(category.name, f"its entry {quoted(after.name.entry)} is there twice")
        why = hidden_reason(category)
        built = cls(category, tuple(actions), None if why is None else clip_line(why, 300))
        if len(actions) > DERIVED_AT_ONCE:
            _ = built.by_entry, built.folded, built.joined
        return built

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def visible(self) -> bool:
        return self.hidden is None

    @cached_property
    def by_entry(self) -> Mapping[str, Action]:
        """The actions by entry; the keys are the live entry names that dispatch asks for."""
        return MappingProxyType({action.name.entry: action for action in self.actions})

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """Name and short description of each action as the filter compares them, a line break between."""
        records = _RECORD.join(f"{action.name.text}\n{action.short_description}" for action in self.actions)
        return tuple(fold(records).split(_RECORD)) if self.actions else ()

    @cached_property
    def by_risk(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Where the actions stand that only read, and those that may change something."""
        parts: tuple[list[int], list[int]] = [], []
        for at, action in enumerate(self.actions):
            parts[not action.purity.repeatable].append(at)
        return tuple(parts[0]), tuple(parts[1])

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(action.name.text for action in self.actions)

    @cached_property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """The names whose entries have two parts (``<server>__<tool>``), by the first part."""
        found: dict[str, list[str]] = {}
        for name in self.texts:
            head, separator, _ = name.partition(SEPARATOR)[2].partition(SEPARATOR)
            if separator:
                found.setdefault(head, []).append(name)
        return MappingProxyType({head: tuple(names) for head, names in found.items()})

    @cached_property
    def joined(self) -> tuple[str, list[int]]:
        """All names in one text without case, each after a line break, and where each begins: for a shortlist."""
        lines = ("\n" + "\n".join(self.texts)).casefold()
        lengths = (len(line) + 1 for line in lines.split("\n")[1:])
        return lines, list(accumulate(lengths, initial=0))[:-1]

    @cached_property
    def digest(self) -> bytes:
        """A hash of names, descriptions, schemas and purity."""
        digest = hashlib.sha256()
        for action in self.actions:
            face = [action.name.text, action.description, action.input_schema, str(action.purity)]
            digest.update(json.dumps(face, sort_keys=True, separators=(",", ":")).encode("ascii"))
        return digest.digest()


def _action(
    name: ActionName, schema: Schema, face: Operation | Entry, tool: Tool, default: str | None
) -> Action:
    purity = (face.purity if isinstance(face, Entry) else None) or tool.purity
    version = face.version if isinstance(face, Entry) else ""
    return Action(
        name,
        clean(face.description),
        schema,
        purity if isinstance(purity, Purity) else Purity.UNKNOWN,
        tool.name,
        default,
        purity_varies=not isinstance(purity, Purity),
        is_foreign=face.open_schema or not tool.is_built_in or bool(version),
        version=version,
        capability=face.capability if isinstance(face, Entry) else "",
        output_schema=face.output_schema if isinstance(face, Entry) else None,
    )


@dataclass(frozen=True, eq=False)
class CatalogSnapshot:
    """All actions at one moment, the hidden ones kept aside.

    Attributes:
        slices: category name → its slice, in the order of qualified names, hidden ones included.
        tables: the two dispatch tables.
        tools: target name → what runs.

    Example:
        >>> snapshot = CatalogSnapshot.build([], {})
        >>> len(snapshot), snapshot.counts
        (0, {})
    """

    slices: Mapping[str, CategorySlice]
    tables: DispatchTables
    tools: ToolRegistry

    @classmethod
    def build(cls, categories: Sequence[Category], entries: Mapping[str, Sequence[Entry]]) -> CatalogSnapshot:
        """Build a snapshot.

        Args:
            categories: the installed ones.
            entries: category name → its live resources now.

        Raises:
            CatalogError: naming the first category at fault; the others can be built without it.
        """
        slices: dict[str, CategorySlice] = {}
        for category in categories:
            check_category(category)
            if category.name in slices:
                raise CatalogError(category.name, "a category of this name is installed already")
            slices[category.name] = CategorySlice.build(category, entries.get(category.name, ()))
        for name in entries:
            if name not in slices:
                raise CatalogError(name, "it has live entries but is not installed")
        ordered = {name: slices[name] for name in sorted(slices, key=lambda name: name + SEPARATOR)}
        return cls(MappingProxyType(ordered), DispatchTables.of(categories), ToolRegistry.of(categories))

    def replace(self, category_name: str, entries: Sequence[Entry]) -> CatalogSnapshot:
        """Return a snapshot with one category's live resources, and its visibility, as they are now.

        Raises:
            KeyError: no such category.
            CatalogError: its entries cannot be used.
        """
        changed = CategorySlice.build(self.slices[category_name].category, entries)
        return dataclasses.replace(self, slices=MappingProxyType({**self.slices, category_name: changed}))

    def only(self, category_names: Collection[str], why: str) -> CatalogSnapshot:
        """Return a snapshot in which every other category is hidden, for a reader who may not use it.

        Args:
            category_names: those that stay as they are.
            why: a sentence for people about each of the others.
        """
        slices = {
            name: part
            if name in category_names or not part.visible
            else dataclasses.replace(part, hidden=why)
            for name, part in self.slices.items()
        }
        return dataclasses.replace(self, slices=MappingProxyType(slices))

    def with_tools(self, tools: ToolRegistry) -> CatalogSnapshot:
        """Return a snapshot of the same actions, run by other tools of the same names; derived data is shared."""
        made = dataclasses.replace(self, tools=tools)
        vars(made).update({name: value for name, value in vars(self).items() if name != "tools"})
        return made

    @cached_property
    def visible(self) -> tuple[CategorySlice, ...]:
        """The slices on offer, in the order of qualified names."""
        return tuple(part for part in self.slices.values() if part.visible)

    @cached_property
    def aliases(self) -> Mapping[str, Action]:
        """The actions on offer that have a second name, by this name."""
        return MappingProxyType(
            {
                face.alias: part.by_entry[face.entry]
                for part in self.visible
                for face in part.category.operations
                if face.alias
            }
        )

    @cached_property
    def hidden(self) -> Mapping[str, str]:
        """Category that is not on offer → why, in a sentence for people."""
        return MappingProxyType(
            {name: part.hidden for name, part in self.slices.items() if part.hidden is not None}
        )

    @cached_property
    def categories(self) -> tuple[Category, ...]:
        """The categories on offer, in the order of the taxonomy, foreign ones after it."""
        return tuple(self.slices[name].category for name in in_order(s.category.name for s in self.visible))

    @cached_property
    def category_names(self) -> tuple[str, ...]:
        return tuple(category.name for category in self.categories)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Category → number of actions, in the order of the taxonomy."""
        return {name: len(self.slices[name]) for name in self.category_names}

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """Every action on offer, by qualified name."""
        return tuple(chain.from_iterable(part.actions for part in self.visible))

    @cached_property
    def ranges(self) -> dict[str, range]:
        """Category → the positions of its actions in `actions`."""
        ends = list(accumulate((len(part) for part in self.visible), initial=0))
        return {
            part.category.name: range(start, end)
            for part, start, end in zip(self.visible, ends, ends[1:], strict=False)
        }

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the names, descriptions, schemas and purity of every action on offer."""
        digest = hashlib.sha256()
        for part in self.visible:
            digest.update(part.category.name.encode() + b"\0" + part.digest)
        return digest.hexdigest()

    def get(self, name: ActionName) -> Action | None:
        """Return the action of a name when it is on offer, else None; in constant time."""
        return self._on_offer(name.category, name.entry)

    def named(self, text: str) -> Action | None:
        """Return the action on offer whose qualified name is a text to the letter; a near one has to be parsed."""
        category, _, entry = text.partition(SEPARATOR)
        return self._on_offer(category, entry)

    def _on_offer(self, category: str, entry: str) -> Action | None:
        part = self.slices.get(category)
        return part.by_entry.get(entry) if part is not None and part.visible else None

    def __len__(self) -> int:
        return sum(len(part) for part in self.visible)

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)
