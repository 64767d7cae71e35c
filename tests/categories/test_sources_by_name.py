"""A query by hand finds its sources by the names in it; a model's names them; an error offers what was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.magic_line.corrected_calls import corrected_lines

ORDERS = pd.DataFrame({"region": ["north", "south", "north"], "amount": [1, 2, 3]})


@pytest.fixture
def session(workspace: Path) -> reyn.Session:
    names = {"orders": ORDERS, "Customers": ORDERS, "Twin": ORDERS, "twin": ORDERS, "count": 3}
    return reyn.Session(workspace, namespace=names)


def query(session: reyn.Session, sql: str, **arguments: Any) -> Any:
    return session.invoke_action("table__query", {"sql": sql, **arguments})


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT count(*) AS n FROM orders", {"orders": "orders"}),
        ("SELECT count(*) AS n FROM ORDERS o, customers c", {"ORDERS": "orders", "customers": "Customers"}),
        ("SELECT * FROM main.orders", {"orders": "orders"}),
        ("SELECT * FROM 'data/orders.csv'", {"data/orders.csv": "data/orders.csv"}),
        ("WITH orders AS (SELECT 1 AS one) SELECT * FROM orders", {}),
        ("SELECT * FROM twin", {"twin": "twin"}),
    ],
)
def test_a_query_by_hand_names_its_sources_itself(
    session: reyn.Session, sql: str, tables: dict[str, str]
) -> None:
    result = query(session, sql)
    assert result.error is None
    assert result.trace.result.tables == tables
    assert {source["name"] for source in result.trace.result.sources} == set(tables.values())


def test_what_the_person_names_is_kept(session: reyn.Session) -> None:
    result = query(session, "SELECT count(*) AS n FROM t, orders", sources={"t": "Customers"})
    assert result.trace.result.tables == {"t": "Customers", "orders": "orders"}


def test_the_rules_see_a_file_that_a_query_names(workspace: Path) -> None:
    (workspace / "reyn.yaml").write_text("permissions:\n  deny: ['table__query(read:data/**)']\n")
    result = query(reyn.Session(workspace), "SELECT * FROM 'data/orders.csv'")
    assert result.error is not None and result.error.startswith("Denied")


def test_a_model_names_its_sources(workspace: Path) -> None:
    model = ScriptedModel(
        call("invoke_action", action_name="table__query", args={"sql": "SELECT * FROM orders"}), "No."
    )
    trace = reyn.Session(workspace, namespace={"orders": ORDERS}, model=model).ask("go")
    finished = trace.calls[0].finished
    assert finished is not None and not finished.ok
    assert 'add \\"sources\\": {\\"orders\\": \\"orders\\"}' in finished.output


def test_a_name_that_may_be_two_variables_is_refused(session: reyn.Session) -> None:
    result = query(session, "SELECT * FROM TWIN")
    assert "Twin, twin" in result.error and '"sources": {"TWIN": "Twin"}' in result.payload["hint"]


def test_a_file_without_quotes_is_told_from_a_schema(session: reyn.Session, workspace: Path) -> None:
    (workspace / "sales.csv").write_text("a\n1\n")
    assert "FROM 'sales.csv'" in query(session, "SELECT * FROM sales.csv").payload["hint"]


def lines(session: reyn.Session, name: str, arguments: dict[str, Any]) -> tuple[str, ...]:
    result = session.invoke_action(name, arguments)
    return corrected_lines(session.catalog, arguments, result)


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT count(*) AS n FROM ordes", "Did you mean orders?"),
        ("SELECT count(*) AS n FROM 'orders.csv'", "Did you mean data/orders.csv?"),
        ("PIVOT orders ON region USING sum(amount)", "Did you mean orders?"),
        ("SELECT amuont FROM orders", ""),
    ],
)
def test_the_line_beside_an_error_does_what_was_meant(session: reyn.Session, sql: str, hint: str) -> None:
    result = query(session, sql)
    assert result.payload["hint"] == hint and result.fix is not None
    assert session.invoke_action("table__query", result.fix).error is None
    (line,) = lines(session, "table__query", {"sql": sql})
    assert line.startswith("%reyn invoke table__query ")


def test_the_lines_beside_a_wrong_name_or_argument(session: reyn.Session) -> None:
    first, *_ = lines(session, "file__raed", {"path": "notes.txt"})
    assert first == "%reyn invoke file__read path=notes.txt"
    assert lines(session, "file__read", {"pth": "notes.txt", "limit": 1}) == (
        "%reyn invoke file__read path=notes.txt limit=1",
    )
    assert lines(session, "file__read", {"path": "missing"}) == ()
    assert lines(session, "file__read", {"path": "notes.txt"}) == ()
