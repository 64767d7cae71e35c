"""One file a kind of action. Adding a kind is adding a file that exports ``categories(services)``.

Third parties do the same in their own packages, through the entry point group `reyn_jupyter.categories`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from importlib.metadata import entry_points

from reyn_jupyter.catalog.action import Category
from reyn_jupyter.runtime.services import Services

GROUP = "reyn_jupyter.categories"


def load(services: Services) -> tuple[list[Category], list[str]]:
    """The installed categories, and one sentence for each that could not be loaded."""
    categories: list[Category] = []
    problems: list[str] = []
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        module = importlib.import_module(f"{__name__}.{name}")
        if hasattr(module, "categories"):
            categories += module.categories(services)
    for point in entry_points(group=GROUP):
        try:
            categories += _checked(point.load()(services))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - another package's code
            problems.append(
                f"the category package {point.name!r} could not be loaded: {type(error).__name__}: {error}"
            )
    return categories, problems


def _checked(given: Sequence[object]) -> list[Category]:
    for category in given:
        if not isinstance(category, Category):
            raise TypeError(
                f"categories(services) gave a {type(category).__name__} where a Category is needed"
            )
    return [category for category in given if isinstance(category, Category)]
