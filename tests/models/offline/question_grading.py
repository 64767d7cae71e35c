"""What counts as right for the 150 questions: rows and words of an answer against what pandas gave for it.

A question has one or more golds. A *number*, a *choice* (one value and those that it is not) and a *table* are looked
for in the rows that the answer shows, a *text* in its words too. Where the only gold is *decline*, any answer is wrong;
elsewhere a refusal is a refusal, never right. A question after which a frame or a file differs is wrong whatever was
said.
"""

from __future__ import annotations

import calendar
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.models.offline.grading import DECLINES, Outcome

QUESTIONS = Path(__file__).with_name("questions.jsonl")
TOLERANCE = 0.05
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)")
_MARK = re.compile(r"\\([\\|`*_\[\]<>~])")

Row = list[Any]


@dataclass(frozen=True)
class QuestionAnswer:
    """An answer: its Markdown, the rows of its query or chart (None without one), the mark of its chart (None without
    one), and whether something was changed."""

    markdown: str
    rows: list[Row] | None = None
    changed: bool = False
    mark: str | None = None

    @property
    def text(self) -> str:
        return _MARK.sub(r"\1", self.markdown)

    @property
    def declined(self) -> bool:
        return self.markdown.startswith(DECLINES)


def questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]


def is_held_out(question: dict[str, Any]) -> bool:
    """Return whether a question belongs to the third that was not looked at while the grammar was written."""
    return int(question["id"][1:]) % 3 == 0


def is_answerable(question: dict[str, Any]) -> bool:
    return bool(question["gold"][0]["type"] != "decline")


def grade_question(question: dict[str, Any], answer: QuestionAnswer) -> Outcome:
    """Return the outcome of one answer; a refusal of what has no answer is right."""
    golds = question["gold"]
    if answer.changed:
        return "wrong"
    if answer.declined:
        return "right" if any(gold["type"] == "decline" for gold in golds) else "abstained"
    return "right" if any(_fits(gold, answer) for gold in golds) else "wrong"


def _fits(gold: dict[str, Any], answer: QuestionAnswer) -> bool:
    kind = gold["type"]
    if kind == "number":
        return _number(gold, answer)
    if kind == "choice":
        return _choice(gold, answer)
    if kind == "table":
        return answer.rows is not None and _table(gold, answer.rows)
    if kind == "text" and not (gold.get("no_value") and answer.rows is not None):
        whole = f"{answer.text} {json.dumps(answer.rows or [], default=str)}"
        some = gold.get("must_contain_any")
        return all(_says(whole, word) for word in gold["must_contain"]) and (
            some is None or any(_says(whole, word) for word in some)
        )
    if kind == "plot":
        return answer.mark in gold["mark"].split("|") and _plot(gold, answer.rows or [])
    return False  # changed copies, which it does not make; a refusal was graded before


def _number(gold: dict[str, Any], answer: QuestionAnswer) -> bool:
    if answer.rows is not None and len(answer.rows) != 1:
        return False
    found = answer.rows[0] if answer.rows else [float(text) for text in _NUMBER.findall(answer.text)]
    wanted = [gold["value"], -gold["value"]] if gold.get("sign_free") else [gold["value"]]
    return any(_same(value, cell, _slack(gold)) for value in wanted for cell in found)


def _choice(gold: dict[str, Any], answer: QuestionAnswer) -> bool:
    if not answer.rows:
        return False
    first = answer.rows[0]
    said = str(next((cell for cell in first if isinstance(cell, str)), first[0]))
    if gold["value"] in calendar.month_name:
        return said == f"2026-{list(calendar.month_name).index(gold['value']):02d}"
    return said.lower() == gold["value"].lower()


def _plot(gold: dict[str, Any], rows: list[Row]) -> bool:
    if (total := gold.get("total")) is not None and not _same(
        total, sum(row[-1] for row in rows), _slack(gold)
    ):
        return False
    points = {"rows": gold["points"], "must_contain": gold.get("values", []), "ordered": False}
    return _table({**gold, **points}, rows)


def _table(gold: dict[str, Any], rows: list[Row]) -> bool:
    if gold["rows"] is not None and len(rows) != gold["rows"]:
        return False
    left = list(rows)
    for place, cells in enumerate(gold["must_contain"]):
        offered = rows[place : place + 1] if gold["ordered"] else left
        row = next((row for row in offered if _holds(row, cells, _slack(gold))), None)
        if row is None:
            return False
        left.remove(row)
    return True


def _holds(row: Row, cells: Row, slack: float) -> bool:
    left = list(row)
    for wanted in cells:
        place = next((index for index, cell in enumerate(left) if _same(wanted, cell, slack)), None)
        if place is None:
            return False
        del left[place]
    return True


def _slack(gold: dict[str, Any]) -> float:
    return float(gold.get("tolerance", TOLERANCE)) + 1e-9


def _same(wanted: Any, cell: Any, slack: float) -> bool:
    if wanted is None or cell is None or isinstance(cell, bool):
        return wanted == cell
    if isinstance(wanted, (int, float)):
        return isinstance(cell, (int, float)) and math.isclose(cell, wanted, rel_tol=0, abs_tol=slack)
    return str(cell).lower() == str(wanted).lower() or str(cell).startswith(f"{wanted}T")


def _says(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None
