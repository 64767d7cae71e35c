"""The notebooks about the explorer and about large results, run from top to bottom with nobody there to be asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter

from reyn_jupyter.notebook.displays.mime import WIDGET_MIME
from tests.notebooks.executing_support import LARGEST_DISPLAY, NOTEBOOKS, executed

NAMES = ("02_explore_catalog.ipynb", "03_large_outputs.ipynb")


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return executed(NAMES[0], tmp_path_factory.mktemp("explored"))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return executed(NAMES[1], tmp_path_factory.mktemp("large"))


@pytest.fixture(params=["explored", "large"])
def ran(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def test_every_cell_runs(ran: Any) -> None:
    code = [cell for cell in ran.cells if cell.cell_type == "code"]
    assert code and all(cell.execution_count for cell in code)
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]


def test_every_display_shows_without_a_kernel_too(ran: Any) -> None:
    shown = [output for cell in ran.cells for output in cell.get("outputs", ()) if "data" in output]
    ours = [
        output.data
        for output in shown
        if any(mime.startswith("application/vnd.reyn.") for mime in output.data)
    ]
    assert len(ours) >= 5
    for data in ours:
        assert data["text/plain"].strip() and "<script" not in data["text/html"]
        assert len(json.dumps(data)) < LARGEST_DISPLAY


def test_as_a_page_of_nbconvert_it_shows_our_html_and_loads_no_code_of_widgets(ran: Any) -> None:
    page, _ = HTMLExporter().from_notebook_node(ran)
    ours = [
        output.data
        for cell in ran.cells
        for output in cell.get("outputs", ())
        if any(mime.startswith("application/vnd.reyn.") for mime in output.get("data", ()))
    ]
    assert page.count('class="reyn-view ') == len(ours) > 0
    assert not any(WIDGET_MIME in data for data in ours)  # nobody was there to use one
    assert WIDGET_MIME not in page and "html-manager" not in page


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_kept_without_outputs_and_widget_state(name: str) -> None:
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)


def test_a_page_for_somebody_without_a_kernel_is_written(large: Any) -> None:
    assert (Path(large.metadata["folder"]) / "stored.html").stat().st_size > 10_000


def test_the_conversation_keeps_a_summary_and_the_id_of_a_large_table(large: Any) -> None:
    (said,) = next(cell for cell in large.cells if cell.id == "payload").outputs
    assert "[blob:" in said.text and len(said.text) < 1000
