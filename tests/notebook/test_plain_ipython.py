"""In a terminal IPython, without a kernel: the same verbs, text alone, nothing of a notebook's machinery."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

LINES = """\
%load_ext reyn_jupyter
%reyn
table = %reyn list file --limit 2
len(table)
%reyn ask "read notes.txt"
%reyn ask what is in notes.txt?
_.answer
%reyn describe file__raed
%reyn ask --bg "read notes.txt"
_.result(100).status
%reyn invoke file__write path=made.txt content=hello
res = %reyn ask "number of rows by region in data/orders.csv"
type(res).__name__, list(res.columns)[0], res.trace.status
%reyn ask "number of rows by region in data/orders.csv"
_ is not res and _.equals(res)
res
[name for name in ("ipywidgets", "comm", "anywidget", "ipykernel", "litellm") if name in __import__("sys").modules]
%reyn search what finds text in files?
%reyn config models.light local/smollm2
%reyn ask how many rows are there?
%unload_ext reyn_jupyter
"""


def test_the_same_verbs_work_in_a_terminal(workspace: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "IPython",
            "--simple-prompt",
            "--no-banner",
            "--colors=NoColor",
            "--no-confirm-exit",
        ],
        input=LINES,
        capture_output=True,
        text=True,
        cwd=workspace,
        env={**os.environ, "IPYTHONDIR": str(tmp_path / "ipython"), "TERM": "dumb"},
        timeout=300,
        check=True,
    )
    shown = dict(re.findall(r"In \[(\d+)\]: (.*?)(?=\nIn \[|\Z)", done.stdout, re.DOTALL))
    assert shown["1"].strip() == ""
    assert "workspace" in shown["2"] and "<div" not in done.stdout
    assert "Out[4]: 2" in shown["4"]
    assert "second line" in shown["5"] and "second line" in shown["6"] and "second line" in shown["7"]
    assert (
        shown["8"].strip()
        == "Unknown action 'file__raed'. Did you mean file__read, file__edit or file__grep?"
    )
    assert "In the background: read notes.txt" in shown["9"]
    assert "Out[10]: 'ok'" in shown["10"]
    assert (workspace / "made.txt").read_text() == "hello"
    assert shown["12"].strip() == ""
    assert "Out[13]: ('ResultFrame', 'region', 'ok')" in shown["13"]
    assert "Out[14]" in shown["14"] and "language model" in shown["14"]
    assert "Out[15]: True" in shown["15"]
    assert "Out[16]:" in shown["16"] and "language model" not in shown["16"] and "north" in shown["16"]
    assert "Out[17]: []" in shown["17"]
    assert "file__grep" in shown["18"]
    assert "  models:\n    standard: " in shown["20"] and "%reyn config router_model light" in shown["20"]
    assert "not a language model" not in shown["20"], "none was asked"
    for place in ("5", "6", "14", "16", "20"):
        assert "cut here" not in shown[place], "buttons are no text that is left out"
    assert "Traceback" not in done.stdout + done.stderr
