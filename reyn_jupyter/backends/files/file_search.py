"""Files by path pattern, and lines by regular expression, over a `FileTree`.

Invariants:

- Answers are exact and bounded (results, characters a line, bytes a block); whatever was left out is counted and said
  together with the argument that changes it. Files are read as bytes: text in an old encoding is searched too, and
  shown with replacement characters.
- RE2 does the matching, in linear time, so no pattern can run away.
- A path pattern (``*`` and ``?`` within one name, ``**`` over folders, ``[abc]``, ``{csv,json}``) is matched against
  the whole path relative to where it starts; one without ``/`` against the file's name alone, in every folder.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from reyn_jupyter.backends.files.file_lines import BLOCK, Check
from reyn_jupyter.backends.files.file_tree import FileTree, printable_name
from reyn_jupyter.backends.files.masked_files import masked_file
from reyn_jupyter.guard.workspace import WorkspaceError
from reyn_jupyter.runtime.action_error import ActionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reyn_jupyter.support.secrets import Redactor


MOST_PATHS = 1000  # paths of one answer
MOST_FILES = 100_000  # files that one search opens


def glob(tree: FileTree, pattern: str, place: str, check: Check) -> dict[str, Any]:
    """The files below a place whose path matches: {paths, total, note?}, relative to the root. Raises ActionError."""
    chosen, start = _glob(pattern, place)
    skipped: set[str] = set()
    files = tree.files(start, skipped, check, chosen.matches, place if start == place else None)
    found = [printable_name(relative) for relative in files]
    notes = [f"The first {MOST_PATHS}: give a narrower pattern or path."] if len(found) > MOST_PATHS else []
    notes += tree.workspace.left_out.notes + _skipped(skipped)
    answer: dict[str, Any] = {"paths": found[:MOST_PATHS], "total": len(found)}
    return {**answer, "note": " ".join(notes)} if notes else answer


@dataclass(frozen=True)
class GrepQuery:
    """A search for lines, and where it looks.

    Args:
        pattern: a regular expression in RE2 syntax.
        path: a file or folder, as its place (see `FileTree.locate`).
        glob: which files, by path below `path`; None for all.
        case_sensitive: whether letter case counts.
        max_results: how many matching lines are shown.
        redactor: covers the secrets of a file before it is searched, so that no guess finds one; None for none.
    """

    pattern: str
    path: str = "."
    glob: str | None = None
    case_sensitive: bool = True
    max_results: int = 100
    redactor: Redactor | None = None


@dataclass
class _Findings:
    lines: list[str] = field(default_factory=list)
    files: int = 0
    binary: int = 0
    cut: int = 0
    more: bool = False

    def add(self, name: str, hits: list[Hit], wanted: int) -> None:
        self.more = len(hits) > wanted
        self.cut += sum(hit.cut for hit in hits[:wanted])
        self.lines += (f"{name}:{hit.line}:{hit.text}" for hit in hits[:wanted])


def grep(tree: FileTree, search: GrepQuery, check: Check) -> str:
    """Matching lines as ``path:line:text``, then what was left out, each in a line that begins with ``──``.

    Raises:
        ActionError: a pattern that is none, or a path that cannot be used.
    """
    try:
        clean = str if search.redactor is None else search.redactor.text
        expression = Pattern(search.pattern, search.case_sensitive, clean)
    except GrepPatternError as error:
        raise ActionError(
            f"{search.pattern[:200]!r} is no regular expression: {error}",
            "RE2 syntax, without look-around and backreferences; to find ( [ { . * + ? put a \\ before them.",
        ) from error
    chosen, start = _glob(search.glob, search.path) if search.glob is not None else (None, search.path)
    skipped: set[str] = set()
    findings = _Findings()
    place = start if start == search.path else None
    for relative in tree.files(start, skipped, check, chosen.matches if chosen is not None else None, place):
        if findings.more or findings.files >= MOST_FILES:
            break
        findings.files += 1
        with suppress(WorkspaceError, OSError), tree.workspace.open_place(relative) as file:
            if b"\0" in file.read(8192):
                findings.binary += 1
                continue
            wanted = search.max_results - len(findings.lines)
            hits = list(islice(_hits(expression, file, search.redactor, check), wanted + 1))
            findings.add(printable_name(relative), hits, wanted)
    notes = _notes(findings) + tree.workspace.left_out.notes + _skipped(skipped)
    return "\n".join(findings.lines + [f"── {note}" for note in notes])


def _hits(expression: Pattern, file: BinaryIO, redactor: Redactor | None, check: Check) -> Iterator[Hit]:
    """Yield the matching lines of an open file; of one with secrets those that match once they are covered."""
    file.seek(0)
    hits = expression.hits(file, check)
    # Most files match nowhere, and are looked at only once.
    first = next(hits, None)
    if first is None:
        return
    if redactor is None:
        yield first
        yield from hits
        return
    yield from expression.hits(masked_file(file, redactor), check)


def _notes(findings: _Findings) -> list[str]:
    notes = []
    if not findings.lines:
        notes.append(f"no match in {findings.files} files")
    if findings.more:
        notes.append(
            f"the first {len(findings.lines)} matches: give a higher max_results, a narrower path or a glob"
        )
    if findings.files >= MOST_FILES:
        notes.append(f"only {MOST_FILES} files were searched: give a narrower path or a glob")
    if findings.cut:
        notes.append(f"{findings.cut} long lines were cut (…): read the file for a whole line")
    if findings.binary:
        notes.append(f"{findings.binary} binary files were left out")
    return notes


def _skipped(names: set[str]) -> list[str]:
    return [f"Not searched: {', '.join(sorted(names))} (name one in path to search it)."] if names else []


def _glob(pattern: str, path: str) -> tuple[Glob, str]:
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ActionError(
            f"the pattern {pattern[:200]!r} leaves the folder",
            "Give a relative pattern such as data/**/*.csv.",
        )
    try:
        chosen = Glob(pattern)
    except GrepPatternError as error:
        raise ActionError(str(error), "Use * ? ** [abc] {csv,json}, e.g. data/**/*.csv.") from error
    return chosen, f"{path}/{chosen.base}" if chosen.base else path


LINE_CHARACTERS = 400  # of a matching line; the rest is cut, around the match
_BEFORE = 100  # characters kept before a match that lies past the cut
_PROGRAM_BYTES = 8 << 20  # what RE2 may spend on one pattern


class GrepPatternError(ValueError):
    """The text is no pattern; the message says why."""


@dataclass(frozen=True)
class Hit:
    """One matching line: its number from 1, its text (clipped), and whether something was cut from it."""

    line: int
    text: str
    cut: bool


class Pattern:
    """A compiled pattern.

    Args:
        pattern: RE2 syntax: like Python's `re` without backreferences and look-around.
        case_sensitive: whether letter case counts.
        clean: applied to a line before it is cut (it takes secrets out, and half a secret is none any more).

    Raises:
        PatternError: with RE2's own reason.
    """

    def __init__(self, pattern: str, case_sensitive: bool = True, clean: Callable[[str], str] = str) -> None:
        import re2

        self._clean = clean

        options = re2.Options()
        options.log_errors = False
        options.max_mem = _PROGRAM_BYTES
        options.case_sensitive = case_sensitive
        try:
            encoded = pattern.encode()
            self._line: Any = re2.compile(encoded, options)
            # A whole block at once tells quickly that no line of it matches, unless the pattern speaks of the
            # text's own edges, which a block has elsewhere than a line.
            edges = re.search(rb"\\[Az]|\(\?[a-zA-Z]*-", encoded)
            self._block: Any = None if edges else re2.compile(b"(?m)" + encoded, options)
        except (re2.error, UnicodeEncodeError) as error:
            reason = error.args[0] if error.args else error
            text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(error)
            raise GrepPatternError(text) from error

    def hits(self, file: BinaryIO, check: Check) -> Iterator[Hit]:
        """The matching lines of a file from where it stands, in order."""
        number, last = 1, 0
        while block := file.read(BLOCK):
            check()
            if not block.endswith(b"\n"):
                block += file.readline(BLOCK)
            plain = block.replace(b"\r\n", b"\n")
            if self._block is None or self._block.search(plain):
                for index, line in enumerate(plain.removesuffix(b"\n").split(b"\n")):
                    found = self._line.search(line)
                    if found and number + index != last:
                        last = number + index
                        yield _hit(last, line, found.start(), self._clean)
            number += block.count(b"\n")


def _hit(number: int, line: bytes, start: int, clean: Callable[[str], str]) -> Hit:
    text = clean(line.decode("utf-8", "replace"))
    if len(text) <= LINE_CHARACTERS:
        return Hit(number, text, False)
    at = len(line[:start].decode("utf-8", "replace"))
    begin = 0 if at < LINE_CHARACTERS - _BEFORE else min(at - _BEFORE, len(text) - LINE_CHARACTERS)
    end = begin + LINE_CHARACTERS
    return Hit(number, f"{'…' * (begin > 0)}{text[begin:end]}{'…' * (end < len(text))}", True)


_PIECE = re.compile(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]|\{[^{}/]*,[^{}/]*\})")
_STARS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_MAGIC = frozenset("*?[{")


class Glob:
    """A compiled pattern.

    >>> glob = Glob("data/**/*.{csv,json}")
    >>> glob.base, glob.matches("2024/orders.csv"), glob.matches("2024/orders.txt")
    ('data', True, False)
    >>> Glob("*.py").matches("deep/down/setup.py")
    True

    Attributes:
        base: the folder that all matches lie in ("" for where the pattern starts); `matches` takes paths
            relative to it.

    Raises:
        PatternError: a character class that cannot be.
    """

    def __init__(self, pattern: str) -> None:
        pattern = pattern.removeprefix("./")
        parts = pattern.split("/")
        plain = 0
        while plain < len(parts) - 1 and not _MAGIC & set(parts[plain]):
            plain += 1
        self.base = "/".join(parts[:plain])
        self._names = "/" not in pattern
        self._expression = _compile("/".join(parts[plain:]))

    def matches(self, path: str) -> bool:
        """Return whether a path relative to `base`, with ``/``, matches."""
        text = path.rpartition("/")[2] if self._names else path
        return self._expression.fullmatch(os.fsencode(text)) is not None


@lru_cache(64)
def _compile(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    try:
        return re2.compile(_translated(pattern).encode(), options)
    except (re2.error, UnicodeEncodeError):
        raise GrepPatternError(f"{pattern!r} is no path pattern") from None


def _translated(pattern: str) -> str:
    return "".join(map(_piece, _PIECE.split(pattern)))


def _piece(piece: str) -> str:
    if piece in _STARS:
        return _STARS[piece]
    if _PIECE.fullmatch(piece) is None:
        return re.escape(piece)
    if piece[0] == "{":
        return "(?:" + "|".join(map(_translated, piece[1:-1].split(","))) + ")"
    inside = re.sub(r"([\\^\[\]])", r"\\\1", piece[1:-1].removeprefix("!"))
    return f"[^/{inside}]" if piece[1] == "!" else f"[{inside}]"
