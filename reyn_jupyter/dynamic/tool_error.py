"""The error of everything that has to do with tools made at run time.

Invariant: it says what is wrong and what to do next, and carries the code by which programs know it.
"""

from __future__ import annotations


class DynamicToolError(Exception):
    """A refusal or failure in making, keeping or running a tool.

    Args:
        message: what is wrong.
        hint: what to do next.
        code: which error of the list it is: "E101" and so on.

    >>> error = DynamicToolError("there is no tool 'mean'", "List the tools for their names.", "E203")
    >>> str(error), error.code
    ("there is no tool 'mean'", 'E203')
    """

    def __init__(self, message: str, hint: str, code: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
