"""A model that says what a test wrote down: the one stand-in that this package's tests allow themselves.

It is a `Model` like every other and keeps what it was asked.

    model = ScriptedModel(call("list_actions"), call("invoke_action", action_name="file__read"), "All done.")
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from reyn_jupyter.models.base import (
    TEXT_ALONE,
    Medium,
    ModelError,
    Request,
    Response,
    Tier,
    ToolCall,
    Usage,
    estimate_tokens,
)

Step = (
    str
    | ToolCall
    | Sequence[ToolCall]
    | Response
    | BaseException
    | Callable[[Request], "Step | Awaitable[Step]"]
)


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A tool call with these arguments. Its id is given when the model says it.

    Example: ``call("invoke_action", action_name="file__read", args={"path": "notes.md"})``.
    """
    return ToolCall("", name, json.dumps(arguments))


def raw_call(name: str, arguments: str) -> ToolCall:
    """A tool call whose arguments are this very text, valid JSON or not."""
    return ToolCall("", name, arguments)


class ScriptedModel:
    """Answers with the next step of a script.

    A step is a text, a tool call or several, a whole `Response`, an exception to raise, or a function
    (async too) from the request to one of these. At the end of the script `otherwise` answers, or a
    ModelError is raised.

    Args:
        steps: the script.
        otherwise: the step for every request after the script's end.
        delay: seconds before each answer.
        label, tier, host, real: what the model says of itself.

    Attributes:
        requests: every request so far, in order.
    """

    def __init__(
        self,
        *steps: Step,
        otherwise: Step | None = None,
        delay: float = 0.0,
        label: str = "scripted",
        tier: Tier = "standard",
        host: str | None = None,
        real: bool = False,
        media: frozenset[Medium] = TEXT_ALONE,
    ) -> None:
        self.media = media
        self.requests: list[Request] = []
        self._steps = list(steps)
        self._otherwise = otherwise
        self._delay = delay
        self._label = label
        self._tier: Tier = tier
        self._host = host
        self._real = real

    @property
    def label(self) -> str:
        return self._label

    @property
    def tier(self) -> Tier:
        return self._tier

    @property
    def host(self) -> str | None:
        return self._host

    @property
    def real(self) -> bool:
        return self._real

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        position = len(self.requests)
        self.requests.append(request)
        if self._delay:
            await asyncio.sleep(self._delay)
        step = self._steps[position] if position < len(self._steps) else self._otherwise
        if step is None:
            raise ModelError(
                "miss",
                f"The script of {self._label} is at its end after {len(self._steps)} answers.",
                "Add a step, or give `otherwise`.",
            )
        response = await self._respond(step, request, position)
        if on_text is not None:
            for piece in response.text.splitlines(keepends=True):
                on_text(piece)
        return response

    async def _respond(self, step: Step, request: Request, position: int) -> Response:
        while callable(step) and not isinstance(step, BaseException):
            given = step(request)
            step = await given if inspect.isawaitable(given) else given
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, str):
            return Response(text=step, usage=_usage(request, step), model=self._label)
        if isinstance(step, Response):
            return replace(
                step, tool_calls=_named(step.tool_calls, position), model=step.model or self._label
            )
        calls = _named((step,) if isinstance(step, ToolCall) else tuple(step), position)
        usage = _usage(request, "".join(each.arguments for each in calls))
        return Response(tool_calls=calls, finish_reason="tool_calls", usage=usage, model=self._label)


def _named(calls: tuple[ToolCall, ...], position: int) -> tuple[ToolCall, ...]:
    """The calls with an id each; those that have one keep it."""
    return tuple(
        each if each.id else replace(each, id=f"call_{position}_{place}") for place, each in enumerate(calls)
    )


def _usage(request: Request, answer: str) -> Usage:
    sent = sum(len(message.content) for message in request.messages)
    return Usage((sent + 3) // 4, estimate_tokens(answer), estimated=True)
