"""Whatever a page sends: each request is answered once, bounded, and with a sentence where it makes no sense."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.serving.operation import operations
from tests.notebook.serving.blob_requests import Viewer

BLOBS = (
    "0198c0de-aaaa-7000-8000-000000000001",
    "../../etc/passwd",
    "/etc/passwd",
    "last",
    "",
    "0",
    "\0",
    "%2e%2e/x",
)
NUMBERS = (-1, 0, 1, 7, 2**31, 2**63, 2**64, 10**30, -(2**63), 1.5, "1", "9" * 5000)
TEXTS = (
    *BLOBS,
    "(a*)*b",
    "(" * 900,
    "[",
    "\\",
    "x" * 100_000,
    "\ud800",
    "\u202e",
    "file__read",
    "p0",
    "c0",
    "s1",
    "path:/0",
    "lines:1-2",
)
UNCAUGHT = re.compile(r"^[A-Z]\w*(Error|Exception|Exit|Interrupt): ")
LARGEST = 600_000  # characters of one answer; a whole line and a copied value are the largest


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    root = tmp_path_factory.mktemp("workspace")
    (root / "notes.txt").write_text("first line\n" * 200)
    made = Viewer(root)
    made.session.parts.model = ScriptedModel(
        call("invoke_action", action_name="file__read", args={"path": "notes.txt"}), "Read."
    )
    made.run = made.session.ask("read it").run  # type: ignore[attr-defined]
    made.known = (  # type: ignore[attr-defined]
        made.keep([{"a": number, "b": "x" * 90} for number in range(500)]),
        made.keep({"a": [1, [2]], "": None}),
        made.keep_text("line\n" * 2000),
        made.keep_raw(b"\xff\x00\xfe" * 5000),
        made.run,  # type: ignore[attr-defined]
    )
    yield made
    made.close()


def value_for(kind: Any, known: tuple[str, ...]) -> st.SearchStrategy[Any]:
    """Values for a field: such as it takes, and any other."""
    anything = st.none() | st.booleans() | st.sampled_from(NUMBERS) | st.sampled_from(TEXTS)
    odd = (
        anything
        | st.lists(anything, max_size=3)
        | st.dictionaries(st.sampled_from(["", "start", "column"]), anything, max_size=2)
    )
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return value_for(arguments[0], known)
    if origin is typing.Literal:
        return st.sampled_from(arguments) | odd
    if origin in (list, tuple):
        return st.lists(value_for(arguments[0], known), max_size=4) | odd
    if origin is dict:
        return st.dictionaries(st.sampled_from(TEXTS), value_for(arguments[1], known), max_size=4) | odd
    if arguments:
        return st.one_of(*(value_for(each, known) for each in arguments)) | odd
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return arguments_for(kind, known) | odd
    if kind is str:
        return st.sampled_from(known) | st.sampled_from(TEXTS) | odd
    if kind is int:
        return st.integers(0, 600) | st.sampled_from(NUMBERS) | odd
    return odd


def arguments_for(model: type[BaseModel], known: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    hints = typing.get_type_hints(model, include_extras=True)
    fields = {name: value_for(hints[name], known) for name in model.model_fields}
    required = {name: fields[name] for name, field in model.model_fields.items() if field.is_required()}
    optional = {name: each for name, each in fields.items() if name not in required}
    return st.fixed_dictionaries(required, optional=optional)


# A call could do anything that its action does, and a server is added once somebody said yes, and has own tests.
ASKED = sorted(set(operations()) - {"catalog.invoke", "home.ask", "module.open", "servers.add"})


@pytest.mark.parametrize("op", ASKED)
def test_any_arguments_are_answered_with_an_answer_or_a_sentence(viewer: Viewer, op: str) -> None:
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(arguments_for(operations()[op].arguments, viewer.known))  # type: ignore[attr-defined]
    def holds(args: dict[str, Any]) -> None:
        number = viewer.send(op, **args)
        while (answer := viewer.answers.get(timeout=120))["type"] == "progress":
            pass
        assert answer["id"] == number
        if answer["type"] == "error":
            assert not UNCAUGHT.match(answer["message"]), (args, answer["message"])
            assert len(answer["message"]) + len(answer["hint"]) <= 1500, (args, len(answer["message"]))
        else:
            assert len(json.dumps(answer)) <= LARGEST, args

    holds()
    assert viewer.answers.empty()


def test_thousands_of_requests_are_each_answered_once(viewer: Viewer) -> None:
    numbers = [
        viewer.send("lines.window", blob=viewer.known[2], first=1 + number % 50) for number in range(3000)
    ]  # type: ignore[attr-defined]
    answered: list[int] = []
    while len(answered) < len(numbers):
        said = viewer.answers.get(timeout=120)
        if said["type"] != "progress":
            answered.append(said["id"])
    assert sorted(answered) == numbers
    assert viewer.ask("approval.pending") == {"questions": []}


def test_a_regular_expression_cannot_be_made_to_run_for_long(viewer: Viewer) -> None:
    blob = viewer.keep_text("a" * 50_000 + "\n")
    for pattern in ("(a*)*b", "(a|a)*c", "(?:a?){200}a{200}b", "(x+x+)+y"):
        assert viewer.ask("lines.find", blob=blob, text=pattern, regex=True)["matches"] == []


def test_what_lies_outside_the_store_is_not_read(viewer: Viewer, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("not for views")
    ways = (
        str(outside),
        f"../../../..{outside}",
        f"file://{outside}",
        "..",
        "../runs",
        "blobs/../../notes.txt",
    )
    for op in ASKED:
        fields = operations()[op].arguments.model_fields
        for name in ("blob", "run", "a"):
            if name not in fields:
                continue
            for way in ways:
                number = viewer.send(op, **{name: way}, **({"b": way} if name == "a" else {}), **needed(op))
                while (answer := viewer.answers.get(timeout=120))["type"] == "progress":
                    pass
                assert answer["id"] == number and answer["type"] == "error", (op, way)
                assert "not for views" not in answer["message"]


def needed(op: str) -> dict[str, Any]:
    """Arguments that make a request whole but for the object it names."""
    given: dict[str, Any] = {"text": "a", "line": 1, "byte": 0, "row": 0, "column": 0, "id": "p0"}
    given["place"] = {"start": 0, "end": 5}
    return {name: given[name] for name in operations()[op].arguments.model_fields if name in given}
