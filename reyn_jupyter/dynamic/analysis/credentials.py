"""Credentials that stand in code: a name like a secret's with a value that is written out.

Invariant: a name alone is nothing, nor a value alone but for the shapes of well-known keys, which
`support.key_shapes` has.
"""

from __future__ import annotations

import re
from typing import Any

from reyn_jupyter.support.secret_names import secret_name

_PLACEHOLDER = re.compile(
    r"[<{\[].*[>}\]]|(?:your|my|the|no|not|any|example|dummy|test|fake|sample)[-_ ].*|x{3,}|\*{3,}|\.{3,}|%s",
    re.I,
)
_WEAK_NAMES = re.compile(r"token|auth|cookie|bearer", re.I)


def is_credential(name: str, value: Any) -> bool:
    """Return whether a name like a secret's is given a value that looks like one.

    >>> is_credential("password", "hunter2-horse"), is_credential("token", "NUMBER"), is_credential("password", "")
    (True, False, False)
    """
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if not isinstance(value, str) or not 6 <= len(value) <= 4_096 or any(map(str.isspace, value)):
        return False
    if not secret_name(name) or _PLACEHOLDER.fullmatch(value) or value.casefold() == name.casefold():
        return False
    if _WEAK_NAMES.search(name):  # parsers have tokens, too
        return len(value) >= 16 and any(map(str.isdigit, value))
    return not value.isidentifier() or any(map(str.isdigit, value))
