"""Describe a variable or a data file: its type, shape, columns and first rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reyn_jupyter.models.offline.answers import block, cell, code, table, value
from reyn_jupyter.models.offline.context import Declined, PlanningContext
from reyn_jupyter.models.offline.lexicon import FILLER, stem
from reyn_jupyter.models.offline.prompt_tokens import Prompt
from reyn_jupyter.models.offline.skills import table_lookup
from reyn_jupyter.models.offline.sql_query import head, row_count
from reyn_jupyter.models.offline.table_schema import columns_of_description, columns_of_rows
from reyn_jupyter.models.offline.transcript import KnownAction, ToolOutput
from reyn_jupyter.support.text import count, enumerate_words

_ABOUT = (
    r"describe|summari[sz]e|shape|schema|columns?|fields?|dtypes?|types?|structure|head|preview|size|length|value"
    r"|how (?:big|large|long)|dimensions?|first rows|look like"
)
_EXPLICIT = re.compile(rf"\b(?:{_ABOUT})\b")
_PLAIN = re.compile(
    r"\A(?:(?:please|can you|could you)\s+)*(?:show|print|display|view|what(?:'s| is| are)|inspect|see)\b"
)
_HOLDS = re.compile(r"\b(?:contains?|holds?|contents?)\b")
_NOUN = re.compile(r"\b(?:variable|dataframe|data frame|frame|table|array|series|list|dict)\b")

_WORDS_TEXT = """
describe description summarize summarise summary shape schema column columns field fields dtype dtypes type types
structure head preview size length value values big large long dimension dimensions first look looks print display view
inspect variable variables array series list dict object names overview info content contents inside contain contains
hold holds many
"""
_WORDS = frozenset(_WORDS_TEXT.split())
_OF_A_TEXT = {"print", "line", "lines"}  # a file is wanted as it stands
HEAD = 3  # rows that a description shows


def attempt_file(context: PlanningContext, prompt: Prompt) -> str | None:
    """`what is in weather.csv?`: a data file of which nothing else is asked; None when the prompt is no such."""
    known = {*FILLER, *_WORDS} - _OF_A_TEXT
    paths = table_lookup.data_paths(prompt)
    others = {token.kind for token in prompt.tokens} - {"word", "path", "symbol"}
    if others or len(paths) != 1 or len(prompt.paths) != 1 or not all(word in known for word in prompt.words):
        return None
    low = prompt.lower
    return (
        _file(context, paths[0]) if any(asked.search(low) for asked in (_EXPLICIT, _PLAIN, _HOLDS)) else None
    )


def attempt(context: PlanningContext, prompt: Prompt) -> str | None:
    """Describe a variable or a data file; None when the prompt is about neither."""
    low = prompt.lower[:400]
    explicit = _EXPLICIT.search(low) is not None
    if not explicit and not _PLAIN.match(low):
        return None
    paths = [path for path in prompt.paths if path.lower().endswith(table_lookup.DATA)]
    if paths and explicit:
        return _file(context, paths[0])
    category = context.category("variable")
    if prompt.paths or category is None:
        return None
    variables = context.listing((category,))
    chosen = _chosen(variables, prompt)
    if chosen is not None and not _about_it_alone(prompt, chosen):
        return _type_of_column(context, prompt, chosen)
    if chosen is None:
        if explicit and (_NOUN.search(low) or re.match(r"(?:please\s+)?describe\b", low)):
            names = ", ".join(code(action.entry) for action in variables[:10]) or "none"
            raise Declined(f"no variable on offer has that name. The variables are: {names}.")
        return None
    result = context.invoke(chosen, table_lookup.few_rows(chosen, HEAD))
    if result.error is not None:
        raise Declined(f"describing {code(chosen.entry)} failed: {result.error}")
    return describe_variable(chosen.entry, context.whole(result))


def _type_of_column(context: PlanningContext, prompt: Prompt, chosen: KnownAction) -> str | None:
    """`what type is time_hour in flights?`: the type of the one column that all other words name."""
    known = {*FILLER, *_WORDS, chosen.entry.lower()}
    named = " ".join(word for word in prompt.words if word not in known)
    if not named or not prompt.has("type", "dtype", "types", "dtypes"):
        return None
    table_schema = table_lookup.of_variable(context, chosen)
    column = table_schema.column(named.split()) if table_schema is not None else None
    if column is None or not column.dtype:
        return None
    return f"The type of {column.name} in {code(chosen.entry)} is {code(column.dtype)}."


def _about_it_alone(prompt: Prompt, chosen: KnownAction) -> bool:
    """Return whether every word of a prompt is the variable's name, or asks to show or describe it."""
    known = {*FILLER, *_WORDS, chosen.entry.lower()}
    return all(word in known or stem(word) == stem(chosen.entry) for word in prompt.words)


def _chosen(variables: list[KnownAction], prompt: Prompt) -> KnownAction | None:
    """The variable that the prompt names by its very name, else by its singular or plural."""
    said = [token.text for token in prompt.tokens if token.kind in ("word", "quoted")]
    for same in (lambda a, b: a == b, lambda a, b: a.lower() == b.lower(), lambda a, b: stem(a) == stem(b)):
        for word in said:
            for action in variables:
                if same(word, action.entry):
                    return action
    return None


def _file(context: PlanningContext, path: str) -> str:
    alias = table_lookup.alias_of_path(path)
    total = table_lookup.records(context, row_count(alias), {alias: path}).rows[0]["rows"]
    first = table_lookup.records(
        context, head(alias, HEAD), {alias: path}
    ).rows  # last: they become the run's table
    columns = columns_of_rows(first)
    kinds = table([{"column": column.name, "holds": column.kind} for column in columns])
    rows = count(int(str(total)), "row")
    return f"{code(path)} has {rows} and these columns:\n\n{kinds}\n\nFirst rows:\n\n{table(first)}"


def describe_variable(name: str, result: ToolOutput) -> str:
    """The description of a variable, as Markdown."""
    described = result.json
    if not isinstance(described, Mapping):
        return f"{code(name)}:\n\n{block(result.text)}"
    lines = []
    shape = described.get("shape")
    columns = columns_of_description(described)
    levels = [column.name for column in columns if column.level]
    if isinstance(shape, list) and len(shape) == 2:
        by = f", indexed by {enumerate_words([code(level) for level in levels])}" if levels else ""
        sizes = f"{count(int(shape[0]), 'row')} and {count(int(shape[1]), 'column')}"
        lines.append(f"{code(name)} is a {value(described.get('type'))} with {sizes}{by}.")
    else:
        lines.append(f"{code(name)} is of type {code(value(described.get('type')))}.")
    hidden = (*_SHOWN, "shape") if isinstance(shape, list) and len(shape) == 2 else _SHOWN
    lines += [
        f"- {key}: {cell(item)}" for key, item in described.items() if key not in hidden and _plain(item)
    ]
    if isinstance(described.get("memory_bytes"), int):
        lines.append(f"- memory: {count(described['memory_bytes'], 'byte')}")
    cells = [column for column in columns if not column.level]
    if cells:
        lines.append("\n" + table([{"column": c.name, "type": c.dtype or c.kind} for c in cells]))
    head = described.get("head")
    if isinstance(head, list) and head and all(isinstance(row, Mapping) for row in head):
        lines.append("\nFirst rows:\n\n" + table(head[:10]))
    elif head is not None and not cells:
        lines.append(f"- head: {cell(head)}")
    rest = [key for key in described if key not in _SHOWN and not _plain(described[key])]
    lines += [f"- {key}: {cell(described[key])}" for key in rest]
    return "\n".join(lines)


_SHOWN = ("type", "head", "columns", "schema", "dtypes", "name", "index", "memory_bytes")


def _plain(item: Any) -> bool:
    return (
        item is None
        or isinstance(item, (str, int, float, bool))
        or (isinstance(item, list) and len(item) <= 4)
    )
