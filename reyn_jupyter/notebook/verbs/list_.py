"""`%reyn list`: the actions of the catalog, a page at a time."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reyn_jupyter.notebook.magic_line import completers
from reyn_jupyter.notebook.magic_line.options import Option, Options, Rest
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import ActionTable


class ListOptions(Options):
    category: Annotated[tuple[str, ...], Rest()] = ()
    filter: Annotated[
        str | None, Option(takes="TEXT"), Field(description="part of a name or description")
    ] = None
    offset: Annotated[int, Option(takes="N"), Field(ge=0, description="actions to skip")] = 0
    limit: Annotated[int, Option(takes="N"), Field(ge=1, le=100, description="actions at most")] = 20


def run(context: Context, options: ListOptions) -> ActionTable:
    return context.session.list_actions(options.category, options.filter, options.offset, options.limit)


VERB = Verb(
    "list",
    "the actions of the catalog",
    run,
    ListOptions,
    ("%reyn list", "%reyn list file table", "%reyn list --filter csv"),
    completes=completers.categories,
    group="look",
)
