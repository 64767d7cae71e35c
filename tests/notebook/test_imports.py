"""Looking at something costs nothing but what is looked at: no model library is imported, and pandas only for a table
that is worked with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HEAVY = (
    "litellm",
    "openai",
    "torch",
    "transformers",
    "sentence_transformers",
    "matplotlib",
    "jupyterlab",
    "duckdb",
)
LOOK = """
import json, sys
from queue import SimpleQueue
import reyn_jupyter as reyn
from reyn_jupyter.notebook.displays.mime import mimebundle
from reyn_jupyter.notebook.serving.connection import Connection
from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.outputs.content import Structured

session = reyn.session()
store = session.parts.services.blobs
rows = store.put(Structured([{"a": n, "b": "x" * 50} for n in range(500)])).id
answers = SimpleQueue()
line = Connection(Hub(reyn.session), answers.put, None)

def ask(op, **args):
    line.receive({"type": "request", "id": 1, "op": op, "args": args})
    while (answer := answers.get(timeout=120))["type"] == "progress":
        pass
    assert answer["type"] == "answer", answer
    return answer["value"]

trace = session.invoke_action("file__read", {"path": "notes.txt"}).trace
for shown in (session.explore(), session.list_actions(), session.blob(rows), trace, session.diff(trace.run, trace.run)):
    assert mimebundle(shown)["text/html"]
ask("catalog.page"), ask("catalog.action", name="file__read")
ask("blob.open", blob=rows), ask("frame.open", blob=rows), ask("frame.rows", blob=rows)
ask("tree.children", blob=rows), ask("lines.window", blob=rows), ask("lines.find", blob=rows, text="x")
ask("trace.open", run=trace.run), ask("trace.part", run=trace.run, id="c0"), ask("runs.list")
ask("trace.diff", a=trace.run, b=trace.run)
looked = sorted(sys.modules)
ask("frame.rows", blob=rows, sort=[{"column": 0}])
print(json.dumps([looked, sorted(sys.modules)]))
"""


def modules_after(code: str, workspace: Path) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=workspace,
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_views_and_their_operations_import_no_model_library_and_pandas_only_for_a_table(
    workspace: Path,
) -> None:
    looked, sorted_too = modules_after(LOOK, workspace)
    assert [name for name in (*HEAVY, "pandas", "ipywidgets", "anywidget") if name in looked] == []
    assert [name for name in HEAVY if name in sorted_too] == []
