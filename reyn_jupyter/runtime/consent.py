"""Asking the person. Nobody there to ask is an answer of its own, and it means no."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Literal

Answer = Literal["once", "always", "deny", "nobody", "unanswered"]

_ANSWERS: dict[str, Answer] = {
    "y": "once", "yes": "once", "a": "always", "always": "always", "n": "deny", "no": "deny", "": "deny",
}  # fmt: skip


@dataclass(frozen=True)
class Question:
    """What a call would do, as the person is shown it: plain text with targets and a bounded diff.

    `run` is the run that waits for the answer.
    """

    action: str
    text: str
    pattern: str | None
    run: str | None = None


def ask_by_input(question: Question) -> Answer:
    """Ask with `input()`, which every front end has; call it on the notebook's thread.

    Returns "nobody" where no one can answer: a headless run, a script without a terminal.
    """
    if not _somebody_there():
        return "nobody"
    sys.stdout.write(question.text.rstrip() + "\n")
    sys.stdout.flush()
    always = f"  [a] always for {question.pattern}" if question.pattern else ""
    for _ in range(3):
        try:
            given = input(f"Allow {question.action}? [y] once{always}  [n] no: ")
        except EOFError:
            return "nobody"
        except RuntimeError as error:  # ipykernel: the front end does not support input
            if type(error).__name__ != "StdinNotImplementedError":
                raise
            return "nobody"
        answer = _ANSWERS.get(given.strip().lower())
        if answer == "always" and not always:
            continue
        if answer is not None:
            return answer
    return "deny"


def front_end_there() -> bool:
    """Whether this is a kernel whose last cell came from a front end with a person before it."""
    return bool(getattr(_kernel(), "_allow_stdin", False))


def _somebody_there() -> bool:
    if _kernel() is not None:
        return front_end_there()
    return bool(sys.stdin is not None and sys.stdin.isatty())


def _kernel() -> Any:
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return getattr(shell, "kernel", None)
