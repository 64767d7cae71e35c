"""Running commands in a sandbox: what comes back, what is bounded, and what is left when it ends."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from reyn_jupyter.guard.held_place import HeldFolder
from reyn_jupyter.guard.sandbox import (
    Confinement,
    Sandbox,
    SandboxedProgram,
    SandboxError,
    SandboxLimits,
)
from reyn_jupyter.guard.sandbox.backend import SandboxBackend
from reyn_jupyter.guard.sandbox.bubblewrap import Bubblewrap, BubblewrapLaunch
from reyn_jupyter.guard.sandbox.hidden_files import hidden_files
from reyn_jupyter.guard.sandbox.landlock import Landlock
from reyn_jupyter.guard.sandbox.launcher import _processes
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.support.secret import Secret
from tests.support.processes import is_gone, started
from tests.support.waiting import awaited, until

_SEIZE, _ANY_CHILD = 0x4206, 0x40000000  # PTRACE_SEIZE, __WALL
BACKENDS: tuple[SandboxBackend, ...] = (Bubblewrap(), Landlock())


@pytest.fixture(params=BACKENDS, ids=lambda backend: str(backend.name))
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    if (problem := request.param.problem()) is not None:
        pytest.skip(f"{request.param.name} is not here: {problem}")
    return Sandbox(request.param)


@pytest.fixture
def place(tmp_path: Path) -> Confinement:
    (tmp_path / "in.txt").write_text("given", encoding="ascii")
    (tmp_path / "out").mkdir()
    return Confinement(tmp_path, readable=(tmp_path,), writable=(tmp_path / "out",))


async def test_a_command_reads_its_folder_writes_where_it_may_and_says_what_held_it(
    sandbox: Sandbox, place: Confinement
) -> None:
    code = "text = open('in.txt').read(); open('out/made.txt', 'w').write(text); print(text); exit(3)"
    result = await sandbox.run(["python", "-c", code], place)
    assert (result.status, result.returncode, result.stdout, result.stderr) == ("failed", 3, b"given\n", b"")
    assert (place.folder / "out" / "made.txt").read_text(encoding="ascii") == "given"
    assert result.backend == sandbox.name
    assert "system calls filtered" in result.isolation


@pytest.mark.parametrize("seen", ["readable", "writable"])
async def test_a_path_that_is_swapped_after_it_was_judged_gives_nothing_else(
    sandbox: Sandbox, seen: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    victim, data = tmp_path_factory.mktemp("victim"), tmp_path / "data" / "in"
    data.mkdir(parents=True)
    for folder in (victim, data):
        (folder / "key.txt").write_text(folder.name, encoding="ascii")
    held = HeldFolder(os.fspath(tmp_path), "data")
    data.rename(tmp_path / "data" / "moved")
    data.symlink_to(victim)
    below = Confinement(tmp_path / "data", (data,), held={tmp_path / "data": held.descriptor})
    with pytest.raises(SandboxError, match="cannot be shown in the sandbox"):
        await sandbox.run(["cat", "in/key.txt"], below)
    (tmp_path / "data").rename(tmp_path / "old")
    (tmp_path / "data").symlink_to(victim)
    whole = Confinement(Path("/"), held={tmp_path / "data": held.descriptor}, **{seen: (tmp_path / "data",)})
    code = f"import os; p = {os.fspath(tmp_path / 'data' / 'key.txt')!r}; print(open(p).read()); open(p, 'w')"
    result = await sandbox.run(["python", "-c", code], whole)
    assert result.stdout == b"" and result.returncode
    assert (victim / "key.txt").read_text(encoding="ascii") == victim.name
    held.close()


async def test_what_bubblewrap_says_is_told_when_it_cannot_make_the_sandbox(place: Confinement) -> None:
    backend = Bubblewrap()
    if (problem := backend.problem()) is not None:
        pytest.skip(problem)
    gone = place.folder / "gone.env"
    for _ in range(10):  # it ends before it is let go, or a moment later
        with pytest.raises(SandboxError, match=r"could not make the sandbox: bwrap: .*gone\.env"):
            await Sandbox(backend).run(["true"], Confinement(place.folder, place.readable, hidden=(gone,)))


async def test_a_hidden_file_that_disappears_or_is_replaced_at_the_start_is_judged_again(
    sandbox: Sandbox, place: Confinement
) -> None:
    secret, judged = place.folder / ".env", []
    secret.write_text("KEY=old", encoding="ascii")

    def confinement() -> Confinement:
        hidden = hidden_files(Workspace(place.folder, off_limits=()))
        judged.append(hidden)
        if len(judged) == 1:
            secret.unlink()
        elif len(judged) == 2:
            (place.folder / "new").write_text("KEY=new", encoding="ascii")
            (place.folder / "new").rename(secret)
            hidden = {secret: 1}
        return Confinement(place.folder, (place.folder,), hidden=hidden)

    result = await sandbox.run(["sh", "-c", "cat .env; true"], confinement)
    assert (result.returncode, result.stdout) == (0, b"")
    assert len(judged) == 3

    def always() -> Confinement:
        return Confinement(place.folder, (place.folder,), hidden={secret: 1})

    with pytest.raises(SandboxError, match=r"\.env is hidden from commands, and it was moved"):
        await sandbox.run(["cat", ".env"], always)


async def test_a_python_that_knows_no_descriptors_of_processes_runs_commands_and_ends_them(
    sandbox: Sandbox, place: Confinement, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((os, "pidfd_open"), (signal, "pidfd_send_signal")):  # as those of conda are made
        monkeypatch.delattr(module, name, raising=False)
    assert (await sandbox.run(["true"], place)).status == "ok"
    assert (await sandbox.run(["sleep", "600"], place, SandboxLimits(seconds=0.5))).status == "timeout"


async def test_no_other_process_is_killed_that_has_the_number_of_one_that_ended(place: Confinement) -> None:
    backend = Bubblewrap()
    if (problem := backend.problem()) is not None:
        pytest.skip(problem)
    other = await asyncio.create_subprocess_exec("sleep", "600")
    program = await Sandbox(backend).open(["sleep", "600"], place)
    launch = program._launch
    assert isinstance(launch, BubblewrapLaunch)
    launch._inside = other.pid  # what the system does with numbers
    await program.end()
    assert other.returncode is None and psutil.pid_exists(other.pid)
    other.kill()
    assert await other.wait() == -signal.SIGKILL


async def test_the_environment_is_clean_but_for_what_was_given(
    sandbox: Sandbox, place: Confinement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "not-for-commands")
    given = Confinement(place.folder, place.readable, environment={"TOKEN": Secret("TOKEN", "for-this-one")})
    result = await sandbox.run(["env"], given)
    names = {line.partition("=")[0] for line in result.stdout.decode().splitlines()}
    assert {"PATH", "HOME", "TMPDIR", "TOKEN"} <= names
    assert "SOME_API_KEY" not in names
    assert b"TOKEN=for-this-one" in result.stdout


async def test_output_is_heard_as_it_comes_and_the_rest_is_counted(
    sandbox: Sandbox, place: Confinement
) -> None:
    heard: list[tuple[str, bytes]] = []
    first = asyncio.Event()

    def hear(stream: str, piece: bytes) -> None:
        heard.append((stream, piece))
        first.set()

    code = "import sys; print('first', flush=True); input(); sys.stderr.write('x' * 100_000)"
    program = await sandbox.open(["python", "-c", code], place)
    assert program.process.stdout is not None
    assert await program.process.stdout.readline() == b"first\n"  # while it waits for its input
    await program.end()

    result = await sandbox.run(
        ["python", "-c", code], place, SandboxLimits(output=1000), stdin=b"go\n", on_output=hear
    )
    assert ("stdout", b"first\n") in heard
    assert (result.stderr, result.stderr_bytes, result.truncated) == (b"x" * 1000, 100_000, True)


async def test_a_command_that_is_too_slow_is_ended_with_all_that_it_started(
    sandbox: Sandbox, place: Confinement
) -> None:
    marker = f"700.{os.getpid()}"
    result = await sandbox.run(
        ["bash", "-c", f"sleep {marker} & setsid sleep {marker} & wait"], place, SandboxLimits(seconds=0.5)
    )
    assert (result.status, result.returncode, result.reason) == ("timeout", None, "more than 0.5 seconds")
    await awaited(lambda: not _running(marker))


LEAVES_ONE = """
import subprocess, sys
held = "import sys, time; kept = bytearray(300 << 20); print('there', flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", held], stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
print("there", flush=True)
input()
"""


async def test_what_a_command_leaves_is_gone_when_its_end_is_told(
    sandbox: Sandbox, place: Confinement
) -> None:
    """What it leaves holds much memory, which takes the system a while to take back."""
    program = await sandbox.open(["python", "-c", LEAVES_ONE], place)
    assert program.process.stdin is not None and program.process.stdout is not None
    assert await program.process.stdout.readline() == b"there\n"
    started_there = [each.pid for each in psutil.Process(program.process.pid).children(recursive=True)]
    program.process.stdin.write(b"\n")
    assert await program.wait() == 0
    assert started_there and all(map(is_gone, started_there))


async def test_a_process_that_is_slow_to_die_is_waited_for(place: Confinement) -> None:
    program, held = await _held_program(place)
    ending = asyncio.create_task(program.end())
    await asyncio.sleep(1)  # ten times as long as a thousand looks at it take
    assert not ending.done()
    _let_die(held)
    await ending
    assert not psutil.pid_exists(held)


async def test_a_process_that_does_not_die_is_told_of(place: Confinement) -> None:
    program, held = await _held_program(place)
    try:
        with pytest.raises(
            SandboxError, match=rf"has ended, though it was killed: {held} \(sleep, state Z\)"
        ) as told:
            await program.end()
        assert told.value.began and "end what it waits for" in told.value.hint
    finally:
        _let_die(held)


async def test_an_interrupt_stays_one_where_a_process_does_not_die(place: Confinement) -> None:
    backend, known, said = _landlock(), set(psutil.Process().children()), asyncio.Event()
    running = asyncio.create_task(
        Sandbox(backend).run(_COMMAND, place, on_output=lambda stream, piece: said.set())
    )
    await said.wait()
    (launcher,) = set(psutil.Process().children()) - known
    held = await _held_process(launcher.pid)
    if held is None:
        running.cancel()
        pytest.skip(_NO_DEBUGGER)
    try:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert running.cancelled() and not launcher.is_running()
    finally:
        _let_die(held)


_COMMAND = ["bash", "-c", "echo; setsid sleep 600 & wait"]
_NO_DEBUGGER = "no process may be debugged here"


def _landlock() -> Landlock:
    backend = Landlock()
    if (problem := backend.problem()) is not None:
        pytest.skip(problem)
    return backend


async def _held_program(place: Confinement) -> tuple[SandboxedProgram, int]:
    """Return a program under way, and a process of it whose death this process holds up, as its debugger."""
    program = await Sandbox(_landlock()).open(_COMMAND, place, SandboxLimits(seconds=None))
    held = await _held_process(program.process.pid)
    if held is None:
        await program.end()
        pytest.skip(_NO_DEBUGGER)
    return program, held


async def _held_process(launcher: int) -> int | None:
    """Return what the command started, held up by this process; None where that is not allowed."""
    found = list[psutil.Process]()

    def look() -> bool:
        children = psutil.Process(launcher).children(recursive=True)
        found[:] = [each for each in children if each.name() == "sleep"]
        return bool(found)

    await awaited(look)
    return found[0].pid if ctypes.CDLL(None).ptrace(_SEIZE, found[0].pid, None, None) >= 0 else None


def _let_die(held: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(held, _ANY_CHILD)


def test_the_name_of_a_process_that_is_left_reaches_no_terminal_as_a_control_character() -> None:
    code = "open('/proc/self/comm', 'w').write('a\\x1b[2J\\r\\x07\\tb'); print(flush=True); input()"
    with started(code) as renamed:
        assert renamed.stdout is not None
        renamed.stdout.readline()
        assert _processes([renamed.pid]).startswith(f"{renamed.pid} (a?[2J???b, state ")
        renamed.kill()


DEEP = """
import os
os.chdir(os.environ["TMPDIR"])
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
os.chmod(".", 0)
print("there")
"""


async def test_what_a_command_made_of_its_temporary_folder_is_no_error_and_not_left(
    sandbox: Sandbox,
    place: Confinement,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    result = await sandbox.run(["python", "-c", DEEP], place)
    assert (result.status, result.stdout) == ("ok", b"there\n")
    await awaited(lambda: not list(temporary.iterdir()))


@pytest.fixture
def many_open_files() -> Iterator[None]:
    """Have more open files than `select` takes, as a kernel that lives long may have."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    with ExitStack() as held:
        for _ in range(1100):
            held.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_open_files")
async def test_limits_hold_in_a_kernel_with_many_open_files(sandbox: Sandbox, place: Confinement) -> None:
    marker = f"703.{os.getpid()}"
    result = await sandbox.run(
        ["bash", "-c", f"setsid sleep {marker} & wait"], place, SandboxLimits(seconds=0.5)
    )
    assert result.status == "timeout"
    await awaited(lambda: not _running(marker))

    crowd = f"for number in 1 2 3 4 5 6 7 8; do setsid sleep {marker} & done; wait"
    program = await sandbox.open(["bash", "-c", crowd], place, SandboxLimits(seconds=None, processes=5))
    await awaited(lambda: not program.is_running)
    assert program.exceeded == "more than 5 processes and threads"
    await program.end()
    await awaited(lambda: not _running(marker))


async def test_an_interrupt_ends_the_command(sandbox: Sandbox, place: Confinement) -> None:
    marker = f"701.{os.getpid()}"
    task = asyncio.create_task(sandbox.run(["sleep", marker], place))
    await awaited(lambda: _running(marker))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await awaited(lambda: not _running(marker))
    assert sandbox.is_idle


async def test_a_program_lives_until_its_owner_or_the_sandbox_ends_it(
    sandbox: Sandbox, place: Confinement
) -> None:
    programs = [await sandbox.open(["cat"], place, SandboxLimits(seconds=None)) for _ in range(2)]
    for program in programs:
        assert program.process.stdin is not None
        assert program.process.stdout is not None
        program.process.stdin.write(b"hello\n")
        assert await program.process.stdout.readline() == b"hello\n"
    await programs[0].end()
    assert not programs[0].is_running
    assert programs[1].is_running
    await sandbox.close()
    assert not programs[1].is_running


async def test_a_program_that_is_not_there_is_named_with_where_it_was_looked_for(
    sandbox: Sandbox, place: Confinement
) -> None:
    with pytest.raises(SandboxError, match="there is no program 'no-such-program'") as refused:
        await sandbox.run(["no-such-program"], place)
    assert "/usr/bin" in refused.value.hint
    with pytest.raises(SandboxError, match="it is not executable"):
        await sandbox.run(["./in.txt"], place)
    for nothing in ([], [""], ["true", "a\0b"]):
        with pytest.raises(SandboxError):
            await sandbox.run(nothing, place)


async def test_no_descriptor_and_no_file_is_left_after_runs(
    sandbox: Sandbox,
    place: Confinement,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    await sandbox.run(["true"], place)
    own = psutil.Process()
    before = own.num_fds()
    for _ in range(5):
        await sandbox.run(["true"], place)
        with pytest.raises(SandboxError):
            await sandbox.run(["no-such-program"], place)
    await awaited(lambda: own.num_fds() <= before)  # transports close on the loop
    assert not list(temporary.iterdir())


OWNER = """
import asyncio, sys
from pathlib import Path
from reyn_jupyter.guard.sandbox import Confinement, Sandbox, SandboxLimits
from reyn_jupyter.guard.sandbox.bubblewrap import Bubblewrap
from reyn_jupyter.guard.sandbox.landlock import Landlock

async def main():
    backend = {"bubblewrap": Bubblewrap, "landlock": Landlock}[sys.argv[1]]()
    place = Confinement(Path("/usr"))
    command = ["bash", "-c", f"(setsid sleep {sys.argv[2]} &) ; echo started; sleep {sys.argv[2]}"]
    program = await Sandbox(backend).open(command, place, SandboxLimits(seconds=None))
    await program.process.stdout.readline()
    print("started", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a sandbox for programs")
def test_kill_9_of_the_kernel_leaves_no_child(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = f"702.{os.getpid()}"
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with started(OWNER, sandbox.name, marker) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "started\n"
        # A process that becomes another program has no words for a moment.
        until(lambda: len(_running(marker)) >= 2)
        children = [each.pid for each in psutil.Process(owner.pid).children(recursive=True)]
        folders = list(tmp_path.iterdir())
        assert bool(folders) == (sandbox.name == "landlock"), "bubblewrap's lie in its own view of the system"
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        until(lambda: not _running(marker) and all(map(is_gone, children)))
        until(lambda: not any(path.exists() for path in folders))


def _running(marker: str) -> list[int]:
    found = psutil.process_iter(["cmdline", "status"])
    return [
        each.pid
        for each in found
        if marker in " ".join(each.info["cmdline"] or ()) and each.info["status"] != psutil.STATUS_ZOMBIE
        and "python" not in (each.info["cmdline"] or [""])[0]
    ]  # fmt: skip


WATCH = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
watch = libc.inotify_add_watch(libc.inotify_init1(0), b"/", 0x100)
print("watched" if watch >= 0 else os.strerror(ctypes.get_errno()))
"""


async def test_a_command_under_landlock_watches_no_folder(sandbox: Sandbox, place: Confinement) -> None:
    result = await sandbox.run(["python", "-c", WATCH], place)
    expected = b"Operation not permitted\n" if sandbox.name == "landlock" else b"watched\n"
    assert (result.status, result.stdout) == ("ok", expected)
