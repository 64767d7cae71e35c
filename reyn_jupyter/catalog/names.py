"""One action, one qualified name: ``<category>__<entry>``.

Invariant: ``ActionName.parse(str(name)) == name`` for every name that was parsed or stands in a snapshot.
The category ends at the first ``__``; the entry may hold anything, ``__`` included. Names travel as
*arguments*, so dots and spaces in them are harmless; where a name has to be a function name (hot list, flat
surface) `NameEncoder` makes it one, and back. Source of the naming rule: Universal Action Catalog
(FP-0034), "Qualified-name format".
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

SEPARATOR = "__"
CHOOSE = "choose_action"  # the tool by which a model picks from a short list, where it is asked to
WRAPPERS = ("list_actions", "describe_action", "invoke_action", "search_actions", "inspect")
LONGEST_NAME = 512  # characters; anything longer is no name but a mistake

_CATEGORY = re.compile(r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*")
_ECHO = re.compile(r"(?:default_api\.|\s)+")
# What models write around the name of a tool. Sources: public reports on GPT, Gemini, Kimi K2, gpt-oss, and vLLM.
_DRESS = re.compile(
    r"(?:(?:default_api|functions?|tools?|multi_tool_use|to=functions)[.:]|[\s\"'`])+", re.IGNORECASE
)
_TRAIN = re.compile(r"(?:<\|.*|:\d+|\(\)|[\s\"'`])+$", re.DOTALL)
_FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOT_IN_FUNCTION_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_FUNCTION_NAME = 64


class MalformedNameError(ValueError):
    """Text that cannot be a qualified name, whatever is installed."""


@dataclass(frozen=True, order=True)
class ActionName:
    """A qualified name, parsed once and used everywhere.

    >>> ActionName.parse("agent.peer__alice")
    ActionName(category='agent.peer', entry='alice')
    >>> str(ActionName("mcp", "call_tool"))
    'mcp__call_tool'
    """

    category: str
    entry: str

    @classmethod
    def parse(cls, text: str) -> ActionName:
        """Read a qualified name; a leading ``default_api.`` (some models echo it) is dropped.

        Raises:
            MalformedNameError: no separator, an empty entry, a category that no name can have, or too long.
        """
        trimmed = text.strip()
        echo = _ECHO.match(trimmed)
        category, _, entry = (trimmed[echo.end() :] if echo else trimmed).partition(SEPARATOR)
        if not entry or len(entry) > LONGEST_NAME or not is_category_name(category):
            raise MalformedNameError(text[:LONGEST_NAME])
        return cls(category, entry)

    @cached_property
    def text(self) -> str:
        return f"{self.category}{SEPARATOR}{self.entry}"

    def __str__(self) -> str:
        return self.text


def bare_name(text: str, known: Collection[str] = ()) -> str:
    """Return a tool's name without what models write around it.

    Args:
        text: The name as a model wrote it.
        known: Names of the tools on offer. A name of one of them stays; case and hyphens of another one may differ.

    Example:
        >>> bare_name("functions.list_actions:0"), bare_name("inspect<|channel|>commentary")
        ('list_actions', 'inspect')
        >>> bare_name("List-Actions", ["list_actions"])
        'list_actions'
    """
    if text in known or len(text) > 2 * LONGEST_NAME:
        return text
    dress = _DRESS.match(text)
    bare = _TRAIN.sub("", text[dress.end() :] if dress else text)
    alike = [name for name in known if _folded(name) == _folded(bare)] if bare not in known else ()
    return alike[0] if len(alike) == 1 else bare or text


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")


def is_category_name(text: str) -> bool:
    """Return whether a category can have this name: lower-case words joined by single ``.``, ``_`` or ``-``."""
    return len(text) <= LONGEST_NAME and _CATEGORY.fullmatch(text) is not None


class NameEncoder:
    """Qualified names as function names (``^[a-zA-Z0-9_-]{1,64}$``) and back, without a collision in one set.

    A name that is a function name already stays as it is; a dot becomes an underscore; whatever loses more than
    that, or would meet another name, carries a short hash. The result does not depend on the order of the names.

    >>> names = [ActionName("file", "read"), ActionName("agent.peer", "alice")]
    >>> [NameEncoder(names).encode(name) for name in names]
    ['file__read', 'agent_peer__alice']
    """

    def __init__(self, names: Iterable[ActionName]) -> None:
        self._decoded: dict[str, ActionName] = {}
        self._encoded: dict[ActionName, str] = {}
        dotted: dict[str, list[ActionName]] = {}
        lossy: list[ActionName] = []
        for name in sorted(set(names)):
            readable = name.text.replace(".", "_")
            if _is_free_form(name.text):
                self._put(name, name.text)
            elif _is_free_form(readable):
                dotted.setdefault(readable, []).append(name)
            else:
                lossy.append(name)
        for readable, same in dotted.items():
            if len(same) == 1 and readable not in self._decoded:
                self._put(same[0], readable)
            else:
                lossy += same
        for name in sorted(lossy):
            self._put(name, self._hashed(name))

    def encode(self, name: ActionName) -> str:
        """Return the function name of a name of the set. Raises KeyError for any other."""
        return self._encoded[name]

    def decode(self, function_name: str) -> ActionName | None:
        """Return the name that a function name stands for, or None when it stands for none of the set."""
        return self._decoded.get(function_name)

    def _put(self, name: ActionName, function_name: str) -> None:
        self._encoded[name] = function_name
        self._decoded[function_name] = name

    def _hashed(self, name: ActionName) -> str:
        readable = _NOT_IN_FUNCTION_NAME.sub("_", name.text[:_LONGEST_FUNCTION_NAME])
        digest = hashlib.sha256(name.text.encode("utf-8", "surrogatepass")).hexdigest()
        for length in range(8, len(digest) - 1):
            tail = "_" + digest[:length]
            candidate = readable[: _LONGEST_FUNCTION_NAME - len(tail)] + tail
            if candidate not in self._decoded:
                return candidate
        raise ValueError(f"no function name is left for {name.text[:LONGEST_NAME]!r}")


def _is_free_form(text: str) -> bool:
    return text not in WRAPPERS and _FUNCTION_NAME.fullmatch(text) is not None
