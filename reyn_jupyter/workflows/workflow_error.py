"""The errors of utilities, plans and workflows, each with a code that programs can rely on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, get_args

from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.user_errors import UserError

WorkflowErrorCode = Literal[
    "manifest_invalid",
    "plan_invalid",
    "policy_invalid",
    "tool_failed",
    "tool_timeout",
    "tool_invalid_output",
    "validation",
    "llm_error",
    "permission_denied",
]
_MOST_LISTED = 20  # problems in the answer to a call
WORKFLOW_ERROR_CODES: tuple[WorkflowErrorCode, ...] = get_args(WorkflowErrorCode)


class WorkflowError(UserError):
    """What went wrong with a utility, a plan or a run.

    Attributes:
        message: what and why, in a sentence.
        hint: what to do next; "" where there is nothing to advise.
        code: the kind of the error.
        details: what a program may want to know, as JSON has it: every problem by its path, the kind of an error of
            a language model (``{"kind": "rate_limited"}``).

    Example:
        >>> error = WorkflowError("'tg.scrape' has no utility.", "Scaffold one.", "plan_invalid")
        >>> str(error), error.code
        ("'tg.scrape' has no utility. Scaffold one.", 'plan_invalid')
    """

    def __init__(
        self, message: str, hint: str, code: WorkflowErrorCode, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message, self.hint, self.code = message, hint, code
        self.details: Mapping[str, Any] = details or {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.hint, self.code, dict(self.details))


@contextmanager
def as_action_errors() -> Iterator[None]:
    """Turn the errors of a block into those of a call, with the same words and codes."""
    try:
        yield
    except WorkflowError as error:
        raise ActionError(_whole_message(error), error.hint, code=error.code) from error


def _whole_message(error: WorkflowError) -> str:
    """Return the message with every further problem that the details list: an answer to a call has no details."""
    problems = error.details.get("problems")
    if not isinstance(problems, Sequence) or len(problems) < 2:
        return error.message
    listed = [
        " ".join(filter(None, (each.get("file"), each.get("path"), each["message"]))) for each in problems
    ]
    more = [f"and {len(listed) - _MOST_LISTED} more"] if len(listed) > _MOST_LISTED else []
    return "\n".join((error.message, *(f"- {each}" for each in [*listed[:_MOST_LISTED], *more])))
