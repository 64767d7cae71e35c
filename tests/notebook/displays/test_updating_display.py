"""Displays in place: what stands in a notebook while something goes on holds no secret either."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from reyn_jupyter.notebook.displays.updating_display import InPlace
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
