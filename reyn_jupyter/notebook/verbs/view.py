"""`%reyn view NAME`: a table of the notebook's in the grid, without storing it."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook.displays.frame_viewing import view
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line import completers
from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import FrameView
from reyn_jupyter.support.text import did_you_mean, nearest_names


class ViewOptions(Options):
    name: Annotated[str, Positional("NAME")]


def run(context: Context, options: ViewOptions) -> FrameView:
    name = options.name.removeprefix("@")
    namespace = context.session.parts.services.namespace()
    if name not in namespace:
        near = did_you_mean(nearest_names(name, completers.variables(context.session)))
        raise ReynError(f"There is no variable {name!r}.", near or "%reyn view NAME takes a variable's name.")
    return view(namespace[name], name=name)


VERB = Verb(
    "view",
    "a table of yours in the grid: sort, filter, figures; nothing is stored",
    run,
    ViewOptions,
    ("%reyn view orders",),
    completes=lambda session, before, word: [] if before else completers.variables(session),
    group="look",
)
