"""What is remembered in a workspace, for people: how large and old, what a request finds, notes that are taken in.

Invariant: what a person searches, imports and trusts goes the way of the same actions and of the same store.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.backends.memory.memory_format import MemoryLayer
from reyn_jupyter.backends.memory.memory_import import above_of
from reyn_jupyter.backends.memory.memory_review import entry_name, review
from reyn_jupyter.categories.memory import memory_store
from reyn_jupyter.sessions.result_objects import Result, Table
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import count, shorten
from reyn_jupyter.support.user_errors import UserError

if TYPE_CHECKING:
    from reyn_jupyter.sessions.assembly import Parts
    from reyn_jupyter.sessions.async_session import AsyncSession

MOST_ROWS = 1_000
_TEXT = 160  # characters of a memory's text in a table
_DAY = 86_400
Which = Literal["all", "stale", "held"]


class MemoryActionError(UserError):
    """Something of the memories failed; the message says why, `hint` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message, self.hint = message, hint


def memories(parts: Parts, which: Which = "all") -> Table:
    """Return one row a memory: what it is about, bytes, days since it was changed and used, what speaks against it."""
    listing = memory_store(parts.services).listing()
    notes = [f"{each.layer}/{printable(each.file)}: {each.problem}" for each in listing.damaged[:3]]
    if which == "held":
        held = tuple(
            {
                "memory": each.slug,
                "layer": each.layer,
                "about": printable(f"{each.memory.name}: {each.memory.description}"),
                "bytes": each.size,
                "text": printable(shorten(" ".join(each.memory.body.split()), _TEXT)),
            }
            for each in listing.held_back[:MOST_ROWS]
        )
        note = "%reyn trust shows them in full and asks" if held else "None: all memories here are yours."
        return Table("memory", held, "Memories that are held back", note)
    if listing.held_back:
        held_back = count(len(listing.held_back), "memory", "memories")
        notes.append(
            f"{held_back} came with the folder or changed outside of a session, and no model sees them: "
            "%reyn memory held shows them, %reyn trust asks whether they are yours"
        )
    now = time.time()
    found = review(listing.memories, parts.workspace.root, parts.services.last_use, now)
    shared = {each.slug for each in listing.memories if each.layer == "shared"}
    stale = [each for each in found if each.why]
    chosen = (
        stale
        if which == "stale"
        else sorted(found, key=lambda each: (each.facts.layer != "shared", each.facts.slug))
    )
    rows = tuple(
        {
            "memory": entry_name(each.facts, shared),
            "about": f"{each.facts.memory.name}: {each.facts.memory.description}",
            "type": each.facts.memory.type,
            "layer": each.facts.layer,
            "bytes": each.facts.size,
            "days old": int((now - each.facts.changed) / _DAY),
            "used days ago": None if each.used is None else int((now - each.used) / _DAY),
            "stale": each.why,
            "from": each.facts.memory.source or ", ".join(each.facts.memory.origins),
        }
        for each in chosen[:MOST_ROWS]
    )
    if not found:
        notes.append('Nothing yet. Ask for it: %reyn ask "remember that the year starts in April"')
    elif which == "stale" and not rows:
        notes.append("None: all were changed or used lately, and name nothing that is gone.")
    else:
        size = count(sum(each.facts.size for each in found), "byte")
        total = f"{size} in {count(len(found), 'memory', 'memories')}"
        line = reyn_line("invoke", f"memory_entry__{rows[0]['memory']}")
        notes.append(f"{total}; read one: {line}")
    if len(chosen) > len(rows):
        notes.append(f"{len(rows):,} of {len(chosen):,} are shown")
    if stale and which == "all":
        notes.append(f"{len(stale):,} may be of no use any more: %reyn memory stale")
    return Table("memory", rows, "Stale memories" if which == "stale" else "Memory", "; ".join(notes))


async def search(session: AsyncSession, query: str, top_k: int) -> Table:
    """Return the memories that fit a request best. Raises MemoryActionError."""
    value = _value(await session.invoke_action("memory_operation__search", {"query": query, "top_k": top_k}))
    rows = tuple(
        {
            "score": hit["score"],
            "memory": hit["action"].partition("__")[2],
            "about": f"{hit['name']}: {hit['description']}",
            "text": shorten(hit["text"], _TEXT),
        }
        for hit in value["hits"]
    )
    how = "ranked by words and meaning" if value["ranking"] == "hybrid" else "ranked by words"
    note = " ".join(filter(None, [f"{how}.", value.get("note"), value.get("held_back")]))
    return Table("memory", rows, f"Memories: {shorten(query, 80)}", note)


async def take_notes(
    session: AsyncSession, path: str, layer: MemoryLayer, write: bool, replace_changed: bool
) -> Table:
    """Return what an import of notes would do, or has done where it `write`s. Raises MemoryActionError."""
    given: dict[str, Any] = {
        "path": path,
        "layer": layer,
        "dry_run": not write,
        "replace_changed": replace_changed,
    }
    value = _value(await session.invoke_action("memory_operation__import", given))
    found = [*value["memories"], *({**each, "step": "left out"} for each in value.get("left_out", ()))]
    above = _above(path)
    rows = tuple(
        {
            "memory": each.get("memory", ""),
            "step": each["step"],
            "from": str(each.get("from") or each.get("path")).removeprefix(above),
            "note": each.get("note") or each.get("why", ""),
        }
        for each in found[:MOST_ROWS]
    )
    done = value["imported" if write else "would_import"], value["updated" if write else "would_update"]
    said = f"{done[0]:,} new, {done[1]:,} updated, {value['unchanged']:,} unchanged, {value['kept']:,} kept as they are"
    notes = [said, value.get("note", "")]
    if not write and any(done):
        notes.append(f"nothing is written yet; {reyn_line('memory import', path, write=True)} takes them in")
    if value["kept"]:
        notes.append("--replace writes over those that were changed here too")
    title = f"{'Taken in from' if write else 'Import of'} {shorten(path, 80)}"
    return Table("memory", rows, title, "; ".join(filter(None, notes)))


def _above(path: str) -> str:
    return above_of(os.path.realpath(Path(path).expanduser())) if path.startswith(("/", "~")) else ""


def _value(result: Result) -> dict[str, Any]:
    if result.error is not None:
        payload = result.payload if isinstance(result.payload, dict) else {}
        wrong = [f"{each['path']}: {each['message']}" for each in payload.get("invalid", ())]
        message = "; ".join(wrong) or result.error
        raise MemoryActionError(f"{message.rstrip('.')}.", str(payload.get("hint") or ""))
    value: dict[str, Any] = result.value
    return value
