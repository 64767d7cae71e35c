"""The filter of system calls (seccomp) that every command in a sandbox runs under, as a program of classic BPF.

Invariants: a call of another architecture ends the process; a call that is newer than this table does not exist. What
is refused serves to leave the sandbox, or to reach what no path rule covers: other processes, the kernel's keys,
sockets of this machine, namespaces, mounts, clocks.

bubblewrap has namespaces for processes and IPC; `shares_processes` adds what is needed without them.
Source of the form: Linux, Documentation/userspace-api/seccomp_filter.rst.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

_LOAD, _JUMP_EQUAL, _JUMP_GREATER, _AND, _RETURN = 0x20, 0x15, 0x25, 0x54, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_NEWEST = 462  # mseal, Linux 6.10
_AF_INET, _AF_INET6 = 2, 10
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEWNS, …CGROUP, …UTS, …IPC, …USER, …PID, …NET, …TIME
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: type into the terminal of somebody else
_SET_DUMPABLE = (4,)  # PR_SET_DUMPABLE: what a process writes could not be counted any more
_SET_OWNER = (8, 15)  # F_SETOWN, F_SETOWN_EX: let the kernel send a signal to any process

# Name → its number on x86_64 and on aarch64 (None: there is none).
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "perf_event_open": (298, 241),
    # the kernel's own machinery
    "bpf": (321, 280), "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142), "syslog": (103, 116),
    "iopl": (172, None), "ioperm": (173, None), "vhangup": (153, 58), "lookup_dcookie": (212, 18),
    # mounts and namespaces
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "swapon": (167, 224), "swapoff": (168, 225),
    "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443), "fanotify_init": (300, 262),
    # clocks and names of the machine
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162),
}  # fmt: skip
_ABSENT: dict[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435),  # its flags stand where a filter cannot look: programs fall back to clone
    "memfd_create": (319, 279), "memfd_secret": (447, 447),  # memory that no limit counts
}  # fmt: skip
_IPC: dict[str, tuple[int | None, int | None]] = {
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191),
    "semtimedop": (220, 192), "mq_open": (240, 180), "mq_unlink": (241, 181), "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "inotify_add_watch": (254, 27),  # it reports changes in folders that a command may not read
}  # fmt: skip
# Without a view of its own, a command could change these of any file of the person's: they stay as they are.
_OF_FILES: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
}  # fmt: skip
_ATTRIBUTES: dict[str, tuple[int | None, int | None]] = {
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16),
}  # fmt: skip
_SIGNALS: dict[str, tuple[int | None, int | None]] = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
}  # fmt: skip
# A process may set these of itself (the number 0) alone; the argument that names the process stands beside.
_OF_ITSELF: dict[str, tuple[int | None, int | None, int]] = {
    "prlimit64": (302, 261, 0), "setpriority": (141, 140, 1), "ioprio_set": (251, 30, 1),
    "sched_setaffinity": (203, 122, 0), "sched_setscheduler": (144, 119, 0), "sched_setparam": (142, 118, 0),
    "sched_setattr": (314, 274, 0),
}  # fmt: skip
_SOCKET, _CLONE, _IOCTL, _FCNTL, _PRCTL = (
    (41, 198), (56, 220), (16, 29), (72, 25), (157, 167),
)  # fmt: skip
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7), "arm64": (1, 0xC00000B7)}


@dataclass(frozen=True)
class _Rule:
    """What becomes of one call: refused always, or by one of its arguments."""

    number: int
    error: int
    argument: int | None = None
    only: Sequence[int] = ()  # the values with which it is allowed
    never: Sequence[int] = ()  # the values with which it is refused
    bits: int = 0  # refused with any of these


def is_supported() -> bool:
    """Return whether there is a table for this machine's processor."""
    return platform.machine() in _ARCHITECTURES


@cache
def syscall_filter(*, shares_processes: bool = False, signals: bool = True, network: bool = True) -> bytes:
    """Return the filter as an array of `struct sock_filter`.

    Args:
        shares_processes: the command sees processes and IPC of the machine, and files of the person's.
        signals: whether it may send signals; not where nothing keeps them inside.
        network: whether it may make sockets of the internet (in a network of its own, or with consent).

    Raises:
        KeyError: there is no table for this processor.
    """
    column, architecture = _ARCHITECTURES[platform.machine()]
    code = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_JUMP_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
        _instruction(_JUMP_GREATER, _NEWEST, 0, 1),  # also the second numbering of x86_64, x32
        _instruction(_RETURN, _ERRNO | errno.ENOSYS),
    ]
    for rule in _rules(column, shares_processes, signals, network):
        code += _compiled(rule)
    return b"".join([*code, _instruction(_RETURN, _ALLOW)])


def _rules(column: int, shares_processes: bool, signals: bool, network: bool) -> Iterator[_Rule]:
    groups = [(_REFUSED, errno.EPERM), (_ABSENT, errno.ENOSYS)]
    if shares_processes:
        groups += [(_IPC, errno.EPERM), (_OF_FILES, 0), (_ATTRIBUTES, errno.ENOTSUP)]
    if not signals:
        groups.append((_SIGNALS, errno.EPERM))
    for group, error in groups:
        for numbers in group.values():
            if (number := numbers[column]) is not None:
                yield _Rule(number, error)
    families = (_AF_INET, _AF_INET6) if network else ()
    yield _Rule(_SOCKET[column], errno.EAFNOSUPPORT, 0, only=families)
    yield _Rule(_CLONE[column], errno.EPERM, 0, bits=_NEW_NAMESPACES)
    yield _Rule(_IOCTL[column], errno.EPERM, 1, never=_TERMINAL_INPUT)
    yield _Rule(_PRCTL[column], errno.EPERM, 0, never=_SET_DUMPABLE)
    if shares_processes:
        yield _Rule(_FCNTL[column], errno.EPERM, 1, never=_SET_OWNER)
        for *both, argument in _OF_ITSELF.values():
            if (number := both[column]) is not None:
                yield _Rule(number, errno.EPERM, argument, only=(0,))


def _compiled(rule: _Rule) -> list[bytes]:
    refuse, allow = _instruction(_RETURN, _ERRNO | rule.error), _instruction(_RETURN, _ALLOW)
    if rule.argument is None:
        body = [refuse]
    else:
        body = [
            _instruction(_LOAD, _ARGUMENTS + 8 * rule.argument)
        ]  # the lower half, which is all that counts
        if rule.bits:
            body += [_instruction(_AND, rule.bits), _instruction(_JUMP_EQUAL, 0, 1, 0), refuse, allow]
        elif rule.never:
            left = len(rule.never)
            for value in rule.never:
                body.append(_instruction(_JUMP_EQUAL, value, left, 0))
                left -= 1
            body += [allow, refuse]
        else:
            left = len(rule.only)
            for value in rule.only:
                body.append(_instruction(_JUMP_EQUAL, value, left, 0))
                left -= 1
            body += [refuse, allow]
    return [_instruction(_JUMP_EQUAL, rule.number, 0, len(body)), *body]


def _instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)
