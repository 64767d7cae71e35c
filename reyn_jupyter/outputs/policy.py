"""How much of a result a conversation may carry: every bound in bytes of UTF-8, never in characters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OutputPolicy:
    """The numbers of the one choke point. Defaults: tool-output design (Inline / Stored, automatic summary).

    Args:
        inline_bytes: up to this size a result goes into the history as it is.
        summary_bytes: the most a stored result leaves in the history, its ``[blob:…]`` prefix included.
        head_lines: lines of a text that its summary opens with.
        tail_lines: lines of a text that its summary closes with.
        answer_bytes: the most that `inspect`, a listing or a catalog error may answer.

    >>> OutputPolicy().inline_bytes
    800
    """

    inline_bytes: int = 800
    summary_bytes: int = 400
    head_lines: int = 5
    tail_lines: int = 3
    answer_bytes: int = 8192


DEFAULT_POLICY = OutputPolicy()
