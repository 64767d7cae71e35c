"""Each package stays within its budget of lines of code, which pyproject.toml lists.

A line of code is neither blank nor a comment nor part of a docstring: documentation costs nothing. Raising a number
needs a commit that says what it buys. `python -m tests.test_size_budget` prints the numbers of today.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "reyn_jupyter"


def docstring_of(node: ast.AST) -> ast.Constant | None:
    """Return the docstring of a module, a class, or a function."""
    if (
        not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        or not node.body
    ):
        return None
    first = node.body[0]
    value = first.value if isinstance(first, ast.Expr) else None
    return value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def lines_of(node: ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def lines_of_code(source: str) -> int:
    """Count the lines of a module that are neither blank nor a comment nor part of a docstring."""
    docstrings: set[int] = set()
    texts: set[int] = set()  # a blank line or a "#" inside a long string is code
    for node in ast.walk(ast.parse(source)):
        if docstring := docstring_of(node):
            docstrings.update(lines_of(docstring))
        elif isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
        ):
            texts.update(lines_of(node))
    lines = enumerate(source.splitlines(), start=1)
    code = {number for number, line in lines if line.strip() and not line.lstrip().startswith("#")}
    return len((code | texts) - docstrings)


def modules() -> Iterator[tuple[str, Path]]:
    """Yield each module with the name of its budget: its package, `top level`, or `tests`."""
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).parts
        yield parts[0] if len(parts) > 1 else "top level", path
    for path in (ROOT / "tests").rglob("*.py"):
        yield "tests", path


def sizes() -> dict[str, int]:
    """Return the lines of code by budget; `all` is the whole package `reyn_jupyter`."""
    counts: Counter[str] = Counter()
    for name, path in modules():
        lines = lines_of_code(path.read_text(encoding="utf-8"))
        counts[name] += lines
        counts["all"] += lines if name != "tests" else 0
    return dict(counts)


def test_a_line_of_code_is_neither_blank_nor_comment_nor_docstring() -> None:
    source = '"""Title.\n\nMore."""\n# note\n\nX = """a\n\n# b\n"""\n\n\ndef f():\n    """Do."""\n    return X  #\n'
    assert lines_of_code(source) == 6  # four lines of X, two of f


def test_every_package_is_within_its_budget() -> None:
    budgets = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["size-budget"]
    found = {name: lines for name, lines in sizes().items() if lines}
    assert sorted(found) == sorted(budgets)
    above = {
        name: f"{lines} lines, budget {budgets[name]}"
        for name, lines in found.items()
        if lines > budgets[name]
    }
    assert not above, (
        "Make these packages smaller, or raise the budget in pyproject.toml and say what it buys."
    )


if __name__ == "__main__":
    for name, lines in sorted(sizes().items(), key=lambda item: -item[1]):
        print(f'"{name}" = {lines}')
