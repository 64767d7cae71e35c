"""Whatever is declared displayable can be drawn, in every representation."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.backends.serving.address_file import AddressFile
from reyn_jupyter.backends.serving.connected_clients import ConnectedClient, ConnectedClients
from reyn_jupyter.backends.serving.served_session import ServedSession
from reyn_jupyter.evaluation.run.progress import Progress
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.notebook.displays.mime import mime_type, mimebundle
from reyn_jupyter.notebook.render.displayables import DISPLAYABLES, Displayable, displayable, view
from reyn_jupyter.sessions.runs.background_run import BackgroundRun
from tests.notebook.render.samples import every_kind
from tests.notebook.render.study_samples import every_object, suite_objects
from tests.notebook.render.workflow_samples import workflow_objects

CLIENT = ConnectedClient("a <b>", 1.0, 2.0, calls=3, errors=1)
SERVED = ServedSession(
    session="5e551014",
    origin="http://127.0.0.1:9",
    wait=50.0,
    file=AddressFile(StateFolder(Path("workspace"))),
    clients=cast("ConnectedClients", SimpleNamespace(all=lambda: (CLIENT,))),
    is_on=lambda: True,
    end=lambda: None,
    serve_here=lambda: None,
    look=lambda: None,
    add=lambda what: None,  # type: ignore[arg-type, return-value]
    offered=lambda: ("mcp", "a2a"),
)
PROGRESS = Progress(3, 12, 1, 2.0, 1.5, (5.0, 8.0), 0.0, 10, 4)


@pytest.fixture(scope="module")
def samples(run: BackgroundRun) -> tuple[object, ...]:
    """At least one of each kind."""
    made = (every_kind("a"), every_object("a"), suite_objects("a"), workflow_objects("a"))
    return (*(each for kinds in made for each in kinds.values()), PROGRESS, SERVED, run)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> BackgroundRun:
    """A background run that has ended."""
    run = reyn.Session(tmp_path_factory.mktemp("workspace")).start("hello", model="offline")
    run.result()
    return run


@pytest.mark.parametrize("kind", DISPLAYABLES, ids=lambda kind: kind.name)
def test_a_declared_type_and_the_function_that_draws_it_exist(kind: Displayable) -> None:
    assert displayable(getattr(import_module(kind.module), kind.name)) is kind
    module, _, function = kind.draw.rpartition(".")
    assert callable(getattr(import_module(f"reyn_jupyter.notebook.render.{module}"), function))


@pytest.mark.parametrize("kind", DISPLAYABLES, ids=lambda kind: kind.name)
def test_a_declared_type_is_shown_as_data_html_and_text(
    kind: Displayable, samples: tuple[object, ...]
) -> None:
    found = [each for each in samples if displayable(type(each)) is kind]
    assert found, f"there is no sample of {kind.name}"
    for sample in found:
        bundle = mimebundle(sample)
        assert set(bundle) == {mime_type(sample), "text/html", "text/plain"}
        assert all(bundle.values())


def test_a_type_that_nobody_declared_is_refused() -> None:
    with pytest.raises(TypeError, match="there is no view of it"):
        view(object())
