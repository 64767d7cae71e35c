"""Errors that people and models read: what happened, why, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

LONGEST_CODE = 60  # characters
DENIED = "permission_denied"  # the code of every denial, before a call and in the middle of one
_CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*|[A-Z][0-9]{3}")


class ActionError(Exception):
    """A handler's own refusal, in plain words.

    Args:
        message: what is wrong.
        hint: what to do next.
        code: names the kind of error for programs, in snake_case ("tool_timeout") or as a letter and three digits
            ("E106"). It stands in the answer, the event, the trace and the result.
        fix: the arguments with which the call would do what was meant, where the handler knows them. A person is
            offered the line that makes this call; a model reads the hint.

    Raises:
        ValueError: a code of another form, or of more than 60 characters.

    >>> raise ActionError("orders.csv has no column 'regoin'", hint="Columns: region, value.")
    Traceback (most recent call last):
    reyn_jupyter.runtime.action_error.ActionError: orders.csv has no column 'regoin'
    """

    given: object = None  # the words of a call within the call, which the error may quote

    def __init__(
        self, message: str, hint: str = "", *, code: str | None = None, fix: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.hint = hint
        self.code = None if code is None else _checked_code(code)


class PermissionDeniedError(ActionError):
    """A denial of what a handler asked for in the middle of a call, see `ToolContext.ask`.

    A handler may catch it and go on without; let go, it is the answer of the call.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint, code=DENIED)


class ModelFailedError(ActionError):
    """A language model that failed, or that is not configured, see `ModelAccess.complete`.

    Attributes:
        kind: of the failure, as `models.base.ErrorKind` has it: "auth", "rate_limited".
    """

    def __init__(self, message: str, hint: str, kind: str) -> None:
        super().__init__(message, hint, code="model_failed")
        self.kind = kind


class CallTimeoutError(ActionError):
    """A call took longer than its limit allows, and was cancelled."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint, code="call_timeout")


def _checked_code(code: str) -> str:
    if not isinstance(code, str) or len(code) > LONGEST_CODE or _CODE.fullmatch(code) is None:
        raise ValueError(
            f"{str(code)[:LONGEST_CODE]!r} is no code of an error; write it in snake_case (tool_timeout) or as "
            f"E106, in at most {LONGEST_CODE} characters"
        )
    return code


def text_of(error: BaseException) -> str:
    """Return the message of an error; its `__str__` may fail."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - another's code, which may raise anything
        return "the error has no readable text"
