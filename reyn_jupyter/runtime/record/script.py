"""A run as ordinary code: one call a step, data flowing through variables; it needs no model.

Invariant: the code holds only literals and names that it defined, so a string of a tool or a model stays a string.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.runtime.record.trace import Call, Trace
from reyn_jupyter.support.sanitize import printable

WIDTH = 100
_MARK = re.compile(r"\[redacted:([A-Za-z0-9_.-]+)\]")


class ScriptError(ValueError):
    """The run did nothing that a script could do again."""


@dataclass(frozen=True)
class Script:
    """The code of a run. `str(script)` is the code; `script.run()` is not offered: read it, then run it."""

    run: str
    code: str

    def __str__(self) -> str:
        return self.code

    @property
    def payload(self) -> str:
        return self.code


def script_of(trace: Trace) -> Script:
    """Return the code that repeats a run's successful calls.

    Returns:
        A `Script`. Its last name is `result`, the value of the last call.

    Raises:
        ScriptError: the run invoked nothing.
    """
    names: dict[str, str] = {}
    lines: list[str] = []
    last = ""
    for call in trace.calls:
        if not call.ok or call.finished is None:
            continue
        if call.resolved.wrapper == "inspect" and isinstance(call.resolved.arguments, dict):
            last = f"step_{len(lines) + 1}"
            lines.append(f"{last} = session.inspect({_inspect(call, names)})")
        elif call.resolved.inner is not None and call.resolved.name:
            last = f"step_{len(lines) + 1}"
            arguments = _literal(call.resolved.inner, names)
            lines.append(f"{last} = session.invoke_action({call.resolved.name!r}, {arguments})")
            if call.finished.blob:
                names[call.finished.blob] = f"{last}.blob.id"
    if not lines:
        raise ScriptError("this run invoked no action successfully, so there is nothing to repeat")
    end = (
        f"result = {last}.text"
        if lines[-1].startswith(f"{last} = session.inspect")
        else f"result = {last}.value"
    )
    head = [
        f"# The calls of the run {trace.run[-12:]}: {_comment(trace.prompt)}",
        *(["import os", ""] if any("os.environ[" in line for line in lines) else []),
        "import reyn_jupyter as reyn",
        "",
        "session = reyn.session()",
    ]
    return Script(trace.run, "\n".join([*head, *lines, end, ""]))


def _inspect(call: Call, names: dict[str, str]) -> str:
    given = call.resolved.arguments
    parts = [_literal(given.get("blob_id"), names)]
    if given.get("selector") is not None:
        parts.append(repr(given["selector"]))
    return ", ".join(parts)


def _comment(text: str) -> str:
    line = " ".join(text.split())
    return printable(line[:80])


class _Name(str):
    """A string whose `repr` is the expression that it stands for."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _literal(value: Any, names: dict[str, str]) -> str:
    """Return the code of a value: on one line, or a dict with an entry a line where that is too long."""
    named = _named(value, names)
    if isinstance(named, dict) and len(repr(named)) > WIDTH:
        entries = "".join(f"    {key!r}: {item!r},\n" for key, item in named.items())
        return f"{{\n{entries}}}"
    return repr(named)


def _named(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _named(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    if isinstance(value, str) and value in names:
        return _Name(names[value])
    if isinstance(value, str) and _MARK.search(value):
        return _Name(_from_environment(value))
    return value


def _from_environment(text: str) -> str:
    """Return a redacted text as an expression that reads its secrets from the environment again."""
    parts = []
    for place, part in enumerate(_MARK.split(text)):
        if place % 2 == 0:
            parts += [repr(part)] if part else []
        elif part == "key":
            raise ScriptError(
                "a call of this run was given a key that stands in no environment variable, and the record does "
                "not keep keys, so the run cannot be repeated from it"
            )
        else:
            parts.append(f"os.environ[{part!r}]")
    return " + ".join(parts)
