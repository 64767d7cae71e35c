"""References in the inputs of steps: to inputs of the request and to outputs of earlier steps.

Invariant: only a text that is a reference as a whole is one, and it is resolved once: what it leads to is a value, and
whatever that looks like, it is not resolved again. So a text of a request or of a program never becomes a reference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from reyn_jupyter.support.text import MeantClauses, shorten
from reyn_jupyter.workflows.workflow_error import WorkflowError

LITERAL = "$value"
DEEPEST_INPUTS = 64  # levels of objects and lists
HOW_TO_WRITE_TEXT = 'Text that only looks like a reference is written as {"$value": "…"}.'
_STEP_ID = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_KEY = r'(?:\.[^\W\d][\w$-]*|\[[0-9]{1,9}\]|\["(?:[^"\\]|\\.)*"\])'
_REFERENCE = re.compile(rf"(?:request\.inputs|steps\.({_STEP_ID})\.outputs)({_KEY}*)")
_ALIKE = re.compile(r"(?:request\.inputs?|steps\.[^.\s]{1,100}\.outputs?)(?:[.\[]\S*)?")
_PIECE = re.compile(_KEY)
_LONGEST = 1_000  # characters of a reference
_LOOKED_AT = 1_000  # keys of an object, for the one that was probably meant
_LARGEST = (
    16 << 20
)  # characters and values of inputs that are filled in: as much as a utility may give and take


@dataclass(frozen=True)
class InputReference:
    """One reference.

    Attributes:
        step_id: whose output is meant; None for an input of the request.
        keys: the way from the inputs or outputs to the value: names of objects, places in lists from 0. None at all
            means all of them.
        path: where the reference stands in the inputs, as a JSON Pointer.
        text: as it was written.
    """

    step_id: str | None
    keys: tuple[str | int, ...]
    path: str = ""
    text: str = ""


def parse_reference(text: str, path: str = "") -> InputReference | None:
    """Return what a text refers to, or None where it is a text.

    >>> parse_reference("steps.fetch.outputs.files[0].path").keys
    ('files', 0, 'path')
    >>> parse_reference("see steps.fetch.outputs.files") is None
    True
    """
    found = _REFERENCE.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    keys = tuple(_key(each.group()) for each in _PIECE.finditer(found.group(2)))
    return InputReference(found.group(1), keys, path, text)


def write_reference(step_id: str | None, keys: Sequence[str | int]) -> str:
    """Return the text of a reference.

    >>> write_reference("fetch", ["files", 0, "the path"])
    'steps.fetch.outputs.files[0]["the path"]'
    """
    start = "request.inputs" if step_id is None else f"steps.{step_id}.outputs"
    return start + "".join(map(_piece, keys))


def references_of(value: Any) -> tuple[InputReference, ...]:
    """Return every reference in a value, in the order in which they stand there.

    >>> [each.text for each in references_of(["steps.get.outputs.file", {"$value": "steps.x.outputs.y"}])]
    ['steps.get.outputs.file']
    """
    found = []
    for path, text in _texts(value):
        reference = parse_reference(text, path)
        if reference is not None:
            found.append(reference)
    return tuple(found)


def near_references(value: Any) -> tuple[tuple[str, str], ...]:
    """Return the texts that are no reference but look like a misspelt one, each after its JSON Pointer.

    >>> near_references({"file": "steps.get.output.file"})
    (('/file', 'steps.get.output.file'),)
    """
    return tuple(
        (path, shorten(text, 100))
        for path, text in _texts(value)
        if _ALIKE.fullmatch(text) and parse_reference(text) is None
    )


def is_too_deep(value: Any) -> bool:
    """Return whether a value is nested deeper than inputs may be."""
    level = [value]
    for _ in range(DEEPEST_INPUTS):
        level = [
            part
            for each in level
            for part in (each.values() if isinstance(each, Mapping) else each)
            if isinstance(part, Mapping | list | tuple)
        ]
        if not level:
            return False
    return True


def resolve_inputs(
    inputs: Mapping[str, Any],
    request_inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    *,
    keep_unknown: bool = False,
) -> dict[str, Any]:
    """Return inputs with the values that their references lead to.

    Args:
        inputs: of a step.
        request_inputs: what references to the request lead into.
        outputs: of the steps that ran, by their ids.
        keep_unknown: whether a reference that leads nowhere stays as it was written, as in a preview.

    Raises:
        WorkflowError: "validation": a reference leads nowhere, every one is in the details; or one value is referred to
            so often that all of it is more than 16 Mi characters.

    >>> resolve_inputs({"file": "steps.get.outputs.files[0]"}, {}, {"get": {"files": ["a.mp4"]}})
    {'file': 'a.mp4'}
    """
    problems: list[dict[str, str]] = []
    meant = MeantClauses()

    def resolved(value: Any, path: str) -> Any:
        if isinstance(value, str):
            reference = parse_reference(value, path)
            if reference is None:
                return value
            try:
                return _target(reference, request_inputs, outputs, meant)
            except LookupError as error:
                if not keep_unknown:
                    problems.append({"path": path, "message": f"{shorten(value, 200)} {error.args[0]}"})
                return value
        if isinstance(value, Mapping):
            if value.keys() == {LITERAL}:
                return value[LITERAL]
            return {key: resolved(each, f"{path}/{_pointer(key)}") for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [resolved(each, f"{path}/{at}") for at, each in enumerate(value)]
        return value

    made = {name: resolved(value, f"/{_pointer(name)}") for name, value in inputs.items()}
    if problems:
        first = problems[0]
        raise WorkflowError(
            f"The input {first['path']} cannot be filled in: {first['message']}.",
            "Refer to something that the request or the earlier step gives.",
            "validation",
            {"problems": problems},
        )
    if _is_too_large(made):
        raise WorkflowError(
            f"The inputs are larger than {_LARGEST >> 20} MiB once their references are filled in.",
            "Refer to less, or hand large results on as files.",
            "validation",
        )
    return made


def _is_too_large(value: Mapping[str, Any]) -> bool:
    """Return whether inputs hold more than they may. What stands at many places counts at each, and is read once."""
    left = _LARGEST
    level: dict[int, tuple[Any, int]] = {id(value): (value, 1)}  # a mapping or list, and at how many places
    while level:
        below: dict[int, tuple[Any, int]] = {}
        for each, times in level.values():
            left -= times * len(each)
            parts = each
            if isinstance(each, Mapping):
                left -= times * sum(len(str(key)) for key in each)
                parts = each.values()
            if left < 0:
                return True
            for part in parts:
                if isinstance(part, str):
                    left -= times * len(part)
                elif isinstance(part, Mapping | list | tuple):
                    below[id(part)] = part, times + below.get(id(part), (part, 0))[1]
        level = below
    return left < 0


def escape_literal(value: Any) -> Any:
    """Return a value as inputs hold it, so that no text in it is taken for a reference.

    >>> escape_literal(["a.mp4", "steps.get.outputs.file"])
    ['a.mp4', {'$value': 'steps.get.outputs.file'}]
    """
    if isinstance(value, str):
        return {LITERAL: value} if _ALIKE.fullmatch(value) or parse_reference(value) else value
    if isinstance(value, Mapping):
        if value.keys() == {LITERAL}:
            return {LITERAL: value}
        return {key: escape_literal(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [escape_literal(each) for each in value]
    return value


def _target(
    reference: InputReference,
    request_inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    meant: MeantClauses,
) -> Any:
    """Return the value that a reference leads to. Raises LookupError with the end of a sentence."""
    here: Any = request_inputs
    if reference.step_id is not None:
        if reference.step_id not in outputs:
            raise LookupError("leads to a step that has no outputs")
        here = outputs[reference.step_id]
    for key in reference.keys:
        if isinstance(key, int) and isinstance(here, list | tuple):
            if key >= len(here):
                raise LookupError(f"leads past the end of a list of {len(here)}")
        elif isinstance(key, int) or not isinstance(here, Mapping):
            raise LookupError(f"asks for {key!r} of a value that is {_kind(here)}")
        elif key not in here:
            raise LookupError(
                f"leads nowhere: there is no {key!r}{meant(key, map(str, islice(here, _LOOKED_AT)))}"
            )
        here = here[key]
    return here


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of a value that may be references, each after its JSON Pointer."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        if value.keys() != {LITERAL}:
            for key, each in value.items():
                yield from _texts(each, f"{path}/{_pointer(key)}")
    elif isinstance(value, list | tuple):
        for at, each in enumerate(value):
            yield from _texts(each, f"{path}/{at}")


def _key(piece: str) -> str | int:
    if piece.startswith("."):
        return piece[1:]
    inner = piece[1:-1]
    if not inner.startswith('"'):
        return int(inner)
    try:
        return str(json.loads(inner))
    except ValueError:  # an escape that JSON does not know
        return inner[1:-1]


def _piece(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    plain = f".{key}"
    return plain if _PIECE.fullmatch(plain) else f"[{json.dumps(key, ensure_ascii=False)}]"


def _pointer(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else "no object and no list"
