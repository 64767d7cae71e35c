"""Shows each call of a language model as it was sent and as it came back, where the person asked to see that.

Invariant: nothing is shown that a secret stands in, nothing that hides a character, and nothing at all where no model
was called. What cannot be shown changes nothing of the call.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reyn_jupyter.models.base import Response
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import clip_middle

if TYPE_CHECKING:
    from reyn_jupyter.models.base import ModelError, Request
    from reyn_jupyter.support.secrets import Redactor

VARIABLE = "LLM_LOG"  # of the environment; the setting of this name does the same
_ON = frozenset({"1", "on", "true", "yes"})
_LONGEST = 60_000  # characters of one section


def asked_for(value: str | None) -> bool:
    """Return whether a value of the variable asks for the log.

    >>> asked_for("1"), asked_for("off"), asked_for(None)
    (True, False, False)
    """
    return (value or "").strip().casefold() in _ON


class ModelCallLog:
    """Shows calls, see `RetryingModel`.

    Args:
        is_on: whether calls are to be shown now.
        show: shows a text to the person.
        redactor: takes secrets out of everything.
    """

    def __init__(
        self, is_on: Callable[[], bool], show: Callable[[str], Awaitable[None]], redactor: Redactor
    ) -> None:
        self._is_on, self._show, self._redactor = is_on, show, redactor

    async def begin(self, request: Request) -> LoggedCall | None:
        """Show what is about to be sent; None where nothing is to be shown."""
        if not self._is_on():
            return None
        call = LoggedCall(uuid.uuid4().hex[:12])
        payload = self._section("payload", self._redactor.value(request.wire))
        await self._show(f"── LLM call {call.id} to {visible(request.model)}\n{payload}")
        return call

    async def end(self, call: LoggedCall, outcome: Response | ModelError) -> None:
        """Show the retries of a call, and what came back at last."""
        seconds = time.perf_counter() - call.began
        lines = [f"── LLM call {call.id} after {seconds:.1f} s"]
        lines += [
            f"retry {attempt} in {wait:.1f} s: {self._clean(why)}" for attempt, wait, why in call.retries
        ]
        if isinstance(outcome, Response):
            lines += self._answer(outcome)
        else:
            lines.append(f"error: {self._clean(outcome.message)}")
        await self._show("\n".join(lines))

    def _answer(self, response: Response) -> list[str]:
        calls = [{"name": each.name, "arguments": each.arguments} for each in response.tool_calls]
        content = response.text or "\n".join(f"{each['name']} {each['arguments']}" for each in calls)
        body = _body(response.raw)
        if body is None or self._splits_secret(body):
            usage = response.usage
            body = {
                "model": response.model,
                "content": response.text,
                "tool_calls": calls,
                "finish_reason": response.finish_reason,
                "usage": {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens},
                "fingerprint": response.fingerprint,
            }
        return [
            self._section("raw body", self._redactor.value(body)),
            f"extracted content:\n{clip_middle(self._clean(content), _LONGEST)}",
        ]

    def _splits_secret(self, body: Any) -> bool:
        """Return whether a secret stands in the chunks of a stream together, where none of them holds it whole."""
        texts: dict[tuple[str, ...], list[str]] = {}
        for chunk in body if isinstance(body, list) else ():
            for place, text in _texts(chunk):
                texts.setdefault(place, []).append(text)
        return any(self._redactor.redacts("".join(parts)) for parts in texts.values() if len(parts) > 1)

    def _section(self, title: str, value: Any) -> str:
        text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
        return f"{title}:\n{clip_middle(self._clean(text), _LONGEST)}"

    def _clean(self, text: str) -> str:
        return visible(self._redactor.text(text))


def _body(raw: object) -> Any:
    """Return what a provider sent as JSON has it, of a stream each chunk; None for what is no answer of a provider."""
    parts: Sequence[Any] = raw if isinstance(raw, list | tuple) else [raw]
    try:
        dumped = [part.model_dump(mode="json", exclude_none=True) for part in parts]
    except Exception:  # noqa: BLE001 - the client's own code; the answer is shown as it was read
        return None
    return dumped if isinstance(raw, list | tuple) else dumped[0]


def _texts(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the texts of a chunk with their places: those of one place are one text, in pieces."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        of_call = (str(value["index"]),) if "index" in value else ()
        for name, each in value.items():
            yield from _texts(each, (*place, *of_call, name))
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, place)


@dataclass
class LoggedCall:
    """A call under way that is shown."""

    id: str
    began: float = field(default_factory=time.perf_counter)
    retries: list[tuple[int, float, str]] = field(default_factory=list)  # attempt, wait in seconds, why
