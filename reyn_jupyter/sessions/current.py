"""The one session of a kernel, made when it is first used."""

from __future__ import annotations

import uuid

from reyn_jupyter.sessions.session import Session

# Of this kernel process: a display that another one saved is not gone on with.
SESSION_ID = uuid.uuid4().hex
_current: list[Session] = []


def session() -> Session:
    """Return the session of this kernel: its root is the working folder at first use, its variables the notebook's own.

    Example:
        >>> import reyn_jupyter as reyn                   # doctest: +SKIP
        >>> reyn.session().list_actions("file")           # doctest: +SKIP
    """
    if not _current:
        _current.append(Session())
    return _current[0]


def session_exists() -> bool:
    """Return whether this kernel has its session yet."""
    return bool(_current)
