"""Text to tokens, the same for names, descriptions and requests.

Invariant: the forms of one identifier (`read_file`, `ReadFile`, `file.read-all`) give the same words in their order;
inflections of English and Russian words give the same stem; scripts that write without spaces give single
characters and overlapping pairs, so that part of a compound is found. Stemmers: Porter, Snowball (2001).
"""

from __future__ import annotations

import functools
import re
import threading
import unicodedata
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_STEMMED = 24  # characters; longer runs are data, not words
_UNSPACED = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\uac00-\ud7af"  # Japanese, Chinese, Korean
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Burmese, Khmer
)
_RUN = re.compile(r"[^\W_]+")
_BREAKS = {code: " " for code in range(128) if not chr(code).isalnum()}
_LOWERED = bytes(code for code in range(256)).lower()
_SEPARATING = bytes(_BREAKS)
_PIECE = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)|\d+|[^\W\d_a-zA-Z{_UNSPACED}]+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+"
)
# Parts of a request that are looked up: more say no more, and a model of meaning takes time for each.
MOST_PARTS = 256
_PART = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]{{1,8}}|\S|\s{{8}}")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_stemming = threading.Lock()

# Words that say that something is asked, not what: they hold no capability.
_SAID_ALWAYS = """
a about all also am an and any are as at be been being but by can could did do does for from get give had has have he
help her him his how i if in into is it its just let like me my need no not of on or our please shall she should so
some tell than that the their them then there these they this those to us use used using want was we were what when
where which who whom why will with would you your make
и в во не на я с со как а то все она так его но да ты к у же вы за бы по мне мой моя мои ли если или это этот для что
чтобы из от до о об при где когда какой какая какие можно нужно пожалуйста помоги
"""
STOP_WORDS = frozenset(_SAID_ALWAYS.split())


def runs(text: str) -> list[str]:
    """Return the unbroken runs of letters and digits, as written.

    >>> runs("mcp__listTools2, ok")
    ['mcp', 'listTools2', 'ok']
    """
    if text.isascii():
        return text.translate(_BREAKS).split()  # several times as fast as the expression
    return _RUN.findall(unicodedata.normalize("NFKC", text))


def pieces(run: str) -> list[str]:
    """Return the words within one run, without case: split at camelCase, digits and changes of script.

    >>> pieces("listTools2")
    ['list', 'tools', '2']
    """
    return [piece.group().casefold() for piece in _PIECE.finditer(run)]


def words(text: str) -> list[str]:
    """Return the words of an identifier or a sentence, in order, without case and unstemmed.

    >>> words("mcp__listTools2")
    ['mcp', 'list', 'tools', '2']
    """
    return [piece for run in runs(text) for piece in pieces(run)]


@functools.lru_cache(maxsize=16_384)
def tokens_of(run: str) -> tuple[str, ...]:
    """Return the stems that one run is indexed and looked up by.

    >>> tokens_of("listReports"), tokens_of("売上高")
    (('list', 'report'), ('売', '上', '高', '売上', '上高'))
    """
    found: list[str] = []
    for piece in _PIECE.finditer(run):
        part = piece.group().casefold()
        if piece.lastgroup == "unspaced":
            found += part
            found += [part[start : start + 2] for start in range(len(part) - 1)]
        else:
            found.append(stem(part))
    return tuple(found)


@functools.lru_cache(maxsize=16_384)
def compound(run: str) -> str | None:
    """Return a run of several words as one: people write `javascript` for `JavaScript`. None for a single word.

    >>> compound("JavaScript"), compound("script")
    ('javascript', None)
    """
    whole = run.isascii() and run.isalpha() and len(pieces(run)) > 1
    return stem(run.casefold()) if whole else None


@functools.lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of an English or a Russian word; any other word as it is."""
    if len(word) > LONGEST_STEMMED or not word.isalpha():
        return word
    language = "english" if word.isascii() else "russian" if _CYRILLIC.match(word) else ""
    if not language:
        return word
    with _stemming:  # a stemmer keeps the word that it works on
        return _stemmer(language)(word)


@functools.cache
def _stemmer(language: str) -> Callable[[str], str]:
    import snowballstemmer

    found: Callable[[str], str] = snowballstemmer.stemmer(language).stemWord
    return found


def cut_query(text: str) -> str:
    """Return the beginning of a request that is looked up: `MOST_PARTS` parts, which are a word of up to eight letters,
    a part of a longer one, a sign, a character of a script without spaces, or eight spaces in a row.

    >>> cut_query("read a file"), len(cut_query("!" * 20_000)), len(cut_query("word " * 4_000).split())
    ('read a file', 256, 256)
    """
    last = next(islice(_PART.finditer(text), MOST_PARTS - 1, None), None)
    return text if last is None else text[: last.end()]


def cut_note(text: str) -> str:
    """Return what to say of a request of which only the beginning is looked up; empty where it is all of it."""
    kept, size = len(cut_query(text)), len(text.rstrip())
    said = f"Only the beginning of the query was looked up, {kept:,} of its {size:,} characters."
    return said if kept < size else ""


def squash_name(text: str) -> str:
    """Return a name without case and separators: `Read_File` and `readfile` are one.

    >>> squash_name("Read_File-2")
    'readfile2'
    """
    if text.isascii():
        return text.encode("ascii").translate(_LOWERED, _SEPARATING).decode("ascii")
    return "".join(runs(text)).casefold()
