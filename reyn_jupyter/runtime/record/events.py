"""The events of a run: the one record that the trace, the live card, the cassette and a study's tables project.

A run is an append-only list of these. Every tool call of the model leaves one `ActionResolved` and one
`ActionFinished`, the wrappers' own included. Everything textual in them is redacted before it gets here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from reyn_jupyter.support.secrets import Redaction

# What a person reads of a model call whose event says `not_forced`.
NOT_FORCED = (
    "the provider cannot be told to list first (router.discovery: forced), so the model was asked alone"
)
# The provider can, and the model began the call and ran on in it.
FORCED_CALL_CUT_OFF = (
    "the call that the model was held to was cut off at its output limit (max_tokens) in every form, so it was asked "
    "alone; where that is short, raise it"
)
RunKind = Literal["turn", "manual", "replay", "inner", "client"]
RunStatus = Literal["ok", "error", "interrupted", "limit", "cancelled", "running", "lost"]
Problem = Literal["malformed", "unknown", "hidden", "stale", "not_installed", "gated", "invalid"]
Flag = Literal[
    "salvaged",
    "repaired",
    "decoded",
    "lifted",
    "coerced",
    "aliased",
    "merged",
    "from_text",
    "repeated",
    "left_out",
]
# How a weak model was helped in a turn (`router.weak`): calls that were read from its text, repeats that were pointed
# to their result, turns that such repeats closed, answers that were asked for again, answers that no result supports,
# errors that were put in short, actions that were offered with their required arguments alone, calls of one reply that
# may change something and were one too many.
Help = Literal[
    "text_calls",
    "repeats",
    "closed",
    "asked_again",
    "unsupported",
    "short_errors",
    "required_first",
    "writes_left_out",
]
Decision = Literal["allowed", "denied"]
# How a call of one tool is forced: by its name; sent alone, with "required"; by a JSON schema of its arguments.
ChoiceForm = Literal["named", "alone", "schema"]


@dataclass(frozen=True, slots=True)
class ParentCall:
    """The call that an inner run belongs to: the id of its run, and its own in it."""

    run: str
    call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run begins. `mandates` are the names of the mandates in force; `settings` the router's effective keys.

    `parent` is set for an inner run, which holds what a call of another run calls in its turn. `notebook` is the file
    that the kernel worked for, where its server says so. `client` is what the client that asked says of itself: an MCP
    client in a run of kind "client", an A2A client in a turn.
    """

    run: str
    at: float
    run_kind: RunKind
    session: str
    prompt: str
    model: str | None = None
    tier: str | None = None
    host: str | None = None
    real: bool = False
    turn: int | None = None
    history_tokens: int = 0
    mandates: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    catalog: str = ""
    replay_of: str | None = None
    cell: str | None = None
    notebook: str | None = None
    client: str | None = None
    parent: ParentCall | None = None
    sent: tuple[dict[str, Any], ...] = ()
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequested:
    """A request goes out: its key and its parts' hashes, and only the messages that are new since the last one.

    `conversation` tells the conversations of one cassette apart: what is new is new to that conversation.
    `not_forced` names the tool that the model should have been held to, where its provider takes no such choice: it
    refused the requests before this one, or earlier ones of the session, or answered them with something else.
    `choice_form` is how the request forces a call of `forced`, a tool; both None where it forces none. `estimated_cost`
    is in US dollars, of the request alone, without its answer; None where no price is known. `context` is how many
    tokens the request was fitted to (`router.weak.fit_context`); `shrunk` are the earlier messages that were shortened
    for it, beyond those of the requests before it in the turn: {"at": place, "message": as it is sent now, "spared":
    tokens}.
    """

    step: int
    at: float
    key: str
    components: dict[str, str]
    model: str
    messages: tuple[dict[str, Any], ...]
    total_messages: int
    tools: tuple[str, ...]
    tool_specs: tuple[dict[str, Any], ...] | None = None
    tool_choice: str = "auto"
    not_forced: str | None = None
    forced: str | None = None
    choice_form: ChoiceForm | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    estimated_tokens: int = 0
    estimated_cost: float | None = None
    repeat: int = 0
    conversation: str | None = None
    context: int | None = None
    shrunk: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryScheduled:
    """A model call failed, and is made again: repeat number `attempt` of at most `most`, `wait` seconds from now.

    `reason` is why, in a few words.
    """

    step: int
    at: float
    attempt: int
    most: int
    wait: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSent:
    """The body of a request began to leave: to which host, and its bytes. Each attempt of a model call has its own.

    `by` is what sent it: the model call of a step, or a search by meaning in a call of that step. `counted` is False
    where the sender cannot count on the wire; the bytes are then those of the request as JSON.
    """

    step: int
    at: float
    host: str
    size: int
    counted: bool = True
    by: Literal["model", "search"] = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReplied:
    """The model answered, or failed (`error`). `key` is the request's; `reasoning` is what the model thought before."""

    step: int
    at: float
    key: str
    text: str = ""
    tool_calls: tuple[dict[str, str], ...] = ()
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False
    cost: float | None = None
    seconds: float = 0.0
    retries: int = 0
    fingerprint: str | None = None
    error: str | None = None
    error_kind: str | None = None
    reasoning: str = ""
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResolved:
    """A call was resolved: the wrapper and arguments as given, and the action that they mean or the problem.

    `inner` are the action's own arguments after forgiveness, None where no action was resolved. `redactions` are the
    marks in it that stand where a secret was taken out; anything else that reads like a mark is the caller's text.
    """

    call: str
    step: int
    at: float
    actor: str
    wrapper: str
    arguments: Any
    inner: Any = None
    redactions: tuple[Redaction, ...] = ()
    name: str | None = None
    target: str | None = None
    purity: str | None = None
    problem: Problem | None = None
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionDecided:
    """The gate's word on a call. `by` is who decided: "policy", "person", "purity", "nobody", "approve"."""

    call: str
    at: float
    name: str
    effects: tuple[str, ...]
    decision: Decision
    by: str
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentAsked:
    """The person is asked about a call, which waits. `PermissionDecided` of the same call, or its end, ends that."""

    call: str
    at: float
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanging:
    """A file is about to be changed, and what it held is kept. `ActionFinished` names the changes that were made;
    of a run that was killed in between, this is what undo goes by. The fields are those of `services.FileChange`."""

    call: str
    at: float
    path: str
    previous_blob: str | None
    sha256: str | None
    mode: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerRunOpened:
    """A call begins to call others: the events of these stand in an inner run, whose `RunStarted` names this call."""

    call: str
    at: float
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionProgressed:
    """A call says how far it is. `done` of `total` is in whatever the handler counts; either may be unknown.

    The record keeps the first and the last of a call, and a few between; listeners hear of at most ten a second.
    """

    call: str
    at: float
    message: str = ""
    done: float | None = None
    total: float | None = None

    @property
    def text(self) -> str:
        """Return it in words: ``page 12 (12 of 40)``."""
        if self.done is None:
            return self.message
        counted = _amount(self.done) + ("" if self.total is None else f" of {_amount(self.total)}")
        return f"{self.message} ({counted})" if self.message else counted


def _amount(number: float) -> str:
    if number >= 1e15:
        return f"{number:.3g}"
    return f"{number:,.0f}" if number == int(number) else f"{number:,.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionFinished:
    """A call ended. `output` is the exact text that the history holds for it; `code` the handler's own name for its
    error, where it gave one. `seconds` leaves out the `waited` ones, for which the person was asked. `partial`: it did
    not come to its end, and its content is what it had reported until then. `frame` restores the table whose records
    `output` begins with, dtypes and index included; a stored one has it in its manifest. `note` is one sentence for
    whoever reads a table: that it was cut, say. `origins` are where strangers' texts in it come from: addresses of
    pages, names of servers. `advice` is what the person can do about it, such as a line to type; no model was told.
    """

    call: str
    step: int
    at: float
    wrapper: str
    name: str | None
    ok: bool
    output: str
    error: str | None = None
    code: str | None = None
    blob: str | None = None
    content_kind: str | None = None
    size: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    partial: bool = False
    changes: tuple[dict[str, Any], ...] = ()
    sources: tuple[dict[str, str | int], ...] = ()
    frame: dict[str, Any] | None = None
    note: str = ""
    origins: tuple[str, ...] = ()
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobStored:
    """A result was stored: blobs know their run through this."""

    call: str
    at: float
    blob: str
    content_kind: str
    size: int
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """The run is over. A log without this event is a valid partial trace. `seconds` leaves out the `waited` ones, for
    which a question to the person was open. `helped` counts by kind how a weak model was helped, see `Help`."""

    run: str
    at: float
    status: RunStatus
    answer: str = ""
    error: str | None = None
    hint: str | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    waited: float = 0.0
    helped: dict[str, int] = field(default_factory=dict)


Event = (
    RunStarted
    | ModelRequested
    | RetryScheduled
    | RequestSent
    | ModelReplied
    | ActionResolved
    | ConsentAsked
    | PermissionDecided
    | FileChanging
    | InnerRunOpened
    | ActionProgressed
    | ActionFinished
    | BlobStored
    | RunEnded
)


@dataclass(frozen=True, slots=True)
class InnerEvent:
    """An event of an inner run, as listeners of the outermost run hear of it; no event of a record itself.

    Attributes:
        run: the inner run.
        event: what happened in it.
    """

    run: str
    event: Event


EVENT_TYPES: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}
