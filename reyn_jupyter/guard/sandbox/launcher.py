"""The small process between a session and a command in a sandbox without namespaces; run by its path, never imported.

Invariants: the command begins only when every limit holds, and what fails on the way there is told through a pipe and
starts nothing. When the command ends, or the other end of a pipe is closed (which the death of its owner does too),
everything that it started is killed, what left its process group too, and waited for; its temporary folder is removed.
What is still there after `_PATIENCE` seconds is told through a second pipe.

It knows nothing of the package, so that it starts in ten milliseconds: its arguments are the descriptors of a file
with what to do (JSON) and of the pipes of its owner's life, for what went wrong and for what is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import select
import signal
import stat
import struct
import sys
import threading
import time
from typing import Any

_LINUX = sys.platform == "linux"
_SET_DEATH_SIGNAL, _SET_SUBREAPER, _SET_NO_NEW_PRIVILEGES, _SET_SECCOMP = 1, 36, 38, 22
_SET_SECUREBITS, _DROP_BOUNDING, _AMBIENT, _CLEAR_AMBIENT = 28, 24, 47, 4
_NO_ROOT = 0x2F  # NOROOT, NO_SETUID_FIXUP and KEEP_CAPS off, all locked
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _CAPSET = (
    444,
    445,
    446,
    {"x86_64": 126}.get(os.uname().machine, 91),
)
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_SET_INTERFACE_FLAGS, _UP = 0x8914, 1
_PATH_BENEATH = 1
_SCOPE_SIGNALS = 2
_OF_FILES = 1 | 2 | 4 | 1 << 14  # the rights that a file can have: execute, write, read, truncate
_PATIENCE = 10.0  # seconds until what was killed is gone; a busy machine takes its time
_LONGEST_PAUSE = 0.05  # seconds between two looks at what is dying


def main() -> None:
    task, life, said, left = (int(word) for word in sys.argv[1:5])
    os.set_inheritable(left, False)
    with os.fdopen(task, "rb") as file:
        plan = json.load(file)
    own_domain = bool(plan.get("abi", 0) >= 6) and _scope_signals()
    if _LINUX:
        _prctl(_SET_SUBREAPER, 1)
    launcher = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            os.close(life)
            os.set_inheritable(said, False)
            if plan.get("count"):
                with open(plan["count"], "w", encoding="ascii") as group:
                    group.write("0")
            if "way" in plan:
                _enter_network(plan["way"], plan["port"])
            _confine(plan, launcher)
            os.execvpe(plan["argv"][0], plan["argv"], plan["environment"])  # noqa: S606 - no shell
        except BaseException as error:  # noqa: BLE001 - nothing may run unconfined
            os.write(said, f"{type(error).__name__}: {error}".encode()[:2000])
        os._exit(125)
    os.close(said)
    for descriptor in (0, 1, 2, *([plan["way"]] if "way" in plan else [])):
        os.close(descriptor)
    lock = threading.Lock()

    def end(status: int | None) -> None:
        """End all of it, and this process too, but for a command that is gone and whose status is waited for."""
        with lock:
            remaining = _kill_all(child, own_domain)
            if status is None and not remaining:
                return
            if plan["temporary"]:
                _remove(plan["temporary"], plan["remover"])
            if remaining:
                with contextlib.suppress(OSError):  # its owner is gone
                    os.write(left, remaining.encode("ascii", "replace"))
            code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)

    def watch() -> None:
        with contextlib.suppress(OSError):  # whatever keeps it from waiting ends the command
            _wait_for_close(life)
        end(None)

    threading.Thread(target=watch, daemon=True).start()
    end(_wait_for(child))


def _wait_for_close(pipe: int) -> None:
    poll = select.poll()  # select takes no descriptor above 1023, and the owner may have many
    poll.register(pipe, select.POLLIN)
    poll.poll()


def _wait_for(child: int) -> int:
    while True:  # others are orphans that this process was given
        try:
            pid, status = os.wait()
        except ChildProcessError:  # who killed it has waited for it
            return signal.SIGKILL
        if pid == child:
            return status


def _scope_signals() -> bool:
    """Give this process a domain of its own; True if it can signal nothing beside what it starts from now on."""
    try:
        _prctl(_SET_NO_NEW_PRIVILEGES, 1)
        _restrict(struct.pack("QQQ", 0, 0, _SCOPE_SIGNALS), ())
        os.kill(os.getppid(), 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _kill_all(child: int, own_domain: bool) -> str:
    """Kill everything that was started, however it left its group, and wait until it is gone.

    Returns:
        "", or what is left after `_PATIENCE` seconds. Only the system's word that this process has no child any more
        counts for the end: a list of the children may lack one while others come and go.
    """
    deadline = time.monotonic() + _PATIENCE
    killed: set[int] = set()
    pause = 0.0
    while True:
        found = _descendants(os.getpid()) if _LINUX else []
        if own_domain and found and _is_alone():
            os.kill(-1, signal.SIGKILL)  # everything below, at once; nothing else is in reach
        for pid in found:
            _kill(os.kill, pid)
        _kill(os.killpg, child)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return ""
        if time.monotonic() >= deadline:
            return _processes(found)
        # What is new may start more, so it is looked for at once; what was killed is waited for.
        pause = min(2 * pause + 0.001, _LONGEST_PAUSE) if killed.issuperset(found) else 0.0
        killed.update(found)
        time.sleep(pause)


def _remove(folder: str, remover: str) -> None:
    """Remove a folder by the function of a file that needs no package."""
    from importlib.machinery import SourceFileLoader
    from types import ModuleType

    module = ModuleType("tree_removal")
    with contextlib.suppress(Exception):  # what is left of it is told all the same
        SourceFileLoader(module.__name__, remover).exec_module(module)
        module.remove_tree(folder)


def _processes(pids: list[int]) -> str:
    """Return some processes by their numbers, names and states, as the system has them."""
    said = []
    for pid in pids[:10]:
        with contextlib.suppress(OSError, IndexError):
            with open(f"/proc/{pid}/stat", "rb") as file:
                name, _, rest = file.read().partition(b"(")[2].rpartition(b")")
            shown = "".join(c if c.isprintable() else "?" for c in name.decode("ascii", "replace"))
            said.append(f"{pid} ({shown}, state {chr(rest.split()[0][0])})")
    return ", ".join(said) or "a process that cannot be seen"


def _is_alone() -> bool:
    """Return whether the process that is always there is out of reach, as everything outside is."""
    try:
        os.kill(1, 0)
    except PermissionError:
        return True
    return False


def _kill(how: Any, pid: int) -> None:
    with contextlib.suppress(OSError):
        how(pid, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    found, pending = [], [pid]
    while pending:
        current = pending.pop()
        try:
            threads = os.listdir(f"/proc/{current}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                with open(f"/proc/{current}/task/{thread}/children", "rb") as file:
                    children = [int(word) for word in file.read().split()]
            except OSError:
                continue
            found += children
            pending += children
    return found


def _confine(plan: dict[str, Any], launcher: int) -> None:
    """Take from this process, which becomes the command, all that it may not have. Raises OSError."""
    import resource

    os.setsid()
    if _LINUX:
        _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != launcher:
            os._exit(125)
    for name, most in plan["limits"].items():
        number = getattr(resource, name, None)
        if number is None:
            continue
        if name == "RLIMIT_NPROC":
            most += _threads_of_user()
        hard = resource.getrlimit(number)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(number, (most, most))
        except (ValueError, OSError):
            if _LINUX:  # macOS refuses some
                raise
    os.chdir(plan["folder"])
    if "way" in plan or (plan["abi"] and os.geteuid() == 0):
        _drop_capabilities()  # with its network it got those of its owner
    if "way" in plan or plan["abi"]:
        _prctl(_SET_NO_NEW_PRIVILEGES, 1)
    if plan["abi"]:
        _restrict(bytes.fromhex(plan["ruleset"]), plan["rules"])
        _filter_calls(bytes.fromhex(plan["calls"]))


def _enter_network(way: int, port: int) -> None:
    """Go into a network of its own, and hand out a socket that listens in it. Raises OSError."""
    import fcntl
    import socket

    user, group = os.geteuid(), os.getegid()
    if _libc().unshare(ctypes.c_int(_NEW_USER | _NEW_NETWORK)) < 0:
        raise OSError(
            ctypes.get_errno(),
            "this Linux lets no program have a network of its own, so no host can be allowed alone; bubblewrap needs "
            "the same (user namespaces)",
        )
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    with socket.socket() as listener, socket.socket(fileno=way) as owner:
        fcntl.ioctl(listener, _SET_INTERFACE_FLAGS, struct.pack("16sh22x", b"lo", _UP))
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        socket.send_fds(owner, [b"."], [listener.fileno()])


def _threads_of_user() -> int:
    """Return how many tasks this user has, which the limit counts too."""
    if not _LINUX:
        return 0
    own, found = os.getuid(), 0
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                if os.stat(f"/proc/{name}").st_uid == own:
                    found += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue
    return found


def _drop_capabilities() -> None:
    """Leave nothing of root's but the name: no capability, now or by another program."""
    _prctl(_AMBIENT, _CLEAR_AMBIENT)
    _prctl(_SET_SECUREBITS, _NO_ROOT)
    number = 0
    while True:
        try:
            _prctl(_DROP_BOUNDING, number)
        except OSError:
            break
        number += 1
    header, data = struct.pack("Ii", 0x20080522, 0), bytes(24)
    _call(_CAPSET, header, data)


def _restrict(ruleset: bytes, rules: Any) -> None:
    """Enter a Landlock domain: `rules` are (rights, path or descriptor, names that lead on from it)."""
    descriptor = _call(_CREATE_RULESET, ruleset, len(ruleset), 0)
    for rights, start, names in rules:
        try:
            place = _open_place(start, names)
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        _call(_ADD_RULE, descriptor, _PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
        os.close(place)
    _call(_RESTRICT_SELF, descriptor, 0)
    os.close(descriptor)
    for start in {start for _, start, _ in rules if isinstance(start, int)}:
        os.close(start)


def _open_place(start: str | int, names: list[str]) -> int:
    """Open a path, or what names lead to from a descriptor, through no link. Raises OSError."""
    if isinstance(start, str):
        return os.open(start, os.O_PATH | os.O_CLOEXEC)
    place = os.dup(start)
    for name in names:
        inner = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
        os.close(place)
        if stat.S_ISLNK(os.fstat(inner).st_mode):
            raise OSError(errno.ELOOP, f"{name} was replaced by a link")
        place = inner
    return place


def _filter_calls(program: bytes) -> None:
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(instructions))
    _prctl(_SET_SECCOMP, 2, header)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int, further: Any = 0) -> None:
    zero = ctypes.c_ulong(0)
    last = ctypes.c_char_p(further) if isinstance(further, bytes) else ctypes.c_ulong(further)
    if _libc().prctl(ctypes.c_int(option), ctypes.c_ulong(value), last, zero, zero) < 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")


def _call(number: int, *arguments: Any) -> int:
    given = [ctypes.c_char_p(each) if isinstance(each, bytes) else ctypes.c_long(each) for each in arguments]
    result: int = _libc().syscall(ctypes.c_long(number), *given)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}: {os.strerror(ctypes.get_errno())}")
    return result


if __name__ == "__main__":
    main()
