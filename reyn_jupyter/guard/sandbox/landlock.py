"""The sandbox by Landlock and seccomp: for Linux without user namespaces, by a small launcher of our own.

Invariants: the command opens the files of its confinement and no others, makes no socket, and reaches no other
process. Where hosts are given, it is put into a network of its own in which our proxy listens, or does not run: a rule
for the proxy's port would let it reach that port of every other host. It still sees the names, sizes and times of files
elsewhere, where it guesses their paths: Landlock does not cover those. Modes and times of files stay as they are.

Needs Linux 6.2 (Landlock ABI 3). From 6.12 on (ABI 6) signals stay inside; before, the command can send none.
Source: Linux, Documentation/userspace-api/landlock.rst.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from reyn_jupyter.guard.held_place import open_folder
from reyn_jupyter.guard.sandbox.confinement import Confinement, Language, SandboxError, SandboxLimits, View
from reyn_jupyter.guard.sandbox.probe import probe_problem
from reyn_jupyter.guard.sandbox.supervised_launch import CHANGED, SupervisedLaunch
from reyn_jupyter.guard.sandbox.syscall_filter import is_supported, syscall_filter
from reyn_jupyter.guard.sandbox.visible_system import system_paths

_FEWEST_ABI = 3
_MOST_RULES = 20_000
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_OF_MACHINE = ("/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/self")
# Rights, as struct landlock_ruleset_attr has them.
_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_ALL = (1 << 15) - 1  # up to LANDLOCK_ACCESS_FS_TRUNCATE
_SEEN = _EXECUTE | _READ | _LIST
_CHANGED = CHANGED
_IOCTL = 1 << 15
_TCP, _SCOPES = 3, 3


class Landlock:
    """Runs programs under rules for paths and a filter of system calls.

    Args:
        abi: use no more than this version of Landlock offers.
    """

    name = "landlock"
    language: Language = "program"
    view: View = "targets"
    isolation = (
        "files outside of the given folders cannot be opened, no sockets, no other processes, no new privileges, "
        "system calls filtered; names and sizes of files elsewhere can be seen"
    )

    def __init__(self, abi: int | None = None) -> None:
        self._most = abi

    @cached_property
    def _abi(self) -> int:
        if sys.platform != "linux":
            return 0
        found: int = ctypes.CDLL(None).syscall(444, None, 0, 1)
        return found if self._most is None else min(found, self._most)

    def problem(self) -> str | None:
        if sys.platform != "linux":
            return "it is for Linux alone"
        if not is_supported():
            return "there is no filter of system calls for this processor"
        if self._abi < _FEWEST_ABI:
            return "this Linux has no Landlock, or one from before 6.2"
        return probe_problem(lambda argv: self.launch(argv, Confinement(Path("/")), SandboxLimits()))

    def launch(
        self, argv: Sequence[str], confinement: Confinement, limits: SandboxLimits
    ) -> SupervisedLaunch:
        opened: list[int] = []
        try:
            rules = list(_rules(confinement, opened))
            if len(rules) > _MOST_RULES:
                raise SandboxError(
                    f"the working folder takes {len(rules):,} rules, and {_MOST_RULES:,} can be made",
                    "Work in a folder with fewer files beside those that hold secrets, or install bubblewrap.",
                )
        except SandboxError:
            for descriptor in opened:
                os.close(descriptor)
            raise
        isolation = {"abi": self._abi, "rules": rules, **self._filters(confinement)}
        return SupervisedLaunch(argv, confinement, limits, isolation, inherited=opened)

    def _filters(self, confinement: Confinement) -> dict[str, Any]:
        handled = _ALL | (_IOCTL if self._abi >= 5 else 0)
        # With hosts it has a network of its own, in which nothing is but our proxy.
        tcp = _TCP if not confinement.hosts else 0
        parts = [handled, *([tcp] if self._abi >= 4 else []), *([_SCOPES] if self._abi >= 6 else [])]
        calls = syscall_filter(shares_processes=True, signals=self._abi >= 6, network=bool(confinement.hosts))
        return {"ruleset": struct.pack(f"{len(parts)}Q", *parts).hex(), "calls": calls.hex()}


# The rights of a place: of a path, or of what parts lead to from an inherited descriptor.
_Rule = tuple[int, str | int, Sequence[str]]


def _rules(confinement: Confinement, opened: list[int]) -> Iterator[_Rule]:
    """Yield the rights of each place; what is hidden has none, so a folder that holds it is given in its parts.

    Args:
        opened: the descriptors in the rules are added to it.
    """
    yield from ((_SEEN, os.fspath(path), ()) for path in system_paths())
    yield from ((_READ | _LIST, path, ()) for path in _OF_MACHINE)
    yield from ((_READ | _WRITE, path, ()) for path in _DEVICES)
    for path in confinement.writable:
        kept = (*confinement.hidden, *(each for each in confinement.readable if each != path))
        if any(each.is_relative_to(path) for each in kept):
            raise SandboxError(
                f"{path.name!r} cannot be written in: it holds files that are kept from commands",
                "Name a folder below it without them, or install bubblewrap: sudo apt-get install bubblewrap",
            )
        opened.append(confinement.open(path))
        yield _CHANGED, opened[-1], ()
    hidden = {os.fspath(path) for path in confinement.hidden}
    above = {os.fspath(parent) for path in confinement.hidden for parent in path.parents}
    for path in confinement.readable:
        opened.append(confinement.open(path))
        yield from _parts(opened[-1], (), os.fspath(path), hidden, above)


def _parts(
    base: int, below: tuple[str, ...], path: str, hidden: set[str], above: set[str]
) -> Iterator[_Rule]:
    if path in hidden:
        return
    if path not in above:
        yield _SEEN, base, below
        return
    yield _LIST, base, below
    try:
        folder = open_folder(base, (*below, "."))
    except OSError:
        return  # it was moved: nothing in it is given
    try:
        with os.scandir(folder) as entries:
            found = sorted((each.name, each.is_symlink()) for each in entries)
    finally:
        os.close(folder)
    for name, is_link in found:
        if not is_link:  # a link has no rights of its own
            yield from _parts(base, (*below, name), f"{path.rstrip('/')}/{name}", hidden, above)
