"""One file a kind of action. Adding a kind is adding a file that exports ``categories(services)``.

Third parties do the same in their own packages, through the entry point group `reyn_jupyter.categories`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points

from reyn_jupyter.catalog.action import Category
from reyn_jupyter.runtime.services import Services

GROUP = "reyn_jupyter.categories"
PACKAGE = "package "  # before the name of what came from another package


Factory = Callable[[Services], Sequence[Category]]


def factories() -> tuple[tuple[tuple[str, Factory], ...], tuple[str, ...]]:
    """Return the factories of the installed categories, (origin, factory), and a sentence for each broken one."""
    found: list[tuple[str, Factory]] = []
    problems: list[str] = []
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        module = importlib.import_module(f"{__name__}.{name}")
        if hasattr(module, "categories"):
            found.append((name, module.categories))
    for point in entry_points(group=GROUP):
        try:
            found.append((f"{PACKAGE}{point.name}", point.load()))
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


def _broken(name: str, error: BaseException) -> str:
    return f"the category package {name!r} could not be loaded: {type(error).__name__}: {error}"


def _checked(given: Sequence[object]) -> list[Category]:
    for category in given:
        if not isinstance(category, Category):
            raise TypeError(
                f"categories(services) gave a {type(category).__name__} where a Category is needed"
            )
    return [category for category in given if isinstance(category, Category)]
