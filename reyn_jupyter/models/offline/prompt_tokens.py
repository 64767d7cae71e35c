"""A person's text as tokens: words, numbers, dates, quoted pieces, paths and symbols, with their places.

Invariant: `read` is linear in the length of the text and reads at most `READ` characters of it; every pattern
is bounded, so no text can make it slow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from reyn_jupyter.models.offline.lexicon import stem

READ = 8_000  # characters of a prompt that are looked at; the grammar needs a sentence

Kind = Literal["word", "number", "date", "quoted", "path", "symbol"]

_EXTENSIONS = (
    "csv|tsv|txt|md|rst|py|json|jsonl|ndjson|yaml|yml|toml|ipynb|parquet|log|xlsx|xls|html|xml|sql|cfg|ini|js|ts|pdf"
    "|feather|r|sh|png|jpg"
)
_TOKEN = re.compile(
    r"""
    (?P<quoted>"[^"\n]{1,2000}"|“[^”\n]{1,2000}”|`[^`\n]{1,2000}`|(?<!\w)['‘][^'’\n]{1,2000}['’](?!\w))
    |(?P<date>\b\d{4}-\d{2}(?:-\d{2})?\b)
    |(?P<path>(?<![\w/])(?:\.{0,2}/)?(?:[\w.*-]{1,100}/){1,20}[\w.*-]{0,100}
        |(?<![\w/])[\w*-][\w.*-]{0,100}\.(?:EXTENSIONS)\b(?!\())
    |(?P<number>(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+|\d{1,30})(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?(?![\w]))
    |(?P<word>[^\W\d]\w{0,200}(?:['’]\w{1,3})?|\d+\w{1,50})
    |(?P<symbol>[<>!=]=|\*\*|\S)
    """.replace("EXTENSIONS", _EXTENSIONS),
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True)
class Token:
    """One piece of a text. `text` is without quotes; `start` and `end` are its place in the text."""

    kind: Kind
    text: str
    start: int
    end: int

    @cached_property
    def lower(self) -> str:
        return self.text.lower().replace("’", "'")

    @cached_property
    def stem(self) -> str:
        return stem(self.text)

    @property
    def number(self) -> int | float | None:
        """Return the value as a number, None when it is none."""
        if self.kind != "number":
            return None
        plain = self.text.replace(",", "")
        return float(plain) if any(mark in plain for mark in ".eE") else int(plain)


@dataclass(frozen=True)
class Prompt:
    """A text and its tokens.

    Attributes:
        text: what was read, without surrounding space.
        tokens: its tokens in order.
        clipped: whether the text was longer than what was read.
    """

    text: str
    tokens: tuple[Token, ...]
    clipped: bool = False

    @cached_property
    def lower(self) -> str:
        return self.text.lower().replace("’", "'")

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Lower-case words in order, numbers and symbols left out."""
        return tuple(token.lower for token in self.tokens if token.kind == "word")

    @cached_property
    def paths(self) -> tuple[str, ...]:
        return tuple(token.text for token in self.tokens if token.kind == "path")

    @cached_property
    def quoted(self) -> tuple[str, ...]:
        return tuple(token.text for token in self.tokens if token.kind == "quoted")

    @cached_property
    def identifiers(self) -> tuple[str, ...]:
        """Words that look like names of code: with an underscore, or directly before ``(``."""
        return tuple(
            token.text
            for token in self.tokens
            if token.kind == "word"
            and ("_" in token.text.strip("_") or self.text[token.end : token.end + 1] == "(")
        )

    def has(self, *words: str) -> bool:
        return any(word in self.words for word in words)


def read_prompt(text: str) -> Prompt:
    """Read a text into tokens.

    >>> [token.kind for token in read_prompt('mean fee in visits.csv over 20').tokens]
    ['word', 'word', 'word', 'path', 'word', 'number']
    """
    piece = text[: READ * 2].strip()[:READ]
    tokens = tuple(_token(match) for match in _TOKEN.finditer(piece))
    return Prompt(piece, tokens, len(text) > READ)


def _token(match: re.Match[str]) -> Token:
    kind: Kind = match.lastgroup  # type: ignore[assignment]
    text = match.group()
    start, end = match.span()
    if kind == "quoted":
        return Token(kind, text[1:-1], start, end)
    if kind == "path":
        kept = text.rstrip(".-")
        if kept.lower() in ("and/or", "he/she", "n/a", "w/o", "km/h"):
            return Token("word", kept, start, end)
        return Token(kind, kept, start, start + len(kept))
    return Token(kind, text, start, end)
