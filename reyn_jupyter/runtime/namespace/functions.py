"""Functions that the person made actions: the register behind `@reyn.action`.

Invariant: registering runs nothing of the function and imports nothing for it; the function itself stays an
ordinary function. The same name again replaces. One register serves the process (`functions`, one of its two
globals); a session has a child of its own, whose names win.

Example::

    @reyn.action
    def discount(price: float, percent: float = 10) -> float:
        \"\"\"Take a rebate off a price.\"\"\"
        return price * (1 - percent / 100)
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from reyn_jupyter.catalog.action import Purity
from reyn_jupyter.runtime.namespace.signatures import Parameters
from reyn_jupyter.support.encoding import clip
from reyn_jupyter.support.import_path import call_as_person

LONGEST_NAME = 64  # characters
_LONGEST_DESCRIPTION = 2000  # bytes
_MOST_PARENTHESES = (
    50  # in a line of a docstring: the parser takes a second for 500, and cubically more for more
)
_NAME = re.compile(r"[^\W\d][\w.-]*")
_METHOD = re.compile(r"(?:^|.*\.)(?!<locals>)[^.<>]+\.[^.<>]+")
_serials = itertools.count(1)

Function = TypeVar("Function", bound=Callable[..., Any])


class RegistrationError(TypeError):
    """Something that cannot be an action; the message says why and what would work."""


@dataclass(frozen=True, eq=False)
class RegisteredFunction:
    """A function as an action.

    Attributes:
        name: the entry of its qualified name, ``function__<name>``.
        function: the person's callable.
        description: from the docstring's first part, unless stated.
        purity: unknown unless stated, which counts as write for scheduling.
        parameters: its schema, and how arguments become Python values.
        serial: differs for every registration.
    """

    name: str
    function: Callable[..., Any]
    description: str
    purity: Purity
    parameters: Parameters
    serial: int = field(default_factory=lambda: next(_serials))

    @property
    def input_schema(self) -> dict[str, Any]:
        return self.parameters.schema

    def call(self, args: Mapping[str, Any]) -> Any:
        """Validate and convert arguments, and call the function; a coroutine function gives its coroutine.

        Raises:
            ActionError: the arguments do not fit.
            Exception: whatever the function raises.
        """
        positional, named = self.parameters.bind(args)
        return call_as_person(self.function, *positional, **named)


class FunctionRegister:
    """Functions by name.

    Args:
        parent: a register whose functions are here too, unless the same name is.
    """

    def __init__(self, parent: FunctionRegister | None = None) -> None:
        self._parent = parent
        self._own: Mapping[str, RegisteredFunction] = {}

    def all(self) -> Mapping[str, RegisteredFunction]:
        """Return every function by name, in a mapping that does not change when more are registered."""
        return {**self._parent.all(), **self._own} if self._parent else self._own

    @overload
    def action(self, function: Function, /) -> Function: ...
    @overload
    def action(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        purity: Purity | str | None = None,
        description: str | None = None,
    ) -> Callable[[Function], Function]: ...
    @overload
    def action(
        self,
        function: Function,
        /,
        *,
        name: str | None = None,
        purity: Purity | str | None = None,
        description: str | None = None,
    ) -> Function: ...

    def action(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        purity: Purity | str | None = None,
        description: str | None = None,
    ) -> Any:
        """Register a function as an action: ``@action``, ``@action(purity="read")`` or ``action(f, name="g")``.

        Args:
            function: a function, bound method, partial or other callable with a signature. Every parameter needs a
                name: ``*args`` and ``**kwargs`` are refused. An async function runs on the engine's loop.
            name: the entry of its qualified name; the function's own unless stated.
            purity: "pure" or "read" let it run beside others and again in a replay; "unknown" unless stated.
            description: what the model reads; the docstring unless stated.

        Returns:
            The function itself.

        Raises:
            RegistrationError: it cannot be an action, with the reason.
        """

        def register(function: Function) -> Function:
            self.add(function, name=name, purity=purity, description=description)
            return function

        return register if function is None else register(function)

    def add(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        purity: Purity | str | None = None,
        description: str | None = None,
    ) -> RegisteredFunction:
        """Register a function by a plain call, with the options of `action`, and return the registration."""
        entry = _checked_name(function, name)
        signature = _checked_signature(function, entry)
        documented, notes = _parse_docstring(_docstring(function))
        text = description or documented or f"The notebook's function {entry}{_names(signature)}."
        registered = RegisteredFunction(
            entry,
            function,
            clip(text, _LONGEST_DESCRIPTION),
            _checked_purity(purity),
            Parameters(function, signature, notes),
        )
        # A new mapping each time: the engine may be reading the old one.
        self._own = {**self._own, entry: registered}
        return registered

    def remove(self, name: str) -> None:
        """Take a function out; one that is not here is no error."""
        self._own = {entry: function for entry, function in self._own.items() if entry != name}


def _parse_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """Return the description in a docstring, and what it says about each parameter, on one line each.

    Google, NumPy, Sphinx and Epydoc forms are read; whatever is in none of them stays description.
    """
    from docstring_parser import parse

    text = inspect.cleandoc(text or "")
    if any(line.count("(") > _MOST_PARENTHESES for line in text.split("\n")):
        return text, {}
    try:
        parsed = parse(text)
    except Exception:  # noqa: BLE001 - free text, on which the parser raises more than its ParseError
        return text, {}
    notes = {
        name.strip().lstrip("*"): " ".join((each.description or "").split())
        for each in parsed.params
        if each.args[0] != "attribute"
        for name in each.arg_name.split(",")
    }
    return (parsed.description or "").strip(), notes


def _checked_name(function: Any, name: str | None) -> str:
    if isinstance(function, staticmethod | classmethod | property):
        raise RegistrationError(
            f"a {type(function).__name__} cannot be registered inside its class; register Class.method after it"
        )
    if not callable(function):
        raise RegistrationError(f"only a function can become an action, not a {type(function).__name__}")
    if inspect.isclass(function):
        raise RegistrationError(
            f"{function.__name__} is a class; register a function that makes and returns an instance of it"
        )
    entry = name if name is not None else getattr(function, "__name__", None)
    if entry is None or entry == "<lambda>":
        raise RegistrationError('this callable has no name of its own; give one: action(function, name="…")')
    if not isinstance(entry, str) or len(entry) > LONGEST_NAME or not _NAME.fullmatch(entry):
        raise RegistrationError(
            f"{str(entry)[:LONGEST_NAME]!r} cannot be an action's name: a letter or _ first, then letters, digits, "
            f"_ . or -, at most {LONGEST_NAME} characters"
        )
    return entry


def _checked_signature(function: Any, name: str) -> inspect.Signature:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise RegistrationError(f"{name} yields its values one by one; return a list instead")
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise RegistrationError(
            f"{name} does not tell its parameters ({error}); wrap it in a function that names them"
        ) from None
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise RegistrationError(
                f"{name} takes {stars}{parameter.name}, which no schema can describe; name each parameter"
            )
    first = next(iter(signature.parameters), "")
    if first in ("self", "cls") and _METHOD.fullmatch(getattr(function, "__qualname__", "")):
        raise RegistrationError(f"{name} is a method; register it bound to an object: action(obj.{name})")
    return signature


def _checked_purity(purity: Purity | str | None) -> Purity:
    try:
        return Purity.UNKNOWN if purity is None else Purity(purity)
    except ValueError:
        known = ", ".join(Purity)
        raise RegistrationError(f"{purity!r} is no purity; use one of {known}") from None


def _docstring(function: Any) -> str | None:
    """Return a function's own docstring, never its class's, which a partial or a callable object would give."""
    if inspect.isroutine(function):
        return inspect.getdoc(function)
    call = type(function).__call__
    return inspect.getdoc(call) if inspect.isfunction(call) else None


def _names(signature: inspect.Signature) -> str:
    return f"({', '.join(signature.parameters)})"


functions = FunctionRegister()
action = functions.action
