"""Read the messages of a request: the person's last text, the calls of this turn, the actions listed so far.

Invariant: nothing is known here that is not in the messages or the tool definitions. Whatever a tool returned is
data; a part that does not have the expected shape is skipped, never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

LEFT_LINE = 160  # characters at the end of a result that are looked at for that line
ORIGIN_LINE = 400  # and for the one behind it, which names whose text it is
GUIDES = ("list_actions", "describe_action", "search_actions")

_BLOB = re.compile(r"\A\[blob:([0-9a-fA-F-]{8,64})\][ ]?(.{0,200})")
_COUNT = re.compile(r"(?:text|json_array|json_object) \| (\d{1,12}) (?:lines|entries|keys)")
_KIND = re.compile(r"(text|json_array|json_object) \| ")
_LEFT = re.compile(
    r"\n(\d{1,15} \w{1,20} left)(?: · next: [^\n]{0,80})?\Z|\n\[\d{1,15} \w{1,20} left: offset=[^\n]{0,40}\]\Z"
)
_ORIGINS = re.compile(r"\n\[from [^\n\]]{1,300}: text of others, no instructions\]\Z")


@dataclass(frozen=True)
class KnownAction:
    """An action as a listing, a description or a tool definition showed it. `schema` is None until it was shown."""

    name: str
    description: str
    schema: Mapping[str, Any] | None = None
    tool: str | None = None  # the function to call directly, on the flat surface

    @property
    def category(self) -> str:
        return self.name.partition("__")[0]

    @property
    def entry(self) -> str:
        return self.name.partition("__")[2]

    @property
    def parameters(self) -> dict[str, Mapping[str, Any]]:
        properties = (self.schema or {}).get("properties")
        if not isinstance(properties, Mapping):
            return {}
        return {str(key): value if isinstance(value, Mapping) else {} for key, value in properties.items()}

    @property
    def required(self) -> tuple[str, ...]:
        names = (self.schema or {}).get("required")
        return tuple(str(name) for name in names) if isinstance(names, (list, tuple)) else ()


@dataclass(frozen=True)
class ToolOutput:
    """The answer of a tool: its text, and what can be read from it."""

    text: str

    @cached_property
    def json(self) -> Any:
        """The text as JSON, None when it is none (`null` too)."""
        stripped = self.body.strip()
        if not stripped or stripped[0] not in '{["-0123456789tfn':
            return None
        try:
            return json.loads(stripped)
        except (ValueError, RecursionError):
            return None

    @cached_property
    def body(self) -> str:
        """The text without the lines that say where it came from, and what of a blob is left."""
        match = _LEFT.search(self._own[-LEFT_LINE:])
        return self._own[: len(self._own) - len(match.group())] if match else self._own

    @property
    def left(self) -> str:
        """The amount of a blob not shown, in its own words ("150 lines left"); empty when all was."""
        match = _LEFT.search(self._own[-LEFT_LINE:])
        left = (match.group(1) or "") if match else ""
        return "" if left.startswith("0 ") else left

    @cached_property
    def _own(self) -> str:
        match = _ORIGINS.search(self.text[-ORIGIN_LINE:])
        return self.text[: len(self.text) - len(match.group())] if match else self.text

    @property
    def error(self) -> str | None:
        value = self.json
        if isinstance(value, dict) and "error" in value and value["error"]:
            return str(value["error"])[:400]
        return None

    @property
    def suggestions(self) -> tuple[str, ...]:
        value = self.json
        found = value.get("suggestions") if isinstance(value, dict) else None
        return tuple(str(item) for item in found) if isinstance(found, list) else ()

    @property
    def blob(self) -> str | None:
        """The id of the blob that the text is a summary of."""
        match = _BLOB.match(self.text)
        return match.group(1) if match else None

    @property
    def kind(self) -> str | None:
        """The kind of a blob, where its summary begins with that; None where an action wrote a summary of its own."""
        match = _BLOB.match(self.text)
        kind = _KIND.match(match.group(2)) if match else None
        return kind.group(1) if kind else None

    @property
    def summary(self) -> str:
        """The summary without the id of its blob."""
        match = _BLOB.match(self.text)
        return self.text[match.start(2) :] if match else self.text

    @property
    def total(self) -> int | None:
        """The number of lines, entries or keys of a blob; None where it does not say."""
        match = _COUNT.search(self.text[:300]) if self.blob else None
        return int(match.group(1)) if match else None

    @cached_property
    def rows(self) -> list[dict[str, Any]] | None:
        """The records of a table, None when the text holds none."""
        value = self.json
        if isinstance(value, dict):
            value = next(
                (v for k, v in value.items() if k in ("rows", "records", "data") and isinstance(v, list)),
                None,
            )
        if isinstance(value, list) and all(isinstance(row, dict) for row in value):
            return value
        return None


@dataclass(frozen=True)
class TranscriptCall:
    """One call and its answer; the answer is None where the history has none."""

    tool: str
    arguments: dict[str, Any]
    result: ToolOutput | None


@dataclass(frozen=True)
class Transcript:
    """The conversation as far as it matters.

    Attributes:
        text: the person's last text.
        made: the calls of this turn, in order.
        steps: how often the model has been asked in this turn already.
        known: actions by qualified name, from every listing of the conversation.
        answered: whether an earlier turn was answered with text.
    """

    text: str = ""
    made: tuple[TranscriptCall, ...] = ()
    steps: int = 0
    known: dict[str, KnownAction] = field(default_factory=dict)
    answered: bool = False


def text_of(value: object) -> str:
    """The text of a message's content, given as a string or as a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(
            text for part in value if isinstance(part, dict) and isinstance(text := part.get("text"), str)
        )
    return ""


def learn_actions(tool: str, result: ToolOutput) -> Iterable[KnownAction]:
    """The actions that a listing, a search or a description shows.

    Names are learned from these alone: a file or a table that looks like a listing is content, not a catalog.
    """
    value = result.json if tool in GUIDES else None
    if not isinstance(value, dict):
        return
    items = value.get("items")
    for item in [*(items if isinstance(items, list) else ()), value]:
        if not isinstance(item, dict) or not isinstance(item.get("qualified_name"), str):
            continue
        schema = item.get("input_schema")
        description = item.get("description") or item.get("short_description") or ""
        yield KnownAction(
            item["qualified_name"], str(description), schema if isinstance(schema, dict) else None
        )


def transcribe(messages: object) -> Transcript:
    """Read the messages of a request. Messages of an unknown shape are passed over."""
    listed = (
        [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []
    )
    last = max((index for index, message in enumerate(listed) if message.get("role") == "user"), default=-1)
    results = {
        str(message.get("tool_call_id")): ToolOutput(text_of(message.get("content")))
        for message in listed
        if message.get("role") == "tool"
    }
    before = _made(listed[: max(last, 0)], results)
    made = _made(listed[last + 1 :], results)
    known: dict[str, KnownAction] = {}
    for action in (
        action for each in before + made if each.result for action in learn_actions(each.tool, each.result)
    ):
        if action.schema is not None or action.name not in known:
            known[action.name] = action
    return Transcript(
        text_of(listed[last].get("content")) if last >= 0 else "",
        made,
        sum(message.get("role") == "assistant" for message in listed[last + 1 :]),
        known,
        any(
            message.get("role") == "assistant"
            and text_of(message.get("content")).strip()
            and not message.get("tool_calls")
            for message in listed[: max(last, 0)]
        ),
    )


def _made(messages: list[dict[str, Any]], results: dict[str, ToolOutput]) -> tuple[TranscriptCall, ...]:
    return tuple(
        made
        for message in messages
        if message.get("role") == "assistant"
        for made in _calls(message, results)
    )


def _calls(message: dict[str, Any], results: dict[str, ToolOutput]) -> Iterable[TranscriptCall]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            continue
        try:
            arguments = json.loads(function.get("arguments") or "{}")
        except (TypeError, ValueError, RecursionError):
            arguments = None
        if isinstance(arguments, dict):
            yield TranscriptCall(function["name"], arguments, results.get(str(call.get("id"))))
