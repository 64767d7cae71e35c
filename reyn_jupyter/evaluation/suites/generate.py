"""Writes the data of the suites that are made from labelled calls; the same sources give the same files.

    python -m reyn_jupyter.evaluation.suites.generate tests/data/retrieval reyn_jupyter/evaluation/suites/data

Invariant: what is drawn depends on the seed and on ids alone, never on time, hash order or the machine.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.suites.labelled import ORIGIN, Actions, Case, cases

SEED = 20240601
OFFERED = 20  # actions of a small catalog
PER_FAMILY = 100  # scenarios of `arguments`
PER_FAMILY_ALL = 25  # of `arguments-all`
PER_SIDE = 100  # answerable, and as many unanswerable, of `abstention`
SIZES = (20, 200, 2000)  # of the catalogs of `surface`
REQUESTS = 40  # of `surface`, over as many actions as its smallest catalog holds
FAR = 0.7  # distractors are drawn from this share of the actions: those least like the request and its action
_FOR_ANYTHING = """
HNA_WQA.query HNA_WQA.search buscar_internet duck_duck_go duck_duck_go.search search_engine.query search_google
search_on_google search_web search_web_tool tavily_search_results_json web_search search_local_docs
search_tool.query chat_completions code_solver.query english_llm help_me message_chatgpt multilingual_llm
answer_question ask_to_user handover_to_agent handover_to_human_agent question.ask transfer_to_human_agent
cmd_controller.execute get_response get_url_content http_request make_webapi_call performDataFetch requests.get
sendHttpRequest send_get_request
"""
ANYTHING = frozenset(
    _FOR_ANYTHING.split()
)  # may be tried for nearly any request: who has one need not give up
RECORDS = "../bfcl/actions.jsonl.gz"
FAMILIES = ("simple", "multiple", "parallel", "live")

Row = dict[str, Any]
Choices = dict[str, list[str]]


def generate(actions: Iterable[Mapping[str, Any]], queries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Every file's text, by its path below the suites' data.

    Args:
        actions: function definitions, {id, name, description, parameters}.
        queries: labelled requests, {id, query, gold, ground_truth}.
    """
    known = Actions(actions)
    usable = cases(known, queries)
    files = {"bfcl/actions.jsonl": _lines(known.records.values())}
    chosen = _by_family(usable, PER_FAMILY, "arguments")
    files |= _files("arguments", *_arguments(known, chosen))
    files |= {"arguments-all/scenarios.jsonl": _lines(_arguments_all(known, chosen))}
    taken = {case.id for case in chosen}
    single = [case for case in usable if len(case.calls) == 1 and case.id not in taken]
    files |= _files("abstention", *_abstention(known, single))
    files |= _files("surface", *_surface(known, [case for case in usable if len(case.calls) == 1]))
    return files


def _drawn(what: str) -> random.Random:
    return random.Random(f"{SEED} {what}")  # noqa: S311 - what is drawn must be the same again


def _by_family(usable: Sequence[Case], count: int, what: str) -> list[Case]:
    chosen: list[Case] = []
    for family in FAMILIES:
        of_family = [case for case in usable if case.family == family]
        chosen += _drawn(f"{what} {family}").sample(of_family, min(count, len(of_family)))
    return chosen


def _distractors(
    actions: Actions, case: Case, count: int, without: frozenset[str] = frozenset()
) -> list[str]:
    """Actions that do not do what is asked: none of the case's, none of their names, and not much like them.

    Args:
        without: names of further actions that are not drawn.
    """
    text = " ".join([case.query, *(actions.face(identity) for identity in sorted(case.group))])
    names = without | {actions.name(identity) for identity in case.group}
    likeness = actions.likeness(text)
    others = sorted((likeness[i], i) for i, record in actions.records.items() if record["name"] not in names)
    far = [identity for _, identity in others[: int(FAR * len(others))]]
    drawn: dict[str, str] = {}
    # More than are needed, since names repeat.
    for identity in _drawn(f"distractors {case.id}").sample(far, 4 * count):
        drawn.setdefault(actions.name(identity), identity)
    return list(drawn.values())[:count]


def _gold(case: Case, catalog: Catalog, offered: Iterable[str]) -> list[Row]:
    """The steps as they are written; names are those of a catalog in which the offered records have theirs."""
    there = set(offered)
    return [
        {**{catalog.name_of(identity): accepted for identity in ids if identity in there}, "exact": True}
        for ids, accepted in case.calls
    ]


def _catalog(actions: Actions, ids: Iterable[str]) -> Catalog:
    return Catalog.from_records([actions.records[identity] for identity in ids])


def _row(identity: str, family: str, case: Case, catalog: str, **fields: Any) -> Row:
    origin = f"{ORIGIN} {case.id}"
    return {
        "id": identity,
        "family": family,
        "natural": case.query,
        "catalog": catalog,
        **fields,
        "origin": origin,
    }


def _arguments(actions: Actions, chosen: Sequence[Case]) -> tuple[list[Row], Choices]:
    """The labelled calls, each in a catalog of its own actions and distractors."""
    rows, choices = [], {}
    for case in chosen:
        own = list(dict.fromkeys(ids[0] for ids, _ in case.calls))
        offered = [*own, *_distractors(actions, case, OFFERED - len(own))]
        gold = _gold(case, _catalog(actions, own), own)
        rows.append(_row(case.id, case.family, case, case.id, gold=gold))
        choices[case.id] = offered
    return rows, choices


def _arguments_all(actions: Actions, chosen: Sequence[Case]) -> list[Row]:
    """Some of them in the catalog of all actions, where every action that takes the call counts."""
    catalog = _catalog(actions, actions.records)
    some = _by_family(chosen, PER_FAMILY_ALL, "arguments-all")
    return [_row(c.id, c.family, c, "all", gold=_gold(c, catalog, actions.records)) for c in some]


def _abstention(actions: Actions, usable: Sequence[Case]) -> tuple[list[Row], Choices]:
    """Requests whose action is withheld, and as many whose action is offered, among the same kind of distractors."""
    drawn = _drawn("abstention").sample(usable, 2 * PER_SIDE)
    rows, choices = [], {}
    for case in drawn[:PER_SIDE]:
        name = f"withheld-{case.id}"
        choices[name] = _distractors(actions, case, OFFERED, ANYTHING)
        rows.append(_row(name, "withheld", case, name, unanswerable=True))
    for case in drawn[PER_SIDE:]:
        name, own = f"offered-{case.id}", case.calls[0][0][0]
        choices[name] = [own, *_distractors(actions, case, OFFERED - 1, ANYTHING)]
        gold = _gold(case, _catalog(actions, [own]), [own])
        rows.append(_row(name, "offered", case, name, gold=gold))
    return rows, choices


def _surface(actions: Actions, usable: Sequence[Case]) -> tuple[list[Row], Choices]:
    """The same requests in catalogs that grow: the actions asked for, and more and more others."""
    asked = _asked(actions, usable)
    own = list(dict.fromkeys(case.calls[0][0][0] for case in asked))
    closed = {identity for case in asked for identity in case.group}
    names = {actions.name(identity) for identity in closed}
    likeness = actions.likeness(" ".join(actions.face(identity) for identity in own))
    alike = sorted((likeness[i], i) for i, record in actions.records.items() if record["name"] not in names)
    others = [identity for _, identity in alike[: SIZES[-1] - len(own)]]
    _drawn("surface").shuffle(others)
    rows, choices = [], {}
    for size in SIZES:
        name = f"actions-{size}"
        choices[name] = [*own, *others[: size - len(own)]]
        catalog = _catalog(actions, choices[name])
        for case in asked:
            gold = _gold(case, catalog, choices[name])
            rows.append(_row(f"{size}-{case.id}", name, case, name, gold=gold))
    return rows, choices


def _asked(actions: Actions, usable: Sequence[Case]) -> list[Case]:
    """The requests: as many for each action, and no two actions of one name."""
    each = REQUESTS // SIZES[0]
    by_action: dict[str, list[Case]] = {}
    for case in usable:
        by_action.setdefault(case.calls[0][0][0], []).append(case)
    asked: list[Case] = []
    groups: set[str] = set()
    enough = [identity for identity, found in by_action.items() if len(found) >= each]
    for identity in _drawn("surface actions").sample(enough, len(enough)):
        found = by_action[identity]
        apart = {actions.name(other) for case in found for other in case.group}
        if not apart & groups and len(asked) < REQUESTS:
            groups |= apart
            asked += _drawn(f"surface {identity}").sample(found, each)
    return asked


def _files(suite: str, rows: list[Row], choices: Choices) -> dict[str, str]:
    catalogs = ",\n".join(f"{json.dumps(name)}: {json.dumps(list(ids))}" for name, ids in choices.items())
    text = f'{{"records": "{RECORDS}", "catalogs": {{\n{catalogs}\n}}}}\n'
    return {f"{suite}/scenarios.jsonl": _lines(rows), f"{suite}/catalogs.json": text}


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write(sources: Path, folder: Path) -> None:
    """Make every file from `bfcl_actions.jsonl` and `bfcl_queries.jsonl` of one folder, into another one."""
    files = generate(*(_read(sources / f"bfcl_{kind}.jsonl") for kind in ("actions", "queries")))
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.startswith("bfcl/"):
            # No time in the header: packing again gives the same bytes.
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        else:
            path.write_text(text, "utf-8")


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
