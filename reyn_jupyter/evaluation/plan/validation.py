"""The base of everything that a study holds (frozen, checked, one canonical JSON), and checks of what people write.

Invariant: what does not fit is refused where it is written, before anything is paid for or stored, in words that name
the field or the argument, what was given, and what would fit.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Self, SupportsFloat, SupportsIndex, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from reyn_jupyter.models.base import canonical
from reyn_jupyter.support.text import meant_clause
from reyn_jupyter.support.user_errors import UserError
from reyn_jupyter.support.validation_messages import problems, quote_value


class FrozenModel(BaseModel):
    """A value that never changes: equal values have equal digests in every process."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON, in hex."""
        return hashlib.sha256(canonical(self.model_dump(mode="json"))).hexdigest()


K = TypeVar("K")
# What names for held texts are to whoever writes one.
_PLAIN = {"Identifier": "str", "QualifiedName": "str"}


class FieldError(UserError, ValueError):
    """Fields of a scenario or a variant that do not fit.

    Attributes:
        problems: ``"field: why"``, one each.
    """

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    @classmethod
    def of(cls, whose: str, problems: Sequence[str]) -> Self:
        """Return the error of one value, named."""
        one = f"{whose}: {problems[0]}"
        return cls(one if len(problems) == 1 else "\n- ".join([f"{whose}:", *problems]), problems)


class Stated(FrozenModel):
    """The base of what people write in Python. Raises FieldError for fields that do not fit."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Let `Scenario?` show what one would write, and not how pydantic holds to it."""
        places = inspect.signature(cls.__init__).parameters
        cls.__signature__ = inspect.Signature(  # pydantic makes its own on first use
            [
                inspect.Parameter(
                    name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD
                    if name in places
                    else inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty
                    if field.is_required()
                    else field.get_default(call_default_factory=True),
                    annotation=_PLAIN.get(written := str(cls.__annotations__.get(name, "")), written),
                )
                for name, field in cls.model_fields.items()
            ]
        )

    def __init__(self, /, **fields: Any) -> None:
        """Make it from the fields above."""
        try:
            super().__init__(**fields)
        except ValidationError as error:
            kind = type(self)
            given = fields.get("name", fields.get("id"))
            whose = f"{kind.__name__} {given!r:.100}" if isinstance(given, str) and given else kind.__name__
            raise FieldError.of(whose, problems(error, kind)) from None

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield what is said of it: the defaults go without saying."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if field.is_required() or value != field.get_default(call_default_factory=True):
                yield name, value

    def __str__(self) -> str:
        return repr(self)


def whole(
    name: str, value: object, error: type[ValueError], *, least: int = 1, most: int | None = None
) -> int:
    """Return a whole number; numpy's, and floats that are whole (1e6), are taken too.

    Raises:
        ValueError: of the given class, for anything else.

    Example:
        >>> whole("n", "3", ValueError)
        Traceback (most recent call last):
        ValueError: n='3': give a whole number from 1 on.
    """
    bounds = f"from {least:,} on" if most is None else f"from {least:,} to {most:,}"
    exact = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(exact, SupportsIndex) and not isinstance(exact, bool):
        found = operator.index(exact)
        if found >= least and (most is None or found <= most):
            return found
    raise error(f"{name}={quote_value(value)}: give a whole number {bounds}.")


def number(name: str, value: object, error: type[ValueError], *, below: float = math.inf) -> float:
    """Return a finite number above 0 and below a bound; numpy's are taken too. Raises the given class for anything
    else."""
    if isinstance(value, SupportsFloat) and not isinstance(value, bool):
        found = float(value)
        if 0 < found < below:
            return found
    bounds = "above 0" if below == math.inf else f"above 0 and below {below:g}"
    raise error(f"{name}={quote_value(value)}: give a number {bounds}.")


def choice(name: str, value: object, choices: Iterable[str], error: type[ValueError]) -> None:
    """Return one of some words. Raises the given class for anything else."""
    allowed = list(choices)
    if not isinstance(value, str) or value not in allowed:
        quoted = " or ".join(f'"{each}"' for each in allowed)
        raise error(
            f"{name}={quote_value(value)} is not known{meant_clause(value, allowed) or '.'} Take {quoted}."
        )


def instance(name: str, value: object, kind: type[K], error: type[ValueError], example: str) -> K:
    """Return an object of a class. Raises the given class for anything else, with an example of what fits."""
    if not isinstance(value, kind):
        raise error(f"{name}={quote_value(value)} is no {kind.__name__}; give {example}.")
    return value
