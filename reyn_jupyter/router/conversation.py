"""The turns that a model is shown, oldest first, and what the conversation has learnt of the catalog.

Invariants: every tool call in it has a result; a finished turn's messages never change, but for old tool results
that shrink to stubs, in batches, so that the cached prefix is lost rarely. The conversation is a view of runs: what
happened stands in their logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal

from reyn_jupyter.models.base import Message, Prefix, ToolSet
from reyn_jupyter.support.encoding import clip

STUB_AFTER = 200  # bytes: shorter results stay as they are


LOOSENESS = {"off": 0, "schema": 1, "head": 2}  # of what `variables` lets a model see
NOT_SHOWN = '{"note":"left out: it holds a variable\'s content, which this model may not see"}'


@dataclass(frozen=True)
class Disclosure:
    """A content of the person's that a turn put before the model: by which call ("" for the prompt itself).

    `described` is whether it is a variable's own description, or a look into one, which `variables` bounds.
    """

    call: str
    kind: str
    name: str
    size: int
    described: bool = False


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
    shown: tuple[Disclosure, ...] = ()
    host: str | None = None
    variables: str = "head"

    @cached_property
    def tokens(self) -> int:
        return sum(message.tokens for message in self.messages)

    @cached_property
    def call_ids(self) -> frozenset[str]:
        return frozenset(call.id for message in self.messages for call in message.tool_calls)

    @cached_property
    def shrinkable(self) -> bool:
        """Return whether a tool result of the turn can still become a stub."""
        return any(_stub(message) is not message for message in self.messages)


@dataclass(frozen=True)
class _Facts:
    """Facts about a conversation that are computed from its turns."""

    listed: bool
    hinted: bool
    names: tuple[str, ...]
    tokens: int
    call_ids: frozenset[str]

    @classmethod
    def of(cls, turns: Sequence[Turn]) -> _Facts:
        return cls(
            any(turn.listed for turn in turns),
            any(turn.hinted for turn in turns),
            next((turn.names for turn in reversed(turns) if turn.names), ()),
            sum(turn.tokens for turn in turns),
            frozenset().union(*(turn.call_ids for turn in turns)),
        )

    def plus(self, turn: Turn) -> _Facts:
        """Return the facts with one more turn at the end, without a look at the others."""
        return _Facts(
            self.listed or turn.listed,
            self.hinted or turn.hinted,
            turn.names or self.names,
            self.tokens + turn.tokens,
            self.call_ids | turn.call_ids,
        )


@dataclass(frozen=True)
class TurnPlace:
    """The place of a turn in its conversation, and its consequences for the other turns.

    Attributes:
        at: the 0-based place of the turn that it replaces; None at the end.
        later: number of turns after the replaced one.
        left_out: number of earlier results that were left out of the history.
        resent: the person's contents in earlier turns that this host gets for the first time.
    """

    at: int | None
    later: int
    left_out: int
    resent: tuple[Disclosure, ...]


@dataclass
class Conversation:
    """Turns, and the decisions that hold for all of them: the surface where it is automatic, and
    whether actions can be searched (a list of tools that moved would cost the provider's cached prefix).

    What it has learnt of the catalog follows from its turns, so that it goes with a turn that is dropped or replaced;
    `opened` says that there was a listing before the first of them (a replay of a later turn).
    """

    id: str
    turns: tuple[Turn, ...] = ()
    surface: Literal["universal", "flat"] | None = None
    search: bool | None = None
    tools: ToolSet | None = None
    system: str | None = None
    kept: dict[str, Any] = field(default_factory=dict, repr=False)
    opened: bool = False
    shrunk: int = 0
    reserved: set[str] = field(default_factory=set, repr=False)
    described: set[str] = field(default_factory=set, repr=False)  # blobs that hold a variable's description
    _known: tuple[tuple[Turn, ...], _Facts] | None = field(default=None, repr=False)
    _prefix: Prefix | None = field(default=None, repr=False)

    @property
    def _facts(self) -> _Facts:
        """Return the facts about the turns, computed once while the turns are the same."""
        if self._known is None or self._known[0] is not self.turns:
            self._known = (self.turns, _Facts.of(self.turns))
        return self._known[1]

    @property
    def listed(self) -> bool:
        return self.opened or self._facts.listed

    @property
    def hint_due(self) -> bool:
        return not self._facts.hinted

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the last listing."""
        return self._facts.names

    @property
    def tokens(self) -> int:
        return self._facts.tokens

    @property
    def call_ids(self) -> frozenset[str]:
        """The ids of tool calls in its turns; those of turns that still go on are `reserved`."""
        return self._facts.call_ids

    def messages(self) -> list[Message]:
        return list(chain.from_iterable(turn.messages for turn in self.turns))

    def prefix(self, system: Message) -> Prefix:
        """Return what every request of the next turn begins with: the system message and the history."""
        self._prefix = Prefix((system, *self.messages()), self._prefix)
        return self._prefix

    def begin(self, cell: str | None, variables: str, host: str | None) -> TurnPlace:
        """Prepare the history for a turn: replace the cell's earlier turn, leave out what the model may not see.

        Args:
            cell: the id of the cell that asks.
            variables: how much of variables the model may see, a key of `LOOSENESS`.
            host: where its requests go.
        """
        at, later = self.replace_cell(cell)
        return TurnPlace(at, later, self.restrict(variables), tuple(self.resent(host)))

    def add(self, turn: Turn, at: int | None = None) -> None:
        """Put a finished turn in its place, the end when `at` is None; a cell has one turn, its latest."""
        place, _ = self.replace_cell(turn.cell)
        at = place if place is not None else at
        if at is None or at >= len(self.turns):
            facts = self._facts.plus(turn)
            self.turns = (*self.turns, turn)
            self._known = (self.turns, facts)
        else:
            self.turns = (*self.turns[:at], turn, *self.turns[at:])

    def remember(self, run: str, shown: tuple[Disclosure, ...], host: str | None, variables: str) -> None:
        """Keep with a turn the person's contents that it showed, the host, and how much of variables was allowed."""
        for index in reversed(range(len(self.turns))):
            turn = self.turns[index]
            if turn.run == run:
                facts = self._facts
                self._put(index, replace(turn, shown=shown, host=host, variables=variables))
                self._known = (self.turns, facts)  # none of them depends on what was shown
                return

    def restrict(self, variables: str) -> int:
        """Leave variables' contents out of earlier results where this model may see less; returns how many."""
        if variables == "head":
            return 0
        count = 0
        for index, turn in enumerate(self.turns):
            if LOOSENESS[turn.variables] <= LOOSENESS[variables]:
                continue
            # "schema" bounds what a variable's description shows; "off" refuses variables everywhere.
            secret = {
                item.call
                for item in turn.shown
                if item.call and (item.described or (variables == "off" and item.kind == "variable"))
            }
            messages = tuple(
                replace(message, content=NOT_SHOWN, attachments=())
                if message.tool_call_id in secret
                else message
                for message in turn.messages
            )
            count += len(secret)
            self._put(index, replace(turn, messages=messages, variables=variables))
        return count

    def resent(self, host: str | None) -> list[Disclosure]:
        """Return the person's contents in earlier turns that this host gets now for the first time; note the host."""
        if host is None:
            return []
        found: list[Disclosure] = []
        for index, turn in enumerate(self.turns):
            if turn.host == host or not turn.shown:
                continue
            sizes = {message.tool_call_id: len(message.content.encode()) for message in turn.messages}
            left_out = {message.tool_call_id for message in turn.messages if message.content == NOT_SHOWN}
            found += [
                replace(item, size=min(item.size, sizes.get(item.call, item.size)))
                for item in turn.shown
                if item.call not in left_out
            ]
            self._put(index, replace(turn, host=host))
        return found

    def _put(self, index: int, turn: Turn) -> None:
        self.turns = (*self.turns[:index], turn, *self.turns[index + 1 :])

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
                self.turns = (*self.turns[:index], *self.turns[index + 1 :])
                return index, later
        return None, 0

    def drop(self, number: int) -> Turn:
        """Take out turn `number` (1-based). Raises IndexError."""
        index = _index(number, self.turns)
        turn = self.turns[index]
        self.turns = (*self.turns[:index], *self.turns[index + 1 :])
        return turn

    def fork(self, number: int, conversation_id: str) -> Conversation:
        """Return a new conversation of the turns up to `number` (1-based). Raises IndexError."""
        kept = self.turns[: _index(number, self.turns) + 1]
        return Conversation(
            conversation_id,
            kept,
            self.surface,
            self.search,
            opened=self.opened,
            described=set(self.described),
        )

    def shrink(self, budget: int) -> int:
        """Shrink old tool results to stubs once the history passes `budget` tokens; returns how many.

        It goes down to half the budget, oldest first, and leaves the last turn alone.
        """
        facts = self._facts
        tokens = facts.tokens
        if tokens <= budget:
            return 0
        turns, count = list(self.turns), 0
        for index, turn in enumerate(self.turns[:-1]):
            if tokens <= budget // 2:
                break
            if not turn.shrinkable:
                continue
            messages = tuple(_stub(message) for message in turn.messages)
            count += sum(new is not old for new, old in zip(messages, turn.messages, strict=True))
            turns[index] = replace(turn, messages=messages)
            tokens += turns[index].tokens - turn.tokens
        if count:
            self.turns = tuple(turns)
            # Of what is known of the turns, a stub changes the tokens alone.
            self._known = (self.turns, replace(facts, tokens=tokens))
        self.shrunk += count
        return count


def _stub(message: Message) -> Message:
    size = len(message.content.encode())
    if message.attachments and message.role == "tool":
        shown = message.content if size <= STUB_AFTER else clip(message.content.partition("\n")[0], 120)
        counted = f"{len(message.attachments)} images or sounds"
        note = f"[shrunk: {size:,} bytes and {counted} before; call it again if needed]"
        return Message("tool", f"{shown}\n{note}", (), message.tool_call_id)
    if message.role != "tool" or size <= STUB_AFTER or "\n[shrunk: " in message.content[-STUB_AFTER:]:
        return message
    head = clip(message.content.partition("\n")[0], 120)
    note = "inspect it again if needed" if head.startswith("[blob:") else "call it again if needed"
    return Message("tool", f"{head}\n[shrunk: {size:,} bytes before; {note}]", (), message.tool_call_id)


def _index(number: int, turns: Sequence[Turn]) -> int:
    if not 1 <= number <= len(turns):
        raise IndexError(f"there is no turn {number}: the conversation has {len(turns)}")
    return number - 1
