"""One file a verb; each exports `VERB`. Adding a verb is adding a file."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from reyn_jupyter.notebook.verb import Verb


@cache
def names() -> tuple[str, ...]:
    """Return the verbs' names, without importing them (a file ``list_.py`` is the verb ``list``)."""
    return tuple(sorted(module.name.rstrip("_") for module in pkgutil.iter_modules(__path__)))


@cache
def find(name: str) -> Verb | None:
    """Return the verb of a name, None where there is none."""
    if name not in names():
        return None
    files = {module.name.rstrip("_"): module.name for module in pkgutil.iter_modules(__path__)}
    verb: Verb = importlib.import_module(f"{__name__}.{files[name]}").VERB
    return verb
