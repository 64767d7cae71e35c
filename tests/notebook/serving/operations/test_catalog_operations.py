"""The explorer's side of the line to the kernel: pages of actions, forms, the ready line, calls."""

from __future__ import annotations

import ast
import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some
from IPython.core.inputtransformer2 import TransformerManager

from reyn_jupyter.catalog.action import Category, Entry, Operation, Purity, Resources, Tool
from reyn_jupyter.notebook.magic_line.options import parse
from reyn_jupyter.notebook.magic_line.verb import Context
from reyn_jupyter.notebook.render.blocks import Cell
from reyn_jupyter.notebook.render.catalog_view import action_cells
from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.notebook.serving.connection import Connection
from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.notebook.verbs import invoke
from reyn_jupyter.sessions import current
from reyn_jupyter.sessions.session import Session


class RefusedError(Exception):
    """The kernel answered with an error; the message stands before the bar, the hint behind it."""


class Explorer:
    """Asks as the explorer does, over a connection of its own."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.connection = Connection(Hub(lambda: session), self.answers.put, None)
        self.number = 0

    def send(self, op: str, **args: Any) -> int:
        self.number += 1
        self.connection.receive({"type": "request", "id": self.number, "op": op, "args": args})
        return self.number

    def ask(self, op: str, **args: Any) -> dict[str, Any]:
        self.send(op, **args)
        answer = self.answers.get(timeout=120)
        json.dumps(answer, allow_nan=False).encode()  # it travels, whatever is in it
        if answer["type"] == "error":
            raise RefusedError(f"{answer['message']} | {answer['hint']}")
        return dict(answer["value"])

    def field(self, action: str, name: str) -> dict[str, Any]:
        shown = self.ask("catalog.action", name=action)
        return next(each for each in shown["form"]["fields"] if each["name"] == name)


@contextmanager
def exploring(root: Path, **options: Any) -> Iterator[Explorer]:
    explorer = Explorer(Session(root, **{"namespace": {}, **options}))
    yield explorer
    explorer.connection.close()


@pytest.fixture
def explorer(tmp_path: Path) -> Iterator[Explorer]:
    (tmp_path / "notes.txt").write_text("first line\nsecond line\n")
    with exploring(tmp_path) as made:
        yield made


async def _echo(arguments: dict[str, Any], context: object) -> object:
    return arguments


def category(
    schema: dict[str, Any], name: str = "echo", about: str = "Gives back what it was given."
) -> Category:
    """A category of one action, which answers with its arguments."""
    return Category(
        name, about, (Operation("back", about, schema, Tool(f"{name}_back", _echo, Purity.PURE)),)
    )


def echo(root: Path, schema: dict[str, Any], **options: Any) -> Any:
    return exploring(root, categories=[category(schema)], **options)


def sent(cell: Cell) -> str | list[object]:
    return cell.text if cell.value is None else [cell.text, cell.value]


def text_of(view: object) -> str:
    return json.dumps(view, ensure_ascii=False)


# Pages


def test_a_page_shows_the_words_of_the_static_table(explorer: Explorer) -> None:
    page = explorer.ask("catalog.page")
    listed: list[dict[str, Any]] = []
    offset: int | None = 0
    while offset is not None:  # one answer is bounded
        part = explorer.session.list_actions(limit=100, offset=offset)
        listed, offset = [*listed, *part.rows], part.payload.get("next_offset")
    look = Look()
    columns = page["columns"]
    keys = [column["key"] for column in columns]
    shown = [action_cells(row, look) for row in listed]
    assert page["rows"] == [[sent(cells[key]) for key in keys] for cells in shown]
    assert columns[0] == {"key": "name", "title": "action", "numeric": False}
    assert [column["key"] for column in columns if column["numeric"]] == ["uses", "last_ms"]
    assert page["total"] == len(page["rows"]) == len(explorer.session.catalog)


def test_categories_come_with_count_and_sentence(explorer: Explorer) -> None:
    found = {each["name"]: each for each in explorer.ask("catalog.page", limit=1)["categories"]}
    assert found["file"]["count"] == explorer.session.catalog.counts["file"]
    assert found["file"]["sentence"].strip()


def test_pages_of_ten_thousand_actions_fit_together(tmp_path: Path) -> None:
    entries = [
        Entry(f"report_{number:05}", f"Report {number}.", {"type": "object"}) for number in range(10_000)
    ]

    async def named() -> list[Entry]:
        return entries

    run = Resources(Tool("run", _echo, Purity.PURE), lambda entry, args: args, "run it", named)
    with exploring(tmp_path, categories=[Category("skill", "Reports.", (), run)]) as explorer:
        pages = [
            explorer.ask("catalog.page", offset=offset, limit=2_000) for offset in range(0, 10_000, 2_000)
        ]
        names = [row[0] for page in pages for row in page["rows"]]
        assert names == [f"skill__report_{number:05}" for number in range(10_000)]
        assert {page["revision"] for page in pages} == {pages[0]["revision"]}
        assert explorer.ask("catalog.page", offset=10_000)["rows"] == []


def test_the_revision_moves_with_the_catalog(explorer: Explorer) -> None:
    before = explorer.ask("catalog.page")["revision"]
    assert explorer.ask("catalog.page")["revision"] == before

    @explorer.session.action
    async def discount(price: float) -> float:
        """Take a rebate off."""
        return price * 0.9

    after = explorer.ask("catalog.page")
    assert after["revision"] != before
    assert "function__discount" in [row[0] for row in after["rows"]]


@pytest.mark.parametrize(
    "args", [{"offset": -1}, {"limit": 0}, {"limit": 10**6}, {"limit": "many"}, {"extra": 1}]
)
def test_a_page_that_makes_no_sense_is_refused(explorer: Explorer, args: dict[str, Any]) -> None:
    with pytest.raises(RefusedError):
        explorer.ask("catalog.page", **args)


# One action


def test_an_action_is_described_above_its_form(explorer: Explorer) -> None:
    shown = explorer.ask("catalog.action", name="file__read")
    assert shown["view"]["title"] == "file__read"
    said = shown["view"]["blocks"]
    assert said[0]["type"] == "paragraph" and said[-1]["type"] == "fold"
    assert "Parameters" in text_of(said[-1])
    names = [field["name"] for field in shown["form"]["fields"]]
    assert names[0] == "path" and {"offset", "limit"} < set(names)


@pytest.mark.parametrize("name", ["file__raed", "nothing__at_all", "", "file", "x" * 5000])
def test_an_unknown_name_is_answered_with_suggestions(explorer: Explorer, name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        explorer.ask("catalog.action", name=name)
    assert len(str(refused.value)) < 2_000
    if name == "file__raed":
        assert "Did you mean file__read" in str(refused.value)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 50},
        "content": {"type": "string", "description": "What to write."},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "large": {"type": "integer", "minimum": 2**60},
        "share": {"type": "number"},
        "deep": {"type": "boolean", "default": True},
        "mode": {"enum": ["fast", 1, None]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        "nested": {"type": "object", "properties": {"a": {"type": "integer"}}},
        "table": {"x-reference": True},
        "any": True,
        "again": {"$ref": "#/$defs/tree"},
        "short": {"$ref": "#/$defs/name"},
        "elsewhere": {"$ref": "https://elsewhere.example/schema"},
    },
    "required": ["share"],
    "$defs": {
        "tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}},
        "name": {"type": "string"},
    },
}


def test_each_argument_gets_the_field_that_fits(tmp_path: Path) -> None:
    with echo(tmp_path, SCHEMA) as explorer:
        fields = explorer.ask("catalog.action", name="echo__back")["form"]["fields"]
    assert fields[0]["name"] == "share" and fields[0]["required"]
    assert {field["name"]: field["kind"] for field in fields} == {
        "share": "number", "text": "text", "content": "lines", "count": "integer", "large": "integer",
        "deep": "boolean", "mode": "choice", "tags": "list", "sizes": "list", "maybe": "integer", "either": "json",
        "nested": "json", "table": "reference", "any": "json", "again": "json", "short": "text", "elsewhere": "json",
    }  # fmt: skip
    by_name = {field["name"]: field for field in fields}
    assert (by_name["count"]["least"], by_name["count"]["most"], by_name["count"]["placeholder"]) == (
        "1",
        "9",
        "3",
    )
    assert by_name["large"]["least"] == ""  # a page could not hold it exactly
    assert [choice["json_text"] for choice in by_name["mode"]["choices"]] == ['"fast"', "1", "null"]


odd = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=4),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(
            some.sampled_from(
                [
                    "type",
                    "enum",
                    "const",
                    "items",
                    "anyOf",
                    "$ref",
                    "minimum",
                    "maximum",
                    "default",
                    "description",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(rules=some.dictionaries(some.text(max_size=6), odd, max_size=4), extra=odd)
@example(rules={"a": {"type": "integer", "minimum": 10**400}}, extra=None)
@example(rules={"a": {"enum": [{"type": []}]}, "b": {"type": ["integer", ["x"]]}}, extra=None)
def test_no_schema_breaks_the_form(rules: dict[str, Any], extra: Any) -> None:
    from reyn_jupyter.notebook.serving.forms import form

    for schema in (
        {"properties": rules, "required": list(rules)},
        {"properties": rules, "anyOf": extra},
        extra,
    ):
        made = form(schema, Look())
        json.dumps(made.model_dump(mode="json"))


def test_an_argument_that_cannot_be_shown_as_it_is_can_still_be_given(tmp_path: Path) -> None:
    name = "a\u202eb"
    with echo(tmp_path, {"type": "object", "properties": {name: {"type": "integer"}}}) as explorer:
        form = explorer.ask("catalog.action", name="echo__back")["form"]
        assert form["fields"] == [] and form["others"]
        answer = explorer.ask("catalog.invoke", name="echo__back", typed={"": '{"a\\u202eb": 1}'})
        assert answer["ok"]


# What was typed


def call(explorer: Explorer, action: str = "echo__back", **typed: str) -> dict[str, Any]:
    return explorer.ask("catalog.invoke", name=action, typed=typed)


def given_to(explorer: Explorer) -> Any:
    """The arguments that the last call reached the handler with."""
    return explorer.session.trace().calls[-1].resolved.inner


def test_what_is_typed_reaches_the_action_as_its_types(tmp_path: Path) -> None:
    with echo(tmp_path, SCHEMA) as explorer:
        answer = call(
            explorer, share=".5", text="  as it stands ", content="two\nlines", count="7",
            large=str(2**60 + 1), deep="false", mode='"fast"', tags="a\n\n b \n", sizes="1\n2", maybe="4",
            either="5", nested='{"a": 1}', any="[1, null]",
        )  # fmt: skip
        assert answer["ok"] and answer["errors"] == []
        assert given_to(explorer) == {
            "share": 0.5, "text": "  as it stands ", "content": "two\nlines", "count": 7, "large": 2**60 + 1,
            "deep": False, "mode": "fast", "tags": ["a", "b"], "sizes": [1, 2], "maybe": 4, "either": 5,
            "nested": {"a": 1}, "any": [1, None],
        }  # fmt: skip


def test_an_empty_field_is_not_sent_and_an_empty_text_can_be(tmp_path: Path) -> None:
    with echo(tmp_path, SCHEMA) as explorer:
        call(explorer, share="1", text='""', count="", tags=" \n")
        assert given_to(explorer) == {"share": 1, "text": ""}


def test_every_digit_of_a_number_survives(tmp_path: Path) -> None:
    with echo(tmp_path, SCHEMA) as explorer:
        answer = call(explorer, share="1", large="1152921504606846977", any="[9007199254740993]")
        assert given_to(explorer)["large"] == 2**60 + 1
        assert given_to(explorer)["any"] == [9007199254740993]
        assert "1152921504606846977" in answer["command"] and "9007199254740993" in answer["command"]


def test_wrong_arguments_come_back_with_the_field_they_belong_to(tmp_path: Path) -> None:
    with echo(tmp_path, SCHEMA) as explorer:
        answer = call(explorer, count="ten", sizes="1\ntwo")
        assert not answer["ok"] and answer["live"] is None
        faults = {fault["path"]: fault["message"] for fault in answer["errors"]}
        assert faults["/share"] == "is required"
        assert "integer" in faults["/count"] and any(path.startswith("/sizes") for path in faults)
        assert "Invalid arguments" in text_of(answer["view"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("nope", "double quotes"),
        ('{"a": 1, "a": 2}', "twice"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_json_that_is_none_is_told_at_its_field(tmp_path: Path, text: str, said: str) -> None:
    with echo(tmp_path, SCHEMA) as explorer:
        answer = call(explorer, share="1", any=text)
        assert [fault["path"] for fault in answer["errors"]] == ["/any"]
        assert said in answer["errors"][0]["message"]
        line = explorer.ask("catalog.command", name="echo__back", typed={"share": "1", "any": text})
        assert line["command"] == "" and line["errors"] == answer["errors"]
        assert len(explorer.session.runs) == 0  # nothing ran


@pytest.mark.parametrize("typed", ["@orders", "orders", '{"$var": "orders"}'])
def test_a_field_may_hold_a_reference_to_a_variable(tmp_path: Path, typed: str) -> None:
    with echo(tmp_path, SCHEMA) as explorer:
        line = explorer.ask("catalog.command", name="echo__back", typed={"share": "1", "table": typed})
        assert line["command"] == "%reyn invoke echo__back share=1 table=@orders"


# Calls


def test_a_call_gives_its_result_its_line_and_the_new_row(explorer: Explorer) -> None:
    answer = call(explorer, "file__read", path="notes.txt")
    assert answer["ok"] and "second line" in text_of(answer["view"])
    assert answer["command"] == "%reyn invoke file__read path=notes.txt"
    assert answer["row"][0] == "file__read" and answer["row"][6] == ["1", 1.0]
    assert answer["row"] in explorer.ask("catalog.page")["rows"]


def test_a_large_result_can_be_opened(explorer: Explorer) -> None:
    (explorer.session.root / "large.txt").write_text("a line of text\n" * 20_000)
    answer = call(explorer, "file__read", path="large.txt")
    assert answer["live"] == {
        "type": "blob",
        "blob": explorer.session.blobs.rows[0]["blob"],
        "selector": None,
    }


def test_what_would_ask_is_asked_and_nobody_there_means_no(explorer: Explorer) -> None:
    answer = call(explorer, "file__write", path="made.txt", content="x")
    assert not answer["ok"] and answer["errors"] == []
    assert not (explorer.session.root / "made.txt").exists()
    assert explorer.session.invoke_action("file__write", {"path": "made.txt", "content": "x"}).error is None


def test_a_call_can_be_stopped(tmp_path: Path) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def slow(arguments: dict[str, Any], context: object) -> object:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return None

    wait = Operation("wait", "Take very long.", {"type": "object"}, Tool("slow_wait", slow, Purity.PURE))
    with exploring(tmp_path, categories=[Category("slow", "Waits.", (wait,))]) as explorer:
        number = explorer.send("catalog.invoke", name="slow__wait", typed={})
        assert begun.wait(120)
        explorer.connection.receive({"type": "cancel", "id": number})
        assert ended.wait(120)
        assert explorer.ask("catalog.page", limit=1)["rows"]  # the line goes on


def test_whatever_an_action_returns_comes_back(tmp_path: Path) -> None:
    from tests.notebook.render.samples import HOSTILE

    async def odd(arguments: dict[str, Any], context: object) -> object:
        return {text: [text] for text in HOSTILE}

    returns = Operation("returns", "Return it.", {"type": "object"}, Tool("odd_returns", odd, Purity.PURE))
    with exploring(tmp_path, categories=[Category("odd", "Odd things.", (returns,))]) as explorer:
        assert call(explorer, "odd__returns")["ok"]


def test_an_action_that_fails_shows_its_error(tmp_path: Path) -> None:
    async def fail(arguments: dict[str, Any], context: object) -> object:
        raise ValueError("<b>no</b>")

    broken = Operation("fail", "Fail.", {"type": "object"}, Tool("broken_fail", fail, Purity.PURE))
    with exploring(tmp_path, categories=[Category("broken", "Fails.", (broken,))]) as explorer:
        answer = call(explorer, "broken__fail")
        assert not answer["ok"] and "<b>no</b>" in text_of(answer["view"])


# Hostile and secret texts


def test_hostile_texts_travel_as_texts_alone(tmp_path: Path) -> None:
    from tests.notebook.render.samples import HOSTILE

    for described in HOSTILE:
        text = described.encode("utf-8", "replace").decode()  # no schema can hold half a character
        schema = {
            "type": "object",
            "properties": {
                text: {"type": "string", "description": text, "default": text},
                "e": {"enum": [text, "b"]},
            },
            "required": [text],
        }
        with exploring(tmp_path, categories=[category(schema, about=described)]) as explorer:
            assert explorer.session.parts.catalog.problems == {}
            (row,) = explorer.ask("catalog.page")["rows"]
            assert len(row) == 8
            explorer.ask("catalog.action", name="echo__back")
            answer = call(explorer, e=json.dumps(text))
            assert not answer["ok"]


def test_secrets_of_the_environment_are_taken_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "correct-horse-battery"
    monkeypatch.setenv("EXPLORER_API_KEY", secret)
    schema = {
        "type": "object",
        "properties": {"a": {"description": secret, "enum": [secret, "b"]}, secret: {}},
    }
    with exploring(tmp_path, categories=[category(schema, about=f"Knows {secret}.")]) as explorer:
        answers = [
            explorer.ask("catalog.page"),
            explorer.ask("catalog.action", name="echo__back"),
            call(explorer, a='"b"'),
        ]
    assert secret not in text_of(answers)


# The ready line


def read_back(session: Session, line: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs a line as IPython and the verb do, up to the handler, and gives what came there."""
    code = TransformerManager().transform_cell(line)
    (statement,) = ast.parse(code).body
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    magic, rest = (ast.literal_eval(argument) for argument in statement.value.args)
    assert magic == "reyn" and rest.startswith("invoke ")
    monkeypatch.setattr(current, "_current", [session])
    result = invoke.run(Context(None), parse(invoke.InvokeOptions, rest.removeprefix("invoke ")))
    assert result.error is None, result.payload
    return dict(result.value)


ANYTHING: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "deep": {"type": "boolean"},
        "free": {},
        "several": {"type": ["string", "integer", "null"]},
        "tags": {"type": "array"},
    },
    "additionalProperties": True,
}
texts = some.text(
    alphabet=some.sampled_from("ab '\"\\{}$@%!?#=-,;[]\n\t\r\u2028\u202e\x85é漢😀/~`*"), max_size=10
)
json_values = some.recursive(
    texts
    | some.integers(-(2**70), 2**70)
    | some.booleans()
    | some.none()
    | some.floats(allow_nan=False, allow_infinity=False, width=32),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
arguments = some.fixed_dictionaries(
    {},
    optional={
        "text": texts,
        "count": some.integers(-(2**70), 2**70),
        "share": some.integers(-5, 5) | some.floats(allow_nan=False, allow_infinity=False),
        "deep": some.booleans(),
        "free": json_values,
        "several": texts | some.integers() | some.none(),
        "tags": some.lists(json_values, max_size=3),
        "odd key": json_values,
    },
)


@pytest.fixture(scope="module")
def anything(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(
        tmp_path_factory.mktemp("line"), categories=[category(ANYTHING)], namespace={}, store="memory"
    )


@settings(max_examples=150, deadline=None)
@given(given_arguments=arguments, forgive=some.booleans())
@example(given_arguments={"text": 'it\'s "both" what?'}, forgive=True)
@example(given_arguments={"text": "@orders", "several": "5", "free": "true"}, forgive=True)
@example(given_arguments={"text": "", "free": {"a": [None, 1.0, 1]}}, forgive=False)
@example(given_arguments={"text": "--json", "several": "-o"}, forgive=True)
def test_the_line_gives_back_the_very_arguments(
    anything: Session, given_arguments: dict[str, Any], forgive: bool
) -> None:
    from reyn_jupyter.notebook.magic_line.invoke_line import invoke_command

    anything.configure("router.forgive", forgive)
    (action,) = anything.catalog.actions
    line = invoke_command(action, given_arguments, forgive=forgive)
    assert line.isprintable()
    with pytest.MonkeyPatch.context() as patch:
        back = read_back(anything, line, patch)
    expected = anything.invoke_action("echo__back", given_arguments).value
    assert json.dumps(back, sort_keys=True) == json.dumps(expected, sort_keys=True)


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ({"path": "README.md"}, "path=README.md"),
        ({"path": "my notes.txt", "limit": "5"}, "path='my notes.txt' limit=5"),
        ({"path": "it's"}, 'path="it\'s"'),
        ({"path": "a\nb"}, '--json \'{"path": "a\\nb"}\''),
        ({"path": "@home"}, "path=@@home"),
    ],
)
def test_the_line_is_as_plain_as_can_be(explorer: Explorer, typed: dict[str, str], line: str) -> None:
    answer = explorer.ask("catalog.command", name="file__read", typed=typed)
    assert answer["command"] == f"%reyn invoke file__read {line}"


# The object


def test_the_explorer_object_holds_the_actions_that_fit(explorer: Explorer) -> None:
    shown = explorer.session.explore("READ file")
    names = [row["qualified_name"] for row in shown]
    assert "file__read" in names and len(shown) == len(names) == shown.table.total
    assert shown.error is None and list(shown.df["qualified_name"]) == names
    everything = explorer.session.explore()
    assert everything.table.total == len(explorer.session.catalog)
    assert explorer.session.explore("xyzzy").payload["items"] == []


def test_without_a_front_end_the_explorer_is_the_action_table(explorer: Explorer) -> None:
    from reyn_jupyter.notebook.displays.mime import mimebundle

    bundle = mimebundle(explorer.session.explore("read"))
    assert "file__read" in bundle["text/plain"] and "“read”" in bundle["text/plain"]
    assert "<table" in bundle["text/html"] and "<script" not in bundle["text/html"]
