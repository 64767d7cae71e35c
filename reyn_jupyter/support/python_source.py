"""Parse and compile Python text of models, files and users.

Invariant: no file is opened. CPython quotes the wrong line in a SyntaxError from the file that the code is said to be
from, in the working folder: from "<unknown>" for `ast.parse`. A cloned folder can hold a link or a pipe of that name.
"""

from __future__ import annotations

import ast
from types import CodeType

_NO_FILE = ""  # the only name that no file can have


def parse_source(source: str) -> ast.Module:
    """Return the syntax tree of Python code.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError, SystemError: as `ast.parse` does.

    >>> len(parse_source("a = 1\\nb = 2").body)
    2
    """
    return ast.parse(source, _NO_FILE)


def compile_source(tree: ast.Module | ast.Expression, name: str) -> CodeType:
    """Return the code of a syntax tree, a single expression's for `eval`.

    Args:
        name: what tracebacks call the code.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `compile` does.

    >>> compile_source(parse_source("a = 1"), "<example>").co_filename
    '<example>'
    """
    mode = "eval" if isinstance(tree, ast.Expression) else "exec"
    compile(tree, _NO_FILE, mode, dont_inherit=True)  # raises each SyntaxError, so the next line raises none
    code: CodeType = compile(tree, name, mode, dont_inherit=True)
    return code
