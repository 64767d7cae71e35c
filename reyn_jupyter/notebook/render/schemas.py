"""A JSON Schema as a table of parameters, nested objects as dotted rows under their parent.

Invariant: bounded in depth and rows, so that a schema that refers to itself ends; local `$ref`s are followed, no
other address is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reyn_jupyter.notebook.render.model import Block, Cell, Column, Grid, Message, Section, missing_cell
from reyn_jupyter.notebook.render.untrusted import Look, integer

ROWS = 60
DEPTH = 4


def parameter_grid(schema: object, look: Look) -> Block:
    """Name, type, required, default and description of each parameter."""
    root = schema if isinstance(schema, Mapping) else {}
    rows: list[tuple[Cell, ...]] = []
    more = ""
    for row in _rows(root, root, "", DEPTH, look):
        if len(rows) == ROWS:
            more = "… more parameters than fit here; all of them: .payload['input_schema']"
            break
        rows.append(row)
    if not rows:
        return Message("It takes no arguments.", "muted")
    columns = (
        Column("parameter", header=True),
        Column("type"),
        Column("required"),
        Column("default"),
        Column("description", wide=True),
    )
    return Section("Parameters", (Grid("", columns, tuple(rows), more),))


def _rows(
    schema: Any, root: Mapping[str, Any], prefix: str, depth: int, look: Look
) -> Iterator[tuple[Cell, ...]]:
    schema = followed(schema, root)
    properties = schema.get("properties")
    required = schema.get("required")
    required = required if isinstance(required, list | tuple) else ()
    if not isinstance(properties, Mapping):
        return
    for name, given in properties.items():
        member = followed(given, root)
        path = f"{prefix}{name}"
        yield _row(path, member, name in required, root, look)
        if depth > 1:
            inner, mark = (
                (member, ".") if "properties" in member else (followed(member.get("items"), root), "[].")
            )
            yield from _rows(inner, root, path + mark, depth - 1, look)


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
    """A schema's type in a few words: ``integer ≥ 1``, ``array of string``, ``"user" | "project"``."""
    member = followed(member, root)
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
    """A bound in few characters; an integer that no float can hold is given by its length."""
    return integer(value) if isinstance(value, int) and abs(value) > 10**15 else f"{value:g}"


def followed(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a local `$ref` names; at most four steps, then nothing."""
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
