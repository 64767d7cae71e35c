"""What every command in a sandbox sees of the system: its programs and libraries, this Python, and a plain environment.

Invariant: nothing of the person's is among it. Of ``/etc`` only what programs need to start is there, and of a folder
that Python is installed in only what belongs to Python, so that one that is the home folder gives nothing else away.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from reyn_jupyter.guard.sandbox.confinement import Confinement, SandboxError
from reyn_jupyter.guard.sandbox.egress import EgressProxy
from reyn_jupyter.support.secret import Secret

_TOP = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
_ETC = (
    "ld.so.cache", "alternatives", "ssl/certs", "ssl/openssl.cnf", "ca-certificates",
    "pki/tls/certs", "pki/ca-trust/extracted", "localtime", "mime.types", "nsswitch.conf", "passwd", "group", "fonts",
    "magic", "os-release", "lsb-release", "debian_version", "redhat-release",
)  # fmt: skip
_OF_PYTHON = (
    "bin",
    "lib",
    "lib64",
    "libexec",
    "include",
    "share",
    "ssl",
    "pyvenv.cfg",
    "Frameworks",
    "Python",
)
_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")


def system_paths() -> tuple[Path, ...]:
    """Return the files and folders of the system that are there, parents first; links among the first ones."""
    return _system_paths(tuple((place, _holds_python_alone(place)) for place in _prefixes()))


@cache
def _system_paths(prefixes: tuple[tuple[str, bool], ...]) -> tuple[Path, ...]:
    found = [Path(name) for name in _TOP if os.path.lexists(name)]
    found += [path for name in _ETC if (path := Path("/etc", name)).exists()]
    for place, whole in prefixes:
        parts = (Path(place, name) for name in _OF_PYTHON)
        found += [Path(place)] if whole else [path for path in parts if path.exists()]
    return tuple(found)


def _prefixes() -> tuple[str, ...]:
    """Return the folders that this Python is installed in, beside those of the system."""
    named = dict.fromkeys((sys.base_prefix, sys.prefix))
    every = dict.fromkeys(place for name in named for place in (name, os.path.realpath(name)))
    return tuple(place for place in every if not Path(place).is_relative_to("/usr"))


def _holds_python_alone(folder: str) -> bool:
    """Return whether nothing else lies in a folder, looked at each time: what is put into it later is not shown."""
    try:
        with os.scandir(folder) as entries:
            return all(entry.name in _OF_PYTHON for entry in entries)
    except OSError:
        return False


@cache
def search_path() -> tuple[str, ...]:
    """Return the folders in which a command finds programs, this Python's first."""
    own = (Path(sys.prefix, "bin"), Path(sys.base_prefix, "bin"))
    return tuple(dict.fromkeys((*map(str, own), *_FOLDERS)))


def environment(confinement: Confinement, temporary: str, proxy: EgressProxy | None = None) -> dict[str, str]:
    """Return the whole environment of a command.

    Args:
        temporary: its own folder, for what is temporary and as its home.
        proxy: its way to the network.
    """
    own: Mapping[str, str | Secret] = confinement.environment
    return {
        "PATH": os.pathsep.join(search_path()),
        "HOME": temporary,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "USER": "nobody",
        "LOGNAME": "nobody",
        **({} if proxy is None else proxy.environment),
        **{name: each.reveal() if isinstance(each, Secret) else each for name, each in own.items()},
    }


def check_program(argv: Sequence[str], confinement: Confinement) -> None:
    """Check that a command names a program which it sees.

    Raises:
        SandboxError: there is none, or it lies where the sandbox does not show it.
    """
    if not argv or not argv[0]:
        raise SandboxError(
            "the command is empty", 'Name a program and its arguments: ["python", "script.py"].'
        )
    if any("\0" in word for word in argv):
        raise SandboxError("the command holds a NUL character, which no argument can")
    name = argv[0]
    folders = confinement.environment.get("PATH")
    path = os.pathsep.join(search_path()) if not isinstance(folders, str) else folders
    if "/" in name:
        found = confinement.folder / name
        if not found.is_file():
            raise SandboxError(f"there is no program {name[:200]!r}", "Name it from the working folder on.")
        if not os.access(found, os.X_OK):
            raise SandboxError(
                f"{name[:200]!r} is no program: it is not executable", 'Name what runs it: ["python", "…"].'
            )
        return
    if shutil.which(name, path=path) is not None:
        return
    elsewhere = shutil.which(name)
    where = f"; {elsewhere} is outside of what a sandbox shows" if elsewhere else ""
    raise SandboxError(f"there is no program {name[:200]!r} in the sandbox{where}", f"It looks in {path}.")
