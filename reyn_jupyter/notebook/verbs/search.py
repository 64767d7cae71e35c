"""`%reyn search "WORDS"`: actions ranked by words and meaning; by words alone where nothing embeds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Option, Options, Rest
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import ActionTable


class SearchOptions(Options):
    words: Annotated[tuple[str, ...], Rest()] = ()
    category: Annotated[str, Option(takes="A,B"), Field(description="only actions of these categories")] = ""
    limit: Annotated[int, Option(takes="N"), Field(ge=1, le=100, description="actions at most")] = 10


def run(context: Context, options: SearchOptions) -> ActionTable:
    if not options.words:
        raise ReynError("Search for what?", 'For example: %reyn search "group rows of a table"')
    within = [each.strip() for each in options.category.split(",") if each.strip()]
    return context.session.search_actions(" ".join(options.words), within or None, options.limit)


VERB = Verb(
    "search",
    "actions by what they do, ranked by words and meaning",
    run,
    SearchOptions,
    ('%reyn search "find text in files"', "%reyn search ReadFile", "%reyn search list --category file,table"),
    group="look",
)
