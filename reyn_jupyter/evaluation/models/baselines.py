"""Agents behind the model seam that bound every suite: those that cannot do the task, and one that can.

Invariant: a null agent sees the request alone; the oracle sees the request and the gold, and acts through nothing
but tool calls, so that what it cannot do through the real loop no model can.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from reyn_jupyter.catalog.names import ActionName, MalformedNameError, NameEncoder
from reyn_jupyter.evaluation.models.gold_arguments import gold_arguments
from reyn_jupyter.evaluation.plan.scenario import AcceptedCall, Scenario
from reyn_jupyter.models.base import ModelError, Request, Response, Tier, ToolCall, Usage, estimate_tokens

Manner = Literal["refuses", "silent", "lists", "guesses", "repeats", "pastes", "enumerates", "sweeps"]
GUESS = "assistant__do_task"
REFUSAL = "I am sorry, I cannot help with that."
NOTHING_FITS = "No action in the catalog can do this, so nothing was done."
_PATH = re.compile(r"[\w./-]+\.\w{1,5}\b")  # what a request calls a file by
_SEARCH, _READ = "file__grep", "file__read"
_NUMBERS = 40  # that "enumerates" names
_SWEPT = 60  # calls that "sweeps" makes in one reply
_ATTEMPTS = 3  # calls for one step, before it is given up


@dataclass(frozen=True)
class NullAgent:
    """A model that does nothing useful, in one of eight manners.

    Args:
        manner: "refuses" with a text, "silent" answers nothing at all, "lists" the catalog for ever, "guesses" a name
            without looking (the first tool, where every action is one) and claims to be done, "repeats" the first
            action of a listing for ever, "pastes" all that a search, or else reading, finds in the file that the
            request names (in all files where it names none), "enumerates" each word of that and small numbers,
            "sweeps": calls every action that it is offered with every word and number of the request.

    Example:
        >>> NullAgent("lists").label
        'null-lists'
    """

    manner: Manner = "refuses"
    tier: Tier = "standard"
    host: str | None = None
    real: bool = False

    @property
    def label(self) -> str:
        return f"null-{self.manner}"

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        if self.manner == "lists" and request.tool_choice != "none":
            calls = [_call(f"list-{len(request.messages)}", "list_actions", {})]
            return _reply(request, self.label, calls=calls)
        if self.manner == "repeats" and request.tool_choice != "none":
            return _reply(request, self.label, calls=[_repeat(request)])
        if self.manner in ("pastes", "enumerates"):
            calls, text = _paste(request)
            if calls and request.tool_choice != "none":
                return _reply(request, self.label, calls=calls)
            if self.manner == "enumerates":
                text = ", ".join(dict.fromkeys([*re.findall(r"[\w.:-]+", text), *map(str, range(_NUMBERS))]))
            return _reply(request, self.label, text, on_text=on_text)
        if self.manner == "sweeps" and request.tool_choice != "none":
            return _reply(request, self.label, "Done.", calls=_sweep(request))
        if self.manner == "guesses" and request.tool_choice != "none":
            if not any(message.role == "tool" for message in request.messages):
                return _reply(request, self.label, calls=[_guess(request)])
            return _reply(request, self.label, "Done.", on_text=on_text)
        return _reply(request, self.label, REFUSAL if self.manner == "refuses" else "", on_text=on_text)


@dataclass(frozen=True)
class Oracle:
    """A model that plays the gold of a scenario: looks, calls, tries again after an error, and answers.

    A study gives each trial an oracle of its own scenario by `for_scenario`.

    Raises (`complete`):
        ModelError: it was given no scenario.

    Example:
        >>> Oracle().for_scenario(Scenario(id="s", family="f", prompts={"natural": "Hi"})).label
        'oracle'
    """

    scenario: Scenario | None = None
    label: str = "oracle"
    tier: Tier = "standard"
    host: str | None = None
    real: bool = False

    def for_scenario(self, scenario: Scenario) -> Oracle:
        """Return the oracle of one trial."""
        return Oracle(scenario)

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        if self.scenario is None:
            raise ModelError(
                "configuration",
                "An oracle plays the gold of a scenario, and this one was given none.",
                "Run it in a study, or take Oracle(scenario).",
            )
        play = _Play(self.scenario, request)
        calls = [] if request.tool_choice == "none" else play.next_calls()
        if calls:
            return _reply(request, self.label, calls=calls)
        return _reply(request, self.label, play.answer(), on_text=on_text)


@dataclass
class _Play:
    """The oracle's progress, read from the request: the ids of its calls say what each was for."""

    scenario: Scenario
    request: Request
    answers: dict[str, Any] = field(init=False)
    tools: dict[str, Mapping[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.answers = {
            message.tool_call_id: _parse_content(message.content)
            for message in self.request.messages
            if message.role == "tool" and message.tool_call_id
        }
        self.tools = {spec["function"]["name"]: spec["function"] for spec in self.request.tools.specs}

    @property
    def universal(self) -> bool:
        return "list_actions" in self.tools

    def next_calls(self) -> list[ToolCall]:
        if self.universal and not any(key.startswith("look-") for key in self.answers):
            return list(self._looks())
        if self.universal and not any(key.startswith("describe-") for key in self.answers):
            describing = list(self._descriptions())
            if describing:
                return describing
        return list(self._steps())

    def answer(self) -> str:
        words = [text.partition("|")[0] for text in self.scenario.says]
        opening = NOTHING_FITS if self.scenario.gold.unanswerable else "Done."
        return " ".join([opening, *words])

    def _looks(self) -> Iterator[ToolCall]:
        """Yield a narrowed listing for each needed action; one of everything where none is needed."""
        names = [name for action in self._actions() if (name := _parse_name(action)) is not None]
        for number, name in enumerate(names):
            narrowed = {"category": [name.category], "filter": name.entry}
            yield _call(f"look-{number}", "list_actions", narrowed)
        if not names:
            yield _call("look-0", "list_actions", {})

    def _descriptions(self) -> Iterator[ToolCall]:
        seen = self._schemas()
        for number, name in enumerate(self._actions()):
            if name not in seen:
                yield _call(f"describe-{number}", "describe_action", {"action_name": name})

    def _steps(self) -> Iterator[ToolCall]:
        """Yield the calls of every step that is still to be done, in the order of the gold."""
        schemas = self._schemas()
        for number, step in enumerate(self.scenario.gold.steps):
            attempts = [self.answers.get(f"step-{number}-{attempt}") for attempt in range(_ATTEMPTS)]
            made = sum(f"step-{number}-{attempt}" in self.answers for attempt in range(_ATTEMPTS))
            if made == _ATTEMPTS or (made and not _is_error(attempts[made - 1])):
                continue
            accepted = step[min(made // 2, len(step) - 1)]  # once more after an error, then another way
            yield self._invocation(f"step-{number}-{made}", accepted, schemas.get(accepted.action) or {})

    def _invocation(self, identity: str, accepted: AcceptedCall, schema: Mapping[str, Any]) -> ToolCall:
        if self.universal:
            args = gold_arguments(accepted, self.scenario, schema)
            return _call(identity, "invoke_action", {"action_name": accepted.action, "args": args})
        function = function_name(accepted.action, self.tools)
        parameters = self.tools[function]["parameters"] if function in self.tools else {}
        return _call(identity, function, gold_arguments(accepted, self.scenario, parameters))

    def _actions(self) -> list[str]:
        """Return the actions that may be called: of each step the first way, and the one for when it fails."""
        return list(dict.fromkeys(call.action for step in self.scenario.gold.steps for call in step[:2]))

    def _schemas(self) -> dict[str, Mapping[str, Any]]:
        """Action → input schema, from what listings and descriptions answered."""
        found: dict[str, Mapping[str, Any]] = {}
        for key, answer in self.answers.items():
            if not isinstance(answer, dict) or not key.startswith(("look-", "describe-")):
                continue
            for item in (answer, *(answer.get("items") or ())):
                if isinstance(item, dict) and isinstance(item.get("input_schema"), dict):
                    found[str(item.get("qualified_name"))] = item["input_schema"]
        return found


def function_name(action: str, offered: Mapping[str, Any]) -> str:
    """Return the function name under which an action is offered as a tool of its own; its plain name where it is
    not.

    What a name is encoded to depends on the others: one that meets another carries a hash. Both are tried.

    >>> function_name("agent.peer__alice", {"agent_peer__alice": {}})
    'agent_peer__alice'
    """
    name = _parse_name(action)
    if name is None:
        return action
    candidates = [NameEncoder([name]).encode(name)]
    twin = _parse_name(action.replace(".", "_"))
    if twin is not None and twin != name:
        candidates.insert(0, NameEncoder([name, twin]).encode(name))
    return next((candidate for candidate in candidates if candidate in offered), action)


def _parse_name(action: str) -> ActionName | None:
    try:
        return ActionName.parse(action)
    except MalformedNameError:
        return None


def _guess(request: Request) -> ToolCall:
    names = request.tools.names
    if "invoke_action" in names or not names:
        return _call("guess", "invoke_action", {"action_name": GUESS, "args": {}})
    return _call("guess", names[0], {})


def _repeat(request: Request) -> ToolCall:
    """Return a call of the first action that a listing named; of the first tool where every action is one."""
    number, names = len(request.messages), request.tools.names
    if "invoke_action" not in names:
        return _call(f"again-{number}", names[0] if names else GUESS, {})
    for message in request.messages:
        listing = _parse_content(message.content) if message.role == "tool" else None
        items = listing.get("items") if isinstance(listing, dict) else None
        if isinstance(items, list) and items and isinstance(items[0], dict):
            return _call(
                f"again-{number}",
                "invoke_action",
                {"action_name": items[0].get("qualified_name"), "args": {}},
            )
    return _call(f"again-{number}", "list_actions", {})


def _sweep(request: Request) -> list[ToolCall]:
    """Return a call of every action that is offered with every word of the request; none once they are made."""
    tools = {spec["function"]["name"]: spec["function"] for spec in request.tools.specs}
    found = {message.tool_call_id: message.content for message in request.messages if message.role == "tool"}
    universal = "list_actions" in tools
    if universal and "look" not in found:
        return [_call("look", "list_actions", {})]
    if any(str(key).startswith("sweep-") for key in found):
        return []
    schemas = {name: each["parameters"] for name, each in tools.items()}
    if universal and "narrowed" not in found:  # with the schemas, which a listing of all does not hold
        there = _parse_content(found["look"]).get("categories") or {}
        return [_call("narrowed", "list_actions", {"category": list(there)})]
    if universal:
        items = _parse_content(found["narrowed"]).get("items") or ()
        schemas = {str(each.get("qualified_name")): each.get("input_schema") or {} for each in items}
    asked = next((each.content for each in request.messages if each.role == "user"), "")
    calls: list[ToolCall] = []
    for word in dict.fromkeys(reversed(re.findall(r"\w[\w./-]*\w|\w", asked))):
        for action, schema in schemas.items():
            args = _fill(schema, word, asked)
            name, given = (
                ("invoke_action", {"action_name": action, "args": args}) if universal else (action, args)
            )
            calls.append(_call(f"sweep-{len(calls)}", name, given))
    return calls[:_SWEPT]


def _fill(schema: Mapping[str, Any], word: str, asked: str) -> dict[str, Any]:
    """Return what an action needs, made of a request: its path, its first number, and the word."""
    paths, numbers = _PATH.findall(asked), re.findall(r"\d+", asked)
    args: dict[str, Any] = {}
    for name in schema.get("required") or ():
        kind = (schema.get("properties") or {}).get(name, {}).get("type", "string")
        if kind in ("integer", "number"):
            args[name] = int(numbers[0]) if numbers else 1
        elif kind == "string":
            args[name] = paths[0] if name == "path" and paths else word
    return args


def _paste(request: Request) -> tuple[list[ToolCall], str]:
    """Return the search that is still to be made of what the request names, and what the search found."""
    tools = {spec["function"]["name"]: spec["function"] for spec in request.tools.specs}
    found = {
        message.tool_call_id: message.content
        for message in request.messages
        if message.role == "tool" and message.tool_call_id
    }
    universal = "list_actions" in tools
    if universal and "look" not in found:
        return [_call("look", "list_actions", {"category": ["file"]})], ""
    asked = next((each.content for each in request.messages if each.role == "user"), "")
    searchable = _SEARCH in found["look"] if universal else function_name(_SEARCH, tools) in tools
    action = _SEARCH if searchable else _READ
    searches = {}
    for number, path in enumerate(dict.fromkeys(_PATH.findall(asked)) or ["."]):
        args = {"pattern": ".", "path": path} if searchable else {"path": path}
        wrapped = {"action_name": action, "args": args}
        name, given = ("invoke_action", wrapped) if universal else (function_name(action, tools), args)
        searches[f"search-{number}"] = _call(f"search-{number}", name, given)
    text = "\n".join(found.get(key, "") for key in searches)
    return [call for key, call in searches.items() if key not in found], text


def _call(identity: str, name: str, arguments: Mapping[str, Any]) -> ToolCall:
    return ToolCall(identity, name, json.dumps(arguments, ensure_ascii=False))


def _reply(
    request: Request,
    label: str,
    text: str = "",
    calls: Sequence[ToolCall] = (),
    on_text: Callable[[str], None] | None = None,
) -> Response:
    if text and on_text is not None:
        on_text(text)
    sent = sum(message.tokens for message in request.messages) + request.tools.tokens
    answered = estimate_tokens(text + "".join(call.arguments for call in calls))
    usage = Usage(sent, answered, estimated=True)
    return Response(text, tuple(calls), "tool_calls" if calls else "stop", usage, model=label)


def _parse_content(content: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return content


def _is_error(answer: Any) -> bool:
    return isinstance(answer, dict) and "error" in answer
