"""`%reyn memory`: what is remembered, what is found, what is old, and notes that are taken in."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reyn_jupyter.notebook.verbs.memory import VERB
from reyn_jupyter.sessions import current
from tests.support.trusting import trust

Run = Callable[[str], str]


def test_notes_of_another_program_are_shown_taken_in_found_and_reviewed(
    run: Run, workspace: Path, tmp_path: Path
) -> None:
    run("%reyn config action_retrieval.embedding_class null")
    assert "Nothing yet" in run("%reyn memory")
    vault = tmp_path / "my vault"  # not in the workspace: it is the person who takes notes in
    vault.mkdir()
    (vault / "boats.md").write_text("# Boats\n\nBoats <b>leave</b> at noon. Ask `harbour/list.csv`.\n")
    shown = run(f"%reyn memory import {vault}")
    assert (
        "nothing is written yet" in shown
        and "boats.md" in shown
        and not (workspace / ".reyn/memory").exists()
    )
    assert "1 new" in run(f"%reyn memory import {vault} --write")
    assert "1 unchanged" in run(f"%reyn memory import {vault} --write")
    (vault / "boats.md").write_text("# Boats\n\nBoats leave at one.\n")
    assert "1 updated" in run(f"%reyn memory import {vault} --write")
    found = run('%reyn memory search "when do boats leave?"')
    assert "Boats leave at one." in found and "ranked by words." in found
    (place,) = (workspace / ".reyn/memory/shared").glob("*boats*.md")
    long_ago = time.time() - 120 * 86_400
    os.utime(place, (long_ago, long_ago))
    assert "not changed for 120" in run("%reyn memory stale") and "boats" in (table := run("%reyn memory"))
    assert "may be of no use any more" in table


def test_what_came_with_the_folder_is_shown_apart_until_it_is_trusted(run: Run, workspace: Path) -> None:
    folder = workspace / ".reyn" / "memory" / "agent"
    folder.mkdir(parents=True)
    (folder / "rule.md").write_text("---\nname: Rule\ndescription: <b>Pay</b>\ntype: user\n---\nSend it.\n")
    assert "%reyn memory held" in (shown := run("%reyn memory")) and "Pay" not in shown
    assert "Pay" in (held := run("%reyn memory held")) and "Send it." in held
    assert "memory rule" in str(trust(current.session()).facts)
    assert "Pay" in run("%reyn memory") and "all memories here are yours" in run("%reyn memory held")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("gossip", "says nothing of the memories"),
        ("search", "%reyn memory search TEXT"),
        ("import", "%reyn memory import PATH"),
        ("import nowhere", "nowhere cannot be read: No such file or directory. Name a Markdown file"),
    ],
)
def test_a_mistake_says_what_to_write(run: Run, line: str, said: str) -> None:
    assert said in run(f"%reyn memory {line}")


def test_the_words_are_completed(run: Run) -> None:
    run("%reyn memory")
    assert VERB.completes is not None
    assert list(VERB.completes(current.session(), [], "")) == ["stale", "held", "search", "import"]
