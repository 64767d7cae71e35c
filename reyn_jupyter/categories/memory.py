"""Memories that outlive a conversation: what is worth knowing next time.

Two categories over one store: `memory_entry`, whose resources are the memories themselves, and
`memory_operation`, which keeps and forgets them. A memory's slug is its name; where both layers hold a slug,
the shared memory has it and the agent's own is ``agent.<slug>`` (a slug has no dot).
What is remembered is redacted first: the file lives on, and goes to models later.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.file_tree import printable_name
from reyn_jupyter.backends.memory_store import (
    BODY_BYTES,
    DESCRIPTION_LENGTH,
    LAYERS,
    MEMORY_TYPES,
    NAME_LENGTH,
    SLUG_LENGTH,
    SLUG_PATTERN,
    Layer,
    Memory,
    MemoryStore,
    MemoryStoreError,
)
from reyn_jupyter.catalog.action import (
    Arguments,
    Category,
    Effect,
    Entry,
    Handler,
    Operation,
    Purity,
    Resources,
    Tool,
)
from reyn_jupyter.outputs.content import Text
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import Services, Source, ToolContext

if TYPE_CHECKING:
    from collections.abc import Sequence

_OWN = "agent."
_NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}
_SLUG = {
    "type": "string",
    "pattern": SLUG_PATTERN,
    "maxLength": SLUG_LENGTH,
    "description": "Short id of the memory, lower case with - or _, e.g. report-style.",
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


def categories(services: Services) -> tuple[Category, ...]:
    """`memory_entry` and `memory_operation` over ``<root>/.reyn/memory``."""
    store = MemoryStore(services.workspace.root, durable=services.workspace.durable)
    return _entries(store), _operations(store)


def _entries(store: MemoryStore) -> Category:
    async def read(args: Arguments, context: ToolContext) -> Text:
        try:
            memory = store.read(args["slug"], args.get("layer"))
        except MemoryStoreError as error:
            raise ActionError(str(error), error.hint) from error
        context.used(Source("file", store.path(memory.layer, memory.slug)))
        return Text(memory.body)

    async def entries() -> Sequence[Entry]:
        if not any(store.revision()):  # no file: nothing that a thread would be worth
            return []
        memories, _ = await asyncio.to_thread(store.memories)
        shared = {memory.slug for memory in memories if memory.layer == "shared"}
        return [
            Entry(
                f"{_OWN}{memory.slug}" if memory.layer == "agent" and memory.slug in shared else memory.slug,
                f"{memory.name}: {memory.description} ({memory.type}, {memory.layer})",
                _NO_ARGUMENTS,
            )
            for memory in memories
        ]

    return Category(
        "memory_entry",
        "What was remembered in earlier conversations: facts about the person, the project and their wishes.",
        resources=Resources(
            Tool("read_memory_body", read, Purity.READ), _target, "read the memory's text", entries
        ),
        revision=store.revision,
    )


def _target(entry: str, args: Arguments) -> Arguments:
    if entry.startswith(_OWN):
        return {**args, "slug": entry.removeprefix(_OWN), "layer": "agent"}
    return {**args, "slug": entry}


def _operations(store: MemoryStore) -> Category:
    return Category(
        "memory_operation",
        "Remember something for later conversations, forget it again, or see all that is remembered.",
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
        ),
    )


def _remember_tool(store: MemoryStore, layer: Layer) -> Tool:
    def effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
        return (Effect("write", f"memory/{layer}/{args['slug']}"),)

    def preview(args: Arguments, context: ToolContext) -> str:
        return f"{args['name']} ({args['type']}): {args['description']}\n\n{args['body']}"

    return Tool(f"remember_{layer}_memory_operation", _remember(store, layer), Purity.WRITE, effects, preview)


def _remember(store: MemoryStore, layer: Layer) -> Handler:
    async def remember(args: Arguments, context: ToolContext) -> dict[str, Any]:
        given = {key: args[key] for key in ("name", "description", "body")}
        clean = await asyncio.to_thread(context.services.redactor.value, given)
        memory = Memory(layer, args["slug"], clean["name"], clean["description"], args["type"], clean["body"])
        try:
            replaced = await asyncio.to_thread(store.remember, memory)
        except MemoryStoreError as error:
            raise ActionError(str(error), error.hint) from error
        answer: dict[str, Any] = {"layer": layer, "slug": memory.slug, "replaced": replaced}
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
        memories, damaged = await asyncio.to_thread(store.memories, args.get("layer"))
        answer: dict[str, Any] = {
            "memories": [
                {
                    "layer": memory.layer,
                    "slug": memory.slug,
                    "name": memory.name,
                    "description": memory.description,
                    "type": memory.type,
                }
                for memory in memories
            ],
            "total": len(memories),
        }
        if damaged:
            answer["damaged"] = [
                {"layer": each.layer, "file": printable_name(each.file), "problem": each.problem}
                for each in damaged
            ]
        return answer

    return list_memories
