"""The sandbox by bubblewrap: a view of the file system, processes, network and users of the command's own.

Invariants: the command sees the paths of its confinement, read-only but for the writable ones, and nothing else of
the machine. Those of the confinement are bound by descriptors, so that a path that is swapped shows nothing else.
It has no network but a loopback of its own; where hosts are given, our proxy listens there, and nothing
else leads out. The system kills all of it when the process that started it ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path

from reyn_jupyter.guard.sandbox.backend import file_of, read_to_end, wait_for_end
from reyn_jupyter.guard.sandbox.confinement import Confinement, Language, SandboxError, SandboxLimits, View
from reyn_jupyter.guard.sandbox.egress import PORT, EgressProxy, received_listener
from reyn_jupyter.guard.sandbox.probe import probe_problem
from reyn_jupyter.guard.sandbox.process_count import ProcessCount, count_processes, give_back
from reyn_jupyter.guard.sandbox.syscall_filter import is_supported, syscall_filter
from reyn_jupyter.guard.sandbox.visible_system import environment, system_paths
from reyn_jupyter.support.programs.program_search import find_program

TEMPORARY = "/tmp"  # noqa: S108 - a folder of the command's own, in memory
_EMPTY = Path(__file__).parent / "empty_file"
_NOBODY = "65534"
_MOST_HIDDEN = 2000  # mounts
_LARGEST_COPY = 1 << 20  # bytes
_PAUSE = 0.001  # seconds between two looks at a sandbox that is being made
_NAMESPACES = (
    "--unshare-user", "--unshare-all", "--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "sandbox",
    "--die-with-parent", "--new-session", "--cap-drop", "ALL",
)  # fmt: skip
# Makes the socket in which our proxy listens, hands it out of the sandbox, and becomes the command.
_LISTEN = f"""
import os, socket, sys
way = socket.socket(fileno=int(sys.argv[1]))
listener = socket.socket()
listener.bind(("127.0.0.1", {PORT}))
listener.listen(64)
socket.send_fds(way, [b"."], [listener.fileno()])
way.close()
listener.close()
os.execvp(sys.argv[2], sys.argv[2:])
"""


class Bubblewrap:
    """Runs programs in namespaces of their own, by the program ``bwrap``.

    Args:
        program: another one than that on the PATH.
    """

    name = "bubblewrap"
    language: Language = "program"
    view: View = "own"
    isolation = (
        "own file system (nothing outside of the given folders is there), processes, users, IPC and network; "
        "no new privileges, system calls filtered"
    )

    def __init__(self, program: str | None = None) -> None:
        self._program = program

    @cached_property
    def _has_proc(self) -> bool:
        """Whether a /proc of its own can be mounted; in some containers it cannot, and there is none then."""
        return self._probe(proc=True) is None

    def problem(self) -> str | None:
        if sys.platform != "linux":
            return "it is for Linux alone"
        if not is_supported():
            return "there is no filter of system calls for this processor"
        if self._found() is None:
            return "bwrap is not installed (sudo apt-get install bubblewrap, or the same of another system)"
        if self._has_proc:
            return None
        why = self._probe(proc=False)
        if why is not None and "bind-fd" in why:
            return "bwrap is too old: it has no --ro-bind-fd (update bubblewrap)"
        return None if why is None else f"bwrap is there and does not isolate: {why}"

    def launch(
        self, argv: Sequence[str], confinement: Confinement, limits: SandboxLimits
    ) -> BubblewrapLaunch:
        return self._launch(argv, confinement, limits, self._has_proc)

    def _probe(self, proc: bool) -> str | None:
        # It is bound by its descriptor, which old versions cannot do.
        shown = Confinement(Path("/"), readable=(_EMPTY,))
        return probe_problem(lambda argv: self._launch(argv, shown, SandboxLimits(), proc))

    def _launch(
        self, argv: Sequence[str], confinement: Confinement, limits: SandboxLimits, proc: bool
    ) -> BubblewrapLaunch:
        program = self._found()
        if program is None:
            raise SandboxError("bwrap is gone from this machine", "Install bubblewrap again.")
        return BubblewrapLaunch(program, argv, confinement, limits, proc)

    def _found(self) -> str | None:
        return self._program or find_program("bwrap")


class BubblewrapLaunch:
    """A command as bubblewrap starts it, held back until its limits are set from outside."""

    def __init__(
        self, program: str, argv: Sequence[str], confinement: Confinement, limits: SandboxLimits, proc: bool
    ) -> None:
        self._limits = limits
        self._confinement = confinement
        self._inside = 0
        self._first = -1  # the descriptor of the process `_inside`
        self._count: ProcessCount | None = None
        options, opened = _system_view(str(limits.temporary_bytes), proc)
        try:
            view = [*_places(confinement, opened)]
        except SandboxError:
            for descriptor in opened:
                os.close(descriptor)
            raise
        view += ("--chdir", os.fspath(confinement.folder), "--remount-ro", "/")
        self.proxy = EgressProxy(confinement.hosts) if confinement.hosts else None
        self._way: socket.socket | None = None
        self.env: Mapping[str, str] = environment(confinement, TEMPORARY, self.proxy)
        self.cwd = "/"
        info, info_theirs = os.pipe()
        held_theirs, held = _pipe_without_end()
        arguments = file_of(options + _encoded(view))
        calls = file_of(syscall_filter())
        self._pipes: tuple[int, ...] = (info, held)
        self.descriptors: tuple[int, ...] = (info_theirs, held_theirs, arguments, calls, *opened)
        first: tuple[str, ...] = ()
        if self.proxy is not None:
            self._way, theirs = socket.socketpair()
            first = (sys.executable, "-I", "-S", "-c", _LISTEN, str(theirs.fileno()))
            self.descriptors += (theirs.detach(),)
        self.argv: Sequence[str] = (
            program, "--info-fd", str(info_theirs), "--block-fd", str(held_theirs), "--seccomp", str(calls),
            "--args", str(arguments), "--", *first, *argv,
        )  # fmt: skip

    async def release(self, process: asyncio.subprocess.Process) -> None:
        said = await read_to_end(self._pipes[0])
        try:
            self._inside = inside = int(json.loads(said)["child-pid"])
        except (ValueError, KeyError):
            raise SandboxError("bubblewrap could not make the sandbox") from None
        import resource  # not everywhere, and the category is loaded there all the same

        # A Linux before 5.3, or a Python made for one, has none; or it ended meanwhile.
        with suppress(OSError, AttributeError):
            self._first = os.pidfd_open(inside)
        self._count = count_processes(self._limits.processes)
        with suppress(ProcessLookupError):  # it ended meanwhile
            if self._count is not None:
                self._count.add(inside)
            for kind, most in rlimits(self._limits):
                resource.prlimit(inside, kind, (most, most))
        await self._begin_and_wait(process)
        if self.proxy is not None and self._way is not None:
            await self.proxy.serve(await received_listener(self._way))

    async def _begin_and_wait(self, process: asyncio.subprocess.Process) -> None:
        """Let the command begin, and wait until its view is made. Raises SandboxError if it could not be made."""
        import fcntl
        import termios

        self._confinement.check_hidden()
        with suppress(BrokenPipeError):  # it ended meanwhile, and its own message says why
            self.begin()
            # bubblewrap takes the byte when everything is mounted, and ends without it otherwise.
            while process.returncode is None:
                if not struct.unpack("i", fcntl.ioctl(self._pipes[1], termios.FIONREAD, bytes(4)))[0]:
                    self._confinement.check_hidden()  # what was moved before it was covered can be seen
                    return
                await asyncio.sleep(_PAUSE)
        self._confinement.check_hidden()  # the reason, if one of them disappeared
        raise SandboxError("bubblewrap could not make the sandbox")

    def begin(self) -> None:
        os.write(self._pipes[1], b"1")

    def end(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None and self._inside:
            with suppress(ProcessLookupError):  # the first of its namespace, with which all others end
                if self._first >= 0:  # the number may be another one's by now
                    signal.pidfd_send_signal(self._first, signal.SIGKILL)
                else:
                    os.kill(self._inside, signal.SIGKILL)
        with suppress(ProcessLookupError):
            process.kill()
        self._give_back()

    async def wait_until_gone(self) -> None:
        # bubblewrap ends with its command, and does not wait for what that left: the system kills it then, in its own
        # time. The first process of a namespace ends last.
        if self._first >= 0:
            await wait_for_end(self._first)

    def close(self) -> None:
        first, self._first, self._inside = self._first, -1, 0
        if first >= 0:
            os.close(first)
        self._give_back()

    def _give_back(self) -> None:
        """Give back all but what tells that the command is gone."""
        pipes, self._pipes = self._pipes, ()
        for descriptor in pipes:
            os.close(descriptor)
        if self._way is not None:
            self._way.close()
        if self.proxy is not None:
            self.proxy.close()
        count, self._count = self._count, None
        give_back(count)


def rlimits(limits: SandboxLimits) -> Iterator[tuple[int, int]]:
    """Yield the limits of each process, as the system calls them."""
    import resource

    yield resource.RLIMIT_CPU, limits.cpu_seconds
    yield resource.RLIMIT_DATA, limits.memory
    yield resource.RLIMIT_FSIZE, limits.file_bytes
    yield resource.RLIMIT_NOFILE, limits.open_files
    yield resource.RLIMIT_NPROC, limits.processes
    yield resource.RLIMIT_CORE, 0
    yield resource.RLIMIT_MEMLOCK, 0


def _pipe_without_end() -> tuple[int, int]:
    """Return a pipe of which the reader never sees the end: it may write to it too.

    bubblewrap goes on when its pipe ends; so a command of which the owner is gone would begin.
    """
    read, write = os.pipe()
    both = os.open(f"/proc/self/fd/{read}", os.O_RDWR | os.O_CLOEXEC)
    os.close(read)
    return both, write


def _encoded(options: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(option) + b"\0" for option in options)


def _system_view(size: str, proc: bool) -> tuple[bytes, list[int]]:
    """Return the options that make what every command sees, and the files that they copy, by descriptor."""
    options, files = _system_options(size, proc, system_paths())
    opened: list[int] = []
    copies: list[str] = []
    for path in files:
        with suppress(FileNotFoundError):  # it was replaced or removed meanwhile
            opened.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            copies += ("--file", str(opened[-1]), path)
    return options + _encoded(copies), opened


@cache
def _system_options(size: str, proc: bool, paths: tuple[Path, ...]) -> tuple[bytes, tuple[str, ...]]:
    """Return the options for the namespaces and the paths of the system, and the files to copy.

    A mount takes far longer than a copy of a small file, so there are as few as can be.
    """
    options = [
        *_NAMESPACES,
        "--size",
        size,
        "--perms",
        "1777",
        "--tmpfs",
        TEMPORARY,
    ]  # what lies in it comes after it
    files = []
    for path in paths:
        link = path.readlink() if path.is_symlink() else None
        if link is not None and (path.parent == Path("/") or path.parent / link in paths):
            options += ("--symlink", os.fspath(link), os.fspath(path))  # of other links, what they lead to
        elif path.is_file() and path.stat().st_size <= _LARGEST_COPY:
            files.append(os.fspath(path))  # a copy in the view's own memory
        elif path.is_dir() and not any(names for _, _, names in os.walk(path)):
            options += ("--dir", os.fspath(path))  # it holds no file
        else:
            options += ("--ro-bind", os.fspath(path), os.fspath(path))
    options += ("--dev", "/dev", "--size", size, "--perms", "1777", "--tmpfs", "/dev/shm")  # noqa: S108
    options += ("--remount-ro", "/dev")
    if proc:
        # Read-only: to root, whose name the command has outside of its view, settings of the system are writable there.
        options += ("--proc", "/proc", "--remount-ro", "/proc")
    return _encoded(options), tuple(files)


def _places(confinement: Confinement, opened: list[int]) -> Iterator[str]:
    """Yield the options that show the files and folders of a confinement; what they bind is added to `opened`."""
    if len(confinement.hidden) > _MOST_HIDDEN:
        raise SandboxError(
            f"{len(confinement.hidden):,} files and folders would have to be hidden, and {_MOST_HIDDEN:,} can be",
            "Work in a folder with fewer files that hold secrets or that rules deny.",
        )
    places = [(path, "--ro-bind-fd") for path in confinement.readable if path not in confinement.writable]
    places += [(path, "--bind-fd") for path in confinement.writable]
    for path, kind in sorted(places, key=lambda place: len(place[0].parts)):
        if path == Path("/"):
            raise SandboxError("the whole disk cannot be shown in a sandbox", "Work in a folder of it.")
        opened.append(confinement.open(path))
        yield from (kind, str(opened[-1]), os.fspath(path))
    for path in confinement.hidden:
        if path.is_dir():
            yield from ("--perms", "0000", "--tmpfs", os.fspath(path), "--remount-ro", os.fspath(path))
        else:
            yield from ("--ro-bind", os.fspath(_EMPTY), os.fspath(path))
