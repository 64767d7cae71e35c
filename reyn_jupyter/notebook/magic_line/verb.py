"""Verbs of `%reyn`: a name, options, and a function that returns the very object of the Python face."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from reyn_jupyter.notebook.magic_line.options import Options
from reyn_jupyter.sessions.current import session
from reyn_jupyter.sessions.session import Session


@dataclass(frozen=True)
class Suggestion:
    """One completion.

    Attributes:
        text: what is put in.
        meaning: what it stands for, which front ends show beside it; "" for what says enough itself.
    """

    text: str
    meaning: str = ""


Completes = Callable[[Session, list[str], str], Sequence[str | Suggestion]]
VerbGroup = Literal["ask", "look", "change", "measure", "set up"]


@dataclass(frozen=True)
class Context:
    """The surroundings in which a verb runs.

    Attributes:
        shell: the IPython shell.
        body: the cell's text under ``%%reyn VERB``, None for a line.
        line: the line after the verb's options, literally (for verbs that take text).
    """

    shell: Any
    body: str | None = None
    line: str = ""

    @cached_property
    def session(self) -> Session:
        """Return the kernel's session, made when a verb first needs it: help works in a workspace that is broken."""
        return session()


@dataclass(frozen=True)
class Verb:
    """One verb of `%reyn`.

    Args:
        name: the word.
        summary: one line for the help.
        run: does it and returns the object that is shown.
        options: its options.
        examples: ready lines.
        literal: the rest of the line after leading options is text, not words.
        takes_body: ``%%reyn VERB`` has a use for the cell's text.
        completes: (session, words before, word) → completions of its positional arguments.
        values: option → the same for its values; of several with commas between them the last is completed.
        group: what one wants to do with it, by which `%reyn help` lists it.
    """

    name: str
    summary: str
    run: Callable[[Context, Any], Any]
    options: type[Options] = Options
    examples: tuple[str, ...] = ()
    literal: bool = False
    takes_body: bool = False
    completes: Completes | None = field(default=None, compare=False)
    values: Mapping[str, Completes] = field(default_factory=dict, compare=False)
    group: VerbGroup = "set up"
