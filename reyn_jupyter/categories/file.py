"""Files of the workspace: read, write, edit, delete, list, glob, grep.

Invariant: what is read is the file's exact text, since an edit needs it; what is changed can be undone.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from reyn_jupyter.backends.files.file_changes import AppliedChange, Make, PlannedChange
from reyn_jupyter.backends.files.file_edits import (
    Maker,
    delete_result,
    edit_result,
    make_deleted,
    make_edited,
    make_written,
    write_result,
)
from reyn_jupyter.backends.files.file_search import GrepQuery, glob, grep
from reyn_jupyter.backends.files.file_tree import FileTree, in_thread
from reyn_jupyter.catalog.action import (
    Arguments,
    Category,
    Effect,
    EffectKind,
    Handler,
    Operation,
    PartialPreview,
    Purity,
    Tool,
)
from reyn_jupyter.guard.diff import whole_diff
from reyn_jupyter.outputs.content import FileContent, Text
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import Services, Source, ToolContext
from reyn_jupyter.support.secrets import Redactor

_PATH = {"type": "string", "description": "File, relative to the workspace."}
_FOLDER = {"type": "string", "description": 'Folder, relative to the workspace; "." is the workspace itself.'}
OFFSET = {"type": "integer", "minimum": 1, "description": "First line to read, counted from 1. Default 1."}
LIMIT = {"type": "integer", "minimum": 1, "description": "How many lines to read. Default: all."}
PATTERN = {
    "type": "string",
    "minLength": 1,
    "description": "Regular expression (RE2), matched line by line.",
}
GLOB = {
    "type": "string",
    "minLength": 1,
    "description": "Only files whose path matches this pattern: * within a name, ** over folders.",
}
CASE_SENSITIVE = {"type": "boolean", "description": "Whether letter case counts. Default true."}
MAX_RESULTS = {
    "type": "integer",
    "minimum": 1,
    "maximum": 1000,
    "description": "Most matching lines to show. Default 100.",
}


def parameters(required: Sequence[str], **properties: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an action's arguments; no others are allowed."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def categories(services: Services) -> tuple[Category, ...]:
    """The category `file` over the session's workspace."""
    tree = FileTree(services.workspace)
    return (
        Category(
            "file",
            "Read, search, write, edit and delete the files of the workspace.",
            operations=(*_reading(tree), *_changing(tree)),
        ),
    )


def _reading(tree: FileTree) -> tuple[Operation, ...]:
    return (
        Operation(
            "read",
            "Read a text file: its exact text, or some of its lines.",
            parameters(["path"], path=_PATH, offset=OFFSET, limit=LIMIT),
            _reader(tree, "read_file", _read(tree)),
        ),
        Operation(
            "list",
            "List what lies in one folder: names, types and sizes in bytes.",
            parameters(["path"], path=_FOLDER),
            _reader(tree, "list_file", _list(tree)),
        ),
        Operation(
            "glob",
            "Find files by their path, in all folders below. Use it when you know a part of the name.",
            parameters(
                ["pattern"],
                pattern={
                    "type": "string",
                    "minLength": 1,
                    "description": "Path pattern: * within a name, ** over folders. "
                    "Without / it is matched against file names in every folder.",
                },
                path={**_FOLDER, "description": "Folder to begin in. Default: the workspace."},
            ),
            _reader(tree, "glob_file", _glob(tree)),
        ),
        Operation(
            "grep",
            "Search in the text of files; answers with path:line:text for every matching line. Use it to "
            "find where something is, before reading.",
            parameters(
                ["pattern"],
                pattern=PATTERN,
                path={"type": "string", "description": "Folder or file to search. Default: the workspace."},
                glob=GLOB,
                case_sensitive=CASE_SENSITIVE,
                max_results=MAX_RESULTS,
            ),
            _reader(tree, "grep_file", _grep(tree)),
        ),
    )


def _changing(tree: FileTree) -> tuple[Operation, ...]:
    return (
        Operation(
            "write",
            "Create a file, or replace the whole content of one. To change a part of it, edit it instead.",
            parameters(
                ["path", "content"],
                path=_PATH,
                content={
                    "type": "string",
                    "x-reference": ["string", "array", "object"],
                    "description": "The whole new content, exactly as it shall be.",
                },
            ),
            _changer(tree, "write", make_written, write_result),
        ),
        Operation(
            "edit",
            "Change a part of an existing text file: new_string replaces old_string. Read the file first.",
            parameters(
                ["path", "old_string", "new_string"],
                path=_PATH,
                old_string={
                    "type": "string",
                    "minLength": 1,
                    "description": "Text to replace, exactly as in the file, with enough around it to occur "
                    "only once.",
                },
                new_string={"type": "string", "description": "Text to put in its place; empty to remove it."},
                replace_all={"type": "boolean", "description": "Replace every match. Default false."},
            ),
            _changer(tree, "edit", make_edited, edit_result),
        ),
        Operation(
            "delete",
            "Delete one file. Folders cannot be deleted.",
            parameters(["path"], path=_PATH),
            _changer(tree, "delete", make_deleted, delete_result),
        ),
    )


def _reader(tree: FileTree, name: str, handler: Handler) -> Tool:
    """The tool that reads at one place, which is its plan: links in the path are followed once."""

    def plan(args: Arguments, context: ToolContext) -> str:
        return tree.locate(args.get("path", "."))

    def effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
        return (Effect(EffectKind.READ, context.plan),)

    return Tool(name, handler, Purity.READ, effects, plan=plan)


def _read(tree: FileTree) -> Handler:
    spool = tree.workspace.root / ".reyn" / "tmp"

    async def read(args: Arguments, context: ToolContext) -> Text | FileContent:
        # Only a store takes a file over.
        folder = None if context.services.blobs is None else spool
        text = await tree.within(context.workspace).read(
            args["path"], args.get("offset"), args.get("limit"), folder, redactor_for(context), context.plan
        )
        context.used(Source("file", posixpath.normpath(args["path"])))
        return text

    return read


def _list(tree: FileTree) -> Handler:
    async def list_folder(args: Arguments, context: ToolContext) -> dict[str, Any]:
        own = tree.within(context.workspace)
        found = await in_thread(lambda check: own.entries(args["path"], context.plan))
        files = (each["name"] for each in found["entries"] if each["type"] != "folder")
        _report_names((posixpath.normpath(posixpath.join(context.plan, name)) for name in files), context)
        return found

    return list_folder


def _report_names(paths: Iterable[str], context: ToolContext) -> None:
    """Mark names of files that may not be the person's own: whoever chose one may have written orders in it."""
    if strange := context.whose(".", *paths):
        context.came_from(f"names of files {strange}")


def _glob(tree: FileTree) -> Handler:
    async def find(args: Arguments, context: ToolContext) -> dict[str, Any]:
        found = await in_thread(partial(glob, tree.within(context.workspace), args["pattern"], context.plan))
        _report_names(found["paths"], context)
        return found

    return find


def _grep(tree: FileTree) -> Handler:
    async def search(args: Arguments, context: ToolContext) -> Text:
        path = context.plan
        own = tree.within(context.workspace)
        text = await in_thread(partial(grep, own, as_grep({**args, "path": path}, context)))
        context.used(Source("file", path))
        return Text(text)

    return search


def as_grep(args: Arguments, context: ToolContext) -> GrepQuery:
    """The search that the arguments of a grep action ask for; secrets stay with the person."""
    return GrepQuery(**args, redactor=redactor_for(context))


def redactor_for(context: ToolContext) -> Redactor | None:
    """Return what covers the secrets of a source for this caller; None for the person, whose files they are."""
    return None if context.actor == "person" else context.services.redactor


_Answer = Callable[[AppliedChange, Arguments, ToolContext], dict[str, Any]]


def _changer(tree: FileTree, verb: str, maker: Maker, answer: _Answer) -> Tool:
    """The tool of one kind of change: the same plan and the same rule make its preview and the change itself."""

    def plan(args: Arguments, context: ToolContext) -> PlannedChange:
        return PlannedChange(tree.held(args["path"]))

    def effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
        return (Effect(EffectKind.DELETE if verb == "delete" else EffectKind.WRITE, context.plan.path),)

    def make(args: Arguments, context: ToolContext) -> Make:
        return maker(tree.within(context.workspace), args, context, context.plan.path)

    async def handler(args: Arguments, context: ToolContext) -> dict[str, Any]:
        made = await context.plan.apply(make(args, context), context)
        told: dict[str, Any] = {"path": made.path, **answer(made, args, context)}
        if not made.undo:
            told["note"] = "The previous content was not kept (this session stores nothing): no undo."
        return told

    def preview(args: Arguments, context: ToolContext) -> str | PartialPreview | None:
        path = context.plan.path
        try:
            before, after = context.plan.preview(make(args, context))
            return whole_diff(before, after, path)
        except ActionError as error:
            # To whom may not read the file, an error tells of its content: only the person sees it before the answer.
            if context.may_read(path):
                raise
            return f"{path}: this change cannot be made as asked: {error.message}"

    return Tool(f"{verb}_file", handler, Purity.WRITE, effects, preview, discloses=True, plan=plan)
