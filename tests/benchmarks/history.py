"""What thirteen questions of one conversation cost in tokens: a step, and a turn, as the conversation grows.

The questions are of the kind of the quickstart. The offline model chooses the calls in both rows: once as it is, which
reads the last turn alone, and once as a model that is sent the history as a language model is. Tokens are those that
the record estimates for each request, with the system prompt and the tools.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd

import reyn_jupyter as reyn
from reyn_jupyter.models.base import Request, Response
from reyn_jupyter.models.offline import OfflineModel

QUESTIONS = (
    "how many orders are in data/orders.csv?",
    "what is the total amount in data/orders.csv?",
    "what is the average amount by region in data/orders.csv?",
    "show orders over 300 in data/orders.csv",
    "list the files",
    "read notes.md",
    "describe people",
    "how many people are there?",
    "find 'late' in notes.md",
    "remember that late orders are those after the tenth",
    "what do you remember about late orders?",
    "what is the largest amount in data/orders.csv?",
    "what is the total amount by product in data/orders.csv?",
)


class LanguageModel:
    """The offline model's choices, with the history that a language model is sent."""

    label, tier, host, real = "offline", "light", None, False

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        return await OfflineModel().complete(request, on_text)


def main() -> None:
    print(
        f"{'history of':<18}{'calls':>7}{'step, first turn':>18}{'step, last turn':>17}{'turn 13':>9}{'all':>9}"
    )
    for name, model in (("a language model", LanguageModel()), ("the offline model", OfflineModel())):
        turns = [ask(model) for ask in conversation()]
        first, last = (sum(turn) // len(turn) for turn in (turns[0], turns[-1]))
        row = (sum(map(len, turns)), first, last, sum(turns[-1]), sum(map(sum, turns)))
        print(f"{name:<18}{row[0]:>7,}{row[1]:>18,}{row[2]:>17,}{row[3]:>9,}{row[4]:>9,}")


def conversation() -> list[Callable[[object], list[int]]]:
    """Return what asks each question of one session, and gives the estimated tokens of its requests."""
    folder = Path(tempfile.mkdtemp())
    (folder / "data").mkdir()
    rows = [
        (f"2026-01-{n % 28 + 1:02}", "ABCDE"[n % 5], ("north", "south")[n % 2], n % 500) for n in range(500)
    ]
    orders = pd.DataFrame(rows, columns=["day", "product", "region", "amount"])
    orders.to_csv(folder / "data" / "orders.csv", index=False)
    (folder / "notes.md").write_text("# Notes\n\nOrders that are late are reported on Mondays.\n" * 20)
    people = pd.DataFrame({"name": ["Ada", "Ben"] * 20, "age": list(range(40))})
    session = reyn.Session(folder, namespace={"people": people})

    def asks(question: str) -> Callable[[object], list[int]]:
        def ask(model: object) -> list[int]:
            trace = session.ask(question, model=model, approve="all")
            return [step.requested.estimated_tokens for step in trace.steps if step.requested]

        return ask

    return [asks(question) for question in QUESTIONS]


if __name__ == "__main__":
    main()
