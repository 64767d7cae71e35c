"""Memories that outlive a conversation: what is worth knowing next time.

Two categories over one store: `memory_entry`, whose resources are the memories themselves, and
`memory_operation`, which keeps, finds, reviews, imports and forgets them. A memory's slug is its name; where both
layers hold a slug, the shared memory has it and the agent's own is ``agent.<slug>`` (a slug has no dot).
What is remembered is redacted first: the file lives on, and goes to models later. What came with a folder is no memory
of the person's until they trust it; what was remembered once a model had read text of others is marked as that again.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.files.file_tree import FileTree, printable_name
from reyn_jupyter.backends.memory.memory_format import (
    BODY_BYTES,
    DESCRIPTION_LENGTH,
    LAYERS,
    MEMORY_TYPES,
    NAME_LENGTH,
    SLUG_LENGTH,
    SLUG_PATTERN,
    Memory,
    MemoryLayer,
    MemoryStoreError,
)
from reyn_jupyter.backends.memory.memory_import import ImportPlan, plan_import, read_notes, summary
from reyn_jupyter.backends.memory.memory_review import STALE_DAYS, as_row, entry_name, review
from reyn_jupyter.backends.memory.memory_store import HOW_TO_TRUST, MemoryListing, MemoryStore
from reyn_jupyter.catalog.action import (
    Arguments,
    Category,
    Effect,
    EffectKind,
    Entry,
    Handler,
    Operation,
    Purity,
    Resources,
    Tool,
)
from reyn_jupyter.corpora.memory_search import MemorySearch
from reyn_jupyter.guard.workspace import protects_file
from reyn_jupyter.outputs.content import Text
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import Services, Source, ToolContext
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.text import count, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

_OWN = "agent."
_NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}
_SLUG = {
    "type": "string",
    "pattern": SLUG_PATTERN,
    "maxLength": SLUG_LENGTH,
    "description": "Short id of the memory, lower case with - or _.",
}
_LAYER = {
    "type": "string",
    "enum": list(LAYERS),
    "description": "shared: for every agent of this workspace; agent: this agent's own.",
}
_REMEMBER = {
    "type": "object",
    "properties": {
        "slug": _SLUG,
        "name": {
            "type": "string",
            "minLength": 1,
            "description": f"One line, ≤ {NAME_LENGTH} characters.",
        },
        "description": {
            "type": "string",
            "minLength": 1,
            "description": f"One line that says when this memory matters, ≤ {DESCRIPTION_LENGTH} characters.",
        },
        "type": {
            "type": "string",
            "enum": list(MEMORY_TYPES),
            "description": "user: about the person; feedback: how they want work done; project: about this "
            "workspace; reference: where something is found.",
        },
        "body": {
            "type": "string",
            "description": f"What to remember: Markdown, ≤ {BODY_BYTES // 1024} KiB.",
        },
    },
    "required": ["slug", "name", "description", "type", "body"],
    "additionalProperties": False,
}
_FORGET = {
    "type": "object",
    "properties": {"layer": _LAYER, "slug": _SLUG},
    "required": ["layer", "slug"],
    "additionalProperties": False,
}
_LIST = {"type": "object", "properties": {"layer": _LAYER}, "additionalProperties": False}
_SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "What is looked for."},
        "layer": _LAYER,
        "type": {"type": "string", "enum": list(MEMORY_TYPES)},
        "top_k": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_REVIEW = {
    "type": "object",
    "properties": {
        "layer": _LAYER,
        "stale_days": {
            "type": "integer",
            "minimum": 1,
            "default": STALE_DAYS,
            "description": "Days without a change or a use after which a memory counts as stale.",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 20},
    },
    "additionalProperties": False,
}
_IMPORT = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "minLength": 1,
            "description": "A Markdown file or a folder of them: CLAUDE.md, AGENTS.md, notes, an Obsidian vault.",
        },
        "layer": _LAYER,
        "dry_run": {
            "type": "boolean",
            "default": False,
            "description": "Say what would be done, and do nothing.",
        },
        "replace_changed": {
            "type": "boolean",
            "default": False,
            "description": "Write over memories that were changed here since their import.",
        },
    },
    "required": ["path"],
    "additionalProperties": False,
}
_EXCERPT = 240  # characters of a memory's text in a hit


def categories(services: Services) -> tuple[Category, ...]:
    """`memory_entry` and `memory_operation` over ``<root>/.reyn/memory``."""
    workspace = services.workspace
    store = MemoryStore(workspace.root, durable=workspace.durable, own=services.trust.memories)
    kept = PlainFolder(workspace.root, ".reyn", "state") if workspace.durable else None
    return _entries(store), _operations(store, MemorySearch(kept, services.embedder), services)


def memory_store(services: Services) -> MemoryStore:
    """Return the memories of a session's workspace, for who looks at them beside the actions."""
    return MemoryStore(
        services.workspace.root, durable=services.workspace.durable, own=services.trust.memories
    )


def _entries(store: MemoryStore) -> Category:
    async def read(args: Arguments, context: ToolContext) -> Text:
        memory = await asyncio.to_thread(_read, store, args)
        _report(memory, context)
        context.used(Source("file", store.path(memory.layer, memory.slug)))
        return Text(memory.body)

    async def entries() -> Sequence[Entry]:
        if not any(store.revision()[: len(LAYERS)]):  # no file: nothing that a thread would be worth
            return []
        memories, _ = await asyncio.to_thread(store.memories)
        shared = {each.slug for each in memories if each.layer == "shared"}
        return [
            Entry(
                entry_name(each, shared),
                _face(each.memory),
                _NO_ARGUMENTS,
            )
            for each in memories
        ]

    return Category(
        "memory_entry",
        "What was remembered in earlier conversations: facts about the person, the project and their wishes.",
        resources=Resources(
            Tool("read_memory_body", read, Purity.READ), _target, "read the memory's text", entries
        ),
        revision=store.revision,
    )


def _face(memory: Memory) -> str:
    if memory.origins:  # a look at the catalog marks nothing as text of others: so it shows none
        where = shorten(memory.origins[0], 60)
        return f"Remembered after text of others, {where}; read it to see what it is ({memory.type}, {memory.layer})"
    return f"{memory.name}: {memory.description} ({memory.type}, {memory.layer})"


def _read(store: MemoryStore, args: Arguments) -> Memory:
    try:
        return store.read(args["slug"], args.get("layer"))
    except MemoryStoreError as error:
        raise ActionError(str(error), error.hint) from error


def _report(memory: Memory, context: ToolContext) -> None:
    """Mark a memory that was made of text of others as that."""
    for origin in memory.origins:
        context.came_from(f"memory {memory.slug}, remembered after {origin}")


def _target(entry: str, args: Arguments) -> Arguments:
    if entry.startswith(_OWN):
        return {**args, "slug": entry.removeprefix(_OWN), "layer": "agent"}
    return {**args, "slug": entry}


def _operations(store: MemoryStore, search: MemorySearch, services: Services) -> Category:
    return Category(
        "memory_operation",
        "Remember something for later conversations; find, review, import and forget what is remembered.",
        operations=(
            Operation(
                "remember_shared",
                "Remember something for every agent of this workspace, in later conversations too. A memory "
                "with the same slug is replaced.",
                _REMEMBER,
                _remember_tool(store, "shared"),
            ),
            Operation(
                "remember_agent",
                "Remember something for yourself alone, in later conversations too. A memory of your own "
                "with the same slug is replaced.",
                _REMEMBER,
                _remember_tool(store, "agent"),
            ),
            Operation(
                "forget",
                "Remove one memory for good.",
                _FORGET,
                Tool("forget_memory_operation", _forget(store), Purity.WRITE, _forget_effects),
            ),
            Operation(
                "list",
                "List the memories with layer, slug, title, description and type, without their texts.",
                _LIST,
                Tool("list_memory_operation", _list(store), Purity.READ),
            ),
            Operation(
                "search",
                "Find memories by what they are about, in any words. Use it when there are many.",
                _SEARCH,
                Tool("search_memory_operation", _search(store, search), Purity.READ),
            ),
            Operation(
                "review",
                "Say how large and how old memories are, when they were last used, and which name files that are not "
                "there any more; those that may be of no use first.",
                _REVIEW,
                Tool("review_memory_operation", _review(store, services), Purity.READ),
            ),
            Operation(
                "import",
                "Make a memory of each Markdown file of a folder, or of one. Done again, it takes over what changed.",
                _IMPORT,
                Tool(
                    "import_memory_operation",
                    _import(store),
                    lambda args: Purity.READ if args.get("dry_run") else Purity.WRITE,
                    _import_effects,
                    _import_preview,
                    plan=_import_plan(store, FileTree(services.workspace)),
                    plan_is_slow=True,
                ),
            ),
        ),
        close=search.close,
    )


def _remember_tool(store: MemoryStore, layer: MemoryLayer) -> Tool:
    def effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
        return (Effect("write", f"memory/{layer}/{args['slug']}"),)

    def preview(args: Arguments, context: ToolContext) -> str:
        return f"{args['name']} ({args['type']}): {args['description']}\n\n{args['body']}"

    return Tool(f"remember_{layer}_memory_operation", _remember(store, layer), Purity.WRITE, effects, preview)


def _remember(store: MemoryStore, layer: MemoryLayer) -> Handler:
    async def remember(args: Arguments, context: ToolContext) -> dict[str, Any]:
        given = {key: args[key] for key in ("name", "description", "body")}
        clean = await asyncio.to_thread(context.services.redactor.value, given)
        texts = (clean["name"], clean["description"], args["type"], clean["body"])
        memory = Memory(layer, args["slug"], *texts, origins=context.origins())
        with suppress(MemoryStoreError):  # it may be new
            before = await asyncio.to_thread(store.read, memory.slug, layer)
            memory = replace(memory, source=before.source, imported=before.imported)
        try:
            replaced = await asyncio.to_thread(store.remember, memory)
        except MemoryStoreError as error:
            raise ActionError(str(error), error.hint) from error
        answer: dict[str, Any] = {"layer": layer, "slug": memory.slug, "replaced": replaced}
        if memory.origins:
            answer["from"] = list(memory.origins)
        if any(clean[key] != args[key] for key in clean):
            answer["note"] = "A secret in the text was replaced by a mark: secrets are not remembered."
        return answer

    return remember


def _forget(store: MemoryStore) -> Handler:
    async def forget(args: Arguments, context: ToolContext) -> dict[str, Any]:
        try:
            await asyncio.to_thread(store.forget, args["layer"], args["slug"])
        except MemoryStoreError as error:
            raise ActionError(str(error), error.hint) from error
        return {"layer": args["layer"], "slug": args["slug"], "forgotten": True}

    return forget


def _forget_effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    return (Effect("delete", f"memory/{args['layer']}/{args['slug']}"),)


def _list(store: MemoryStore) -> Handler:
    async def list_memories(args: Arguments, context: ToolContext) -> dict[str, Any]:
        listing = await asyncio.to_thread(store.listing, args.get("layer"))
        answer: dict[str, Any] = {
            "memories": [
                {
                    "layer": each.layer,
                    "slug": each.slug,
                    "name": each.memory.name,
                    "description": each.memory.description,
                    "type": each.memory.type,
                }
                for each in listing.memories
            ],
            "total": len(listing.memories),
        }
        for each in listing.memories:
            _report(each.memory, context)
        if listing.damaged:
            answer["damaged"] = [
                {"layer": each.layer, "file": printable_name(each.file), "problem": each.problem}
                for each in listing.damaged
            ]
        return {**answer, **_held_back(listing, context)}

    return list_memories


def _held_back(listing: MemoryListing, context: ToolContext) -> dict[str, str]:
    """Return what is to be said of memories that are not the person's own: nothing of what they say."""
    if not listing.held_back:
        return {}
    number = count(len(listing.held_back), "memory", "memories")
    said = f"{number} came with the folder or changed outside of a session. {HOW_TO_TRUST}"
    return {"held_back": context.without_advice(said)}


def _search(store: MemoryStore, search: MemorySearch) -> Handler:
    async def find(args: Arguments, context: ToolContext) -> dict[str, Any]:
        listing = await asyncio.to_thread(store.listing)
        wanted = [
            each
            for each in listing.memories
            if args.get("layer") in (None, each.layer) and args.get("type") in (None, each.memory.type)
        ]
        found, ranking, note = await search.search(wanted, args["query"], args.get("top_k", 5))
        shared = {each.slug for each in listing.memories if each.layer == "shared"}
        hits = []
        for each in found:
            memory = each.facts.memory
            _report(memory, context)
            context.used(Source("file", store.path(memory.layer, memory.slug)))
            hits.append(
                {
                    "action": f"memory_entry__{entry_name(each.facts, shared)}",
                    "score": each.score,
                    "name": memory.name,
                    "description": memory.description,
                    "text": shorten(" ".join(memory.body.split()), _EXCERPT),
                }
            )
        answer: dict[str, Any] = {"query": args["query"], "ranking": ranking, "hits": hits}
        if note:
            answer["note"] = note
        return {**answer, **_held_back(listing, context)}

    return find


def _review(store: MemoryStore, services: Services) -> Handler:
    async def look(args: Arguments, context: ToolContext) -> dict[str, Any]:
        now, days = time.time(), float(args.get("stale_days", STALE_DAYS))
        listing = await asyncio.to_thread(store.listing, args.get("layer"))
        reviewed = await asyncio.to_thread(
            review, listing.memories, services.workspace.root, services.last_use, now, days
        )
        rows = []
        for each in reviewed[: args.get("limit", 20)]:
            _report(each.facts.memory, context)
            rows.append(as_row(each, now))
        answer = {
            "total": len(reviewed),
            "bytes": sum(each.facts.size for each in reviewed),
            "stale": sum(bool(each.why) for each in reviewed),
            "memories": rows,
        }
        return {**answer, **_held_back(listing, context)}

    return look


def _import_plan(store: MemoryStore, tree: FileTree) -> Any:
    def plan(args: Arguments, context: ToolContext) -> ImportPlan:
        services, layer = context.services, args.get("layer", "shared")
        given = args["path"]
        outside = context.actor == "person" and (given.startswith("~") or Path(given).is_absolute())
        if outside:  # the person's own call may take notes from anywhere
            place = Path(os.path.realpath(Path(given).expanduser()))
            named = str(place)
        else:
            named = tree.within(context.workspace).locate(given)
            place = services.workspace.root / named
        try:
            notes, left_out = read_notes(
                place,
                named,
                (lambda path: True)
                if outside
                else lambda path: protects_file(path.split("/")) is None and context.may_read(path),
            )
            listing = store.listing(layer)
        except MemoryStoreError as error:
            raise ActionError(
                str(error), error.hint or "Name a Markdown file or a folder of them."
            ) from error

        def origins(path: str) -> tuple[str, ...]:
            strange = None if outside else context.whose(path)
            return context.origins() + (() if strange is None else (f"{path} {strange}",))

        return plan_import(
            notes,
            layer,
            listing.memories,
            [
                *(each.slug for each in listing.held_back),
                *(each.file.removesuffix(".md") for each in listing.damaged),
            ],
            left_out=left_out,
            root=named,
            origins=origins,
            mask=services.redactor.text,
            replace_changed=args.get("replace_changed", False),
        )

    return plan


def _import_effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    plan: ImportPlan = context.plan
    if args.get("dry_run") or not plan.written:
        return ()
    return tuple(Effect(EffectKind.WRITE, f"memory/{each.layer}/{each.slug}") for each in plan.written)


def _import_preview(args: Arguments, context: ToolContext) -> str:
    plan: ImportPlan = context.plan
    return plan.preview


def _import(store: MemoryStore) -> Handler:
    async def take(args: Arguments, context: ToolContext) -> dict[str, Any]:
        plan: ImportPlan = context.plan
        done = not args.get("dry_run", False)
        for each in plan.items:
            _report(each.memory, context)
        if done and plan.written:
            try:
                await asyncio.to_thread(store.remember_all, plan.written)
            except MemoryStoreError as error:
                raise ActionError(str(error), error.hint) from error
        return summary(plan, done=done)

    return take
