"""The values of a query are those of DuckDB: in the frame, for the model, in a stored result, and in the next query."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reyn_jupyter as reyn
from reyn_jupyter.backends.sql.sql_wire import AnswerError, write_answer

WIDE = 2**127 - 1
FAR = dt.date(9999, 12, 31)
FIRST, LAST = (
    pd.Timestamp(f"{day}T01:02:03").as_unit("us").to_pydatetime() for day in ("0001-01-01", "9999-12-31")
)
MOMENT = pd.Timestamp("2024-02-03 04:05:06.789012").to_pydatetime()
# A literal of each type of DuckDB, and its value here. Where it is None, the value is the one of `fetchall`.
LITERALS: dict[str, Any] = {
    **{f"({low})::{kind}": low for kind, low in (
        ("TINYINT", -128), ("SMALLINT", -(2**15)), ("INTEGER", -(2**31) + 1), ("BIGINT", 2**63 - 1), ("UTINYINT", 255),
        ("USMALLINT", 2**16 - 1), ("UINTEGER", 2**32 - 1), ("UBIGINT", 2**64 - 1), ("HUGEINT", WIDE),
        ("UHUGEINT", 2**128 - 1), ("BIGNUM", 10**60 + 1),
    )},
    "2::HUGEINT": 2,
    "true": True, "false": False, "1.5::FLOAT": 1.5, "0.1::DOUBLE": 0.1, "'-inf'::DOUBLE": float("-inf"),
    "1.10::DECIMAL(3,2)": Decimal("1.10"), "0.1::DECIMAL(9,1)": Decimal("0.1"), "12.5::DECIMAL(18,4)": Decimal("12.5"),
    "12345678901234567890123456789012345.123::DECIMAL(38,3)": Decimal("12345678901234567890123456789012345.123"),
    "DATE '2024-02-03'": dt.date(2024, 2, 3), "DATE '9999-12-31'": FAR, "DATE '0001-01-01'": dt.date.min,
    "DATE 'infinity'": "infinity", "DATE '-infinity'": "-infinity", "DATE '0044-03-15 (BC)'": "0044-03-15 (BC)",
    "DATE '20240-01-01'": "20240-01-01",
    "TIME '12:34:56.789'": dt.time(12, 34, 56, 789000), "TIME '24:00:00'": "24:00:00",
    "'01:02:03.5'::TIME_NS": dt.time(1, 2, 3, 500000), "'01:02:03.123456789'::TIME_NS": "01:02:03.123456789",
    "'12:34:56+05:30'::TIMETZ": None, "'12:34:56-05:30:15'::TIMETZ": None,
    "'2024-02-03 04:05:06'::TIMESTAMP_S": MOMENT.replace(microsecond=0),
    "'2024-02-03 04:05:06.789'::TIMESTAMP_MS": MOMENT.replace(microsecond=789000),
    "'2024-02-03 04:05:06.789012'::TIMESTAMP": MOMENT,
    "'2024-02-03 04:05:06.789012345'::TIMESTAMP_NS": pd.Timestamp("2024-02-03 04:05:06.789012345"),
    "'2024-02-03 04:05:06+02'::TIMESTAMPTZ": dt.datetime(2024, 2, 3, 2, 5, 6, tzinfo=dt.UTC),
    "'infinity'::TIMESTAMP": "infinity", "'-infinity'::TIMESTAMP_NS": "-infinity",
    "'infinity'::TIMESTAMPTZ": "infinity",
    "INTERVAL '1 month 3 hours'": dt.timedelta(days=30, hours=3), "INTERVAL '-1 microsecond'": None,
    "'00000000-0000-0000-0000-000000000005'::UUID": UUID(int=5), r"'\xFF\x00'::BLOB": b"\xff\0", "''::BLOB": b"",
    "'0101'::BIT": "0101", "'text'": "text", "''": "", "'<NA>'": "<NA>", "'nan'": "nan", "chr(0) || 'ä'": "\0ä",
    "'b'::ENUM('a', 'b')": "b", "'null'::JSON": "null",
    "[1, NULL, 3]": None, "[]": None, "[[1, NULL], NULL]": None, "[true, NULL]": None, "[1, 2]::INTEGER[2]": [1, 2],
    "['a'::ENUM('a')]": None, f"[{WIDE}::HUGEINT, NULL]": None, "[1.50::DECIMAL(3,2), NULL]": None,
    "[DATE '9999-12-31', NULL]": None, "[TIMESTAMP '2024-01-01']": None, "[INTERVAL '1 hour', NULL]": None,
    "{'a': 1, 'b': NULL, 'c': [{'d': DATE '2024-01-01'}]}": None, "MAP {'k': 1, 'n': NULL}": None,
    "union_value(num := 2)": None, "row(1, NULL)": [1, None], "42::VARIANT": 42, "MAP {[1]: 'x'}": None,
}  # fmt: skip


@pytest.fixture
def names() -> dict[str, Any]:
    return {}


@pytest.fixture
def session(tmp_path: Path, names: dict[str, Any]) -> Iterator[reyn.Session]:
    with closing(reyn.Session(tmp_path, namespace=names, store="memory")) as opened:
        yield opened


def query(session: reyn.Session, sql: str, **sources: str) -> Any:
    result = session.invoke_action("table__query", {"sql": sql, "sources": sources})
    assert result.ok, (sql, result.payload)
    return result


def cell(value: Any) -> Any:
    """A cell of a frame in plain Python, with None for everything that pandas calls missing."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, list | tuple):
        return [cell(item) for item in value]
    return {key: cell(item) for key, item in value.items()} if isinstance(value, dict) else value


def cells(frame: pd.DataFrame, name: str = "x") -> list[Any]:
    return [cell(value) for value in frame[name].tolist()]


def test_values_of_every_type_are_those_of_duckdb_with_and_without_null(
    session: reyn.Session, names: dict[str, Any]
) -> None:
    with duckdb.connect() as plain:
        plain.execute("SET TimeZone = 'UTC'")
        for literal, given_value in LITERALS.items():
            value = given_value
            if value is None:
                ((value,),) = plain.execute(f"SELECT {literal}").fetchall()
            for rows, wanted in (
                (f"({literal}), ({literal})", [value, value]),
                (f"({literal}), (NULL), ({literal})", [value, None, value]),
            ):
                result = query(session, f"SELECT x FROM (VALUES {rows}) v(x)")
                assert cells(result.df) == [cell(each) for each in wanted], literal
                shown = [row["x"] for row in json.loads(str(result.payload).partition("\n")[0])]
                if not (isinstance(value, float) and abs(value) == float("inf")):
                    assert [each is None for each in shown] == [each is None for each in wanted], literal
                names["again"] = result.value
                again = query(session, "SELECT x FROM t", t="again").df
                assert cells(again) == cells(result.df), literal
            nothing = query(session, f"SELECT x FROM (VALUES ({literal}), (NULL)) v(x) WHERE x IS NULL")
            assert (cells(nothing.df), nothing.payload) == ([None], '[{"x":null}]'), literal
            empty = query(session, f"SELECT x FROM (VALUES ({literal})) v(x) WHERE false")
            assert (len(empty.df), list(empty.df)) == (0, ["x"]), literal


def test_a_stored_answer_has_the_same_values(session: reyn.Session) -> None:
    chosen = [
        literal for literal, value in LITERALS.items() if not isinstance(value, float) or abs(value) < 2
    ]
    flat = [
        each for each in chosen if not each.startswith(("[", "{", "MAP", "row")) and "infinity" not in each
    ]
    columns = ", ".join(f"CASE WHEN i % 2 = 0 THEN {literal} END AS c{at}" for at, literal in enumerate(flat))
    result = query(session, f"SELECT i, {columns} FROM range(200) t(i) ORDER BY i")
    assert result.blob is not None
    stored, direct = result.blob.df, result.value
    again = query(session, "FROM t ORDER BY i", t=result.blob.id).df
    for at, literal in enumerate(flat):
        name = f"c{at}"
        assert cells(stored, name) == cells(direct, name), literal
        assert cells(again, name) == cells(direct, name), literal
    assert '"c0":null' in result.blob.inspect("path:/1")


def test_null_in_a_join_and_in_aggregates_is_null_for_the_model(
    session: reyn.Session, names: dict[str, Any]
) -> None:
    names["left_"] = pd.DataFrame({"id": [1, 2]})
    names["right_"] = pd.DataFrame({"id": [1], "n": [7], "ok": [True]})
    joined = query(
        session, "SELECT id, n, ok FROM l LEFT JOIN r USING (id) ORDER BY id", l="left_", r="right_"
    )
    assert joined.payload == '[{"id":1,"n":7,"ok":true},{"id":2,"n":null,"ok":null}]'
    assert list(map(str, joined.df.dtypes)) == ["int64", "Int64", "boolean"]
    names["joined"] = joined.value
    counted = query(
        session, "SELECT count(n) AS n, bool_and(ok) AS ok, max(n) FILTER (n > 9) AS m FROM j", j="joined"
    )
    assert counted.payload == '[{"n":1,"ok":true,"m":null}]'


def test_nan_beside_null_stays_nan_and_infinities_are_told(session: reyn.Session) -> None:
    result = query(session, "SELECT x FROM (VALUES ('nan'::DOUBLE), (NULL), ('inf'::DOUBLE), (1.5)) v(x)")
    nan, null, infinite, number = result.df["x"].tolist()
    assert "infinite number in x" in str(result.payload)
    assert nan != nan and null is None and (infinite, number) == (float("inf"), 1.5)
    infinite = query(session, "SELECT 'inf'::DOUBLE AS up, 1.5::DOUBLE AS x")
    assert "infinite number in up" in infinite.payload


def test_what_cannot_be_carried_is_refused_by_column_and_type(session: reyn.Session) -> None:
    with pytest.raises(AnswerError, match=r"column 'odd'.*type object"):
        write_answer(pd.DataFrame({"odd": pd.Series([object()], dtype=object)}))
    result = session.invoke_action("table__query", {"sql": "SELECT [DATE 'infinity'] AS odd"})
    assert (
        "'odd'" in str(result.error) and "DATE[]" in str(result.error) and "::VARCHAR" in str(result.payload)
    )


# Frames

ZONED = pd.Series(["2024-02-03", None]).astype("datetime64[us]").dt.tz_localize("Europe/Oslo")
COLUMNS: dict[str, Any] = {
    **{f"{sign}Int{bits}": pd.Series([1, None, 2 ** (bits - 1) - 1], dtype=f"{sign}Int{bits}")
       for sign in ("", "U") for bits in (8, 16, 32, 64)},
    **{f"{order}{kind}": np.array([0, 1, 100], dtype=f"{order}{kind}")
       for order in "<>" for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")},
    "UInt64 large": pd.array([2**64 - 1, None], dtype="UInt64"),
    "float": np.array([1.5, np.nan, np.inf]), "big float": np.array([1.5, np.nan, -np.inf], dtype=">f8"),
    "Float64": pd.array([1.5, None], dtype="Float64"), "Float32": pd.array([1.5, None], dtype="Float32"),
    "boolean": pd.array([True, None, False], dtype="boolean"), "bool": [True, False],
    "string": pd.array(["a", None, ""], dtype=pd.StringDtype("python")), "no string": pd.array([None], dtype="string"),
    **{f"M8[{unit}]": np.array(["2024-02-03T01:02:03", "NaT"], dtype=f"M8[{unit}]")
       for unit in ("s", "ms", "us", "ns")},
    **{f"m8[{unit}]": np.array([5 * 10**9, "NaT"], dtype=f"m8[{unit}]") for unit in ("s", "ms", "us", "ns")},
    ">M8[us]": np.array(["2024-02-03", "NaT"], dtype=">M8[us]"), "zoned": ZONED,
    "category": pd.Categorical(["a", None]), "category of numbers": pd.Categorical([2**53 + 1, None]),
    "category of moments": pd.Categorical(ZONED), "category of truth": pd.Categorical([True, None]),
    "sparse": pd.arrays.SparseArray([5, 0]), "sparse float": pd.arrays.SparseArray([1.5, np.nan]),
}  # fmt: skip
OBJECTS: dict[str, list[Any]] = {
    "truth": [True, None], "numbers": [2**53 + 1, None], "wide": [2**70, None, 1],
    "wider": [-(2**130), None, 1], "unsigned": [2**128 - 1, 0],
    "floats": [1.5, None, float("inf")], "decimals": [Decimal("1.10"), None], "dates": [dt.date(2024, 2, 3), None, FAR],
    "times": [dt.time(1, 2, 3, 4), None], "moments": [MOMENT, None], "zoned": [MOMENT.replace(tzinfo=dt.UTC), None],
    "spans": [dt.timedelta(days=400, microseconds=1), None], "uuids": [UUID(int=5), None],
    "bytes": [b"\xff\0", None, b""],
    "texts": ["a\0b", None, "<NA>", ""], "lists": [[1, None], None, []], "records": [{"a": 1, "b": None}],
    "late": [None] * 3000 + [1.5], "late records": [{"a": 1}] * 3000 + [{"a": 1, "b": 2}],
    "late wide": [1] * 3000 + [2**70], "late digits": [Decimal("1.1")] * 3000 + [Decimal("12345.678")],
    "spans of two kinds": [dt.timedelta(days=1), pd.Timedelta("2 days")], "both bytes": [b"a", bytearray(b"b")],
    "zones": [MOMENT.replace(tzinfo=dt.timezone(dt.timedelta(hours=-5))), MOMENT.replace(tzinfo=dt.UTC), None],
    "far": [FIRST, LAST, None],
    "times west": [dt.time(1, tzinfo=dt.timezone(-dt.timedelta(hours=5)))],
    "nanoseconds": [pd.Timestamp("2024-02-03 00:00:00.123456789"), None],
    "numpy": [np.int64(3), None, np.int64(4)], "missing": [pd.NA, 1, None, float("nan")],
}  # fmt: skip
# Values for which no type of SQL is exact.
TEXTS: dict[str, tuple[Any, list[Any]]] = {
    "period": (pd.PeriodIndex(["2024-01", None], freq="M"), ["2024-01", None]),
    "interval": (pd.Series([pd.Interval(0.0, 1.0), None], dtype="interval"), ["(0.0, 1.0]", None]),
    "complex": (np.array([1 + 2j, np.nan]), ["(1+2j)", None]),
    "mixed": (pd.Series([1, "x", None], dtype=object), ["1", "x", None]),
    "late text": (pd.Series([1] * 3000 + ["x"], dtype=object), ["1"] * 3000 + ["x"]),
    "truth and numbers": (pd.Series([True, 2], dtype=object), ["True", "2"]),
    "not floats": (pd.Series([2**53 + 1, 2.5], dtype=object), ["9007199254740993", "2.5"]),
    "too many digits": (pd.Series([Decimal("1e30"), Decimal("1e-30")], dtype=object), ["1E+30", "1E-30"]),
    "no decimals": (
        pd.Series([Decimal("sNaN"), Decimal("NaN"), Decimal("1.5"), "x"], dtype=object),
        [None, None, "1.5", "x"],
    ),
    "infinite": (pd.Series([Decimal("Infinity"), Decimal("1.1")], dtype=object), ["Infinity", "1.1"]),
}


def test_frames_of_every_dtype_are_read_as_they_are(session: reyn.Session, names: dict[str, Any]) -> None:
    objects = {name: pd.Series(values, dtype=object) for name, values in OBJECTS.items()}
    for name, column in (COLUMNS | objects).items():
        names["f"] = pd.DataFrame({"x": column})
        wanted = [cell(value) for value in names["f"]["x"].tolist()]
        for sql in ("SELECT x FROM f", "SELECT x FROM f LIMIT 1"):
            found = session.invoke_action("table__query", {"sql": sql, "sources": {"f": "f"}, "limit": 5000})
            assert found.ok, (name, found.payload)
            assert cells(found.df) == (wanted[:1] if "LIMIT" in sql else wanted), name
    for name, (column, wanted) in TEXTS.items():
        names["f"] = pd.DataFrame({"x": column})
        found = session.invoke_action("table__query", {"sql": "FROM f", "sources": {"f": "f"}, "limit": 5000})
        assert cells(found.df) == wanted, name


def test_late_values_of_another_kind_are_not_forced_into_the_first(
    session: reyn.Session, names: dict[str, Any]
) -> None:
    late = MOMENT
    for values, sql, found in (
        ([1] * 5000 + [1.5], "SELECT sum(x) AS x FROM f", 5001.5),
        ([dt.date(2024, 1, 1)] * 5000 + [late], "SELECT max(x) AS x FROM f", late),
        ([True] * 5000 + [7], "SELECT max(x) FILTER (x <> 'True') AS x FROM f", "7"),
        ([[1]] * 5000 + [[1.5]], "SELECT max(x[1]) AS x FROM f", 1.5),
    ):
        names["f"] = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        assert cells(query(session, sql, f="f").df) == [found]


def test_moments_and_times_with_and_without_an_offset_are_texts(
    session: reyn.Session, names: dict[str, Any]
) -> None:
    plus = dt.timezone(dt.timedelta(hours=2))
    berlin = ZoneInfo("Europe/Berlin")  # a time of day in it has no offset
    columns: dict[str, tuple[list[Any], str, list[Any]]] = {
        "moments": (
            [MOMENT, MOMENT.replace(tzinfo=plus)], "VARCHAR",
            ["2024-02-03 04:05:06.789012", "2024-02-03 04:05:06.789012+02:00"],
        ),
        "a date": ([FAR, MOMENT.replace(tzinfo=plus)], "VARCHAR", ["9999-12-31", "2024-02-03 04:05:06.789012+02:00"]),
        "times": ([dt.time(1), dt.time(1, tzinfo=plus)], "VARCHAR", ["01:00:00", "01:00:00+02:00"]),
        "zones": ([dt.time(1), dt.time(2, tzinfo=berlin)], "TIME", [dt.time(1), dt.time(2)]),
    }  # fmt: skip
    for name, (cells, kind, expected) in columns.items():
        names["t"] = pd.DataFrame({"v": pd.Series(cells, dtype=object)})
        found = session.invoke_action(
            "table__query", {"sql": "SELECT v, typeof(v) AS kind FROM t", "sources": {"t": "t"}}
        )
        assert found.df["kind"].tolist() == [kind] * 2, name
        assert found.df["v"].tolist() == expected, name


def test_moments_of_numpy_in_a_column_of_objects_are_moments(
    session: reyn.Session, names: dict[str, Any]
) -> None:
    moments = np.array(["2024-01-01T00:00:00.123456789", "NaT"], dtype="datetime64[ns]")
    spans = np.array([1_000, -2_000], dtype="timedelta64[ns]")
    columns: list[tuple[list[Any], str]] = [
        (list(moments), "TIMESTAMP_NS"), (list(moments.astype("datetime64[D]")), "TIMESTAMP"),
        (list(spans), "INTERVAL"), ([moments[:1].astype("datetime64[us]").astype("datetime64[ns]")], "TIMESTAMP[]"),
    ]  # fmt: skip
    kinds = []
    for cells, _ in columns:
        names["t"] = pd.DataFrame({"v": pd.Series(cells, dtype=object)})
        found = session.invoke_action(
            "table__query", {"sql": "SELECT typeof(v) FROM t", "sources": {"t": "t"}}
        )
        kinds.append(found.df.iloc[0, 0])
    assert kinds == [kind for _, kind in columns]


def test_values_of_classes_of_their_own_are_read_without_code_of_these(
    session: reyn.Session, names: dict[str, Any]
) -> None:
    class Number(int):
        def __int__(self) -> int:
            raise AssertionError

        __index__ = __str__ = __repr__ = __int__  # type: ignore[assignment]

    color, rank = StrEnum("color", "RED BLUE"), IntEnum("rank", "LOW HIGH")
    columns: list[tuple[list[Any], Any]] = [
        (list(color), ["red", "blue"]), (list(rank), [1, 2]), ([Number(3), 4], [3, 4]),
        ([list(color)], [["red", "blue"]]),
        ([type("Price", (float,), {})(1.5)], [1.5]), ([Enum("Other", "A").A], ["<Other>"]),
    ]  # fmt: skip
    for cells, expected in columns:
        names["t"] = pd.DataFrame({"v": pd.Series(cells, dtype=object)})
        found = session.invoke_action("table__query", {"sql": "SELECT v FROM t", "sources": {"t": "t"}})
        assert found.df["v"].tolist() == expected


def test_half_a_character_spoils_only_its_own_column(session: reyn.Session, names: dict[str, Any]) -> None:
    names["f"] = pd.DataFrame({"bad": pd.Series(["\ud800"], dtype=object), "good": [1]})
    assert query(session, "SELECT good FROM f", f="f").payload == '[{"good":1}]'
    refused = session.invoke_action("table__query", {"sql": "SELECT bad FROM f", "sources": {"f": "f"}})
    assert "half a character" in str(refused.payload)


VALUES: dict[str, Any] = {
    "Int8": st.integers(-128, 127), "UInt64": st.integers(0, 2**64 - 1), "Int64": st.integers(-(2**63), 2**63 - 1),
    "boolean": st.booleans(), "float64": st.floats(allow_nan=False), "decimal": st.decimals(-(10**9), 10**9, places=3),
    "str": st.text(st.characters(codec="utf-8"), max_size=5), "date": st.dates(), "bytes": st.binary(max_size=3),
    "wide": st.integers(-(2**127), 2**127 - 1), "datetime64[us]": st.datetimes(), "uuid": st.uuids(),
}  # fmt: skip


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from(sorted(VALUES)))
def test_any_column_comes_back_as_it_went(
    session: reyn.Session, names: dict[str, Any], data: st.DataObject, kind: str
) -> None:
    wanted = data.draw(st.lists(st.one_of(st.none(), VALUES[kind]), min_size=1, max_size=20))
    pandas_type: Any = (
        kind if kind[0].isupper() or kind in ("boolean", "float64", "datetime64[us]") else object
    )
    names["f"] = pd.DataFrame({"number": range(len(wanted)), "x": pd.Series(wanted, dtype=pandas_type)})
    first = query(session, "FROM f ORDER BY number", f="f")
    names["g"] = first.value
    second = query(session, "FROM g ORDER BY number", g="g")
    for result in (first, second):
        assert cells(result.df) == wanted
        shown = json.loads(str(result.payload).partition("\n[")[0])
        # JSON has no infinite numbers; the note of the result names their column.
        assert [row["x"] is None for row in shown] == [
            each is None or each in (float("inf"), float("-inf")) for each in wanted
        ]
