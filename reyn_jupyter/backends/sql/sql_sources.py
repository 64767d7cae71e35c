"""What the tables of a person's query are: variables, workspace files and stored results, found by the names in it.

Invariant: a name is taken only where it can mean one thing. What is near a name is offered, never taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from reyn_jupyter.backends.sql.sql_query import reader_of
from reyn_jupyter.catalog.action import Arguments
from reyn_jupyter.guard.workspace import WorkspaceError
from reyn_jupyter.outputs.blobs.ids import is_blob_id
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.namespace.variables import visible_variables
from reyn_jupyter.runtime.services import ToolContext
from reyn_jupyter.support.text import nearest

_FILES = 2000  # that are looked at for what a name may have meant
_MAIN = "main"  # DuckDB's own schema, in which sources stand


def find_sources(tables: Iterable[tuple[str, ...]], args: Arguments, context: ToolContext) -> dict[str, str]:
    """Return the sources of a query: those given, and what its other tables are, by their names.

    A table that is none of the person's stays out: DuckDB may know it.

    Args:
        tables: the tables that the query reads, each as its name in parts.
        args: of the call; its sources are table → variable, file or blob, as the person named them.
        context: the call's surroundings.

    Raises:
        ActionError: a name means several variables, a file that there is not, or one whose name is not in quotes.
    """
    variables = _variables(context)
    found: dict[str, str] = dict(args.get("sources") or {})
    for path in tables:
        name = path[-1]
        if len(path) == 1 or (len(path) == 2 and path[0] == _MAIN):
            if name.lower() not in {alias.lower() for alias in found}:
                source = _source(name, variables, context)
                if source is not None:
                    found[name] = source
                elif reader_of(name) is not None:
                    raise _no_file(name, args, context)
        elif _is_file(file := ".".join(path), context):
            raise ActionError(
                f"SQL reads {file} as the table {name} of the schema {path[-2]}.",
                f"Put the name of the file into quotes: FROM '{file}'.",
            )
    return found


def _no_file(name: str, args: Arguments, context: ToolContext) -> ActionError:
    given = args.get("sources") or {}
    said, meant = f"There is no file {name} in the workspace.", near_source(name, given, context)
    if meant is None:
        return ActionError(said, "List the files to see what there is.")
    fix = {**args, "sources": {**given, name: meant[1]}}
    return ActionError(said, f"Did you mean {meant[1]}?", fix=fix)


def near_source(name: str, given: Mapping[str, str], context: ToolContext) -> tuple[str, str] | None:
    """Return what a table that there is not was probably meant to be, and its source; None where nothing is near."""
    if "." in name and reader_of(name) is None:  # of a schema, which no source has
        return None
    known = {variable: variable for variable in _variables(context)}
    for path in _files(context):
        known.setdefault(path, path)
        known.setdefault(path.rpartition("/")[2].partition(".")[0], path)
    known |= given
    meant = name if name in known else nearest(name, known)
    if meant is None and reader_of(name) is not None:
        last = name.rpartition("/")[2]
        meant = next((path for path in known.values() if path.rpartition("/")[2] == last), None)
        return None if meant is None else (meant, meant)
    return None if meant is None else (meant, known[meant])


def _source(name: str, variables: Iterable[str], context: ToolContext) -> str | None:
    if name in variables:
        return name
    # In SQL names have no case.
    alike = [variable for variable in variables if variable.lower() == name.lower()]
    if len(alike) > 1:
        raise ActionError(
            f"{name} may be any of the variables {', '.join(alike)}, since SQL's names have no case.",
            f'Name the one that you mean: "sources": {{"{name}": "{alike[0]}"}}.',
        )
    if alike:
        return alike[0]
    return name if is_blob_id(name) or _is_file(name, context) else None


def _is_file(name: str, context: ToolContext) -> bool:
    if reader_of(name) is None:
        return False
    try:
        return context.services.workspace.resolve(name).is_file()
    except WorkspaceError:
        return False


def _files(context: ToolContext) -> list[str]:
    workspace = context.workspace
    try:
        looked_at = islice(workspace.walk(skip=lambda folder: folder.startswith(".")), _FILES)
        return [path for file in looked_at if reader_of(path := workspace.relative(file)) is not None]
    except (WorkspaceError, OSError):
        return []


def _variables(context: ToolContext) -> dict[str, Any]:
    return {} if context.variables == "off" else visible_variables(context.services)
