"""`%reyn memory [stale | held | search TEXT | import PATH]`: what is remembered, and notes that are taken in."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reyn_jupyter.backends.memory.memory_format import MemoryLayer
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Option, Options, Rest
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.overviews.memory_overview import MemoryActionError
from reyn_jupyter.sessions.result_objects import Table
from reyn_jupyter.sessions.session import Session


class MemoryOptions(Options):
    words: Annotated[tuple[str, ...], Rest("stale|held|search|import …")] = ()
    top_k: Annotated[int, Option(takes="N"), Field(ge=1, le=50, description="search: memories at most")] = 5
    write: Annotated[bool, Option(), Field(description="import: take them in; without it they are shown")] = (
        False
    )
    replace: Annotated[
        bool, Option(), Field(description="import: write over memories that were changed here, too")
    ] = False
    agent: Annotated[bool, Option(), Field(description="import: for this agent alone")] = False


def run(context: Context, options: MemoryOptions) -> Table:
    try:
        return _run(context.session, options)
    except MemoryActionError as error:
        raise ReynError(error.message, error.hint) from None


def _run(session: Session, options: MemoryOptions) -> Table:
    first, *rest = options.words or ("all",)
    if first in ("all", "stale", "held") and not rest:
        return session.memories(first)  # type: ignore[arg-type]
    if first == "search" and rest:
        return session.search_memories(" ".join(rest), options.top_k)
    if first == "import" and rest:
        layer: MemoryLayer = "agent" if options.agent else "shared"
        return session.import_memories(
            " ".join(rest), layer, write=options.write, replace_changed=options.replace
        )
    raise ReynError(
        f"{' '.join(options.words)!r} says nothing of the memories.",
        "%reyn memory, %reyn memory stale, %reyn memory held, %reyn memory search TEXT, %reyn memory import PATH",
    )


def _complete(session: Session, before: list[str], word: str) -> list[str]:
    return ["stale", "held", "search", "import"] if not before else []


VERB = Verb(
    "memory",
    "what is remembered in this workspace: size, age, search; notes that are taken in",
    run,
    MemoryOptions,
    (
        "%reyn memory",
        "%reyn memory stale",
        '%reyn memory search "how are reports written?"',
        "%reyn memory import CLAUDE.md",
        "%reyn memory import ~/vault --write",
    ),
    completes=_complete,
    group="look",
)
