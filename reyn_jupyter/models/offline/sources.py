"""Which table a question is about, and what its columns are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from reyn_jupyter.models.offline import files, sql
from reyn_jupyter.models.offline.choose import for_job
from reyn_jupyter.models.offline.desk import Declined, Desk
from reyn_jupyter.models.offline.prompt import Prompt
from reyn_jupyter.models.offline.render import ROWS, code
from reyn_jupyter.models.offline.table import Table, columns_of_description, columns_of_rows, quoted
from reyn_jupyter.models.offline.transcript import Known, Result
from reyn_jupyter.models.offline.words import alike, overlap, parts, stem

DATA = (".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson")
SAMPLE = 3  # rows that tell what a column holds
GUESSES = 2  # tables that are tried when the prompt names none
_RESERVED = {
    "table",
    "order",
    "group",
    "select",
    "from",
    "where",
    "values",
    "user",
    "column",
    "end",
    "all",
    "desc",
}

Maker = Callable[[], Table | None]


def query_action(desk: Desk) -> Known:
    """The listed action that runs SQL; declines where there is none."""
    category = desk.category("table")
    action = for_job(_listed(desk), ("query", "sql"), ("sql", "sources")) if category else None
    if action is None:
        raise Declined("no action that queries tables is on offer here.")
    return action


def _listed(desk: Desk) -> list[Known]:
    return desk.listing((desk.category("table"), desk.category("variable")))


def variables(desk: Desk) -> list[Known]:
    """The listed variables."""
    return [action for action in _listed(desk) if action.category == desk.category("variable")]


def data_paths(prompt: Prompt) -> list[str]:
    """The files of the prompt that a query can read."""
    return [path for path in dict.fromkeys(prompt.paths) if path.lower().endswith(DATA) and "*" not in path]


def candidates(desk: Desk, prompt: Prompt) -> Iterator[list[Maker]]:
    """Tables that a question may be about, likeliest first, in groups that are weighed against one another."""
    paths = data_paths(prompt)
    if paths:
        yield [_path_maker(desk, path) for path in paths]
        return
    offered = variables(desk)
    exact, loose = _named(offered, prompt)
    if exact:
        yield [_variable_maker(desk, action, named=True) for action in exact]
    rest = sorted(
        (action for action in offered if action not in exact and action not in loose),
        key=lambda action: -overlap(_said(prompt), parts(action.description)),
    )
    guesses = rest[: max(0, GUESSES - len(exact) - len(loose))]
    yield [
        *[_variable_maker(desk, action, named=True) for action in loose],
        *[_variable_maker(desk, action, named=False) for action in guesses],
    ]
    if not exact:
        yield [_path_maker(desk, path) for path in _files_named(desk, prompt)[:GUESSES]]


def _path_maker(desk: Desk, path: str) -> Maker:
    return lambda: of_path(desk, path)


def _variable_maker(desk: Desk, action: Known, *, named: bool) -> Maker:
    return lambda: of_variable(desk, action, named=named)


def _files_named(desk: Desk, prompt: Prompt) -> list[str]:
    """Data files that a word of the prompt names: `patients` for `patients.csv`."""
    words = [stem(word) for word in prompt.words if len(word) > 3]
    if desk.category("file") is None or not words:
        return []
    found = files.paths_like(desk, "**/*.csv")
    return [path for path in found if any(alike(word, part) for word in words for part in parts(_base(path)))]


def _said(prompt: Prompt) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for word in prompt.words for part in parts(word)))


def _named(offered: Sequence[Known], prompt: Prompt) -> tuple[list[Known], list[Known]]:
    """The variables that the prompt names: by their very name, and by a like word."""
    words = set(prompt.words)
    exact = [action for action in offered if action.entry.lower() in words]
    loose = [a for a in offered if a not in exact and any(stem(word) == stem(a.entry) for word in words)]
    return exact, loose


def of_variable(desk: Desk, action: Known, *, named: bool = True) -> Table | None:
    """A variable as a table, None when it is no frame."""
    columns = columns_of_description(desk.whole(desk.invoke(action, few_rows(action))).json)
    return Table(action.entry, action.entry, _alias(action.entry), columns, named) if columns else None


def few_rows(action: Known) -> dict[str, int]:
    """Arguments that keep a description short enough to be read at once."""
    return {"rows": SAMPLE} if "rows" in action.parameters else {}


def of_path(desk: Desk, path: str) -> Table:
    """A file as a table; its columns are learned from its first rows."""
    alias = _alias(_base(path))
    return Table(
        path, path, alias, columns_of_rows(records(desk, sql.head(alias, SAMPLE), {alias: path}).rows)
    )


def _base(path: str) -> str:
    return path.rsplit("/", 1)[-1].rsplit(".", 1)[0]


def _alias(name: str) -> str:
    plain = "_".join(re.findall(r"[a-z0-9]+", name.lower())) or "t"
    return plain if plain[0].isalpha() and plain not in _RESERVED else f"t_{plain}"


def joined(desk: Desk, prompt: Prompt) -> Table | None:
    """Two tables of the prompt, joined on the column they share; None when it names fewer."""
    tables = [of_path(desk, path) for path in data_paths(prompt)[:2]]
    for action in _named(variables(desk), prompt)[0] if len(tables) < 2 else ():
        found = of_variable(desk, action)
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
    return Table(left.label, f"{left.source}\n{right.source}", alias, kept)


def by_alias(table: Table) -> dict[str, str]:
    """The `sources` of a query over a table or a join."""
    aliases = [table.alias.split(" ", 1)[0], *re.findall(r" JOIN (\w+) ", table.alias)]
    return dict(zip(aliases, table.source.split("\n"), strict=False))


@dataclass(frozen=True)
class Records:
    """The rows of a query that were seen, and how many there are in all."""

    rows: list[dict[str, object]]
    total: int


def records(desk: Desk, text: str, sources: dict[str, str]) -> Records:
    """Run one query; its rows, opened where they were stored."""
    result: Result = desk.invoke(query_action(desk), {"sql": text, "sources": sources})
    if result.error is not None:
        raise Declined(f"the query failed: {result.error}")
    total = result.total
    if result.blob is not None:
        result = desk.opened(result, f"slice:0..{ROWS}")
    if result.rows is None:
        raise Declined("the query's result could not be read as rows.")
    return Records(result.rows, len(result.rows) if total is None else total)
