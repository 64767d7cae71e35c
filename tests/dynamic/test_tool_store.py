"""The store of tools: whole after a kill, shared by kernels; damaged files are set aside, full disks are told."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from reyn_jupyter.dynamic.definition import DynamicTool
from reyn_jupyter.dynamic.tool_error import DynamicToolError
from reyn_jupyter.dynamic.tool_store import LARGEST, NOT_KEPT, ToolStore
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.support.files.locks import open_lock_file, release, wait_for_lock
from reyn_jupyter.support.files.plain_files import PlainFolder
from tests.dynamic.tool_samples import AT, sample_tool
from tests.support.processes import child


@pytest.fixture
def store(tmp_path: Path) -> ToolStore:
    return ToolStore(tmp_path / "state", durable=False)


def names(store: ToolStore) -> list[str]:
    return [tool.name for tool in store.all()[0]]


def code_of(function: Callable[[], object]) -> str:
    with pytest.raises(DynamicToolError) as caught:
        function()
    assert caught.value.message and caught.value.hint
    return caught.value.code


def used(tool: DynamicTool) -> DynamicTool:
    return tool.used(True, AT)


def test_a_tool_is_kept_in_the_persons_own_state_and_private(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "workspace", tmp_path / "state")
    store = ToolStore(state)
    assert store.all() == ((), ()) and not state.path.exists()
    tool = sample_tool()
    store.add(tool, 100)
    again = ToolStore(StateFolder(tmp_path / "workspace", tmp_path / "state"))
    assert again.get("reverse") == again.get(tool.id) == tool == again.all()[0][0]
    file = store.path / "reverse.json"
    assert file.is_relative_to(state.path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(store.path.stat().st_mode) == 0o700
    assert json.loads(file.read_text())["code"] == tool.code
    assert ToolStore(StateFolder(tmp_path / "other", tmp_path / "state")).all() == ((), ())


def test_a_name_is_taken_once_in_whatever_case_and_the_id_of_the_other_is_told(store: ToolStore) -> None:
    tool = sample_tool()
    store.add(tool, 100)
    for name in ("reverse", "Reverse"):
        with pytest.raises(DynamicToolError, match=tool.id) as caught:
            store.add(sample_tool(name, code="def execute(params): return 2"), 100)
        assert caught.value.code == "E201"
    assert store.all() == ((tool,), ())


def test_a_hundred_tools_are_the_most_and_one_more_fits_after_a_delete(store: ToolStore) -> None:
    for number in range(100):
        store.add(sample_tool(f"tool_{number:02}"), 100)
    assert code_of(lambda: store.add(sample_tool("one_more"), 100)) == "E202"
    assert names(store) == sorted(names(store)) and len(names(store)) == 100
    assert store.remove("tool_07").name == "tool_07"
    store.add(sample_tool("one_more"), 100)
    assert "one_more" in names(store) and "tool_07" not in names(store)


def test_what_is_not_there_is_told_with_the_name_that_was_meant(store: ToolStore) -> None:
    for function in (store.get, store.remove, lambda name: store.update(name, used)):
        assert code_of(lambda function=function: function("none")) == "E203"
    store.add(sample_tool(), 100)
    with pytest.raises(DynamicToolError) as caught:
        store.get("revers")
    assert "reverse" in caught.value.hint


def test_use_is_kept_and_moves_the_revision_for_the_other_kernel(store: ToolStore, tmp_path: Path) -> None:
    other = ToolStore(tmp_path / "state")
    revisions = [other.revision]
    store.add(sample_tool(), 100)
    revisions.append(other.revision)
    assert store.update("reverse", used).usage_count == 1
    revisions.append(other.revision)
    assert other.get("reverse").usage_count == 1 and other.all()[0][0].confidence_score == 0.52
    assert other.revision == revisions[-1]
    other.remove("reverse")
    assert store.revision == revisions[0] and len(set(revisions)) == 3


def test_an_update_keeps_the_name_and_one_that_fails_changes_nothing(store: ToolStore) -> None:
    store.add(sample_tool(), 100)
    with pytest.raises(ValueError, match="cannot become"):
        store.update("reverse", lambda tool: sample_tool("other"))
    with pytest.raises(ZeroDivisionError):
        store.update("reverse", lambda tool: 1 / 0)  # type: ignore[arg-type, return-value]
    assert store.all() == ((sample_tool(),), ())
    store.update("reverse", used)  # the lock was given back


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"null", b"\xff\xfe", b'{"name": "bad"}', b"[" * 100_000, b"x" * (LARGEST + 1)],
    ids=["empty", "torn", "null", "bytes", "keys", "deep", "large"],
)
def test_a_file_that_is_no_definition_is_set_aside_kept_and_hides_no_other(
    store: ToolStore, content: bytes
) -> None:
    store.add(sample_tool(), 100)
    (store.path / "bad.json").write_bytes(content)
    for _ in range(2):  # it is told of until the person removes it
        tools, problems = store.all()
        assert [tool.name for tool in tools] == ["reverse"]
        assert [(each.name, each.set_aside) for each in problems] == [("bad", True)]
        assert problems[0].file.read_bytes() == content
        assert "damaged" in problems[0].problem and problems[0].file.name in problems[0].problem
    assert code_of(lambda: store.get("bad")) == "E204"
    store.add(sample_tool("bad"), 100)
    assert store.get("bad") == sample_tool("bad")
    problems[0].file.unlink()
    assert store.all()[1] == ()


def test_links_pipes_and_folders_in_the_way_are_set_aside_and_nothing_behind_them_is_touched(
    store: ToolStore, tmp_path: Path
) -> None:
    store.add(sample_tool(), 100)
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text((store.path / "reverse.json").read_text().replace('"reverse"', '"link"'))
    before = elsewhere.read_bytes()
    (store.path / "link.json").symlink_to(elsewhere)
    os.mkfifo(store.path / "pipe.json")
    (store.path / "folder.json").mkdir()
    shutil.copy(store.path / "reverse.json", store.path / "copy.json")
    tools, problems = store.all()
    assert [tool.name for tool in tools] == ["reverse"]
    assert [each.name for each in problems] == ["copy", "folder", "link", "pipe"]
    store.add(sample_tool("link"), 100)
    assert elsewhere.read_bytes() == before


def test_where_the_folder_is_a_link_nothing_is_read_or_kept(store: ToolStore, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state" / "tools").symlink_to(tmp_path / "elsewhere")
    (problem,) = store.all()[1]
    assert "link" in problem.problem
    assert code_of(lambda: store.add(sample_tool(), 100)) == NOT_KEPT
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_definition_that_was_edited_is_told_of_and_refused(store: ToolStore) -> None:
    store.add(sample_tool(), 100)
    file = store.path / "reverse.json"
    file.write_text(file.read_text().replace("[::-1]", '+ open(\\"/etc/passwd\\").read()'))
    (tool,), (problem,) = store.all()
    assert not tool.is_intact and not problem.set_aside and "changed on the disk" in problem.problem
    assert code_of(store.get("reverse").check_intact) == "E204"
    assert code_of(store.update("reverse", used).check_intact) == "E204"  # use does not mend it
    assert code_of(lambda: store.add(sample_tool(), 100)) == "E201"
    store.remove("reverse")
    store.add(sample_tool(), 100)
    store.get("reverse").check_intact()


def test_a_definition_that_is_too_large_is_not_kept(store: ToolStore) -> None:
    large = sample_tool(examples=[{"parameters": {"text": "x" * LARGEST}, "result": ""}])
    assert code_of(lambda: store.add(large, 100)) == "E106"
    assert store.all() == ((), ())


def test_of_many_only_what_changed_is_read_again(store: ToolStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        store.add(sample_tool(f"tool_{number}"), 100)
    store.all()
    opened: list[str] = []
    real = PlainFolder.read

    def watched(self: PlainFolder, name: str, limit: int) -> bytes:
        opened.append(name)
        return real(self, name, limit)

    monkeypatch.setattr(PlainFolder, "read", watched)
    ToolStore(store.path.parent).update("tool_3", used)
    opened.clear()
    assert store.all()[0][23].usage_count == 1
    assert opened == ["tool_3.json"]


def test_a_kernel_that_hangs_with_the_lock_is_told(store: ToolStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add(sample_tool(), 100)
    monkeypatch.setattr("reyn_jupyter.dynamic.tool_store.LONGEST_WAIT", 0.0)
    descriptor = open_lock_file(store.path / ".lock")
    assert wait_for_lock(descriptor)
    with pytest.raises(DynamicToolError, match="another kernel"):
        store.update("reverse", used)
    assert store.get("reverse").usage_count == 0  # reading waits for nobody
    release(descriptor)
    store.update("reverse", used)


# Disks that take no more

FULL = """
    import resource, signal, sys
    from pathlib import Path
    from reyn_jupyter.dynamic.tool_error import DynamicToolError
    from reyn_jupyter.dynamic.tool_store import ToolStore
    from tests.dynamic.tool_samples import AT, sample_tool

    store = ToolStore(Path(sys.argv[1]))
    store.add(sample_tool(), 100)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
    for change in (
        lambda: store.add(sample_tool("other"), 100),
        lambda: store.update("reverse", lambda tool: tool.used(True, AT)),
    ):
        try:
            change()
        except DynamicToolError as error:
            print(error.code, error)
    print(store.all() == ((sample_tool(),), ()), sorted(each.name for each in store.path.iterdir()))
    store.remove("reverse")
    print(store.all())
"""


def test_a_full_disk_is_told_and_leaves_what_was_there(tmp_path: Path) -> None:
    done = child(FULL, str(tmp_path))
    assert done.stdout.splitlines() == [
        f"{NOT_KEPT} the tool other cannot be kept: File too large",
        f"{NOT_KEPT} the tool 'reverse' cannot be changed: File too large",
        "True ['.lock', 'reverse.json']",
        "((), ())",
    ], done.stderr


READ_ONLY = """
    import os, sys
    from pathlib import Path
    from reyn_jupyter.dynamic.tool_error import DynamicToolError
    from reyn_jupyter.dynamic.tool_store import ToolStore
    from tests.dynamic.tool_samples import AT, sample_tool

    other = sample_tool("other")                    # everything is imported before the rights are given up
    import filelock, jsonschema_rs
    if os.getuid() == 0:
        os.setuid(65534)
    store = ToolStore(Path(sys.argv[1]))
    print(store.get("reverse") == sample_tool(), [each.name for each in store.all()[1]])
    for change in (
        lambda: store.add(other, 100),
        lambda: store.update("reverse", lambda tool: tool.used(True, AT)),
        lambda: store.remove("reverse"),
    ):
        try:
            change()
        except DynamicToolError as error:
            print(error.code)
    print(sorted(each.name for each in store.path.iterdir()))
"""


def test_in_a_folder_that_cannot_be_written_tools_are_read_and_damage_is_told() -> None:
    folder = Path(tempfile.mkdtemp())  # not under tmp_path, whose parents another user may not enter
    try:
        store = ToolStore(folder)
        store.add(sample_tool(), 100)
        (store.path / "bad.json").write_text("{")
        for path in (store.path / "reverse.json", store.path / "bad.json", store.path / ".lock"):
            path.chmod(0o444)
        store.path.chmod(0o555)
        folder.chmod(0o555)
        done = child(READ_ONLY, str(folder))
    finally:
        folder.chmod(0o755)
        store.path.chmod(0o755)
        shutil.rmtree(folder)
    assert done.stdout.splitlines() == [
        "True ['bad']", NOT_KEPT, NOT_KEPT, NOT_KEPT, "['.lock', 'bad.json', 'reverse.json']",
    ], done.stderr  # fmt: skip


# Kills, and kernels beside each other

# A process forks one that ends itself by SIGKILL before its n-th call into the operating system, for each n until it
# gets through; what it left is looked at after each.
KILLS = """
    import os, signal, sys
    from pathlib import Path
    from reyn_jupyter.dynamic.tool_store import ToolStore
    from tests.dynamic.tool_samples import AT, sample_tool

    CALLS = ("open", "write", "close", "fsync", "replace", "rename", "unlink", "mkdir", "stat", "lstat", "scandir")
    root = Path(sys.argv[1])
    reverse, other = sample_tool(), sample_tool("other")
    used = reverse.used(True, AT)
    store = ToolStore(root)

    def die_before(number):
        count = 0
        def counting(real):
            def call(*args, **more):
                nonlocal count
                count += 1
                if count == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **more)
            return call
        for name in CALLS:
            real = getattr(os, name)
            setattr(os, name, counting(real))
            if real in os.supports_dir_fd:
                os.supports_dir_fd.add(getattr(os, name))

    def killed(operation, number):
        pid = os.fork()
        if pid == 0:
            try:
                own = ToolStore(root)
                die_before(number)
                operation(own)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        assert status in (0, signal.SIGKILL), status
        return status != 0

    def clean():
        for each in store.all()[0]:
            store.remove(each.name)

    operations = {
        "create": (lambda own: own.add(other, 100), ([reverse], [other, reverse])),
        "use": (lambda own: own.update("reverse", lambda tool: tool.used(True, AT)), ([reverse], [used])),
        "delete": (lambda own: own.remove("reverse"), ([reverse], [])),
    }
    for name, (operation, states) in operations.items():
        seen, number = [], 0
        while True:
            number += 1
            clean()
            store.add(reverse, 100)
            dead = killed(operation, number)
            tools, problems = ToolStore(root).all()
            assert problems == () and list(tools) in states, (name, number, tools, problems)
            seen.append(states.index(list(tools)))
            store.add(sample_tool("next"), 100)        # the lock is free, and leftovers go
            assert not list(store.path.glob(".*.part")), (name, number)
            store.remove("next")
            if not dead:
                break
        assert seen == sorted(seen) and seen[-1] == 1, seen
        print(name, number > 10, set(seen) == {0, 1})
"""


def test_a_kill_at_any_moment_leaves_the_tool_as_it_was_before_or_after(tmp_path: Path) -> None:
    done = child(KILLS, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["create True True", "use True True", "delete True True"]


RANDOM_KILLS = """
    import os, random, select, signal, sys
    from pathlib import Path
    from reyn_jupyter.dynamic.tool_error import DynamicToolError
    from reyn_jupyter.dynamic.tool_store import ToolStore
    from tests.dynamic.tool_samples import AT, sample_tool

    root = Path(sys.argv[1])
    tools = [sample_tool(f"tool_{number}") for number in range(4)]
    rounds = random.Random(15)
    for _ in range(60):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            store, own = ToolStore(root, durable=False), random.Random(rounds.random())
            while True:
                tool = own.choice(tools)
                try:
                    own.choice((
                        lambda: store.add(tool, 100),
                        lambda: store.update(tool.name, lambda each: each.used(True, AT)),
                        lambda: store.remove(tool.name),
                    ))()
                except DynamicToolError as error:
                    if error.code not in ("E201", "E203"):
                        print(error.code, error, file=sys.stderr, flush=True)
                        os._exit(1)
                os.write(writing, b".")
        os.close(writing)
        rounds.random()
        for _ in range(rounds.randrange(1, 12)):
            assert os.read(reading, 1) == b"."
        select.select([], [], [], rounds.random() * 0.002)
        os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL
        os.close(reading)
        found, problems = ToolStore(root).all()
        assert problems == () and all(tool.is_intact for tool in found)
    print("whole")
"""


def test_kills_of_a_busy_kernel_leave_whole_files(tmp_path: Path) -> None:
    done = child(RANDOM_KILLS, str(tmp_path))
    assert done.stdout == "whole\n", done.stderr


TWO_KERNELS = """
    import os, sys
    from pathlib import Path
    from reyn_jupyter.dynamic.tool_error import DynamicToolError
    from reyn_jupyter.dynamic.tool_store import ToolStore
    from tests.dynamic.tool_samples import AT, sample_tool

    root = Path(sys.argv[1])

    def at_once(*operations):
        "Run each in a process of its own, all from the same moment; return their exit statuses."
        reading, writing = os.pipe()
        pids = []
        for operation in operations:
            pids.append(os.fork())
            if pids[-1] == 0:
                os.close(writing)
                os.read(reading, 1)                  # ends when the writing end is closed
                try:
                    operation(ToolStore(root, durable=False))
                except DynamicToolError as error:
                    os._exit(int(error.code[1:]) - 200 if error.code[0] == "E" else 99)
                except BaseException as error:
                    print(repr(error), file=sys.stderr, flush=True)
                    os._exit(98)
                os._exit(0)
        os.close(reading), os.close(writing)
        return sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids)

    store = ToolStore(root, durable=False)
    for round in range(40):
        made = [sample_tool("same", code=f"def execute(params): return {number}") for number in range(3)]
        assert at_once(*(lambda own, tool=tool: own.add(tool, 100) for tool in made)) == [0, 1, 1]
        assert store.get("same") in made and len(store.all()[0]) == 1
        store.remove("same")
    most = [lambda own, name=name: own.add(sample_tool(name), 2) for name in ("a", "b", "c", "d")]
    assert at_once(*most) == [0, 0, 2, 2]            # two are the most
    (first, second), _ = store.all()

    def use(own):
        for _ in range(25):
            own.update(first.name, lambda tool: tool.used(True, AT))

    assert at_once(use, use, use) == [0, 0, 0]
    assert store.get(first.name).usage_count == 75
    gone = [lambda own: own.remove(second.name)] * 3
    assert at_once(*gone) == [0, 3, 3]
    (store.path / "bad.json").write_text("{")
    assert at_once(*([lambda own: own.all()] * 3)) == [0, 0, 0]
    assert len(list(store.path.glob("bad.json*"))) == 1
    print("safe")
"""


def test_of_kernels_that_add_one_name_at_once_exactly_one_wins_and_no_use_is_lost(tmp_path: Path) -> None:
    done = child(TWO_KERNELS, str(tmp_path))
    assert done.stdout == "safe\n", done.stderr


class TwoStores(RuleBasedStateMachine):
    """Two kernels on one folder, against a mapping of what must be there."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.stores = [ToolStore(Path(self.folder.name), durable=False) for _ in range(2)]
        self.expected: dict[str, DynamicTool] = {}
        self.revision = self.stores[0].revision
        self.before: dict[str, DynamicTool] = {}

    @rule(
        which=st.integers(0, 1), name=st.sampled_from(["a", "A", "b", "c", "a-1"]), code=st.sampled_from("12")
    )
    def add(self, which: int, name: str, code: str) -> None:
        tool = sample_tool(name, code=f"def execute(params): return {code}")
        if name.casefold() in {each.casefold() for each in self.expected}:
            assert code_of(lambda: self.stores[which].add(tool, 3)) == "E201"
        elif len(self.expected) >= 3:
            assert code_of(lambda: self.stores[which].add(tool, 3)) == "E202"
        else:
            self.stores[which].add(tool, 3)
            self.expected[name] = tool

    @rule(which=st.integers(0, 1), name=st.sampled_from(["a", "A", "b", "c"]), by_id=st.booleans())
    def remove(self, which: int, name: str, by_id: bool) -> None:
        if name in self.expected:
            tool = self.expected.pop(name)
            assert self.stores[which].remove(tool.id if by_id else name) == tool
        else:
            assert code_of(lambda: self.stores[which].remove(name)) == "E203"

    @rule(which=st.integers(0, 1), name=st.sampled_from(["a", "A", "b", "c"]), success=st.booleans())
    def use(self, which: int, name: str, success: bool) -> None:
        if name in self.expected:
            self.expected[name] = self.expected[name].used(success, AT)
            assert self.stores[which].update(name, lambda tool: tool.used(success, AT)) == self.expected[name]
        else:
            assert code_of(lambda: self.stores[which].update(name, used)) == "E203"

    @invariant()
    def both_see_the_same(self) -> None:
        for store in self.stores:
            tools, problems = store.all()
            assert problems == ()
            assert {tool.name: store.get(tool.name) for tool in tools} == self.expected
            assert [store.get(tool.id).name for tool in tools] == sorted(self.expected)
        if self.before != self.expected:
            assert self.stores[0].revision == self.stores[1].revision != self.revision
            self.before, self.revision = dict(self.expected), self.stores[0].revision

    def teardown(self) -> None:
        self.folder.cleanup()


TwoStores.TestCase.settings = settings(deadline=None, max_examples=40, stateful_step_count=20)
test_two_stores_agree_whatever_they_do = TwoStores.TestCase
