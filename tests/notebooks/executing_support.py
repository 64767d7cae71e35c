"""Runs a notebook of this repository from top to bottom, in a copy of its folder, with nobody there to be asked."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from reyn_jupyter.demo import REPOSITORY

NOTEBOOKS = REPOSITORY / "notebooks"
LARGEST_DISPLAY = 100 * 1024
LARGEST_REPORT = (80 + 104 + 24) * 1024  # its three forms; it comes once a study


def executed(name: str, folder: Path, then: str = "") -> Any:
    """A notebook as it stands after a run.

    Args:
        name: its file.
        folder: an empty one to run in; it stays in the notebook's metadata.
        then: code for a last cell, to look at what the notebook left in its kernel.
    """
    shutil.copytree(NOTEBOOKS / "data", folder / "data")
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    if then:
        notebook.cells.append(nbformat.v4.new_code_cell(then))
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("REYN_STATE_DIR", "REYN_CONFIG_DIR", "IPYTHONDIR"):
            patch.setenv(variable, str(folder / variable.lower()))
        NotebookClient(
            notebook,
            timeout=600,
            startup_timeout=300,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
            store_widget_state=False,
        ).execute()
    notebook.metadata["folder"] = str(folder)
    return notebook


def outputs(notebook: Any, cell: str) -> Any:
    """The outputs of the cell with an id."""
    return next(each for each in notebook.cells if each.id == cell).outputs


def shown(notebook: Any, cell: str) -> str:
    """What a cell shows, as text."""
    return "\n".join(
        output.text if output.output_type == "stream" else output.data["text/plain"]
        for output in outputs(notebook, cell)
    )
