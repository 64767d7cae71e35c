"""How often the offline model is right, measured through the real session: ``python -m tests.models.offline.rates``.

Each of the 120 requests is one conversation in a fresh workspace with a session of its own. ``--write`` puts the
table into the model's page of the manual, between its two markers; ``--part`` runs one half; ``--failures`` shows
what went wrong (look at the development half only: the other one is there to be honest about this one).
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.models.offline.grading import Verdict, grade, requests, wilson
from tests.models.offline.worlds import WORLDS

PAGE = Path(__file__).parents[3] / "reyn_jupyter" / "docs" / "offline-model.md"
BLOCK = re.compile(r"(<!-- rates: begin -->\n).*?(<!-- rates: end -->)", re.DOTALL)


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


def measure(part: str | None, *, failures: bool) -> dict[tuple[str, bool], Counter[str]]:
    """Verdicts by part and by whether the request has an answer."""
    counts: dict[tuple[str, bool], Counter[str]] = {}
    for request in requests(part):
        verdict, calls = run(request)
        answerable = not request["gold"].get("unanswerable")
        counts.setdefault((request["part"], answerable), Counter())[verdict.outcome] += 1
        if failures and verdict.outcome != "right":
            print(
                f"{request['id']} {verdict.outcome} after {calls} calls: {request['prompt']}\n    {verdict.reason}"
            )
    return counts


def table(counts: dict[tuple[str, bool], Counter[str]]) -> str:
    """The rates as a Markdown table, each with its 95 % Wilson interval."""
    lines = ["| | development half | other half | all |", "| --- | --- | --- | --- |"]
    rows = (
        ("with an answer: right", True, ("right",)),
        ("with an answer: declined", True, ("abstained",)),
        ("with an answer: wrong", True, ("wrong",)),
        ("without an answer: declined", False, ("right",)),
        ("without an answer: answered all the same", False, ("wrong", "abstained")),
    )
    for name, answerable, outcomes in rows:
        cells = []
        for parts in (("development",), ("held-out",), ("development", "held-out")):
            found = sum((counts.get((part, answerable), Counter()) for part in parts), Counter())
            hits, total = sum(found[outcome] for outcome in outcomes), found.total()
            low, high = wilson(hits, total)
            cells.append(f"{hits}/{total} = {hits / total:.0%} ({low:.0%}–{high:.0%})" if total else "–")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("development", "held-out"))
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_DATA_HOME"] = state
        text = table(measure(chosen.part, failures=chosen.failures))
    print(text)
    if chosen.write and chosen.part is None:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(
            BLOCK.sub(lambda match: match.group(1) + text + match.group(2), page), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
