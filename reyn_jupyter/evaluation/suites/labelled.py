"""Labelled calls of the Berkeley Function-Calling Leaderboard as cases that a scenario can be made of.

Invariant: a case is used only where its label can be carried out as it stands: every needed call names a known record
whose schema takes the accepted values, so that a scenario never asks for what the loop would refuse.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.catalog.arguments import prepare
from reyn_jupyter.evaluation.plan.scenario import MAY_BE_LEFT_OUT
from reyn_jupyter.evaluation.plan.tool_records import read_records

ORIGIN = "BFCL v4"
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_a-zA-Z]+")
_SHORTEST = 3  # letters of a word that tells actions apart
_COMMON = 20  # a word in more than one of so many actions tells nothing

Accepted = Mapping[str, list[Any]]


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
    made = (_case(actions, row) for row in rows)
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
