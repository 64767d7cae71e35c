"""Look for the imports of this package in installed places alone, whatever else is on `sys.path`.

A kernel has its working folder first on `sys.path`, and a notebook may have added others, so a cloned folder could
bring a module called yaml, a part of somebody's namespace package, or metadata that names an entry point. All would
run at the first `%reyn`, before anybody trusted the folder.

Invariant: an import by name that code of this package causes, directly or through a library, finds only what lies in
the `installed_places`, and of a package that spreads over several folders only the parts there. What the person's own
code imports, called from here or not, is found as ever: `sys.path` and the packages themselves stay as Python has them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from reyn_jupyter.support.installed_places import installed_path, is_installed, is_library, is_persons

if TYPE_CHECKING:
    from types import FrameType, ModuleType

P = ParamSpec("P")
T = TypeVar("T")
_STEP_OF_TASK = ("asyncio.events", "_run")  # asyncio itself is imported by whoever needs it
_PACKAGE = __name__.partition(".")[0]
# What counts where no frame says whose an import is: in a task or a thread in which a library is at work. None where
# nobody said: then the frames below a task's own count, of whoever runs the loop.
_for_this_package: ContextVar[bool | None] = ContextVar("for_this_package", default=None)


def call_as_person(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call what is the person's: what it imports, also through a library, is found as the person's own code finds it.

    Code of this package that it calls in its turn imports as this package again.
    """
    with imports_of_person():
        return function(*args, **kwargs)


@contextmanager
def imports_of_person() -> Iterator[None]:
    """Count imports in tasks and threads that begin in the block, where no frame says more, as the person's."""
    token = _for_this_package.set(False)
    try:
        yield
    finally:
        _for_this_package.reset(token)


@contextmanager
def imports_of(handler: object) -> Iterator[None]:
    """Count imports in tasks and threads that begin in the block, where no frame says more, as those of its code.

    Args:
        handler: what is awaited in the block: a function, or an object that says its class's module.
    """
    token = _for_this_package.set(not _is_of_person(handler))
    try:
        yield
    finally:
        _for_this_package.reset(token)


def import_as(handler: object) -> None:
    """Count imports as `imports_of` does, from now on in this context."""
    _for_this_package.set(not _is_of_person(handler))


def _is_of_person(handler: object) -> bool:
    name = getattr(handler, "__module__", None)
    if name == "__main__":
        return True
    if not isinstance(name, str) or _is_own(name):
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return isinstance(file, str) and is_persons(file)


def package_imports() -> None:
    """Count what libraries import in tasks and threads of their own, from now on in this context, as this package's."""
    _for_this_package.set(True)


def protect_imports() -> None:
    """Put the finder of this module where Python's own one is on `sys.meta_path`; again is harmless."""
    if PathFinder in sys.meta_path:
        sys.meta_path[sys.meta_path.index(PathFinder)] = InstalledFirstFinder


class InstalledFirstFinder(PathFinder):
    """Python's finder, which for this package looks into installed places alone, for modules and for metadata."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        searched = list(sys.path if path is None else path)
        parent = fullname.rpartition(".")[0]
        places = [place for place in searched if _is_of_package(place, parent) or is_installed(place)]
        if len(places) == len(searched) or not _asked_by_this_package():
            return super().find_spec(fullname, path, target)
        found = super().find_spec(fullname, places, target)
        if found is not None and found.loader is None:
            # A namespace package runs nothing itself. It is the person's too, with all of its folders; which of them
            # are looked into is asked again for each module in it.
            whole = super().find_spec(fullname, path, target)
            return whole if whole is not None and whole.loader is None else found
        return found

    @classmethod
    def find_distributions(cls, context: Any = None) -> Any:
        from importlib.metadata import DistributionFinder, MetadataPathFinder

        named = {} if context is None else vars(context)
        if "path" not in named and _asked_by_this_package():
            named = {**named, "path": installed_path()}
        # Not Python's own finder, whose way to it the package importlib_metadata, which Dask imports, takes away.
        return MetadataPathFinder.find_distributions(DistributionFinder.Context(**named))


def _is_of_package(place: object, package: str) -> bool:
    """Return whether a folder of the path of a package is the package's own, or that of an installed part of it."""
    if not package or not isinstance(place, str):
        return False
    if is_library(place):
        return True
    tail = os.sep + package.replace(".", os.sep)
    if place.endswith(tail) and is_installed(place.removesuffix(tail) or os.sep):
        return True
    file = getattr(sys.modules.get(package), "__file__", None)
    if not isinstance(file, str):  # a namespace package, which has no code of its own
        return False
    own = os.path.dirname(file)
    return place == own or place.startswith(own + os.sep)


def _is_own(module: str) -> bool:
    return module == _PACKAGE or module.startswith(_PACKAGE + ".")


def _asked_by_this_package() -> bool:
    """Return whether an import comes from this package with no code of the person's in between."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code is call_as_person.__code__:
            return False
        module = frame.f_globals.get("__name__")
        if isinstance(module, str) and module != __name__:
            if module == "__main__":  # a cell, or the person's program
                return False
            if _is_own(module):
                return True
            if is_persons(frame.f_code.co_filename):
                return False
            if (module, frame.f_code.co_name) == _STEP_OF_TASK and (
                known := _for_this_package.get()
            ) is not None:
                return known
        frame = frame.f_back
    return bool(_for_this_package.get())
