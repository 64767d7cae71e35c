from __future__ import annotations

import json
import math
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reyn_jupyter.categories.variable import categories
from reyn_jupyter.config import Settings
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.namespace.variables import visible_now
from reyn_jupyter.sessions.result_objects import Card
from tests.categories.notebook_support import SECRET, Hostile, InvalidArgumentsError, Notebook


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(tmp_path)


@pytest.fixture
def orders() -> pd.DataFrame:
    return pd.DataFrame({"region": ["north", "south"] * 50, "value": range(100)})


async def test_a_frame_is_listed_with_its_size_and_first_columns(
    notebook: Notebook, orders: pd.DataFrame
) -> None:
    notebook.names["orders"] = orders
    entries = await notebook.caller(categories).entries()
    assert entries["orders"].description == "DataFrame, 100 rows × 2 columns: region, value"


async def test_a_frame_is_described_by_shape_columns_memory_and_first_rows(
    notebook: Notebook, orders: pd.DataFrame
) -> None:
    notebook.names["orders"] = orders
    caller = notebook.caller(categories)
    told = await caller.call("orders", rows=2)
    assert told["shape"] == [100, 2]
    assert told["columns"] == [
        {"name": "region", "dtype": str(orders["region"].dtype)},
        {"name": "value", "dtype": "int64"},
    ]
    assert told["memory_bytes"] > 0
    assert told["head"] == [{"region": "north", "value": 0}, {"region": "south", "value": 1}]
    assert [(source.kind, source.name) for source in caller.used] == [("variable", "orders")]


async def test_of_a_very_wide_frame_only_the_columns_that_are_named_are_looked_at(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.names["wide"] = pd.DataFrame(np.zeros((3, 200_000)))
    looked_at: list[int] = []
    iloc = pd.DataFrame._ixs

    def watched(frame: pd.DataFrame, at: int, axis: int = 0) -> object:
        looked_at.append(at)
        return iloc(frame, at, axis)

    monkeypatch.setattr(pd.DataFrame, "_ixs", watched)
    told = await notebook.caller(categories).call("wide", rows=2)
    assert told["shape"] == [3, 200_000] and len(told["columns"]) == 100
    assert told["columns_left_out"] == 199_900 and "memory_bytes" not in told
    assert len(told["head"]) == 2 and len(looked_at) < 1000


async def test_under_schema_no_content_is_shown(notebook: Notebook, orders: pd.DataFrame) -> None:
    notebook.names |= {"orders": orders, "secretive": "the plan", "numbers": [987654], "price": 987654}
    caller = notebook.caller(categories, variables="schema")
    for name in notebook.names.keys() - {"secretive"}:
        told = await caller.call(name)
        assert "head" not in told and "value" not in told
        assert "987654" not in json.dumps(told) and "north" not in json.dumps(told)
    assert await caller.call("secretive") == {"name": "secretive", "type": "str", "length": 8}


async def test_off_hides_the_category_and_refuses_the_call(notebook: Notebook, orders: pd.DataFrame) -> None:
    notebook.names["orders"] = orders
    notebook.settings = Settings(variables="off")
    caller = notebook.caller(categories, variables="off")
    assert caller.category.hidden() is not None
    with pytest.raises(ActionError, match="switched off"):
        await caller.call("orders")


@pytest.mark.parametrize("rows", [0, 21, "many"])
async def test_the_number_of_rows_is_bounded(notebook: Notebook, orders: pd.DataFrame, rows: object) -> None:
    notebook.names["orders"] = orders
    with pytest.raises(InvalidArgumentsError):
        await notebook.caller(categories).call("orders", rows=rows)


async def test_private_names_code_and_what_belongs_to_ipython_are_no_variables(notebook: Notebook) -> None:
    notebook.names |= {
        "_": 1, "_hidden": 2, "__name__": "x", "In": [""], "Out": {}, "exit": object(), "json": json,
        "helper": lambda: 1, "Kind": type("Kind", (), {}), "printer": print, "kept": 3, "not a name": 4, 5: 6,
    }  # fmt: skip
    assert list(await notebook.caller(categories).entries()) == ["kept"]


@pytest.mark.parametrize(
    "name",
    ["api_key", "OPENAI_API_KEY", "apikey", "token", "githubToken", "password", "db_password", "client_secret",
     "credentials", "private_key", "access_tokens", "jwt"],
)  # fmt: skip
async def test_a_variable_named_like_a_secret_is_never_shown(notebook: Notebook, name: str) -> None:
    notebook.names[name] = "x"
    caller = notebook.caller(categories)
    assert await caller.entries() == {}
    tool = caller.category.resources.tool  # type: ignore[union-attr]
    with pytest.raises(ActionError, match="looks like a secret"):
        await tool.handler({"variable": name}, caller.context(name))


@pytest.mark.parametrize(
    "name", ["tokens", "tokenizer", "sort_key", "keyboard", "monkey", "author", "secretary"]
)
async def test_ordinary_words_are_no_secrets(notebook: Notebook, name: str) -> None:
    notebook.names[name] = "region"
    assert list(await notebook.caller(categories).entries()) == [name]


@pytest.mark.parametrize("value", [SECRET, f"key: {SECRET}".encode(), "AKIA" + "ABCDEFGHIJKLMNOP"])
async def test_a_text_that_holds_a_secret_is_never_shown(notebook: Notebook, value: object) -> None:
    notebook.names["harmless"] = value
    assert await notebook.caller(categories).entries() == {}


async def test_values_under_secret_looking_columns_and_keys_are_hidden(notebook: Notebook) -> None:
    notebook.names["users"] = pd.DataFrame({"user": ["ann"], "password": ["hunter2"]})
    notebook.names["config"] = {"host": "db", "api_key": "hunter2", "inner": {"token": "hunter2"}}
    caller = notebook.caller(categories)
    assert (await caller.call("users"))["head"] == [{"user": "ann", "password": "[hidden]"}]
    assert "hunter2" not in json.dumps(await caller.call("config"))


@pytest.mark.parametrize("policy", ["schema", "head"])
async def test_an_unknown_object_gives_its_type_name_and_none_of_its_code_runs(
    notebook: Notebook, policy: str
) -> None:
    class Meta(type):
        def __getattribute__(cls, name: str) -> object:
            Hostile.calls.append(f"type.{name}")
            raise RuntimeError(name)

    class Worse(Hostile, metaclass=Meta):
        pass

    class Frame(pd.DataFrame):
        @property
        def shape(self) -> tuple[int, int]:
            Hostile.calls.append("shape")
            raise RuntimeError("shape")

    class Items(list[int]):
        def __len__(self) -> int:
            Hostile.calls.append("len")
            raise RuntimeError("len")

    thing = Hostile()
    notebook.names |= {
        "thing": thing,
        "worse": object.__new__(Worse),
        "frame": Frame({"a": [1]}),
        "items": Items([1]),
        "inside": [thing, {"deep": thing}],
        "keyed": {"thing": thing},
        "cells": pd.DataFrame({"a": pd.Series([thing], dtype=object), "b": [1]}),
        "array": np.array([None, thing], dtype=object),
    }
    Hostile.calls.clear()
    caller = notebook.caller(categories, variables=policy)
    entries = await caller.entries()
    caller.category.revision()
    told = {name: await caller.call(name) for name in notebook.names}
    assert Hostile.calls == []
    assert {name: entry.description for name, entry in entries.items()} | {"cells": "", "array": ""} == {
        "thing": "Hostile", "worse": "Worse", "frame": "Frame", "items": "Items", "inside": "list, 2 elements",
        "keyed": "dict, 1 key", "cells": "", "array": "",
    }  # fmt: skip
    assert told["thing"] == {"name": "thing", "type": "Hostile", "note": "Only its type is shown."}
    assert told["inside"]["elements"] == {"Hostile": 1, "dict": 1}
    if policy == "head":
        assert told["cells"]["head"] == [{"a": "<Hostile>", "b": 1}]
        assert told["inside"]["head"] == ["<Hostile>", {"deep": "<Hostile>"}]
        assert told["array"]["head"] == [None, "<Hostile>"]


@pytest.mark.parametrize(
    ("value", "type_", "head"),
    [
        (17, "int", 17),
        (None, "NoneType", None),
        (math.nan, "float", {"$number": "NaN"}),
        (Decimal("1.5"), "Decimal", "1.5"),
        (date(2024, 2, 3), "date", "2024-02-03"),
        (np.float64(1.5), "float64", 1.5),
        (pd.Timestamp("2024-02-03"), "Timestamp", "2024-02-03T00:00:00"),
        (10**400, "int", "<int>"),
    ],
)
async def test_scalars_are_shown_as_they_are(
    notebook: Notebook, value: object, type_: str, head: object
) -> None:
    notebook.names["it"] = value
    told = await notebook.caller(categories).call("it")
    assert (told["type"], told["value"]) == (type_, head)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(),
        pd.DataFrame({"a": []}),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])),
        pd.DataFrame({0: [1], None: [2], (1, 2): [3]}),
        pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([("x", 1)], names=["k", None])),
        pd.DataFrame({"c": pd.Categorical(["x", None]), "p": pd.period_range("2024", periods=2, freq="D")}),
        pd.DataFrame({"i": pd.interval_range(0, 2), "s": pd.arrays.SparseArray([0, 1]), "z": [1j, 2]}),
        pd.DataFrame({"t": pd.to_datetime(["2024-01-01", None]).tz_localize("Europe/Berlin")}),
        pd.DataFrame({"n": pd.array([1, None], dtype="Int64"), "x": [math.inf, math.nan]}),
        pd.DataFrame({"long": ["x" * 100_000], "nested": [[list(range(10_000))]], "bytes": [b"\x00" * 5000]}),
        pd.DataFrame(np.zeros((2, 5000))),
        pd.DataFrame(
            [["\ud800", "<script>"]], columns=pd.Index(["\ud800", "\x00"], dtype=object), dtype=object
        ),
    ],
)
async def test_weird_frames_are_described_in_bounded_plain_json(
    notebook: Notebook, frame: pd.DataFrame
) -> None:
    notebook.names["it"] = frame
    caller = notebook.caller(categories)
    told = await caller.call("it", rows=20)
    assert told["shape"] == list(frame.shape)
    assert len(json.dumps(told)) < 60_000
    assert (await caller.entries())["it"].description.startswith("DataFrame, ")


async def test_long_texts_and_containers_are_cut_and_say_so(notebook: Notebook) -> None:
    notebook.names |= {
        "text": "x" * 5000,
        "many": list(range(100_000)),
        "wide": {str(n): n for n in range(500)},
    }
    caller = notebook.caller(categories)
    text, many, wide = [await caller.call(name) for name in ("text", "many", "wide")]
    assert (len(text["head"]), text["characters_left_out"]) == (1000, 4000)
    assert (many["length"], many["head"]) == (100_000, [0, 1, 2, 3, 4])
    assert (len(wide["keys"]), wide["keys_left_out"]) == (30, 470)


async def test_arrays_series_and_records_show_their_schema(notebook: Notebook) -> None:
    notebook.names |= {
        "grid": np.arange(6).reshape(2, 3),
        "zero": np.array(7),
        "series": pd.Series([1.5, 2.5], index=["a", "b"], name="price"),
        "records": [{"id": 1, "tags": ["x"]}],
    }
    caller = notebook.caller(categories)
    assert (await caller.call("grid"))["head"] == [[0, 1, 2], [3, 4, 5]]
    assert (await caller.call("zero"))["head"] == 7
    series = await caller.call("series")
    assert series["head"] == [{"(index)": "a", "price": 1.5}, {"(index)": "b", "price": 2.5}]
    assert (await caller.call("records"))["first_element"] == {"id": "int", "tags": "list, 1 element"}


async def test_named_levels_of_an_index_are_told_like_columns(notebook: Notebook) -> None:
    levels = pd.MultiIndex.from_tuples([("north", 1), ("south", 2)], names=["region", None])
    notebook.names["frame"] = pd.DataFrame({"price": [1.5, 2.5]}, index=levels)
    told = await notebook.caller(categories).call("frame")
    assert [level["name"] for level in told["index"]] == ["region", "level_1"]
    assert told["head"][0] == {"region": "north", "level_1": 1, "price": 1.5}


async def test_the_revision_moves_with_names_types_objects_and_shapes(
    notebook: Notebook, orders: pd.DataFrame
) -> None:
    notebook.names |= {"orders": orders, "items": [1]}
    revision = notebook.caller(categories).category.revision
    seen = [revision()]
    assert revision() == seen[0]
    notebook.names["_private"] = 1
    assert revision() == seen[0]
    for change in (
        lambda: notebook.names.update(new=1),
        lambda: notebook.names.update(new="1"),
        lambda: notebook.names["items"].append(2),
        lambda: orders.insert(0, "id", 1),
        lambda: setattr(orders, "columns", ["key", "region", "value"]),
        lambda: notebook.names.pop("new"),
    ):
        change()
        assert revision() not in seen
        seen.append(revision())


async def test_a_missing_variable_names_the_nearest(notebook: Notebook, orders: pd.DataFrame) -> None:
    notebook.names["orders"] = orders
    caller = notebook.caller(categories)
    tool = caller.category.resources.tool  # type: ignore[union-attr]
    with pytest.raises(ActionError) as caught:
        await tool.handler({"variable": "ordres"}, caller.context("ordres"))
    assert "Did you mean orders?" in caught.value.hint


async def test_variables_are_looked_at_on_the_main_thread_only(
    notebook: Notebook, orders: pd.DataFrame
) -> None:
    served: list[str] = []

    async def main_thread(function):  # type: ignore[no-untyped-def]
        served.append("call")
        return function()

    notebook.names["orders"], notebook.main_thread = orders, main_thread
    await notebook.caller(categories).call("orders")
    assert served == ["call", "call"]  # the listing, and the description


def test_without_pandas_in_the_process_nothing_imports_it(tmp_path: Path) -> None:
    import subprocess

    code = (
        "import sys; from reyn_jupyter.backends.object_summary import describe, title, shape\n"
        "values = [1, 'x', [1], {'a': 1}, object(), None]\n"
        "[(title(v), shape(v), describe(v, 5, head=True)) for v in values]\n"
        "assert not {'pandas', 'numpy', 'duckdb'} & set(sys.modules), 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_the_sessions_own_objects_are_no_variables_of_the_person(notebook: Notebook) -> None:
    notebook.names |= {"kept": Card("status", "a card"), "orders": [1, 2]}
    assert [name for name, _ in visible_now(notebook.services)] == ["orders"]


async def test_what_is_no_number_in_a_frame_is_null(notebook: Notebook) -> None:
    mixed = pd.Series([np.float64("nan"), np.float32("inf"), {"$number": "NaN"}], dtype=object)
    notebook.names["it"] = pd.DataFrame({"x": [math.nan, -math.inf, 1.5], "mixed": mixed})
    told = await notebook.caller(categories).call("it", rows=3)
    assert [row["x"] for row in told["head"]] == [None, None, 1.5]
    assert [row["mixed"] for row in told["head"]] == [None, None, {"$number": "NaN"}]
