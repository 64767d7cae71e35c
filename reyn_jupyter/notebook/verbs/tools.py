"""`%reyn tools [NAME | delete NAME | deprecate NAME | export NAME]`: tools that were made at run time."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.overviews.tool_overview import ToolActionError
from reyn_jupyter.sessions.result_objects import Card, Table
from reyn_jupyter.sessions.session import Session

_WORK = ("delete", "deprecate", "export")


class ToolsOptions(Options):
    what: Annotated[str | None, Positional("NAME|delete|deprecate|export")] = None
    name: Annotated[str | None, Positional("NAME")] = None
    folder: Annotated[
        str,
        Option(takes="PATH"),
        Field(description="export: the folder of the workspace that it is written to"),
    ] = "."


def run(context: Context, options: ToolsOptions) -> Table | Card:
    session, what = context.session, options.what
    if what is None:
        return session.tools
    try:
        if what not in _WORK:
            return session.describe_tool(what)
        if options.name is None:
            raise ReynError(f"{what.capitalize()} which tool?", f"%reyn tools {what} NAME")
        if what == "export":
            return session.export_tool(options.name, options.folder)
        return session.delete_tool(options.name) if what == "delete" else session.deprecate_tool(options.name)
    except ToolActionError as error:
        raise ReynError(error.message, error.hint) from None


def _complete(session: Session, before: list[str], word: str) -> list[str]:
    names = [str(row["name"]) for row in session.tools.rows]
    return [*_WORK, *names] if not before else names if before[0] in _WORK and len(before) == 1 else []


VERB = Verb(
    "tools",
    "tools made at run time: scores, uses, code; delete, deprecate, export",
    run,
    ToolsOptions,
    (
        "%reyn tools",
        "%reyn tools string_reverse",
        "%reyn tools export string_reverse --folder tools",
        "%reyn tools delete string_reverse",
    ),
    completes=_complete,
    group="look",
)
