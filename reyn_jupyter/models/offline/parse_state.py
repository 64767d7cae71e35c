"""The units of a question laid out beside one table, each with the role it was given.

Invariant: a unit gets one role, once. What has none at the end was not understood, and `leftover` says so, so that
no word of a question is silently dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reyn_jupyter.models.offline.lexer import Unit
from reyn_jupyter.models.offline.lexicon import FILLER, parts, same_concept
from reyn_jupyter.models.offline.table_schema import ColumnSchema, TableSchema

Values = Mapping[
    str, Sequence[tuple[str, str]]
]  # words of a question → the (column, stored value) that they are
CANDIDATE_WORDS = 4  # words that one value of a column may have


REDUNDANT = 4  # units between two mentions of one column
_PAST = ("sold", "bought", "paid", "sent", "made", "born")


class Ungrounded(Exception):  # noqa: N818  an answer, not an error
    """The question says something that the table does not have.

    `words` are the words without a meaning here; empty when something else is missing, which the text says.
    """

    def __init__(self, reason: str, words: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.words = tuple(words)


@dataclass
class ParseState:
    """Units, the table, and the roles given so far (`column` units keep their column beside it).

    `opposites` are the units that deny a yes-or-no column by their prefix: "inactive".
    """

    units: tuple[Unit, ...]
    table: TableSchema
    roles: dict[int, str] = field(default_factory=dict)
    columns: dict[int, ColumnSchema] = field(default_factory=dict)
    opposites: set[int] = field(default_factory=set)

    def free(self, index: int, *kinds: str) -> bool:
        """Return whether there is a unit at an index, of one of some kinds, without a role."""
        return (
            0 <= index < len(self.units)
            and index not in self.roles
            and (not kinds or self.units[index].kind in kinds)
        )

    def give(self, role: str, *indices: int) -> None:
        for index in indices:
            self.roles[index] = role

    def is_filler(self, index: int) -> bool:
        unit = self.units[index]
        return (unit.kind == "word" and unit.value in FILLER) or (
            unit.kind == "symbol" and unit.value not in "*/+"
        )

    def after(self, index: int, *, within: int = 4) -> int | None:
        """The next unit that is no filler word."""
        for step in range(index + 1, min(len(self.units), index + 1 + within)):
            if step in self.columns or not self.is_filler(step):
                return step
        return None

    def before(self, index: int, *, within: int = 4) -> int | None:
        """The unit before that is no filler word."""
        for step in range(index - 1, max(-1, index - 1 - within), -1):
            if step in self.columns or not self.is_filler(step):
                return step
        return None

    def of_kind(self, *kinds: str) -> list[int]:
        return [index for index, unit in enumerate(self.units) if unit.kind in kinds]

    def tokens_after(self, index: int) -> list[str]:
        """The lower-case words after a unit."""
        return [unit.text.lower() for unit in self.units[index + 1 :]]

    def open_columns(self) -> list[int]:
        """Columns that are named but have no job yet."""
        return [index for index in sorted(self.columns) if self.roles.get(index) == "column"]

    # -- naming -------------------------------------------------------------------------------------------------

    def name_source(self, others: Iterable[str] = ()) -> None:
        """Give the table's own names their role."""
        labels = {self.table.label.lower(), *(other.lower() for other in others)}
        for index, unit in enumerate(self.units):
            exact = unit.text.lower() in labels
            if unit.kind == "path" or (exact and not self._is_column_word(index)):
                self.give("source", index)

    def _is_column_word(self, index: int) -> bool:
        before = self.units[index - 1].kind if index else ""
        named = any(column.name.lower() == self.units[index].text.lower() for column in self.table.columns)
        return named and before in ("group", "aggregate", "extreme", "distinct")

    def name_columns(self) -> None:
        """Find the columns that the words name, longest runs of words first."""
        for length in (3, 2, 1):
            for index in range(len(self.units) - length + 1):
                run = range(index, index + length)
                if any(step in self.roles for step in run):
                    continue
                column = self._column_at(run)
                if column is not None:
                    self.give("column", *run)
                    self.columns[index] = column
                    self.give("unit", *list(run)[1:])
        self._absorb_units()
        dates, flags = self.table.of_kind("date"), self.table.of_kind("flag")
        for index, unit in enumerate(self.units):
            if self.free(index, "word") and self.table.named_like(unit.value):
                self.give("source", index)
            if self.free(index, "word") and unit.value in ("date", "dates") and len(dates) == 1:
                self.give("column", index)
                self.columns[index] = dates[0]
            opposite = next(
                (c for c in flags if unit.value in (f"in{c.name.lower()}", f"un{c.name.lower()}")), None
            )
            if opposite is not None and self.free(index, "word"):
                self.give("column", index)
                self.columns[index] = opposite
                self.opposites.add(index)

    def _column_at(self, run: range) -> ColumnSchema | None:
        chosen = [self.units[step] for step in run]
        words = [token.text for unit in chosen for token in unit.tokens]
        exact = next((c for c in self.table.columns if c.name.lower() in ("_".join(words).lower(),)), None)
        if any(unit.kind != "word" for unit in chosen):
            # A word of the grammar names a column only where it is the column's very name: "year", "total".
            return (
                exact if all(unit.kind in ("word", "period", "aggregate", "top") for unit in chosen) else None
            )
        if exact is not None:
            return exact
        if len(words) == 1 and (words[0].lower() in FILLER or self.table.named_like(words[0])):
            column = self.table.column(words)
            return (
                column
                if column and column.parts == parts(words[0]) and words[0].lower() not in FILLER
                else None
            )
        if len(words) > 1 and (words[0].lower() in FILLER and words[-1].lower() in FILLER):
            return None
        column = self.table.column(words)
        if column is not None and len(words) > 1 and len(column.parts) < len(words):
            return None
        return column

    def _absorb_units(self) -> None:
        """`wing length` names the column `wing_mm`: the unit says what the other word does."""
        for index, column in list(self.columns.items()):
            for step in (index - 1, index + 1):
                if not self.free(step, "word", "period"):
                    continue
                for word in parts(self.units[step].value):
                    if any(word == own or same_concept(word, own) for own in column.parts):
                        self.give("unit", step)

    # -- values -------------------------------------------------------------------------------------------------

    def candidates(self) -> list[str]:
        """Runs of words without a role, that could be values of text columns."""
        found: dict[str, None] = {}
        for index in range(len(self.units)):
            for length in range(1, CANDIDATE_WORDS + 1):
                run = range(index, index + length)
                if all(self.free(step) for step in run) and self._could_be_value(run):
                    found[self.text_of(run)] = None
        return list(found)

    def text_of(self, run: range) -> str:
        return " ".join(self.units[step].text for step in run).lower()

    def _could_be_value(self, run: range) -> bool:
        """One plain word or quoted text; of several words one is plain, and the last one says something."""
        chosen = [self.units[step] for step in run]
        first = chosen[0]
        if len(chosen) == 1 and first.kind in ("aggregate", "extreme"):
            return first.tokens[0].text[:1].isupper() and run[0] > 0
        kinds = ("word", "quoted", "month", "period", "top", "missing", "contain")
        if any(unit.kind in ("number", "symbol", "path", "date") for unit in chosen):
            return False
        named = run[0] > 0 and first.tokens[0].text[:1].isupper()  # "May Flowers"
        opens = named or first.value in ("the", "a", "an")
        if self.is_filler(run[-1]) or (self.is_filler(run[0]) and not opens):
            return False
        return any(unit.kind in kinds[:2] if len(chosen) > 1 else unit.kind in kinds for unit in chosen)

    def take_values(self, values: Values) -> list[tuple[str, tuple[str, ...], int]]:
        """Give runs that are values of a column their role; (column, stored values, index) for each.

        Raises:
            Ungrounded: a word is a value of two columns, and neither is named beside it.
        """
        found = []
        for length in range(CANDIDATE_WORDS, 0, -1):
            for index in range(len(self.units) - length + 1):
                run = range(index, index + length)
                held = values.get(self.text_of(run), ())
                if not held or not all(self.free(step) for step in run) or self._is_text_of(index):
                    continue
                column = self._column_of(run, list(dict.fromkeys(name for name, _ in held)))
                self.give("value", *run)
                found.append((column, tuple(value for name, value in held if name == column), index))
        return sorted(found, key=lambda item: item[2])

    def _is_text_of(self, index: int) -> bool:
        """Return whether a word is looked for inside a column: `contains urgent`."""
        before = self.before(index)
        return before is not None and self.free(before, "contain")

    def _column_of(self, run: range, names: list[str]) -> str:
        for step in (self.before(run[0], within=2), self.after(run[-1], within=2)):
            near = self.columns.get(step) if step is not None else None
            if step is not None and near is not None and near.name in names and self.roles[step] == "column":
                self.give("value", step)
                return near.name
        if len(names) > 1:
            listed = " and of ".join(f"`{name}`" for name in names)
            word = self.text_of(run)
            raise Ungrounded(f"“{word}” is a value of {listed}; name the column beside it", (word,))
        return names[0]

    # -- what remains -------------------------------------------------------------------------------------------

    def leftover(self) -> list[int]:
        """Units that say something and have no role, columns without a job among them."""
        return [
            index
            for index in range(len(self.units))
            if (self.roles.get(index) == "column" and not self._is_redundant(index))
            or (index not in self.roles and not self.is_filler(index))
        ]

    def _is_redundant(self, index: int) -> bool:
        """Return whether a mention adds nothing: a column's second one, or what is so of every row ("sold")."""
        column = self.columns.get(index)
        near = [step for step in self.columns if step != index and abs(step - index) <= REDUNDANT]
        if column is None or any(
            self.columns[step] == column and self.roles[step] != "column" for step in near
        ):
            return column is not None
        word = self.units[index].value
        return (
            column.kind == "date" and column.name.lower() != word and (word.endswith("ed") or word in _PAST)
        )
