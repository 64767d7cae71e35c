"""The table that rules the simulator: features of a request → probabilities of what it does.

Invariants: every number is a probability or says which probabilities it splits; every number names where it comes
from, a published measurement or "assumed". What the loop enforces (a gate, a forced choice, validation) has no entry:
it happens in the real loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from reyn_jupyter.evaluation.plan.validation import FrozenModel

CATALOG = "Universal Action Catalog (FP-0034), weak-model discovery and selection reliability"
ASSUMED = "assumed"

Probability = Annotated[float, Field(ge=0, le=1)]
Schemas = Literal["listed", "described", "unseen"]


def _rate(default: float, meaning: str, source: str = ASSUMED) -> float:
    field: float = Field(default, ge=0, le=1, description=meaning, json_schema_extra={"source": source})
    return field


def _by_times(default: tuple[float, ...], meaning: str, source: str) -> tuple[float, ...]:
    field: tuple[float, ...] = Field(
        default, min_length=1, description=meaning, json_schema_extra={"source": source}
    )
    return field


class BehaviourTable(FrozenModel):
    """The rates at which the simulator does each thing, given what a request shows.

    Rates that come "by times" hold one number for each placement of the mandate, from one; more placements than
    there are numbers count as the last one.

    Example:
        >>> table = BehaviourTable()
        >>> table.lists_first(mandate="explicit", times=3, obscure=False, names_shown=False)
        0.8
        >>> BehaviourTable.model_validate_json(table.model_dump_json()) == table
        True
    """

    lists_first_obscure: float = _rate(
        0.99,
        "lists first when the task names nothing that it knows from training; observed 16 of 16",
        CATALOG,
    )
    lists_first_unasked: float = _rate(0.03, "lists first without any mandate")
    lists_first_generic: tuple[Probability, ...] = _by_times(
        (0.05, 0.07, 0.10),
        "lists first under a generic mandate, by times; published 0 to .10, its rise assumed",
        CATALOG,
    )
    lists_first_explicit: tuple[Probability, ...] = _by_times(
        (0.36, 0.60, 0.80),
        "lists first under a mandate that enumerates, by times; published .36 and, three times, .75 to .85",
        CATALOG,
    )
    names_shown_factor: float = _rate(0.5, "how much of that is left when the prompt shows the names already")
    narrows: float = _rate(0.97, "narrows a listing to the category that the text is nearest to")
    answers_at_once: float = _rate(0.02, "answers from memory, of the times that it does not list first")
    guess_malformed: float = _rate(0.6, "a guessed name is malformed (file.read)")
    guess_unknown: float = _rate(
        0.3, "a guessed name is well formed but none (file__read_file); the rest is right"
    )
    picks_best: float = _rate(0.92, "picks the listed action whose words fit best, else the second")
    describes_without_schemas: float = _rate(
        0.70, "describes an action that was listed without its schema; published 14 of 20", CATALOG
    )
    describes_with_schemas: float = _rate(
        0.0, "describes an action that was listed with its schema; published 0 of 20", CATALOG
    )
    arguments_with_schemas: float = _rate(
        0.60,
        "gives the arguments that the text holds, where a listing showed the schema; published 12 of 20",
        CATALOG,
    )
    arguments_without_schemas: float = _rate(
        0.0, "the same where no listing did, described or not; published 0 of 20", CATALOG
    )
    mistake_omits: float = _rate(0.5, "a mistake in arguments leaves one out")
    mistake_renames: float = _rate(
        0.25, "a mistake in arguments calls one by another name; the rest is a wrong value"
    )
    edits_unasked: float = _rate(0.0, "edits in place without a rule, where it could write the whole file")
    edits_reasoned: float = _rate(
        0.0, "edits in place under a rule that gives a reason; published 0 of 20", CATALOG
    )
    edits_must: float = _rate(0.75, "edits in place under an unconditional rule; published 3 of 4", CATALOG)
    retries: float = _rate(0.85, "tries again after an error")
    corrects_arguments: float = _rate(0.7, "gives the right arguments after their error showed the schema")
    takes_suggestion: float = _rate(0.8, "after an unknown name takes a suggested one, else lists")
    abstains: float = _rate(0.5, "says that nothing fits when nothing listed shares words with the text")

    @model_validator(mode="after")
    def _splits(self) -> Self:
        for parts in (("guess_malformed", "guess_unknown"), ("mistake_omits", "mistake_renames")):
            total = sum(getattr(self, part) for part in parts)
            if total > 1 + 1e-12:
                raise ValueError(
                    f"{' and '.join(parts)} are parts of one whole, but come to {total:g}; lower one"
                )
        return self

    def lists_first(
        self, *, mandate: Literal["none", "generic", "explicit"], times: int, obscure: bool, names_shown: bool
    ) -> float:
        """Return the probability that the first call is a listing."""
        if names_shown:
            factor = self.names_shown_factor
        elif obscure:
            return self.lists_first_obscure
        else:
            factor = 1.0
        if mandate == "none" or times < 1:
            return factor * self.lists_first_unasked
        rates = self.lists_first_explicit if mandate == "explicit" else self.lists_first_generic
        return factor * rates[min(times, len(rates)) - 1]

    def edits(self, rule: Literal["none", "reasoned", "must"]) -> float:
        """Return the probability of the action that edits in place, where another one writes whole files."""
        return {"none": self.edits_unasked, "reasoned": self.edits_reasoned, "must": self.edits_must}[rule]

    def describes(self, schemas: Schemas) -> float:
        """Return the probability of a description before an action is invoked."""
        return self.describes_with_schemas if schemas == "listed" else self.describes_without_schemas

    def arguments(self, schemas: Schemas) -> float:
        """Return the probability that the arguments of a first invocation are those that the text holds."""
        return self.arguments_with_schemas if schemas == "listed" else self.arguments_without_schemas

    def rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Name, value, meaning and source of every entry, for people."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            shown = " · ".join(f"{each:g}" for each in value) if isinstance(value, tuple) else f"{value:g}"
            extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
            yield name, shown, field.description or "", str(extra["source"])
