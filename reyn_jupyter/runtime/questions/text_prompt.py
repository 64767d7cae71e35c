"""A question of consent at a text prompt: a terminal, or a front end of a kernel that shows no buttons.

Invariant: in a kernel a prompt ends as soon as its question is settled elsewhere, so that no cell waits for words that
nobody types.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from reyn_jupyter.runtime.questions.consent import CHOICES, MORE, PAGE, Answer, Question

TRIES = 3  # lines that are not an answer, after which the last of `CHOICES` counts
DELIVERY_SECONDS = 30.0  # longest time in which a prompt hears that its question is settled
_END_OF_INPUT = "\x04"  # a kernel's `input()` raises EOFError for it


def in_kernel() -> bool:
    return _kernel() is not None


def front_end_there() -> bool:
    """Return whether this is a kernel whose last cell came from a front end that takes input."""
    return bool(getattr(_kernel(), "_allow_stdin", False))


def somebody_there() -> bool:
    if in_kernel():
        return front_end_there()
    return bool(sys.stdin is not None and sys.stdin.isatty())


def ask_at_prompt(question: Question, settled: Future[Answer]) -> Answer | None:
    """Print a question and ask with `input()`; call it on the notebook's thread.

    Args:
        settled: Done once the question is answered elsewhere or withdrawn.

    Returns:
        The answer; "nobody" if no one can answer; None if the question was settled elsewhere.
    """
    if not somebody_there():
        return "nobody"
    total = len(question.detail.lines)
    shown, printed, unclear = min(PAGE, total), 0, 0
    sys.stdout.write(question.title + "\n")
    while unclear < TRIES:
        sys.stdout.write("".join(f"{line}\n" for line in question.page(printed, shown - printed)))
        sys.stdout.flush()
        printed = shown
        typed = _typed(question.prompt(shown), settled)
        if settled.done():
            return None
        if typed is None:
            return "nobody"
        if shown < total and typed in MORE:
            shown = min(shown + PAGE, total)
            continue
        for each in question.choices_after(shown):
            if typed in each.keys:
                return each.answer
        unclear += 1
    return CHOICES[-1].answer


def _typed(prompt: str, settled: Future[Answer]) -> str | None:
    """Return what the user typed, in lower case; None if nobody can, or the question was settled."""
    try:
        with _ended_by(settled):
            return input(prompt).strip().lower()
    except EOFError:
        return None
    except RuntimeError as error:  # ipykernel: the front end does not support input
        if type(error).__name__ != "StdinNotImplementedError":
            raise
        return None


@contextmanager
def _ended_by(settled: Future[Answer]) -> Iterator[None]:
    """Let a kernel's `input()` in this block raise EOFError once a question is settled."""
    if not in_kernel():
        yield
        return
    lock, ended = threading.Lock(), threading.Event()

    def end() -> None:
        with suppress(Exception), _front_end() as client:  # without it the prompt waits for its user
            with lock:
                if not ended.is_set():
                    client.input(_END_OF_INPUT)
            ended.wait(DELIVERY_SECONDS)  # a channel that is closed drops what it has not delivered

    settled.add_done_callback(lambda _: threading.Thread(target=end, daemon=True).start())
    try:
        yield
    finally:
        with lock:
            ended.set()


@contextmanager
def _front_end() -> Iterator[Any]:
    """Yield a client that answers the kernel's open `input()` as a front end would."""
    from ipykernel.connect import get_connection_file
    from jupyter_client.blocking.client import BlockingKernelClient

    client = BlockingKernelClient(connection_file=get_connection_file())
    client.load_connection_file()
    client.start_channels(shell=False, iopub=False, hb=False, control=False)
    try:
        yield client
    finally:
        client.stop_channels()


def _kernel() -> Any:
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return getattr(shell, "kernel", None)
