"""`%reyn utilities [--validate] [--rebuild]`: programs with a manifest, and what is wrong with manifests."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reyn_jupyter.notebook.magic_line.options import Option, Options
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Table


class UtilitiesOptions(Options):
    validate_: Annotated[
        bool, Option(), Field(alias="validate", description="show what is wrong with manifests")
    ] = False
    rebuild: Annotated[bool, Option(), Field(description="write state/registry-cache.json anew")] = False


def run(context: Context, options: UtilitiesOptions) -> Table:
    workflows = context.session.workflows
    return (
        workflows.manifest_problems() if options.validate_ else workflows.utilities(rebuild=options.rebuild)
    )


VERB = Verb(
    "utilities",
    "programs with a manifest: what they can do, whether they are ready",
    run,
    UtilitiesOptions,
    ("%reyn utilities", "%reyn utilities --validate", "%reyn utilities --rebuild"),
    group="look",
)
