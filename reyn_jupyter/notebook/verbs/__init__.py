"""One file a verb; each exports `VERB`. Adding a verb is adding a file."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from reyn_jupyter.notebook.magic_line.verb import Verb
from reyn_jupyter.support.text import nearest

_ALIKE = 0.65  # verbs are short words: two that share half of their letters are different ones


@cache
def names() -> tuple[str, ...]:
    """Return the verbs' names, without importing them (a file ``list_.py`` is the verb ``list``)."""
    return tuple(sorted(module.name.rstrip("_") for module in pkgutil.iter_modules(__path__)))


def meant(name: str) -> str | None:
    """Return the verb that is mistyped in a name, None where none is near."""
    return nearest(name, names(), cutoff=_ALIKE)


@cache
def find(name: str) -> Verb | None:
    """Return the verb of a name, None where there is none."""
    if name not in names():
        return None
    files = {module.name.rstrip("_"): module.name for module in pkgutil.iter_modules(__path__)}
    verb: Verb = importlib.import_module(f"{__name__}.{files[name]}").VERB
    return verb
