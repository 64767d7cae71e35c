"""How well a tool's code is made: six scores with their weights, what is amiss, what would make it better.

Invariants: nothing of the code is run; the same code and description give the same scores. Complexity and
maintainability of Python are radon's; of TypeScript the same decisions are counted on its syntax tree.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.dynamic.analysis.python_syntax import parse_python
from reyn_jupyter.dynamic.analysis.safety import SafetyAnalysis, analyze_safety
from reyn_jupyter.dynamic.analysis.safety_rules import PENALTIES
from reyn_jupyter.dynamic.analysis.typescript_syntax import parse_typescript
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from tree_sitter import Node

LONG_LINE = 110  # characters
LONG_FUNCTION = 50  # lines
DEEP = 4  # levels of statements within each other
WEIGHTS = {
    "readability": 0.20,
    "error_handling": 0.20,
    "documentation": 0.15,
    "testability": 0.15,
    "performance": 0.15,
    "security_awareness": 0.15,
}
_COMPLEXITY = ((5, 1.0), (10, 0.85), (20, 0.6))  # decisions of the worst function, and the score up to there
_MAINTAINABLE = 65.0  # of radon's index from 0 to 100, from which on code is easy to read
_RISKY = frozenset({"int", "float", "open", "loads", "load", "fromisoformat", "strptime", "urlopen", "parse"})
_RISKY_TYPESCRIPT = re.compile(r"(?:JSON\.parse|fetch|Deno\.(?:open|read\w*|write\w*)|BigInt)$")
_CHANGING = frozenset({"random", "time", "uuid", "secrets", "datetime"})


@dataclass(frozen=True)
class CategoryScores:
    """The six scores, each from 0 to 1."""

    readability: float
    error_handling: float
    documentation: float
    testability: float
    performance: float
    security_awareness: float


@dataclass(frozen=True)
class QualityIssue:
    """What is amiss.

    Attributes:
        category: the score that it lowers.
        description: what, as a sentence.
        line: where, from 1; None where the whole is meant.
        penalty: by how much.
        improvement: what to do.
    """

    category: str
    description: str
    line: int | None
    penalty: float
    improvement: str


@dataclass(frozen=True)
class QualityAssessment:
    """How well a tool is made.

    Attributes:
        score: the six scores by their weights, from 0 to 1.
        category_scores: each of them.
        issues: what lowered them, the worst first.
        improvements: what to do, without repeats.
        confidence: how much was measured: 0.9 for Python, 0.7 for TypeScript, less for code of a line or two.
    """

    score: float
    category_scores: CategoryScores
    issues: tuple[QualityIssue, ...]
    improvements: tuple[str, ...]
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


@dataclass
class _Facts:
    """What is counted in code, in either language."""

    complexity: int = 1
    complex_line: int = 1
    maintainability: float = 100.0
    function_lines: int = 0
    function_line: int = 1
    depth: int = 0
    loop_depth: int = 0
    has_words: bool = False  # a docstring, or a comment
    has_types: bool = False
    has_return: bool = False
    unprotected: int | None = None  # line of something that may fail, outside of a try
    bare: int | None = None  # line of a handler of everything
    swallowed: int | None = None  # line of a handler that does nothing
    shared: int | None = None  # line of a global declaration
    changing: int | None = None  # line of what gives something else at each run
    text_in_loop: int | None = None  # line of a text that grows in a loop
    short_names: float = 0.0  # share of names of one letter


def assess_quality(
    code: str,
    *,
    description: str,
    parameters: Mapping[str, Any] | Sequence[Any] | None = None,
    mode: Literal["python", "typescript"] = "python",
) -> QualityAssessment:
    """Return how well a tool's code is made.

    Args:
        code: of the tool.
        description: of the tool.
        parameters: its definitions, by name or as a list, each with a `description`; None where it declares none.
        mode: its language.

    Raises:
        ToolCodeError: as `analyze_safety`.

    >>> code = "def execute(params):\\n    return params['text'][::-1]"
    >>> made = assess_quality(code, description="Turn a text around")
    >>> made.score > 0.8, made.category_scores.performance
    (True, 1.0)
    """
    safety = analyze_safety(code, mode=mode)
    facts = _typescript_facts(code) if mode == "typescript" else _python_facts(code)
    issues = sorted(
        (
            *_readability(code, facts),
            *_error_handling(facts),
            *_documentation(facts, description, parameters),
            *_testability(facts),
            *_performance(facts, safety),
            *_security(safety),
        ),
        key=lambda each: (-each.penalty, each.line or 0),
    )
    lost = dict.fromkeys(WEIGHTS, 0.0)
    for each in issues:
        lost[each.category] += each.penalty
    scores = CategoryScores(**{name: round(max(0.0, 1 - lost[name]), 3) for name in WEIGHTS})
    score = sum(getattr(scores, each.name) * WEIGHTS[each.name] for each in fields(scores))
    confidence = 0.7 if mode == "typescript" else 0.9
    if len(code.strip().splitlines()) < 3:
        confidence -= 0.2
    improvements = tuple(dict.fromkeys(each.improvement for each in issues))
    return QualityAssessment(round(score, 4), scores, tuple(issues), improvements, round(confidence, 2))


def _readability(code: str, facts: _Facts) -> Iterator[QualityIssue]:
    if facts.maintainability < _MAINTAINABLE:
        penalty = round(min(0.6, (_MAINTAINABLE - facts.maintainability) / _MAINTAINABLE), 3)
        yield QualityIssue(
            "readability",
            f"its maintainability index is {facts.maintainability:.0f} of 100",
            None,
            penalty,
            "Cut it into smaller functions, and say less in one line.",
        )
    long = [number for number, line in enumerate(code.splitlines(), 1) if len(line) > LONG_LINE]
    if long:
        yield QualityIssue(
            "readability",
            f"{count(len(long), 'line')} of more than {LONG_LINE} characters",
            long[0],
            0.1,
            f"Break lines at {LONG_LINE} characters.",
        )
    if facts.function_lines > LONG_FUNCTION:
        yield QualityIssue(
            "readability",
            f"a function of {facts.function_lines} lines",
            facts.function_line,
            0.2,
            "Cut long functions into parts that say what they do.",
        )
    if facts.depth > DEEP:
        yield QualityIssue(
            "readability",
            f"statements lie {facts.depth} deep",
            facts.function_line,
            0.2,
            "Return early, or move inner loops into functions of their own.",
        )
    if facts.short_names > 0.5:
        yield QualityIssue(
            "readability",
            "most names have one letter",
            None,
            0.1,
            "Give things names that say what they are.",
        )


def _error_handling(facts: _Facts) -> Iterator[QualityIssue]:
    if facts.unprotected is not None:
        yield QualityIssue(
            "error_handling",
            "something that may fail is called without a handler",
            facts.unprotected,
            0.3,
            'Handle what may fail, and return {"error": …} that says what was wrong.',
        )
    if facts.bare is not None:
        yield QualityIssue(
            "error_handling",
            "a handler takes every error",
            facts.bare,
            0.25,
            "Name the errors that a handler is for.",
        )
    if facts.swallowed is not None:
        yield QualityIssue(
            "error_handling",
            "a handler says nothing of the error",
            facts.swallowed,
            0.25,
            "Say in the result what went wrong.",
        )


def _documentation(
    facts: _Facts, description: str, parameters: Mapping[str, Any] | Sequence[Any] | None
) -> Iterator[QualityIssue]:
    if len(description.split()) < 3 and len(description.strip()) < 12:
        yield QualityIssue(
            "documentation",
            "the description says hardly anything",
            None,
            0.4,
            "Describe in a sentence what the tool does, and what it gives.",
        )
    if not facts.has_words:
        yield QualityIssue(
            "documentation",
            "the code has neither docstring nor comment",
            1,
            0.2,
            "Begin execute with a docstring.",
        )
    if parameters is None:
        yield QualityIssue(
            "documentation",
            "no parameters are declared",
            None,
            0.2,
            "Declare the parameters, each with a description.",
        )
        return
    defined = list(parameters.values()) if isinstance(parameters, Mapping) else list(parameters)
    silent = [each for each in defined if not _description_of(each)]
    if silent:
        yield QualityIssue(
            "documentation",
            f"{count(len(silent), 'parameter')} without a description",
            None,
            round(0.4 * len(silent) / len(defined), 3),
            "Describe each parameter.",
        )


def _description_of(parameter: Any) -> str:
    given = (
        parameter.get("description")
        if isinstance(parameter, Mapping)
        else getattr(parameter, "description", "")
    )
    return str(given or "").strip()


def _testability(facts: _Facts) -> Iterator[QualityIssue]:
    score = next((score for most, score in _COMPLEXITY if facts.complexity <= most), 0.3)
    if score < 1:
        yield QualityIssue(
            "testability",
            f"a function has {facts.complexity} ways through it",
            facts.complex_line,
            round(1 - score, 3),
            "Cut functions with many branches into several.",
        )
    if facts.shared is not None:
        yield QualityIssue(
            "testability",
            "a function changes what others share",
            facts.shared,
            0.2,
            "Hand values over as arguments and results.",
        )
    if facts.changing is not None:
        yield QualityIssue(
            "testability",
            "the result depends on the time or on chance",
            facts.changing,
            0.15,
            "Take the time, or a seed, as a parameter.",
        )
    if not facts.has_return:
        yield QualityIssue("testability", "execute returns nothing", 1, 0.3, "Return the result.")


def _performance(facts: _Facts, safety: SafetyAnalysis) -> Iterator[QualityIssue]:
    if facts.loop_depth > 1:
        yield QualityIssue(
            "performance",
            f"loops lie {facts.loop_depth} deep",
            facts.function_line,
            0.1 if facts.loop_depth == 2 else 0.3,
            "Look things up in a dictionary or a set, not in an inner loop.",
        )
    if facts.text_in_loop is not None:
        yield QualityIssue(
            "performance",
            "a text grows in a loop",
            facts.text_in_loop,
            0.1,
            "Collect the parts, and join them at the end.",
        )
    for kind, penalty in (("endless_loop", 0.4), ("huge_work", 0.3), ("regex_backtracking", 0.3)):
        issue = next((each for each in safety.issues if each.type == kind), None)
        if issue is not None:
            yield QualityIssue("performance", issue.description, issue.line, penalty, issue.suggestion)


def _security(safety: SafetyAnalysis) -> Iterator[QualityIssue]:
    if safety.score < 1:
        worst = max(safety.issues, key=lambda each: PENALTIES[each.severity])
        yield QualityIssue(
            "security_awareness",
            f"its safety score is {safety.score:.2f}: {worst.description}",
            worst.line,
            round(1 - safety.score, 3),
            worst.suggestion,
        )


# -- Python ----------------------------------------------------------------------------------------------


def _python_facts(code: str) -> _Facts:
    tree = parse_python(code)
    facts = _Facts(has_words="#" in code)
    _measure(tree, code, facts)
    pending: list[tuple[ast.AST, int, int, bool]] = [
        (tree, 0, 0, False)
    ]  # node, depth, loops around it, in a try
    names: list[str] = []
    while pending:
        node, depth, loops, protected = pending.pop()
        _count_node(node, facts, loops, protected)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            depth = loops = 0
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.comprehension)):
            loops += 1
        if isinstance(
            node, (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match)
        ):
            depth += 1
        facts.depth, facts.loop_depth = max(facts.depth, depth), max(facts.loop_depth, loops)
        if isinstance(node, ast.Try):
            pending += [(each, depth, loops, True) for each in node.body]
            rest = [*node.handlers, *node.orelse, *node.finalbody]
            pending += [(each, depth, loops, protected) for each in rest]
            continue
        if isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            pending.append((node.orelse[0], depth - 1, loops, protected))  # elif lies no deeper
            inner = [node.test, *node.body]
        else:
            inner = list(ast.iter_child_nodes(node))
        pending += [(each, depth, loops, protected) for each in inner]
    facts.short_names = (
        sum(len(name) == 1 and name != "_" for name in names) / len(names) if len(names) > 5 else 0.0
    )
    return facts


def _measure(tree: ast.Module, code: str, facts: _Facts) -> None:
    """Take complexity and maintainability from radon; what is too deep for it counts as complex."""
    from radon.complexity import cc_visit_ast
    from radon.metrics import mi_visit

    try:
        for block in cc_visit_ast(tree):
            if block.complexity > facts.complexity:
                facts.complexity, facts.complex_line = block.complexity, block.lineno
        facts.maintainability = float(mi_visit(code, multi=True))
    except RecursionError:
        facts.complexity, facts.maintainability = 100, 0.0


def _count_node(node: ast.AST, facts: _Facts, loops: int, protected: bool) -> None:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > facts.function_lines:
                facts.function_lines, facts.function_line = lines, node.lineno
            facts.has_words = facts.has_words or ast.get_docstring(node, clean=False) is not None
            facts.has_types = facts.has_types or node.returns is not None
        case ast.Return(value=value) if value is not None:
            facts.has_return = True
        case ast.Lambda():
            facts.has_return = True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _RISKY and not protected:
            facts.unprotected = facts.unprotected or (node.lineno if node.args else None)
        case _:
            _count_rest(node, facts, loops)


def _count_rest(node: ast.AST, facts: _Facts, loops: int) -> None:
    match node:
        case ast.ExceptHandler():
            if node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "BaseException"):
                facts.bare = facts.bare or node.lineno
            if all(isinstance(each, ast.Pass) for each in node.body):
                facts.swallowed = facts.swallowed or node.lineno
        case ast.Global():
            facts.shared = facts.shared or node.lineno
        case ast.Import(names=names):
            if any(each.name in _CHANGING - {"datetime"} for each in names):
                facts.changing = facts.changing or node.lineno
        case ast.ImportFrom(module=module) if module in _CHANGING - {"datetime"}:
            facts.changing = facts.changing or node.lineno
        case ast.Attribute(attr="now" | "utcnow" | "today"):
            facts.changing = facts.changing or node.lineno
        case ast.AugAssign(op=ast.Add(), value=ast.JoinedStr() | ast.Constant(value=str())) if loops:
            facts.text_in_loop = facts.text_in_loop or node.lineno


# -- TypeScript ------------------------------------------------------------------------------------------

_DECISIONS = frozenset({
    "if_statement", "for_statement", "for_in_statement", "while_statement", "do_statement", "switch_case",
    "catch_clause", "ternary_expression",
})  # fmt: skip
_LOOPS = frozenset({"for_statement", "for_in_statement", "while_statement", "do_statement"})
_LEVELS = frozenset({*_LOOPS, "if_statement", "switch_statement", "try_statement"})
_FUNCTIONS = frozenset({"function_declaration", "function_expression", "arrow_function", "method_definition"})
_VOLUME = 12.0  # points that the index loses for each doubling of the lines, near what radon's does


def _typescript_facts(code: str) -> _Facts:
    root = parse_typescript(code).root_node
    facts = _Facts()
    complexities: dict[int, int] = {}
    lines_of: dict[int, int] = {}
    pending: list[tuple[Node, int, int, bool, int]] = [(root, 0, 0, False, root.id)]
    while pending:
        node, depth, loops, protected, function = pending.pop()
        kind, line = node.type, node.start_point.row + 1
        if kind in _FUNCTIONS:
            depth = loops = 0
            function = node.id
            lines = node.end_point.row - node.start_point.row + 1
            if lines > facts.function_lines:
                facts.function_lines, facts.function_line = lines, line
            lines_of[function] = line
            body = node.child_by_field_name("body")
            facts.has_return = facts.has_return or (body is not None and body.type != "statement_block")
        complexities[function] = complexities.get(function, 1) + (kind in _DECISIONS or _is_choice(node))
        _count_typescript(node, facts, loops, protected)
        loops += kind in _LOOPS
        depth += kind in _LEVELS
        facts.depth, facts.loop_depth = max(facts.depth, depth), max(facts.loop_depth, loops)
        for child in node.named_children:
            inside = protected or (kind == "try_statement" and child.type == "statement_block")
            level = depth - 1 if kind == "else_clause" and child.type == "if_statement" else depth
            pending.append((child, level, loops, inside, function))
    for function, complexity in complexities.items():
        if complexity > facts.complexity:
            facts.complexity, facts.complex_line = complexity, lines_of.get(function, 1)
    doublings = max(0, facts.function_lines // 10).bit_length()
    facts.maintainability = max(0.0, 100 - _VOLUME * doublings - facts.complexity)
    return facts


def _is_choice(node: Node) -> bool:
    if node.type != "binary_expression":
        return False
    operator = node.child_by_field_name("operator")
    return operator is not None and operator.type in ("&&", "||", "??")


def _count_typescript(node: Node, facts: _Facts, loops: int, protected: bool) -> None:
    kind, line = node.type, node.start_point.row + 1
    if kind == "comment":
        facts.has_words = True
    elif kind == "type_annotation":
        facts.has_types = True
    elif kind == "return_statement" and node.named_children:
        facts.has_return = True
    elif kind == "call_expression":
        called = (node.child_by_field_name("function") or node).text or b""
        name = called[:80].decode(errors="replace")
        if not protected and _RISKY_TYPESCRIPT.match(name):
            facts.unprotected = facts.unprotected or line
        if name in ("Math.random", "Date.now", "crypto.randomUUID"):
            facts.changing = facts.changing or line
    elif kind == "catch_clause":
        body = node.child_by_field_name("body")
        if body is not None and not body.named_children:
            facts.swallowed = facts.swallowed or line
    elif kind == "augmented_assignment_expression" and loops:
        right = node.child_by_field_name("right")
        if right is not None and right.type in ("string", "template_string"):
            facts.text_in_loop = facts.text_in_loop or line
