"""The names in a statement, as DuckDB's own parser reads them: the tables that it reads, the columns that were meant.

Invariant: nothing is found by searching the text. Tables and the places of columns come from DuckDB's syntax tree, and
a corrected statement is given only where DuckDB finds all of its columns. Used in the process that runs SQL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb

from reyn_jupyter.backends.sql.sql_scans import quoted
from reyn_jupyter.support.text import nearest

_FIXES = 4  # columns of one statement that are corrected
_UNKNOWN = re.compile(
    r'(?:Referenced column "(?P<column>(?:[^"]|"")+)" not found|does not have a column named "(?P<field>(?:[^"]|"")+)")'
    r".*?Candidate bindings: (?P<candidates>[^\n]*)",
    re.DOTALL,
)
_NAME = re.compile(r'"((?:[^"]|"")+)"')


def table_names(connection: Any, sql: str) -> list[list[str]]:
    """Return the tables that a statement reads, each as its name in parts, without those that WITH defines."""
    found: dict[tuple[str, ...], None] = {}
    try:
        for path in _tables(_tree(connection, sql), frozenset()):
            found.setdefault(path)
    except RecursionError:
        return []
    return [list(path) for path in found]


def fixed_columns(connection: Any, sql: str, error: str) -> str | None:
    """Return a statement with DuckDB's own candidates for its unknown columns; None where that does not make it right.

    Args:
        connection: holds the tables.
        sql: what was refused.
        error: DuckDB's words.
    """
    for _ in range(_FIXES):
        unknown = _UNKNOWN.search(error)
        if unknown is None:
            return None
        wanted = (unknown["column"] or unknown["field"]).replace('""', '"')
        candidates = [name.replace('""', '"') for name in _NAME.findall(unknown["candidates"])]
        meant = nearest(wanted, candidates)
        corrected = None if meant is None else _replaced(connection, sql, wanted, meant)
        if corrected is None:
            return None
        sql = corrected
        try:
            connection.execute(
                f"EXPLAIN {sql}"
            ).fetchall()  # all of it, else the connection refuses what comes next
        except duckdb.Error as refusal:
            error = str(refusal)
        else:
            return sql
    return None


def _replaced(connection: Any, sql: str, column: str, candidate: str) -> str | None:
    """Return a statement in which another column stands in all places of one; None where these are not plain to see."""
    text = sql.encode()
    try:
        places = sorted(set(_columns(_tree(connection, sql), column)), reverse=True)
    except RecursionError:
        return None
    for start, length in places:
        reference = text[start : start + length]
        for spelled in (quoted(column).encode(), column.encode()):
            if reference.lower().endswith(spelled.lower()):
                end = start + length
                text = text[: end - len(spelled)] + quoted(candidate).encode() + text[end:]
                break
        else:
            return None
    return text.decode() if places else None


def _tree(connection: Any, sql: str) -> Any:
    """Return the syntax tree of a statement, {} where DuckDB gives none (PIVOT with values that it has to find)."""
    ((text,),) = connection.execute(
        "SELECT json_serialize_sql(?::VARCHAR, skip_null := true)", [sql]
    ).fetchall()
    tree = json.loads(text)
    if tree.get("error") and sql.lstrip()[:7].upper() == "EXPLAIN":
        return _tree(connection, sql.lstrip()[7:])
    return {} if tree.get("error") else tree


def _tables(node: Any, defined: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Yield the tables below a node. `defined` are the names that WITH gives around it."""
    if isinstance(node, list):
        for item in node:
            yield from _tables(item, defined)
    if not isinstance(node, dict):
        return
    for entry in (node.get("cte_map") or {}).get("map") or ():
        name, query = str(entry["key"]).lower(), (entry.get("value") or {})
        recursive = (query.get("query_node") or {}).get("type") == "RECURSIVE_CTE_NODE"
        yield from _tables(query, defined | {name} if recursive else defined)
        defined |= {name}
    if node.get("type") == "BASE_TABLE":
        path = tuple(map(str, (node.get("qualified_name") or {}).get("path") or [node.get("table_name", "")]))
        if len(path) > 1 or path[0].lower() not in defined:
            yield path
    for key, value in node.items():
        if key != "cte_map":
            yield from _tables(value, defined)


def _columns(node: Any, column: str) -> Iterator[tuple[int, int]]:
    """Yield where a column stands: from which byte on, and how many."""
    if isinstance(node, list):
        for item in node:
            yield from _columns(item, column)
    if not isinstance(node, dict):
        return
    if node.get("type") == "COLUMN_REF":
        names = node.get("column_names") or [""]
        if str(names[-1]).lower() == column.lower():
            yield int(node["query_location"]), int(node["query_location_length"])
    for value in node.values():
        yield from _columns(value, column)
