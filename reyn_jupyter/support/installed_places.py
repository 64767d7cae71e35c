"""Know where code is installed: by the interpreter's own layout, and by what it reads to make its path when it begins.

Invariants: the places are an allow-list: the standard library, the folders that the interpreter installs packages in,
what `.pth` files there name (an editable installation, say), the place that this package itself runs from, and the
absolute folders of `PYTHONPATH` that lie in no workspace and not in the working folder.
Whatever else is on `sys.path`, by whatever spelling, is no installed place: not the working folder, and no folder that
a program or a cell appended. Nothing is imported or run to find out.
"""

from __future__ import annotations

import os
import site
import sys
import zipimport
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.machinery import FileFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_workspaces: dict[str, Callable[[], bool]] = {}  # real path → whether the user trusts it now


def keep_off(workspace: str | os.PathLike[str], is_trusted: Callable[[], bool] = lambda: False) -> None:
    """Count a folder as a workspace as long as the process lives: nothing in it is installed.

    Args:
        is_trusted: Return whether the user trusts the files of the workspace now.
    """
    _workspaces[_real(os.fspath(workspace))] = is_trusted


def untrusted_folder(path: str | os.PathLike[str]) -> str | None:
    """Return the untrusted workspace or working folder that a path lies in, or None.

    The innermost of nested workspaces decides. Nobody clones a folder over a home folder, so a workspace that contains
    the home folder does not count.

    Args:
        path: A relative path starts at the working folder.
    """
    text = os.fspath(path)
    home = _real(os.path.expanduser("~"))
    folders = [each for each in (*_workspaces, *_working_folder()) if not _below(home, (each,))]
    for place in {_real(text), os.path.normcase(os.path.abspath(text))}:  # a link is the workspace's as well
        around = [folder for folder in folders if _below(place, (folder,))]
        workspace = max((folder for folder in around if folder in _workspaces), key=len, default=None)
        if around and (workspace is None or not _workspaces[workspace]()):
            return max(around, key=len)
    return None


def is_below_workspace(real: str) -> bool:
    """Return whether a real path lies in a workspace or the working folder, trusted or not, other than the root."""
    return any(_below(real, (folder,)) for folder in (*_workspaces, *_working_folder()) if folder != os.sep)


def installed_path() -> list[str]:
    """Return the entries of `sys.path` that are installed places, in their order."""
    return [entry for entry in sys.path if is_installed(entry)]


def other_path() -> list[str]:
    """Return the folders on `sys.path` that are no installed places, in their order, as real paths."""
    folders = dict.fromkeys(_real(entry) for entry in sys.path if isinstance(entry, str))
    return [folder for folder in folders if os.path.isdir(folder) and not is_installed(folder)]


def installed_distributions() -> Iterator[Distribution]:
    """Yield the distributions in installed places."""
    from importlib.metadata import distributions

    return iter(distributions(path=installed_path()))


def is_installed(entry: object) -> bool:
    """Return whether an entry of the import path is an installed place.

    Args:
        entry: as it stands on the path. A relative one is none, unless it is the word by which a finder of an
            installed package is asked (editable installations have such words).
    """
    if not isinstance(entry, str):
        return False
    answer = _entries.get(entry)
    if answer is None:
        answer = _entries[entry] = _judge(entry)
    return answer is True or (answer is not False and answer in _python_path() and not in_workspace(answer))


def is_library(file: str) -> bool:
    """Return whether a file lies below a folder of libraries: the standard library, or one of installed packages."""
    # Nearly every file is one by its name alone, so that no link has to be followed.
    if file.startswith(_LIBRARY_PREFIXES) and ".." not in file:
        return True
    return _below(_real(file), _LIBRARIES)


def is_persons(file: str) -> bool:
    """Return whether the code of a file is the person's own, which is what lies in no place of installed packages.

    Sources that are installed from where they are written are the person's in a workspace and the working folder.
    """
    known = _files.get(file)
    if known is None:
        library = not os.path.isabs(file) or is_library(file)
        known = _files[file] = "" if library else _real(file)
    return known != "" and (in_workspace(known) or not _below(known, (*_SOURCES, *_python_path())))


def in_workspace(real: str) -> bool:
    """Return whether a real path is in a workspace, or in the working folder."""
    return _below(real, (*_workspaces, *_working_folder()))


def _working_folder() -> tuple[str, ...]:
    """Return the real path of the working folder, or nothing if it was removed."""
    try:
        return (_real(os.getcwd()),)
    except OSError:
        return ()


def _judge(entry: str) -> bool | str:
    """Return whether an entry is an installed place; of another folder the real path, which `PYTHONPATH` may name."""
    if os.path.isabs(entry):
        if is_library(entry):
            return True
        real = _real(entry)
        return real in _SOURCES or _has_installed_finder(entry) or real
    return _has_installed_finder(entry)


def _has_installed_finder(entry: str) -> bool:
    """Return whether an entry is no file or folder, but the word of a finder which an installed package has."""
    finder = sys.path_importer_cache.get(entry)
    for hook in sys.path_hooks if finder is None else ():
        try:
            finder = hook(entry)
            break
        except ImportError:
            continue
    if finder is None or isinstance(finder, FileFinder | zipimport.zipimporter):
        return False
    module = sys.modules.get(getattr(finder, "__module__", ""))
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and is_library(file)


def _python_path() -> tuple[str, ...]:
    return _absolute_folders(os.environ.get("PYTHONPATH", ""))


@lru_cache(maxsize=8)
def _absolute_folders(joined: str) -> tuple[str, ...]:
    return tuple(_real(each) for each in joined.split(os.pathsep) if os.path.isabs(each))


def _real(path: str) -> str:
    return os.path.normcase(os.path.realpath(path))


def _below(real: str, folders: tuple[str, ...]) -> bool:
    return any(real == folder or real.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)


def _standard_library() -> list[str]:
    """Return the folders and the archive of the standard library, also those that are not there."""
    own = os.path.dirname(os.__file__)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return [
        own,
        os.path.join(os.path.dirname(own), f"python{version.replace('.', '')}.zip"),
        os.path.join(sys.base_exec_prefix, sys.platlibdir, f"python{version}"),
        *([os.path.join(sys.base_exec_prefix, "DLLs")] if os.name == "nt" else []),
    ]


def _package_folders() -> list[str]:
    """Return the folders in which the interpreter that runs has its packages."""
    folders = site.getsitepackages()
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    own = _own_folder()
    if os.path.basename(own) in ("site-packages", "dist-packages"):
        folders.append(own)
    return folders


def _own_folder() -> str:
    """Return the folder that this package is imported from: what lies beside code that runs is trusted no less."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _read_path_files(folders: list[str]) -> tuple[list[str], list[str]]:
    """Return the folders of packages with those that `.pth` files make such, and the places that the files add.

    A line of code in such a file ran when the interpreter began. The one whose effect is wanted is that by which an
    environment is laid over another: `import site; site.addsitedir("…")`.
    """
    found, added = list(dict.fromkeys(folders)), list[str]()
    for folder in found:  # which grows meanwhile
        for line in _path_lines(folder):
            if not line.startswith(("import ", "import\t")):
                added.append(os.path.join(folder, line))
                continue
            quoted = line.partition("addsitedir(")[2]
            another = quoted[1:].partition(quoted[0])[0] if quoted[:1] in ("'", '"') else ""
            if os.path.isabs(another) and another not in found:
                found.append(another)
    return found, added


def _path_lines(folder: str) -> Iterator[str]:
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".pth") and name[0] != ".")
    except OSError:
        return
    for name in names:
        try:
            with open(os.path.join(folder, name), "rb") as file:
                text = os.fsdecode(file.read().removeprefix(b"\xef\xbb\xbf"))
        except OSError:
            continue
        yield from (line for line in map(str.strip, text.splitlines()) if line and line[0] != "#")


_folders, _added = _read_path_files(_package_folders())
_LIBRARIES = tuple(dict.fromkeys(map(_real, (*_standard_library(), *_folders))))
_LIBRARY_PREFIXES = tuple(folder + os.sep for folder in (*_LIBRARIES, *_folders))
_SOURCES = tuple(dict.fromkeys(map(_real, (*_added, _own_folder()))))
_entries: dict[str, bool | str] = {}  # of the import path, as judged
_files: dict[str, str] = {}  # of code: its real path, or "" for a library's
