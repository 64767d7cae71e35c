"""`%reyn config [KEY [VALUE]]`: the settings and where each came from; with a value, change one for this session."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Options, Positional, Rest
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Table
from reyn_jupyter.support.text import did_you_mean, nearest_names


class ConfigOptions(Options):
    key: Annotated[str | None, Positional()] = None
    value: Annotated[tuple[str, ...], Rest()] = ()


def run(context: Context, options: ConfigOptions) -> Table:
    session = context.session
    if options.value and options.key is not None:
        session.configure(options.key, " ".join(options.value))
    table = session.config
    if options.key is None:
        return table
    asked = options.key  # the beginning of keys, or a key within one that is shown whole (peers.NAME.model)
    rows = tuple(
        row for row in table.rows if row["key"].startswith(asked) or asked.startswith(f"{row['key']}.")
    )
    if not rows:
        keys = [str(row["key"]) for row in session.config.rows]
        meant = did_you_mean(nearest_names(options.key, keys, 1))
        raise ReynError(f"There is no key {options.key!r}.", meant or "%reyn config lists all.")
    return Table("config", rows, table.title, table.note)


VERB = Verb(
    "config",
    "the settings; with a value, change one for this session",
    run,
    ConfigOptions,
    ("%reyn config", "%reyn config router.limits", "%reyn config router.limits.max_steps 12"),
    completes=lambda session, before, word: (
        [] if before else [str(row["key"]) for row in session.config.rows]
    ),
)
