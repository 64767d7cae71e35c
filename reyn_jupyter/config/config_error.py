"""The error of a configuration, in words by which a person can mend it."""

from __future__ import annotations

from reyn_jupyter.support.user_errors import UserError


class ConfigError(UserError):
    """A configuration that cannot be used.

    Attributes:
        message: what is wrong and what would be right.
        source: the file's name, or where else the value came from.
        line: the 1-based line in the file, where there is one.
        key: the dotted key, where there is one.

    >>> str(ConfigError("unknown key; did you mean 'names'?", source="reyn.yaml", line=3, key="router.nams"))
    "reyn.yaml, line 3: router.nams: unknown key; did you mean 'names'?"
    """

    def __init__(self, message: str, *, source: str = "", line: int | None = None, key: str = "") -> None:
        place = ", ".join(part for part in (source, f"line {line}" if line else "") if part)
        super().__init__(": ".join(part for part in (place, key, message) if part))
        self.message = message
        self.source = source
        self.line = line
        self.key = key
