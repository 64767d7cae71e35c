"""The conditions under which a category enters a snapshot.

Invariant: whatever passes here can be listed, hashed, encoded and addressed by its name. Category files of
third parties are checked like our own, and the fault is told with the category's name, so that a session
can go on without it. Of a schema the shape is looked at; the full check (`schema_check.check_schema`) is for
schemas from elsewhere, and otherwise waits for the first call that needs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from reyn_jupyter.catalog.action import Category, Entry, Operation, Purity, Resources, Schema, Tool
from reyn_jupyter.catalog.arguments.schema_dialects import SchemaError
from reyn_jupyter.catalog.dispatch import CatalogError, tools_of
from reyn_jupyter.catalog.names import ActionName, MalformedNameError, is_category_name
from reyn_jupyter.catalog.schema_check import check_schema, read_schema
from reyn_jupyter.catalog.text_normalization import quoted

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def check_category(category: Category) -> None:
    """Check the declaration of a category. Raises CatalogError where it cannot be used."""
    if not isinstance(category, Category):
        raise CatalogError(type(category).__name__, "it is no Category")
    if not isinstance(category.name, str) or not is_category_name(category.name):
        raise CatalogError(
            str(category.name),
            "its name is not made of lower-case words joined by single dots, dashes or underscores",
        )

    def refuse(reason: str) -> CatalogError:
        return CatalogError(category.name, reason)

    if not isinstance(category.capability, str) or not category.capability.strip():
        raise refuse("it has no capability sentence")
    if not all(isinstance(operation, Operation) for operation in category.operations):
        raise refuse("its operations are not all of type Operation")
    if category.resources is not None and not isinstance(category.resources, Resources):
        raise refuse(f"its resources are a {type(category.resources).__name__}, no Resources")
    for tool in tools_of(category):
        _check_tool(tool, refuse)


def _check_tool(tool: object, refuse: Callable[[str], CatalogError]) -> None:
    if not isinstance(tool, Tool) or not isinstance(tool.name, str) or not tool.name:
        raise refuse("a target is no Tool with a name")
    if not isinstance(tool.purity, Purity) and not callable(tool.purity):
        raise refuse(f"the target {quoted(tool.name)} has no Purity and no function that gives one")
    if not callable(tool.handler) or not callable(tool.effects):
        raise refuse(f"the handler or the effects of {quoted(tool.name)} cannot be called")


def hidden_reason(category: Category) -> str | None:
    """Return why a category is not offered now, in its own words; None where it is.

    Raises:
        CatalogError: the category's own function fails, or gives neither None nor a sentence.
    """
    try:
        why = category.hidden()
    except (Exception, SystemExit) as error:
        raise CatalogError(category.name, f"its `hidden` failed with {type(error).__name__}") from error
    if why is not None and (not isinstance(why, str) or not why.strip()):
        raise CatalogError(category.name, "its `hidden` gave neither None nor a sentence that says why")
    return why


class FaceChecker:
    """Checks the face of one category's actions; a schema that many share is looked at once."""

    def __init__(self, category: str) -> None:
        self._category = category
        self._read: dict[tuple[int, bool], tuple[Schema, Schema]] = {}

    def check(self, face: Operation | Entry) -> tuple[ActionName, Schema]:
        """Return the qualified name of a face that can be used, and its schema in JSON Schema 2020-12.

        Raises:
            CatalogError: it cannot be used.
        """
        if not isinstance(face, (Operation, Entry)):
            raise CatalogError(self._category, f"an entry is a {type(face).__name__}")
        name = self._name(face.entry)
        if not isinstance(face.description, str):
            raise CatalogError(self._category, f"{quoted(face.entry)} has no description")
        if isinstance(face, Entry) and not isinstance(face.purity, (Purity, type(None))):
            raise CatalogError(self._category, f"{quoted(face.entry)} has a purity that is none")
        key = id(face.input_schema), face.open_schema
        if key not in self._read:
            try:
                read = read_schema(face.input_schema, open_schema=face.open_schema)
            except SchemaError as error:
                reason = f"the input schema of {quoted(face.entry)} {error.message}"
                raise CatalogError(self._category, reason) from None
            self._read[key] = face.input_schema, read  # the first keeps its identity from being given again
        return name, self._read[key][1]

    def _name(self, entry: object) -> ActionName:
        if isinstance(entry, str) and not _CONTROL.search(entry):
            name = ActionName(self._category, entry)
            try:
                if ActionName.parse(name.text) == name:
                    return name
            except MalformedNameError:
                pass
        raise CatalogError(
            self._category,
            f"{quoted(entry)} cannot be an entry: it takes 1 to 512 characters, none of them a control character, "
            "and no blank at its end",
        )


def sound_entries(category: Category, entries: Sequence[object]) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Return the live entries that can be used, and why each of the others cannot; of two of a name, the first.

    >>> sound_entries(Category("lab", "Run."), (Entry("a", "A.", {}), Entry("a", "B.", {}), 5))[1]
    ("its entry 'a' is there twice", 'an entry is a int')
    """
    checker = FaceChecker(category.name)
    taken = {operation.entry for operation in category.operations}
    sound: list[Entry] = []
    faults = []
    for entry in entries:
        try:
            if not isinstance(entry, Entry):
                raise CatalogError(category.name, f"an entry is a {type(entry).__name__}")
            checker.check(entry)
            if entry.entry in taken:
                raise CatalogError(category.name, f"its entry {quoted(entry.entry)} is there twice")
        except CatalogError as error:
            faults.append(error.reason)
        else:
            taken.add(entry.entry)
            sound.append(entry)
    return tuple(sound), tuple(faults)


def callable_entries(entries: Sequence[Entry]) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Return the entries without those whose schema is somebody else's and can hold no arguments, and why.

    It takes about half a millisecond for a schema that it has not seen.

    >>> remote = {"properties": {"a": {"$ref": "https://example.org/a.json"}}}
    >>> callable_entries((Entry("a", "A.", remote, open_schema=True), Entry("b", "B.", {}, open_schema=True)))[1]
    ("the input schema of 'a' refers to 'https://example.org/a.json', which it does not hold",)
    """
    found: list[Entry] = []
    faults: list[str] = []
    for entry in entries:
        if (
            not isinstance(entry, Entry)
            or not entry.open_schema
            or (fault := check_schema(entry.input_schema)) is None
        ):
            found.append(entry)
        else:
            faults.append(f"the input schema of {quoted(entry.entry)} {fault}")
    return tuple(found), tuple(faults)
