"""Read the samples of inspect_ai's datasets as scenarios: a request, and what the answer has to say.

Invariant: a target is looked for in the answer, as inspect's scorer includes does; a sample whose request holds its
own target, or that needs what a scenario does not have, is left out with the reason.
Source: UKGovernmentBEIS/inspect_ai, dataset._dataset (Sample, FieldSpec) and dataset._util.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from reyn_jupyter.evaluation.datasets.conversion import (
    Conversion,
    NotExpressibleError,
    object_of,
    text_of,
    word,
)
from reyn_jupyter.evaluation.datasets.rows import DatasetError, Row
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import STANDARD
from reyn_jupyter.support.text import meant_clause
from reyn_jupyter.support.validation_messages import quote_value

FIELDS = ("input", "target", "id", "choices", "metadata", "files", "setup", "sandbox", "family")
_SANDBOXED = ("files", "setup", "sandbox")


def convert_samples(rows: Sequence[Row], name: str, fields: Mapping[str, str]) -> Conversion:
    """Return the scenarios of samples.

    Args:
        name: the family of those that name none, and what ids begin with where rows have none.
        fields: field of a sample → the column that holds it, where it is called otherwise.

    Raises:
        DatasetError: a field that samples do not have, or a row that is no sample.
    """
    for field in fields:
        if field not in FIELDS:
            raise DatasetError(
                f"samples have no field {field!r}{meant_clause(field, FIELDS) or '.'} They have {', '.join(FIELDS)}"
            )
    made = Conversion()
    for number, row in enumerate(rows, 1):
        sample = {field: row.data.get(fields.get(field, field)) for field in FIELDS}
        sample = {field: None if _is_nan(value) else value for field, value in sample.items()}
        given = sample["id"]
        identity = word(f"{name}-{number}" if given is None else str(given)) or f"{name}-{number}"
        made.add(row, identity, partial(_scenario, made, row, sample, identity, name, fields))
    return made


def _scenario(
    made: Conversion, row: Row, sample: Mapping[str, Any], identity: str, name: str, fields: Mapping[str, str]
) -> Scenario:
    request = _request(row, sample["input"], fields.get("input", "input"))
    if sample["choices"]:
        raise NotExpressibleError("it has choices: the right one stands in the request itself")
    if any(sample[field] for field in _SANDBOXED):
        raise NotExpressibleError("it needs files, a setup script or a sandbox of inspect's")
    if sample["metadata"]:
        made.notes["metadata is not carried"] += 1
    metadata = _metadata(row, sample["metadata"])
    family = sample["family"] or metadata.get("family") or name
    return Scenario(
        id=identity,
        family=word(str(family)),
        prompts={"natural": request},
        catalog=STANDARD,
        says=(_target(sample["target"]),),
        origin=f"inspect dataset {name}, {identity}"[:200],
    )


def _request(row: Row, given: Any, column: str) -> str:
    if isinstance(given, list):
        messages = [object_of(row, message, column) for message in given]
        if len(messages) != 1 or messages[0].get("role") != "user":
            raise NotExpressibleError("its input is a conversation, not one request")
        content = messages[0].get("content")
        if not isinstance(content, str):
            raise NotExpressibleError("its input holds more than text")
        given = content
    return text_of(row, {column: given}, column)


def _target(given: Any) -> str:
    targets = [
        str(each) for each in (given if isinstance(given, list) else [given]) if each not in (None, "")
    ]
    if not targets:
        raise NotExpressibleError("it has no target, so nothing is expected of it")
    if any("|" in target for target in targets):
        raise NotExpressibleError('its target holds "|", which parts alternatives here')
    return "|".join(targets)


def _metadata(row: Row, given: Any) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise DatasetError(
                f"{row.place}: 'metadata' is no JSON ({quote_value(given)}); correct it"
            ) from error
    return object_of(row, given, "metadata") if given else {}


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
