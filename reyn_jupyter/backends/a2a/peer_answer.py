"""What an agent elsewhere answers, put together from what arrives.

Invariants: what is kept is bounded by what may arrive (`peer_transport`); nothing that an agent sends can end anything
but its own answer. What it says is a stranger's text: it is cleaned where it goes into a sentence of ours, and checked
as any other result's parts where it is handed on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reyn_jupyter.outputs.parts.content_parts import ContentPart
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from a2a.types import Artifact, Message, Part, StreamResponse, Task, TaskStatus

LONGEST_WORDS = 2_000  # characters of an agent's own words in an error or a question
MOST_PIECES = 20_000  # parts of one answer
_LONGEST_ID = 200  # characters of an id that an agent gave
_ENDS = ("COMPLETED", "FAILED", "REJECTED", "CANCELED", "INPUT_REQUIRED", "AUTH_REQUIRED")


@dataclass(frozen=True)
class RemoteAnswer:
    """What an agent answered.

    Attributes:
        parts: its answer: text, JSON, files, links.
        context_id: names the conversation, for the next request; None where the agent has none.
        asks: it did not answer but asks for something, which `text` says; the next request goes on with it.
        note: one sentence of ours about the answer, as that it was cut; "" where there is nothing to say.
    """

    parts: tuple[ContentPart, ...]
    context_id: str | None
    asks: bool = False
    note: str = ""

    @property
    def text(self) -> str:
        """The answer as one text: its texts and JSON, and a line for each file and link."""
        return "\n".join([*map(_as_text, self.parts), *((f"[{self.note}]",) if self.note else ())])


class AnswerInParts:
    """Takes the events of one exchange.

    Attributes:
        task: the id of the agent's task; "" where it has none, or none yet.
        context: the id of the conversation; "" likewise.
        state: the task's state, as "WORKING" or "COMPLETED"; "" where there is no task.
        is_over: whether nothing more is to come.
        named: set once the task is known.
    """

    def __init__(self) -> None:
        self.task = ""
        self.context = ""
        self.state = ""
        self.is_over = False
        self.named = asyncio.Event()
        self._said: list[Part] = []
        # Artifacts in their order: each a list of parts, with whether a part goes on with the one before it.
        self._artifacts: dict[str, list[tuple[bool, Part]]] = {}
        self._pieces = 0

    @property
    def holds_something(self) -> bool:
        """Whether anything of an answer has arrived."""
        return bool(self._artifacts)

    def take(self, event: StreamResponse) -> str:
        """Take an event of a stream; return what it says of the progress, "" where that is nothing.

        Raises:
            ValueError: there are more parts than are taken.
        """
        match event.WhichOneof("payload"):
            case "task":
                return self.take_task(event.task)
            case "message":
                self._is_of(event.message.task_id, event.message.context_id)
                self._say(event.message)
                self.is_over = True
            case "status_update":
                update = event.status_update
                self._is_of(update.task_id, update.context_id)
                return self._move(update.status)
            case "artifact_update":
                added = event.artifact_update
                self._is_of(added.task_id, added.context_id)
                self._add(added.artifact, added.append)
        return ""

    def take_task(self, task: Task) -> str:
        """Take a task as it stands now, in place of what is known of it; return what it says of the progress."""
        self._is_of(task.id, task.context_id)
        if task.artifacts:
            self._artifacts.clear()
            self._pieces = 0
            for artifact in task.artifacts:
                self._add(artifact, append=False)
        words = self._move(task.status)
        if self.is_over and not self._artifacts and not self._said:
            last = _last_of_agent(task)
            if last is not None:
                self._say(last)
        return words

    @property
    def words(self) -> str:
        """What the agent said last, in a few words, for a sentence of ours."""
        return shorten(visible(" ".join(_text_of(self._said).split())), LONGEST_WORDS)

    def answer(self, context_id: str | None, note: str = "") -> RemoteAnswer:
        """Return the answer, as far as it has arrived.

        Args:
            context_id: the conversation, where the agent names none.
            note: a sentence about it.
        """
        parts = [part for pieces in self._artifacts.values() for part in _joined(pieces)]
        asks = self.state == "INPUT_REQUIRED"
        if self._said and (asks or not parts):
            parts += _joined((False, each) for each in self._said)
        context = self.context if 0 < len(self.context) <= _LONGEST_ID else context_id
        return RemoteAnswer(tuple(parts), context, asks, note)

    def _is_of(self, task: str, context: str) -> None:
        if len(task) <= _LONGEST_ID:
            self.task = task or self.task
        if self.task:
            self.named.set()
        self.context = context or self.context

    def _move(self, status: TaskStatus) -> str:
        from a2a.types import TaskState

        known = TaskState.DESCRIPTOR.values_by_number.get(status.state)
        self.state = known.name.removeprefix("TASK_STATE_") if known is not None else "UNSPECIFIED"
        self.is_over = self.state in _ENDS
        self._said = []
        if status.HasField("message"):
            self._say(status.message)
        return "" if self.is_over else self.words

    def _say(self, message: Message) -> None:
        self._said = list(message.parts)[:MOST_PIECES]

    def _add(self, artifact: Artifact, append: bool) -> None:
        key = artifact.artifact_id[:_LONGEST_ID]
        if not append:
            self._pieces -= len(self._artifacts.pop(key, ()))
        pieces = self._artifacts.setdefault(key, [])
        for at, part in enumerate(artifact.parts):
            self._pieces += 1
            if self._pieces > MOST_PIECES:
                raise ValueError(f"more than {MOST_PIECES:,} parts")
            pieces.append((append and at == 0, part))


def _last_of_agent(task: Task) -> Message | None:
    from a2a.types import Role

    return next((each for each in reversed(task.history) if each.role == Role.ROLE_AGENT), None)


def _joined(pieces: Iterable[tuple[bool, Part]]) -> Iterator[ContentPart]:
    """Return parts for a result; a text that went on in a further piece is one."""
    texts: list[str] = []
    mime = name = ""
    for goes_on, part in pieces:
        is_text = part.WhichOneof("content") == "text"
        if texts and not (goes_on and is_text):
            yield ContentPart.of_text("".join(texts), mime, name)
            texts = []
        if is_text:
            if not texts:
                mime, name = part.media_type or "text/plain", part.filename
            texts.append(part.text)
        elif (other := _part(part)) is not None:
            yield other
    if texts:
        yield ContentPart.of_text("".join(texts), mime, name)


def _part(part: Part) -> ContentPart | None:
    from google.protobuf.json_format import MessageToDict

    match part.WhichOneof("content"):
        case "data":
            return ContentPart.of_json(_whole(MessageToDict(part.data)), part.filename)
        case "raw":
            mime = part.media_type or "application/octet-stream"
            return ContentPart(mime, data=part.raw, name=part.filename)
        case "url":
            return ContentPart.link(part.url, part.filename, part.media_type)
    return None


def _whole(value: Any) -> Any:
    """Return JSON with whole numbers as such: the protocol's messages know floating-point numbers alone."""
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text_of(parts: Iterable[Part]) -> str:
    return " ".join(part.text for part in parts if part.WhichOneof("content") == "text")


def _as_text(part: ContentPart) -> str:
    if part.text is not None:
        return part.text
    if part.data is not None:
        return f"[file {part.name or 'without a name'}, {part.mime}, {len(part.data):,} bytes]"
    if part.uri is not None:
        return f"[link {part.uri}]"
    return json.dumps(part.json, ensure_ascii=False)
