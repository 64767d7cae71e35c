"""`%%reyn tool` and `%reyn tools` at the keyboard: making, looking, exporting, deleting."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.notebook.verbs.tools import VERB
from reyn_jupyter.sessions import current

Run = Callable[[str], str]
SHOUT = '''def execute(params):
    """Say it <b>loudly</b>.

    And then some."""
    return params["text"].upper()
'''


def test_a_cell_becomes_a_tool_that_is_listed_looked_at_called_and_exported(run: Run) -> None:
    assert "Make one: %%reyn tool NAME" in run("%reyn tools")
    run('takes = {"text": {"type": "string", "required": True}}')
    assert "shout is made" in run(f"%%reyn tool shout --parameters takes --tag voice,loud\n{SHOUT}")
    assert reyn.tools["shout"](text="hello") == "HELLO"
    row = current.session().tools.rows[0]
    assert (row["name"], row["about"], row["uses"]) == ("shout", "Say it <b>loudly</b>.", 1)
    assert row["days"][-1] != "▁" and len(row["days"]) == 14
    assert "shout" in run("%reyn tools") and "Say it <b>loudly</b>." in current.session().tools.df["about"][0]
    shown = run("%reyn tools shout")
    assert 'return params["text"].upper()' in shown and "text (string, required)" in shown
    assert re.search(r"\d\d:\d\d:\d\d UTC tool.run by person: ok", shown)
    assert re.search(r"safety +1\.00 of 1\n", shown) and re.search(r"made +\S+ \S+ UTC by person", shown)
    assert "HELLO" in run("%reyn invoke dynamic_tool__shout text=hello")
    assert "shout.py" in run("%reyn tools export shout")
    assert (current.session().root / "shout.py").read_text().endswith(SHOUT)
    run("%reyn undo")
    assert not (current.session().root / "shout.py").exists()
    assert "shout is deprecated" in run("%reyn tools deprecate shout")
    assert "deprecated" in run("%reyn tools")
    assert VERB.completes is not None
    assert list(VERB.completes(current.session(), ["delete"], "")) == ["shout"]
    assert "shout is deleted" in run("%reyn tools delete shout")
    assert not len(reyn.tools)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%%reyn tool\nx = 1", "A tool needs a name."),
        ("%reyn tool shout", "goes into the cell below"),
        ("%%reyn tool shout\nx = 1", "execute"),
        ("%%reyn tool shout\ndef execute(params:\n    pass", "line 1"),
        ("%%reyn tool 1st\ndef execute(params): return 1", "is no name of a tool"),
        ("%%reyn tool shout --parameters nowhere\ndef execute(params): return 1", "is no JSON"),
        ("%%reyn tool shout --permission network\ndef execute(params): return 1", "network:"),
        ("%reyn tools delete", "%reyn tools delete NAME"),
        ("%reyn tools nobody", "here is no tool 'nobody'"),
        ("%reyn tools export nobody", "here is no tool 'nobody'"),
    ],
)
def test_a_mistake_says_what_to_write_and_keeps_nothing(run: Run, line: str, said: str) -> None:
    assert said in run(line)
    assert not len(reyn.tools)


def test_the_persons_word_admits_what_is_critical_and_the_sandbox_holds_it_all_the_same(
    run: Run, workspace: Path
) -> None:
    (workspace / "private.txt").write_text("private")
    code = "\n".join(
        (
            "import subprocess",
            "def execute(params):",
            "    done = subprocess.run(['cat', params['path']], capture_output=True)",
            "    return [done.returncode, done.stdout.decode()]",
        )
    )
    assert "1 critical risk" in run(f"%%reyn tool reader\n{code}")
    assert "reader is made" in run(f"%%reyn tool reader --permission allow:processes\n{code}")
    assert current.session().problems == ()
    code, printed = reyn.tools["reader"](path=str(workspace / "private.txt"))
    assert code != 0 and printed == ""
