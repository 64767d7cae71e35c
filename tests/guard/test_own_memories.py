"""Which memories are the person's own: by the hash of their files, in the state folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from reyn_jupyter.guard import own_memories
from reyn_jupyter.guard.own_memories import FILE, OwnMemories, memory_digest
from reyn_jupyter.guard.state_folder import StateFolder

ONE, TWO = memory_digest(b"one"), memory_digest(b"two")


def test_what_was_added_is_known_to_every_kernel_and_in_no_other_workspace(tmp_path: Path) -> None:
    own, other = OwnMemories(StateFolder(tmp_path)), OwnMemories(StateFolder(tmp_path))
    assert not own.holds(ONE)
    stamp = own.stamp
    own.add([ONE, TWO])
    assert own.holds(ONE) and other.holds(TWO) and own.stamp != stamp
    (tmp_path / "elsewhere").mkdir()
    assert not OwnMemories(StateFolder(tmp_path / "elsewhere")).holds(ONE)


@pytest.mark.parametrize(
    "damage", ["not json", "[]", '{"memories": [1, null]}', '{"memories": "' + ONE + '"}']
)
def test_damage_means_that_nothing_is(tmp_path: Path, damage: str) -> None:
    folder = StateFolder(tmp_path)
    OwnMemories(folder).add([ONE])
    (folder.path / FILE).write_text(damage)
    assert not OwnMemories(folder).holds(ONE)


def test_the_oldest_go_where_there_is_no_more_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_memories, "MOST", 2)
    own = OwnMemories(StateFolder(tmp_path))
    for content in (b"one", b"two", b"three"):
        own.add([memory_digest(content)])
    assert (own.holds(ONE), own.holds(TWO)) == (False, True)


def test_room_is_left_for_many_thousands(tmp_path: Path) -> None:
    own = OwnMemories(StateFolder(tmp_path))
    digests = [memory_digest(str(number).encode()) for number in range(20_000)]
    own.add(digests)
    assert OwnMemories(StateFolder(tmp_path)).holds(digests[0])
