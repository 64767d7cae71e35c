"""The code in docs/extending.md, taken from the package that tests run: ``python tests/docs/example_code.py --write``.

A comment before a block names what stands in it, as ``<!-- code: __init__.py Observatory.start why_hidden -->``; a file
without names stands there whole.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import reyn_jupyter

PAGE = Path(reyn_jupyter.__file__).parent / "docs" / "extending.md"
PROJECT = Path(__file__).parents[1] / "support" / "observatory"
BLOCK = re.compile(r"^<!-- code: (\S+)(.*?) -->\n\n```(\w+)\n.*?^```$", re.MULTILINE | re.DOTALL)


def parse_code(source: str) -> ast.Module:
    """Return the tree of Python code.

    CPython before 3.11.9 counts the levels of all threads in one place (its issue 106905), so that a parse beside
    another one, which reading a signature is too, may raise SystemError. It is made again.
    """
    for _ in range(10):
        try:
            return ast.parse(source)
        except SystemError:
            continue
    return ast.parse(source)


def with_code(page: str) -> str:
    """Return the page with the code as it is now in its blocks. Raises KeyError for a name that is not there."""

    def block(found: re.Match[str]) -> str:
        file, names, language = found.groups()
        code = code_of((PROJECT / file).read_text(encoding="utf-8"), names.split())
        return f"<!-- code: {file}{names} -->\n\n```{language}\n{code}\n```"

    return BLOCK.sub(block, page)


def code_of(source: str, names: list[str]) -> str:
    """Return the definitions of these names, methods below the line of their class; the whole source for none."""
    if not names:
        return source.strip()
    lines, there = source.splitlines(), dict(definitions(parse_code(source)))
    code, last = "", ""
    for name in names:
        begin, end = there[name]
        owner = name.rpartition(".")[0]
        if owner and owner != last.rpartition(".")[0]:
            code += ("\n\n\n" if code else "") + f"class {owner}:\n"
        elif code:
            constants = name.isupper() and last.isupper()
            code += "\n" * (1 if constants else 2 if owner or last == "imports" else 3)
        code += "\n".join(lines[begin - 1 : end])
        last = name
    return code


def definitions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each function, method, class and constant, and the ``imports``, with their first and last lines."""
    imports = [node for node in getattr(tree, "body", ()) if isinstance(node, ast.Import | ast.ImportFrom)]
    if imports and not within:
        yield "imports", (imports[0].lineno, imports[-1].end_lineno or imports[-1].lineno)
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            yield within + node.name, (first, node.end_lineno or first)
            if isinstance(node, ast.ClassDef):
                yield from definitions(node, f"{node.name}.")
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield within + node.targets[0].id, (node.lineno, node.end_lineno or node.lineno)


if __name__ == "__main__":
    text = with_code(PAGE.read_text(encoding="utf-8"))
    if "--write" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)
