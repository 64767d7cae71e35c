"""Turn rows into scenarios one by one, and keep count of what does not become one.

Invariant: each row is a scenario, or is left out with its reason, or ends the reading with an error that names it; a
scenario that is kept can be solved by its catalog, and not by doing nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from reyn_jupyter.evaluation.datasets.rows import DatasetError, Row
from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.validation import FieldError
from reyn_jupyter.evaluation.suites.consistency import problems
from reyn_jupyter.evaluation.suites.loader import require_gradable
from reyn_jupyter.support.text import shorten
from reyn_jupyter.support.validation_messages import quote_value

LONGEST_PROMPT = 100_000  # characters


class NotExpressibleError(Exception):
    """A sound row that no scenario can say; the message says why."""


@dataclass(frozen=True)
class LeftOut:
    """A row that became no scenario: where it stands, its id, and why."""

    place: str
    id: str
    reason: str


@dataclass
class Conversion:
    """The scenarios of a dataset as they are made.

    Attributes:
        scenarios, catalogs: as in `Suite`.
        left_out: the rows that are none.
        notes: what scenarios do not hold of their rows, and of how many.
    """

    scenarios: list[Scenario] = field(default_factory=list)
    catalogs: dict[str, Catalog | Callable[[], Catalog]] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    _places: dict[str, str] = field(default_factory=dict)
    _by_records: dict[str, str] = field(default_factory=dict)
    _made: dict[str, Catalog] = field(default_factory=dict)

    def add(self, row: Row, identity: str, make: Callable[[], Scenario]) -> None:
        """Take the scenario of a row, or leave it out.

        Raises:
            DatasetError: the id is taken, or a value is of no kind that the format has.
        """
        other = self._places.setdefault(identity, row.place)
        if other is not row.place:
            raise DatasetError(
                f"{row.place}: the id {quote_value(identity)} is taken in {other}; give each row its own"
            )
        try:
            scenario = make()
            for text in scenario.prompts.values():
                if len(text) > LONGEST_PROMPT:
                    raise NotExpressibleError(f"its request is longer than {LONGEST_PROMPT:,} characters")
            _require_possible(scenario, self.catalog(scenario.catalog))
        except NotExpressibleError as error:
            self.left_out.append(LeftOut(row.place, identity, str(error)))
            return
        except FieldError as error:
            raise DatasetError(f"{row.place}: {'; '.join(error.problems)}") from error
        self.scenarios.append(scenario)

    def offer(self, name: str, records: Sequence[Any]) -> str:
        """Return the name of the catalog of these records, made lazily; equal records share one.

        Raises:
            NotExpressibleError: no catalog can be made of them.
        """
        key = json.dumps(records, sort_keys=True)
        if key not in self._by_records:
            make = partial(Catalog.from_records, records)
            try:
                self._made[name] = make()
            except ValueError as error:
                raise NotExpressibleError(f"its tools are no catalog: {error}") from error
            self.catalogs[name] = make
            self._by_records[key] = name
        return self._by_records[key]

    def catalog(self, name: str) -> Catalog | None:
        """Return the catalog that was made of records under a name; None for one that is not made here."""
        return self._made.get(name)


def text_of(row: Row, data: Mapping[str, Any], name: str) -> str:
    """Return a text of a row. Raises DatasetError where it has none."""
    value = data.get(name)
    if not isinstance(value, str) or not value.strip():
        found = "is missing" if value is None else f"is {quote_value(value)}"
        raise DatasetError(f"{row.place}: {name!r} {found}; give a text")
    return value


def list_of(row: Row, data: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list of a row, empty where it has none. Raises DatasetError for anything else."""
    value = data.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise DatasetError(f"{row.place}: {name!r} is {quote_value(value)}; give a list")
    return value


def object_of(row: Row, value: Any, name: str) -> Mapping[str, Any]:
    """Return an object of a row. Raises DatasetError for anything else."""
    if not isinstance(value, Mapping):
        raise DatasetError(f"{row.place}: {name!r} is {quote_value(value)}; give an object")
    return value


def word(text: str) -> str:
    """Return an id as one printable word.

    >>> word("read notes\\n1")
    'read_notes_1'
    """
    return "".join("_" if letter.isspace() or not letter.isprintable() else letter for letter in text)[:200]


def _require_possible(scenario: Scenario, catalog: Catalog | None) -> None:
    try:
        require_gradable(scenario)
    except ValueError as error:
        raise NotExpressibleError(str(error)) from error
    if catalog is not None:
        for problem in problems(scenario, catalog.snapshot):
            raise NotExpressibleError(shorten(problem, 300))
