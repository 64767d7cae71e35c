"""The units of a question laid out beside one table, each with the role it was given.

Invariant: a unit gets one role, once. What has none at the end was not understood, and `leftover` says so, so that
no word of a question is silently dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from reyn_jupyter.models.offline.lexer import Unit
from reyn_jupyter.models.offline.lexicon import ADJECTIVES, FILLER, parts, same_concept
from reyn_jupyter.models.offline.prompt_tokens import read_prompt
from reyn_jupyter.models.offline.table_schema import ColumnSchema, TableSchema

Values = Mapping[
    str, Sequence[tuple[str, str]]
]  # words of a question → the (column, stored value) that they are
CANDIDATE_WORDS = 4  # words that one value of a column may have
NAME_UNITS = 8  # units that the name of one column may have
_DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAYS = {name: number for number, day in enumerate(_DAY_NAMES, start=1) for name in (day, f"{day}s")}
CALENDAR = ("year", "quarter", "month", "week", "day", "weekday", "dayofweek")


_BEFORE_YEAR = ("in", "of", "during", "since", "before", "after", "from")
# Kinds that name no column alone.
_GRAMMAR = ("group", "not", "or", "compare", "times", "missing", "between", "number")
REDUNDANT = 4  # units between two mentions of one column
_PAST = ("sold", "bought", "paid", "sent", "made", "born")


@lru_cache(maxsize=4096)
def name_tokens(name: str, *, fold: bool = True) -> tuple[str, ...]:
    """The tokens of a column's name, as a question has them."""
    tokens = [token.text for token in read_prompt(name).tokens]
    return _joined(tokens) if fold else tuple(tokens)


def _joined(tokens: Sequence[str]) -> tuple[str, ...]:
    return tuple(token.lower() for token in tokens)


def _listed(columns: Sequence[ColumnSchema]) -> str:
    zones = [f" ({column.zone})" if column.zone else "" for column in columns]
    return " and ".join(f"`{column.name}`{zone}" for column, zone in zip(columns, zones, strict=True))


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

    `opposites` are the units that deny a yes-or-no column by their prefix: "inactive". `valued` are the columns with a
    value in the question.
    """

    units: tuple[Unit, ...]
    table: TableSchema
    roles: dict[int, str] = field(default_factory=dict)
    columns: dict[int, ColumnSchema] = field(default_factory=dict)
    opposites: set[int] = field(default_factory=set)
    valued: set[str] = field(default_factory=set)

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
        if unit.value in ("when", "who", "where", "which") and index and self.units[index - 1].value == "and":
            return False  # a second question
        return (unit.kind == "word" and unit.value in FILLER) or (
            unit.kind == "symbol" and unit.value not in "*/+"
        )

    def after(self, index: int, *, within: int = 4) -> int | None:
        """The next unit that is no filler word."""
        for step in range(index + 1, min(len(self.units), index + 1 + within)):
            if self.roles.get(step) in ("noun", "name"):
                continue
            if step in self.columns or not self.is_filler(step):
                return step
        return None

    def before(self, index: int, *, within: int = 4) -> int | None:
        """The unit before that is no filler word."""
        for step in range(index - 1, max(-1, index - 1 - within), -1):
            if self.roles.get(step) in ("noun", "name"):
                continue
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

    def date_column(self, index: int, within: int = 4) -> ColumnSchema | None:
        """The date column that a unit is about: the nearest that is named, or the only one; None if there is none.

        Raises:
            Ungrounded: There are several, and none is named.
        """
        near = [step for step in self.open_columns() if self.columns[step].kind == "date"]
        if near:
            step = min(near, key=lambda step: abs(step - index))
            if abs(step - index) <= within:
                self.give("date", step)
            return self.columns[step]
        dates = self.table.of_kind("date")
        used = [column for column in dates if column in self.columns.values()] if len(dates) > 1 else dates
        if dates and len(used) != 1:
            names = ", ".join(f"`{column.name}`" for column in dates)
            raise Ungrounded(f"{self.table.label} has several date columns; name one of {names}")
        return used[0] if used else None

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
        """Find the columns that the words name: whole names first, then longest runs of words first.

        Raises:
            Ungrounded: a name belongs to two columns, or a period is both a column and a part of a date column.
        """
        for length in range(NAME_UNITS, 0, -1):
            self._name_runs(length, self._column_by_name)
        for length in (3, 2, 1):
            self._name_runs(length, self._column_at)
        self._refuse_two_calendars()
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

    def _name_runs(self, length: int, find: Callable[[range], ColumnSchema | None]) -> None:
        for index in range(len(self.units) - length + 1):
            run = range(index, index + length)
            if any(step in self.roles for step in run):
                continue
            column = find(run)
            if column is not None:
                self.give("column", run[0])
                self.columns[index] = column
                self.give("name", *run[1:])

    def _column_by_name(self, run: range) -> ColumnSchema | None:
        """The column whose whole name stands there, whatever its words mean elsewhere: `gene 7`, `Umsatz (€)`."""
        tokens = [token.text for step in run for token in self.units[step].tokens]
        if len(run) == 1 and self.units[run[0]].kind == "period":
            tokens = [self.units[run[0]].value]  # "how many years"
        said = _joined(tokens)
        same = [
            c
            for c in self.table.columns
            if name_tokens(c.name) == said or "_".join(tokens).lower() == c.name.lower()
        ]
        exact = [c for c in same if name_tokens(c.name, fold=False) == tuple(tokens)]
        column = next(iter(exact or same), None)
        if column is None or (len(same) > 1 and not exact):
            return self._one_of(same, " ".join(tokens)) if same else None
        kind = self.units[run[0]].kind
        if len(run) == 1 and kind in _GRAMMAR:
            return None
        if (
            len(run) == 1
            and kind == "word"
            and (self.table.named_like(said[0]) and (column.parts != parts(said[0]) or said[0] in FILLER))
        ):
            return None
        return self._one_of([column], column.name) if column in self.table.repeated else column

    def _one_of(self, columns: Sequence[ColumnSchema], said: str) -> ColumnSchema | None:
        if columns[0] in self.table.repeated:
            raise Ungrounded(
                f"{self.table.label} has several columns with the name “{said}”: rename one of them", (said,)
            )
        names = " and ".join(f"`{column.name}`" for column in columns)
        raise Ungrounded(f"“{said}” could be {names}: write the one that you mean as it is", (said,))

    def _refuse_two_calendars(self) -> None:
        """Refuse `per month` of a table with a number column `month` beside dates, unless the column is named."""
        dates = self.table.of_kind("date")
        own = [c for c in self.table.of_kind("number") if c.name.lower() in CALENDAR]
        if not dates or not own:
            return
        if any(column.kind == "date" for column in self.columns.values()):
            for index in [
                i for i, column in self.columns.items() if column in own and self.units[i].kind == "period"
            ]:
                del self.columns[index], self.roles[index]  # "per month of time_hour"
            return
        for index, unit in enumerate(self.units):
            column = self.columns.get(index)
            beside = [
                step
                for step in (index - 1, index + 1)
                if self.free(step) and self.units[step].value == "column"
            ]
            linked = index + 2 < len(self.units) and self.units[index + 1].value in ("is", "=", "of")
            numbered = self.free(index + 1, "number") or (linked and self.free(index + 2, "number"))
            if column in own and (beside or unit.kind == "quoted"):
                self.give("noun", *beside)
            elif column in own and (numbered or self._is_measured(index)):
                continue
            elif column in own or (column is None and self._is_calendar(index)):
                part = {"month": "month", "number": "year"}.get(unit.kind, unit.value)
                likely = [c for c in own if c.name.lower() == part] or own
                raise Ungrounded(
                    f"“{unit.text}” could be read from {_listed(likely)} or from {_listed(dates)}: say "
                    f"“{part if unit.kind == 'period' else unit.text} of {dates[0].name}”, or “the column "
                    f"{likely[0].name}”",
                    (unit.text,),
                )

    def _is_measured(self, index: int) -> bool:
        before = self.before(index)
        return before is not None and self.units[before].kind in ("aggregate", "extreme")

    def _is_calendar(self, index: int) -> bool:
        """Return whether a unit means days: "July", "per week", "in 2013", "on weekends"."""
        unit, before = self.units[index], self.units[index - 1] if index else None
        year = unit.number if unit.kind == "number" else None
        led = before is not None and before.text.lower() in _BEFORE_YEAR
        return self.free(index) and (
            unit.kind in ("month", "period", "date")
            or unit.value in ("weekend", "weekends", *WEEKDAYS)
            or re.fullmatch(r"q[1-4]", unit.value) is not None
            or (isinstance(year, int) and 1900 <= year <= 2100 and led)
        )

    def _column_at(self, run: range) -> ColumnSchema | None:
        chosen = [self.units[step] for step in run]
        words = [token.text for unit in chosen for token in unit.tokens]
        # A word of the grammar names a column only where it is the column's very name: "year", "total".
        if any(unit.kind != "word" for unit in chosen):
            return None
        if len(words) == 1 and (words[0].lower() in FILLER or self.table.named_like(words[0])):
            column = self.table.column(words)
            return (
                column
                if column and column.parts == parts(words[0]) and words[0].lower() not in FILLER
                else None
            )
        if len(words) > 1 and (words[0].lower() in FILLER or words[-1].lower() in FILLER):
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
                    if word not in ADJECTIVES and any(
                        word == own or same_concept(word, own) for own in column.parts
                    ):
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
        if len(chosen) == 1 and first.doubtful:
            return True
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
                self.valued.add(column)
                found.append((column, tuple(value for name, value in held if name == column), index))
        return sorted(found, key=lambda item: item[2])

    def _is_text_of(self, index: int) -> bool:
        """Return whether a word is looked for inside a column: `contains urgent`."""
        before = self.before(index)
        return before is not None and self.free(before, "contain")

    def _column_of(self, run: range, names: list[str]) -> str:
        before = self.before(run[0], within=2)
        if before is not None and self.units[before].kind == "not":
            before = self.before(before, within=2)
        for step in (before, self.after(run[-1], within=2)):
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
