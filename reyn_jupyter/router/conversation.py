"""The turns that a model is shown, oldest first, and what the conversation has learnt of the catalog.

Invariants: every tool call in it has a result; a finished turn's messages never change, but for old tool results
that shrink to stubs, in batches, so that the cached prefix is lost rarely. The conversation is a view of runs: what
happened stands in their logs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from reyn_jupyter.models.seam import Message, ToolSet
from reyn_jupyter.outputs.encoding import clip

STUB_AFTER = 200  # bytes: shorter results stay as they are


@dataclass(frozen=True)
class Turn:
    """One turn: the person's text and everything up to the answer.

    `listed` is whether a listing was given in it, `names` those of its last one, `hinted` whether the hint about
    hidden search was.
    """

    run: str
    prompt: str
    messages: tuple[Message, ...]
    cell: str | None = None
    listed: bool = False
    status: str = "ok"
    names: tuple[str, ...] = ()
    hinted: bool = False

    @cached_property
    def tokens(self) -> int:
        return sum(message.tokens for message in self.messages)

    @cached_property
    def call_ids(self) -> frozenset[str]:
        return frozenset(call.id for message in self.messages for call in message.tool_calls)


@dataclass
class Conversation:
    """Turns, and what was decided once for all of them (what an automatic surface came to, tools).

    What it has learnt of the catalog follows from its turns, so that it goes with a turn that is dropped or replaced;
    `opened` says that there was a listing before the first of them (a replay of a later turn).
    """

    id: str
    turns: list[Turn] = field(default_factory=list)
    surface: Literal["universal", "flat"] | None = None
    tools: ToolSet | None = None
    system: str | None = None
    made: dict[str, Any] = field(default_factory=dict, repr=False)
    opened: bool = False
    shrunk: int = 0

    @property
    def listed(self) -> bool:
        return self.opened or any(turn.listed for turn in self.turns)

    @property
    def hint_due(self) -> bool:
        return not any(turn.hinted for turn in self.turns)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the last listing."""
        return next((turn.names for turn in reversed(self.turns) if turn.names), ())

    @property
    def tokens(self) -> int:
        return sum(turn.tokens for turn in self.turns)

    @property
    def call_ids(self) -> frozenset[str]:
        return frozenset().union(*(turn.call_ids for turn in self.turns))

    def messages(self) -> list[Message]:
        return [message for turn in self.turns for message in turn.messages]

    def add(self, turn: Turn, at: int | None = None) -> None:
        """Put a finished turn in its place, the end when `at` is None; a cell has one turn, its latest."""
        place, _ = self.replace_cell(turn.cell)
        at = place if place is not None else at
        taken = turn.call_ids & self.call_ids
        if taken:  # two turns went on at once
            turn = replace(
                turn, messages=tuple(_renamed(message, taken, turn.run) for message in turn.messages)
            )
        self.turns.insert(len(self.turns) if at is None else at, turn)

    def replace_cell(self, cell: str | None) -> tuple[int | None, int]:
        """Take out the turn that this cell made before.

        Returns:
            The 0-based place it had (None when the cell is new) and how many later turns stood on it.
        """
        if cell is None:
            return None, 0
        for index, turn in enumerate(self.turns):
            if turn.cell == cell:
                later = len(self.turns) - index - 1
                del self.turns[index]
                return index, later
        return None, 0

    def drop(self, number: int) -> Turn:
        """Take out turn `number` (1-based). Raises IndexError."""
        return self.turns.pop(_index(number, self.turns))

    def fork(self, number: int, conversation_id: str) -> Conversation:
        """A new conversation that stands on the turns up to `number` (1-based). Raises IndexError."""
        kept = self.turns[: _index(number, self.turns) + 1]
        return Conversation(conversation_id, list(kept), self.surface, opened=self.opened)

    def shrink(self, budget: int) -> int:
        """Shrink old tool results to stubs once the history passes `budget` tokens; returns how many.

        It goes down to half the budget, oldest first, and leaves the last turn alone.
        """
        if self.tokens <= budget:
            return 0
        count = 0
        for index, turn in enumerate(self.turns[:-1]):
            if self.tokens <= budget // 2:
                break
            messages = tuple(_stub(message) for message in turn.messages)
            count += sum(new is not old for new, old in zip(messages, turn.messages, strict=True))
            self.turns[index] = replace(turn, messages=messages)
        self.shrunk += count
        return count


def _stub(message: Message) -> Message:
    size = len(message.content.encode())
    if message.role != "tool" or size <= STUB_AFTER or "\n[shrunk: " in message.content[-STUB_AFTER:]:
        return message
    head = clip(message.content.partition("\n")[0], 120)
    note = "inspect it again if needed" if head.startswith("[blob:") else "call it again if needed"
    return Message("tool", f"{head}\n[shrunk: {size:,} bytes before; {note}]", (), message.tool_call_id)


def _renamed(message: Message, taken: frozenset[str], run: str) -> Message:
    """The message with ids of its run's own in place of those that are taken."""

    def own(identity: str) -> str:
        return f"{identity}-{run[-12:]}" if identity in taken else identity

    if message.tool_call_id in taken:
        return replace(message, tool_call_id=own(message.tool_call_id))
    if taken.isdisjoint(call.id for call in message.tool_calls):
        return message
    return replace(message, tool_calls=tuple(replace(call, id=own(call.id)) for call in message.tool_calls))


def _index(number: int, turns: list[Turn]) -> int:
    if not 1 <= number <= len(turns):
        raise IndexError(f"there is no turn {number}: the conversation has {len(turns)}")
    return number - 1
