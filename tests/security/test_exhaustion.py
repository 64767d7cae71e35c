"""A model's call cannot fill the memory of the kernel: what would be too large is refused before it is made."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from reyn_jupyter.backends.files.file_changes import LARGEST
from reyn_jupyter.backends.files.file_edits import MOST_MATCHES
from tests.security.security_support import Attacker


def peak_of(attacker: Attacker, **edit: object) -> tuple[str, int]:
    attacker.call("file__list", path=".")
    tracemalloc.start()
    try:
        answer = attacker.call("file__edit", path="notes.txt", **edit)
        return answer, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_an_edit_that_would_multiply_a_file_is_refused_before_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("e" * 40_000)
    attacker = Attacker(tmp_path, answer="once")

    answer, peak = peak_of(attacker, old_string="e", new_string="x" * 50_000, replace_all=True)

    assert "40,000 matches" in answer and "67.1 MB are kept" in answer
    assert not attacker.questions
    assert peak < LARGEST
    assert (tmp_path / "notes.txt").read_text() == "e" * 40_000


def test_an_edit_of_more_places_than_can_be_listed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("e" * (MOST_MATCHES + 1))
    attacker = Attacker(tmp_path, answer="once")

    answer, peak = peak_of(attacker, old_string="e", new_string="f", replace_all=True)

    assert "1,000,001 times" in answer
    assert not attacker.questions
    assert peak < 50 * MOST_MATCHES


def test_a_refusal_for_size_says_nothing_of_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("e" * 40_000)
    attacker = Attacker(tmp_path, {"deny": ["file__read"]}, answer="once")

    answer = attacker.call(
        "file__edit", path="notes.txt", old_string="e", new_string="x" * 50_000, replace_all=True
    )

    assert "40,000" not in answer
    assert (tmp_path / "notes.txt").read_text() == "e" * 40_000
