r"""Variables in prompts: only those that are named, by ``--vars a,b`` or ``{{name}}``, once, and said on the card.

Everything else in a prompt is literal: single braces, dollars and quotes survive, and ``\{{name}}`` is the text
``{{name}}``. What a variable becomes is bounded; a user object's own `repr` is never asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.holes import HOLE
from reyn_jupyter.support.text import did_you_mean, nearest_names

TEXT = 100_000  # characters of a text variable in a prompt
PREVIEW = 4_000  # characters of any other variable's description
ROWS = 5


def interpolate(
    text: str, names: Sequence[str], namespace: Mapping[str, Any], redactor: Any
) -> tuple[str, list[dict[str, Any]]]:
    """Fill the holes of a prompt.

    Args:
        text: the prompt; ``{{orders}}`` is a hole, ``{orders}`` is not.
        names: variables to append under the prompt.
        redactor: knows what looks like a secret; such a variable is refused.

    Returns:
        The prompt, and what was put into it: [{kind, name, bytes}].

    Raises:
        ReynError: a name that is not there, is no identifier, or names a secret.
    """
    sent: dict[str, dict[str, Any]] = {}

    def shown(name: str, way_out: str) -> str:
        value = _variable(name, namespace, redactor, way_out)
        text = preview(value)
        sent[name] = {"kind": "variable", "name": name, "bytes": len(text.encode("utf-8", "replace"))}
        return text

    def fill(hole: re.Match[str]) -> str:
        if hole[1]:
            return hole[0][1:]
        return shown(hole[2], f"To send the braces as they stand, write \\{hole[0]}.")

    filled = HOLE.sub(fill, text)
    for name in names:
        filled += f"\n\nThe variable {name}:\n{shown(name, 'Run the cell that defines it first.')}"
    return filled, list(sent.values())


def _variable(name: str, namespace: Mapping[str, Any], redactor: Any, way_out: str) -> Any:
    from reyn_jupyter.runtime.namespace.variables import is_secret

    if not name.isidentifier():
        raise ReynError(f"{name[:80]!r} is no variable name.", "For example: --vars orders,limit")
    if name not in namespace:
        known = [each for each in namespace if type(each) is str and not each.startswith("_")]
        meant = did_you_mean(nearest_names(name, known, 1))
        raise ReynError(f"There is no variable {name!r}.", f"{meant} {way_out}".strip())
    if is_secret(name, namespace[name], redactor):
        raise ReynError(
            f"The variable {name!r} looks like a secret, so it is not put into a prompt.", "Leave it out."
        )
    return namespace[name]


def preview(value: Any) -> str:
    """A bounded text of a value: a text itself, a scalar as JSON, of anything else its type, shape and first rows.

    >>> preview("word"), preview(3), preview([1, 2])
    ('word', '3', '{"type":"list","length":2,"elements":{"int":2},"head":[1,2]}')
    """
    from reyn_jupyter.backends.object_summary import describe
    from reyn_jupyter.support.encoding import compact

    if type(value) is str:
        return _cut(value, TEXT)
    described = describe(value, ROWS, head=True)
    if "value" in described:
        single = described["value"]
        return _cut(single if isinstance(single, str) else compact(single), PREVIEW)
    return _cut(compact(described), PREVIEW)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}… (cut: the first {most:,} of {len(text):,} characters)"
