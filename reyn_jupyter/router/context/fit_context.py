"""Requests that fit what a model takes: what is old or long in them shrinks, in a fixed order, before they are sent.

Invariants: a call keeps its result and a result its call, since messages shrink where they stand and none is left out;
the system message and the person's own text never shrink. A request that fits is left as it is, so fitting twice is
fitting once. Within a turn what was shrunk stays so, and more is shrunk than would be needed now, so that the prefix
that the server has read changes rarely. A limit of the reply that does not fit beside the request is lowered, and
nothing is shortened for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reyn_jupyter.models.base import Message, Model, ModelError, ToolSet, context_length_of
from reyn_jupyter.models.providers.overflow import read_overflow
from reyn_jupyter.router.context.history import ARGUMENTS, GUIDES, OUTLINE, short_call
from reyn_jupyter.support.encoding import clip
from reyn_jupyter.support.text import count

STUB = 240  # bytes of a message that is no more than a pointer to what it was
HEAD = 800  # bytes of a result that keeps its beginning
_SPARE = 0.75  # of the room, down to which a request shrinks once it has to
_LEAST_REPLY, _MOST_REPLY = 64, 1_024  # tokens that are left for the reply
_MARGIN = 1.1  # of the request's estimated tokens, where the reply gets what they leave
_MOST_LOWERED = 3  # times in a turn that a refusal lowers the limit of the reply and shortens nothing
_SCALES = (0.5, 4.0)  # of a model's own tokens to the estimated ones
_STEP = 0.75  # of a refused request, where the provider does not say what it takes
_MARK = "[shortened to fit the model's context: "


@dataclass(frozen=True)
class Fitted:
    """Messages that were fitted.

    Attributes:
        tokens: of the messages, estimated.
        shrunk: place → tokens that it was shortened by.
    """

    messages: tuple[Message, ...]
    tokens: int
    shrunk: Mapping[int, int] = field(default_factory=dict)

    @property
    def record(self) -> tuple[dict[str, Any], ...]:
        """The shrunk messages as a run's record holds them."""
        return tuple(
            {"at": place, "message": self.messages[place].wire, "spared": spared}
            for place, spared in self.shrunk.items()
        )


def fit(messages: Sequence[Message], room: int, *, turn: int, end: int | None = None) -> Fitted:
    """Return messages that take at most so many tokens, as far as that is possible.

    In this order, and within each from the oldest on: results of old turns, listings that a later one took the place
    of, results of this turn down to their beginnings, old questions and answers, results of this turn down to a line,
    arguments of its calls, old turns to nothing; last of all the last result.

    Args:
        messages: of a request, the system message first.
        room: tokens, estimated as everywhere.
        turn: the place of the turn's first message, the person's text.
        end: the place behind the last message of the turn; what follows never shrinks.

    Example:
        >>> asked = [Message("system", "S"), Message("user", "U"), Message("tool", "x" * 9_000, (), "a")]
        >>> fit(asked, 400, turn=1).messages[2].content[-35:]
        'call it again to see the rest of it]'
    """
    fitted = list(messages)
    tokens = sum(message.tokens for message in fitted)
    spared: dict[int, int] = {}
    if tokens <= room:
        return Fitted(tuple(fitted), tokens)
    end = len(fitted) if end is None else end
    for place, shorten, last in _order(fitted, turn, end):
        if tokens <= (room if last else _SPARE * room):
            if last:
                break
            continue
        short = shorten(fitted[place])
        less = fitted[place].tokens - short.tokens
        if less > 0:
            fitted[place] = short
            tokens -= less
            spared[place] = spared.get(place, 0) + less
    return Fitted(tuple(fitted), tokens, spared)


_Shorten = Callable[[Message], Message]


def _order(messages: Sequence[Message], turn: int, end: int) -> Iterator[tuple[int, _Shorten, bool]]:
    """Yield what may shrink, in order, how, and whether that is a last resort."""
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    guides = frozenset(call for call, name in names.items() if name in GUIDES)
    results = [place for place, message in enumerate(messages[:end]) if message.role == "tool"]
    old = [place for place in results if place < turn]
    own = [place for place in results if place >= turn]
    listings = [place for place in own if messages[place].tool_call_id in guides]

    def stub(message: Message) -> Message:
        return _stub(message, message.tool_call_id in guides)

    def head(message: Message) -> Message:
        return _head(message, message.tool_call_id in guides)

    yield from ((place, stub, False) for place in old)
    yield from ((place, stub, False) for place in listings[:-1])
    yield from ((place, head, False) for place in own[:-1])
    yield from ((place, _outlined, False) for place in range(1, turn))
    yield from ((place, stub, False) for place in own[:-1])
    yield from ((place, _short_calls, False) for place in range(turn, end))
    yield from ((place, _emptied, True) for place in range(1, turn))
    yield from ((place, head, True) for place in own[-1:])
    yield from ((place, stub, True) for place in own[-1:])


def _how(content: str, listing: bool) -> str:
    if listing:
        return "list again, with a filter, to see it]"
    return f"{'inspect' if content.startswith('[blob:') else 'call'} it again to see the rest of it]"


def _stub(message: Message, listing: bool) -> Message:
    if _size(message) <= STUB and not message.attachments:
        return message
    first = clip(message.content.partition("\n")[0], 120)
    return _kept(message, f"{first}\n{_MARK}{_how(message.content, listing)}")


def _head(message: Message, listing: bool) -> Message:
    if _size(message) <= HEAD and not message.attachments:
        return message
    return _kept(message, f"{clip(message.content, HEAD - 140)}\n{_MARK}{_how(message.content, listing)}")


def _outlined(message: Message) -> Message:
    if message.role == "tool":
        return message
    if _size(message) > OUTLINE + 60:
        message = _kept(message, f"{clip(message.content, OUTLINE)}\n[shortened]")
    return _short_calls(message)


def _short_calls(message: Message) -> Message:
    if not message.tool_calls:
        return message
    calls = [short_call(call) for call in message.tool_calls]
    most = [len(call.arguments.encode("utf-8", "surrogatepass")) <= ARGUMENTS for call in calls]
    kept = (call if fits else replace(call, arguments="{}") for call, fits in zip(calls, most, strict=True))
    return replace(message, tool_calls=tuple(kept))


def _emptied(message: Message) -> Message:
    calls = tuple(replace(call, arguments="{}") for call in message.tool_calls)
    content = message.content if len(message.content) <= 16 else "[left out]"
    return replace(message, content=content, tool_calls=calls, attachments=())


def _kept(message: Message, content: str) -> Message:
    return replace(message, content=content, attachments=())


def _size(message: Message) -> int:
    return len(message.content.encode("utf-8", "surrogatepass"))


@dataclass
class ContextLengths:
    """What a session knows of how much its models take, by model and host.

    Attributes:
        lengths: tokens, each model's own; None where neither it nor its server said.
        scales: a model's own tokens for one estimated.
    """

    lengths: dict[str, int | None] = field(default_factory=dict)
    scales: dict[str, float] = field(default_factory=dict)


class ContextFitter:
    """Fits the requests of one turn to its model.

    Args:
        model: asked once for what it takes, and once a turn as long as it does not say.
        name: the model and its host.
        known: what the session knows.
        limits: of the reply in tokens, by the names that the request's parameters have for them.
    """

    def __init__(
        self, model: Model, name: str, known: ContextLengths, limits: Mapping[str, int] | None = None
    ) -> None:
        self._model, self._name, self._known, self._limits = model, name, known, limits or {}
        self._reply = min(self._limits.values(), default=None)
        # The limit of the reply that was sent last; None where it is as it was.
        self._lowered: int | None = None
        self._lowest: int | None = None
        self._times_lowered = 0
        self._refused = False
        self._short: dict[int, Message] = {}  # place → as it is sent in the rest of the turn
        self._asked = False
        self._ceiling: int | None = None  # estimated tokens, below what was refused
        self._sent: tuple[Message, ...] = ()
        self._tools = 0
        self._places = (1, 1)
        self._spared: dict[int, int] = {}

    @property
    def length(self) -> int | None:
        """Tokens that the model takes; None where it is not known."""
        return self._known.lengths.get(self._name)

    @property
    def note(self) -> str | None:
        """What the person should know of the turn; None where nothing was shortened or lowered."""
        said = []
        if self._spared:
            were = "was" if len(self._spared) == 1 else "were"
            less = f"≈ {sum(self._spared.values()):,} tokens"
            said.append(f"{count(len(self._spared), 'message')} {were} shortened by {less}")
        if self._lowest is not None:
            said.append(
                f"the limit of a reply ({' and '.join(self._limits)}) was lowered from {self._reply:,} to "
                f"{self._lowest:,} tokens"
            )
        takes = "" if self.length is None else f" of {self.length:,} tokens"
        fits = f"to fit the model's context{takes} (router.weak.fit_context)"
        return f"{' and '.join(said)} {fits}" if said else None

    @property
    def lowered_limits(self) -> dict[str, int]:
        """The limits of the reply that the last request is to have in place of its own, which do not fit beside it."""
        if self._lowered is None:
            return {}
        return {name: min(limit, self._lowered) for name, limit in self._limits.items()}

    async def fit(self, messages: Sequence[Message], turn: int, own: int, tools: ToolSet) -> Fitted:
        """Return the messages of a request as they are to be sent.

        Args:
            turn: the place of the turn's first message.
            own: how many messages the turn has.
            tools: those that are offered, which take room too.
        """
        if self.length is None and not self._asked:
            # Once a turn: its server may only just start, so who could not say is asked again in the next one.
            self._asked = True
            self._known.lengths[self._name] = await context_length_of(self._model)
        self._tools, self._places = tools.tokens, (turn, turn + own)
        return self._fit([self._short.get(place, message) for place, message in enumerate(messages)])

    def _fit(self, messages: Sequence[Message]) -> Fitted:
        turn, end = self._places
        room = self._room()
        if room is None:
            self._sent, self._lowered = tuple(messages), None
            return Fitted(self._sent, sum(message.tokens for message in messages))
        fitted = fit(messages, room, turn=turn, end=end)
        for place, less in fitted.shrunk.items():
            self._short[place] = fitted.messages[place]
            self._spared[place] = self._spared.get(place, 0) + less
        self._sent = fitted.messages
        self._lowered = self._lowered_reply()
        if self._lowered is not None:
            self._lowest = min(self._lowered, self._lowest or self._lowered)
        return fitted

    def _lowered_reply(self) -> int | None:
        """Return how many tokens the messages leave for the reply; None where these are as many as it may have."""
        asked = self._estimated * self._scale
        counted = asked * (_MARGIN if self._refused else 1)
        if self._reply is None or self.length is None or counted + self._reply <= self.length:
            return None
        left = max(_LEAST_REPLY, self.length - int(asked * _MARGIN))
        return left if left < self._reply else None

    def _room(self) -> int | None:
        """Return the estimated tokens that the messages may have; None where nothing bounds them."""
        length = self.length
        rooms = [] if self._ceiling is None else [self._ceiling]
        if length is not None:
            reply = min(_MOST_REPLY, max(_LEAST_REPLY, length // 8))
            # What no model could give is no wish for so much.
            if self._reply is not None and self._reply < length:
                reply = self._reply
            reply = min(reply, length // 2)
            rooms.append(int((length - reply) / self._scale))
        return max(1, min(rooms) - self._tools) if rooms else None

    @property
    def _scale(self) -> float:
        return self._known.scales.get(self._name, 1.0)

    @property
    def _estimated(self) -> int:
        return self._tools + sum(message.tokens for message in self._sent)

    def learn(self, prompt_tokens: int) -> None:
        """Take note of how many tokens the last request had by the model's own count."""
        if prompt_tokens > 0 and self._estimated:
            least, most = _SCALES
            self._known.scales[self._name] = min(most, max(least, prompt_tokens / self._estimated))

    def shrink_after(self, error: ModelError) -> bool:
        """Return whether a request that was refused for its length can be made shorter, and make the next one so.

        Where the limit of its reply is what did not fit, that is lowered alone.
        """
        if error.kind != "context_too_long":
            return False
        said = read_overflow(error.message)
        if said.taken is not None:
            self._known.lengths[self._name] = said.taken
        if said.asked is not None:
            self.learn(said.asked)
        self._refused = True
        before, reply = self._estimated, self._lowered or self._reply
        self._fit(self._sent)
        if reply is not None and self._lowered is not None and self._lowered < reply:
            self._times_lowered += 1
            if self._times_lowered <= _MOST_LOWERED:
                return True
        if self._estimated == before:  # by what is known it should have fitted
            self._ceiling = int(before * _STEP)
            self._fit(self._sent)
        return self._estimated < before

    def failure(self, error: ModelError) -> ModelError:
        """Return the error for a request in which nothing can shrink any more."""
        takes = "" if self.length is None else f", which takes {self.length:,}"
        tokens = int(self._estimated * self._scale)
        lower = ""
        if self._reply is not None:
            lower = f"set a lower {' and '.join(self._limits)} than {self._reply:,} under the model's parameters, "
        return ModelError(
            error.kind,
            f"Even with everything shortened that can be, the request of ≈ {tokens:,} tokens is too long for "
            f"{self._model.label}{takes}. ({error.message})",
            f"Give the model's server a longer context (-c of llama-server, num_ctx of Ollama), {lower}ask in fewer "
            "words, or start afresh with --new.",
        )


def reply_limits(parameters: Mapping[str, Any]) -> dict[str, int]:
    """Return how many tokens a reply may have by the parameters of a request, under their names."""
    named = {name: parameters.get(name) for name in ("max_completion_tokens", "max_tokens")}
    return {name: limit for name, limit in named.items() if isinstance(limit, int) and limit > 0}
