"""Where a program is looked for, and where it works, so that an untrusted folder is no search path of it.

`python -m`, `npx`, `uv` and many others look for code and configuration in their working folder and in every
folder above it. Invariants: a program works in an empty folder that is in no workspace, unless its caller names another
folder; a command is looked for in absolute folders of PATH alone, and in none that lies in an untrusted workspace or
working folder. Everything in this package that starts a program goes by these functions.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from reyn_jupyter.support.files.state_base import state_base
from reyn_jupyter.support.installed_places import is_below_workspace, untrusted_folder

SAFE_PATH = "PYTHONSAFEPATH"
# Programs that run code or read configuration which they find in their working folder or above it.
RUNNERS = frozenset({
    "npx", "npm", "pnpm", "pnpx", "yarn", "yarnpkg", "corepack", "bun", "bunx", "deno", "tsx", "ts-node", "uv", "uvx",
    "pipx", "pip", "poetry", "pdm", "hatch", "rye", "pixi", "conda", "mamba", "mise", "asdf", "direnv", "make", "just",
    "cargo", "go", "dotnet", "gradle", "mvn", "bundle", "rake", "composer", "php",
})  # fmt: skip
_EMPTY = "empty"


def neutral_folder() -> str:
    """Return a folder in which no program finds anything: an empty one of this user, or else the root.

    It lies in the user's state folder, and cannot be written to, so that a program which wants to keep a file in its
    working folder fails instead of losing it. The root is returned if a workspace contains the state folder (a
    workspace that is the home folder, say), since runners look in the folders above too.
    """
    base = Path(os.path.realpath(state_base()))
    if not is_below_workspace(os.fspath(base)):
        with suppress(OSError):
            return os.fspath(_empty_folder(base))
    return os.sep


def searched_path(path: str | None = None) -> str:
    """Return the folders of a PATH in which commands are looked for.

    Left out are relative and empty entries, and those in an untrusted workspace or working folder, except the scripts
    of the Python that runs.

    Args:
        path: The PATH; that of this process when None.

    >>> searched_path(":.:node_modules/.bin:/usr/bin")
    '/usr/bin'
    """
    folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    return os.pathsep.join(folder for folder in dict.fromkeys(folders) if _is_searched(folder))


def find_program(name: str, path: str | None = None) -> str | None:
    """Return the absolute path of a program, or None.

    Args:
        name: A command, which is looked for in `searched_path`, or an absolute path.
        path: The PATH; that of this process when None.

    >>> find_program("./sh"), find_program("sh", ".")
    (None, None)
    """
    if "/" in name and not os.path.isabs(name):
        return None
    return shutil.which(name, path=searched_path(path) or os.devnull)


def program_environment(
    argv: Sequence[str], variables: Mapping[str, str], folder: str | os.PathLike[str] | None
) -> dict[str, str]:
    """Return the variables of a program, with a PATH and a Python that do not look into untrusted folders.

    `PYTHONSAFEPATH` is set if the program works in the neutral folder or in an untrusted one. It is left out if the
    command line names a Python script, since Python would not find the modules beside the script then; it does not look
    in the working folder in that case. Who gives the variable, also as an empty text, decides.

    Args:
        argv: The program and its arguments.
        variables: Its variables so far.
        folder: The working folder that the caller names, or None for the neutral one.
    """
    by_name = not {"-m", "-c"}.isdisjoint(argv)
    scripts = (
        os.path.join(folder or os.sep, word) for word in argv[1:] if word.endswith(".py") and not by_name
    )
    is_safe = folder is not None and untrusted_folder(folder) is None
    own = {} if is_safe or any(map(os.path.isfile, scripts)) else {SAFE_PATH: "1"}
    return own | dict(variables) | {"PATH": searched_path(variables.get("PATH"))}


def is_runner(command: str) -> bool:
    """Return whether a program looks for code in its working folder: `npx`, `uvx`, and their like.

    >>> is_runner("/usr/bin/npx"), is_runner("mcp-server-git")
    (True, False)
    """
    return re.sub(r"\.(?:cmd|exe|bat)$", "", Path(command).name.lower()) in RUNNERS


def _is_searched(folder: str) -> bool:
    if not os.path.isabs(folder):
        return False
    own = {os.path.join(prefix, "bin") for prefix in (sys.prefix, sys.base_prefix)}
    return os.path.normpath(folder) in own or untrusted_folder(folder) is None


def _empty_folder(base: Path) -> Path:
    """Return an empty folder that only this user may enter and nobody may write to. Raises OSError."""
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in (base / _EMPTY, *sorted(base.glob(f"{_EMPTY}-*"))):
        with suppress(FileExistsError):
            folder.mkdir(mode=0o500)
        status = folder.lstat()
        private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
        if private and not any(folder.iterdir()):
            return folder
    # A program that may write everywhere, as root's may, left files in all of them. They stay: they may be wanted.
    made = Path(tempfile.mkdtemp(prefix=f"{_EMPTY}-", dir=base))
    made.chmod(0o500)
    return made
