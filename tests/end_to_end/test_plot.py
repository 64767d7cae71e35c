"""A question for a chart, asked of the offline model in a real session: what is drawn, and what is declined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from reyn_jupyter import Session
from reyn_jupyter.models.offline.model import DECLINE
from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.runtime.record.trace import Trace

ORDERS = pd.DataFrame(
    {
        "day": pd.to_datetime(["2026-01-05", "2026-01-20", "2026-02-01", "2026-02-14", "2026-03-02"]),
        "amount": [200, 310, 700, 350, 240],
        "units": [1, 2, 3, 4, 5],
        "region": ["North", "South", None, "North", "East"],
        "product": ["a", "b", "a", "c", "b"],
    }
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    root = tmp_path_factory.mktemp("plots")
    ORDERS.to_csv(root / "sales.csv", index=False)
    made = Session(root, namespace={"orders": ORDERS})
    yield made
    made.close()


def asked(session: Session, prompt: str) -> tuple[Trace, list[dict[str, Any]]]:
    """The run of a prompt in a conversation of its own, and the arguments of the charts that it asked for."""
    session.reset()
    trace = session.ask(prompt)
    calls = [call for call in trace.calls if call.resolved.name == "chart__draw"]
    arguments: list[Any] = [call.resolved.arguments for call in calls]
    return trace, [given.get("args", given) for given in arguments]


def drawn(trace: Trace) -> list[tuple[Any, ...]]:
    """The rows of the chart of a run."""
    record: Any = trace.parts[1].json
    return [tuple(row[key] for key in sorted(row)) for row in record["spec"]["data"]["values"]]


def test_the_total_amount_per_month_is_three_bars(session: Session) -> None:
    trace, _ = asked(session, "plot total amount per month in orders")
    assert drawn(trace) == [("Jan 2026", 510), ("Feb 2026", 1050), ("Mar 2026", 240)]
    assert trace.answer is not None and "sum of amount by day (month), 3 bars" in trace.answer
    shown = view(trace)
    assert "data:image/svg+xml;base64," in to_html(shown)
    assert "Feb 2026" in to_text(shown)


@pytest.mark.parametrize(
    ("prompt", "arguments"),
    [
        (
            "plot mean amount by product in orders",
            {"mark": "bar", "x": {"field": "product"}, "y": {"field": "amount", "aggregate": "mean"}},
        ),
        (
            "line chart of amount per month in sales.csv",
            {"data": "sales.csv", "mark": "line", "x": {"field": "day", "time_unit": "month"}},
        ),
        ("histogram of amount in orders", {"mark": "histogram", "x": "amount"}),
        ("plot amount vs units in orders", {"mark": "point", "x": "units", "y": "amount"}),
        (
            "plot region against amount in orders",
            {"mark": "bar", "x": "region", "y": "amount"},
        ),
        (
            "plot number of orders per region in orders",
            {"x": {"field": "region"}, "y": {"aggregate": "count"}},
        ),
        (
            "plot amount per month and product in orders",
            {"x": {"field": "day", "time_unit": "month"}, "color": {"field": "product"}},
        ),
        (
            "plot amount by product in orders where region is North",
            {"sql": "SELECT * FROM orders WHERE (\"region\" = 'North')", "x": {"field": "product"}},
        ),
    ],
)
def test_a_question_for_a_chart_is_drawn_as_it_says(
    session: Session, prompt: str, arguments: dict[str, Any]
) -> None:
    trace, [given] = asked(session, prompt)
    assert arguments.items() <= given.items()
    assert drawn(trace)


@pytest.mark.parametrize(
    "prompt",
    [
        "plot late orders per month in orders",
        "plot amount by colour in orders",
        "plot amount in orders",
        "plot the weather",
        "pie chart of amount by product in orders",
        "histogram of height in orders",
        "plot height against amount in orders",
        "plot region against product in orders",
        "plot top 3 products by amount in orders",
        "histogram of amount in elsewhere",
    ],
)
def test_what_has_no_meaning_or_no_axes_is_declined_and_nothing_is_drawn(
    session: Session, prompt: str
) -> None:
    trace, charts = asked(session, prompt)
    assert charts == [] and trace.answer is not None and trace.answer.startswith(DECLINE)


def test_the_answer_and_the_title_of_a_chart_name_the_filter_and_what_is_drawn(session: Session) -> None:
    cases = {
        "plot amount per month for product c in orders": "amount by day (month), where product = 'c'",
        "plot amount by product in orders where region is North": "amount by product, where region = 'North'",
        "plot total amount by product after 2026-01-31 in orders": "sum of amount by product, where CAST(day",
    }
    wrong = []
    for prompt, expected in cases.items():
        trace, _ = asked(session, prompt)
        record: Any = trace.parts[1].json if trace.parts else {"title": ""}
        if expected not in str(trace.answer) or expected not in record["title"]:
            wrong.append((prompt, trace.answer, record["title"]))
    assert wrong == []
