"""`%reyn describe NAME`: one action with its arguments and a ready line."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook.magic_line import completers
from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import ActionCard


class DescribeOptions(Options):
    name: Annotated[str, Positional()]


def run(context: Context, options: DescribeOptions) -> ActionCard:
    return context.session.describe_action(options.name)


VERB = Verb(
    "describe",
    "one action, its arguments and a ready line",
    run,
    DescribeOptions,
    ("%reyn describe table__query",),
    completes=completers.actions,
    group="look",
)
