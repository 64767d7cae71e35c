"""The notebook's variables that an agent may see and name.

Invariant: deciding it runs none of the person's code. A value is judged by the identity of its type and, for text
alone, by its content; `repr`, properties, `__getattr__`, `__len__` and `__class__` are never asked. Private names,
IPython's own, code (modules, functions, classes, callables) and what looks like a secret stay hidden.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Protocol

from reyn_jupyter.runtime.services import Services
from reyn_jupyter.support.secret_names import secret_name

_IPYTHONS = frozenset({"In", "Out", "exit", "quit", "get_ipython"})
_SHORTEST_KEY = 16  # characters of text, under a name that ends in "key", that pass for one
_LOOKED_AT = 4096  # characters of a text that are searched for a secret; borders redact the whole again

_mro_of = type.__dict__["__mro__"].__get__
_names_of = type.__dict__["__dict__"].__get__  # past a metaclass that has a `__dict__` of its own


class RedactsText(Protocol):
    """The part of `secrets.Redactor` that is needed here."""

    def redacts(self, text: str) -> bool: ...


def is_secret(name: str, value: object, redactor: RedactsText) -> bool:
    """Return whether a variable looks like a secret, by its name or, for text and bytes, by its content."""
    if secret_name(name):
        return True
    if type(value) is str:
        text = value[:_LOOKED_AT]
    elif type(value) is bytes:
        text = value[:_LOOKED_AT].decode("utf-8", "replace")
    else:
        return False
    keylike = name.lower().endswith("key") and len(text) >= _SHORTEST_KEY and not re.search(r"\s", text)
    return keylike or redactor.redacts(text)


_OURS = "reyn_jupyter."  # what `-o NAME` keeps is no data of the person's, unless it is a table
_RESULT_FRAME = "reyn_jupyter.runtime.record.result_frame"


def hidden(name: object, value: object) -> str | None:
    """Return the reason why a variable is not shown, by name and type alone; None when it may be."""
    if (reason := hidden_name(name)) is not None:
        return reason
    if callable(value) or ModuleType in _mro_of(type(value)):
        return "it is code (a module, function or class)"
    module = str(_names_of(type(value)).get("__module__", ""))
    if module.startswith(_OURS) and module != _RESULT_FRAME:
        return "it is an object of this session (a run, a table, a script)"
    return None


def hidden_name(name: object) -> str | None:
    """Return the reason why nothing under a name is shown, whatever it is; None where that depends on the value."""
    if type(name) is not str or not name.isidentifier():
        return "its name is no identifier"
    if name.startswith("_"):
        return "it is private"
    return "it belongs to IPython" if name in _IPYTHONS else None


def notebook_namespace() -> Mapping[str, Any]:
    """Return the notebook's variables, the live mapping; those of the program where there is no IPython."""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    if shell is not None:
        names: Mapping[str, Any] = shell.user_ns
        return names
    main = sys.modules.get("__main__")
    return vars(main) if main is not None else {}


def visible_variables(services: Services) -> dict[str, Any]:
    """Return the variables that may be shown, sorted by name."""
    found = dict(visible_now(services))
    return {
        name: found[name] for name in sorted(found) if not is_secret(name, found[name], services.redactor)
    }


def visible_now(services: Services) -> list[tuple[str, Any]]:
    """Return the variables that may be shown by name and type alone, in the namespace's order."""
    return [(name, value) for name, value in _items(services.namespace()) if hidden(name, value) is None]


def _items(namespace: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Return a copy of the live mapping's items; another thread may add to it meanwhile."""
    while True:
        try:
            return list(namespace.items())
        except RuntimeError as error:
            if "changed size" not in str(error):
                raise
