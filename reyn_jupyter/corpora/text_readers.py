"""Readers of what is text already: Markdown by its headings, code by its blocks, notebooks by their cells.

Invariant: a reader is a pure function of a file's text; each section begins at the line, or cell, that it names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from reyn_jupyter.corpora.document import Document, DocumentSection, UnreadableError, headings
from reyn_jupyter.search.metadata import is_fact
from reyn_jupyter.support.files.plain_files import parse_json
from reyn_jupyter.support.front_matter import split_front_matter
from reyn_jupyter.support.python_source import parse_source

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

Reader = Callable[[str], Document]

# A line that begins as a heading does, or stands below one; there is no heading without it.
_MAY_BE_HEADING = re.compile(
    r"(?:^|(?<=\r)) {0,3}(?:#{1,6}[ \t\r]|#{1,6}$|(?:=+|-+)[ \t]*(?:\r|$))", re.MULTILINE
)
_BLOCK = re.compile(
    r"^(?:(?:export|default|public|private|protected|static|abstract|async|pub(?:\([a-z]+\))?|final|open|override)\s+)*"
    r"(?:def|class|func|function|fn|struct|interface|impl|trait|enum|type|module|package|namespace|sub|proc|const|"
    r"create)\b",
    re.IGNORECASE,
)
_WITHOUT_BLOCKS = frozenset({"yaml", "toml", "css"})
_MOST_FACTS = 20  # of one document

MARKDOWN = frozenset({".md", ".markdown", ".mdx", ".qmd", ".rmd", ".mkd"})
CODE = {
    ".py": "python", ".pyi": "python", ".js": "javascript", ".mjs": "javascript", ".jsx": "javascript",
    ".ts": "typescript", ".tsx": "typescript", ".java": "java", ".kt": "kotlin", ".scala": "scala", ".go": "go",
    ".rs": "rust", ".c": "c", ".h": "c", ".cc": "c++", ".cpp": "c++", ".hpp": "c++", ".cs": "c#", ".rb": "ruby",
    ".php": "php", ".swift": "swift", ".r": "r", ".jl": "julia", ".lua": "lua", ".pl": "perl", ".sql": "sql",
    ".sh": "shell", ".bash": "shell", ".zsh": "shell", ".ps1": "powershell", ".css": "css", ".scss": "css",
    ".vue": "vue", ".hs": "haskell", ".ml": "ocaml", ".ex": "elixir", ".erl": "erlang", ".clj": "clojure",
    ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".tf": "terraform", ".proto": "protobuf",
}  # fmt: skip


def read_markdown(text: str) -> Document:
    """Return Markdown by its headings; its front matter becomes facts."""
    facts, skipped = _front_matter(text)
    return Document("markdown", tuple(markdown_sections(text, skipped)), facts)


def markdown_sections(text: str, skipped: int = 0, above: tuple[str, ...] = ()) -> Iterator[DocumentSection]:
    """Yield the sections of Markdown, each from its heading on.

    Args:
        skipped: lines at the beginning that are left out.
        above: the headings that all of it stands under.

    >>> [(each.heading, each.first) for each in markdown_sections("# A\\nx\\n## B\\ny")]
    [(('A',), 1), (('A', 'B'), 3)]
    """
    lines = text.split("\n")
    path: list[tuple[int, str]] = []
    begun = skipped
    for line, level, title in markdown_headings("\n".join(lines[skipped:])):
        at = skipped + line
        yield from _section(lines, begun, at, path, above)
        begun = at
        path = [each for each in path if each[0] < level] + [(level, title)]
    yield from _section(lines, begun, len(lines), path, above)


def markdown_headings(text: str) -> list[tuple[int, int, str]]:
    """Return the headings of Markdown, each with the number of its line from 0 on, its level and its title.

    >>> markdown_headings("# A\\n\\n```\\n# no heading\\n```\\nB\\n-")
    [(0, 1, 'A'), (5, 2, 'B')]
    """
    if not _MAY_BE_HEADING.search(text):  # the parser takes a second for each megabyte
        return []
    tokens = _blocks_parser().parse(text)
    return [
        (token.map[0], int(token.tag[1]), tokens[at + 1].content)
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map is not None
    ]


@cache
def _blocks_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.disable(["inline", "text_join"])  # blocks are all that is asked for
    return parser


def _section(
    lines: list[str], begun: int, end: int, path: list[tuple[int, str]], above: tuple[str, ...]
) -> Iterator[DocumentSection]:
    text = "\n".join(lines[begun:end])
    if text.strip():
        yield DocumentSection(text, headings((*above, *(title for _, title in path))), "line", begun + 1)


def _front_matter(text: str) -> tuple[dict[str, Any], int]:
    """Return what the front matter says that can be a fact, and how many lines it takes."""
    said, body, _ = split_front_matter(text)
    facts: dict[str, Any] = {}
    for key, value in said.items():
        plain = value.isoformat() if hasattr(value, "isoformat") else value
        if is_fact(plain) and len(facts) < _MOST_FACTS:
            facts[key[:60]] = plain
    return facts, text[: len(text) - len(body)].count("\n")


def read_text(text: str) -> Document:
    """Return plain text as one section."""
    return Document("text", (DocumentSection(text),))


def code_reader(language: str) -> Reader:
    """Return what reads code of a language: by functions and classes in Python, by what begins a block elsewhere."""

    def read(text: str) -> Document:
        sections = _python(text) if language == "python" else None
        if language in _WITHOUT_BLOCKS:
            sections = [DocumentSection(text)]
        return Document("code", tuple(sections or _blocks(text)), {"language": language})

    return read


def _python(text: str) -> list[DocumentSection] | None:
    """Return the blocks of a Python module; None where it is none."""
    try:
        tree = parse_source(text)
    except (
        SyntaxError,
        ValueError,
        RecursionError,
        MemoryError,
        SystemError,
    ):  # the last one: CPython's issue 106905
        return None
    lines = text.split("\n")
    starts: list[tuple[int, tuple[str, ...]]] = []
    _starts(tree.body, (), starts)
    found: list[DocumentSection] = []
    if not starts or starts[0][0] > 1:
        starts.insert(0, (1, ()))
    for (first, heading), after in zip(
        starts, [*(each[0] for each in starts[1:]), len(lines) + 1], strict=True
    ):
        piece = "\n".join(lines[first - 1 : after - 1])
        if piece.strip():
            found.append(DocumentSection(piece, headings(heading), "line", first))
    return found


def _starts(body: list[ast.stmt], above: tuple[str, ...], starts: list[tuple[int, tuple[str, ...]]]) -> None:
    """Note where each block begins: a function, a class, its methods, and what stands between them."""
    between = False
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            starts.append((first, (*above, node.name)))
            if isinstance(node, ast.ClassDef) and len(above) < 4:
                _starts(node.body, (*above, node.name), starts)
            between = True
        elif between:
            if node.lineno > starts[-1][0]:
                starts.append((node.lineno, above))
            between = False


def _blocks(text: str) -> Iterator[DocumentSection]:
    """Yield code from one line that begins a block to the next."""
    lines = text.split("\n")
    begun = 0
    heading: tuple[str, ...] = ()
    for at, line in enumerate(lines):
        if not line or line[0].isspace() or not _BLOCK.match(line):
            continue
        # Comments and decorators right above belong to what they are about.
        start = at
        while start > begun and lines[start - 1].startswith(("//", "#", "/*", " *", "--", "@")):
            start -= 1
        piece = "\n".join(lines[begun:start])
        if piece.strip():
            yield DocumentSection(piece, heading, "line", begun + 1)
            begun = start
        heading = headings((line.strip().rstrip("{:(").strip()[:80],))
    piece = "\n".join(lines[begun:])
    if piece.strip():
        yield DocumentSection(piece, heading, "line", begun + 1)


def read_notebook(text: str) -> Document:
    """Return the cells of a notebook, each under the headings before it; outputs are left out.

    Raises:
        UnreadableError: it is no notebook.
    """
    try:
        notebook = parse_json(text, nan=True)
        cells = notebook["cells"]
        if not isinstance(cells, list):
            raise TypeError
    except (ValueError, KeyError, TypeError):
        raise UnreadableError("is no notebook of format 4") from None
    sections: list[DocumentSection] = []
    path: list[tuple[int, str]] = []
    for number, cell in enumerate(cells, 1):
        source = _source(cell)
        if not source.strip():
            continue
        if cell.get("cell_type") == "markdown":
            path = _path_after(source, path)
        heading = headings(tuple(title for _, title in path))
        sections.append(
            DocumentSection(source, heading, "cell", number, {"cell": str(cell.get("cell_type"))[:20]})
        )
    return Document("notebook", tuple(sections))


def _source(cell: Any) -> str:
    if not isinstance(cell, dict):
        return ""
    source = cell.get("source", "")
    if isinstance(source, list):
        return "".join(each for each in source if isinstance(each, str))
    return source if isinstance(source, str) else ""


def _path_after(source: str, path: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the headings in force after a cell of Markdown."""
    for _, level, title in markdown_headings(source):
        path = [each for each in path if each[0] < level] + [(level, title)]
    return path
