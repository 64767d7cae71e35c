"""Questions about tables: weigh the tables on offer, look values up, ask one query, show its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reyn_jupyter.models.offline import sources, sql
from reyn_jupyter.models.offline.board import Ungrounded, Values
from reyn_jupyter.models.offline.desk import Declined, Desk
from reyn_jupyter.models.offline.interpret import LookUp, interpret
from reyn_jupyter.models.offline.prompt import Prompt
from reyn_jupyter.models.offline.query import Query
from reyn_jupyter.models.offline.question import Unit, asks, may_ask, units
from reyn_jupyter.models.offline.render import cell, code, table, value
from reyn_jupyter.models.offline.table import Table
from reyn_jupyter.models.offline.words import CODES, stem

_NOT_TABLES = {"file", "files", "line", "lines", "function", "functions", "variable", "variables", "action", "actions",
               "memory", "memories", "tool", "tools", "word", "words"}  # fmt: skip


def attempt(desk: Desk, prompt: Prompt) -> str | None:
    """Answer a question about a table; None when the prompt is none."""
    found = units(prompt)
    plain = asks(found)
    if not plain and not (may_ask(found) and (sources.data_paths(prompt) or _short(prompt))):
        return None
    if _about_other_things(found) or (prompt.paths and not sources.data_paths(prompt)):
        return None
    sources.query_action(desk)
    if re.search(r"\b(?:join|merge|joined|combine)\b", prompt.lower):
        joined = sources.joined(desk, prompt)
        if joined is not None:
            return _joined_answer(desk, joined, found)
    try:
        return _best_fit(desk, prompt, found)
    except Declined:
        if plain or sources.data_paths(prompt):
            raise
        return None


def _short(prompt: Prompt) -> bool:
    """`sales per quarter`: so few words that a grouping is likely meant."""
    return len(prompt.tokens) <= 14


def _about_other_things(found: Sequence[Unit]) -> bool:
    """`how many files …` and the like are not about the rows of a table."""
    tabular = any(unit.kind == "path" and unit.value.lower().endswith(sources.DATA) for unit in found)
    others = _NOT_TABLES - ({"line", "lines"} if tabular else set())
    for index, unit in enumerate(found):
        if unit.kind == "aggregate" and unit.value == "count":
            following = {other.value for other in found[index + 1 : index + 4] if other.kind == "word"}
            if following & others:
                return True
    return False


def _best_fit(desk: Desk, prompt: Prompt, found: tuple[Unit, ...]) -> str:
    """Ask the first table in which every word of the question has a meaning."""
    reasons: list[tuple[int, str]] = []
    for group in sources.candidates(desk, prompt):
        open_ones: list[tuple[int, int, Table, LookUp]] = []
        for place, make in enumerate(group):
            on = make()
            if on is None:
                continue
            try:
                return _answer(desk, on, interpret(found, on, None, _names(on)))
            except LookUp as need:
                open_ones.append((need.open_words, place, on, need))
            except Ungrounded as error:
                reasons.append(_reason(on, error))
        for _, _, likely, lookup in sorted(open_ones, key=lambda item: item[:2]):
            try:
                return _looked_up(desk, likely, found, lookup)
            except Ungrounded as error:
                reasons.append(_reason(likely, error))
    if reasons:
        raise Declined(min(reasons)[1])
    raise Declined("I found no table that the question is about. Name a variable or a file.")


def _reason(on: Table, error: Ungrounded) -> tuple[int, str]:
    columns = ", ".join(code(column.name) for column in on.columns[:20])
    return len(error.words), f"{code(on.label)} does not answer it: {error}. Its columns: {columns}."


def _joined_answer(desk: Desk, on: Table, found: tuple[Unit, ...]) -> str:
    try:
        try:
            return _answer(desk, on, interpret(found, on, None, _names(on)))
        except LookUp as need:
            return _looked_up(desk, on, found, need)
    except Ungrounded as error:
        raise Declined(_reason(on, error)[1]) from error


def _names(on: Table) -> list[str]:
    """Further words that stand for the table in a question."""
    joins = ["join", "joined", "merge", "combine"] if "\n" in on.source else []
    return [source.rsplit("/", 1)[-1].rsplit(".", 1)[0] for source in on.source.split("\n")] + joins


def _looked_up(desk: Desk, on: Table, found: tuple[Unit, ...], need: LookUp) -> str:
    return _answer(desk, on, interpret(found, on, _values(desk, on, need.candidates), _names(on)))


def _answer(desk: Desk, on: Table, asked: Query) -> str:
    return told(asked, on, sources.records(desk, sql.statement(asked, on.alias), sources.by_alias(on)))


def _values(desk: Desk, on: Table, candidates: Sequence[str]) -> Values:
    """What the words of a question are among the values of the table."""
    forms = {
        form: candidate for candidate in reversed(candidates[:40]) for form in reversed(_forms(candidate))
    }
    found: dict[str, tuple[str, str]] = {}
    for row in sources.records(desk, sql.values(on, on.alias, sorted(forms)), sources.by_alias(on)).rows:
        name, stored = row.get("column"), row.get("value")
        candidate = forms.get(str(stored).lower())
        known = {column.name for column in on.columns}
        if isinstance(name, str) and name in known and isinstance(stored, str) and candidate is not None:
            exact = stored.lower() == candidate
            if exact or candidate not in found:
                found[candidate] = (name, stored)
    return found


def _forms(words: str) -> list[str]:
    """A word of a question as a value may hold it: as it is, in the singular or plural, as a code."""
    single = stem(words) if " " not in words else " ".join([*words.split()[:-1], stem(words.split()[-1])])
    return list(dict.fromkeys([words, single, f"{single}s", *CODES.get(single, ())]))


# -- telling --------------------------------------------------------------------------------------------------------


def told(asked: Query, on: Table, found: sources.Records) -> str:
    """The rows of a query in words, or as a table."""
    labels = " and ".join(code(label.rsplit("/", 1)[-1]) for label in on.source.split("\n"))
    rows = found.rows
    where = f", where {code(' and '.join(c.words for c in asked.conditions))}" if asked.conditions else ""
    if not rows:
        return f"No row of {labels} fits{where}."
    if len(rows) == 1 and not asked.groups and asked.limit is None and asked.extreme is None:
        facts = [f"the {name} in {labels}{where} is **{value(given)}**" for name, given in rows[0].items()]
        text = "; ".join(facts) + "."
        return text[:1].upper() + text[1:]
    if len(rows) == 1 and asked.outputs and (asked.limit == 1 or asked.extreme is not None):
        first, *rest = [(name, cell(given)) for name, given in rows[0].items()] or [("", "")]
        said = "".join(f", {name} {given}" for name, given in rest)
        return f"From {labels}{where}: **{first[1]}** ({first[0]}){said}."
    cut = f"\n\nThe first {asked.limit} rows." if not asked.outputs and len(rows) == asked.limit else ""
    return f"From {labels}{where}:\n\n{table(rows, found.total)}{cut}"
