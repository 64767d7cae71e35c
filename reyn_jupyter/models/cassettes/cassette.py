"""Recorded answers, served again.

A request is found by its key, which covers model, messages, tools, tool choice, parameters and repeat index. Equal
requests recorded several times are served in the order of recording, each once; in a recording of several
conversations each is served its own first. What is not there raises, names the part of the request that moved, and
never falls through to a model or the network.

Blobs have new ids in every run. A request is found whatever they are, and where a recorded answer names one,
the answer that is served names the one in its place.

A recording is a list of ``ModelRequested`` and ``ModelReplied`` events, so any run log serves as a
cassette, and `export` takes the model events out of one. Requests reach this module redacted; a key that is
left in one is refused, on writing and on reading.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, get_args

from reyn_jupyter.models.base import (
    Medium,
    Model,
    ModelError,
    Request,
    Response,
    Tier,
    context_length_of,
    media_taken,
)
from reyn_jupyter.models.cassettes.cassette_file import (
    MODEL_EVENTS,
    CassetteFile,
    KeyDetector,
    read_events,
    reply_of,
)
from reyn_jupyter.models.cassettes.stored_ids import (
    message_texts,
    replace_stored_ids,
    stored_ids_in,
    unique_ids,
)
from reyn_jupyter.models.providers.wire import watch
from reyn_jupyter.support.text import enumerate_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


class CassetteRecorder:
    """A model that passes every call on to another one and writes both sides down.

    Args:
        inner: the model that answers.
        path: the file; recordings are added to its end.
        contains_key_shape: tells whether a text holds something that looks like a key.
        clock: the time to note.
        conversation: which conversation is recorded, in a file that holds several; those may run at once, with a
            recorder each.

    Raises:
        ModelError: kind "configuration" when a request or an answer holds a key: nothing of it is written.
    """

    def __init__(
        self,
        inner: Model,
        path: Path,
        contains_key_shape: KeyDetector,
        clock: Callable[[], float] = time.time,
        *,
        conversation: str | None = None,
    ) -> None:
        self._inner = inner
        self._tape = CassetteFile.of(path)
        self._contains_key_shape = contains_key_shape
        self._clock = clock
        self._conversation = conversation
        self._last: Request | None = None

    @property
    def label(self) -> str:
        return self._inner.label

    @property
    def tier(self) -> Tier:
        return self._inner.tier

    @property
    def host(self) -> str | None:
        return self._inner.host

    @property
    def real(self) -> bool:
        return self._inner.real

    @property
    def media(self) -> frozenset[Medium]:
        return media_taken(self._inner)

    async def context_length(self) -> int | None:
        return await context_length_of(self._inner)

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """The inner model's answer, or its error; either is in the file before it is handed on."""
        asked = self._clock()
        try:
            response = await self._inner.complete(request, on_text)
        except ModelError as error:
            self._write(request, error, asked)
            raise
        self._write(request, response, asked)
        return response

    def _write(self, request: Request, reply: Response | ModelError, asked: float) -> None:
        self._tape.write(
            request,
            reply,
            last=self._last,
            conversation=self._conversation,
            times=(asked, self._clock()),
            contains_key_shape=self._contains_key_shape,
        )
        self._last = request


@dataclass(frozen=True)
class _Recorded:
    """A request of the recording: what it was made of, for the diagnosis of a miss, and the blobs in it."""

    model: str
    components: Mapping[str, str]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    stored: tuple[str, ...] = ()
    conversation: str | None = None


def _tried_again(before: tuple[Response | ModelError, _Recorded], recorded: _Recorded) -> bool:
    """Return whether an answer is that of another attempt: a conversation asks the same again only after a failure."""
    reply, known = before
    named = recorded.conversation is not None and recorded.conversation == known.conversation
    return named and isinstance(reply, ModelError)


def _media_in(messages: Iterable[Any]) -> set[Medium]:
    """Return the kinds of attachments in recorded messages."""
    attached = (
        each for message in messages if isinstance(message, dict) for each in message.get("attachments") or ()
    )
    mimes = [str(each.get("mime")) for each in attached if isinstance(each, dict)]
    return {"audio" if mime.startswith("audio/") else "image" for mime in mimes}


class CassettePlayer:
    """A model that answers from a recording alone.

    `label`, `tier` and `parameters` are those of the recorded model: they are parts of every request's key. `system`
    is the first system prompt of the conversation or, failing that, of the recording. In a recording of named
    conversations, a failure that was tried again gives way to what came of it.

    Args:
        path: a cassette or a run log.
        contains_key_shape: tells whether a text holds something that looks like a key.
        tier: the tier to report where the recording does not name one.

    Raises:
        ModelError: kind "configuration" when the file is missing, is no recording, or has a key in it; kind
            "miss" when a request was not recorded, or not as often as it is asked for.

    Example:
        player = CassettePlayer(Path("mandates.jsonl"), contains_key_shape)
        await player.complete(request)
    """

    def __init__(self, path: Path, contains_key_shape: KeyDetector, tier: Tier = "standard") -> None:
        self._name = path.name
        self._tier: Tier = tier
        self._model: str | None = None
        self._conversation: str | None = None
        self._requests: dict[str, _Recorded] = {}
        self._replies: dict[str, list[tuple[Response | ModelError, _Recorded]]] = {}
        self._served: dict[str, int] = {}
        self._systems: dict[str | None, str] = {}
        self._contexts: dict[str | None, int | None] = {}
        self._media: set[Medium] = set()
        self._load(read_events(path, contains_key_shape))
        if not self._replies:
            hint = "Give a cassette, or the log of a run that called a model."
            raise ModelError("configuration", f"{path.name} holds no answer of a model.", hint)

    def _load(self, events: Iterable[dict[str, Any]]) -> None:
        stored: dict[str | None, tuple[str, ...]] = {}  # by conversation
        for event in events:
            if event["type"] == "ModelRequested":
                conversation = event.get("conversation")
                messages = event.get("messages") or ()
                whole = len(messages) == event.get("total_messages")
                before = () if whole else stored.get(conversation, ())
                stored[conversation] = unique_ids((*before, *stored_ids_in(messages)))
                self._media |= _media_in(messages)
                context = event.get("context")
                fitted = isinstance(context, int) and context > 0
                self._contexts.setdefault(conversation, context if fitted else None)
                for system in message_texts(messages, "system"):
                    self._systems.setdefault(conversation, system)
                self._requests[event["key"]] = _Recorded(
                    event["model"],
                    event["components"],
                    event.get("parameters") or {},
                    stored[conversation],
                    conversation,
                )
            elif event["type"] == "ModelReplied":
                recorded = self._requests.get(event["key"]) or _Recorded("", {})
                replies = self._replies.setdefault(event["key"], [])
                if replies and _tried_again(replies[-1], recorded):
                    replies.pop()
                replies.append((reply_of(event, recorded.model), recorded))
            elif event["type"] == "RunStarted" and event.get("tier") in get_args(Tier):
                self._tier = event["tier"]

    def within(self, conversation: str | None, model: str | None = None, tier: Tier | None = None) -> Self:
        """The same recording for one of its conversations, and for one of its models; answers are shared.

        Where equal requests stand in several conversations, the answer that this one got is served first.

        Args:
            conversation: as it was recorded; None for no one in particular.
            model: the label of a recorded model, where the recording holds several.
            tier: the tier to report.

        Raises:
            ModelError: kind "configuration" for a model that the recording does not hold.
        """
        known = list(dict.fromkeys(recorded.model for recorded in self._requests.values()))
        if model is not None and model not in known:
            raise ModelError(
                "configuration",
                f"{self._name} holds no answer of {model}; it was recorded with {enumerate_words(known)}.",
                "Replay with the model of the recording, or record this one.",
            )
        view = copy.copy(self)
        view._conversation = conversation
        view._model = model or self._model
        view._tier = tier or self._tier
        return view

    async def context_length(self) -> int | None:
        """Return how many tokens the first request of the conversation was fitted to; None where it was not.

        One that only an error told is told by that error again.
        """
        return self._contexts.get(self._conversation)

    @property
    def system(self) -> str | None:
        return self._systems.get(self._conversation) or next(iter(self._systems.values()), None)

    @property
    def label(self) -> str:
        return self._model or next((recorded.model for recorded in self._requests.values()), "cassette")

    @property
    def tier(self) -> Tier:
        return self._tier

    @property
    def host(self) -> str | None:
        return None

    @property
    def real(self) -> bool:
        return False

    @property
    def media(self) -> frozenset[Medium]:
        """What the recorded model was sent beside text: requests without it would be others."""
        return frozenset(self._media)

    @property
    def parameters(self) -> Mapping[str, Any]:
        return next((recorded.parameters for recorded in self._requests.values()), {})

    @property
    def remaining(self) -> int:
        """The number of answers that have not been served yet."""
        return sum(map(len, self._replies.values()))

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """The recorded answer, or the recorded failure; a ModelError of kind "miss" when there is none."""
        watch()  # a recorded answer goes nowhere
        replies = self._replies.get(request.key)
        if not replies:
            raise self._miss(request)
        self._served[request.key] = self._served.get(request.key, 0) + 1
        own = (place for place, (_, known) in enumerate(replies) if known.conversation == self._conversation)
        reply, recorded = replies.pop(next(own, 0))
        if isinstance(reply, ModelError):
            raise reply
        reply = replace_stored_ids(
            reply, recorded.stored, stored_ids_in(message.wire for message in request.messages)
        )
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply

    def _miss(self, request: Request) -> ModelError:
        served = self._served.get(request.key, 0)
        if served:
            times = "once" if served == 1 else f"{served} times"
            return ModelError(
                "miss",
                f"{self._name} holds this request {times}, and it was asked for once more.",
                "Record it as often as it is asked for, or give each repeat its own index.",
            )
        wanted = request.components
        nearest = max(
            (recorded.components for recorded in self._requests.values()),
            key=lambda known: sum(known.get(name) == value for name, value in wanted.items()),
            default={},
        )
        moved = [name for name, value in wanted.items() if nearest.get(name) != value]
        same = [name for name in wanted if name not in moved]
        what = f"{enumerate_words(moved)} moved" if moved else "it was asked, but its answer was not recorded"
        rest = f" ({enumerate_words(same)} as recorded)" if moved and same else ""
        return ModelError(
            "miss",
            f"{self._name} has no answer for this request: {what}{rest}.",
            "Record it again, or replay under the settings, model and catalog of the recording.",
        )


def export(log: Path, cassette: Path, contains_key_shape: KeyDetector) -> int:
    """Take the model events of a run log out into a cassette.

    Returns how many events it holds. Raises ModelError as `CassettePlayer` does.
    """
    events = [event for event in read_events(log, contains_key_shape) if event["type"] in MODEL_EVENTS]
    cassette.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)
    cassette.write_text(text, encoding="utf-8", errors="backslashreplace")
    return len(events)
