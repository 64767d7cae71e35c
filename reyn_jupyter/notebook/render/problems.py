"""An error payload in plain sentences: what happened, what was meant, what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reyn_jupyter.notebook.render.blocks import Block, Cell, Column, Grid, Notice, Section
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.support.text import argument_name

_SHOWN = 12


def problem(payload: Mapping[str, Any], look: Look) -> tuple[Block, ...]:
    """Return the blocks of `{"error", "reason", "suggestions", "hint", "invalid", "redirects", …}`."""
    text = look.text(payload.get("error") or "It failed.", 1200)
    reason = payload.get("reason")
    if isinstance(reason, str) and reason and reason not in text:
        text = f"{text} {look.text(reason, 300)}"
    blocks: list[Block] = [Notice(text, "bad", hint(payload, look))]
    invalid = payload.get("invalid")
    if isinstance(invalid, list | tuple) and invalid:
        blocks.append(_invalid(invalid, look))
    return tuple(blocks)


def hint(payload: Mapping[str, Any], look: Look) -> str:
    """Return suggestions, redirects and the hint, in one or two sentences."""
    parts = []
    suggestions = names(payload.get("suggestions"), look)
    if suggestions:
        parts.append(f"Did you mean {suggestions}?")
    redirects = payload.get("redirects")
    if isinstance(redirects, Mapping) and redirects:
        pairs = [
            f"{look.line(old, 60)} → {look.line(new, 60)}" for old, new in list(redirects.items())[:_SHOWN]
        ]
        parts.append("Renamed: " + ", ".join(pairs) + ".")
    valid = names(payload.get("valid_categories"), look)
    if valid and not parts:
        parts.append(f"Categories: {valid}.")
    if payload.get("hint"):
        parts.append(look.text(payload["hint"], 600))
    return " ".join(parts)


def names(value: object, look: Look) -> str:
    """Return up to twelve names on one line; whatever stands in the place of a list is ignored."""
    if not isinstance(value, list | tuple):
        return ""
    found = [item.get("qualified_name") if isinstance(item, Mapping) else item for item in value]
    shown = ", ".join(look.line(item, 80) for item in found[:_SHOWN] if isinstance(item, str))
    return f"{shown} … and {len(found) - _SHOWN} more" if len(found) > _SHOWN else shown


def _invalid(invalid: list[Any] | tuple[Any, ...], look: Look) -> Section:
    rows = [
        (
            Cell(look.line(argument_name(str(item.get("path", ""))), 80), face="code"),
            Cell(look.text(item.get("message", ""), 240)),
        )
        for item in invalid[:_SHOWN]
        if isinstance(item, Mapping)
    ]
    left = len(invalid) - _SHOWN
    more = f"… {left} more" if left > 0 else ""
    columns = (Column("argument", header=True), Column("what is wrong", wide=True))
    return Section("Arguments to correct", (Grid("", columns, tuple(rows), more),))
