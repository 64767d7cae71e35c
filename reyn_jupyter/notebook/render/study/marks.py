"""Mark the rows of a table by where their figures come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from reyn_jupyter.notebook.render.blocks import Cell, Column

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.plan.scenario import Source


class Sourced(Protocol):
    @property
    def source(self) -> Source: ...


Marks = tuple[tuple[Column, ...], Callable[["Source"], tuple[Cell, ...]]]


def source_column(found: Iterable[Sourced]) -> Marks:
    """Return a column for the source and what makes its cell; neither where every figure came from a real model."""
    if all(each.source == "real" for each in found):
        return (), lambda source: ()
    return (Column("source"),), lambda source: (Cell(source, "plain" if source == "real" else "muted"),)
