"""What was asked is what is changed: somebody moves folders, links and files while a question of consent is open.

Each test swaps something at the very moment when the person is asked, which is when an attacker has the most time, and
then says yes.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.catalog.action import Arguments, Category, Operation, Purity, Tool
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.services import ToolContext
from tests.security.security_support import Attacker, invoke
from tests.support.courier import schema
from tests.support.waiting import PATIENCE

Swap = Callable[[Path], None]
CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("file__write", {"content": "mine\n"}),
    ("file__edit", {"old_string": "old", "new_string": "mine"}),
    ("file__delete", {}),
]
FROZEN = {"deny": ["*(archive/**)"]}


@pytest.fixture
def root(workspace: Path) -> Path:
    """A workspace with a folder that may be changed, and two places that may not: one is outside."""
    for folder in (workspace / "out", workspace / "archive", workspace.parent / "outside"):
        folder.mkdir()
        (folder / "a.txt").write_text("old\n")
    return workspace


class Race(Attacker):
    """A model that asks for a change, and a person who says yes after something was swapped."""

    def __init__(self, root: Path, swap: Swap, rules: Mapping[str, Any] = FROZEN) -> None:
        self.swap = swap
        super().__init__(root, rules, answer="once")

    def _asked(self, question: Question) -> Answer:
        self.swap(self.root)
        return super()._asked(question)


def moved_to_a_link(target: str) -> Swap:
    def swap(root: Path) -> None:
        (root / "out").rename(root / "out.before")
        (root / "out").symlink_to(target)

    return swap


def renamed_into_the_archive(root: Path) -> None:
    (root / "archive").rename(root / "archive.before")
    (root / "out").rename(root / "archive")


def renamed_with_another_in_its_place(root: Path) -> None:
    (root / "out").rename(root / "out.before")
    (root / "out").mkdir()
    (root / "out" / "a.txt").write_text("old\n")


def renamed_out_of_the_workspace(root: Path) -> None:
    (root / "out").rename(root.parent / "gone")


def removed(root: Path) -> None:
    (root / "out" / "a.txt").unlink()
    (root / "out").rmdir()


def contents(root: Path) -> dict[str, str]:
    """Return every text beside and below the workspace, links not followed."""
    return {
        str(file.relative_to(root.parent)): file.read_text()
        for file in sorted(root.parent.rglob("*"))
        if file.is_file() and not file.is_symlink() and ".reyn" not in file.parts
    }


FOLDER_SWAPS: dict[str, Swap] = {
    "a link out": moved_to_a_link("../outside"),
    "a link to what is denied": moved_to_a_link("archive"),
    "renamed to what is denied": renamed_into_the_archive,
    "another folder": renamed_with_another_in_its_place,
    "out of the workspace": renamed_out_of_the_workspace,
}


@pytest.mark.parametrize("swap", FOLDER_SWAPS.values(), ids=FOLDER_SWAPS)
@pytest.mark.parametrize(("action", "args"), CHANGES, ids=[name for name, _ in CHANGES])
def test_a_folder_that_is_swapped_under_the_question_takes_no_change_along(
    root: Path, swap: Swap, action: str, args: dict[str, Any]
) -> None:
    swapped: list[dict[str, str]] = []

    def swap_and_look(here: Path) -> None:
        swap(here)
        swapped.append(contents(here))

    attacker = Race(root, swap_and_look)
    said = attacker.call(action, path="out/a.txt", **args)
    assert contents(root) == swapped[0]
    assert "place_moved" in said and "out/a.txt" in said and "again" in said
    assert len(attacker.questions) == 1


def test_a_folder_that_goes_under_the_question_is_not_made_again(root: Path) -> None:
    said = Race(root, removed).call("file__write", path="out/a.txt", content="mine\n")
    assert "place_moved" in said and not (root / "out").exists()


def test_a_link_in_the_place_of_a_folder_that_a_write_would_make_is_not_followed(root: Path) -> None:
    attacker = Race(root, lambda here: (here / "new").symlink_to("archive"))
    said = attacker.call("file__write", path="new/deep/b.txt", content="mine\n")
    assert "place_moved" in said
    assert not (root / "archive" / "deep").exists() and not (root / "archive" / "b.txt").exists()


def test_a_folder_that_somebody_makes_meanwhile_where_the_write_would_is_used(root: Path) -> None:
    attacker = Race(root, lambda here: (here / "new").mkdir())
    attacker.call("file__write", path="new/deep/b.txt", content="mine\n")
    assert (root / "new" / "deep" / "b.txt").read_text() == "mine\n"


@pytest.mark.parametrize(("action", "args"), CHANGES, ids=[name for name, _ in CHANGES])
def test_a_link_that_is_named_is_resolved_once(root: Path, action: str, args: dict[str, Any]) -> None:
    (root / "latest.txt").symlink_to("out/a.txt")

    def swap(here: Path) -> None:
        (here / "latest.txt").unlink()
        (here / "latest.txt").symlink_to("archive/a.txt")

    attacker = Race(root, swap)
    attacker.call(action, path="latest.txt", **args)
    assert "out/a.txt" in attacker.questions[0].text
    assert (root / "archive" / "a.txt").read_text() == "old\n"
    left = (root / "out" / "a.txt").read_text() if (root / "out" / "a.txt").exists() else None
    assert left == (None if action == "file__delete" else "mine\n")


def rewritten(root: Path) -> None:
    (root / "out" / "a.txt").write_text("precious old work\n")


def rewritten_without_a_trace_in_its_times(root: Path) -> None:

    file = root / "out" / "a.txt"
    before = file.stat()
    with file.open("r+b") as opened:
        opened.write(b"OLD\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced_by_a_link(root: Path) -> None:
    (root / "out" / "a.txt").unlink()
    (root / "out" / "a.txt").symlink_to("../archive/a.txt")


def gone(root: Path) -> None:
    (root / "out" / "a.txt").unlink()


@pytest.mark.parametrize(
    "swap", [rewritten, rewritten_without_a_trace_in_its_times, replaced_by_a_link, gone]
)
@pytest.mark.parametrize(("action", "args"), CHANGES, ids=[name for name, _ in CHANGES])
def test_a_file_that_is_not_the_one_shown_any_more_is_left_alone(
    root: Path, swap: Swap, action: str, args: dict[str, Any]
) -> None:
    swapped: list[dict[str, str]] = []

    def swap_and_look(here: Path) -> None:
        swap(here)
        swapped.append(contents(here))

    said = Race(root, swap_and_look).call(action, path="out/a.txt", **args)
    assert contents(root) == swapped[0]
    assert "changed_meanwhile" in said and "out/a.txt" in said and "again" in said


def test_a_variable_that_changes_under_the_question_is_written_as_it_was_shown(root: Path) -> None:
    rows = [1]
    attacker = Race(root, lambda here: rows.append(666))
    attacker.session.parts.services.namespace()["rows"] = rows
    attacker.call("file__write", path="out/b.json", content={"$var": "rows"})
    assert "666" not in attacker.questions[0].text
    assert (root / "out" / "b.json").read_text() == "[\n  1\n]\n"


def test_a_file_that_appears_where_none_was_shown_is_not_overwritten(root: Path) -> None:
    attacker = Race(root, lambda here: (here / "out" / "b.txt").write_text("theirs\n"))
    said = attacker.call("file__write", path="out/b.txt", content="mine\n")
    assert "changed_meanwhile" in said and (root / "out" / "b.txt").read_text() == "theirs\n"


def test_a_file_that_was_only_touched_is_changed_as_shown(root: Path) -> None:
    attacker = Race(root, lambda here: (here / "out" / "a.txt").touch())
    attacker.call("file__write", path="out/a.txt", content="mine\n")
    assert (root / "out" / "a.txt").read_text() == "mine\n"


def test_an_edit_that_could_not_be_made_when_it_was_asked_about_is_not_made_later(root: Path) -> None:
    """To whom may not read the file the question says that the edit fails; it does not turn into another one."""
    attacker = Race(root, rewritten, {"deny": ["file__read(out/**)"]})
    said = attacker.call("file__edit", path="out/a.txt", old_string="precious", new_string="worthless")
    assert "cannot be made" in attacker.questions[0].text and "changed_meanwhile" in said
    assert (root / "out" / "a.txt").read_text() == "precious old work\n"


READS: list[tuple[str, dict[str, Any]]] = [
    ("file__read", {"path": "latest.csv"}),
    ("file__grep", {"path": "latest.csv", "pattern": "."}),
    ("table__query", {"sql": "FROM t", "sources": {"t": "latest.csv"}}),
]


@pytest.mark.parametrize(("action", "args"), READS, ids=[name for name, _ in READS])
def test_what_is_read_is_the_file_that_was_asked_about(root: Path, action: str, args: dict[str, Any]) -> None:
    (root / "private").mkdir()
    (root / "private" / "one.csv").write_text("n\n1111\n")
    (root / "private" / "two.csv").write_text("n\n2222\n")
    (root / "latest.csv").symlink_to("private/one.csv")

    def swap(here: Path) -> None:
        (here / "latest.csv").unlink()
        (here / "latest.csv").symlink_to("private/two.csv")

    attacker = Race(root, swap, {"ask": ["*(private/**)"]})
    said = attacker.call(action, **args)
    assert "private/one.csv" in attacker.questions[0].text
    assert "1111" in said and "2222" not in said


@pytest.mark.parametrize(("action", "args"), READS, ids=[name for name, _ in READS])
def test_a_link_in_the_place_of_the_file_that_was_asked_about_is_not_read(
    root: Path, action: str, args: dict[str, Any]
) -> None:
    (root / "private").mkdir()
    (root / "private" / "one.csv").write_text("n\n1111\n")
    (root / "private" / "two.csv").write_text("n\n2222\n")

    def swap(here: Path) -> None:
        (here / "private" / "one.csv").unlink()
        (here / "private" / "one.csv").symlink_to("two.csv")

    attacker = Race(root, swap, {"ask": ["*(private/**)"]})
    given = {"sources": {"t": "private/one.csv"}} if "sources" in args else {"path": "private/one.csv"}
    assert "2222" not in attacker.call(action, **{**args, **given})


def test_calls_leave_no_descriptor_behind_whatever_becomes_of_them(root: Path) -> None:
    attacker = Attacker(root, FROZEN, answer="once")

    def all_ends() -> None:
        attacker.answer = "once"
        attacker.calls(
            invoke("file__write", path="out/b.txt", content="x"),
            invoke("file__write", path="archive/b.txt", content="x"),
            invoke("file__edit", path="out/b.txt", old_string="nowhere", new_string="y"),
            invoke("file__delete", path="out/b.txt"),
        )
        attacker.answer = "deny"
        attacker.calls(invoke("file__write", path="out/c.txt", content="x"))

    all_ends()
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(3):
        all_ends()
    assert len(list(Path("/dev/fd").iterdir())) <= before


FOLDERS: list[tuple[str, dict[str, Any]]] = [
    ("file__list", {"path": "out"}),
    ("file__glob", {"path": "out", "pattern": "*"}),
    ("file__grep", {"path": "out", "pattern": "."}),
]


@pytest.mark.parametrize(("action", "args"), FOLDERS, ids=[name for name, _ in FOLDERS])
@pytest.mark.parametrize("target", ["../outside", "private"])
def test_a_folder_that_was_asked_about_is_not_listed_through_a_link_in_its_place(
    root: Path, action: str, args: dict[str, Any], target: str
) -> None:
    (root / "private").mkdir()
    for folder in (root.parent / "outside", root / "private"):
        (folder / "hidden.txt").write_text("hidden\n")
    said = Race(root, moved_to_a_link(target), {"ask": [action]}).call(action, **args)
    assert "hidden" not in said


async def test_a_preview_that_takes_long_holds_up_no_other_call(workspace: Path) -> None:
    """The preview of one call waits for another one, which could not run beside it on the same thread."""
    began, ran = threading.Event(), threading.Event()
    shown: list[bool] = []

    async def act(args: Arguments, context: ToolContext) -> str:
        ran.set()
        return "acted"

    def preview(args: Arguments, context: ToolContext) -> str:
        began.set()
        shown.append(ran.wait(PATIENCE))
        return "a change"

    operations = (
        Operation("slow", "Act.", schema(), Tool("act_slowly", act, Purity.WRITE, preview=preview)),
        Operation("quick", "Act.", schema(), Tool("act_quickly", act, Purity.READ)),
    )
    session = Attacker(workspace, categories=(Category("world", "Act.", operations),)).session
    slow = asyncio.create_task(session.aio.ask("go", model=ScriptedModel(invoke("world__slow"), "done")))
    assert await asyncio.to_thread(began.wait, PATIENCE)
    await session.aio.invoke_action("world__quick", {})
    await slow
    assert shown == [True]
