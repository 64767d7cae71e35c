"""The declarations of a category, and the action that everyone sees.

Three questions are kept apart: what the model and the person *see* (`Action`), where a call *goes*
(`Operation`, `Resources`: target tool and argument transform), and what *runs* (`Tool`: handler, purity,
effects). A category file declares all three in one place; everything else (prompt section, enum, redirects,
completion, documentation) is derived. Nothing here performs I/O: handlers are carried, never called.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.action_face import ActionFace
from reyn_jupyter.catalog.call_limits import NO_LIMITS, CallLimits
from reyn_jupyter.catalog.effects import Effect as Effect
from reyn_jupyter.catalog.effects import EffectKind as EffectKind
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from reyn_jupyter.catalog.names import ActionName

Schema = Mapping[str, Any]
Arguments = dict[str, Any]

BUILT_IN = "reyn_jupyter.categories."  # where the handlers of this package stand
SHORT_DESCRIPTION = 200  # characters, in listings that are not narrowed to a category


class Purity(StrEnum):
    """The kind of work that an action does, for scheduling; its effects name what it changes or reaches."""

    PURE = "pure"
    READ = "read"
    WRITE = "write"
    NETWORK = "network"
    EXEC = "exec"
    UNKNOWN = "unknown"

    repeatable: (
        bool  # whether a call may run beside others, be merged with an equal one, or run again in a replay
    )

    def __init__(self, value: str) -> None:
        self.repeatable = value in ("pure", "read")


# What kind of work a call is, by its arguments as its target gets them; pure.
PurityRule = Callable[[Arguments], Purity]


# A handler gets the target tool's arguments and a `runtime.services.ToolContext`; it returns any Python
# value.
Handler = Callable[[Arguments, Any], Awaitable[object]]
# Effects are asked before the handler runs, with the same two arguments; they must not change anything.
EffectsRule = Callable[[Arguments, Any], Sequence[Effect]]


@dataclass(frozen=True)
class PartialPreview:
    """A preview that cannot show the whole change.

    Attributes:
        text: what it shows.
        missing: what it does not show and why, in a sentence for the question of consent.
    """

    text: str
    missing: str


# What effects, preview and handler of one call go by, so that none of them looks anew at a world that moves: the place
# that a path leads to, say. Asked once, first, with the same two arguments; it must not change anything.
Plan = Callable[[Arguments, Any], object]
# A preview of what a call would change (a unified diff for a file), shown whole with the question of consent. Where it
# is None, the question shows the arguments. It runs in a thread.
Preview = Callable[[Arguments, Any], str | PartialPreview | None]


# Gives the arguments of a person's call with what can be told from them filled in, before the rules look at them.
Completion = Callable[[Arguments, Any], Awaitable[Arguments]]


def no_effects(arguments: Arguments, context: object) -> Sequence[Effect]:
    return ()


@dataclass(frozen=True)
class Tool:
    """The code that runs: one target of the dispatch tables, e.g. ``read_file`` or ``recall``.

    Args:
        name: the target's name, unique in the registry.
        handler: the coroutine function that does the work.
        purity: for scheduling; a function of the target's arguments where it depends on them (a server's tool by its
            name). What such a function cannot say, by an exception too, is `UNKNOWN`.
        effects: what a call would do, for permissions; none for pure tools and reads inside the workspace.
        preview: what a call would change, as text; without one a question of consent shows the arguments.
        complete: fills in what a person's call by hand leaves out and can be told from the rest of it; gets and gives
            the action's own arguments. What it raises is the failure of the call. Models are held to the schema.
        guides: its results help the model find its way (a listing of tools), so they are bounded, never stored.
        keeps: an "always" may be offered where a question of consent shows the whole call. False where no pattern can
            stand for what a call does: code, say.
        remote: the handler sends its arguments elsewhere, so a reference is opened as JSON: a frame as its records.
        discloses: what its arguments hold gets where others read it (a file); so it is where they are sent elsewhere.
            A variable with a key that is named like a secret does not go there by a model's call.
        limits: a deadline in place of the category's, and how many calls of this tool run at once, beside what the
            category says of all of its calls.
        unasked: why a call that names no effects needs no consent of its own: a clause, as in "each call of the peer
            asks". Empty where such a call is asked about, unless it only reads.
        untrusted_output: its results and errors hold a stranger's text: of a page, a server, a peer. Models are told
            so each time, and `permissions.after_untrusted` holds for the rest of the conversation.
        plan: what effects, preview and handler find as `ToolContext.plan`; its ``close()``, where it has one, is called
            when the call is over.
        plan_is_slow: the plan may take long, so that it is made in a thread while other calls go on.
    """

    name: str
    handler: Handler
    purity: Purity | PurityRule
    effects: EffectsRule = no_effects
    preview: Preview | None = None
    complete: Completion | None = None
    guides: bool = False
    keeps: bool = True
    remote: bool = False
    discloses: bool = False
    limits: CallLimits = NO_LIMITS
    plan: Plan | None = None
    plan_is_slow: bool = False
    untrusted_output: bool = False
    unasked: str = ""

    @property
    def is_built_in(self) -> bool:
        """True if its handler comes with this package."""
        return str(getattr(self.handler, "__module__", "")).startswith(BUILT_IN)


def as_given(arguments: Arguments) -> Arguments:
    return arguments


@dataclass(frozen=True, slots=True)
class CalledAction:
    """The action that a call by name is for (``mcp__call_tool``), and where the call has what it takes.

    Args:
        name: its qualified name.
        named_by: the argument that names it.
        held_by: the argument that holds its arguments, an object.
    """

    name: str
    named_by: str
    held_by: str


# From the arguments of a call by name to the action that it is for; None where there is nothing to check. Pure.
CalledRule = Callable[[Arguments], CalledAction | None]


def calls_nothing(arguments: Arguments) -> None:
    return None


@dataclass(frozen=True)
class Operation:
    """A fixed action of a category (``file__read``): its entry, face, target tool and argument transform.

    Args:
        entry, description: its face.
        input_schema: JSON Schema of any draft from 4 on, 2020-12 where ``$schema`` names none.
        tool: its target.
        transform: the action's arguments → the target's; pure.
        open_schema: the schema is somebody else's, so that arguments beside its properties are welcome where it does
            not say otherwise. A schema of our own refuses them, and suggests the name that was meant.
        calls: for an action that calls another by name: which one, so that the arguments for it are checked with its
            schema.
        judged_as_called: a call by name is judged as one of the action that it calls: by the rules and approvals for
            that one, and what restricts this one holds besides.
        alias: another name by which the action is found, without a category; "" if it has none. It must not be the name
            of a wrapper.
    """

    entry: str
    description: str
    input_schema: Schema
    tool: Tool
    transform: Callable[[Arguments], Arguments] = as_given
    open_schema: bool = False
    calls: CalledRule = calls_nothing
    judged_as_called: bool = False
    alias: str = ""


@dataclass(frozen=True)
class Entry:
    """A live resource of a category (``variable__orders``): its face.

    Args:
        entry, description, input_schema, open_schema: as an `Operation` has them.
        purity: overrides the tool's.
        version: of what stands behind it, where that can change under the same face: an "always" holds for one alone.
        capability: what it does for plans, a domain and an action; "" where it serves none.
        output_schema: JSON Schema of what it gives; None where that is not known.
    """

    entry: str
    description: str
    input_schema: Schema
    purity: Purity | None = None
    open_schema: bool = False
    version: str = ""
    capability: str = ""
    output_schema: Schema | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """What waits until it is known whether a resource is there, of which nothing is known yet.

    Args:
        wait: returns once it is known; raises `ActionError` where it will not be, with the reason.
        late: what is said where it takes longer than a call may: a sentence.
        hint: what to do then.
    """

    wait: Callable[[], Awaitable[object]]
    late: str
    hint: str


def all_known(entry: str) -> Arrival | None:
    """Wait for nothing: what is not listed is not there."""
    return None


@dataclass(frozen=True)
class Resources:
    """The rule of a resource category: what invoking one of its entries means.

    Args:
        tool: the target of the canonical default.
        transform: (entry, arguments) → the target's arguments; pure.
        canonical_default: what invoking a resource does, in a few words without action names ("read the body").
        entries: the live resources now; asked only when the category's revision moved.
        judged_as: the operation that does the same for an entry by its name, where there is one: of this category by
            its entry, of another one by its qualified name. Rules and approvals for it hold for calls of the entries
            too, so that neither way leads around them.
        restricted_as: the operation that does the same for an entry by its name, by its qualified name, where the
            entries are judged by themselves: a rule that denies it, or asks about it, holds for them too.
        arrival: for an entry that is not listed: what tells whether it will be; None where it is known that it is not.
            Cheap, and changes nothing.
    """

    tool: Tool
    transform: Callable[[str, Arguments], Arguments]
    canonical_default: str
    entries: Callable[[], Awaitable[Sequence[Entry]]]
    judged_as: str | None = None
    restricted_as: str | None = None
    arrival: Callable[[str], Arrival | None] = all_known


@dataclass(frozen=True, slots=True)
class ErrorCodes:
    """The codes of a category for what is wrong before a handler runs, in the form of those of `ActionError`.

    Args:
        missing_argument: an argument that is required was not given.
        wrong_argument: an argument does not fit, or is not known.
        unknown_entry: the category has no action of that name.
    """

    missing_argument: str | None = None
    wrong_argument: str | None = None
    unknown_entry: str | None = None


NO_CODES = ErrorCodes()


def on_offer() -> None:
    """Hide nothing: the category is offered whatever the environment is."""


def never_changes() -> Hashable:
    return 0


@dataclass(frozen=True)
class Category:
    """A kind of action: operations, resources, or both.

    Args:
        name: e.g. ``file`` or ``agent.peer``.
        capability: one sentence by capability, without any action name, for the system prompt.
        operations: its fixed actions.
        resources: its live ones.
        revision: a cheap value that moves whenever `resources.entries()` would answer differently.
        revision_is_slow: whether to ask for it in a thread, since it looks at many files.
        limits: how long each of its calls may take, and how many run at once.
        hidden: None while it is offered; otherwise a sentence for people that says why it is not (a pure function of
            the resolved environment).
        error_codes: of answers to calls that do not get as far as a handler; none by default.
        start: awaited once a session, before the first use of its entries or handlers.
        close: awaited after every start that began, one that failed or was interrupted too: at the session's close and
            reset, and at the interpreter's exit. The next use starts it again.
    """

    name: str
    capability: str
    operations: tuple[Operation, ...] = ()
    resources: Resources | None = None
    revision: Callable[[], Hashable] = never_changes
    revision_is_slow: Callable[[], bool] = field(default=bool, kw_only=True)
    limits: CallLimits = field(default=NO_LIMITS, kw_only=True)
    hidden: Callable[[], str | None] = on_offer
    error_codes: ErrorCodes = field(default=NO_CODES, kw_only=True)
    start: Callable[[], Awaitable[None]] | None = None
    close: Callable[[], Awaitable[None]] | None = None


@dataclass(frozen=True)
class Action:
    """One action as people and models see it; its schema is one of JSON Schema 2020-12, whatever was declared.

    Attributes:
        name, description, input_schema: its face.
        purity: of every call; `UNKNOWN` where it depends on the arguments.
        target_tool_name: what runs.
        canonical_default: what invoking it does, for a live resource.
        purity_varies: the tool says the purity of a call by its arguments, see `call_purity.purity_of_call`.
        is_foreign: its face is somebody else's, or what stands behind it another version's, and may change from one
            day to the next.
        version, capability, output_schema: see `Entry`.
    """

    name: ActionName
    description: str
    input_schema: Schema
    purity: Purity
    target_tool_name: str
    canonical_default: str | None = None
    purity_varies: bool = False
    is_foreign: bool = False
    version: str = ""
    capability: str = ""
    output_schema: Schema | None = None

    @cached_property
    def short_description(self) -> str:
        """The first paragraph on one line, at most 200 characters."""
        line = " ".join(self.description.strip().partition("\n\n")[0].split())
        return shorten(line, SHORT_DESCRIPTION)

    @cached_property
    def face(self) -> ActionFace:
        """What an approval of this action was given for."""
        return ActionFace(self.description, self.input_schema, self.version)
