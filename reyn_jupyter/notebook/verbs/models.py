"""`%reyn models [find [ADDRESS …]]`: the models, their tiers and keys; or the servers of models on this machine."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional, Rest
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Table


class ModelsOptions(Options):
    what: Annotated[Literal["find"] | None, Positional("find")] = None
    addresses: Annotated[tuple[str, ...], Rest("ADDRESS")] = ()
    quick: Annotated[bool, Option(), Field(description="find: list the models, and try nothing")] = False


def run(context: Context, options: ModelsOptions) -> Table:
    if options.what == "find":
        return context.session.find_models(*options.addresses, quick=options.quick)
    if options.quick:
        raise ReynError("--quick goes with find.", "%reyn models find --quick")
    return context.session.models


VERB = Verb(
    "models",
    "the models, their tiers and whether their keys are set; find those that this machine serves",
    run,
    ModelsOptions,
    ("%reyn models", "%reyn models find", "%reyn models find 127.0.0.1:8080 --quick"),
    completes=lambda session, before, word: [] if before else ["find"],
)
