"""Displays in place: what stands in a notebook while something goes on holds no secret either."""

from __future__ import annotations

import io
import json
import signal
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from reyn_jupyter.notebook.displays.updating_display import IndexCard, InPlace
from reyn_jupyter.search.index_state import BuildProgress
from reyn_jupyter.sessions.result_objects import Card
from reyn_jupyter.support.terminal_line import TerminalLine
from tests.notebook.render.workflow_samples import workflow_objects


@pytest.fixture
def shell() -> Iterator[None]:
    """An IPython that hears what is displayed."""
    InteractiveShell.clear_instance()
    InteractiveShell.instance()
    yield
    InteractiveShell.clear_instance()


@pytest.mark.usefixtures("shell")
def test_what_is_shown_in_place_has_no_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "correct-horse-battery")
    shown = workflow_objects("the key is correct-horse-battery")["plan_run"]
    with capture_output() as captured:
        InPlace(SimpleNamespace(kernel=object())).show(shown)
    (output,) = captured.outputs
    assert "the key is" in json.dumps(output.data) and "correct-horse" not in json.dumps(output.data)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_for_what_goes_on_which_is_taken_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = Terminal()
    monkeypatch.setattr(sys, "stderr", said)
    place, card = InPlace(SimpleNamespace()), Card("embeddings", "Built", ())
    place.show(card)
    assert said.getvalue() == ""
    place.show(card, "3 of 9 actions")
    assert said.getvalue() == "\r\x1b[K3 of 9 actions"
    assert place.last(card) is card
    assert said.getvalue().endswith("\r\x1b[K")


def test_what_is_no_terminal_gets_a_whole_line_now_and_then_and_nothing_of_what_is_over_soon() -> None:
    now, said = [0.0], io.StringIO()
    line = TerminalLine(said, lambda: now[0], first=2.0, every=5.0)
    for now[0] in (0.0, 1.9, 2.0, 3.0, 7.0):
        line.show(now[0])
    line.end("done")
    assert said.getvalue() == "2.0\n7.0\ndone\n"


@pytest.mark.usefixtures("shell")
def test_an_index_over_records_has_a_card_at_once_where_the_model_has_to_be_loaded() -> None:
    def shown(*told: BuildProgress) -> str:
        with capture_output() as captured:
            card = IndexCard(SimpleNamespace(kernel=object()))
            for each in told:
                card(each)
            card.end()
        return json.dumps([output.data["text/plain"] for output in captured.outputs])

    assert shown(BuildProgress(0, 9, noun="record"), BuildProgress(9, 9, 0.2, noun="record")) == "[]"
    loading = BuildProgress(0, 9, doing="loading the embedding model", noun="record")
    said = shown(loading, BuildProgress(9, 9, 0.2, noun="record"))
    assert "0 of 9 records: loading the embedding model" in said
    assert "The index is built" in said and "9 of 9 records" in said
    assert "The index is not built" in shown(loading)


class Interrupted(CapturingDisplayPublisher):
    """A way to the page on which an interrupt strikes, whatever is sent."""

    def publish(self, *args: Any, **kwargs: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        super().publish(*args, **kwargs)


@pytest.mark.usefixtures("shell")
def test_an_interrupt_while_something_is_drawn_neither_loses_nor_doubles_it() -> None:
    shell = InteractiveShell.instance()
    shell.display_pub = page = Interrupted()
    shown, place = workflow_objects("text")["plan_run"], InPlace(SimpleNamespace(kernel=object()))
    handler = signal.getsignal(signal.SIGINT)
    for draw in (place.show, place.last):
        with pytest.raises(KeyboardInterrupt):
            draw(shown)
        assert signal.getsignal(signal.SIGINT) is handler
    first, second = page.outputs
    assert not first["update"] and second["update"]
    assert first["transient"] == second["transient"]
