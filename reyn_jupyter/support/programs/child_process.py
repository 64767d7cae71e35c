"""A child process that answers requests: how it is started, limited, spoken with and ended.

Invariants: a child is a fresh interpreter, never a fork of a process with threads. It gets no environment of
the person's, no descriptor but its two channels and what a request hands over, and no folder that anything could
be written to. It ends with its parent, even one that was killed while the child computes; no file is left on the disk.
What it answers is bounded in bytes before it is read, and is data alone: a JSON object and bytes.

`ChildProcess` is the parent's side, `serve` the child's. Memory is limited on Linux (`RLIMIT_DATA`); macOS takes the
limit and does not hold it, so that there only a deadline stops a child that grows.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from reyn_jupyter.support.installed_places import installed_path

_PREFIX = struct.Struct(">IQ")  # bytes of the header, bytes of the body
_MOST_HEADER = 16 << 20
_MOST_DESCRIPTORS = 250  # in one message; the system's bound is 253
_MOST_WORDS = 2000  # characters of what a child says when it cannot start
_PIECE = 1 << 20
_GRACE = 5.0  # seconds in which a killed process is gone
_BETWEEN = "\x1f"  # between two folders, since a colon may be in a name
# The path is set before anything of it is imported; -P keeps the working folder off it.
_BEGIN = (
    f"import sys; sys.path[:] = sys.argv.pop(1).split({_BETWEEN!r}); import runpy; "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME")  # without which some interpreters do not start

_living: weakref.WeakSet[ChildProcess] = weakref.WeakSet()


class ChildEndedError(Exception):
    """The child ended before it answered, or answered what is no answer; `signal` names what ended it, if one did."""

    def __init__(self, message: str, signal_name: str | None = None) -> None:
        super().__init__(message)
        self.signal = signal_name


class ChildDeadlineError(ChildEndedError):
    """The child did not answer in time, and was killed."""


@dataclass(frozen=True)
class ChildMessage:
    """What one side says to the other.

    Attributes:
        header: plain JSON.
        body: bytes beside it, in pieces where they are sent, in one where they arrive.
        descriptors: open files that are handed over; only to the child.
    """

    header: Mapping[str, Any]
    body: Sequence[bytes | bytearray | memoryview] = ()
    descriptors: Sequence[int] = ()


@dataclass(frozen=True)
class ChildLimits:
    """What a child may use.

    Attributes:
        memory: bytes of private memory (`RLIMIT_DATA`), libraries' data included; files mapped to be read do not count.
        answer: bytes of one answer.
        open_files: descriptors.
    """

    memory: int
    answer: int = 1 << 20
    open_files: int = 512


# The parent's side


class ChildProcess:
    """One child: started with the first request, and again after it was killed. One request at a time.

    Args:
        module: what `python -m` runs; it calls `serve`.
        limits: what the child may use.
        arguments: what stands in `serve`'s process as `sys.argv` from the third place on.

    Example:
        >>> child = ChildProcess("reyn_jupyter.backends.sql.sql_child", ChildLimits(3 << 30), ("2GB",))
        >>> child.exchange(ChildMessage({"check": "SELECT 1"}), timeout=60).header
        {'kind': 'SELECT'}
        >>> child.close()
    """

    def __init__(self, module: str, limits: ChildLimits, arguments: Sequence[str] = ()) -> None:
        self._module = module
        self._limits = limits
        self._arguments = arguments
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self.turn = threading.Lock()  # held by whoever speaks with the child

    @property
    def pid(self) -> int | None:
        """The process's id; None while there is none."""
        running = self._running
        return running.process.pid if running is not None and running.process.poll() is None else None

    def start(self) -> None:
        """Start the process if there is none, without waiting until it is ready. Raises OSError."""
        self._started()

    def exchange(self, message: ChildMessage, timeout: float) -> ChildMessage:
        """Send a request and return its answer. The caller holds `turn`.

        Args:
            timeout: seconds, the child's start included.

        Raises:
            ChildDeadlineError: there was no answer in time; the child was killed.
            ChildEndedError: it ended, or its answer is none; it was killed.
        """
        deadline = time.monotonic() + timeout
        running = self._started()
        try:
            if not running.ready:
                _receive(running.channel, self._limits.answer, deadline)
                running.ready = True
                running.errors.close()
            _send(running.channel, message, deadline)
            return _receive(running.channel, self._limits.answer, deadline)
        except TimeoutError:
            self._discard(running)
            raise ChildDeadlineError(f"it did not answer within {timeout:g} seconds") from None
        except (OSError, EOFError, ValueError, RecursionError) as error:
            words = "" if running.ready else _last_words(running)
            self._discard(running)
            raise _ended(running, words, error) from None
        except BaseException:
            self._discard(running)
            raise

    def kill(self) -> None:
        """End the process now, from any thread; who waits for its answer gets a ChildEndedError."""
        running = self._running
        if running is not None and running.owner == os.getpid():
            running.process.kill()

    def close(self) -> None:
        """End the process and wait until it is gone; a later request starts another."""
        running = self._running
        if running is not None:
            self._discard(running)

    def _started(self) -> _Running:
        with self._lock:
            running = self._running
            if running is None or running.owner != os.getpid() or running.process.poll() is not None:
                if running is not None:
                    running.finish()
                running = self._running = _spawn(
                    [self._module, str(self._limits.memory), str(self._limits.open_files), *self._arguments]
                )
                _living.add(self)
            return running

    def _discard(self, running: _Running) -> None:
        with self._lock:
            if self._running is running:
                self._running = None
        running.finish()

    def forget(self) -> None:
        """Let go of the channels in a fork of the parent, which would keep the child alive."""
        running, self._running = self._running, None
        self._lock, self.turn = threading.Lock(), threading.Lock()
        if running is not None:
            running.finish.detach()
            _close_channels(running.channel, running.life)


@dataclass
class _Running:
    """A process and the parent's ends of its channels."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    life: BinaryIO
    errors: Any
    owner: int = field(default_factory=os.getpid)
    ready: bool = False

    def __post_init__(self) -> None:
        # Also when nobody refers to the child any more, and when the interpreter exits.
        self.finish = weakref.finalize(
            self, _finish, self.process, self.channel, self.life, self.errors, self.owner
        )


def _finish(
    process: subprocess.Popen[bytes], channel: socket.socket, life: BinaryIO, errors: Any, owner: int
) -> None:
    if owner == os.getpid():
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
    errors.close()
    _close_channels(channel, life)


def _close_channels(channel: socket.socket, life: BinaryIO) -> None:
    channel.close()
    life.close()


def _spawn(arguments: Sequence[str]) -> _Running:
    folder = _empty_folder()
    ours, theirs = socket.socketpair()
    life_read, life_write = os.pipe()
    life = os.fdopen(life_write, "wb", buffering=0)
    try:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-c", _BEGIN, _import_path(), *arguments],
            stdin=theirs.fileno(),
            stdout=life_read,
            stderr=subprocess.PIPE,
            env=_environment(),
            cwd=folder,
            start_new_session=True,
        )
    except BaseException:
        _close_channels(ours, life)
        raise
    finally:
        theirs.close()
        os.close(life_read)
    return _Running(process, ours, life, process.stderr)


def _import_path() -> str:
    """Return where a child looks for imports: where this package does, and never first in a folder of the person's."""
    own = str(Path(__file__).resolve().parents[3])
    return _BETWEEN.join(dict.fromkeys((*filter(None, installed_path()), own)))


def _environment() -> dict[str, str]:
    """Return what a child needs to start, and nothing of the person's."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    # By this the child knows as installed what this process does, for the imports of this package there.
    places = os.pathsep.join(entry for entry in installed_path() if os.pathsep not in entry)
    return {"LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": places} | kept


def _empty_folder() -> str:
    """Return the folder that all children of this user work in, where there is nothing and nobody may write.

    It stays: one that a child removed at its end would be left over by a child that was killed. It lies in the user's
    own cache, since in a shared folder another user could take its name.
    """
    import platformdirs

    folder = Path(platformdirs.user_cache_dir("reyn-jupyter")) / "empty"
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o500, exist_ok=True)
    status = folder.lstat()
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
    if not is_own or any(folder.iterdir()):
        raise OSError(
            f"{folder} is not an empty folder of this user's own; remove it, or set XDG_CACHE_HOME to another folder"
        )
    return str(folder)


def _last_words(running: _Running) -> str:
    """Return the end of what a child wrote that could not start: the error of an import, say."""
    with suppress(subprocess.TimeoutExpired):
        running.process.wait(_GRACE)
    os.set_blocking(running.errors.fileno(), False)
    said = running.errors.read(_PIECE) or b""
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_MOST_WORDS] if lines else ""


def _ended(running: _Running, words: str, error: Exception) -> ChildEndedError:
    code = running.process.poll()
    if words:
        return ChildEndedError(f"it could not start: {words}")
    if not isinstance(error, EOFError | ConnectionError | BrokenPipeError):
        return ChildEndedError(f"its answer cannot be read: {error}")
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return ChildEndedError(f"it was ended by {name}", name)
    return ChildEndedError("it ended" if code is None else f"it ended with the code {code}")


def _forget_in_fork() -> None:
    for child in list(_living):
        child.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_fork)


class ChildProcesses:
    """The child processes of one session, by what they are for; they end with it.

    Example:
        >>> with ChildProcesses() as children:
        ...     child = children.get("sql", lambda: ChildProcess("a.module", ChildLimits(3 << 30)))
        ...     child is children.get("sql", lambda: ChildProcess("another.module", ChildLimits(1 << 30)))
        True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._children: dict[str, ChildProcess] = {}

    def get(self, name: str, make: Callable[[], ChildProcess]) -> ChildProcess:
        """Return the child of a name, made the first time."""
        with self._lock:
            if name not in self._children:
                self._children[name] = make()
            return self._children[name]

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of those that run."""
        with self._lock:
            return tuple(pid for child in self._children.values() if (pid := child.pid) is not None)

    def close(self) -> None:
        """End them all and wait until they are gone; whoever needs one again starts another."""
        with self._lock:
            children, self._children = list(self._children.values()), {}
        for child in children:
            child.close()

    def __enter__(self) -> ChildProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# The child's side


def serve(answer: Callable[[ChildMessage], ChildMessage], idle: Callable[[], None]) -> None:
    """Answer requests until the parent is gone. Called by the module that a `ChildProcess` runs, after its imports.

    Args:
        answer: from a request to its answer; the descriptors of the request are closed afterwards.
        idle: called before the first request and after every answer, for what can be done ahead.
    """
    life = os.dup(1)
    channel = socket.socket(fileno=os.dup(0))
    _end_with_parent(life)
    _confine(int(sys.argv[1]), int(sys.argv[2]))
    idle()
    _send(channel, ChildMessage({"ready": True}))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    while True:
        try:
            request = _receive(channel, 0, descriptors=True)
        except (EOFError, ConnectionError):
            return
        try:
            reply = answer(request)
        finally:
            for descriptor in request.descriptors:
                os.close(descriptor)
        _send(channel, reply)
        del request, reply
        idle()


def _confine(memory: int, open_files: int) -> None:
    """Take away what an answer does not need: memory, new files, core dumps."""
    import resource  # not everywhere, as `fcntl` below: the package is imported there all the same

    for kind, most in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_NOFILE, open_files),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):  # macOS refuses some
            resource.setrlimit(kind, (most, most))


def _end_with_parent(life: int) -> None:
    """End when the other end of a pipe is closed, which the death of its owner does too."""
    if sys.platform == "linux":
        import fcntl

        # The system itself ends this process then, also while a library holds the interpreter's lock for minutes.
        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)

    def watch() -> None:
        with suppress(OSError):
            os.read(life, 1)
        os._exit(0)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


# What goes over the channel


def _send(channel: socket.socket, message: ChildMessage, deadline: float | None = None) -> None:
    header = json.dumps(message.header).encode()
    if len(message.descriptors) > _MOST_DESCRIPTORS:
        raise ValueError(f"a message hands over at most {_MOST_DESCRIPTORS} files")
    prefix = _PREFIX.pack(len(header), sum(len(memoryview(piece).cast("B")) for piece in message.body))
    _patience(channel, deadline)
    # The descriptors go with the first bytes, which are few enough to go at once.
    socket.send_fds(channel, [prefix], list(message.descriptors))
    for piece in (header, *message.body):
        _patience(channel, deadline)
        channel.sendall(piece)


def _receive(
    channel: socket.socket, most: int, deadline: float | None = None, *, descriptors: bool = False
) -> ChildMessage:
    """Return the next message. `most` bounds its body.

    Raises:
        EOFError: the other side is gone. ValueError: it is too large, or its header no JSON object.
        TimeoutError: it did not come in time.
    """
    handed: list[int] = []
    prefix = bytearray()
    while len(prefix) < _PREFIX.size:
        _patience(channel, deadline)
        if descriptors:
            piece, more, _, _ = socket.recv_fds(channel, _PREFIX.size - len(prefix), _MOST_DESCRIPTORS)
            handed += more
        else:
            piece = channel.recv(_PREFIX.size - len(prefix))
        if not piece:
            raise EOFError
        prefix += piece
    size, rest = _PREFIX.unpack(prefix)
    if size > _MOST_HEADER or rest > most:
        raise ValueError(f"it has {size + rest:,} bytes, and at most {_MOST_HEADER + most:,} are read")
    header = json.loads(_read(channel, size, deadline))
    if not isinstance(header, dict):
        raise ValueError("its header is no object")
    return ChildMessage(header, (_read(channel, rest, deadline),), handed)


def _read(channel: socket.socket, size: int, deadline: float | None) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        _patience(channel, deadline)
        count = channel.recv_into(view[:_PIECE])
        if not count:
            raise EOFError
        view = view[count:]
    return data


def _patience(channel: socket.socket, deadline: float | None) -> None:
    """Give the next call on the channel what is left of the time."""
    if deadline is None:
        channel.settimeout(None)
        return
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    channel.settimeout(left)
