"""What becomes what: any Python value as content, without running anything of the person's."""

from __future__ import annotations

import dataclasses
import enum
import json
import subprocess
import sys
from collections import OrderedDict, defaultdict, namedtuple
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from pydantic import BaseModel, Field, SecretStr

from reyn_jupyter.outputs.content import Structured, Text
from reyn_jupyter.outputs.convert import ValueTooLargeError, label_of, to_content
from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.support.encoding import clip, compact

json_values = some.recursive(
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(),
    lambda inner: some.lists(inner, max_size=5) | some.dictionaries(some.text(), inner, max_size=5),
    max_leaves=20,
)


@given(json_values)
def test_json_values_stay_what_they_are(value: object) -> None:
    content = to_content([value])
    assert isinstance(content, Structured)
    assert json.loads(compact(content.value)) == [value]


def test_large_integers_survive() -> None:
    content = to_content({"n": 2**53 + 1, "m": 10**30})
    assert isinstance(content, Structured)
    assert compact(content.value) == '{"n":9007199254740993,"m":1000000000000000000000000000000}'


def test_numbers_that_json_lacks_are_tagged() -> None:
    assert to_content([float("nan"), float("inf"), -float("inf")]) == Structured(
        [{"$number": "NaN"}, {"$number": "Infinity"}, {"$number": "-Infinity"}]
    )
    assert to_content(float("nan")) == Text('{"$number":"NaN"}')
    assert isinstance(to_content(10**6000), Text)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), (True, "true"), (5, "5"), (1.5, "1.5"), ("5", "5"), ("hello", "hello"), ('"a"', '"a"')],
)
def test_scalars_are_text(value: object, text: str) -> None:
    assert to_content(value) == Text(text)


def test_a_string_that_is_a_json_document_keeps_its_bytes() -> None:
    source = ' {"a": [1, 2],\n "b": 1.10}\n'
    content = to_content(source)
    assert isinstance(content, Structured)
    assert (content.value, content.source) == ({"a": [1, 2], "b": 1.1}, source)
    assert to_content(Text(source)) == Text(source)


@pytest.mark.parametrize("text", ["[1, NaN]", "[1, 2", "{'a': 1}", "[" * 100_000, "[1]x", "{", "\ufeff[1]"])
def test_what_only_looks_like_json_is_text(text: str) -> None:
    assert to_content(text) == Text(text)


def test_containers_and_models() -> None:
    @dataclasses.dataclass
    class Point:
        x: int
        y: object = None

    @dataclasses.dataclass(slots=True)
    class Slotted:
        a: int

    class Person(BaseModel):
        name: str
        secret: SecretStr
        hidden: int = Field(default=1, exclude=True)

    pair = namedtuple("pair", "a b")
    assert to_content((1, 2)) == Structured([1, 2])
    assert to_content(pair(1, 2)) == Structured([1, 2])
    assert to_content(Point(1, Slotted(2))) == Structured({"x": 1, "y": {"a": 2}})
    assert to_content(Person(name="A", secret=SecretStr("s"))) == Structured(
        {"name": "A", "secret": "SecretStr"}
    )
    assert to_content(OrderedDict(b=1, a=2)) == Structured({"b": 1, "a": 2})
    assert to_content(defaultdict(list, a=[1])) == Structured({"a": [1]})
    assert to_content({3, 1, 2}) == Structured([1, 2, 3])
    assert to_content(b"abc") == Structured({"bytes": 3, "base64": "YWJj"})
    assert to_content(
        {"when": date(2024, 1, 2), "at": datetime(2024, 1, 2, tzinfo=UTC), "d": Decimal("1.10")}
    ) == Structured({"when": "2024-01-02", "at": "2024-01-02T00:00:00+00:00", "d": "1.10"})


def test_keys_become_distinct_strings_in_order() -> None:
    content = to_content(
        {1: "a", "1": "b", None: "c", (1, "x"): "d", False: "e", object(): "f", Exception(): "g"}
    )
    assert isinstance(content, Structured)
    assert list(content.value) == ["1", "1_2", "null", '[1,"x"]', "false", "object", "Exception"]


def test_numpy_scalars_and_arrays_inside_values() -> None:
    value = {
        "i": np.int64(2**53 + 1),
        "f": np.float32(0.5),
        "n": np.float64("nan"),
        "b": np.bool_(True),
        "a": np.eye(2),
    }
    assert to_content(value) == Structured(
        {"i": 2**53 + 1, "f": 0.5, "n": {"$number": "NaN"}, "b": True, "a": [[1.0, 0.0], [0.0, 1.0]]}
    )


class Hostile:
    """Everything that could run, raises."""

    def __repr__(self) -> str:
        raise AssertionError("repr was called")

    __str__ = __iter__ = __len__ = __eq__ = __bool__ = __hash__ = __repr__  # type: ignore[assignment]

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")


class HostileMapping(dict[str, Any]):
    def items(self) -> Any:
        raise AssertionError("items was called")

    __iter__ = __getitem__ = __len__ = keys = values = items  # type: ignore[assignment]


class HostileText(str):
    def __str__(self) -> str:
        raise AssertionError("str was called")

    encode = __len__ = lower = __str__  # type: ignore[assignment]


class HostileMeta(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise AssertionError("the name of the type was computed")


def test_nothing_of_a_hostile_object_runs() -> None:
    @dataclasses.dataclass
    class Sly:
        x: int = 1

        @property
        def y(self) -> int:
            raise AssertionError("a property was read")

    class Coloured(enum.Enum):
        RED = 1

    assert to_content(Hostile()) == Text("Hostile")
    assert to_content([Hostile(), Sly()]) == Structured(["Hostile", {"x": 1}])
    assert to_content(HostileMapping(a=1)) == Structured({"a": 1})
    assert to_content(HostileText("plain")) == Text("plain")
    assert to_content({"e": Coloured.RED, "f": len, "t": int}) == Structured(
        {"e": "Coloured", "f": "builtin_function_or_method", "t": "type"}
    )
    named = HostileMeta("Named", (), {})()
    assert to_content([named]) == Structured(["Named"])


async def test_cycles_depth_and_explosive_sharing_do_no_harm() -> None:
    cycle: list[Any] = [1]
    cycle.append(cycle)
    assert to_content(cycle) == Structured([1, "array(2), a cycle"])
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert (await deliver(deep, store=None)).text.startswith("[[[")
    shared: Any = ["x" * 100]
    for _ in range(60):
        shared = [shared, shared]
    with pytest.raises(ValueTooLargeError):
        to_content(shared, budget=10_000)


def test_lone_surrogates_stay_valid() -> None:
    content = to_content({"a": "\ud800"})
    assert isinstance(content, Structured)
    assert json.loads(compact(content.value).encode()) == {"a": "\ud800"}


@pytest.mark.parametrize("text", ["a\ud800b", "\ud83d\ude00"])
async def test_inline_text_is_always_utf8(text: str) -> None:
    (await deliver(text, store=None)).text.encode()


@given(some.text(), some.integers(0, 60))
def test_clipping_keeps_to_its_bytes(text: str, limit: int) -> None:
    clipped = clip(text, limit)
    assert len(clipped.encode()) <= limit
    assert clipped == text or clipped.endswith("…") or limit < 3


@pytest.mark.parametrize(
    ("value", "label"),
    [(None, "null"), (True, "bool"), (1, "number"), (1.5, "number"), ("x" * 50, "string"), ("漢" * 17, "string(51)"),
     ([], "array(0)"), ({"a": 1}, "object(1)"), ({"$number": "NaN"}, "number")],
)  # fmt: skip
def test_labels(value: object, label: str) -> None:
    assert label_of(value) == label


def test_converting_imports_no_pandas() -> None:
    script = (
        "import sys, asyncio\n"
        "from reyn_jupyter.outputs.delivery import deliver\n"
        "from reyn_jupyter.outputs.blobs.file_store import FsBlobStore\n"
        "from reyn_jupyter.outputs import error_payloads, inspect\n"
        "from reyn_jupyter.outputs import blob\nfrom reyn_jupyter.outputs.blobs import in_memory_store\n"
        "asyncio.run(deliver({'a': [1, 2.5, 'x'], 'b': object()}, store=FsBlobStore('/nowhere')))\n"
        "print([name for name in ('pandas', 'numpy', 'duckdb', 're2', 'jsonschema') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
