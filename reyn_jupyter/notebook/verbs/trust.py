"""`%reyn trust [NAME]`: show what this workspace brought, ask about each thing, and trust what was shown."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Card


class TrustOptions(Options):
    name: Annotated[str | None, Positional("NAME")] = None
    hash: Annotated[
        str | None,
        Option(takes="SHA256"),
        Field(description="trust without a question what has this hash, as a question or a card showed it"),
    ] = None


def run(context: Context, options: TrustOptions) -> Card:
    return context.session.trust(options.name, sha256=options.hash)


VERB = Verb(
    "trust",
    "look at this workspace's settings, servers, utilities, workflows and memories, and trust them one by one",
    run,
    TrustOptions,
    ("%reyn trust", "%reyn trust .mcp.json", "%reyn trust tools"),
)
