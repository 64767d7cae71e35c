"""A secret of the environment is in no answer of any operation, wherever in the session it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from reyn_jupyter.catalog.action import Category, Operation, Purity, Tool
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook.serving.operation import operations
from reyn_jupyter.outputs.parts.content_parts import ContentPart, ContentParts
from reyn_jupyter.runtime.questions.approval_queue import all_pending
from reyn_jupyter.sessions.session import Session
from tests.notebook.serving.blob_requests import Refused, Viewer
from tests.support.media_samples import png

SECRETS = {
    "DEMO_API_KEY": "correct-horse-battery-staple",
    "DEMO_PASSWORD": 'quo"ted\\back-slash-é漢',
}
PARTS = ("horse", "battery", "ted\\", "back-slash")
PLANTED = " and ".join(SECRETS.values())


async def gives(arguments: dict[str, Any], context: object) -> object:
    return {"given": PLANTED, PLANTED: [PLANTED]}


async def gives_much(arguments: dict[str, Any], context: object) -> object:
    return [{"text": PLANTED, "n": number, PLANTED: {"inner": PLANTED}} for number in range(300)]


async def gives_frame(arguments: dict[str, Any], context: object) -> object:
    column = [f"{'x' * 50}{PLANTED}{'y' * 80}"] * 300
    return pd.DataFrame({"text": [PLANTED] * 300, PLANTED: column}).set_index("text")


async def gives_parts(arguments: dict[str, Any], context: object) -> object:
    return ContentParts(
        (
            ContentPart.of_text(PLANTED, name=PLANTED),
            ContentPart.of_text(f"{'x' * 990}{PLANTED}\n" * 20),
            ContentPart("image/png", data=png(), name=PLANTED, uri=f"https://x.example/{PLANTED}"),
            ContentPart.of_json({PLANTED: [PLANTED]}),
            ContentPart.link(f"https://x.example/{PLANTED}", PLANTED),
        )
    )


async def fails(arguments: dict[str, Any], context: object) -> object:
    raise ValueError(f"cannot log in with {PLANTED}")


HANDLERS = {"some": gives, "much": gives_much, "frame": gives_frame, "parts": gives_parts, "fail": fails}


def categories() -> list[Category]:
    rule = {"description": PLANTED, "default": PLANTED, "enum": [PLANTED, "b"], "examples": [PLANTED]}
    schema = {"type": "object", "properties": {"choice": rule, PLANTED: rule}, "description": PLANTED}
    made = [Operation(name, PLANTED, schema, Tool(name, run, Purity.PURE)) for name, run in HANDLERS.items()]
    return [Category("odd", PLANTED, tuple(made))]


@pytest.fixture
def viewer(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Viewer]:
    """A session in which the secrets stand everywhere: they became secrets only after everything was made."""
    made = Viewer(workspace)
    made.session = Session(workspace, categories=categories(), namespace={})
    made.store = made.session.parts.services.blobs
    yield made
    made.close()


def everything(viewer: Viewer) -> dict[str, str]:
    """Stored values of every kind, and two runs."""
    made = {
        "array": viewer.keep(
            [{"text": PLANTED, "deep": {PLANTED: [PLANTED]}, PLANTED: "x" * 55 + PLANTED}] * 300
        ),
        "object": viewer.keep(
            {PLANTED: PLANTED, "long": "x" * 230 + PLANTED * 9000, "list": [PLANTED] * 9000}
        ),
        "text": viewer.keep_text(f"{'x' * 990}{PLANTED}\n{PLANTED}\n{'y' * 65_530}{PLANTED}"),
    }
    stored = viewer.session.invoke_action("odd__frame", {})
    assert stored.blob is not None
    made["frame"] = stored.blob.id
    stored = viewer.session.invoke_action("odd__parts", {})
    assert stored.blob is not None
    made["parts"] = stored.blob.id
    answers: list[Any] = []
    for number in range(2):
        calls = [
            call("invoke_action", action_name=f"odd__{name}", args={PLANTED: PLANTED})
            for name in ("some", "parts", "fail")
        ]
        viewer.session.parts.model = ScriptedModel(
            [*calls, call(PLANTED, x=PLANTED)], f"# {PLANTED}\n\n`{PLANTED}` {number}"
        )
        answers.append(viewer.session.ask(f"say {PLANTED}", new=True))
    made["a"], made["b"] = (trace.run for trace in answers)
    return made


def requests(made: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every operation, over everything that it can be asked about."""
    yield "catalog.page", {}
    yield "catalog.search", {"query": PLANTED}
    yield "home.open", {}
    yield "home.cell", {"run": made["a"]}
    yield "servers.list", {}
    yield "servers.log", {"name": PLANTED}
    yield "servers.restart", {"name": PLANTED}
    yield "servers.drop", {"name": PLANTED}
    yield "servers.add", {"name": PLANTED, "runs": PLANTED}
    for name in ("odd__some", "odd__much", "odd__fail"):
        yield "catalog.action", {"name": name}
        for typed in ({}, {"choice": PLANTED}, {"": json.dumps({PLANTED: PLANTED})}, {"": PLANTED}):
            yield "catalog.command", {"name": name, "typed": typed}
            yield "catalog.invoke", {"name": name, "typed": typed}
    yield "catalog.action", {"name": PLANTED}
    for blob in (made["array"], made["frame"]):
        asked = {"blob": blob}
        yield "frame.open", asked
        yield "frame.rows", asked
        yield "frame.ranks", {**asked, "count": 3}
        yield "frame.rows", {**asked, "sort": [{"column": 0}]}
        yield "frame.rows", {**asked, "filter": [{"column": 0, "op": "less", "value": PLANTED}]}
        yield "frame.code", {**asked, "sort": [{"column": 0}, {"column": 1}, {"column": 2}]}
        for column in range(3):
            yield "frame.column", {**asked, "column": column}
            yield "frame.cell", {**asked, "row": 1, "column": column}
    for blob in (made["array"], made["object"], made["text"]):
        asked = {"blob": blob}
        yield "blob.open", asked
        yield "blob.open", {**asked, "selector": "path:/0/deep"}
        yield "tree.children", asked
        for path in ([0], [0, "deep"], ["list"], [PLANTED]):
            yield "tree.children", {**asked, "path": path}
            yield "tree.way", {**asked, "path": path}
        yield "tree.find", {**asked, "text": PLANTED}
        for first, last in ((0, 200), (0, 5000)):
            yield "tree.value", {**asked, "place": {"start": first, "end": last}}
        for line in (1, 2, 3):
            yield "lines.window", {**asked, "first": line, "count": 2}
            for offset in (0, 980, 1000, 65_520, 65_536, 65_540):
                yield "lines.whole", {**asked, "line": line, "offset": offset}
        yield "lines.find", {**asked, "text": "x"}
        yield "lines.find", {**asked, "text": f"({PLANTED}", "regex": True}
        yield "lines.at", {**asked, "byte": 995}
    yield "blob.open", {"blob": made["parts"]}
    yield "blob.content", {"blob": made["parts"]}
    yield "blob.open", {"blob": PLANTED}
    both = {"a": made["a"], "b": made["b"]}
    for run in both.values():
        yield "trace.open", {"run": run}
        yield "trace.chart", {"run": run}
        for part in ("head", *(f"{kind}{number}" for kind in "scqp" for number in range(6))):
            yield "trace.part", {"run": run, "id": part}
    yield "trace.open", {"run": PLANTED}
    yield "run.stop", {"run": PLANTED}
    yield "trace.diff", both
    for number in range(6):
        yield "trace.pair", {**both, "id": f"p{number}"}
    yield "runs.list", {}
    yield "approval.pending", {}
    yield "approval.page", {"id": PLANTED, "start": 0}
    yield "approval.answer", {"id": PLANTED, "answer": "deny"}


def test_no_operation_answers_with_a_secret(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    made = everything(viewer)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    answered: dict[str, int] = {}
    for op, args in requests(made):
        try:
            said = json.dumps(viewer.ask(op, **args), ensure_ascii=False)
            answered[op] = answered.get(op, 0) + 1
        except Refused as refused:
            said = str(refused)
        plain = said.replace('\\"', '"').replace("\\\\", "\\")  # the quotes and backslashes of JSON itself
        found = [part for part in PARTS if part in plain]
        assert not found, (op, args, [said[max(0, said.find(each) - 200) :][:260] for each in found])
    assert set(operations()) - set(answered) <= {
        "approval.answer",
        "approval.page",
        "home.ask",  # its answer is a run's id; what comes of that run is asked about like any other's
        "run.stop",
        "module.open",
        *("servers.add", "servers.drop", "servers.restart"),  # there is no such server, which they say
        "trace.chart",  # no run of these came to a table, so it refuses
    }
    assert not all_pending()
