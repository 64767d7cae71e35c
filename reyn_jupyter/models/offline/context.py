"""Read what a request offers a plan: listings, invocations, looks into blobs, and the action that does a job.

Invariant: the model keeps no state. A plan is straight-line code that is run from its beginning for every request.
What it asks for is looked up among the calls of this turn; what is not there yet is raised as `ToolRequest`, becomes
the tool call of the response, and is there the next time. So equal requests give equal responses.

No action name is known beforehand. A job is a few words and the parameters that it needs; the best listed action
is the one whose name says the word, whose schema takes the parameters, and which demands nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reyn_jupyter.models.offline.lexicon import alike, content_stems, parts
from reyn_jupyter.models.offline.transcript import GUIDES, KnownAction, ToolOutput, Transcript, learn_actions

PAGE = 100  # actions a listing is asked for
PAGES = 2  # pages of one listing that are read
STEPS = 8  # model calls of one turn, the answer included: as many as a turn has by default
WORDS = 2  # words of a text that a large catalog is filtered by


class ToolRequest(Exception):  # noqa: N818  a request for a call, not an error
    """A call whose answer the plan cannot go on without."""

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        super().__init__(tool)
        self.tool = tool
        self.arguments = arguments


class Declined(Exception):  # noqa: N818  an answer, not an error
    """The plan ends without an answer; the text says why and what the person can do."""


@dataclass(frozen=True)
class PlanningContext:
    """The view of one request that a plan works with.

    Args:
        transcript: the conversation.
        tools: the offered functions by name: their `parameters` schema and description.
    """

    transcript: Transcript
    tools: Mapping[str, Mapping[str, Any]]

    @property
    def last_step(self) -> bool:
        """Whether no further call can be made in this turn."""
        return self.transcript.steps >= STEPS - 1

    def has_room(self, action: KnownAction, arguments: dict[str, Any], calls: int) -> bool:
        """Return whether an invocation was made in this turn, or that many calls fit in before the answer."""
        given = arguments if action.tool is not None else {"action_name": action.name, "args": arguments}
        key = _canonical(given)
        made = any(_canonical(each.arguments) == key for each in self.transcript.made)
        return made or self.transcript.steps + calls < STEPS

    @property
    def universal(self) -> bool:
        return "list_actions" in self.tools and "invoke_action" in self.tools

    @cached_property
    def direct(self) -> dict[str, KnownAction]:
        """The actions that are offered as functions of their own."""
        return {
            name: KnownAction(
                name, str(spec.get("description") or ""), _mapping(spec.get("parameters")), tool=name
            )
            for name, spec in self.tools.items()
            if name not in (*GUIDES, "invoke_action", "inspect")
        }

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """The categories on offer: the enum of the listing tool, or those of the direct functions."""
        if not self.universal:
            return tuple(dict.fromkeys(action.category for action in self.direct.values()))
        parameters = _mapping(self.tools["list_actions"].get("parameters"))
        category = _mapping(_mapping(parameters.get("properties")).get("category"))
        for shape in (category, *_maps(category.get("anyOf"))):
            enum = _mapping(shape.get("items")).get("enum") or shape.get("enum")
            if isinstance(enum, list):
                return tuple(name for name in enum if isinstance(name, str))
        return ()

    def category(self, *wanted: str) -> str | None:
        """The first category on offer that has one of these names, or one of these words in its name."""
        for want in wanted:
            if want in self.categories:
                return want
        for want in wanted:
            for name in self.categories:
                if want in parts(name):
                    return name
        return None

    def listing(
        self, categories: Iterable[str | None], words: str | None = None, pages: int = PAGES
    ) -> list[KnownAction]:
        """The actions of some categories, their schemas included.

        Args:
            categories: names from `categories`; None among them is passed over; empty means all.
            words: only actions whose name or description holds this text.
            pages: how many pages to read at most.
        """
        chosen = sorted({name for name in categories if name})
        if not self.universal:
            return [action for action in self.direct.values() if not chosen or action.category in chosen]
        arguments: dict[str, Any] = {"category": chosen} if chosen else {}
        if words:
            arguments["filter"] = words
        arguments["limit"] = PAGE
        found: list[KnownAction] = []
        for _ in range(pages):
            result = self._answer("list_actions", arguments)
            found.extend(self.transcript.known.get(a.name, a) for a in learn_actions("list_actions", result))
            value = result.json
            following = value.get("next_offset") if isinstance(value, dict) else None
            if not isinstance(following, int) or isinstance(following, bool) or not found:
                break
            arguments = {**arguments, "offset": following}
        return found

    def about(self, categories: Iterable[str | None], text: str) -> list[KnownAction]:
        """The actions of some categories that a text may mean: all where they fit, else those that share its words."""
        chosen = tuple(categories)
        found = self.search(text) or self.listing(chosen, pages=1)
        if not self.universal or "search_actions" in self.tools or self._total(chosen) <= len(found):
            return found
        words = sorted(content_stems(text[:400]), key=lambda word: (-len(word), word))[:WORDS]
        more = [action for word in words for action in self.listing(chosen, word, 1)]
        return list({action.name: action for action in [*more, *found]}.values())

    def _total(self, categories: Iterable[str | None]) -> int:
        """Return how many actions a listing said there are."""
        arguments = {"category": sorted({name for name in categories if name}), "limit": PAGE}
        value = self._answer("list_actions", arguments).json
        total = value.get("total") if isinstance(value, dict) else None
        return total if isinstance(total, int) else 0

    def search(self, query: str) -> list[KnownAction]:
        """The actions that the catalog's own search finds, best first; none where there is no search."""
        if "search_actions" not in self.tools:
            return []
        return list(learn_actions("search_actions", self._answer("search_actions", {"query": query[:200]})))

    def schema(self, action: KnownAction) -> KnownAction:
        """The action with its schema, described first where the listing left the schema out."""
        if action.schema is not None or not self.universal:
            return action
        result = self._answer("describe_action", {"action_name": action.name})
        return next(iter(learn_actions("describe_action", result)), action)

    def invoke(self, action: KnownAction, arguments: dict[str, Any]) -> ToolOutput:
        """Invoke an action that was listed."""
        if action.tool is not None:
            return self._answer(action.tool, arguments)
        return self._answer("invoke_action", {"action_name": action.name, "args": arguments})

    def opened(self, result: ToolOutput, selector: str | None = None) -> ToolOutput:
        """The result itself, or what is stored behind its summary (8 KiB at most)."""
        if result.blob is None or "inspect" not in self.tools:
            return result
        arguments = {"blob_id": result.blob} | ({"selector": selector} if selector else {})
        return self._answer("inspect", arguments)

    def whole(self, result: ToolOutput) -> ToolOutput:
        """A JSON object that was stored for its length, as far as 8,000 bytes hold it."""
        return self.opened(result, "bytes:0..8000")

    def _answer(self, tool: str, arguments: dict[str, Any]) -> ToolOutput:
        key = _canonical(arguments)
        for made in reversed(self.transcript.made):
            if made.tool == tool and made.result is not None and _canonical(made.arguments) == key:
                return made.result
        raise ToolRequest(tool, arguments)


def _canonical(arguments: object) -> str:
    return json.dumps(arguments, sort_keys=True, ensure_ascii=True)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _maps(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def for_job(
    actions: Iterable[KnownAction], words: Sequence[str], takes: Sequence[str] = ()
) -> KnownAction | None:
    """The action for a job, None when no listed one does it.

    Args:
        actions: what listings showed.
        words: what the action is called, best word first ("read", "open").
        takes: parameters that its schema must have.
    """
    best: tuple[float, KnownAction] | None = None
    for action in actions:
        score = _fitness(action, words, takes)
        if score > 0 and (best is None or score > best[0]):
            best = (score, action)
    return best[1] if best else None


def _fitness(action: KnownAction, words: Sequence[str], takes: Sequence[str]) -> float:
    if action.schema is not None and not set(takes) <= set(action.parameters):
        return 0.0
    if action.schema is not None and not set(action.required) <= {*takes, *_COMMON}:
        return 0.0
    name = parts(action.entry)
    description = content_stems(action.description)
    score = 0.0
    for rank, word in enumerate(words):
        weight = 1.0 / (1 + rank)
        if word in name:
            score += 3 * weight
        elif word in description:
            score += weight
    # A name that says only the word is the plain action; a longer name is a special case of it.
    return score / (1 + 0.1 * len(name))


_COMMON = (
    "path",
    "pattern",
    "content",
    "slug",
    "name",
    "description",
    "type",
    "body",
    "layer",
    "sql",
    "sources",
)


def rank_actions(actions: Iterable[KnownAction], text: str) -> list[tuple[float, KnownAction]]:
    """Actions by how well their words cover those of a text, best first; those without a common word left out.

    The score is 0–1: the part of the text's words that the name, then the description and parameters, account for.
    """
    wanted = content_stems(text)
    scored = []
    for action in actions:
        name = parts(action.entry)
        rest = (
            *content_stems(action.description),
            *(part for key in action.parameters for part in parts(key)),
        )
        hits = sum(
            1.0
            if any(alike(want, part) for part in name)
            else 0.4
            if any(alike(want, part) for part in rest)
            else 0.0
            for want in wanted
        )
        if hits:
            scored.append((hits / max(1, len(wanted)), action))
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].name))


def name_coverage(action: KnownAction, text: str) -> float:
    """Return how much of an action's name the text says, 0–1."""
    name = [part for part in parts(action.entry) if len(part) > 1]
    said = parts(text)
    return sum(any(alike(part, word) for word in said) for part in name) / len(name) if name else 0.0
