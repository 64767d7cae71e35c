"""A run as ordinary code: one call a step, data flowing through variables; it needs no model.

Invariant: the code holds only literals and names that it defined, so a string of a tool or a model stays a string. It
reads the environment only where the record says that a secret was taken out, never because a text reads like a mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.runtime.record.run_steps import Call
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.secrets import Redaction

WIDTH = 100
_Redactions = Mapping[
    tuple[tuple[str | int, ...], bool], Sequence[Redaction]
]  # by path, and whether in its key
_NO_REDACTIONS: _Redactions = {}


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
            arguments = _literal(call.resolved.inner, names, _by_place(call.resolved.redactions))
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
        f"# The calls of the run {_comment(trace.run[-12:])}: {_comment(trace.prompt)}",
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


def _by_place(redactions: Sequence[Redaction]) -> _Redactions:
    found: dict[tuple[tuple[str | int, ...], bool], list[Redaction]] = {}
    for redaction in redactions:
        found.setdefault((redaction.path, redaction.in_key), []).append(redaction)
    return found


def _literal(value: Any, names: dict[str, str], redactions: _Redactions = _NO_REDACTIONS) -> str:
    """Return the code of a value: on one line, or a dict with an entry a line where that is too long."""
    named = _named(value, names, redactions, ())
    if isinstance(named, dict) and len(repr(named)) > WIDTH:
        entries = "".join(f"    {key!r}: {item!r},\n" for key, item in named.items())
        return f"{{\n{entries}}}"
    return repr(named)


def _named(value: Any, names: dict[str, str], redactions: _Redactions, path: tuple[str | int, ...]) -> Any:
    if isinstance(value, dict):
        return {
            _text(key, redactions.get(((*path, key), True))): _named(item, names, redactions, (*path, key))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_named(item, names, redactions, (*path, place)) for place, item in enumerate(value)]
    if isinstance(value, str) and value in names:
        return _Name(names[value])
    return _text(value, redactions.get((path, False)))


def _text(text: Any, redactions: Sequence[Redaction] | None) -> Any:
    """Return a text, or the expression that reads what was taken out of it from the environment again."""
    if not redactions or not isinstance(text, str):
        return text
    parts, position = [], 0
    for redaction in redactions:
        if redaction.variable is None:
            raise ScriptError(
                "a call of this run was given a secret that is the value of no environment variable, and the record "
                "does not keep secrets, so the run cannot be repeated from it"
            )
        parts += [repr(text[position : redaction.start])] if redaction.start > position else []
        parts.append(f"os.environ[{redaction.variable!r}]")
        position = redaction.start + redaction.length
    parts += [repr(text[position:])] if position < len(text) else []
    return _Name(" + ".join(parts))
