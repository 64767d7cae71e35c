"""Find the columns of a frame that hold given texts as whole cells, where they lie: nothing is sent to DuckDB.

Invariant: no method of a cell that is not a `str` is called. A column whose name looks like a secret's is not read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.sql.sql_frames import text_columns

if TYPE_CHECKING:
    import pandas as pd

FOLDED_CELLS = 20_000  # different texts of a column that are compared in any letter case
MOST_CELLS = 10_000_000  # that one search looks at; the columns after those are reported as not searched


def find_values(value: object, texts: Collection[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return where some texts are cells of a table.

    A column with many different texts is compared with each text as it is given, in lower and upper case, and
    capitalized; any other column in any letter case.

    Args:
        value: what `as_table` takes.
        texts: the texts to look for.

    Returns:
        The pairs of column and cell, as the cell is spelled, and the columns that were not searched.

    Raises:
        NotATableError: the value is not a table.
    """
    wanted = {text.casefold() for text in texts}
    spelled = {form for t in texts for form in (t, t.lower(), t.upper(), t.capitalize(), t.title())}
    found: list[tuple[str, str]] = []
    unread: list[str] = []
    cells = 0
    for name, column in text_columns(value):
        cells += len(column)
        if cells > MOST_CELLS:
            unread.append(name)
        else:
            found += [(name, cell) for cell in sorted(_cells(column, wanted, spelled))]
    return found, unread


def _cells(column: pd.Series[Any], wanted: set[str], spelled: set[str]) -> set[str]:
    """Return the different cells of a column that are among some texts."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        kinds = column.cat.categories.tolist()
        held = {kind for kind in kinds if type(kind) is str and kind.casefold() in wanted}
        codes = column.cat.codes
        return {kind for kind in held if bool((codes == kinds.index(kind)).any())}
    if len(column) <= FOLDED_CELLS:
        return {cell for cell in column.tolist() if type(cell) is str and cell.casefold() in wanted}
    if column.dtype == object and not {str, type(None), float} >= set(map(type, column.tolist())):
        return {cell for cell in column.tolist() if type(cell) is str and cell in spelled}
    # The first cells tell at no cost whether a column has few different texts.
    few = column.iloc[:FOLDED_CELLS].nunique() < FOLDED_CELLS // 20
    kinds = column.unique().tolist() if few else []
    if few and len(kinds) <= FOLDED_CELLS:
        return {kind for kind in kinds if type(kind) is str and kind.casefold() in wanted}
    return set(column[column.isin(spelled)].unique().tolist())
