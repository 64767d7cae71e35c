"""One file a kind of action. Adding a kind is adding a file that exports ``categories(services)``.

Third parties do the same in their own packages, through the entry point group `reyn_jupyter.categories`.

Invariant: only a package in an installed place adds categories. What lies elsewhere on the import path is not run, and
a module is taken from the package that names it, from no file that stands in its place.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from reyn_jupyter.catalog.action import Category
from reyn_jupyter.runtime.services import Services
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.installed_places import installed_distributions, other_path

GROUP = "reyn_jupyter.categories"
PACKAGE = "package "  # before the name of what came from another package
_MOST_METADATA = 1 << 20  # bytes of entry points that are read of what is not installed

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
        key = (package.name, package.version, _home(package))
        found[key] = (*found.get(key, ()), point.module)
    return tuple(CategoryPackage(*key, modules) for key, modules in found.items())


def packages_elsewhere() -> tuple[tuple[str, str], ...]:
    """Return what would add categories if it were installed, (name, folder), from folders that the import path has too.

    Their metadata is read as the text of regular files, within bounds, and says nothing but that it is there.
    """
    return tuple(
        (name.rpartition(".")[0], place)
        for place in other_path()
        for name in _metadata_folders(place)
        if _names_categories(PlainFolder(Path(place), name))
    )


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


def _metadata_folders(place: str) -> list[str]:
    try:
        with os.scandir(place) as found:
            return sorted(each.name for each in found if each.name.endswith((".dist-info", ".egg-info")))
    except OSError:
        return []


def _names_categories(metadata: PlainFolder) -> bool:
    try:
        return f"[{GROUP}]".encode() in metadata.read("entry_points.txt", _MOST_METADATA)
    except OSError:
        return False


def _home(package: Distribution) -> str:
    """Return the folder that the modules of a package lie in: where it is installed editable, that of its sources."""
    try:
        origin: Any = json.loads(package.read_text("direct_url.json") or "{}")
        url = urlsplit(origin["url"])
        if origin["dir_info"]["editable"] is True and url.scheme == "file":
            return os.path.realpath(unquote(url.path))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass
    return os.path.realpath(str(package.locate_file("")))


def _loaded(package: Distribution, point: EntryPoint) -> Any:
    """Import what an entry point names, from its own package alone.

    Raises:
        ImportError: the module that answers to the name lies elsewhere.
        Exception: whatever the package's code raises.
    """
    home = _home(package)
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
