"""Files that are written as a whole into a cloned folder, in which links wait for the unfinished ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from reyn_jupyter.evaluation.results.settings_file import write_settings
from reyn_jupyter.evaluation.results.trial_export import export_trials
from reyn_jupyter.notebook.export import export
from reyn_jupyter.runtime.record import runlog

KEPT = "ten years of work\n"
TABLE = pd.DataFrame({"a": [1, 2]})
NO_EVIDENCE: Any = None  # a CSV file is made of the table alone
WRITTEN: dict[str, Callable[[Path], object]] = {
    "reyn.yaml": lambda path: write_settings(path, {"router.list_schemas": True}),
    "run.jsonl": lambda path: runlog.write(path, []),
    "trials.csv": lambda path: export_trials(NO_EVIDENCE, TABLE, path),
    "table.parquet": lambda path: export(path, SimpleNamespace(df=TABLE)),
}


def test_an_unfinished_file_is_written_through_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "thesis.tex"
    for name, write in WRITTEN.items():
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        victim.write_text(KEPT)
        # In a clone there are links for all numbers that a process may have.
        planted = folder / f".{name}.{os.getpid()}.part"
        planted.symlink_to(victim)
        write(folder / name)
        assert victim.read_text() == KEPT, name
        assert (folder / name).is_file() and not (folder / name).is_symlink(), name
        assert sorted(each.name for each in folder.iterdir()) == sorted([name, planted.name]), name
