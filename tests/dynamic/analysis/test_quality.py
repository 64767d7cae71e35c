"""Quality: six scores by their weights, each lowered by what is amiss, with what would make it better."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from reyn_jupyter.dynamic.analysis.quality import WEIGHTS, QualityAssessment, assess_quality
from reyn_jupyter.dynamic.analysis.safety import ToolCodeError

PARAMETERS = {"text": {"type": "string", "description": "What is turned around"}}
GOOD = '''
def execute(params):
    """Return the text turned around."""
    text = params["text"]
    return text[::-1]
'''
GOOD_TYPESCRIPT = """
// Returns the text turned around.
async function execute(params) {
  const text = params.text;
  return text.split("").reverse().join("");
}
"""


def assessment(code: str, **options: Any) -> QualityAssessment:
    given = {"description": "Turn a text around", "parameters": PARAMETERS, **options}
    return assess_quality(code, **given)


def test_good_code_with_words_has_full_marks_in_both_languages() -> None:
    made = assessment(GOOD)
    assert set(asdict(made.category_scores).values()) == {1.0} and made.score == 1.0
    assert made.issues == () and made.improvements == () and made.confidence == 0.9
    typescript = assessment(GOOD_TYPESCRIPT, mode="typescript")
    assert typescript.score == 1.0 and typescript.confidence == 0.7


def test_the_score_is_the_six_by_their_weights() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1) and list(WEIGHTS.values()) == [
        0.2,
        0.2,
        0.15,
        0.15,
        0.15,
        0.15,
    ]
    made = assessment("def execute(params):\n    eval(params['x'])", description="?", parameters=None)
    scores = asdict(made.category_scores)
    assert list(scores) == list(WEIGHTS)
    assert made.score == pytest.approx(
        sum(scores[name] * weight for name, weight in WEIGHTS.items()), abs=1e-4
    )
    assert made.to_dict()["category_scores"] == scores


BRANCHES = "\n".join(f"    if params['x'] == {i}:\n        return {i}" for i in range(24))
DEEP = (
    "def execute(params):\n"
    + "".join(f"{'    ' * (i + 1)}if params[{i}]:\n" for i in range(6))
    + "    " * 7
    + "return 1"
)


@pytest.mark.parametrize(
    ("category", "code", "line"),
    [
        ("error_handling", "def execute(params):\n    return int(params['x'])", 2),
        (
            "error_handling",
            "def execute(params):\n    try:\n        return 1\n    except:\n        return 2",
            4,
        ),
        (
            "error_handling",
            "def execute(params):\n    try:\n        return 1\n    except ValueError:\n        pass",
            4,
        ),
        ("testability", f"def execute(params):\n{BRANCHES}", 1),
        ("testability", "def execute(params):\n    global x\n    x = 1\n    return x", 2),
        ("testability", "import random\ndef execute(params):\n    return random.random()", 1),
        ("testability", "def execute(params):\n    print(params)", 1),
        (
            "performance",
            "def execute(params):\n    for a in params:\n        for b in params: f(a)\n    return 1",
            1,
        ),
        (
            "performance",
            "def execute(params):\n    s = ''\n    for a in params:\n        s += f'{a}'\n    return s",
            4,
        ),
        ("performance", "import re\ndef execute(params):\n    return re.sub('(a+)+', '', params['x'])", 3),
        ("performance", "def execute(params):\n    while True:\n        pass\n    return 1", 2),
        ("security_awareness", "import os\ndef execute(params):\n    return os.system(params['x'])", 3),
        ("readability", DEEP, 1),
        ("readability", "def execute(params):\n    return " + " + ".join(["params['x']"] * 15), 2),
        (
            "readability",
            "def execute(params):\n" + "    value = params['x'] + 1\n" * 60 + "    return value",
            1,
        ),
    ],
)
def test_what_is_amiss_lowers_its_score_and_names_its_line(category: str, code: str, line: int) -> None:
    made = assessment(code)
    found = [each for each in made.issues if each.category == category and each.line == line]
    assert found and getattr(made.category_scores, category) < 1
    assert all(each.improvement in made.improvements for each in found)


def test_documentation_asks_for_a_description_of_the_tool_and_of_each_parameter() -> None:
    assert assessment(GOOD, description="?").category_scores.documentation == 0.6
    assert assessment(GOOD, parameters={"text": {"type": "string"}}).category_scores.documentation == 0.6
    assert assessment(GOOD, parameters=None).category_scores.documentation == 0.8
    assert assessment(GOOD, parameters={}).category_scores.documentation == 1.0


@pytest.mark.parametrize(
    ("category", "code"),
    [
        ("error_handling", "function execute(params) {\n  return JSON.parse(params.x);\n}"),
        ("error_handling", "function execute(params) {\n  try { return 1; } catch (e) { }\n}"),
        ("testability", "function execute(params) {\n  return Math.random();\n}"),
        ("testability", "function execute(params) {" + "if (params.x) { return 1; }\n" * 24 + "}"),
        (
            "performance",
            "function execute(params) {\n  for (const a of b) { for (const c of d) { } }\n  return 1;\n}",
        ),
        ("security_awareness", "function execute(params) {\n  return eval(params.x);\n}"),
        ("documentation", "function execute(params) {\n  return 1;\n}"),
        (
            "readability",
            "function execute(params) {\n" + "  let a = 1;\n".replace("let a", "x") * 70 + "  return 1;\n}",
        ),
    ],
)
def test_typescript_is_measured_alike(category: str, code: str) -> None:
    assert getattr(assessment(code, mode="typescript").category_scores, category) < 1


def test_code_that_is_too_deep_for_the_library_counts_as_complex_and_no_code_is_refused() -> None:
    deep = assessment(
        "def execute(params):\n    return " + "[" * 90 + "]" * 90 + "\nx = lambda: " + "-" * 180 + "1"
    )
    assert 0 <= deep.score <= 1
    with pytest.raises(ToolCodeError):
        assessment("def execute(")
