"""The misbehaviours of the fake provider's models, one function each; the registry is by the model's name.

Invariant: a behaviour is a function of what was asked, how often it was asked before, and the provider's seed, so that
a study against it can be told in advance.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from reyn_jupyter.evaluation.models.simulator.simulator import Simulator
from reyn_jupyter.models.base import Request, Response, ToolCall

FINGERPRINT = "fp_practice_1"
REFUSAL = "I am sorry, but I cannot help with that."
Trouble = Literal["cut", "wrong type"]


@dataclass(frozen=True, kw_only=True)
class ProviderSettings:
    """The settings that the provider's models share.

    Attributes:
        weak: the simulator that answers where nothing goes wrong.
        slow: seconds that the slow model takes.
        retry_after: seconds that the busy model asks to wait.
        changes_after: requests after which the changing model is another version.
    """

    weak: Simulator = field(default_factory=Simulator)
    slow: float = 30.0
    retry_after: float = 0.05
    changes_after: int = 10


@dataclass(frozen=True)
class ReceivedRequest:
    """One request: its repeat is how often this very request came before, `number` counts those of its model from 1."""

    request: Request
    number: int
    manners: ProviderSettings


@dataclass(frozen=True)
class ProviderReply:
    """The provider's reply: a completion, or an HTTP error.

    Attributes:
        response: the completion; None for an error.
        fingerprint: the version of the model that the provider names.
        status, message, headers: of the error.
        delay: seconds before anything is sent.
        trouble: "cut" ends the answer in the middle, "wrong type" sends a page instead of JSON.
    """

    response: Response | None = None
    fingerprint: str = FINGERPRINT
    status: int = 200
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    trouble: Trouble | None = None


Behaviour = Callable[[ReceivedRequest], ProviderReply]


def weak(asked: ReceivedRequest) -> ProviderReply:
    """Answer as a weak model does by the simulator's table: lists first, errs and gives up at its rates."""
    return ProviderReply(asked.manners.weak.answer(asked.request))


def refuses(asked: ReceivedRequest) -> ProviderReply:
    """Says no, and calls nothing."""
    return _says(REFUSAL)


def loops(asked: ReceivedRequest) -> ProviderReply:
    """Lists the catalog for ever."""
    return _calls("list_actions", "{}")


def silent(asked: ReceivedRequest) -> ProviderReply:
    """Stops at once: no text, no call."""
    return _says("")


def malformed(asked: ReceivedRequest) -> ProviderReply:
    """Sends arguments that are no JSON, whatever it was told of them."""
    return _calls("invoke_action", '{"action_name": "file__read", "args": {"path": ')


def guesses(asked: ReceivedRequest) -> ProviderReply:
    """Never looks; makes names up, a malformed one and an unknown one in turn, then says that it is done."""
    made = sum(len(message.tool_calls) for message in asked.request.messages)
    if made >= 2:
        return _says("Done.")
    name = ("file.read", "file__read_file")[made]
    return _calls("invoke_action", json.dumps({"action_name": name, "args": {"path": "notes.md"}}))


def slow(asked: ReceivedRequest) -> ProviderReply:
    """Answers like the weak one, but far too late."""
    return replace(weak(asked), delay=asked.manners.slow)


def busy(asked: ReceivedRequest) -> ProviderReply:
    """Refuses every request the first time, with Retry-After; the next time it answers like the weak one."""
    if asked.request.repeat % 2:
        return weak(replace(asked, request=replace(asked.request, repeat=asked.request.repeat // 2)))
    headers = {"Retry-After": f"{asked.manners.retry_after:g}"}
    return ProviderReply(
        status=429, message="Rate limit reached for requests. Try again later.", headers=headers
    )


def failing(asked: ReceivedRequest) -> ProviderReply:
    """Answer with an internal error, always."""
    return ProviderReply(status=500, message="The server had an error while processing your request.")


def changing(asked: ReceivedRequest) -> ProviderReply:
    """Like the weak one, but becomes another version in the middle of a study."""
    return replace(
        weak(asked), fingerprint=f"fp_practice_{1 if asked.number <= asked.manners.changes_after else 2}"
    )


def truncated(asked: ReceivedRequest) -> ProviderReply:
    """Ends every answer in the middle."""
    return replace(weak(asked), trouble="cut")


def mistyped(asked: ReceivedRequest) -> ProviderReply:
    """Sends a page of HTML with status 200, as a proxy in the way does."""
    return ProviderReply(Response(""), trouble="wrong type")


BEHAVIOURS: Mapping[str, Behaviour] = {
    behaviour.__name__: behaviour
    for behaviour in (
        weak, refuses, loops, silent, malformed, guesses, slow, busy, failing, changing, truncated, mistyped,
    )
}  # fmt: skip


def _says(text: str) -> ProviderReply:
    return ProviderReply(Response(text))


def _calls(tool: str, arguments: str) -> ProviderReply:
    return ProviderReply(
        Response(tool_calls=(ToolCall("call_0", tool, arguments),), finish_reason="tool_calls")
    )
