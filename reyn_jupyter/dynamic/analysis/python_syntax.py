"""The syntax of a tool's code in Python: whether it is one, and questions about its statements.

Invariant: nothing is run, and nothing recurses: hostile code ends in a ToolCodeError.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from reyn_jupyter.dynamic.analysis.safety_rules import (
    ToolCodeError,
)
from reyn_jupyter.support.python_source import compile_source, parse_source

_MAGIC = re.compile(r"\s*(?:%|!|\w+\s*=\s*[%!])|.*\?\s*$")
SKIPPED = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
_fields: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Name: (), ast.Constant: (), ast.Import: (), ast.ImportFrom: (), ast.Global: (), ast.Nonlocal: (), ast.Pass: (),
    ast.Attribute: ("value",), ast.Subscript: ("value", "slice"), ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",), ast.Compare: ("left", "comparators"), ast.BoolOp: ("values",),
    ast.Assign: ("value", "targets"), ast.AnnAssign: ("annotation", "value", "target"),
    ast.AugAssign: ("value", "target"), ast.NamedExpr: ("value", "target"),
    ast.For: ("iter", "target", "body", "orelse"), ast.AsyncFor: ("iter", "target", "body", "orelse"),
}  # fmt: skip


def fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    found = _fields.get(kind)
    if found is None:
        found = _fields[kind] = kind._fields
    return found


def parse_python(code: str) -> ast.Module:
    """Return the syntax tree of a tool's code.

    Raises:
        ToolCodeError: it is no Python, has a magic of IPython, defines no `execute`, or one that cannot be called with
            the parameters alone.

    >>> type(parse_python("def execute(params): return params")).__name__
    'Module'
    """
    try:
        with warnings.catch_warnings():  # about escapes and comparisons: the tool's own business
            warnings.simplefilter("ignore")
            tree = parse_source(code)
            # Finds what only the compiler knows: a return outside of a function, say.
            compile_source(tree, "<tool>")
    except SyntaxError as error:
        line = min(error.lineno or 1, code.count("\n") + 1)
        written = code.splitlines()[line - 1 : line]
        if written and _MAGIC.match(written[0]):
            raise ToolCodeError(
                f"line {line} is a magic of IPython: a tool runs outside of the notebook, as plain Python",
                line,
            ) from None
        raise ToolCodeError(f"line {line} is no Python: {error.msg}", line) from None
    except (RecursionError, MemoryError):
        raise ToolCodeError("the code is nested too deeply to be read; write it with fewer levels") from None
    except ValueError as error:  # a null byte, a number of too many digits
        raise ToolCodeError(f"this is no Python: {error}") from None
    _check_execute(tree)
    return tree


def _check_execute(tree: ast.Module) -> None:
    found = _execute_of(tree.body)
    if found is None:
        raise ToolCodeError("the code defines no function execute(params) at its top level", 1)
    node, function = found
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = len(positional) - len(arguments.defaults)
    keywords = [
        each
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    if needed > 1 or keywords or not (positional or arguments.vararg):
        raise ToolCodeError(
            f"line {node.lineno}: execute takes one argument, the parameters: def execute(params)",
            node.lineno,
        )
    if not isinstance(function, ast.Lambda) and has_node(function.body, (ast.Yield, ast.YieldFrom)):
        raise ToolCodeError(f"line {node.lineno}: execute yields; a tool returns one result", node.lineno)


FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def _execute_of(body: Sequence[ast.stmt]) -> tuple[ast.stmt, FunctionNode] | None:
    """Return the statement that defines `execute`, the last if there are several, and the function."""
    found: tuple[ast.stmt, FunctionNode] | None = None
    pending = list(reversed(body))
    while pending:
        statement = pending.pop()
        match statement:
            case ast.FunctionDef(name="execute") | ast.AsyncFunctionDef(name="execute"):
                found = statement, statement
            case ast.Assign(targets=[ast.Name(id="execute")], value=ast.Lambda() as function):
                found = statement, function
            case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                inner = [
                    *statement.body,
                    *getattr(statement, "orelse", ()),
                    *getattr(statement, "finalbody", ()),
                ]
                pending += reversed(inner)
    return found


LOOPS = (ast.While, ast.For, ast.AsyncFor)
NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def has_node(body: Sequence[ast.AST], kinds: tuple[type[ast.AST], ...], *, loops: bool = True) -> bool:
    """Return whether a body has a node of some kinds, outside of nested functions, branches that are never taken, and,
    unless `loops`, of nested loops."""
    pending = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, kinds):
            return True
        if isinstance(node, (*NESTED, ast.GeneratorExp)):
            continue
        if not loops and isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            pending += node.orelse
            continue
        if isinstance(node, ast.If) and isinstance(node.test, ast.Constant) and not node.test.value:
            pending += node.orelse
            continue
        for field in fields_of(type(node)):
            inner = getattr(node, field, None)
            if isinstance(inner, list):
                pending += [each for each in inner if isinstance(each, ast.AST)]
            elif isinstance(inner, ast.AST) and not isinstance(inner, SKIPPED):
                pending.append(inner)
    return False


def is_always_true(test: ast.AST) -> bool:
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if (
        isinstance(test, ast.UnaryOp)
        and isinstance(test.op, ast.Not)
        and isinstance(test.operand, ast.Constant)
    ):
        return not test.operand.value
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Constant):
        other = test.comparators[0]
        if isinstance(other, ast.Constant) and isinstance(test.ops[0], (ast.Eq, ast.Is)):
            return bool(test.left.value == other.value)
    if isinstance(test, (ast.List, ast.Tuple, ast.Set)):
        return bool(test.elts)
    if isinstance(test, ast.Dict):
        return bool(test.keys)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(isinstance(each, ast.Constant) and bool(each.value) for each in test.values)
    return isinstance(test, ast.Lambda)


def never_changes(node: Any) -> bool:
    """Return whether a loop looks at names alone that its body, which calls nothing, never binds."""
    names: set[str] = set()
    for each in ast.walk(node.test):
        if isinstance(each, ast.Name):
            names.add(each.id)
        elif not isinstance(each, (ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, *SKIPPED)):
            return False
    if not names:
        return False
    for statement in node.body:
        for each in ast.walk(statement):
            if isinstance(each, (ast.Call, ast.Await, ast.Subscript, ast.Attribute)):
                return False
            if isinstance(each, ast.Name) and type(each.ctx) is not ast.Load and each.id in names:
                return False
    return True


# -- after the passes ------------------------------------------------------------------------------------


def declarations(body: Sequence[ast.stmt]) -> Iterator[ast.Global | ast.Nonlocal]:
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            yield node
        elif isinstance(node, ast.stmt) and not isinstance(node, NESTED):
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                pending += getattr(node, field, ())
        elif isinstance(node, (ast.ExceptHandler, ast.match_case)):
            pending += node.body
