"""The card of a run is drawn without the evaluation package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = """
import sys
from reyn_jupyter import Session
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.render import to_html, view

model = ScriptedModel(call("list_actions", category=["file"]), "Done.")
session = Session(root=".", model=model)
assert "lists first" in to_html(view(session.ask("List the files")))
session.close()
print(*(name for name in sys.modules if name.startswith("reyn_jupyter.evaluation")))
"""


def test_the_card_of_a_run_imports_nothing_from_evaluation(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
