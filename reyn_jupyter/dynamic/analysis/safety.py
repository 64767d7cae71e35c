"""What a tool's code does that is worth a word before it runs: findings at their lines, a score, what is blocked.

Invariants: it is advice and a record, never what keeps a tool in: that is the sandbox. Nothing of the code is run.
Comments, texts and docstrings are not read as code. A finding that blocks is critical, and its operation was not
granted by the person.

The score is 1 − Σ (critical 0.5, high 0.25, medium 0.1, low 0.05), each kind at a line once, within 0 and 1.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal

from reyn_jupyter.dynamic.analysis.python_safety import python_findings
from reyn_jupyter.dynamic.analysis.safety_rules import (
    KINDS,
    MOST_CODE,
    PENALTIES,
    Finding,
    Severity,
    ToolCodeError,
)
from reyn_jupyter.dynamic.analysis.typescript_safety import typescript_findings
from reyn_jupyter.support.text import shorten

__all__ = ["SafetyAnalysis", "SafetyIssue", "Severity", "ToolCodeError", "analyze_safety", "critical_issues"]

STRICT = 1.5  # by which strict mode multiplies what is taken off
SAFE, SAFE_STRICTLY = 0.5, 0.8
_MOST_SNIPPET = 160
_REMEMBERED = 128  # texts of code whose findings are kept: a tool is looked at before each run


@dataclass(frozen=True)
class SafetyIssue:
    """One finding.

    Attributes:
        severity: how much it weighs.
        type: the kind: an operation, as "delete_files", or a weakness, as "endless_loop".
        description: what the code does there, as a sentence.
        line: of the code, from 1.
        snippet: that line.
        suggestion: what to do instead.
    """

    severity: Severity
    type: str
    description: str
    line: int
    snippet: str
    suggestion: str


@dataclass(frozen=True)
class SafetyAnalysis:
    """What the analysis of a tool's code gave.

    Attributes:
        score: from 0 to 1.
        issues: by line.
        allowed_operations: what the code does and may try; files and network only as far as the sandbox was told.
        blocked_operations: critical ones that the person did not grant. A tool with one is not created and not run.
        recommendations: what to do, the gravest first.
        is_safe: the score is 0.5 or more (strictly 0.8), and nothing is blocked.
        confidence: 0.9 without issues, 0.5 with a critical one, else 0.7.
    """

    score: float
    issues: tuple[SafetyIssue, ...]
    allowed_operations: tuple[str, ...]
    blocked_operations: tuple[str, ...]
    recommendations: tuple[str, ...]
    is_safe: bool
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            **asdict(self),
            "issues": [{**asdict(each), "severity": str(each.severity)} for each in self.issues],
        }


def analyze_safety(
    code: str,
    *,
    mode: Literal["python", "typescript"] = "python",
    strict: bool = False,
    granted: Collection[str] = (),
) -> SafetyAnalysis:
    """Return what a tool's code does, with a score.

    Args:
        code: of the tool; it defines `execute`.
        mode: its language.
        strict: whether findings weigh half as much again, and a score under 0.8 is not safe.
        granted: operations that the person granted ("delete_files"), or permissions as a tool lists them
            ("allow:delete_files", "network:api.example.com", "write:out/"). Their findings stay listed, and do
            not block.

    Raises:
        ToolCodeError: a syntax error, no `execute`, a wrong signature, a magic of IPython, or more than 64 KiB.

    >>> found = analyze_safety("import shutil\\ndef execute(params):\\n    shutil.rmtree(params['d'])")
    >>> found.score, found.blocked_operations, found.issues[0].line
    (0.5, ('delete_files',), 3)
    """
    findings = _findings(code, mode)
    issues = _issues(code, findings)
    may = operations_of(granted)
    penalty = sum(PENALTIES[each.severity] for each in issues) * (STRICT if strict else 1)
    score = round(min(1.0, max(0.0, 1 - penalty)), 4)
    kinds = sorted({each.kind for each in findings}, key=_weight)
    blocked = tuple(kind for kind in kinds if KINDS[kind].severity is Severity.CRITICAL and kind not in may)
    allowed = tuple(kind for kind in kinds if KINDS[kind].is_operation and kind not in blocked)
    recommendations = tuple(dict.fromkeys(KINDS[kind].suggestion for kind in kinds if kind not in may))
    severities = {each.severity for each in issues}
    confidence = 0.9 if not issues else 0.5 if Severity.CRITICAL in severities else 0.7
    is_safe = score >= (SAFE_STRICTLY if strict else SAFE) and not blocked
    return SafetyAnalysis(score, issues, allowed, blocked, recommendations, is_safe, confidence)


def critical_issues(
    code: str, *, mode: Literal["python", "typescript"] = "python", granted: Collection[str] = ()
) -> tuple[SafetyIssue, ...]:
    """Return what blocks a tool, for the quick look before each run: nothing where it may run.

    Args:
        code, mode, granted: as for `analyze_safety`.

    Raises:
        ToolCodeError: as `analyze_safety`.

    >>> critical_issues("def execute(params): return eval(params['x'])")[0].type
    'dynamic_code'
    >>> critical_issues("def execute(params): return eval(params['x'])", granted=["allow:dynamic_code"])
    ()
    """
    may = operations_of(granted)
    findings = [each for each in _findings(code, mode) if KINDS[each.kind].severity is Severity.CRITICAL]
    return _issues(code, tuple(each for each in findings if each.kind not in may))


def operations_of(granted: Collection[str]) -> frozenset[str]:
    """Return the kinds of operations that permissions are for.

    >>> sorted(operations_of(["allow:processes", "write:out/", "deserialization"]))
    ['deserialization', 'make_folders', 'processes', 'write_files']
    """
    kinds: set[str] = set()
    for each in granted:
        form, colon, target = each.partition(":")
        if not colon:
            kinds.add(each)
        elif form == "allow":
            kinds.add(target.strip())
        elif form == "network":
            kinds.add("network")
        elif form == "write":
            kinds |= {"write_files", "make_folders"}
    return frozenset(kinds)


@lru_cache(_REMEMBERED)
def _findings(code: str, mode: str) -> tuple[Finding, ...]:
    if len(code) > MOST_CODE or len(code.encode(errors="surrogatepass")) > MOST_CODE:
        raise ToolCodeError(
            f"the code is longer than {MOST_CODE >> 10} KiB; put data into a parameter or a file"
        )
    return tuple(typescript_findings(code) if mode == "typescript" else python_findings(code))


def _issues(code: str, findings: Collection[Finding]) -> tuple[SafetyIssue, ...]:
    lines = code.splitlines()
    made = []
    for kind, line, what in findings:
        rule = KINDS[kind]
        snippet = shorten(lines[line - 1].strip(), _MOST_SNIPPET) if line <= len(lines) else ""
        made.append(
            SafetyIssue(rule.severity, kind, f"{what}, {rule.effect}", line, snippet, rule.suggestion)
        )
    return tuple(made)


def _weight(kind: str) -> tuple[float, str]:
    return -PENALTIES[KINDS[kind].severity], kind
