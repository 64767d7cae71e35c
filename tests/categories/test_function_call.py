from __future__ import annotations

import asyncio
import enum
import json
import threading
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from pydantic import Field
from typing_extensions import TypeAliasType

from reyn_jupyter.catalog.action import Purity
from reyn_jupyter.categories.function import categories
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.engine import Engine
from reyn_jupyter.runtime.namespace.functions import FunctionRegister, RegistrationError
from tests.categories.notebook_support import InvalidArgumentsError, Notebook


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Model:
    """A class of the person's own, which JSON cannot carry."""


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(tmp_path)


def schema_of(function: Any) -> dict[str, Any]:
    register = FunctionRegister()
    return register.add(function, name="it").input_schema


# Registering


def test_the_decorator_gives_the_function_back_unchanged_bare_and_with_options() -> None:
    register = FunctionRegister()

    @register.action
    def plain(number: int) -> int:
        return number + 1

    @register.action(name="renamed", purity="read", description="Stated.")
    def other() -> None:
        """Not this."""

    assert plain(1) == 2
    registered = register.all()
    assert set(registered) == {"plain", "renamed"}
    assert registered["plain"].purity is Purity.UNKNOWN
    assert registered["renamed"].purity is Purity.READ
    assert registered["renamed"].description == "Stated."


def test_the_same_name_again_replaces_and_moves_the_revision(notebook: Notebook) -> None:
    revision = notebook.caller(categories).category.revision
    notebook.functions.action(lambda: 1, name="f")
    first = revision()
    notebook.functions.action(lambda: 2, name="f")
    assert revision() != first
    assert len(notebook.functions.all()) == 1


def test_a_sessions_own_function_is_not_everyones_and_wins_over_the_processes() -> None:
    everyone = FunctionRegister()
    here, there = FunctionRegister(everyone), FunctionRegister(everyone)
    everyone.action(lambda: "everyone", name="f")
    here.action(lambda: "here", name="f")
    here.action(lambda: "mine", name="g")
    assert here.all()["f"].call({}) == "here"
    assert set(there.all()) == {"f"} and there.all()["f"].call({}) == "everyone"
    everyone.action(lambda: "later", name="h")
    assert "h" in here.all()
    everyone.remove("h")
    assert "h" not in here.all()


def variadic(*numbers: int) -> None: ...
def keywords(**options: int) -> None: ...
def generator() -> Any:
    yield 1


class Holder:
    def method(self, number: int) -> int:
        return number * 2

    def __call__(self, number: int) -> int:
        """Three times."""
        return number * 3

    @staticmethod
    def static(number: int) -> int:
        return number * 4


@pytest.mark.parametrize(
    ("thing", "options", "reason"),
    [
        (variadic, {}, r"\*numbers"),
        (keywords, {}, r"\*\*options"),
        (generator, {}, "return a list"),
        (lambda: 1, {}, "no name of its own"),
        (Holder, {}, "is a class"),
        (Holder.method, {}, "bound to an object"),
        (Holder.__dict__["static"], {}, "inside its class"),
        (Holder(), {}, "no name of its own"),
        (17, {}, "not a int"),
        (print, {}, r"\*args"),
        (dict.fromkeys, {"name": ""}, "cannot be an action's name"),
        (len, {"name": "two words"}, "cannot be an action's name"),
        (len, {"name": "x" * 65}, "at most 64"),
        (len, {"purity": "harmless"}, "pure, read, write"),
    ],
)
def test_what_cannot_be_an_action_is_refused_with_the_reason(thing: Any, options: Any, reason: str) -> None:
    with pytest.raises(RegistrationError, match=reason):
        FunctionRegister().action(thing, **options)


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (Holder().method, 8),
        (Holder(), 12),
        (Holder.static, 16),
        (partial(lambda factor, number: factor * number, 5), 20),
        (abs, 4),
    ],
)
async def test_bound_methods_callables_partials_and_builtins_work(
    notebook: Notebook, thing: Any, expected: int
) -> None:
    registered = notebook.functions.add(thing, name="it")
    (argument,) = registered.input_schema["properties"]
    assert await notebook.caller(categories).call("it", **{argument: 4}) == expected


def test_registering_runs_and_imports_nothing() -> None:
    import subprocess
    import sys

    code = (
        "import sys; import reyn_jupyter as reyn\n"
        "@reyn.action\ndef f(df: 'pd.DataFrame', n: int = 1): raise SystemExit('it ran')\n"
        "heavy = {'pandas', 'numpy', 'duckdb', 'jsonschema', 'litellm', 'IPython'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Schemas


def test_types_defaults_and_docstrings_make_the_schema() -> None:
    def discount(price: float, percent: float = 10, colour: Literal["red", "blue"] = "red") -> float:
        """Take a rebate off a price.

        Longer words.

        Args:
            price: before the rebate,
                in euros.
            percent (float): how much.

        Returns:
            The new price.
        """
        return price

    register = FunctionRegister()
    registered = register.add(discount)
    assert registered.description == "Take a rebate off a price.\n\nLonger words."
    assert registered.input_schema == {
        "type": "object",
        "properties": {
            "price": {"type": "number", "description": "before the rebate, in euros."},
            "percent": {"type": "number", "default": 10, "description": "how much."},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        },
        "required": ["price"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "docstring",
    [
        "Sum.\n\nArgs:\n    a: the first\n    b: the second",
        "Sum.\n\nParameters\n----------\na : int\n    the first\nb : int, optional\n    the second\n",
        "Sum.\n\n:param a: the first\n:param int b: the\n    second\n:returns: it",
        "Sum.\n\nArgs:\n    a (int): the\n      first\n    *b: the second\n\nAttributes:\n    c: no parameter",
    ],
)
def test_google_numpy_and_sphinx_docstrings_are_read(docstring: str) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    add.__doc__ = docstring
    registered = FunctionRegister().add(add)
    assert registered.description == "Sum."
    notes = {name: schema["description"] for name, schema in registered.input_schema["properties"].items()}
    assert notes == {"a": "the first", "b": "the second"}


@pytest.mark.parametrize(
    "docstring", ["Sum: of all.\n\n- a: the first\n- b", ":\n  : Sum\nArgs:", "Sum.\n:param"]
)
def test_a_docstring_in_no_known_form_is_a_description(docstring: str) -> None:
    def add(a: int) -> int:
        return a

    add.__doc__ = docstring
    registered = FunctionRegister().add(add)
    assert registered.description.startswith(docstring.partition("\n")[0])
    assert registered.input_schema["properties"] == {"a": {"type": "integer"}}


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, {"type": "integer"}),
        (str, {"type": "string", "x-reference": ["string"]}),
        (bool, {"type": "boolean"}),
        (list[int], {"type": "array", "items": {"type": "integer"}, "x-reference": ["array"]}),
        (
            dict[str, float],
            {"type": "object", "additionalProperties": {"type": "number"}, "x-reference": ["object"]},
        ),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (datetime, {"type": "string", "format": "date-time"}),
        (Annotated[int, Field(gt=0)], {"type": "integer", "exclusiveMinimum": 0}),
        (Any, {"x-reference": ["any"]}),
    ],
)
def test_json_types_become_their_json_schema(annotation: Any, expected: Any) -> None:
    def f(it): ...  # type: ignore[no-untyped-def]

    f.__annotations__["it"] = annotation
    assert schema_of(f)["properties"]["it"] == expected


@pytest.mark.parametrize(
    "annotation",
    [pd.DataFrame, pd.Series, np.ndarray, npt.NDArray[np.float64], Model, type, "Unknown", "pd.Nowhere["],
)
def test_a_type_that_json_cannot_carry_takes_only_a_reference(annotation: Any) -> None:
    def f(it, other: int = 1): ...  # type: ignore[no-untyped-def]

    f.__annotations__["it"] = annotation
    schema = schema_of(f)
    assert schema["properties"]["it"]["x-reference"] is True
    assert '{"$var"' in schema["properties"]["it"]["description"]
    assert schema["required"] == ["it"]


def test_an_alias_of_such_a_type_is_such_a_type() -> None:
    table = TypeAliasType("table", pd.DataFrame)

    def f(it, these, maybe=None): ...  # type: ignore[no-untyped-def]

    f.__annotations__ |= {"it": table, "these": list[table], "maybe": table | None}  # type: ignore[valid-type]
    schema = schema_of(f)
    assert "$defs" not in schema and "$ref" not in json.dumps(schema)
    it, these, maybe = (schema["properties"][name] for name in ("it", "these", "maybe"))
    assert it["x-reference"] is these["items"]["x-reference"] is maybe["anyOf"][0]["x-reference"] is True


def test_references_may_stand_inside_and_beside_json_types() -> None:
    def f(frames: list[pd.DataFrame], rate: float | pd.Series, model: Model = None) -> None: ...  # type: ignore[assignment]

    properties = schema_of(f)["properties"]
    assert properties["frames"]["items"]["x-reference"] is True
    assert [option.get("x-reference", option.get("type")) for option in properties["rate"]["anyOf"]] == [
        "number",
        True,
    ]
    assert [option.get("x-reference", option.get("type")) for option in properties["model"]["anyOf"]] == [
        True,
        "null",
    ]


def test_names_that_pydantic_keeps_for_itself_are_ordinary_parameters() -> None:
    def f(copy: int, json: int, _private: int, model_config: int, self: int = 0) -> int:
        return copy + json + _private + model_config + self

    register = FunctionRegister()
    registered = register.add(f)
    assert registered.call({"copy": 1, "json": 2, "_private": 3, "model_config": 4}) == 10


# Calling


async def test_arguments_become_the_types_of_the_signature(notebook: Notebook) -> None:
    got: dict[str, Any] = {}

    def f(day: date, colour: Colour, point: Point, items: set[int], either: int | None = 3) -> None:
        got.update(locals())

    notebook.functions.action(f)
    await notebook.caller(categories).call(
        "f", day="2024-02-03", colour="blue", point={"x": 1}, items=[1, 2], either=None
    )
    assert got["day"] == date(2024, 2, 3)
    assert (got["colour"], got["point"], got["items"], got["either"]) == (Colour.BLUE, Point(1), {1, 2}, None)


async def test_defaults_are_left_to_the_function_and_positional_only_parameters_work(
    notebook: Notebook,
) -> None:
    default = object()

    def f(a: int, b: object = default, /, c: int = 3, *, d: int = 4) -> tuple[Any, ...]:
        return a, b, c, d

    notebook.functions.action(f)
    assert await notebook.caller(categories).call("f", a=1, d=5) == (1, default, 3, 5)


@pytest.mark.parametrize("args", [{}, {"price": "dear"}, {"price": 1, "percnt": 2}, {"price": [1]}])
async def test_wrong_arguments_are_refused_before_the_call(notebook: Notebook, args: dict[str, Any]) -> None:
    called: list[float] = []

    def f(price: float, percent: float = 1) -> None:
        called.append(price)

    notebook.functions.action(f)
    with pytest.raises(InvalidArgumentsError):
        await notebook.caller(categories).call("f", **args)
    assert called == []


async def test_what_only_the_types_know_is_refused_with_the_argument_named(notebook: Notebook) -> None:
    def f(day: date) -> None: ...

    notebook.functions.action(f)
    with pytest.raises(ActionError, match=r"^day: "):
        await notebook.caller(categories).call("f", day="someday")


async def test_a_large_frame_arrives_by_reference_as_the_very_object(notebook: Notebook) -> None:
    frame = pd.DataFrame({"value": np.zeros(13_000_000)})  # 104 MB
    notebook.names["frame"] = frame

    @notebook.functions.action
    def same(df: pd.DataFrame) -> pd.DataFrame:
        return df

    caller = notebook.caller(categories)
    assert await caller.call("same", df={"$var": "frame"}) is frame
    assert [(source.kind, source.name) for source in caller.used] == [("variable", "frame")]


async def test_a_reference_only_parameter_refuses_json(notebook: Notebook) -> None:
    notebook.functions.action(lambda df: df, name="untyped")

    @notebook.functions.action
    def f(df: pd.DataFrame) -> None: ...

    with pytest.raises(InvalidArgumentsError, match="reference"):
        await notebook.caller(categories).call("f", df=[{"a": 1}])
    notebook.names["number"] = 7
    with pytest.raises(ActionError, match="df: Input should be an instance of DataFrame"):
        await notebook.caller(categories).call("f", df={"$var": "number"})


async def test_stored_records_become_the_frame_that_the_parameter_wants(notebook: Notebook) -> None:
    @notebook.functions.action
    def total(df: pd.DataFrame) -> int:
        return int(df["n"].sum())

    blob = await notebook.keep({"rows": [{"n": 1}, {"n": 2}]})
    caller = notebook.caller(categories)
    assert await caller.call("total", df={"$blob": blob, "path": "/rows"}) == 3
    assert [source.kind for source in caller.used] == ["blob"]


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("bad price\nand much more"), "ValueError: bad price\nand much more"),
        (ValueError("x" * 5000), f"ValueError: {'x' * 5000}"),
        (KeyError("region"), "KeyError: 'region'"),
        (MuteError(), "MuteError"),
        (SystemExit("bye"), "SystemExit: bye"),
        (asyncio.CancelledError(), "CancelledError"),
        (ActionError("no column", "Use region."), "no column"),
    ],
)
async def test_what_a_function_raises_is_told_in_full_with_the_traceback_kept(
    notebook: Notebook, error: BaseException, message: str
) -> None:
    @notebook.functions.action
    def fails() -> None:
        raise error

    with pytest.raises(ActionError) as caught:
        await notebook.caller(categories).call("fails")
    assert caught.value.message == message
    assert caught.value.__cause__ is error
    assert caught.value.hint.startswith(
        "Use region." if isinstance(error, ActionError) else "It was raised in fails"
    )


async def test_a_function_that_was_taken_out_is_said_to_be_gone(notebook: Notebook) -> None:
    notebook.functions.action(lambda: 1, name="f")
    caller = notebook.caller(categories)
    notebook.functions.remove("f")
    with pytest.raises(ActionError, match="no longer registered"):
        await caller.category.resources.tool.handler(  # type: ignore[union-attr]
            {"function": "f", "args": {}}, caller.context("f")
        )


def test_functions_run_on_the_main_thread_and_async_ones_are_awaited_on_the_engine(tmp_path: Path) -> None:
    engine = Engine()
    notebook = Notebook(tmp_path, main_thread=engine.main_thread)

    @notebook.functions.action
    def where(text: Annotated[str, Field(min_length=1)]) -> str:
        return threading.current_thread().name

    @notebook.functions.action
    async def later() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    @notebook.functions.action
    async def fails() -> None:
        raise LookupError("nothing")

    caller = notebook.caller(categories)
    assert engine.run(caller.call("where", text="x")) == threading.main_thread().name
    assert engine.run(caller.call("later")) == "reyn-engine"
    with pytest.raises(ActionError, match="LookupError: nothing"):
        engine.run(caller.call("fails"))


async def test_the_listing_carries_schema_purity_and_description(notebook: Notebook) -> None:
    notebook.functions.action(lambda number: number, name="b", purity="pure", description="Identity.")
    notebook.functions.action(lambda: None, name="a")
    entries = await notebook.caller(categories).entries()
    assert list(entries) == ["a", "b"]
    assert (entries["b"].purity, entries["b"].description) == (Purity.PURE, "Identity.")
    assert entries["a"].description == "The notebook's function a()."
