"""Distractors: recorded actions that fill the catalog of a scenario up to a size, none of which does what is asked.

They are the function definitions that the suites are made of (`suites/data/bfcl`), with recording handlers.

Invariants: what fills a catalog follows from the scenario, its catalog and the size alone, in every process; a smaller
size is contained in a larger one; what the scenario has stays as it is. Where it is known which action is right, the
words of the request decide nothing: a ranking by them (two steps, search) would otherwise never meet a rival.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cachetools import LRUCache

from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import SuiteError
from reyn_jupyter.evaluation.plan.tool_records import read_records
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.search.ranking.tokens import STOP_WORDS, runs, squash_name, tokens_of
from reyn_jupyter.support import text

POOL = Path(__file__).parents[1] / "suites" / "data" / "bfcl" / "actions.jsonl.gz"
CATEGORY, CAPABILITY = "tool", "Call one of many tools."
KEPT = 64  # catalogs of which it is remembered what is like them
COUNTED = 10_000  # scenarios of which it is remembered how many actions fit
NEAREST = 100  # actions most like a gold action that are not taken: among them are those that do the same
SAME_WORDS = 0.5  # of the words of two descriptions: from here on they say the same
UNLIKE = 0.7  # where no action is known to be right, the share that is taken: those least like the request
_COMMON = 20  # a word in more than one of so many actions tells nothing
_FOR_ANYTHING = """
HNA_WQA.query HNA_WQA.search buscar_internet duck_duck_go duck_duck_go.search search_engine.query search_google
search_on_google search_web search_web_tool tavily_search_results_json web_search search_local_docs
search_tool.query chat_completions code_solver.query english_llm help_me message_chatgpt multilingual_llm
answer_question ask_to_user handover_to_agent handover_to_human_agent question.ask transfer_to_human_agent
cmd_controller.execute get_response get_url_content http_request make_webapi_call performDataFetch requests.get
sendHttpRequest send_get_request
"""
# May be tried for nearly any request, so they are no distractors of any.
ANYTHING = frozenset(_FOR_ANYTHING.split())
# Found by reading what the rules leave: category of the scenario's catalog → names of actions that do what it does.
DOES_THE_SAME: Mapping[str, frozenset[str]] = {
    "file": frozenset(
        {"doc_qa", "data_loading", "process_data", "setText", "EFSNIOFile.setContents", "cleanup_logs"}
    ),
    "lamp": frozenset({"ControlAppliance.execute", "ThinQ_Connect"}),
    "memory_operation": frozenset({"archival_memory_insert", "core_memory_append", "core_memory_replace"}),
    "shop": frozenset({"add_product_to_cart", "get_parcel_state", "walmart.purchase"}),
}
# Scenario whose right action is withheld → names of actions that its label counts, and no word of the request tells.
WITHHELD: Mapping[str, frozenset[str]] = {
    "withheld-live_multiple_194-87-1": frozenset({"CalcProduct"}),
    "withheld-live_multiple_234-106-0": frozenset({"set_integer"}),
    "withheld-live_multiple_278-128-1": frozenset({"Restaurants_2_FindRestaurants"}),
    "withheld-live_multiple_33-10-3": frozenset({"multiply"}),
    "withheld-live_multiple_356-134-1": frozenset({"Movies_3_FindMovies", "Media_3_FindMovies"}),
    "withheld-live_multiple_396-139-0": frozenset({"Events_3_FindEvents"}),
    "withheld-live_multiple_565-155-5": frozenset({"Events_3_FindEvents"}),
    "withheld-live_multiple_591-157-12": frozenset({"Media_3_FindMovies", "Movies_3_FindMovies"}),
    "withheld-live_multiple_710-164-26": frozenset({"Movies_3_FindMovies", "Media_3_FindMovies"}),
    "withheld-live_multiple_833-178-8": frozenset({"Music_3_PlayMedia"}),
    "withheld-live_simple_24-5-2": frozenset({"ChaFod", "change_food"}),
    "withheld-simple_python_243": frozenset({"get_discoverer"}),
}


class Distractors:
    """The actions that catalogs can be filled with.

    Args:
        records: as in `read_records`, ids unique. Of those with one name, the first counts.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]]) -> None:
        named: dict[str, Mapping[str, Any]] = {}
        for each in records:
            named.setdefault(squash_name(str(each["name"])), each)
        self._records = {record.id: record for record in read_records(list(named.values()))}
        self._said = {key: _words(record.description) for key, record in self._records.items()}
        self._in_names: dict[str, set[str]] = {}
        self._anywhere: dict[str, list[str]] = {}
        for identity, record in self._records.items():
            in_name = _words(record.entry)
            for word in in_name:
                self._in_names.setdefault(word, set()).add(identity)
            for word in self._said[identity] | in_name:
                self._anywhere.setdefault(word, []).append(identity)
        self._lock = threading.RLock()  # studies may be made in several threads
        self._like: LRUCache[str, frozenset[str]] = LRUCache(KEPT)
        self._counts: LRUCache[tuple[str, str], int] = LRUCache(COUNTED)

    def fill(self, scenario: Scenario, catalog: Catalog, size: int) -> Catalog:
        """Return a catalog with distractors, so that it holds so many actions.

        Raises:
            SuiteError: see `require`.
        """
        self.require(scenario, catalog, size)
        found = sorted(self.fitting(scenario, catalog), key=lambda identity: _place(scenario.id, identity))
        wanted = found[: size - len(catalog.snapshot)]
        return catalog.filled([self._records[identity] for identity in wanted], CATEGORY, CAPABILITY)

    def require(self, scenario: Scenario, catalog: Catalog, size: int) -> None:
        """Raise SuiteError where a catalog holds more actions by itself, or there are not as many to fill it with."""
        held = len(catalog.snapshot)
        asked = f"catalog_size={size:,}: the catalog {scenario.catalog!r} of scenario {scenario.id!r}"
        if held > size:
            raise SuiteError(
                f"{asked} holds {text.count(held, 'action')} by itself; ask for as many at least, or leave such "
                "scenarios out: suite.only(…)"
            )
        most = held + self._count(scenario, catalog)
        if most < size:
            raise SuiteError(f"{asked} can be filled up to {most:,} actions; ask for no more")

    def _count(self, scenario: Scenario, catalog: Catalog) -> int:
        key = (scenario.digest, catalog.hash)
        with self._lock:
            if key not in self._counts:
                self._counts[key] = len(self.fitting(scenario, catalog))
            return self._counts[key]

    def fitting(self, scenario: Scenario, catalog: Catalog) -> set[str]:
        """Return the ids of the actions that a scenario's catalog can be filled with."""
        return self._records.keys() - self._like_candidates(catalog) - self._near(scenario, catalog)

    def _like_candidates(self, catalog: Catalog) -> frozenset[str]:
        """Return the actions that say or are called what one of the catalog is, and those that fit any request."""
        with self._lock:
            if catalog.hash not in self._like:
                self._like[catalog.hash] = self._find_like(catalog)
            return self._like[catalog.hash]

    def _find_like(self, catalog: Catalog) -> frozenset[str]:
        same = ANYTHING.union(*(DOES_THE_SAME.get(name, ()) for name in catalog.snapshot.slices))
        names = {action.name.entry for action in catalog.snapshot.actions}
        plain = set(map(squash_name, same | names))
        found = {key for key, each in self._records.items() if squash_name(each.entry) in plain}
        for words in set(map(_words, names)) - {frozenset()}:
            found |= set.intersection(*(self._in_names.get(word, set()) for word in words))
        for said in {action.description for action in catalog.snapshot.actions}:
            found |= self._saying(said)
        return frozenset(found)

    def _saying(self, description: str) -> set[str]:
        """Return the actions whose description says the same."""
        words = _words(description)
        # Who shares half of the words has one of any larger part of them: look at those that are rare.
        by_rarity = sorted(words, key=lambda word: (len(self._anywhere.get(word, ())), word))
        near = {key for word in by_rarity[: len(words) // 2 + 1] for key in self._anywhere.get(word, ())}
        return {
            key for key in near if len(words & self._said[key]) >= SAME_WORDS * len(words | self._said[key])
        }

    def _near(self, scenario: Scenario, catalog: Catalog) -> set[str]:
        """Return the actions that may well do what is asked."""
        found = {key for key, each in self._records.items() if each.entry in WITHHELD.get(scenario.id, ())}
        gold = [action for action in catalog.snapshot.actions if action.name.text in scenario.gold.actions]
        for action in gold:
            found |= set(self._alike(f"{action.name.entry} {action.description}")[:NEAREST])
        if not gold:
            alike = self._alike(" ".join(scenario.prompts.values()))
            found |= set(alike[: int((1 - UNLIKE) * len(self._records))])
        return found

    def _alike(self, said: str) -> list[str]:
        """Return the actions that share a word with a text, the most alike first; rare words count for more."""
        shared: Counter[str] = Counter()
        for word in _words(said):
            places = self._anywhere.get(word, ())
            if len(places) <= len(self._records) // _COMMON:
                for identity in places:
                    shared[identity] += len(self._records) // len(places)
        return sorted(shared, key=lambda identity: (-shared[identity], identity))


@cache
def shipped_distractors() -> Distractors:
    """Return the distractors that come with the package, read once."""
    with gzip.open(POOL, "rt", encoding="utf-8") as lines:
        return Distractors(json.loads(line) for line in lines)


def require_size(
    variant: Variant, scenarios: Iterable[Scenario], catalog: Callable[[Scenario], Catalog]
) -> None:
    """Refuse a variant whose size a catalog cannot have. Raises SuiteError, which names variant and scenario.

    Args:
        variant: any; one without a size is fine.
        scenarios: those that it may be tried on.
        catalog: gives the catalog of each, without what the variant leaves out.
    """
    if variant.catalog_size is None:
        return
    for scenario in scenarios:
        try:
            shipped_distractors().require(scenario, catalog(scenario), variant.catalog_size)
        except SuiteError as error:
            raise SuiteError(f"variant {variant.name!r}: {error}") from None


def _words(said: str) -> frozenset[str]:
    """Return the stems of a text that say something."""
    return frozenset(stem for run in runs(said) for stem in tokens_of(run)) - STOP_WORDS


def _place(scenario: str, record: str) -> bytes:
    return hashlib.sha256(f"{scenario}\n{record}".encode()).digest()
