"""Look for the imports of this package in what is installed, never in a workspace or the working folder.

A kernel has its working folder first on `sys.path`, so a cloned folder could bring a module called yaml, or metadata
that names an entry point, and both would run at the first `%reyn`, before anybody trusted the folder.

Invariant: an import by name that code of this package causes, directly or through a library, finds nothing that lies
in the working folder or in the workspace of a session. The environment of the running interpreter is installed, also
where a project holds it (`.venv`). What the person's own code imports, called from here or not, is found as ever.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import Distribution
    from types import FrameType, ModuleType

_PACKAGE = __name__.partition(".")[0]
_workspaces: set[str] = set()
_for_the_person: ContextVar[bool] = ContextVar("for_the_person", default=False)
_for_this_package: ContextVar[bool] = ContextVar("for_this_package", default=False)


def keep_off(workspace: str | os.PathLike[str]) -> None:
    """Look for no import of this package in a workspace, beside the working folder, as long as the process lives."""
    _workspaces.add(os.path.realpath(workspace))


def installed_path() -> list[str]:
    """Return the entries of `sys.path` that lie outside every workspace and the working folder, in their order."""
    return [entry for entry in sys.path if isinstance(entry, str) and not in_workspace(entry)]


def installed_distributions() -> Iterator[Distribution]:
    """Yield the distributions that are installed outside every workspace and the working folder."""
    from importlib.metadata import distributions

    return iter(distributions(path=installed_path()))


def in_workspace(path: str) -> bool:
    """Return whether a file or folder lies in a workspace or the working folder and belongs to no environment in it.

    Args:
        path: links in it are followed; an empty one is the working folder.
    """
    try:
        here = os.getcwd()  # noqa: PTH109
    except OSError:  # it was removed
        here = os.sep
    # Asked at every import of a first name: no Path is made.
    return _lies_in(os.path.join(here, path), (os.path.realpath(here), *sorted(_workspaces)))  # noqa: PTH118


@contextmanager
def persons_imports() -> Iterator[None]:
    """Find modules in the block as the person's own code would: for what refers to their modules by name (a pickle)."""
    token = _for_the_person.set(True)
    try:
        yield
    finally:
        _for_the_person.reset(token)


def package_imports() -> None:
    """Count what libraries import in tasks and threads of their own, from now on in this context, as this package's."""
    _for_this_package.set(True)


def protect_imports() -> None:
    """Put the finder of this module where Python's own one is on `sys.meta_path`; again is harmless."""
    if PathFinder in sys.meta_path:
        sys.meta_path[sys.meta_path.index(PathFinder)] = InstalledFirstFinder


class InstalledFirstFinder(PathFinder):
    """Python's finder, which for this package looks into `installed_path` alone, for modules and for metadata."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None and _asked_by_this_package():
            path = installed_path()
        return super().find_spec(fullname, path, target)

    @classmethod
    def find_distributions(cls, context: Any = None) -> Any:
        from importlib.metadata import DistributionFinder

        named = {} if context is None else vars(context)
        if "path" not in named and _asked_by_this_package():
            named = {**named, "path": installed_path()}
        return super().find_distributions(DistributionFinder.Context(**named))


def _asked_by_this_package() -> bool:
    """Return whether an import comes from this package with no code of the person's in between."""
    if _for_the_person.get():
        return False
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if isinstance(module, str) and module != __name__:
            if module == "__main__":  # a cell, or the person's program
                return False
            if module == _PACKAGE or module.startswith(_PACKAGE + "."):
                return True
            file = frame.f_code.co_filename
            if not file.startswith("<") and in_workspace(file):
                return False
        frame = frame.f_back
    return _for_this_package.get()


@cache
def _lies_in(path: str, folders: tuple[str, ...]) -> bool:
    """Return whether the deepest known folder around a path is one of these, and no place of installed packages."""
    real = os.path.realpath(path)
    around = [folder for folder in folders if _holds(folder, real)]
    if not around:
        return False
    return not any(_holds(place, real) and len(place) >= max(map(len, around)) for place in _environment())


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


@cache
def _environment() -> tuple[str, ...]:
    """Return the folders of the interpreter that runs: its standard library, and where packages are installed."""
    import site  # in the interpreter itself, as `os` is: no file of that name is looked for

    places = [os.path.dirname(os.__file__), *site.getsitepackages()]  # noqa: PTH120
    if site.ENABLE_USER_SITE:
        places.append(site.getusersitepackages())
    return tuple(dict.fromkeys(os.path.realpath(place) for place in places))
