"""Find the table that a question is about, and its columns.

Questions about tables: weigh the tables on offer, look values up, ask one query, show its rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from reyn_jupyter.models.offline import sql_query
from reyn_jupyter.models.offline.answers import ROWS, cell, code, table, value
from reyn_jupyter.models.offline.context import Declined, PlanningContext, ToolRequest, for_job
from reyn_jupyter.models.offline.lexer import Unit, asks, may_ask, units
from reyn_jupyter.models.offline.lexicon import CODES, FILLER, alike, one_letter_off, overlap, parts, stem
from reyn_jupyter.models.offline.parse_state import Ungrounded, Values
from reyn_jupyter.models.offline.parser import ValueLookup, interpret
from reyn_jupyter.models.offline.prompt_tokens import Prompt
from reyn_jupyter.models.offline.skills import files
from reyn_jupyter.models.offline.sql_query import TableQuery
from reyn_jupyter.models.offline.table_schema import (
    TableSchema,
    columns_of_description,
    columns_of_rows,
    quoted,
)
from reyn_jupyter.models.offline.transcript import KnownAction, ToolOutput

DATA = (".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson")
SAMPLE = 2  # rows that tell what a column holds
GUESSES = 2  # tables that are tried when the prompt names none
MANY_WORDS = 20  # the weight of a reason that names no word, or of a table that the prompt does not name
CANDIDATES = 60  # runs of words that are looked up as values
FORMS = 500  # spellings of them
ABILITIES = (
    "I can count, add up, average, rank, group and filter rows by their columns and values, and count missing values, "
    "duplicates and shares."
)
_RESERVED = frozenset(
    ["table", "order", "group", "select", "from", "where", "values", "user", "column", "end", "all", "desc"]
)

Maker = Callable[[], TableSchema | None]


def query_action(context: PlanningContext) -> KnownAction:
    """The listed action that runs SQL; declines where there is none."""
    category = context.category("table")
    action = for_job(_listed(context), ("query", "sql"), ("sql", "sources")) if category else None
    if action is None:
        raise Declined("no action that queries tables is on offer here.")
    return action


def _listed(context: PlanningContext) -> list[KnownAction]:
    return context.listing((context.category("table"), context.category("variable")))


def variables(context: PlanningContext) -> list[KnownAction]:
    """The listed variables."""
    return [action for action in _listed(context) if action.category == context.category("variable")]


def data_paths(prompt: Prompt) -> list[str]:
    """The files of the prompt that a query can read."""
    return [path for path in dict.fromkeys(prompt.paths) if path.lower().endswith(DATA) and "*" not in path]


def candidates(context: PlanningContext, prompt: Prompt) -> Iterator[list[Maker]]:
    """Tables that a question may be about, likeliest first, in groups that are weighed against one another."""
    paths = data_paths(prompt)
    if paths:
        yield [_path_maker(context, path) for path in paths]
        return
    offered = variables(context)
    exact, loose = _named(offered, prompt)
    if exact:
        yield [_variable_maker(context, action, named=True) for action in exact]
    rest = sorted(
        (action for action in offered if action not in exact and action not in loose),
        key=lambda action: -overlap(_said(prompt), parts(action.description)),
    )
    guesses = rest[: max(0, GUESSES - len(exact) - len(loose))]
    yield [
        *[_variable_maker(context, action, named=True) for action in loose],
        *[_variable_maker(context, action, named=False) for action in guesses],
    ]
    if not exact:
        yield [_path_maker(context, path) for path in _files_named(context, prompt)[:GUESSES]]


def _path_maker(context: PlanningContext, path: str) -> Maker:
    return lambda: of_path(context, path)


def _variable_maker(context: PlanningContext, action: KnownAction, *, named: bool) -> Maker:
    return lambda: of_variable(context, action, named=named)


def _files_named(context: PlanningContext, prompt: Prompt) -> list[str]:
    """Data files that a word of the prompt names: `patients` for `patients.csv`."""
    words = [stem(word) for word in prompt.words if len(word) > 3]
    if context.category("file") is None or not words:
        return []
    found = files.paths_like(context, "**/*.csv")
    return [path for path in found if any(alike(word, part) for word in words for part in parts(_base(path)))]


def _said(prompt: Prompt) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for word in prompt.words for part in parts(word)))


def _named(offered: Sequence[KnownAction], prompt: Prompt) -> tuple[list[KnownAction], list[KnownAction]]:
    """The variables that the prompt names: by their very name, and by a like word."""
    words = set(prompt.words)
    exact = [action for action in offered if action.entry.lower() in words]
    loose = [a for a in offered if a not in exact and any(stem(word) == stem(a.entry) for word in words)]
    return exact, loose


def of_variable(context: PlanningContext, action: KnownAction, *, named: bool = True) -> TableSchema | None:
    """A variable as a table, None when it is no frame."""
    described = context.whole(context.invoke(action, few_rows(action))).json
    columns = columns_of_description(described)
    left = described.get("columns_left_out") if isinstance(described, dict) else None
    if any(column.level for column in columns) and len({c.name.casefold() for c in columns}) < len(columns):
        if not named:
            return None
        raise Declined(
            f"the index of {code(action.entry)} has the name of a column, or of another level, too."
        )
    kind = str(described.get("type")) if isinstance(described, dict) else ""
    if named and not columns and kind.endswith(("Frame", "Table")) and "shape" not in described:
        raise Declined(
            f"{code(action.entry)} is a {kind} that is not of pandas, and I read those alone: make it one first."
        )
    unlisted = left if isinstance(left, int) else 0
    return (
        TableSchema(action.entry, action.entry, _alias(action.entry), columns, named, unlisted)
        if columns
        else None
    )


def few_rows(action: KnownAction, rows: int = SAMPLE) -> dict[str, int]:
    """Arguments that keep a description short enough to be read at once."""
    return {"rows": rows} if "rows" in action.parameters else {}


def of_path(context: PlanningContext, path: str) -> TableSchema:
    """A file as a table; its columns are learned from its first rows."""
    alias = alias_of_path(path)
    return TableSchema(
        path,
        path,
        alias,
        columns_of_rows(records(context, sql_query.head(alias, SAMPLE), {alias: path}).rows),
    )


def alias_of_path(path: str) -> str:
    """The name that a file has in SQL."""
    return _alias(_base(path))


def _base(path: str) -> str:
    return path.rsplit("/", 1)[-1].rsplit(".", 1)[0]


def _alias(name: str) -> str:
    plain = "_".join(re.findall(r"[a-z0-9]+", name.lower())) or "t"
    return plain if plain[0].isalpha() and plain not in _RESERVED else f"t_{plain}"


def join_tables(context: PlanningContext, prompt: Prompt) -> TableSchema | None:
    """Two tables of the prompt, joined on the column they share; None when it names fewer."""
    tables = [of_path(context, path) for path in data_paths(prompt)[:2]]
    for action in _named(variables(context), prompt)[0] if len(tables) < 2 else ():
        found = of_variable(context, action)
        tables.extend([found] if found else [])
    if len(tables) < 2:
        return None
    left, right = tables[:2]
    own = {column.name for column in left.columns}
    shared = [column.name for column in right.columns if column.name in own]
    if not shared:
        raise Declined(f"{code(left.label)} and {code(right.label)} share no column to join on.")
    key = next((name for name in shared if name.lower() in prompt.lower), shared[0])
    columns = (*left.columns, *(column for column in right.columns if column.name not in own))
    kept = tuple(replace(column, kind="other") if column.name == key else column for column in columns)
    alias = f"{left.alias} JOIN {right.alias} USING ({quoted(key)})"
    return TableSchema(left.label, f"{left.source}\n{right.source}", alias, kept)


def by_alias(table: TableSchema) -> dict[str, str]:
    """The `sources` of a query over a table or a join."""
    aliases = [table.alias.split(" ", 1)[0], *re.findall(r" JOIN (\w+) ", table.alias)]
    return dict(zip(aliases, table.source.split("\n"), strict=False))


@dataclass(frozen=True)
class Records:
    """The rows of a query that were seen, how many were fetched, and whether there are more than those."""

    rows: list[dict[str, object]]
    total: int
    cut: bool = False


_THERE_ARE_MORE = "rows; there are more"
NOTE = 400  # characters at the end of a summary that are looked at for that note


def records(context: PlanningContext, text: str, sources: dict[str, str]) -> Records:
    """Run one query; its rows, opened where they were stored."""
    result: ToolOutput = context.invoke(query_action(context), {"sql": text, "sources": sources})
    if result.error is not None:
        raise Declined(f"the query failed: {result.error}")
    total, cut = result.total, _THERE_ARE_MORE in result.text[-NOTE:]
    if result.blob is not None:
        result = context.opened(result, f"slice:0..{ROWS}")
    if result.rows is None:
        raise Declined("the query's result could not be read as rows.")
    return Records(result.rows, len(result.rows) if total is None else total, cut)


_NOT_TABLES = {"column", "columns", "field", "fields",
               "file", "files", "line", "lines", "function", "functions", "variable", "variables", "action", "actions",
               "memory", "memories", "tool", "tools", "word", "words"}  # fmt: skip


def attempt(context: PlanningContext, prompt: Prompt) -> str | None:
    """Answer a question about a table; None when the prompt is none."""
    found = units(prompt)
    plain = asks(found)
    listing = prompt.words[:1] in (("list",), ("show",), ("which",)) and not _NOT_TABLES.intersection(
        prompt.words
    )
    if prompt.words[:1] == ("what",) and any(unit.kind == "number" for unit in found):
        listing = True  # "what is the status of order 1234?"
    if not plain and not ((listing or may_ask(found)) and (data_paths(prompt) or _short(prompt))):
        return None
    if (
        prompt.words[:1] == ("describe",)
        or _about_other_things(found)
        or (prompt.paths and not data_paths(prompt))
    ):
        return None
    if listing and all(word in (*FILLER, *_SHOWING) or word in _entries(context) for word in prompt.words):
        return None  # "show orders" describes it
    query_action(context)
    if re.search(r"\b(?:join|merge|joined|combine)\b", prompt.lower):
        both = join_tables(context, prompt)
        if both is not None:
            return _answer(context, *_first_reading(context, prompt, found, [], [[lambda: both]]))
    try:
        return _answer(context, *best_reading(context, prompt, found))
    except Declined:
        if plain or data_paths(prompt) or (may_ask(found) and _named(variables(context), prompt)[0]):
            raise
        return None


_SHOWING = ("list", "show", "which", "display", "print")


def _entries(context: PlanningContext) -> set[str]:
    return {action.entry.lower() for action in variables(context)}


def attempt_named(context: PlanningContext, prompt: Prompt) -> str | None:
    """Answer whatever else names a table, or decline with the words that have no meaning; None if it names none."""
    if not data_paths(prompt) and (prompt.paths or not _named(variables(context), prompt)[0]):
        return None
    query_action(context)
    return _answer(context, *best_reading(context, prompt, units(prompt)))


def _short(prompt: Prompt) -> bool:
    """`sales per quarter`: so few words that a grouping is likely meant."""
    return len(prompt.tokens) <= 14


def _about_other_things(found: Sequence[Unit]) -> bool:
    """`how many files …` and the like are not about the rows of a table."""
    tabular = any(unit.kind == "path" and unit.value.lower().endswith(DATA) for unit in found)
    others = _NOT_TABLES - ({"line", "lines"} if tabular else set())
    for index, unit in enumerate(found):
        if unit.kind == "aggregate" and unit.value == "count":
            following = {other.value for other in found[index + 1 : index + 4] if other.kind == "word"}
            if following & others:
                return True
    return False


def best_reading(
    context: PlanningContext, prompt: Prompt, found: tuple[Unit, ...]
) -> tuple[TableSchema, TableQuery]:
    """Return the first table in which every word of the question has a meaning, and the query; declines else."""
    reasons: list[tuple[int, str]] = []
    unknown = _unknown_table(context, prompt)
    others = [a.entry for a in variables(context) if a.entry.isalpha()]  # a number at the end is no slip
    near = next((name for name in others if one_letter_off(unknown, name.lower())), None)
    if near is not None:
        raise Declined(f"{_no_table(context, unknown)} Did you mean {code(near)}?")
    try:
        return _first_reading(context, prompt, found, reasons, candidates(context, prompt))
    except ToolRequest:
        if not reasons or not context.last_step:
            raise
    except Declined:
        if not reasons:
            raise
    reason = min(reasons)[1]
    raise Declined(f"{_no_table(context, unknown)} {reason}" if f"“{unknown}”" in reason else reason)


def _unknown_table(context: PlanningContext, prompt: Prompt) -> str:
    """The last word of `… in NAME` where no variable has that name, else nothing."""
    *_, before, last = ["", "", *prompt.words]
    named = any(
        last in (a.entry.lower(), stem(a.entry)) or stem(last) == stem(a.entry) for a in variables(context)
    )
    return last if before in ("in", "from") and not named and not prompt.paths else ""


def _no_table(context: PlanningContext, name: str) -> str:
    names = ", ".join(code(action.entry) for action in variables(context)[:10]) or "none"
    return f"there is no table or variable {code(name)}. The variables are: {names}."


def _first_reading(
    context: PlanningContext,
    prompt: Prompt,
    found: tuple[Unit, ...],
    reasons: list[tuple[int, str]],
    groups: Iterable[list[Maker]],
) -> tuple[TableSchema, TableQuery]:
    for group in groups:
        answers: list[tuple[TableSchema, TableQuery]] = []
        lookups: list[tuple[TableSchema, ValueLookup]] = []
        tried = [made for make in group if (made := make()) is not None]
        for on in tried:
            try:
                answers.append((on, interpret(found, on, None, _names(on))))
            except ValueLookup as need:
                lookups.append((on, need))
            except Ungrounded as error:
                reasons.append(_reason(on, error))
        if not answers and lookups:
            values = _values(context, [(on, need.candidates) for on, need in lookups])
            for (on, _), known in zip(lookups, values, strict=True):
                try:
                    answers.append((on, interpret(found, on, known, _names(on))))
                except Ungrounded as error:
                    reasons.append(_reason(on, error))
        if len(answers) > 1 and not answers[0][0].named:
            raise Declined(
                f"{_listed_labels(answers)} could each answer it. Name one of them in the question."
            )
        if answers:
            return answers[0]
        named = "|".join(re.escape(on.label.lower()) for on in tried)
        if tried and re.search(rf"\b(?:in|from) (?:the )?(?:{named})(?!\w)", prompt.lower):
            raise Declined(min(reasons)[1])  # no other table is meant
    unknown = "I found no table that the question is about. Name a variable or a file."
    raise Declined(min(reasons)[1] if reasons else unknown)


def _listed_labels(answers: Sequence[tuple[TableSchema, TableQuery]]) -> str:
    return " and ".join(code(on.label) for on, _ in answers)


def _reason(on: TableSchema, error: Ungrounded) -> tuple[int, str]:
    columns = ", ".join(code(column.name) for column in on.columns[:20])
    weight = (len(error.words) or MANY_WORDS) + (0 if on.named else MANY_WORDS)
    return weight, f"{error}. The columns of {code(on.label)}: {columns}. {ABILITIES}"


def _names(on: TableSchema) -> list[str]:
    """Further words that stand for the table in a question."""
    joins = ["join", "joined", "merge", "combine"] if "\n" in on.source else []
    joins += re.findall(r'USING \("([^"]*)"\)', on.alias)
    return [source.rsplit("/", 1)[-1].rsplit(".", 1)[0] for source in on.source.split("\n")] + joins


def _answer(context: PlanningContext, on: TableSchema, asked: TableQuery) -> str:
    sources = by_alias(on)
    text = sql_query.statement(asked, on.alias, sql_query.whole_rows(on))
    found = records(context, text, sources)
    counted = replace(asked, outputs=(sql_query.Output("COUNT(*)", "rows"),), order=None)
    count_sql = sql_query.statement(counted, on.alias)
    room = context.has_room(query_action(context), {"sql": count_sql, "sources": sources}, 2)
    if found.cut and not asked.outputs and not asked.text and room:
        rows = records(context, count_sql, sources).rows
        found = replace(found, total=int(str(rows[0]["rows"])), cut=False)
        context.invoke(
            query_action(context), {"sql": f"{text} ", "sources": sources}
        )  # last: the run's table
    elif (numbers := _numbers_without_value(on, asked, found.rows)) and not asked.text:
        infinite = " OR ".join(f"isinf(CAST({quoted(name)} AS DOUBLE))" for name in numbers)
        probe = f'SELECT COUNT(*) AS "rows" FROM ({text}) WHERE {infinite}'  # noqa: S608 - quoted names
        if context.has_room(query_action(context), {"sql": probe, "sources": sources}, 3):
            if records(context, probe, sources).rows[0]["rows"]:  # JSON has no infinite numbers
                found = records(context, f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({text})", sources)  # noqa: S608
            else:
                context.invoke(query_action(context), {"sql": f"{text} ", "sources": sources})
    if asked.unsaid:
        most = max((int(str(row.pop(sql_query.MOST, 1))) for row in found.rows), default=1)
        asked = _put_together(asked, found.rows, most)
    return describe_rows(asked, on, found)


def _numbers_without_value(on: TableSchema, asked: TableQuery, rows: list[dict[str, object]]) -> list[str]:
    """The number columns of an answer with cells that are missing in JSON, and so may be infinite."""
    columns = {column.name: column for column in on.columns}
    columns |= {output.label: output.column for output in asked.outputs if output.column is not None}
    floats = {n for n, c in columns.items() if c.kind == "number" and "int" not in c.dtype.lower()}
    return (
        [name for name in rows[0] if name in floats and any(row.get(name) is None for row in rows)]
        if rows
        else []
    )


def _put_together(asked: TableQuery, rows: list[dict[str, object]], most: int) -> TableQuery:
    """Decide how a column is read of which the question does not say whether it is added up or averaged.

    If no group has more than one row, its value is the answer. Otherwise total and average are both shown; a ranking
    by either would be a guess.

    Raises:
        Declined: groups of several rows are ranked.
    """
    [first, *_] = asked.unsaid
    if most > 1 and asked.limit is not None:
        group = asked.groups[-1].label
        raise Declined(
            f"there are several rows for one {group}: do you mean the total, the average or the highest "
            f"{first.label}? Say for example “by average {first.label}”."
        )
    if most > 1:
        names = " and ".join(output.label for output in asked.unsaid)
        return replace(
            asked, note=f"the question does not say whether {names} is added up or averaged: here are both"
        )
    for row in rows:
        for output in asked.outputs:
            label = output.label.split(" ", 1)[1]
            row[label] = row.pop(output.label)
    labels = dict.fromkeys(output.label.split(" ", 1)[1] for output in asked.outputs)
    return replace(
        asked, outputs=tuple(sql_query.Output("", label) for label in labels), note="one row in each group"
    )


def _values(context: PlanningContext, wanted: Sequence[tuple[TableSchema, Sequence[str]]]) -> list[Values]:
    """What the words of a question are among the values of each table."""
    forms = [
        {form: words for words in reversed(given[:CANDIDATES]) for form in reversed(_forms(words))}
        for _, given in wanted
    ]
    found: list[dict[str, list[tuple[str, str]]]] = [{} for _ in wanted]
    for place, name, stored in _cells(
        context, [(on, sorted(known)) for (on, _), known in zip(wanted, forms, strict=True)]
    ):
        words = forms[place].get(stored.lower())
        if words is not None and any(column.name == name for column in wanted[place][0].columns):
            found[place].setdefault(words, []).append((name, stored))
    return [{words: _exact(words, held) for words, held in known.items()} for known in found]


def _cells(
    context: PlanningContext, wanted: Sequence[tuple[TableSchema, Sequence[str]]]
) -> Iterator[tuple[int, str, str]]:
    """Yield where some words are cells of text columns: the place of the table, the column, and the cell."""
    find = for_job(_listed(context), ("find", "values"), ("variables", "texts"))
    variables = {on.source: place for place, (on, _) in enumerate(wanted) if on.source.isidentifier()}
    if find is not None and variables:
        texts = sorted({word for place in variables.values() for word in wanted[place][1]})
        held = context.whole(
            context.invoke(find, {"variables": list(variables), "texts": texts[:FORMS]})
        ).json
        cells = held.get("found") if isinstance(held, dict) else None
        for cell in cells if isinstance(cells, list) else ():
            if isinstance(cell, dict) and cell.get("variable") in variables:
                yield variables[cell["variable"]], str(cell.get("column")), str(cell.get("value"))
    rest = [
        (place, *pair) for place, pair in enumerate(wanted) if find is None or pair[0].source not in variables
    ]
    rest = [(place, on, words) for place, on, words in rest if words and on.of_kind("text")]
    if rest:
        sources = {alias: source for _, on, _ in rest for alias, source in by_alias(on).items()}
        for row in records(context, sql_query.values(rest), sources).rows:
            place, name, stored = row.get("table"), row.get("column"), row.get("value")
            if isinstance(place, int) and 0 <= place < len(wanted) and isinstance(stored, str):
                yield place, str(name), stored


def _exact(words: str, held: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The values that are spelled as the question says, where there are some; else its other forms."""
    return [pair for pair in held if pair[1].lower() == words] or held


def _forms(words: str) -> list[str]:
    """A word of a question as a value may hold it: as it is, in the singular or plural, as a code."""
    single = stem(words) if " " not in words else " ".join([*words.split()[:-1], stem(words.split()[-1])])
    return list(dict.fromkeys([words, single, f"{single}s", *CODES.get(single, ())]))


# -- telling --------------------------------------------------------------------------------------------------------


def describe_rows(asked: TableQuery, on: TableSchema, found: Records) -> str:
    """The rows of a query in words, or as a table, with how the question was understood."""
    labels = " and ".join(code(label.rsplit("/", 1)[-1]) for label in on.source.split("\n"))
    notes = [note for note in (asked.note, ", ".join(asked.zones)) if note]
    labels = f"{labels} ({'; '.join(notes)})" if notes else labels
    rows = found.rows
    conditions = [*asked.conditions, *([asked.having] if asked.having else [])]
    where = f", where {code(' and '.join(c.words for c in conditions))}" if conditions else ""
    if not rows:
        return f"No row of {labels} fits{where}."
    if len(rows) == 1 and asked.outputs and not (asked.groups or asked.limit or asked.extreme):
        facts = [f"the {name} in {labels}{where} is **{value(given)}**" for name, given in rows[0].items()]
        text = "; ".join(facts) + "."
        return text[:1].upper() + text[1:]
    if len(rows) == 1 and asked.outputs and (asked.limit == 1 or asked.extreme is not None):
        first, *rest = [(name, cell(value(given))) for name, given in rows[0].items()] or [("", "")]
        said = "".join(f", {name} {given}" for name, given in rest)
        return f"From {labels}{where}: **{first[1]}** ({first[0]}){said}."
    heading = _heading(asked, on, labels, where, found)
    if heading.startswith(f"{found.total} rows") and found.total > ROWS:  # the heading counts them
        return f"{heading}:\n\n{table(rows[:ROWS])}\n\nThe first {ROWS} are shown."
    return f"{heading}:\n\n{table(rows, found.total, cut=found.cut)}"


def _heading(asked: TableQuery, on: TableSchema, labels: str, where: str, found: Records) -> str:
    """How a question with several rows as its answer was understood, in one line."""
    whole = found.total > 1 and not (asked.outputs or asked.limit or asked.last or asked.extreme)
    rows = f"{found.total} rows" if whole and not found.cut else "Rows"
    said = asked.title or " and ".join(output.label for output in asked.outputs) or rows
    by = (
        f" by {' and '.join(output.label for output in asked.groups)}"
        if asked.groups and asked.outputs
        else ""
    )
    if asked.groups and not asked.outputs:
        said = " and ".join(output.label for output in asked.groups)
    text = f"{said[:1].upper()}{said[1:]}{by} in {labels}{where}"
    if asked.order is not None and (asked.outputs or asked.limit or not asked.groups):
        known = (*asked.outputs, *asked.groups, *(sql_query.of_column(column) for column in on.columns))
        named = next((output.label for output in known if output.sql == asked.order[0]), "an expression")
        if not asked.groups or asked.order[0] != asked.groups[0].sql:
            text += f", by {named} from the {'highest' if asked.order[1] else 'lowest'}"
    if asked.limit is not None and not asked.extreme:
        text += f", the first {asked.limit}"
    return f"{text}, the last {asked.last} rows" if asked.last is not None else text
