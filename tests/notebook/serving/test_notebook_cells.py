"""A page's copy of its notebook: kept from pages of a notebook alone, forgotten with them, within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.runtime.access.live_notebook import LIVE_NOTEBOOK, MOST_CELLS, MOST_OUTPUTS, ProposedCell
from reyn_jupyter.sessions.session import Session
from tests.notebook.serving.test_connection import HELLO, Channel


def _no_session() -> Session:
    raise AssertionError("a copy of a notebook needs no session")


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub(_no_session)
    yield made
    for connection in list(made.connections):
        connection.close()


def cell(name: str = "a", **changes: Any) -> dict[str, Any]:
    empty = {"kind": "code", "source": "1", "count": None, "outputs": [], "cut": 0, "more": 0}
    return {"id": name, **empty, **changes}


def sent(*cells: dict[str, Any]) -> dict[str, Any]:
    return {"type": "cells", "cells": list(cells), "more": 0}


def page(hub: Hub, host: str = "jupyterlab") -> Channel:
    return Channel(hub, **{**HELLO, "host": host})


def sources() -> list[str] | None:
    now = LIVE_NOTEBOOK.now
    return None if now is None else [each.source for each in now[0].cells]


def test_the_last_page_that_sent_cells_is_the_one_that_gets_proposals(hub: Hub) -> None:
    one, other = page(hub), page(hub, "notebook")
    one.send(sent(cell(source="one")))
    other.send(sent(cell(source="other")))
    assert sources() == ["other"]
    now = LIVE_NOTEBOOK.now
    assert now is not None
    now[1].propose(ProposedCell("new", "code", "x", ("a",), "run"))
    event = other.event("proposal")
    assert (event["cell"], event["source"], event["below"]) == ("new", "x", ["a"])
    assert not [each for each in one.heard if each["type"] == "event"]
    now[1].withdraw("new", "x")
    assert other.event("withdrawal")["cell"] == "new"


def test_a_page_that_is_gone_is_forgotten(hub: Hub) -> None:
    made = page(hub)
    made.send(sent(cell()))
    made.connection.close()
    assert LIVE_NOTEBOOK.now is None


@pytest.mark.parametrize("host", ["page", "widget", "elsewhere"])
def test_no_other_view_passes_for_the_notebook(hub: Hub, host: str) -> None:
    page(hub, host).send(sent(cell()))
    Channel(hub).send(sent(cell()))  # it has not said hello
    assert LIVE_NOTEBOOK.now is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "cells"},
        {"type": "cells", "cells": [{}], "more": 0},
        sent(cell(source="x" * 20_001)),
        sent(cell(kind="script")),
        sent(cell(outputs=[{"kind": "result", "text": "x" * 4_001, "types": [], "cut": 0}])),
        sent(cell(id="i" * 65)),
    ],
)
def test_what_is_no_copy_is_left(hub: Hub, wrong: dict[str, Any]) -> None:
    page(hub).send(wrong)
    assert LIVE_NOTEBOOK.now is None


def test_a_copy_is_cut_to_its_bounds(hub: Hub) -> None:
    output = {"kind": "stream", "text": "x", "types": [], "cut": 0}
    page(hub).send(sent(*(cell(str(number), outputs=[output] * 30) for number in range(MOST_CELLS + 5))))
    now = LIVE_NOTEBOOK.now
    assert now is not None
    assert len(now[0].cells) == MOST_CELLS and len(now[0].cells[0].outputs) == MOST_OUTPUTS
