"""Find what a request names: addresses, quoted text, and names of files, each as one piece.

Invariant: A name is never cut. If it is not certain where a name begins or ends, the part carries a doubt, and no step
is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from reyn_jupyter.support.text import shorten
from reyn_jupyter.workflows.workflow_error import WorkflowError

MASK = "\ue000"  # in a masked text, each character of a part
_ENDINGS = (
    "webm|mp4|mkv|mov|avi|mp3|wav|ogg|flac|m4a|aac|gif|png|jpe?g|webp|svg|tiff?|bmp|heic|pdf|docx?|xlsx?|pptx?|odt|ods|"
    "txt|md|rst|html?|css|csv|tsv|json|jsonl|ya?ml|toml|xml|parquet|arrow|sql|sqlite|db|zip|tar|tgz|gz|bz2|xz|7z|rar|"
    "py|ipynb|js|ts|sh|r|java|c|cpp|h|go|rs|log|ini|cfg|srt|vtt|epub|tex|bib"
)
_URL = re.compile(r"https?://(?:(?![,;|]https?://)[^\s<>\"«»“”„‘「」『』`])+", re.IGNORECASE)
_URL_TRAILING = ".,;:!?’'…"
_ENDING = re.compile(_ENDINGS, re.IGNORECASE)
_TOKEN = re.compile(rf"(?:\\ |[^\s{MASK}])+")
_TRAILING = ".,;:!?…"
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CLOSERS = {
    '"': '"', "'": "'", "`": "`", "“": "”\"“", "„": "“”\"", "‚": "‘’", "‘": "’'", "«": "»", "»": "«", "‹": "›",
    "「": "」", "『": "』", "＂": "＂", "＇": "＇", "〝": "〞〟", "”": "”",
}  # fmt: skip
_APOSTROPHES = "'’‘`"
_BEFORE_QUOTE = re.compile(r"[\s(\[{=:,;<>→|&+]|\ue000")
_STRAY = re.compile("[\"“”„«»‹›「」『』＂〝〞]|^['‘‚`＇]|['‘’`＇]$")
_BEFORE_NAME = re.compile(r"[,;:!?.…→>|&+=)]$")
_POSSESSIVES = re.compile(
    "my|mine|ours?|yours?|his|hers?|its|theirs?|мо[йяеёию]|моего|моей|наш[аеи]?|тво[йяеёи]|ваш[аеи]?|его|е[её]|их|сво[йяеёию]"
)
_ARTICLES = frozenset({"a", "an", "the"})
_JOINS = frozenset({"and", "&", "+", "plus", "и"})
_NO_NAME = frozenset(
    {"or", "but", "except", "without", "not", "или", "но", "кроме", "без", "не"}
)  # say something else
_LONGEST_QUOTED = 500  # characters
_MOST_APOSTROPHES = 5  # at the ends of words, in a name
_MOST_TRIMMED = 20  # characters of punctuation around a name
MOST_PARTS = 2_000  # of a request
_MOST_WORDS = 8  # of a name without quotation marks
_MOST_LOOKUPS = 400  # of names in one request

FindFile = Callable[[str], str | None]
PartKind = Literal["url", "file", "text"]


@dataclass(frozen=True)
class RequestPart:
    """Something that a request names.

    Attributes:
        text: Without quotation marks, escapes, and the full stop of its sentence.
        start: Where it begins in the request.
        end: Where it ends in the request.
        kind: "url", "file", or "text" for other quoted text.
        doubt: Why it is not certain what is named, in a sentence. Empty if it is certain.
    """

    text: str
    start: int
    end: int
    kind: PartKind = "file"
    doubt: str = ""


def find_parts(
    text: str, find_file: FindFile | None = None, may_precede: Callable[[str], bool] = lambda word: False
) -> tuple[RequestPart, ...]:
    """Return the parts of a request in their order.

    Args:
        text: The request.
        find_file: Returns the path of the file of a name, or None if there is none. Without it, every name is taken as
            it is written.
        may_precede: Whether a word in front of a name is certainly not part of it, such as a verb or an article.

    Raises:
        WorkflowError: "validation": The request names more than `MOST_PARTS` things.

    >>> [each.text for each in find_parts("convert 'my talk.webm' and Anna's.webm")]
    ['my talk.webm', "Anna's.webm"]
    """
    urls = _bounded(_urls(text))
    quoted = _bounded(_quoted(text, mask(text, urls)))
    if find_file is not None:
        quoted = [_as_found(each, find_file) for each in quoted]
    masked = mask(text, sorted([*urls, *quoted], key=lambda each: each.start))
    files = _bounded(_Names(text, masked, find_file, may_precede).parts())
    return tuple(sorted([*urls, *quoted, *files], key=lambda each: each.start))


def _bounded(parts: Iterator[RequestPart]) -> list[RequestPart]:
    """Return parts that are not too many. Raises WorkflowError."""
    found = list(islice(parts, MOST_PARTS + 1))
    if len(found) > MOST_PARTS:
        raise WorkflowError(
            f"The request names more than {MOST_PARTS:,} files, addresses, or quoted texts.",
            "Ask for less at a time.",
            "validation",
        )
    return found


def mask(text: str, parts: Iterable[RequestPart]) -> str:
    """Return a text with a mark in place of every character of some parts, which are in their order."""
    pieces, at = [], 0
    for each in parts:
        pieces += [text[at : each.start], MASK * (each.end - each.start)]
        at = each.end
    return "".join((*pieces, text[at:]))


def is_file_name(text: str) -> bool:
    """Return whether a text is the name of a file by its suffix."""
    stem, _, ending = text.rstrip().rpartition(".")
    return bool(re.match(r"[^\s./\\]", stem[-1:])) and _ENDING.fullmatch(ending) is not None


def only_quoted(text: str) -> str | None:
    """Return the content of a text that is one pair of quotation marks, or None.

    >>> only_quoted('"convert a.webm"'), only_quoted('"a.webm" and "b.webm"')
    ('convert a.webm', None)
    >>> only_quoted('"convert "my talk.webm" to mp4"')
    'convert "my talk.webm" to mp4'
    """
    if len(text) < 3 or text[0] not in "\"'" or text[-1] != text[0]:
        return None
    inner = text[1:-1]
    at = inner.find(text[0])
    if at < 0 or (at > 0 and inner[at - 1].isspace()) or inner[at - 1 : at] == "\\":
        return inner  # there is no other mark in it, or the next one opens a name
    return (
        inner
        if text[0] == "'" and _is_apostrophe(inner, at) and only_quoted(f"'{inner[at + 1 :]}'")
        else None
    )


def _urls(text: str) -> Iterator[RequestPart]:
    for match in _URL.finditer(text):
        found = match.group()
        for _ in range(_MOST_TRIMMED):
            if found[-1] not in _URL_TRAILING and not _ends_open(found):
                break
            found = found[:-1]
        yield RequestPart(found, match.start(), match.start() + len(found), "url")


def _quoted(text: str, masked: str) -> Iterator[RequestPart]:
    """Yield quoted text. For marks that hold no name, such as one without its partner, yield the mark, with a doubt."""
    at = 0
    while at < len(masked):
        closers = _CLOSERS.get(masked[at])
        opens = closers is not None and (at == 0 or _BEFORE_QUOTE.match(masked[at - 1]) is not None)
        if not opens or closers is None or at + 1 >= len(masked) or masked[at + 1].isspace():
            at += 1
            continue
        end = _closing(masked, at, closers)
        if end is None:
            doubt = f"The quotation mark {masked[at]} is not closed."
            yield RequestPart(masked[at], at, at + 1, "text", doubt)
            at += 1
            continue
        inside, content = masked[at + 1 : end], text[at + 1 : end]
        name = content.replace(f"\\{masked[end]}", masked[end])
        if MASK not in inside:
            doubt = ""
            if re.match(r"[\w/\\~-]|\.\w", masked[end + 1 : end + 3]):
                doubt = f"It is not clear where the name “{shorten(content, 80)}” ends."
            yield RequestPart(name, at, end + 1, "file" if is_file_name(name) else "text", doubt)
        elif inside.strip(MASK):  # else it is an address
            yield RequestPart(masked[at], at, at + 1, "text", "A quoted text holds an address.")
        at = end + 1


def _closing(masked: str, start: int, closers: str) -> int | None:
    """Return the place of the mark that closes a quotation: the first one after a name of a file, or the first one."""
    first, tried = None, 0
    for at in range(start + 2, min(len(masked), start + _LONGEST_QUOTED)):
        if masked[at] in "\n\r":
            break
        if masked[at] not in closers or masked[at - 1] == "\\" or _is_apostrophe(masked, at):
            continue
        if masked[start] not in _APOSTROPHES or is_file_name(masked[start + 1 : at]):
            return at
        first, tried = at if first is None else first, tried + 1
        if tried == _MOST_APOSTROPHES:
            break
    return first


def _is_apostrophe(text: str, at: int) -> bool:
    """Return whether a mark is between two letters."""
    inside = 0 < at < len(text) - 1
    return text[at] in _APOSTROPHES and inside and text[at - 1].isalnum() and text[at + 1].isalnum()


def _as_found(part: RequestPart, find_file: FindFile) -> RequestPart:
    """Return a quoted part with its kind and spelling as the disk has it."""
    found = None if part.doubt else find_file(part.text)
    return part if found is None else RequestPart(found, part.start, part.end, part.kind)


@dataclass(frozen=True)
class _Word:
    """A token between spaces, without the punctuation around it."""

    start: int
    end: int
    core_start: int
    core_end: int


class _Names:
    """Names of files without quotation marks."""

    def __init__(
        self, text: str, masked: str, find_file: FindFile | None, may_precede: Callable[[str], bool]
    ) -> None:
        self._text, self._masked, self._may_precede = text, masked, may_precede
        self._find_file, self._lookups = find_file, 0

    def parts(self) -> Iterator[RequestPart]:
        """Yield the names."""
        words = [_word(self._text, each.start(), each.end()) for each in _TOKEN.finditer(self._masked)]
        free = 0  # the first word that no name has
        for at, word in enumerate(words):
            for start, end in self._pieces(word):
                name = self._text[start:end]
                if not is_file_name(name):
                    continue
                before = self._words_before(words, free, at) if start == word.core_start else []
                yield self._part(before, start, end)
                free = at + 1

    def _pieces(self, word: _Word) -> list[tuple[int, int]]:
        """Return the name in a word, or the names, if it lists several with commas."""
        whole = (word.core_start, word.core_end)
        name = self._text[slice(*whole)]
        if not re.search("[,;]", name) or self._find(name) is not None:
            return [whole]
        pieces = [(whole[0] + each.start(), whole[0] + each.end()) for each in re.finditer("[^,;]+", name)]
        return pieces if all(is_file_name(self._text[slice(*each)]) for each in pieces) else [whole]

    def _words_before(self, words: Sequence[_Word], free: int, at: int) -> list[_Word]:
        """Return the words that could belong to the name that ends with the word `at`, the nearest first."""
        found: list[_Word] = []
        for place in range(at - 1, max(free, at - _MOST_WORDS) - 1, -1):
            between = self._masked[words[place].end : words[place + 1].start]
            if "\n" in between or MASK in between:
                break
            found.append(words[place])
        return found

    def _part(self, before: Sequence[_Word], start: int, end: int) -> RequestPart:
        core = self._text[start:end]
        name = core.replace("\\ ", " ")
        longer = [
            (word, found)
            for word in before
            if (found := self._find(self._text[word.core_start : end].replace("\\ ", " "))) is not None
            or (found := self._find(self._text[word.start : end].replace("\\ ", " "))) is not None
        ]
        alone = self._find(name)
        if _STRAY.search(core) is not None:
            return RequestPart(
                name, start, end, "file", f"A quotation mark in “{shorten(core, 80)}” has no partner."
            )
        if longer:
            word, found = longer[-1]
            extra = before[: before.index(word) + 1]
            unsure = alone is not None or len(longer) > 1
            said = self._text[word.start : end]
            doubt = ""
            if unsure and all(self._is_loose(each) for each in extra):
                doubt = f"“{shorten(said, 80)}” and {name} both are files."
            return RequestPart(found, word.start, end, "file", _ask_for_quotes(doubt))
        if before and not self._ends_before(before):
            said = self._text[before[0].start : end]
            doubt = _ask_for_quotes(f"“{shorten(said, 80)}” may be one name.")
            return RequestPart(name, start, end, "file", doubt)
        return RequestPart(alone or name, start, end)

    def _ends_before(self, before: Sequence[_Word]) -> bool:
        """Return whether the words in front of a name are certainly not part of it."""
        first, *rest = [self._plain(word) for word in before]
        if first in _JOINS and rest and rest[0] in _ARTICLES:
            return False  # "a and b.csv"
        if _BEFORE_NAME.search(self._text[before[0].start : before[0].end]):
            return first not in _ARTICLES
        return first in _NO_NAME or (_POSSESSIVES.fullmatch(first) is None and self._may_precede(first))

    def _is_loose(self, word: _Word) -> bool:
        plain = self._plain(word)
        return _POSSESSIVES.fullmatch(plain) is not None or self._may_precede(plain)

    def _plain(self, word: _Word) -> str:
        return self._text[word.core_start : word.core_end].casefold()

    def _find(self, name: str) -> str | None:
        self._lookups += 1
        return None if self._find_file is None or self._lookups > _MOST_LOOKUPS else self._find_file(name)


def _ends_open(text: str) -> bool:
    """Return whether a text ends with a bracket that it does not open."""
    return any(
        text.endswith(close) and text.count(close) > text.count(begin) for begin, close in _PAIRS.items()
    )


def _ask_for_quotes(doubt: str) -> str:
    return f"{doubt} Put the name in quotation marks." if doubt else ""


def _word(text: str, start: int, end: int) -> _Word:
    """Return a token without the brackets around it and the punctuation after it."""
    core_start, core_end = start, end
    for _ in range(_MOST_TRIMMED):
        core = text[core_start:core_end]
        if not core:
            break
        if core[-1] in _TRAILING or _ends_open(core):
            core_end -= 1
        elif any(core.startswith(o) and core.count(o) > core.count(close) for o, close in _PAIRS.items()):
            core_start += 1
        elif len(core) > 2 and _PAIRS.get(core[0]) == core[-1]:
            core_start, core_end = core_start + 1, core_end - 1
        else:
            break
    return _Word(start, end, core_start, core_end)
