"""A model whose calls keep failing is told, once a turn, that it can ask whether a tool of its own would help."""

from __future__ import annotations

from pathlib import Path

from tests.router.router_support import invoke, session, valid_history

OFFER = "dynamic_tool_operation__reflect"


def offers(made: object) -> list[bool]:
    """Whether each request ends with the offer."""
    return [OFFER in request.messages[-1].content for request in made.model.requests]  # type: ignore[attr-defined]


def failing(number: int) -> object:
    return invoke("file__read", path=f"missing{number}.txt")


def test_it_comes_once_after_the_third_failure_and_stays_out_of_the_history(workspace: Path) -> None:
    made = session(workspace, *map(failing, range(5)), "I give up.", "Nothing new.")
    made.ask("read five files")
    assert offers(made) == [False, False, False, True, False, False]
    assert made.model.requests[3].messages[-1].content.startswith("(3 calls of this turn failed.")
    made.ask("and now?")
    assert not any(OFFER in each.content for each in made.model.requests[-1].messages[1:])
    assert all(map(valid_history, made.model.requests))


def test_it_does_not_come_to_who_reflected_already_or_cannot_make_a_tool(workspace: Path) -> None:
    reflected = invoke(OFFER, task_description="read files", last_tool_result="not there")
    made = session(workspace, failing(1), failing(2), reflected, failing(3), failing(4), "I give up.")
    made.ask("read five files")
    assert not any(offers(made))
    without = session(workspace, *map(failing, range(5)), "I give up.", categories=[])
    without.ask("read five files")
    assert not any(offers(without))
