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
        context: tokens that the small model takes.
        changes_after: requests after which the changing model is another version.
    """

    weak: Simulator = field(default_factory=Simulator)
    slow: float = 30.0
    retry_after: float = 0.05
    context: int = 2_000
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


def small(asked: ReceivedRequest) -> ProviderReply:
    """Lists the catalog for ever, and refuses what is longer than it takes, as llama.cpp's server does."""
    tokens = asked.request.tools.tokens + sum(message.tokens for message in asked.request.messages)
    if tokens > asked.manners.context:
        said = (
            f"request ({tokens} tokens) exceeds the available context size ({asked.manners.context} tokens)"
        )
        return ProviderReply(status=400, message=f"{said}, try increasing it")
    return loops(asked)


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


def forces_named(asked: ReceivedRequest) -> ProviderReply:
    """Keeps to a tool that is named, and to nothing else."""
    return _forced(asked, asked.request.tool_choice in asked.request.tools.names)


def forces_alone(asked: ReceivedRequest) -> ProviderReply:
    """Keeps to "required" alone, and leaves out a tool that is named without a word, as llama.cpp's server does."""
    return _forced(asked, asked.request.tool_choice == "required")


def refuses_named(asked: ReceivedRequest) -> ProviderReply:
    """Refuses a tool that is named, and keeps to "required"."""
    if asked.request.tool_choice in asked.request.tools.names:
        return ProviderReply(status=400, message="Invalid tool_choice: a string is expected.")
    return forces_alone(asked)


def forces_schema(asked: ReceivedRequest) -> ProviderReply:
    """Keeps to a JSON schema alone; no `tool_choice` holds it."""
    if (wanted := asked.request.parameters.get("response_format")) is not None:
        schema = wanted["json_schema"]["schema"]
        given = {name: schema["properties"][name]["enum"][0] for name in schema["required"]}
        return _says(json.dumps(given))
    return _forced(asked, False)


def forces_nothing(asked: ReceivedRequest) -> ProviderReply:
    """Takes every form of a forced choice, and answers with prose."""
    return _forced(asked, False)


BEHAVIOURS: Mapping[str, Behaviour] = {
    behaviour.__name__: behaviour
    for behaviour in (
        weak, refuses, loops, small, silent, malformed, guesses, slow, busy, failing, changing, truncated, mistyped,
        forces_named, forces_alone, refuses_named, forces_schema, forces_nothing,
    )
}  # fmt: skip


def _forced(asked: ReceivedRequest, held: bool) -> ProviderReply:
    """Call the first tool where the request holds the model to it; end after a result, and write prose otherwise."""
    request = asked.request
    if any(message.role == "tool" for message in request.messages[-2:]):
        return _says("Done.")
    if not held:
        return _says("I think it is on Tuesday.")
    named = request.tool_choice if request.tool_choice in request.tools.names else request.tools.names[0]
    return _calls(named, "{}")


def _says(text: str) -> ProviderReply:
    return ProviderReply(Response(text))


def _calls(tool: str, arguments: str) -> ProviderReply:
    return ProviderReply(
        Response(tool_calls=(ToolCall("call_0", tool, arguments),), finish_reason="tool_calls")
    )
