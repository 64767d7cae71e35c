"""The action table and the schema card.

The catalog explorer where nothing is live: the table of its first actions.

A JSON Schema as a table of parameters, nested objects as dotted rows under their parent.

Invariant: bounded in depth and rows, so that a schema that refers to itself ends; local `$ref`s are followed, no
other address is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reyn_jupyter.notebook.render.blocks import (
    Badge,
    Block,
    Cell,
    Column,
    Commands,
    Facts,
    Grid,
    Notice,
    Paragraph,
    Section,
    Span,
    Tone,
    View,
    missing_cell,
    number_cell,
)
from reyn_jupyter.notebook.render.problems import hint, names, problem
from reyn_jupyter.notebook.render.value_text import Look, integer
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.sessions.result_objects import ActionCard, ActionTable, CatalogExplorer


ROWS = 60
EFFECTS: dict[str, Tone] = {
    "pure": "good", "read": "good", "write": "warn", "network": "warn", "exec": "bad", "unknown": "muted",
}  # fmt: skip
COLUMNS = {
    "name": Column("action", header=True, whole=True),
    "score": Column("score", right=True),  # beside the name: what is left out of a narrow view is at its end
    "category": Column("category"),
    "description": Column("what it does", wide=True),
    "arguments": Column("arguments", wide=True),
    "effect": Column("effect"),
    "permission": Column("permission"),
    "uses": Column("uses", right=True),
    "last_ms": Column("last ms", right=True),
}


def action_table(table: ActionTable, look: Look) -> View:
    """Return a page of actions, or what a search found."""
    payload = table.payload
    search = table.kind == "search"
    if table.error is not None:
        shown = (*problem(payload, look), *_hidden(table, look))
        return View("actions", "No listing", (Badge("✗ failed", "bad"),), (), shown)
    title = f"Actions for “{look.line(table.query, 80)}”" if search and table.query else "Actions"
    blocks: list[Block] = []
    if payload.get("weak"):
        blocks.append(Notice(weak_remark(table, look), "warn", "%reyn list CATEGORY shows all of one."))
    elif not table.rows:
        all_of_them = "%reyn list shows all of them."
        way = f"Use other words; {all_of_them}" if search else hint(payload, look) or all_of_them
        blocks.append(Notice("No action matches.", "info", way))
    if table.rows:
        blocks.append(_rows(table, look))
    next_line = _next(table, look)
    if next_line:
        blocks.append(Commands((next_line,), "Next page" if not search else "More"))
    notes = [note for note in (_note(payload, look),) if note is not None]
    badges = (Badge("weak", "warn"),) if payload.get("weak") else ()
    shown = (*blocks, *notes, *_hidden(table, look))
    return View("actions", title, badges, tuple(_facts(table, look)), shown, "%reyn list CATEGORY --limit N")


def weak_remark(table: ActionTable, look: Look) -> str:
    """Return the sentence about a search in which nothing is a clear fit."""
    near = names(table.payload.get("nearest_categories"), look)
    where = f" Nearest categories: {near}." if near else ""
    return (
        "Nothing here fits well; these are only the nearest." if table.rows else "Nothing here fits."
    ) + where


def _rows(table: ActionTable, look: Look) -> Grid:
    shown = table.rows[:ROWS]
    left_out = set()
    if not any(row.get("score") is not None for row in table.rows):
        left_out.add("score")
    if not any(row.get("uses") for row in shown):
        # Two columns of nothing would only take the width that the descriptions need.
        left_out |= {"uses", "last_ms"}
    keys = [key for key in COLUMNS if key not in left_out]
    cells = [action_cells(row, look) for row in shown]
    columns = tuple(COLUMNS[key] for key in keys)
    rows = tuple(tuple(each[key] for key in keys) for each in cells)
    left = len(table.rows) - ROWS
    more = f"… {left:,} more; .df holds all of them, %reyn list CATEGORY narrows" if left > 0 else ""
    return Grid("* is a required argument", columns, rows, more)


def action_cells(row: Mapping[str, Any], look: Look) -> dict[str, Cell]:
    """Return the cells of one action by the keys of `COLUMNS`."""
    purity = look.line(row.get("purity") or "unknown", 20)
    permission = look.line(row.get("permission") or "", 40)
    uses, last, score = row.get("uses"), row.get("last_ms"), row.get("score")
    return {
        "name": Cell(look.line(row.get("qualified_name", "?"), 100), face="code"),
        "score": _number(score, ".2f"),
        "category": Cell(look.line(row.get("category", ""), 40)),
        "description": Cell(look.line(row.get("description", ""), 160)),
        "arguments": Cell(look.line(row.get("arguments", ""), 120), face="code"),
        "effect": Cell(purity, EFFECTS.get(purity, "muted"), "badge"),
        "permission": Cell(permission, "muted" if permission.startswith("den") else "plain"),
        "uses": _number(uses or None, ","),
        "last_ms": _number(last, ",.1f"),
    }


def _number(value: object, form: str) -> Cell:
    return number_cell(format(value, form), value) if isinstance(value, int | float) else missing_cell()


def _facts(table: ActionTable, look: Look) -> list[str]:
    total, shown = table.total, len(table.rows)
    facts = [count(total, "action") if shown >= total else f"{shown:,} of {count(total, 'action')}"]
    categories = table.payload.get("categories")
    if isinstance(categories, Mapping):
        facts += [
            f"{look.line(name, 40)} {look.line(number, 10)}" for name, number in list(categories.items())[:24]
        ]
        if len(categories) > 24:
            facts.append(f"… {len(categories) - 24} more categories")
    return facts


def _next(table: ActionTable, look: Look) -> str:
    """Return the line for the next page, narrowed as this one was. A listing's `query` is its filter."""
    offset = table.payload.get("next_offset")
    if table.kind != "list" or not isinstance(offset, int):
        return ""
    items: list[Any] = list(table.payload.get("items") or ())
    whole = bool(items) and isinstance(items[0], Mapping) and "input_schema" in items[0]
    # Only a listing narrowed by category carries schemas; its counts are then those of the categories asked for.
    words = [look.line(name, 60) for name in table.payload.get("categories") or ()] if whole else []
    if table.query:
        return reyn_line("list", *words, filter=look.line(table.query, 120), offset=str(offset))
    return reyn_line("list", *words, offset=str(offset))


def _hidden(table: ActionTable, look: Look) -> tuple[Notice, ...]:
    """Return why categories are not on offer; on the first page of a listing, where it is looked for."""
    if not table.hidden or table.query:
        return ()
    said = " ".join(f"{look.line(name, 60)}: {look.line(why, 300)}" for name, why in table.hidden.items())
    return (Notice(f"Not on offer – {said}", "muted"),)


def _note(payload: Mapping[str, Any], look: Look) -> Notice | None:
    """Return how to switch search on, where the listing says that it is off."""
    search = payload.get("search") or payload.get("search_hint")
    if isinstance(search, Mapping):
        ways = " · ".join(
            look.line(search[key], 120) for key in ("install", "hint", "status") if search.get(key)
        )
        return Notice(look.line(search.get("reason") or "Search has no index.", 300), "muted", ways)
    if payload.get("ranking") == "lexical":
        return Notice(
            "Ranked by words alone, without vectors in the index.", "muted", "%reyn embeddings status"
        )
    note = payload.get("note")
    return Notice(look.line(note, 300), "muted") if isinstance(note, str) and note else None


def action_card(card: ActionCard, look: Look) -> View:
    """Return one action: what it does, its parameters, what it may touch, and the line that calls it."""
    payload = card.payload
    if card.error is not None:
        return View("action", "No such action", (Badge("✗ failed", "bad"),), (), problem(payload, look))
    metadata = payload.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    purity = look.line(metadata.get("purity") or "unknown", 20)
    badges = [Badge(purity, EFFECTS.get(purity, "muted"))]
    if card.permission:
        badges.append(Badge(look.line(card.permission, 60), "muted"))
    blocks: list[Block] = [
        Paragraph((Span(" ".join(part.split())),))
        for part in look.text(payload.get("description") or "", 2400).split("\n\n")
        if part.strip()
    ]
    blocks.append(parameter_grid(payload.get("input_schema"), look))
    if card.invoke_line:
        blocks.append(Commands((look.line(card.invoke_line, 600),), "Call it"))
    facts = _metadata(metadata, look)
    if facts:
        blocks.append(Section("Where it goes", (Facts(facts),)))
    name = look.line(payload.get("qualified_name", "?"), 120)
    return View("action", name, tuple(badges), (), tuple(blocks), ".payload")


def _metadata(metadata: Mapping[str, Any], look: Look) -> tuple[tuple[str, str], ...]:
    known = {"category": "category", "target_tool_name": "target tool", "canonical_default": "invoking it"}
    pairs = [(label, metadata[key]) for key, label in known.items() if metadata.get(key)]
    pairs += [(key, value) for key, value in metadata.items() if key not in known and key != "purity"][:12]
    return tuple((look.line(label, 40), look.compact(value, 200).strip('"')) for label, value in pairs)


def explorer_view(shown: CatalogExplorer, look: Look) -> View:
    """Return the first actions of the catalog, those with all words of the query where there is one."""
    table = action_table(shown.table, look)
    title = f"Catalog: “{look.line(shown.query, 80)}”" if shown.query else "Catalog"
    return replace(table, title=title)


SCHEMA_ROWS = 60
DEPTH = 4


def parameter_grid(schema: object, look: Look) -> Block:
    """Name, type, required, default and description of each parameter."""
    root = schema if isinstance(schema, Mapping) else {}
    rows: list[tuple[Cell, ...]] = []
    more = ""
    for row in _schema_rows(root, root, "", DEPTH, look):
        if len(rows) == SCHEMA_ROWS:
            more = "… more parameters than fit here; all of them: .payload['input_schema']"
            break
        rows.append(row)
    if not rows:
        return Notice("It takes no arguments.", "muted")
    columns = (
        Column("parameter", header=True),
        Column("type"),
        Column("required"),
        Column("default"),
        Column("description", wide=True),
    )
    return Section("Parameters", (Grid("", columns, tuple(rows), more),))


def _schema_rows(
    schema: Any, root: Mapping[str, Any], prefix: str, depth: int, look: Look
) -> Iterator[tuple[Cell, ...]]:
    schema = follow_reference(schema, root)
    properties = schema.get("properties")
    required = schema.get("required")
    required = required if isinstance(required, list | tuple) else ()
    if not isinstance(properties, Mapping):
        return
    for name, given in properties.items():
        member = follow_reference(given, root)
        path = f"{prefix}{name}"
        yield _row(path, member, name in required, root, look)
        if depth > 1:
            inner, mark = (
                (member, ".")
                if "properties" in member
                else (follow_reference(member.get("items"), root), "[].")
            )
            yield from _schema_rows(inner, root, path + mark, depth - 1, look)


def _row(
    path: str, member: Mapping[str, Any], required: bool, root: Mapping[str, Any], look: Look
) -> tuple[Cell, ...]:
    default = look.compact(member["default"], 60) if "default" in member else ""
    return (
        Cell(look.line(path, 100), face="code"),
        Cell(look.line(type_label(member, root), 120)),
        Cell("yes") if required else missing_cell(),
        Cell(default, face="code") if default else missing_cell(),
        Cell(look.line(member.get("description") or member.get("title") or "", 300)),
    )


def type_label(member: Mapping[str, Any], root: Mapping[str, Any], depth: int = 3) -> str:
    """Return a schema's type in a few words: ``integer ≥ 1``, ``array of string``, ``"user" | "project"``."""
    member = follow_reference(member, root)
    choices = member.get("enum")
    if isinstance(choices, list | tuple):
        shown = " | ".join(Look().compact(choice, 40) for choice in choices[:8])
        return shown + (" | …" if len(choices) > 8 else "")
    if "const" in member:
        return f"always {Look().compact(member['const'], 40)}"
    for key in ("anyOf", "oneOf"):
        options = member.get(key)
        if isinstance(options, list | tuple) and depth:
            labels = [
                type_label(option, root, depth - 1) for option in options[:6] if isinstance(option, Mapping)
            ]
            return " or ".join(dict.fromkeys(labels))
    kind = member.get("type")
    if isinstance(kind, list | tuple):
        return " or ".join(str(one)[:20] for one in kind[:6])
    if kind == "array" and isinstance(member.get("items"), Mapping) and depth:
        return f"array of {type_label(member['items'], root, depth - 1)}"
    return f"{str(kind)[:40] if kind else 'any'}{_bounds(member)}"


def _bounds(member: Mapping[str, Any]) -> str:
    low, high = member.get("minimum"), member.get("maximum")
    if isinstance(low, int | float) and isinstance(high, int | float):
        return f" {_figure(low)}–{_figure(high)}"
    if isinstance(low, int | float):
        return f" ≥ {_figure(low)}"
    return f" ≤ {_figure(high)}" if isinstance(high, int | float) else ""


def _figure(value: int | float) -> str:
    """Return a bound in few characters; an integer that no float can hold is given by its length."""
    return integer(value) if isinstance(value, int) and abs(value) > 10**15 else f"{value:g}"


def follow_reference(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that a local `$ref` names; at most four steps, then nothing."""
    for _ in range(4):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        if not reference.startswith("#"):
            return {"type": reference[:40]}
        schema = root
        for part in reference[2:].split("/") if len(reference) > 2 else ():
            schema = schema.get(part) if isinstance(schema, Mapping) else None
    return {}
