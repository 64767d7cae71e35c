from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reyn_jupyter.catalog.names import ActionName
from reyn_jupyter.config import Settings
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.outputs.convert import to_content
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.call.reference_resolver import at_pointer, open_references
from reyn_jupyter.runtime.services import Services, Source, ToolContext
from reyn_jupyter.support.secrets import Redactor
from tests.support.plain_context import PlainContext

ANY = {"x-reference": ["any"]}
EVERYWHERE = {
    "type": "object",
    "additionalProperties": {**ANY, "items": {**ANY, "additionalProperties": ANY}},
}
NAMES: dict[str, Any] = {
    "orders": pd.DataFrame({"a": [1]}),
    "_": 42,
    "api_key": "x",
    "helper": len,
    "_hidden": 1,
}


@pytest.fixture
def store() -> MemoryBlobStore:
    return MemoryBlobStore()


@pytest.fixture
def used() -> list[Source]:
    return []


@pytest.fixture
def context(tmp_path: Path, store: MemoryBlobStore, used: list[Source]) -> ToolContext:
    return make_context(tmp_path, store, used)


def make_context(
    root: Path, store: Any, used: list[Source], actor: Any = "model", variables: Any = "head"
) -> ToolContext:
    async def main_thread(function: Any) -> Any:
        return function()

    services = Services(
        root=root,
        workspace=Workspace(root),
        namespace=lambda: NAMES,
        functions=dict,
        settings=Settings,
        blobs=store,
        redactor=Redactor({}),
        main_thread=main_thread,
    )
    name = ActionName("function", "f")
    return PlainContext(services, name, actor, variables=variables, sources=used)


async def test_arguments_without_a_reference_come_back_as_they_are(context: ToolContext) -> None:
    args = {"a": [1, {"b": "x"}]}
    assert await open_references(EVERYWHERE, args, context) is args


async def test_a_variable_is_the_very_object_wherever_it_stands(
    context: ToolContext, used: list[Source]
) -> None:
    args = {"df": {"$var": "orders"}, "more": [{"deep": {"$var": "orders"}}], "plain": 1}
    opened = await open_references(EVERYWHERE, args, context)
    assert opened["df"] is opened["more"][0]["deep"] is NAMES["orders"]
    assert opened["plain"] == 1 and args["df"] == {"$var": "orders"}
    assert used == [Source("variable", "orders")]


@pytest.mark.parametrize(
    ("stored", "pointer", "expected"),
    [
        ({"rows": [{"n": 1}], "a/b": {"~": 7}}, None, {"rows": [{"n": 1}], "a/b": {"~": 7}}),
        ({"rows": [{"n": 1}], "a/b": {"~": 7}}, "/rows/0/n", 1),
        ({"rows": [{"n": 1}], "a/b": {"~": 7}}, "/a~1b/~0", 7),
        ([{"n": 1}, {"n": 2}], None, [{"n": 1}, {"n": 2}]),
        ({"": {"": 5}}, "//", 5),
        ("plain words", None, "plain words"),
    ],
)
async def test_a_blob_is_opened_whole_or_by_its_json_pointer(
    context: ToolContext, store: MemoryBlobStore, used: list[Source], stored: Any, pointer: Any, expected: Any
) -> None:
    blob = await store.store(to_content(stored))
    args = {"it": {"$blob": blob} if pointer is None else {"$blob": blob, "path": pointer}}
    assert (await open_references(EVERYWHERE, args, context))["it"] == expected
    assert used == [Source("blob", blob)]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(
            {"when": pd.to_datetime(["2024-01-01", None]), "n": [1, 2]}, index=pd.Index([5, 6], name="k")
        ),
        pd.Series([1.5, 2.5], name="price"),
        np.arange(6).reshape(2, 3),
        np.array([1.5, 2.5]),
    ],
)
async def test_a_stored_table_comes_back_as_what_it_was(
    context: ToolContext, store: MemoryBlobStore, table: Any
) -> None:
    blob = await store.store(to_content(table))
    opened = (await open_references(EVERYWHERE, {"it": {"$blob": f"[blob:{blob}]"}}, context))["it"]
    assert type(opened) is type(table)
    if isinstance(table, np.ndarray):
        assert opened.dtype == table.dtype
        np.testing.assert_array_equal(opened, table)
    elif isinstance(table, pd.Series):
        pd.testing.assert_series_equal(opened, table)
    else:
        pd.testing.assert_frame_equal(opened, table)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"$var": "ordres"}, "no variable 'ordres'"),
        ({"$var": "_hidden"}, "it is private"),
        ({"$var": "helper"}, "it is code"),
        ({"$var": "api_key"}, "looks like a secret"),
        ({"$var": "__import__('os')"}, "no variable"),
        ({"$blob": "../../etc/passwd"}, "is no blob id"),
        ({"$blob": "0197f9a2-7c1b-7e3c-8a55-3b0f8e1d2c4a"}, "no blob"),
    ],
)
async def test_what_may_not_be_named_is_refused(
    context: ToolContext, used: list[Source], reference: Any, message: str
) -> None:
    with pytest.raises(ActionError, match=message):
        await open_references(EVERYWHERE, {"deep": [reference]}, context)
    assert used == []


async def test_the_person_may_name_private_variables_and_functions_but_no_secret(tmp_path: Path) -> None:
    context = make_context(tmp_path, None, [], actor="person")
    await open_references(EVERYWHERE, {"a": {"$var": "_"}, "b": {"$var": "helper"}}, context)
    with pytest.raises(ActionError, match="secret"):
        await open_references(EVERYWHERE, {"a": {"$var": "api_key"}}, context)


async def test_with_variables_off_none_can_be_named(tmp_path: Path, store: MemoryBlobStore) -> None:
    with pytest.raises(ActionError, match="switched off"):
        await open_references(
            EVERYWHERE, {"a": {"$var": "orders"}}, make_context(tmp_path, store, [], variables="off")
        )


async def test_a_session_without_blobs_says_so(tmp_path: Path) -> None:
    with pytest.raises(ActionError, match="keeps no blobs"):
        await open_references(
            EVERYWHERE,
            {"a": {"$blob": "0197f9a2-7c1b-7e3c-8a55-3b0f8e1d2c4a"}},
            make_context(tmp_path, None, []),
        )


@pytest.mark.parametrize(
    "pointer", ["/nope", "/rows/7", "/rows/01", "/rows/-1", "/rows/x", "/rows/0/n/deeper", "/rows/²"]
)
def test_a_pointer_that_leads_nowhere_says_what_is_there(pointer: str) -> None:
    with pytest.raises(ActionError, match="leads nowhere") as caught:
        at_pointer({"rows": [{"n": 1}]}, pointer)
    assert caught.value.hint.startswith("At ")


async def test_a_text_has_no_parts(context: ToolContext, store: MemoryBlobStore) -> None:
    blob = await store.store(to_content("words"))
    with pytest.raises(ActionError, match="has no parts"):
        await open_references(EVERYWHERE, {"it": {"$blob": blob, "path": "/a"}}, context)


async def test_a_store_that_fails_is_told_in_plain_words(tmp_path: Path) -> None:
    class Broken(MemoryBlobStore):
        def describe(self, blob_id: str) -> Any:
            raise BlobStoreError("disk on fire")

    context = make_context(tmp_path, Broken(), [])
    with pytest.raises(ActionError, match="disk on fire"):
        await open_references(EVERYWHERE, {"a": {"$blob": "0197f9a2-7c1b-7e3c-8a55-3b0f8e1d2c4a"}}, context)
