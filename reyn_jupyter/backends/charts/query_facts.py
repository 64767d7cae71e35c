"""What a query says of its rows: the filters that it applies, and how its columns are computed.

Invariant: every WHERE, HAVING, QUALIFY and LIMIT is found, at any depth. The facts are words for people; nothing runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from reyn_jupyter.support.text import shorten

_PIECE = re.compile(
    r"""\s+|--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|[^\W\d]\w*|\d[\w.]*|.""", re.DOTALL
)
_FILTERS = {
    "WHERE": "where",
    "HAVING": "where",
    "QUALIFY": "where",
    "LIMIT": "the first",
    "SAMPLE": "a sample of",
}
_CLAUSES = {*_FILTERS, "SELECT", "FROM", "GROUP", "ORDER", "OFFSET", "WINDOW", "UNION", "EXCEPT", "INTERSECT"}
_AGGREGATES = re.compile(
    r"\b(?:sum|avg|mean|median|min|max|count|mode|stddev\w*|var\w*|quantile\w*|first|last|any_value|arg_m\w+)\s*\(",
    re.IGNORECASE,
)
_LONGEST = 120  # characters of one filter or expression


@dataclass
class QueryFacts:
    """Filters of a query in its order, and the expression of each column that is an aggregate, by the column's name."""

    filters: list[str] = field(default_factory=list)
    aggregates: dict[str, str] = field(default_factory=dict)


def query_facts(sql: str) -> QueryFacts:
    """Read the facts of one statement.

    >>> query_facts('SELECT year, avg("x") AS v FROM t WHERE "a" = 1 GROUP BY year')
    QueryFacts(filters=['where a = 1'], aggregates={'v': 'avg(x)'})
    """
    pieces = [piece for piece in _pieces(sql) if not piece.startswith(("--", "/*"))]
    facts = QueryFacts()
    for at, piece in enumerate(pieces):
        lead = _FILTERS.get(piece.upper())
        if lead is not None:
            text = _plain(_clause(pieces, at + 1))
            said = f"{lead} {text}{' rows' if lead == 'the first' else ''}"
            facts.filters += [said] if text and said not in facts.filters else []
        elif piece.upper() == "AS" and (alias := next((t for t in pieces[at + 1 :] if not t.isspace()), "")):
            text = _plain(_item_before(pieces, at))
            if _AGGREGATES.search(text):
                facts.aggregates[_plain(alias)] = text
    return facts


def _pieces(sql: str) -> Iterator[str]:
    return (match.group() for match in _PIECE.finditer(sql))


def _clause(pieces: list[str], start: int) -> str:
    """The text of a clause: up to the next one, or the end of the brackets that it is in."""
    depth, kept = 0, []
    for piece in pieces[start:]:
        depth += (piece == "(") - (piece == ")")
        if depth < 0 or (depth == 0 and (piece.upper() in _CLAUSES or piece == ";")):
            break
        kept.append(piece)
    return "".join(kept)


def _item_before(pieces: list[str], end: int) -> str:
    """The text of an item of a list that ends at a place."""
    depth, kept = 0, []
    for piece in reversed(pieces[:end]):
        depth += (piece == ")") - (piece == "(")
        if depth < 0 or (
            depth == 0 and (piece == "," or piece.upper() in ("SELECT", "DISTINCT", "WITH", "FROM"))
        ):
            break
        kept.append(piece)
    return "".join(reversed(kept))


def _plain(text: str) -> str:
    """SQL on one line, short, without quotes around plain names and brackets around all of it."""
    text = re.sub(r'"(\w[^"]*)"', r"\1", " ".join(text.split()))
    while text.startswith("(") and _closing(text) == len(text) - 1:
        text = text[1:-1].strip()
    return shorten(text, _LONGEST)


def _closing(text: str) -> int:
    """Return where the bracket that opens a text is closed; brackets inside of quotes count, which only keeps them."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return at
    return -1
