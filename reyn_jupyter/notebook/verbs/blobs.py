"""`%reyn blobs [gc]`: the blobs, newest first; `gc` removes those that nothing needs any more."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Card, Table


class BlobsOptions(Options):
    what: Annotated[Literal["list", "gc"], Positional("list|gc")] = "list"
    max_age: Annotated[
        float | None,
        Option(takes="DAYS"),
        Field(ge=0, allow_inf_nan=False, description="with gc: only blobs that are older"),
    ] = None
    max_bytes: Annotated[
        int | None,
        Option(takes="N"),
        Field(ge=0, description="with gc: the oldest blobs, until N bytes are left"),
    ] = None


def run(context: Context, options: BlobsOptions) -> Table | Card:
    if options.what == "gc":
        return context.session.collect_blobs(options.max_age, options.max_bytes)
    if options.max_age is not None or options.max_bytes is not None:
        raise ReynError("--max-age and --max-bytes belong to gc.", "For example: %reyn blobs gc --max-age 30")
    return context.session.blobs


VERB = Verb(
    "blobs",
    "the blobs (results that were stored): list, gc",
    run,
    BlobsOptions,
    ("%reyn blobs", "%reyn blobs gc", "%reyn blobs gc --max-age 30"),
    completes=lambda session, before, word: [] if before else ["list", "gc"],
    group="look",
)
