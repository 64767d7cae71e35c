"""`%reyn trust`: trust this workspace's settings, servers, utilities, rules, policy and workflows as they are now."""

from __future__ import annotations

from reyn_jupyter.notebook.magic_line.options import Options
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Card


def run(context: Context, options: Options) -> Card:
    return context.session.trust()


VERB = Verb(
    "trust",
    "trust this workspace's settings, servers, utilities, rules, policy and workflows as they are now",
    run,
    examples=("%reyn trust",),
)
