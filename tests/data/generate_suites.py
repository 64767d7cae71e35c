"""Writes the data of the suites that are made from labelled calls; the same sources give the same files.

    python tests/data/generate_suites.py

The sources are labelled calls of the Berkeley Function-Calling Leaderboard, in `tests/data/retrieval`; the files go to
where the package carries its suites.

Invariants: what is drawn depends on the seed and on ids alone, never on time, hash order or the machine. A labelled
request is used only where its label can be carried out as it stands: every needed call names a known record whose
schema takes the accepted values, so that a scenario never asks for what the loop would refuse.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reyn_jupyter.catalog.arguments.preparation import prepare
from reyn_jupyter.evaluation.plan.distractors import ANYTHING
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import MAY_BE_LEFT_OUT
from reyn_jupyter.evaluation.plan.tool_records import read_records

SOURCES = Path(__file__).parent / "retrieval"
DATA = Path(__file__).parents[2] / "reyn_jupyter" / "evaluation" / "suites" / "data"
ORIGIN = "BFCL v4"
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_a-zA-Z]+")
_SHORTEST = 3  # letters of a word that tells actions apart
_COMMON = 20  # a word in more than one of so many actions tells nothing

Accepted = Mapping[str, list[Any]]
SEED = 20240601
OFFERED = 20  # actions of a small catalog
PER_FAMILY = 100  # scenarios of `arguments`
PER_FAMILY_ALL = 25  # of `arguments-all`
PER_SIDE = 100  # answerable, and as many unanswerable, of `abstention`
SIZES = (20, 200, 2000)  # of the catalogs of `surface`
REQUESTS = 40  # of `surface`, over as many actions as its smallest catalog holds
FAR = 0.7  # distractors are drawn from this share of the actions: those least like the request and its action
# Labels that miss a part of their request: it asks for the square roots of what the two labelled calls give.
INCOMPLETE = frozenset({"parallel_multiple_84"})
# Found by two rules, and read: each number of a request stands in its label, and each year of a label in its request.
# They are drawn like all others and then replaced, so that what else is drawn stays as it is.
UNSOUND: Mapping[str, str] = {
    "parallel_multiple_177": "asks for the value in 1882, which no argument takes",
    "live_multiple_836-178-11": "asks for the song of 2017, which no argument takes",
    "live_simple_39-16-0": "asks for ten days, by the hour, which no argument takes",
    **dict.fromkeys(
        ("live_multiple_302-131-1", "live_multiple_303-131-2", "live_multiple_597-158-3"),
        "asks for one room, which the schema refuses however it is written",
    ),
    "live_simple_32-9-0": "asks for nothing, and is an answer itself",
    "live_multiple_984-215-8": "says an id of something, and the label has a province that nobody named",
    "parallel_100": "says respectively, and the label has every combination",
    "parallel_multiple_6": "asks for the numbers up to 150, and the label has 150 of them",
    "parallel_multiple_15": "asks for a high rating of 4, and the label takes it of one restaurant alone",
    "live_multiple_820-177-3": "asks for tickets too, and the label only looks",
    "live_multiple_131-50-3": "leaves open which language model is meant",
    **dict.fromkeys(
        (
            "live_multiple_403-139-7",
            "live_multiple_487-147-2",
            "live_multiple_558-154-4",
            "live_multiple_607-159-0",
            "live_multiple_665-162-7",
            "live_multiple_727-166-2",
            "live_multiple_824-177-7",
            "live_multiple_858-180-6",
        ),
        "names a day, and the label takes one year that nobody said",
    ),
}
NEAR_MISSES = (
    2  # actions about the same things that do not do what is asked, among the others of a withheld one
)
WITH_NEAR_MISSES = 40  # withheld requests of `abstention` that have them, all read by hand
NEAR = slice(
    6, 40
)  # by likeness to the withheld action, from where they are drawn; the first may well be its twins
# Drawn as near misses, and found to do what is asked when they were read: request → the action's name.
DOES_IT: Mapping[str, str] = {
    "simple_python_100": "kinematics.calculate_time",
    "live_multiple_141-54-1": "get_stock_prices",
    "live_multiple_356-134-1": "Media_3_FindMovies",
    "live_multiple_428-141-17": "Media_3_FindMovies",
    "live_multiple_591-157-12": "Movies_3_FindMovies",
    "live_multiple_710-164-26": "Media_3_FindMovies",
    "live_multiple_768-171-1": "get_service_providers",
}
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
    some = _by_family(chosen, PER_FAMILY_ALL, "arguments-all")
    taken = {case.id for case in chosen}
    single = [case for case in usable if len(case.calls) == 1 and case.id not in taken]
    drawn = _drawn("abstention").sample(single, 2 * PER_SIDE)
    withheld, offered = drawn[:PER_SIDE], drawn[PER_SIDE:]
    used = taken | {each.id for each in drawn} | set(UNSOUND)
    spare = [
        case
        for case in usable
        if case.id not in used and says_all(case.query, [accepted for _, accepted in case.calls])
    ]
    _drawn("spare").shuffle(spare)
    better = _replaced([*chosen, *offered], spare)
    files |= _files("arguments", *_arguments(known, [better.get(case.id, case) for case in chosen]))
    rows = _arguments_all(known, [better.get(case.id, case) for case in some])
    files |= {"arguments-all/scenarios.jsonl": _lines(rows)}
    files |= _files("abstention", *_abstention(known, withheld, [better.get(c.id, c) for c in offered]))
    single = [case for case in usable if len(case.calls) == 1]
    files |= _files("surface", *_surface(known, single))
    return files


def _replaced(drawn: Sequence[Case], spare: list[Case]) -> dict[str, Case]:
    """For each drawn case whose label is unsound another one of its family, with as few calls; none is taken twice."""
    found = {}
    for case in drawn:
        if case.id in UNSOUND:
            alike = (
                each
                for each in spare
                if each.family == case.family and (len(case.calls) > 1 or len(each.calls) == 1)
            )
            found[case.id] = next(alike)
            spare.remove(found[case.id])
    return found


def says_all(request: str, label: Sequence[Accepted]) -> bool:
    """Whether each number of a request stands in its label, and each year of the label in the request.

    A number may be written as a part of another unit (per cent, thousands, millions).

    >>> says_all("Tickets for May 3?", [{"date": ["2023-05-03"]}])
    False
    """
    values = [accepted for call in label for accepted in call.values()]
    forms = {number * factor for number in _numbers(json.dumps(values)) for factor in (1, 100, 1e-3, 1e-6)}
    lost = {number for number in _numbers(request) if not any(abs(number - form) < 1e-9 for form in forms)}
    years = (set(re.findall(r"\b20\d\d\b", json.dumps(accepted))) for accepted in values)
    return not lost and not any(found and not any(year in request for year in found) for found in years)


def _numbers(text: str) -> set[float]:
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    return {float(found) for found in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)", plain)}


def _drawn(what: str) -> random.Random:
    return random.Random(f"{SEED} {what}")


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


def _near_misses(actions: Actions, case: Case) -> list[str]:
    """Actions about the same things as the withheld one, none of which does what is asked."""
    likeness = actions.likeness(actions.face(case.calls[0][0][0]))
    names = ANYTHING | {actions.name(identity) for identity in case.group}
    alike = sorted(
        (i for i, record in actions.records.items() if record["name"] not in names),
        key=lambda i: (-likeness[i], i),
    )
    drawn: dict[str, str] = {}
    for identity in _drawn(f"near misses {case.id}").sample(alike[NEAR], NEAR.stop - NEAR.start):
        if actions.name(identity) != DOES_IT.get(case.id):
            drawn.setdefault(actions.name(identity), identity)
    return list(drawn.values())[:NEAR_MISSES]


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


def _arguments_all(actions: Actions, some: Sequence[Case]) -> list[Row]:
    """Some of them in the catalog of all actions, where every action that takes the call counts."""
    catalog = _catalog(actions, actions.records)
    return [_row(c.id, c.family, c, "all", gold=_gold(c, catalog, actions.records)) for c in some]


def _abstention(
    actions: Actions, withheld: Sequence[Case], offered: Sequence[Case]
) -> tuple[list[Row], Choices]:
    """Requests whose action is withheld, and as many whose action is offered, among the same kind of distractors."""
    rows, choices = [], {}
    for case in withheld:
        name = f"withheld-{case.id}"
        near = _near_misses(actions, case) if len(choices) < WITH_NEAR_MISSES else []
        far = _distractors(
            actions, case, OFFERED - len(near), ANYTHING | {actions.name(each) for each in near}
        )
        choices[name] = [*near, *far]
        rows.append(_row(name, "withheld", case, name, unanswerable=True))
    for case in offered:
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
        sound = [case for case in found if case.id not in UNSOUND]
        if not apart & groups and len(asked) < REQUESTS and len(sound) >= each:
            groups |= apart
            asked += _drawn(f"surface {identity}").sample(sound, each)
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


@dataclass(frozen=True)
class Case:
    """A labelled request.

    Attributes:
        id, query: as in the source.
        family: "simple", "multiple", "parallel" or "live".
        calls: the needed calls: the records that count, best first, and the accepted values.
        group: every record that counts for some call, whether its schema takes the values or not.
    """

    id: str
    query: str
    family: str
    calls: tuple[tuple[tuple[str, ...], Accepted], ...]
    group: frozenset[str]


class Actions:
    """The records, and how much two texts have in common.

    Args:
        records: {id, name, description, parameters} each, ids unique.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]]) -> None:
        self.records = {str(record["id"]): record for record in records}
        self._schemas = {record.id: record.schema for record in read_records(list(self.records.values()))}
        self._words = {identity: words(_face(record)) for identity, record in self.records.items()}
        self._where: dict[str, list[str]] = defaultdict(list)
        for identity, found in self._words.items():
            for word in sorted(found):
                self._where[word].append(identity)

    def name(self, identity: str) -> str:
        return str(self.records[identity]["name"])

    def takes(self, identity: str, args: Mapping[str, Any]) -> bool:
        """Whether the schema of a record takes these arguments, as they stand."""
        return not prepare(self._schemas[identity], dict(args), forgive=False).invalid

    def takes_one(self, identity: str, name: str, value: object) -> bool:
        """Whether it takes this value for this argument, whatever else it needs."""
        known = self._schemas[identity].get("properties", {})
        if name not in known:
            return False
        alone = {"type": "object", "properties": {name: known[name]}}
        return not prepare(alone, {name: value}, forgive=False).invalid

    def likeness(self, text: str) -> Counter[str]:
        """Record → what it has in common with a text; rare words count for more. Integers, so the same everywhere."""
        shared: Counter[str] = Counter()
        for word in words(text):
            places = self._where.get(word, [])
            if len(places) > len(self.records) // _COMMON:
                continue
            for identity in places:
                shared[identity] += len(self.records) // len(places)
        return shared

    def face(self, identity: str) -> str:
        return _face(self.records[identity])


def words(text: str) -> frozenset[str]:
    """The words of a text in lower case, identifiers split; a plural -s does not count.

    >>> sorted(words("getUserNames by_id"))
    ['get', 'name', 'user']
    """
    found = (word.lower() for word in _WORD.findall(text))
    return frozenset(word.removesuffix("s") for word in found if len(word) >= _SHORTEST or not word.isascii())


def cases(actions: Actions, rows: Iterable[Mapping[str, Any]]) -> list[Case]:
    """The labelled requests that can be used, by id."""
    made = (_case(actions, row) for row in rows if str(row["id"]) not in INCOMPLETE)
    return sorted((case for case in made if case is not None), key=lambda case: case.id)


def _case(actions: Actions, row: Mapping[str, Any]) -> Case | None:
    family = _family(str(row["id"]))
    if family is None or not str(row["query"]).strip():
        return None
    group = [identity for ids in row["gold"] for identity in ids]
    calls = []
    for labelled in row["ground_truth"]:
        ((name, accepted),) = labelled.items()
        same = [identity for identity in group if actions.name(identity) == name]
        call = _call(actions, same, accepted)
        if call is None:
            return None
        calls.append(call)
    return Case(str(row["id"]), str(row["query"]), family, tuple(calls), frozenset(group))


def _call(
    actions: Actions, same: Sequence[str], accepted: Accepted
) -> tuple[tuple[str, ...], Accepted] | None:
    """The records that take the call, and the accepted values that they take."""
    if any(_nested(value) for values in accepted.values() for value in values):
        return (
            None  # objects hold lists of accepted values in their turn, which no schema takes as they stand
        )
    for best in same:
        kept = {
            name: [
                value for value in values if value == MAY_BE_LEFT_OUT or actions.takes_one(best, name, value)
            ]
            for name, values in accepted.items()
        }
        if all(kept.values()) and actions.takes(best, complete(kept)):
            fitting = [other for other in same if other != best and actions.takes(other, complete(kept))]
            return (best, *fitting), kept
    return None


def complete(accepted: Accepted) -> dict[str, Any]:
    """The arguments of one accepted call: the first accepted value of each."""
    chosen = {
        name: [value for value in values if value != MAY_BE_LEFT_OUT] for name, values in accepted.items()
    }
    return {name: values[0] for name, values in chosen.items() if values}


def _nested(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_nested, value)))


def _family(identity: str) -> str | None:
    """The family of a request; None for those in Java's and JavaScript's own types."""
    kind = identity.partition("_")[0]
    if kind == "simple":
        return "simple" if identity.startswith("simple_python") else None
    return kind if kind in ("multiple", "parallel", "live") else None


def _face(record: Mapping[str, Any]) -> str:
    return f"{record['name']} {record['description']}"


if __name__ == "__main__":
    write(SOURCES, DATA)
