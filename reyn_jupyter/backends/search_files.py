"""Files by path pattern, and lines by regular expression, over a `Tree`.

Invariant: the answers are exact and bounded, and whatever was left out (further matches, long lines, binary
files, folders of copies and caches) is said together with the argument that changes it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.globs import Glob
from reyn_jupyter.backends.grep import Hit, Pattern, PatternError
from reyn_jupyter.backends.tree import Tree, shown
from reyn_jupyter.guard.workspace import WorkspaceError
from reyn_jupyter.runtime.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from reyn_jupyter.backends.lines import Check

MOST_PATHS = 1000  # paths of one answer
MOST_FILES = 100_000  # files that one search opens


def glob(tree: Tree, pattern: str, path: str, check: Check) -> dict[str, Any]:
    """The files whose path matches: {paths, total, note?}, relative to the root. Raises ActionError."""
    chosen, start = _glob(pattern, path)
    skipped: set[str] = set()
    found = [
        shown(relative) for relative, below in tree.files(start, skipped, check) if chosen.matches(below)
    ]
    notes = [f"The first {MOST_PATHS}: give a narrower pattern or path."] if len(found) > MOST_PATHS else []
    notes += _skipped(skipped)
    answer: dict[str, Any] = {"paths": found[:MOST_PATHS], "total": len(found)}
    return {**answer, "note": " ".join(notes)} if notes else answer


@dataclass(frozen=True)
class Grep:
    """What to search for, and where.

    Args:
        pattern: a regular expression in RE2 syntax.
        path: a file or folder.
        glob: which files, by path below `path`; None for all.
        case_sensitive: whether letter case counts.
        max_results: how many matching lines are shown.
        clean: takes secrets out of a line before it is cut: half a secret is not recognised any more.
    """

    pattern: str
    path: str = "."
    glob: str | None = None
    case_sensitive: bool = True
    max_results: int = 100
    clean: Callable[[str], str] = str


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


def grep(tree: Tree, search: Grep, check: Check) -> str:
    """Matching lines as ``path:line:text``, then what was left out, each in a line that begins with ``──``.

    Raises:
        ActionError: a pattern that is none, or a path that cannot be used.
    """
    try:
        expression = Pattern(search.pattern, search.case_sensitive, search.clean)
    except PatternError as error:
        raise ActionError(
            f"{search.pattern[:200]!r} is no regular expression: {error}",
            "RE2 syntax, without look-around and backreferences; to find ( [ { . * + ? put a \\ before them.",
        ) from error
    chosen, start = _glob(search.glob, search.path) if search.glob is not None else (None, search.path)
    skipped: set[str] = set()
    findings = _Findings()
    for relative, below in tree.files(start, skipped, check):
        if chosen is not None and not chosen.matches(below):
            continue
        if findings.more or findings.files >= MOST_FILES:
            break
        findings.files += 1
        with suppress(WorkspaceError, OSError), tree.workspace.open_read(relative) as file:
            if b"\0" in file.read(8192):
                findings.binary += 1
                continue
            file.seek(0)
            wanted = search.max_results - len(findings.lines)
            findings.add(shown(relative), list(islice(expression.hits(file, check), wanted + 1)), wanted)
    return "\n".join(findings.lines + [f"── {note}" for note in _notes(findings, skipped)])


def _notes(findings: _Findings, skipped: set[str]) -> list[str]:
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
    return notes + _skipped(skipped)


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
    except PatternError as error:
        raise ActionError(str(error), "Use * ? ** [abc] {csv,json}, e.g. data/**/*.csv.") from error
    return chosen, f"{path}/{chosen.base}" if chosen.base else path
