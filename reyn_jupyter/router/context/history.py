"""What a conversation holds of a turn that is over, and what of that a model is sent.

Invariants: every tool call that is left has its result, right behind it. Equal turns come out equal, so that the prefix
that a provider has cached stays. What never left this machine goes to no other, unless `local_history` allows it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from reyn_jupyter.catalog.names import CHOOSE
from reyn_jupyter.models.base import NO_REASONING, Message, ToolCall
from reyn_jupyter.models.providers.provider_facts import is_local
from reyn_jupyter.support.encoding import clip
from reyn_jupyter.support.text import count

RESULT = 200  # bytes of a result: shorter ones stay as they are
ARGUMENTS = 400  # bytes of a call's arguments
CALLS = 8  # calls of a turn, its last ones
ANSWER = 2_000  # bytes of an answer
OUTLINE = 300  # bytes of a question or an answer of a turn that was shrunk further
GUIDES = frozenset(
    {"list_actions", "describe_action", "search_actions", CHOOSE}
)  # what they gave is asked for again

LOOSENESS = {"off": 0, "schema": 1, "head": 2}  # of what `variables` lets a model see
NOT_SHOWN = '{"note":"left out: it holds a variable\'s content, which this model may not see"}'
WITHHELD = "[Answered on the person's own machine; what was found there is not part of this conversation.]"


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
    hidden search was. `hosts` are those that its messages went to, `origins` where strangers' texts come from that it
    or a turn before it holds.
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
    hosts: frozenset[str] = frozenset()
    variables: str = "head"
    origins: tuple[str, ...] = ()

    @cached_property
    def tokens(self) -> int:
        return sum(message.tokens for message in self.messages)

    @cached_property
    def call_ids(self) -> frozenset[str]:
        return frozenset(call.id for message in self.messages for call in message.tool_calls)

    @cached_property
    def sizes(self) -> dict[str | None, int]:
        """The bytes of its messages by the call that they are the result of, None for all others."""
        return {message.tool_call_id: len(message.content.encode()) for message in self.messages}

    @property
    def has_left(self) -> bool:
        """Return whether it went to another machine."""
        return any(not is_local(host) for host in self.hosts)

    @property
    def is_bare(self) -> bool:
        """Return whether nothing but the person's typed words and the model's own are in it."""
        return not self.shown and not self.call_ids

    @cached_property
    def outline(self) -> Turn:
        """The turn as question and answer, both short; itself where that is no shorter."""
        last = self.messages[-1]
        kept = [self.messages[0], *([last] if last.role == "assistant" and not last.tool_calls else ())]
        shorter = replace(self, messages=tuple([_clipped(message, OUTLINE) for message in kept]))
        return shorter if shorter.tokens < self.tokens else self


@dataclass(frozen=True)
class Reader:
    """Who is sent a history.

    Attributes:
        host: where requests go; None in this process.
        variables: how much of variables the model may see, a key of `LOOSENESS`.
        local_history: whether another machine may get what never left this one.
        turns: how many of the last turns it reads; None for all.
    """

    host: str | None = None
    variables: str = "head"
    local_history: bool = False
    turns: int | None = None


@dataclass(frozen=True)
class History:
    """What a reader is sent of a conversation.

    Attributes:
        tokens: of the messages, estimated.
        left_out: how many results were left out because of `variables`.
        withheld: the turns of which it gets at most the question.
        runs: the runs of the turns whose contents it gets.
        resent: the person's contents in these that its host gets for the first time.
    """

    messages: tuple[Message, ...] = ()
    tokens: int = 0
    left_out: int = 0
    withheld: tuple[Turn, ...] = ()
    runs: frozenset[str] = frozenset()
    resent: tuple[Disclosure, ...] = ()


def history_for(turns: Sequence[Turn], reader: Reader) -> History:
    """Return what a reader is sent of turns, which are given oldest first."""
    if reader.turns is not None:
        turns = turns[max(0, len(turns) - reader.turns) :]
    elsewhere = reader.host is not None and not is_local(reader.host)
    messages: list[Message] = []
    withheld: list[Turn] = []
    resent: list[Disclosure] = []
    runs: list[str] = []
    left_out = tokens = 0
    for turn in turns:
        if elsewhere and not reader.local_history and not turn.has_left and not turn.is_bare:
            withheld.append(turn)
            if not any(item.call == "" for item in turn.shown):
                question, answer = turn.messages[0], Message("assistant", WITHHELD)
                messages += [question, answer]
                tokens += question.tokens + answer.tokens
            continue
        secret = _hidden_calls(turn, reader.variables)
        if secret:
            left_out += len(secret)
            shown = [_hidden(each) if each.tool_call_id in secret else each for each in turn.messages]
            messages += shown
            tokens += sum([message.tokens for message in shown])
        else:
            messages += turn.messages
            tokens += turn.tokens
        runs.append(turn.run)
        if reader.host is not None and reader.host not in turn.hosts:
            resent += [
                replace(item, size=min(item.size, turn.sizes.get(item.call, item.size)))
                for item in turn.shown
                if item.call not in secret and (item.call == "" or item.call in turn.sizes)
            ]
    return History(tuple(messages), tokens, left_out, tuple(withheld), frozenset(runs), tuple(resent))


def _hidden_calls(turn: Turn, variables: str) -> frozenset[str]:
    """Return the calls whose results a model with this much of variables may not see."""
    if LOOSENESS[turn.variables] <= LOOSENESS[variables]:
        return frozenset()
    # "schema" bounds what a variable's description shows; "off" refuses variables everywhere.
    return frozenset(
        item.call
        for item in turn.shown
        if item.call in turn.sizes
        and item.call
        and (item.described or (variables == "off" and item.kind == "variable"))
    )


def _hidden(message: Message) -> Message:
    return replace(message, content=NOT_SHOWN, attachments=())


def condense(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return what later turns hold of a turn: question, answer, and its last calls, so that they can be found again.

    Listings and descriptions are left out, long arguments and results cut; a stored result keeps its id.
    """
    called = [call.id for message in messages for call in message.tool_calls if call.name not in GUIDES]
    kept = frozenset(called[-CALLS:])
    found: list[Message] = []
    for message in messages:
        if message.role == "tool":
            if message.tool_call_id in kept:
                found.append(_short_result(message))
        elif message.tool_calls:
            calls = tuple([short_call(call) for call in message.tool_calls if call.id in kept])
            if calls:
                content = clip(message.content, RESULT)
                found.append(replace(message, content=content, tool_calls=calls, reasoning=NO_REASONING))
        else:
            found.append(_clipped(message, ANSWER) if message.role == "assistant" else message)
    return tuple(found)


def _short_result(message: Message) -> Message:
    size = len(message.content.encode())
    if size <= RESULT and not message.attachments:
        return message
    head = message.content if size <= RESULT else clip(message.content.partition("\n")[0], 120)
    attached = f" and {len(message.attachments)} images or sounds" if message.attachments else ""
    stored = head.startswith("[blob:")
    note = f"[shrunk: {size:,} bytes{attached} before; {'inspect' if stored else 'call'} it again if needed]"
    return Message("tool", f"{head}\n{note}", (), message.tool_call_id)


def short_call(call: ToolCall) -> ToolCall:
    """Return a call with its long arguments cut."""
    if len(call.arguments.encode("utf-8", "surrogatepass")) <= ARGUMENTS:
        return call
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        value = None
    short = json.dumps(_short_value(value), ensure_ascii=False) if isinstance(value, dict) else "{}"
    if len(short.encode("utf-8", "surrogatepass")) > 2 * ARGUMENTS:
        short = json.dumps(
            {key: each for key, each in list(value.items())[:4] if isinstance(each, str)}
            if isinstance(value, dict)
            else {}
        )
    return replace(call, arguments=short)


def _short_value(value: Any, depth: int = 0) -> Any:
    """Return a JSON value with its long texts and lists cut."""
    match value:
        case str():
            return value if len(value) <= 120 else f"{value[:100]}… [{count(len(value), 'character')}]"
        case list():
            return [] if depth > 3 else [_short_value(each, depth + 1) for each in value[:5]]
        case dict():
            return {} if depth > 3 else {key: _short_value(each, depth + 1) for key, each in value.items()}
        case _:
            return value


def _clipped(message: Message, most: int) -> Message:
    size = len(message.content.encode("utf-8", "surrogatepass"))
    if size <= most + 60:
        return message
    return replace(message, content=f"{clip(message.content, most)}\n[shortened: {size:,} bytes before]")
