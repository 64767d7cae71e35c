"""The turns of a conversation, oldest first, and what it has learnt of the catalog.

Invariants: every tool call in it has a result; a finished turn's messages never change, but for old turns that shrink
to question and answer, in batches, so that the cached prefix is lost rarely. The conversation is a view of runs: what
happened stands in their logs, whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal

from reyn_jupyter.models.base import Message, Prefix, ToolSet
from reyn_jupyter.router.context.history import Disclosure, History, Reader, Turn, history_for


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
class Knowledge:
    """What turns have learnt of the catalog.

    Attributes:
        listed: whether there was a listing.
        hint_due: whether the hint about hidden search is still to come.
        names: those of the last listing.
    """

    listed: bool
    hint_due: bool
    names: tuple[str, ...]


@dataclass(frozen=True)
class TurnPlace:
    """The place of a turn in its conversation, and its consequences for the other turns.

    Attributes:
        at: the 0-based place of the turn that it replaces; None at the end.
        later: number of turns after the replaced one.
        history: what the model is sent of the others.
    """

    at: int | None
    later: int
    history: History


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
    def tokens(self) -> int:
        return self._facts.tokens

    @property
    def call_ids(self) -> frozenset[str]:
        """The ids of tool calls in its turns; those of turns that still go on are `reserved`."""
        return self._facts.call_ids

    def messages(self) -> list[Message]:
        return list(chain.from_iterable(turn.messages for turn in self.turns))

    def prefix(self, system: Message, history: History) -> Prefix:
        """Return what every request of the next turn begins with: the system message and the history."""
        self._prefix = Prefix((system, *history.messages), self._prefix)
        return self._prefix

    def history(self, reader: Reader) -> History:
        """Return what a reader is sent of the turns."""
        if reader == Reader():  # nothing is left out for it, so that no turn needs a look
            return History(tuple(self.messages()), self.tokens)
        return history_for(self.turns, reader)

    def begin(self, cell: str | None, reader: Reader) -> TurnPlace:
        """Prepare the history for a turn: what stands before its place, less what the model may not see. The turn
        that this cell made before is taken out.

        Args:
            cell: the id of the cell that asks.
            reader: the model that answers.
        """
        at, later = self.replace_cell(cell)
        return TurnPlace(at, later, history_for(self.turns[:at], reader))

    def known_before(self, at: int | None) -> Knowledge:
        """Return what the turns before a place (0-based) have learnt of the catalog; all of them when None."""
        facts = self._facts if at is None or at >= len(self.turns) else _Facts.of(self.turns[:at])
        return Knowledge(self.opened or facts.listed, not facts.hinted, facts.names)

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

    def remember(self, run: str, shown: tuple[Disclosure, ...], variables: str) -> None:
        """Keep with a turn the person's contents that it showed, and how much of variables was allowed."""
        for index in reversed(range(len(self.turns))):
            turn = self.turns[index]
            if turn.run == run:
                facts = self._facts
                self._put(index, replace(turn, shown=shown, variables=variables))
                self._known = (self.turns, facts)  # none of them depends on what was shown
                return

    def mark_sent(self, runs: frozenset[str], host: str) -> None:
        """Note that the turns of these runs went to a host."""
        if all(host in turn.hosts for turn in self.turns if turn.run in runs):
            return
        facts = self._facts
        self.turns = tuple(
            replace(turn, hosts=turn.hosts | {host}) if turn.run in runs and host not in turn.hosts else turn
            for turn in self.turns
        )
        self._known = (self.turns, facts)  # none of them depends on where it went

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
        """Shrink old turns to question and answer once the history passes `budget` tokens; returns how many.

        It goes down to half the budget, oldest first, and leaves the last turn alone.
        """
        tokens = self.tokens
        if tokens <= budget:
            return 0
        turns, shrunk = list(self.turns), 0
        for index, turn in enumerate(self.turns[:-1]):
            if tokens <= budget // 2:
                break
            if turn.outline is not turn:
                turns[index] = turn.outline
                tokens += turn.outline.tokens - turn.tokens
                shrunk += 1
        if shrunk:
            self.turns = tuple(turns)
        self.shrunk += shrunk
        return shrunk


def _index(number: int, turns: Sequence[Turn]) -> int:
    if not 1 <= number <= len(turns):
        raise IndexError(f"there is no turn {number}: the conversation has {len(turns)}")
    return number - 1
