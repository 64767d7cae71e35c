"""The Python that computes a chart's rows again, for people.

Invariant: a name or a text of the data stands in it as a literal that Python itself wrote; it runs nothing but the
query that was run.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping

from reyn_jupyter.outputs.blobs.ids import canonical_id, is_blob_id


def source_lines(sources: Mapping[str, object]) -> list[str]:
    """Return a line for each source that is no variable of its own name.

    >>> source_lines({"orders": "orders", "t": "sales.csv"})
    ['t = duckdb.sql("FROM \\'sales.csv\\'")']
    """
    lines = []
    for alias, source in sources.items():
        if not isinstance(source, str):
            lines.append(f"# {alias}: the value that the call was given")
        elif is_blob_id(source):
            lines.append(f"{_name(alias)} = reyn_jupyter.session().blob({canonical_id(source)!r}).df")
        elif source.removeprefix("@").isidentifier():
            variable = source.removeprefix("@")
            lines += [] if variable == alias else [f"{_name(alias)} = {variable}"]
        else:
            path = source.replace("'", "''")
            statement = f"FROM '{path}'"
            lines.append(f"{_name(alias)} = duckdb.sql({_quoted(statement)})")
    if any("reyn_jupyter." in line for line in lines):
        lines.insert(0, "import reyn_jupyter\n")
    return lines


def query_lines(sql: str) -> list[str]:
    """Return the lines that run a query as `data`; the text of the query as Python writes it."""
    if "\\" in sql or '"""' in sql or sql.endswith('"') or not sql.replace("\n", "").isprintable():
        return [f"data = duckdb.sql({sql!r}).df()"]
    return [f'data = duckdb.sql("""\n{sql}\n""").df()']


def _quoted(text: str) -> str:
    return f'"{text}"' if '"' not in text and "\\" not in text and text.isprintable() else repr(text)


def _name(alias: str) -> str:
    return f"{alias}_" if keyword.iskeyword(alias) else alias
