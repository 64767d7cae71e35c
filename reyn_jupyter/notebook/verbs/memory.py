"""`%reyn memory`: what is remembered in this workspace."""

from __future__ import annotations

from reyn_jupyter.notebook.options import Options
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Table

MOST = 100


def run(context: Context, options: Options) -> Table:
    found = context.session.list_actions("memory_entry", limit=MOST)
    rows = tuple(
        {"memory": row["qualified_name"].partition("__")[2], "about": row["description"]}
        for row in found.rows
    )
    if not rows:
        note = 'Nothing yet. Ask for it: %reyn ask "remember that the year starts in April"'
    elif found.total > len(rows):
        note = f"{len(rows)} of {found.total}; %reyn list memory_entry --offset {len(rows)} shows more"
    else:
        note = f"read one: %reyn invoke memory_entry__{rows[0]['memory']}"
    return Table("memory", rows, "Memory", note)


VERB = Verb(
    "memory",
    "what is remembered in this workspace",
    run,
    examples=("%reyn memory",),
    group="look",
)
