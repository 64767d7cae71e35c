"""`%reyn peers`: what there is, what was asked, and forgetting, at the keyboard."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reyn_jupyter.notebook.verbs.peers import VERB
from reyn_jupyter.sessions import current

Run = Callable[[str], str]


def test_peers_are_listed_asked_and_made_to_forget(run: Run) -> None:
    assert "No peer is configured" in run("%reyn peers")
    run('%reyn config peers.counter.description "Counts <b>rows</b>"')
    run("%reyn config peers.counter.model offline")
    run("%reyn config peers.counter.categories [file, tabel]")
    run("%reyn config peers.counter.limits.max_steps 5")
    shown = run("%reyn peers")
    assert "offline" in shown and "5 steps" in shown and "ready" in shown and "Counts <b>rows</b>" in shown
    assert "agent.peer__counter" in run("%reyn list agent.peer")
    assert "there is no category 'tabel'. Did you mean table?" in run("%reyn peers")
    run('%reyn invoke agent.peer__counter request="how many lines has notes.txt?"')
    (row,) = current.session().peers.rows
    assert (row["requests"], row["remembers"], row["state"], row["tokens"]) == (1, 1, "answered", 0)
    assert VERB.completes is not None
    assert list(VERB.completes(current.session(), ["forget"], "")) == ["counter"]
    assert "1 request" in run("%reyn peers forget counter")
    assert current.session().peers.rows[0]["remembers"] == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("forget", "%reyn peers forget checker"),
        ("forget nobody", "There is no peer 'nobody'"),
        ("nobody", "'nobody' is not one of list, forget"),
    ],
)
def test_a_mistake_says_what_to_write(run: Run, line: str, said: str) -> None:
    assert said in run(f"%reyn peers {line}")
