"""Notes of other programs as memories: front matter, links and tags, a second import, and bad files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.backends.memory.memory_format import SLUG_PATTERN, Memory, MemoryStoreError
from reyn_jupyter.backends.memory.memory_import import ImportPlan, SourceNote, plan_import, read_notes
from reyn_jupyter.backends.memory.memory_store import MemoryStore

VAULT = {
    "Tea.md": "---\ntitle: All about tea\ntags: [drinks, leaf]\naliases: Cha, Chai\n---\n"
    "Tea is a drink. See [[Green Tea|the green one]], [[Coffee]] and ![[tea.png]]. #garden `#code`\n",
    "drinks/Green Tea.md": "# Green tea\n\nIt is brewed at 80 °C.\n",
    "Zoë’s plan.md": "---\n: [broken\n---\nThe plan.\n",
    ".obsidian/app.md": "settings\n",
}


@pytest.fixture
def take(tmp_path: Path) -> Callable[..., ImportPlan]:
    """Import a folder of the workspace into it."""

    def plan(name: str = "vault", *, replace: bool = False) -> ImportPlan:
        store = MemoryStore(tmp_path)
        notes, left_out = read_notes(tmp_path / name, name)
        listing = store.listing("shared")
        made = plan_import(
            notes, "shared", listing.memories, root=name, left_out=left_out, replace_changed=replace, mask=str
        )
        store.remember_all(made.written)
        return made

    return plan


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def steps(plan: ImportPlan) -> dict[str, str]:
    return {each.memory.source: each.step for each in plan.items}


def test_a_vault_becomes_memories_with_titles_tags_and_links(
    tmp_path: Path, take: Callable[..., ImportPlan]
) -> None:
    write(tmp_path / "vault", VAULT)
    plan = take()
    assert plan.left_out == () and len(plan.items) == 3
    store = MemoryStore(tmp_path)
    tea = store.read("vault-tea")
    assert (tea.name, tea.type, tea.source) == ("All about tea", "reference", "vault/Tea.md")
    assert tea.description == (
        "Tea is a drink. See the green one (memory vault-drinks-green-tea), Coffee and [tea.png]. #garden `#code`; "
        "also: Cha, Chai; #drinks #leaf #garden"
    )
    assert "See the green one (memory vault-drinks-green-tea), Coffee and [tea.png]." in tea.body
    assert store.read("vault-drinks-green-tea").name == "Green tea"
    broken = next(each.memory for each in plan.items if each.memory.source.endswith("plan.md"))
    assert "The plan." in broken.body and "front matter" in broken.body and broken.slug == "vault-zoes-plan"


def test_instructions_are_feedback_and_named_after_their_file(
    tmp_path: Path, take: Callable[..., ImportPlan]
) -> None:
    write(tmp_path, {"CLAUDE.md": "# Rules\n\nUse tabs.\n", "sub/AGENTS.md": "Be brief.\n"})
    (claude,) = take("CLAUDE.md").items
    (agents,) = take("sub/AGENTS.md").items
    assert (claude.memory.slug, claude.memory.type, claude.memory.name) == ("claude", "feedback", "CLAUDE")
    assert agents.memory.name == "sub/AGENTS.md" and agents.memory.description == "Be brief."


def test_a_second_import_takes_over_what_changed_and_nothing_else(
    tmp_path: Path, take: Callable[..., ImportPlan]
) -> None:
    write(tmp_path / "vault", {"a.md": "one\n", "b.md": "two\n", "c.md": "three\n", "d.md": "four\n"})
    take()
    assert set(steps(take()).values()) == {"unchanged"}
    store = MemoryStore(tmp_path)
    for slug in ("vault-b", "vault-c"):  # the person, or a model with consent, says it in other words
        before = store.read(slug)
        store.remember(replace(before, description="mine", body="mine\n"))
    write(tmp_path / "vault", {"a.md": "one more\n", "c.md": "three more\n", "e.md": "five\n"})
    (tmp_path / "vault" / "d.md").unlink()
    plan = take()
    assert steps(plan) == {
        "vault/a.md": "update",
        "vault/b.md": "unchanged",
        "vault/c.md": "kept",
        "vault/e.md": "new",
    }
    assert plan.gone == ("vault-d",) and store.read("vault-d").body == "four\n"
    assert store.read("vault-a").body == "one more\n" and store.read("vault-c").body == "mine\n"
    assert "kept vault-c" in plan.preview and "unchanged: 1" in plan.preview
    take(replace=True)
    assert store.read("vault-c").body == "three more\n"


def test_no_memory_of_another_origin_is_written_over(tmp_path: Path, take: Callable[..., ImportPlan]) -> None:
    store = MemoryStore(tmp_path)
    store.remember(Memory("shared", "vault-a", "Mine", "Of my own.", "user", "mine"))
    write(tmp_path / "vault", {"a.md": "one\n", "A.md": "another\n", "a!.md": "third\n"})
    plan = take()
    assert store.read("vault-a").body == "mine"
    assert len({each.memory.slug for each in plan.items}) == 3


def test_what_cannot_be_a_memory_is_left_out_and_named(
    tmp_path: Path, take: Callable[..., ImportPlan]
) -> None:
    vault = tmp_path / "vault"
    write(vault, {"good.md": "good\n", "empty.md": " \n", "large.md": "x" * 70_000})
    (tmp_path / "outside.md").write_text("secret")
    (vault / "line.md").write_bytes(b"y" * 10_000_000)
    (vault / "latin.md").write_bytes("Grüße".encode("latin-1"))
    (vault / "linked.md").symlink_to(tmp_path / "outside.md")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "far.md").write_text("far")
    (vault / "away").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(vault / "pipe.md")
    plan = take()
    assert steps(plan) == {"vault/good.md": "new"}
    said = dict(plan.left_out)
    assert set(said) == {f"vault/{name}.md" for name in ("empty", "large", "latin", "line", "linked", "pipe")}
    assert "UTF-8" in said["vault/latin.md"] and "larger" in said["vault/line.md"]
    assert "link" in said["vault/linked.md"] and "at most" in said["vault/large.md"]


@pytest.mark.parametrize("name", ["nothing", "linked", "pipe"])
def test_a_place_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MemoryStoreError, match=name):
        read_notes(tmp_path / name, name)


def test_a_rule_about_a_file_keeps_it_out(tmp_path: Path) -> None:
    write(tmp_path / "vault", {"a.md": "one\n", "private/b.md": "two\n"})
    notes, left_out = read_notes(tmp_path / "vault", "vault", lambda path: "private" not in path)
    assert [each.path for each in notes] == ["vault/a.md"]
    assert left_out == [("vault/private/b.md", "a rule does not allow reading it")]


@given(st.dictionaries(st.text(min_size=1, max_size=30), st.text(max_size=300), max_size=6))
def test_any_text_under_any_name_is_a_memory_or_left_out(files: dict[str, str]) -> None:
    notes = [SourceNote(f"{name}.md", text, str(number)) for number, (name, text) in enumerate(files.items())]
    plan = plan_import(notes, "agent", ())
    assert len(plan.items) + len(plan.left_out) == len(notes)
    slugs = [each.memory.slug for each in plan.items]
    assert len(set(slugs)) == len(slugs) and all(re.fullmatch(SLUG_PATTERN, slug) for slug in slugs)
    again = plan_import(notes, "agent", ())
    assert again == plan


@pytest.mark.parametrize(
    "text",
    ["[[" * 30_000, "# " + " #" * 30_000 + "x", "`" * 60_000, "#" * 60_000, "a/" * 30_000, "a.b-" * 15_000,
     "---\n" + "a: [" * 2_000 + "\n---\nx", "---\n" + "- " * 3_500 + "\n---\nx", "![[" + "|" * 60_000],
)  # fmt: skip
def test_a_hostile_text_costs_no_time_to_speak_of(text: str, tmp_path: Path) -> None:
    """Each of these would take a pattern that goes back many minutes; the test's own end is what is asserted."""
    plan = plan_import([SourceNote("a.md", text, "1")], "shared", ())
    assert len(plan.items) == 1
    store = MemoryStore(tmp_path)
    store.remember_all(plan.written)
    assert store.listing().memories[0].slug == "a"
