"""Tool calls put together from the deltas of a stream. Pure: no I/O, no LiteLLM.

Every call that comes out has an id of its own within the completion, whatever the provider sent. Three
questions decide where a delta belongs: does its index open a new slot, does its id name another call than
the open one, and, for a provider that sends neither, is the open call complete already.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from reyn_jupyter.models.seam import ToolCall

# Looking whether arguments are complete costs their length each time; larger ones are taken as still open.
_LARGEST_CHECKED = 100_000


@dataclass
class _Slot:
    id: str | None
    name: str = ""
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def complete(self) -> bool:
        """Whether the arguments so far are a whole JSON value."""
        if not self.parts or self.size > _LARGEST_CHECKED:
            return False
        try:
            json.loads("".join(self.parts))
        except (ValueError, RecursionError):
            return False
        return True


class ToolCallAssembler:
    """Collects deltas, gives calls.

    assembler = ToolCallAssembler()
    assembler.add(index=0, identity="call_1", name="list_actions", arguments="")
    assembler.add(index=0, identity=None, name=None, arguments="{}")
    assembler.finish("call_3")      # → (ToolCall("call_1", "list_actions", "{}"),)
    """

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._open: dict[int, _Slot] = {}
        self.size = 0

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, index: int | None, identity: str | None, name: str | None, arguments: str | None) -> None:
        """Take one delta. `index` None means the call that was open last."""
        if not (identity or name or arguments):
            return
        place = index if index is not None else next(reversed(self._open), 0)
        slot = self._open.get(place)
        if slot is None or self._begins_another(slot, identity, name):
            slot = _Slot(identity)
            self._slots.append(slot)
            self._open[place] = slot
        slot.id = slot.id or identity
        if name and name != slot.name:
            slot.name += name
        if arguments:
            slot.parts.append(arguments)
            slot.size += len(arguments)
            self.size += len(arguments)

    def _begins_another(self, slot: _Slot, identity: str | None, name: str | None) -> bool:
        if identity and slot.id:
            return identity != slot.id
        return bool(name and slot.name) and slot.complete()

    def finish(self, prefix: str) -> tuple[ToolCall, ...]:
        """The calls as they began; a missing or repeated id becomes `prefix` and a number."""
        taken: set[str] = set()
        calls: list[ToolCall] = []
        for position, slot in enumerate(self._slots):
            identity = slot.id if slot.id and slot.id not in taken else f"{prefix}_{position}"
            while identity in taken:
                identity += "_"
            taken.add(identity)
            calls.append(ToolCall(identity, slot.name, "".join(slot.parts)))
        return tuple(calls)
