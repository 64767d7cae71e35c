"""One file a kind of action. Adding a kind is adding a file that exports ``categories(services)``.

Third parties do the same in their own packages, through the entry point group `reyn_jupyter.categories`.

Invariant: only an installed package adds categories. What lies in a workspace or in the working folder is not looked
at, and a module is taken from the package that names it, from no file that stands in its place.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint
from typing import Any
from urllib.parse import unquote, urlsplit

from reyn_jupyter.catalog.action import Category
from reyn_jupyter.runtime.services import Services
from reyn_jupyter.support.import_path import installed_distributions, persons_imports

GROUP = "reyn_jupyter.categories"
PACKAGE = "package "  # before the name of what came from another package


Factory = Callable[[Services], Sequence[Category]]


@dataclass(frozen=True)
class CategoryPackage:
    """An installed package that adds categories.

    Attributes:
        name, version: as its metadata says.
        place: the folder that it is installed in; of an editable installation, the folder of its sources.
        modules: what its entry points name.
    """

    name: str
    version: str
    place: str
    modules: tuple[str, ...]


def packages() -> tuple[CategoryPackage, ...]:
    """Return the installed packages that add categories, in the order of the import path; none of them is imported."""
    found: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for package, point in _entry_points():
        key = (package.name, package.version, _home(package)[0])
        found[key] = (*found.get(key, ()), point.module)
    return tuple(CategoryPackage(*key, modules) for key, modules in found.items())


def factories() -> tuple[tuple[tuple[str, Factory], ...], tuple[str, ...]]:
    """Return the factories of the installed categories, (origin, factory), and a sentence for each broken one."""
    found: list[tuple[str, Factory]] = []
    problems: list[str] = []
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        module = importlib.import_module(f"{__name__}.{name}")
        if hasattr(module, "categories"):
            found.append((name, module.categories))
    for package, point in _entry_points():
        try:
            found.append((f"{PACKAGE}{point.name}", _loaded(package, point)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - another package's code
            problems.append(_broken(point.name, error))
    return tuple(found), tuple(problems)


def load(services: Services) -> tuple[list[Category], list[str]]:
    """The installed categories, and one sentence for each that could not be loaded."""
    found, problems = factories()
    categories, more = make(found, services)
    return categories, [*problems, *more]


def make(found: Sequence[tuple[str, Factory]], services: Services) -> tuple[list[Category], list[str]]:
    """The categories that these factories make for one session, and a sentence for each that fails."""
    categories: list[Category] = []
    problems: list[str] = []
    for name, factory in found:
        if not name.startswith(PACKAGE):
            categories += factory(services)
            continue
        try:
            categories += _checked(factory(services))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - another package's code
            problems.append(_broken(name.removeprefix(PACKAGE), error))
    return categories, problems


def _entry_points() -> Iterator[tuple[Distribution, EntryPoint]]:
    """Yield the entry points of installed packages; of two packages of one name, of the first on the import path."""
    names = set()
    for package in installed_distributions():
        points = [point for point in package.entry_points if point.group == GROUP]
        if points and package.name not in names:
            names.add(package.name)
            yield from ((package, point) for point in points)


def _home(package: Distribution) -> tuple[str, bool]:
    """Return the folder that the modules of a package lie in, and whether the installation is an editable one."""
    try:
        origin: Any = json.loads(package.read_text("direct_url.json") or "{}")
        url = urlsplit(origin["url"])
        if origin["dir_info"]["editable"] is True and url.scheme == "file":
            return os.path.realpath(unquote(url.path)), True
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass
    return os.path.realpath(str(package.locate_file(""))), False


def _loaded(package: Distribution, point: EntryPoint) -> Any:
    """Import what an entry point names, from its own package alone.

    Raises:
        ImportError: the module that answers to the name lies elsewhere.
        Exception: whatever the package's code raises.
    """
    home, editable = _home(package)
    # Sources that somebody installed by hand are on the import path, in a workspace too.
    with persons_imports() if editable else nullcontext():
        factory = point.load()
    file = os.path.realpath(getattr(sys.modules[point.module], "__file__", None) or "")
    if not file.startswith(home.rstrip(os.sep) + os.sep):
        raise ImportError(
            f"the module {point.module!r} was imported from {file}, which hides the one of the package in {home}; "
            "rename that file, then restart the kernel"
        )
    return factory


def _broken(name: str, error: BaseException) -> str:
    return f"the category package {name!r} could not be loaded: {type(error).__name__}: {error}"


def _checked(given: Sequence[object]) -> list[Category]:
    for category in given:
        if not isinstance(category, Category):
            raise TypeError(
                f"categories(services) gave a {type(category).__name__} where a Category is needed"
            )
    return [category for category in given if isinstance(category, Category)]
