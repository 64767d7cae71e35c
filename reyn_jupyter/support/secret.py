"""A secret value, told by its name.

Invariant: nothing but `reveal` gives the value: not text, formatting, comparison, copies, attributes or pickling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


class Secret:
    """A named value for a header, or for the environment of a program.

    Args:
        name: what people call it.
        value: what it is.

    Example:
        >>> Secret("RATES_API_KEY", "correct-horse")
        Secret('RATES_API_KEY')
    """

    __slots__ = ("_reveal", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._reveal: Callable[[], str] = lambda: value

    def reveal(self) -> str:
        """Return the value. Give it to what needs it, and keep no copy."""
        return self._reveal()

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: Any) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the secret {self.name} is not pickled: ask for it by its name where it is needed")
