"""Read the Berkeley Function-Calling Leaderboard's questions and accepted calls as scenarios.

Invariant: a scenario offers exactly the functions of its question, and counts the calls that the leaderboard counts.
Source: ShishirPatil/gorilla, berkeley-function-call-leaderboard, bfcl_eval/data (v3 and v4): a question file holds
``{id, question: [[{role, content}]], function: [{name, description, parameters}]}`` a line, the file of its name under
possible_answer ``{id, ground_truth: [{function: {argument: [accepted]}}]}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from reyn_jupyter.evaluation.datasets.conversion import (
    Conversion,
    NotExpressibleError,
    list_of,
    object_of,
    text_of,
    word,
)
from reyn_jupyter.evaluation.datasets.rows import DatasetError, Row
from reyn_jupyter.evaluation.plan.scenario import AcceptedCall, Gold, Scenario
from reyn_jupyter.support.validation_messages import quote_value

_NUMBER = re.compile(r"_\d.*$")
_OTHER_TYPES = re.compile(r"(^|_)(java|javascript)(_|$)")
_ANY_CALL = re.compile(r"^(live_)?relevance(_|$)")
_UNANSWERABLE = re.compile(r"^(live_)?irrelevance(_|$)")


def convert_bfcl(rows: Sequence[Row], answers: Sequence[Row]) -> Conversion:
    """Return the scenarios of questions. Raises DatasetError for a row that is none of the format."""
    accepted: dict[str, tuple[Row, list[Any]]] = {}
    for row in answers:
        identity = text_of(row, row.data, "id")
        if identity in accepted:
            raise DatasetError(
                f"{row.place}: the id {quote_value(identity)} stands in {accepted[identity][0].place} too"
            )
        accepted[identity] = row, list_of(row, row.data, "ground_truth")
    made = Conversion()
    for row in rows:
        identity = text_of(row, row.data, "id")
        made.add(row, word(identity), partial(_scenario, made, row, identity, accepted))
    return made


def _scenario(
    made: Conversion, row: Row, identity: str, accepted: Mapping[str, tuple[Row, list[Any]]]
) -> Scenario:
    family = _NUMBER.sub("", identity) or identity
    request = _request(row)
    if _OTHER_TYPES.search(family):
        raise NotExpressibleError("its accepted values are code of Java or JavaScript")
    functions = row.data.get("function")
    if isinstance(functions, Mapping):  # as the first version had it
        functions = [functions]
    if not isinstance(functions, list) or not functions:
        raise NotExpressibleError("it offers no function of its own")
    unanswerable = _UNANSWERABLE.match(identity) is not None
    if _ANY_CALL.match(identity):
        raise NotExpressibleError("any call counts for it, which no label says")
    if identity not in accepted and not unanswerable:
        raise NotExpressibleError(
            "no accepted calls are given for it; they stand in a file of their own: answers=…"
        )
    catalog = made.offer(word(identity), functions)
    steps = () if unanswerable else _steps(made, catalog, functions, *accepted[identity])
    return Scenario(
        id=word(identity),
        family=word(family),
        prompts={"natural": request},
        catalog=catalog,
        gold=Gold(steps=steps, unanswerable=unanswerable),
        origin=f"BFCL {identity}"[:200],
    )


def _request(row: Row) -> str:
    question = row.data.get("question")
    if isinstance(question, str) and question.strip():  # as the first version had it
        return question
    turns = list_of(row, row.data, "question")
    if len(turns) != 1:
        if not turns:
            raise DatasetError(f"{row.place}: 'question' is missing; give [[{{role, content}}]]")
        raise NotExpressibleError("it has several turns")
    messages = turns[0] if isinstance(turns[0], list) else turns
    said = [object_of(row, message, "question") for message in messages]
    if any(message.get("role") != "user" for message in said) or len(said) != 1:
        raise NotExpressibleError("it has messages beside the request, such as a system message")
    return text_of(row, said[0], "content")


def _steps(
    made: Conversion, catalog: str, functions: Sequence[Any], row: Row, truth: Sequence[Any]
) -> tuple[tuple[AcceptedCall, ...], ...]:
    offered = made.catalog(catalog)
    assert offered is not None
    entries: dict[str, list[str]] = {}  # a name that stands twice is two actions, and either counts
    for function, action in zip(functions, offered.names.values(), strict=True):
        entries.setdefault(function["name"], []).append(action)
    steps = []
    for call in truth:
        if not isinstance(call, Mapping):
            raise NotExpressibleError("its accepted calls are code, not objects")
        for name, args in call.items():
            if name not in entries:
                raise NotExpressibleError(f"its accepted call {name!r:.80} is of no function that it offers")
            values = {key: _accepted(row, key, listed) for key, listed in object_of(row, args, name).items()}
            steps.append(
                tuple(AcceptedCall(action=action, args=values, exact=True) for action in entries[name])
            )
    return tuple(steps)


def _accepted(row: Row, argument: str, listed: Any) -> tuple[Any, ...]:
    if listed == []:
        raise NotExpressibleError(f"its label accepts no value for {argument!r:.80}")
    if not isinstance(listed, list):
        raise DatasetError(
            f"{row.place}: {argument!r} accepts {quote_value(listed)}; give a list of accepted values"
        )
    return tuple(listed)
