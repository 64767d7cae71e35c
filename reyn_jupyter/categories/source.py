"""This package's own source and manual, read-only: how the agent's own parts work.

Invariant: nothing outside the installed package is reached, and nothing is changed.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.files.file_search import grep
from reyn_jupyter.backends.files.file_tree import FileTree, in_thread
from reyn_jupyter.catalog.action import Arguments, Category, Operation, Purity, Tool
from reyn_jupyter.categories.file import (
    CASE_SENSITIVE,
    GLOB,
    LIMIT,
    MAX_RESULTS,
    OFFSET,
    PATTERN,
    as_grep,
    parameters,
)
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.outputs.content import FileContent, Text

if TYPE_CHECKING:
    from reyn_jupyter.runtime.services import Services, ToolContext

_PACKAGE = "reyn_jupyter"
# "data" holds the scenarios of the evaluation with what counts as right: a model that is measured must not read it.
_HIDDEN = frozenset({"__pycache__", "data", "py.typed"})
_PATH = {"type": "string", "description": "File of the package, e.g. docs/catalog.md or catalog/names.py."}
_FOLDER = {"type": "string", "description": "Folder of the package, e.g. docs. Default: the package itself."}


def categories(services: Services) -> tuple[Category, ...]:
    """The category `reyn_source`; none where the package does not lie in a folder (a zip file)."""
    return _of_package(Path(__file__).parents[1])


@cache
def _of_package(package: Path) -> tuple[Category, ...]:
    """Nothing here is a session's own, so that all sessions share it."""
    if not package.is_dir():
        return ()
    tree = FileTree(Workspace(package, off_limits=()), _HIDDEN)
    return (
        Category(
            "reyn_source",
            "Read this assistant's own manual and source code, to find out how its parts work.",
            operations=_operations(tree),
        ),
    )


def _operations(tree: FileTree) -> tuple[Operation, ...]:
    async def read(args: Arguments, context: ToolContext) -> Text | FileContent:
        return await tree.read(_inside(args["path"]), args.get("offset"), args.get("limit"))

    async def list_folder(args: Arguments, context: ToolContext) -> dict[str, Any]:
        return await in_thread(lambda check: tree.entries(_inside(args.get("path", "."))))

    async def search(args: Arguments, context: ToolContext) -> Text:
        path = tree.locate(_inside(args.get("path", ".")))
        return Text(await in_thread(partial(grep, tree, as_grep({**args, "path": path}, context))))

    return (
        _operation(
            "read",
            "Read a file of this assistant's own manual or source code, or some of its lines.",
            parameters(["path"], path=_PATH, offset=OFFSET, limit=LIMIT),
            read,
        ),
        _operation(
            "list",
            "List what lies in a folder of this assistant's own source code; docs holds the manual.",
            parameters([], path=_FOLDER),
            list_folder,
        ),
        _operation(
            "grep",
            "Search in this assistant's own manual and source code; answers with path:line:text.",
            parameters(
                ["pattern"],
                pattern=PATTERN,
                path=_FOLDER,
                glob=GLOB,
                case_sensitive=CASE_SENSITIVE,
                max_results=MAX_RESULTS,
            ),
            search,
        ),
    )


def _operation(entry: str, description: str, schema: dict[str, Any], handler: Any) -> Operation:
    return Operation(entry, description, schema, Tool(f"{entry}_reyn_source", handler, Purity.READ))


def _inside(path: str) -> str:
    """A path from the package; one that begins with the package's name is taken as meant."""
    return path.removeprefix("./").removeprefix(f"{_PACKAGE}/") if path != _PACKAGE else "."
