"""`%reyn explore [TEXT]`: the catalog to look through, with a form for every action."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook.magic_line.options import Options, Rest
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import CatalogExplorer


class ExploreOptions(Options):
    text: Annotated[tuple[str, ...], Rest()] = ()


def run(context: Context, options: ExploreOptions) -> CatalogExplorer:
    return context.session.explore(" ".join(options.text))


VERB = Verb(
    "explore",
    "the catalog to look through",
    run,
    ExploreOptions,
    ("%reyn explore", "%reyn explore csv", "%reyn explore read file"),
    group="look",
)
