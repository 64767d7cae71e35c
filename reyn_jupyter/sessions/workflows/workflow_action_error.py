"""What a person is told where a plan, a utility or a workflow failed."""

from __future__ import annotations

from reyn_jupyter.support.user_errors import UserError


class WorkflowActionError(UserError):
    """A plan, a utility or a workflow failed; the message says why, `hint` what to do, `code` which error it is."""

    def __init__(self, message: str, hint: str = "", code: str | None = None) -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message, self.hint, self.code = message, hint, code
