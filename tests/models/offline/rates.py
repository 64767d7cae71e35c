"""How often the offline model is right, measured through the real session: ``python -m tests.models.offline.rates``.

Each of the 120 requests is one conversation in a fresh workspace with a session of its own; each of the 150 questions
is one conversation over the same two frames, where nobody is there to consent. ``--write`` puts both tables into the
model's page of the manual, between their markers; ``--part`` runs one part; ``--failures`` shows what went wrong (look
at the development part only: the other one is there to be honest about this one).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from tests.models.offline.grading import Outcome, Verdict, grade, requests, wilson
from tests.models.offline.question_grading import (
    QuestionAnswer,
    grade_question,
    is_answerable,
    is_held_out,
    questions,
)
from tests.models.offline.question_tables import question_world
from tests.models.offline.worlds import WORLDS

PAGE = Path(__file__).parents[3] / "reyn_jupyter" / "docs" / "offline-model.md"
PARTS = ("development", "held-out")
Counts = dict[tuple[str, bool], Counter[str]]


def run(request: dict[str, Any]) -> tuple[Verdict, int]:
    """One request through a session of its own: the verdict, and how many calls it made."""
    import reyn_jupyter as reyn

    world = WORLDS[request["world"]]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        world.write(root)
        session = reyn.Session(root, model="offline", store="memory", namespace=dict(world.variables))
        for function in world.functions:
            session.action(function)
        for action, arguments in request.get("setup", ()):
            session.invoke_action(action, arguments)
        trace = session.ask(request["prompt"], approve="all")
        actions = [call.resolved.name for call in trace.calls if call.resolved.name is not None]

        def text(path: str) -> str | None:
            return (root / path).read_text(encoding="utf-8") if (root / path).exists() else None

        answer = trace.answer or f"[{trace.status}] {trace.error}"
        return grade(request, world, answer, actions, text), len(trace.calls)


def ask_questions(chosen: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], QuestionAnswer]]:
    """Ask each question in a new conversation of one session; what would ask for consent is denied."""
    import reyn_jupyter as reyn

    world, untouched = question_world(), question_world()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        world.write(root)
        session = reyn.Session(root, model="offline", store="memory", namespace=world.variables)
        for question in chosen:
            trace = session.ask(question["question"], approve="read", new=True)
            files = {
                path: (root / path).read_text(encoding="utf-8")
                for path in world.files
                if (root / path).exists()
            }
            same = all(world.variables[name].equals(held) for name, held in untouched.variables.items())
            queries = [call.resolved.inner for call in trace.calls if call.resolved.name == "table__query"]
            rows = _rows(session.invoke_action("table__query", queries[-1]).value) if queries else None
            charts = [
                call.resolved.inner for call in trace.calls if call.resolved.name == "chart__draw" and call.ok
            ]
            mark = charts[-1]["mark"] if charts else None
            if charts:
                rows = _rows(session.invoke_action("chart__draw", charts[-1]).value.df)
            text = trace.answer or f"[{trace.status}] {trace.error}"
            yield question, QuestionAnswer(text, rows, files != world.files or not same, mark)


def _rows(frame: pd.DataFrame) -> list[list[Any]]:
    """The rows of a result as JSON has them: plain numbers and texts, days as text, nothing as None."""
    found: list[list[Any]] = json.loads(
        frame.to_json(orient="values", date_format="iso", double_precision=15)
    )
    return found


def measure_questions(part: str | None, *, failures: bool) -> Counts:
    """Outcomes of the 150 questions by part and by whether they have an answer."""
    counts: Counts = {}
    chosen = [q for q in questions() if part is None or is_held_out(q) == (part == "held-out")]
    for question, answer in ask_questions(chosen):
        outcome: Outcome = grade_question(question, answer)
        key = (PARTS[is_held_out(question)], is_answerable(question))
        counts.setdefault(key, Counter())[outcome] += 1
        if failures and outcome != "right":
            print(f"{question['id']} {outcome}: {question['question']}\n    {answer.text[:300]}")
    return counts


def measure(part: str | None, *, failures: bool) -> Counts:
    """Verdicts by part and by whether the request has an answer."""
    counts: Counts = {}
    for request in requests(part):
        verdict, calls = run(request)
        answerable = not request["gold"].get("unanswerable")
        counts.setdefault((request["part"], answerable), Counter())[verdict.outcome] += 1
        if failures and verdict.outcome != "right":
            print(
                f"{request['id']} {verdict.outcome} after {calls} calls: {request['prompt']}\n    {verdict.reason}"
            )
    return counts


def table(counts: Counts, development: str, other: str) -> str:
    """The rates as a Markdown table, each with its 95 % Wilson interval; the parts have these names."""
    lines = [f"| | {development} | {other} | all |", "| --- | --- | --- | --- |"]
    rows = (
        ("with an answer: right", True, ("right",)),
        ("with an answer: declined", True, ("abstained",)),
        ("with an answer: wrong", True, ("wrong",)),
        ("without an answer: declined", False, ("right",)),
        ("without an answer: answered all the same", False, ("wrong", "abstained")),
    )
    for name, answerable, outcomes in rows:
        cells = []
        for parts in (PARTS[:1], PARTS[1:], PARTS):
            found = sum((counts.get((part, answerable), Counter()) for part in parts), Counter())
            hits, total = sum(found[outcome] for outcome in outcomes), found.total()
            low, high = wilson(hits, total)
            cells.append(f"{hits}/{total} = {hits / total:.0%} ({low:.0%}–{high:.0%})" if total else "–")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_DATA_HOME"] = state
        texts = {
            "rates": table(measure(chosen.part, failures=chosen.failures), "development half", "other half"),
            "questions": table(
                measure_questions(chosen.part, failures=chosen.failures), "development part", "held-out third"
            ),
        }
    for name, text in texts.items():
        print(text)
        if chosen.write and chosen.part is None:
            _write(name, text)


def _write(name: str, text: str) -> None:
    """Put a table between its markers in the page of the manual."""
    block = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(block.sub(lambda match: match.group(1) + text + match.group(2), page), encoding="utf-8")


if __name__ == "__main__":
    main()
