"""The operations of the catalog explorer: pages of actions, one action with its form, its line, and a call.

What a person typed travels as texts, so that no digit of a number is lost on the way through a page. A row holds the
texts that the static table shows, in the order of the columns, which have names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from reyn_jupyter.catalog.action import Action
from reyn_jupyter.catalog.arguments.preparation import invalid_arguments
from reyn_jupyter.catalog.arguments.schema_validation import Invalid
from reyn_jupyter.catalog.discovery.search_results import SEARCH_LIMIT
from reyn_jupyter.catalog.resolve import UnknownActionError, find
from reyn_jupyter.catalog.snapshot import CatalogSnapshot
from reyn_jupyter.guard.permissions import Policy
from reyn_jupyter.notebook.magic_line.corrected_calls import LABEL, corrected_lines
from reyn_jupyter.notebook.magic_line.invoke_line import invoke_command
from reyn_jupyter.notebook.render.blob_view import result_view
from reyn_jupyter.notebook.render.blocks import Cell, Commands, Fold, Paragraph, SortedText, Span, Tone, View
from reyn_jupyter.notebook.render.catalog_view import COLUMNS, EFFECTS, action_card, action_cells, weak_remark
from reyn_jupyter.notebook.render.problems import hint
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.notebook.serving.forms import FIELDS, ActionForm, arguments_of, form
from reyn_jupyter.notebook.serving.operation import (
    OperationContext,
    OperationError,
    ServedOperation,
    WireMessage,
)
from reyn_jupyter.notebook.serving.protocol import LiveBlob
from reyn_jupyter.sessions.action_rows import action_row
from reyn_jupyter.sessions.result_objects import Result
from reyn_jupyter.support.encoding import clean

PAGE = 2_000
_KEYS = tuple(key for key in COLUMNS if key != "score")  # nothing was searched for
_TEXT = 2_000_000  # characters in a field
QUERY = 1_000  # characters of a search

Typed = Annotated[str, Field(max_length=_TEXT)]


class ListCatalog(WireMessage):
    offset: int = Field(0, ge=0)
    limit: int = Field(PAGE, ge=1, le=PAGE)


class CatalogCategory(WireMessage):
    name: str
    count: int
    sentence: str


class CatalogColumn(WireMessage):
    """Describe a column: its `key` in code, the title that people read, and the order it sorts by."""

    key: str
    title: str
    numeric: bool


CatalogRow = tuple[SortedText, ...]
"""One action; a cell without a value in a numeric column has nothing to show, and comes last."""


class CatalogPage(WireMessage):
    """Carry one page of rows. `tones` is the colour of each effect, the harmless ones first; another `revision` belongs
    to another catalog."""

    revision: str
    total: int
    columns: tuple[CatalogColumn, ...]
    tones: dict[str, Tone]
    categories: tuple[CatalogCategory, ...]
    rows: tuple[CatalogRow, ...]


class SearchCatalog(WireMessage):
    """Ask for actions by what they do, within a category ("" for all)."""

    query: str = Field(min_length=1, max_length=QUERY)
    category: str = Field("", max_length=200)
    limit: int = Field(SEARCH_LIMIT, ge=1, le=100)


class RankedActions(WireMessage):
    """Name the actions that `%reyn search` finds, best first, those left out that have nothing of the query.

    `remark` says so where none is a clear fit, else "".
    """

    names: tuple[str, ...]
    remark: str


class OpenAction(WireMessage):
    name: str


class OpenedAction(WireMessage):
    """Show one action: its description (`view`), and the form that calls it."""

    name: str
    view: View
    form: ActionForm


class CallAction(WireMessage):
    """Call an action with the text `typed` into each field; under "" stand the arguments without a field."""

    name: str
    typed: dict[str, Typed] = Field(max_length=FIELDS + 1)


class ArgumentFault(WireMessage):
    """Name a fault of the arguments: its place (a JSON Pointer, "" for all of them), and its reason."""

    path: str
    message: str


class ActionCommand(WireMessage):
    """Carry the `%reyn invoke` line, "" where a field cannot be read."""

    command: str
    errors: tuple[ArgumentFault, ...] = ()


class ActionAnswer(WireMessage):
    """Show the result of a call. `row` is the action's row with this call counted; `live` opens the blob."""

    ok: bool
    view: View
    live: LiveBlob | None
    command: str
    errors: tuple[ArgumentFault, ...]
    row: CatalogRow


async def page(context: OperationContext, arguments: ListCatalog) -> CatalogPage:
    snapshot = await context.session.parts.catalog.refresh()
    return await asyncio.to_thread(_page, context, snapshot, arguments)


def _page(context: OperationContext, snapshot: CatalogSnapshot, arguments: ListCatalog) -> CatalogPage:
    look = context.look
    policy = context.session.parts.policy
    shown = snapshot.actions[arguments.offset : arguments.offset + arguments.limit]
    return CatalogPage(
        revision=snapshot.hash,
        total=len(snapshot),
        columns=tuple(
            CatalogColumn(key=key, title=COLUMNS[key].name, numeric=COLUMNS[key].right) for key in _KEYS
        ),
        tones=EFFECTS,
        categories=tuple(
            CatalogCategory(
                name=look.line(category.name, 40),
                count=snapshot.counts[category.name],
                sentence=clean(look.line(" ".join(category.capability.split()), 300)),
            )
            for category in snapshot.categories
        ),
        rows=tuple(_row(context, action, policy) for action in shown),
    )


def _row(context: OperationContext, action: Action, policy: Policy) -> CatalogRow:
    """Return the cells of a row; the name is whole and exact, since it is what is asked for next."""
    cells = action_cells(action_row(context.session.parts, action, policy), context.look)
    cells["name"] = Cell(context.look.line(action.name.text, 600))
    return tuple(_sorted_text(cells[key]) for key in _KEYS)


def _sorted_text(cell: Cell) -> SortedText:
    text = clean(cell.text)
    return text if cell.value is None else (text, cell.value)


async def search(context: OperationContext, arguments: SearchCatalog) -> RankedActions:
    look = context.look
    within = [arguments.category] if arguments.category else None
    found = await context.session.aio.search_actions(arguments.query, within, arguments.limit)
    if found.error is not None:
        raise OperationError(look.text(found.error, 300), "Use other words, or choose another category.")
    return RankedActions(
        names=tuple(look.line(row["qualified_name"], 600) for row in found.rows if row["score"] > 0),
        remark=clean(weak_remark(found, look)) if found.payload.get("weak") else "",
    )


async def action(context: OperationContext, arguments: OpenAction) -> OpenedAction:
    found = await _find(context, arguments.name)
    card = await context.session.aio.describe_action(found.name.text)
    made = action_card(card, context.look)
    said = tuple(block for block in made.blocks if isinstance(block, Paragraph))
    # The form shows the parameters already, and its own line the call.
    rest = tuple(block for block in made.blocks if not isinstance(block, Paragraph | Commands))
    schema = Fold((Span("Schema and where it goes"),), blocks=rest)
    return OpenedAction(
        name=found.name.text,
        view=replace(made, blocks=(*said, schema)),
        form=_form(context, found),
    )


async def command(context: OperationContext, arguments: CallAction) -> ActionCommand:
    found = await _find(context, arguments.name)
    given, faults = _read(context, found, arguments)
    if faults:
        return ActionCommand(command="", errors=_faults(faults, context.look))
    return ActionCommand(command=_command(context, found, given))


async def invoke(context: OperationContext, arguments: CallAction) -> ActionAnswer:
    found = await _find(context, arguments.name)
    given, faults = _read(context, found, arguments)
    if faults:
        result = Result(found.name.text, invalid_arguments(found, faults))
    else:
        result = await context.session.aio.invoke_action(found.name.text, given, ask=context.ask)
    parts = context.session.parts
    snapshot = await parts.catalog.refresh()
    lines = corrected_lines(snapshot, given, result, forgive=parts.settings.router.forgive)
    view = await asyncio.to_thread(result_view, result, context.look)
    if lines:
        commands = Commands(tuple(clean(context.look.text(line, _TEXT)) for line in lines), LABEL)
        view = replace(view, blocks=(*view.blocks, commands))
    invalid = result.payload.get("invalid") if isinstance(result.payload, dict) else None
    return ActionAnswer(
        ok=result.error is None,
        view=view,
        live=LiveBlob(blob=result.blob.id) if result.blob is not None else None,
        command="" if faults else _command(context, found, given),
        errors=_faults(invalid, context.look) if isinstance(invalid, list) else (),
        row=_row(context, found, parts.policy),
    )


def _read(
    context: OperationContext, found: Action, arguments: CallAction
) -> tuple[dict[str, Any], list[Invalid]]:
    return arguments_of(_form(context, found), arguments.typed)


def _form(context: OperationContext, found: Action) -> ActionForm:
    return form(found.input_schema, context.look)


async def _find(context: OperationContext, name: str) -> Action:
    """Return the action of a name. Raises OperationError with suggestions."""
    snapshot = await context.session.parts.catalog.refresh()
    try:
        return find(snapshot, name)
    except UnknownActionError as error:
        said = context.look.text(error.payload["error"], 300)
        raise OperationError(f"{said}.", hint({**error.payload, "hint": ""}, context.look)) from None


def _command(context: OperationContext, found: Action, given: Mapping[str, Any]) -> str:
    forgive = context.session.parts.settings.router.forgive
    return clean(context.look.text(invoke_command(found, given, forgive=forgive), _TEXT))


def _faults(faults: list[Invalid], look: Look) -> tuple[ArgumentFault, ...]:
    return tuple(
        ArgumentFault(path=look.line(fault["path"], 600), message=look.text(fault["message"], 300))
        for fault in faults
    )


OPERATIONS = (
    ServedOperation("catalog.page", ListCatalog, CatalogPage, page),
    ServedOperation("catalog.search", SearchCatalog, RankedActions, search),
    ServedOperation("catalog.action", OpenAction, OpenedAction, action),
    ServedOperation("catalog.command", CallAction, ActionCommand, command),
    ServedOperation("catalog.invoke", CallAction, ActionAnswer, invoke),
)
