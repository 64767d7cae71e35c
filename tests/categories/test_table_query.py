from __future__ import annotations

import asyncio
import gzip
import math
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reyn_jupyter.backends.sql.sql_frames import as_table, holdable
from reyn_jupyter.backends.sql.sql_query import SqlQuery, sql_child
from reyn_jupyter.categories import table
from reyn_jupyter.categories.table import categories
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support import optional_modules
from reyn_jupyter.support.programs.child_process import ChildProcesses
from tests.categories.notebook_support import Hostile, InvalidArgumentsError, Notebook
from tests.support.waiting import awaited

ORDERS = "region,value\nnorth,1\nsouth,2\nnorth,3\n"


@pytest.fixture(scope="module")
def children() -> Iterator[ChildProcesses]:
    """The processes of all tests here: a fresh one takes its time to start."""
    with ChildProcesses() as processes:
        yield processes


@pytest.fixture
def notebook(tmp_path: Path, children: ChildProcesses) -> Notebook:
    (tmp_path / "orders.csv").write_text(ORDERS)
    (tmp_path / "secret.csv").write_text("word\nplover\n")
    frame = pd.DataFrame({"region": ["north", "south", "north"], "value": [1, 2, 3]})
    return Notebook(tmp_path, {"orders": frame}, children=children)


async def rows(notebook: Notebook, sql: str, /, **args: Any) -> list[tuple[Any, ...]]:
    frame = await notebook.caller(categories).call("query", sql=sql, **args)
    return list(frame.itertuples(index=False, name=None))


async def test_what_is_no_reading_statement_opens_no_source(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workspace, "open_read", lambda *_: pytest.fail("nothing is to be opened"))
    for sql, told in (
        ("How many orders are there?", "syntax error"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("DROP TABLE orders", "DROP is not allowed"),
        ("SELECT '\0", "SQL"),
    ):
        with pytest.raises(ActionError, match=told):
            await rows(notebook, sql, sources={"orders": "orders.csv"})


# Sources


async def test_a_variable_a_file_and_a_stored_result_join_in_one_query(notebook: Notebook) -> None:
    blob = await notebook.keep([{"region": "north", "manager": "Ann"}, {"region": "south", "manager": "Bo"}])
    caller = notebook.caller(categories)
    frame = await caller.call(
        "query",
        sql="SELECT manager, sum(o.value) AS total, sum(f.value) AS other FROM o JOIN m USING (region) "
        "JOIN f USING (region) GROUP BY manager ORDER BY manager",
        sources={"o": "orders", "f": "orders.csv", "m": blob},
    )
    assert frame.to_dict("records") == [
        {"manager": "Ann", "total": 8, "other": 8},
        {"manager": "Bo", "total": 2, "other": 2},
    ]
    assert {(source.kind, source.name) for source in caller.used} == {
        ("variable", "orders"), ("file", "orders.csv"), ("blob", blob),
    }  # fmt: skip


async def test_a_stored_frame_keeps_its_types(notebook: Notebook) -> None:
    blob = await notebook.keep(pd.DataFrame({"day": pd.to_datetime(["2024-02-03"]).as_unit("us"), "n": [1]}))
    sql = "SELECT typeof(day), typeof(n) FROM t"
    assert await rows(notebook, sql, sources={"t": f"[blob:{blob}]"}) == [("TIMESTAMP", "BIGINT")]


async def test_references_stand_for_sources_too(notebook: Notebook) -> None:
    blob = await notebook.keep({"rows": [{"n": 1}, {"n": 2}]})
    sources = {"o": {"$var": "orders"}, "b": {"$blob": blob, "path": "/rows"}}
    assert await rows(notebook, "SELECT count(*), sum(n) FROM o, b", sources=sources) == [(6, 9)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"x,y\n1,one\n2,two\n"),
        ("a.tsv", b"x\ty\n1\tone\n2\ttwo\n"),
        ("a.csv.gz", gzip.compress(b"x,y\n1,one\n2,two\n", mtime=0)),
        ("a.json", b'[{"x": 1, "y": "one"}, {"x": 2, "y": "two"}]'),
        ("a.jsonl", b'{"x": 1, "y": "one"}\n{"x": 2, "y": "two"}\n'),
        ("A.NDJSON", b'{"x": 1, "y": "one"}\n{"x": 2, "y": "two"}\n'),
        ("deep folder/it's a file.csv", b"x,y\n1,one\n2,two\n"),
    ],
)
async def test_workspace_files_are_read_by_their_kind(notebook: Notebook, name: str, content: bytes) -> None:
    (notebook.root / name).parent.mkdir(exist_ok=True)
    (notebook.root / name).write_bytes(content)
    assert await rows(notebook, "SELECT x, y FROM t ORDER BY x", sources={"t": name}) == [
        (1, "one"),
        (2, "two"),
    ]


async def test_parquet_files_are_read(notebook: Notebook) -> None:
    duckdb.sql("SELECT 7 AS x").write_parquet(str(notebook.root / "a.parquet"))
    assert await rows(notebook, "FROM t", sources={"t": "a.parquet"}) == [(7,)]


async def test_the_first_line_of_a_csv_file_is_its_header(notebook: Notebook) -> None:
    (notebook.root / "words.csv").write_text("name,city\nAnn,Oslo\n")
    assert await rows(notebook, "SELECT name, city FROM t", sources={"t": "words.csv"}) == [("Ann", "Oslo")]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("../outside.csv", "climbs with"),
        ("/etc/passwd", "leads outside"),
        ("link.csv", "leads outside"),
        (".reyn/runs/a.jsonl", "protected"),
        (".env", "protected"),
        ("orders.xlsx", "no file that SQL reads"),
        ("missing.csv", "does not exist"),
        ("folder.csv", "is a folder"),
        ("pipe.csv", "no regular file"),
        ("empty.csv", "is empty"),
        ("broken.parquet", "broken.parquet"),
        ("broken.json", "broken.json"),
        ("no_such_variable", "no variable"),
        ("api_key", "looks like a secret"),
        ("_private", "is private"),
        ("0197f9a2-7c1b-7e3c-8a55-3b0f8e1d2c4a", "no blob"),
        ("http://127.0.0.1/a.csv", "does not exist"),
        ("data/*.csv", "does not exist"),
        ("", "is empty"),
    ],
)
async def test_sources_that_cannot_be_used_are_refused_plainly(
    notebook: Notebook, source: str, message: str
) -> None:
    root = notebook.root
    notebook.names |= {"api_key": ["x"], "_private": notebook.names["orders"]}
    (root / "link.csv").symlink_to("/etc/passwd")
    (root / "folder.csv").mkdir()
    os.mkfifo(root / "pipe.csv")
    (root / "empty.csv").touch()
    (root / "broken.parquet").write_bytes(b"PAR1nonsense")
    (root / "broken.json").write_bytes(b'{"a": [')
    with pytest.raises(ActionError, match=message):
        await rows(notebook, "FROM t", sources={"t": source})


async def test_a_reference_in_the_place_of_all_sources_is_refused(notebook: Notebook) -> None:
    with pytest.raises(InvalidArgumentsError, match=r"/sources.*takes the value itself"):
        await rows(notebook, "FROM orders", sources={"$var": "orders"})


async def test_with_variables_off_no_variable_is_a_source(notebook: Notebook) -> None:
    caller = notebook.caller(categories, variables="off")
    with pytest.raises(ActionError, match="switched off"):
        await caller.call("query", sql="FROM t", sources={"t": "orders"})
    frame = await caller.call("query", sql="SELECT count(*) AS n FROM t", sources={"t": "orders.csv"})
    assert frame["n"].tolist() == [3]


@pytest.mark.parametrize("aliases", [["two words"], ["a;b"], ["1st"], ["a", "A"], ['a"b'], [""], ["x" * 65]])
async def test_source_names_are_table_names(notebook: Notebook, aliases: list[str]) -> None:
    with pytest.raises(ActionError, match="source name"):
        await rows(notebook, "SELECT 1", sources=dict.fromkeys(aliases, "orders"))


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT * FROM orders", '"sources": {"orders": "orders"}'),
        ("SELECT * FROM 'orders.csv'", '"orders.csv"'),
        ("SELECT * FROM nowhere", '"sources": {"nowhere": '),
    ],
)
async def test_a_table_that_was_not_named_as_a_source_is_an_error_that_says_how(
    notebook: Notebook, sql: str, hint: str
) -> None:
    with pytest.raises(ActionError) as caught:
        await rows(notebook, sql)
    assert hint in caught.value.hint + caught.value.message


@pytest.mark.parametrize(
    ("sql", "message", "hint"),
    [
        ("CREATE TABLE x AS SELECT 1", "CREATE is not allowed", "a statement that reads"),
        ("COPY t TO 'x.csv'", "COPY is not allowed", "a statement that reads"),
        ("SELECT 1; SELECT 2", "one statement is needed, and there are 2", "one SELECT a call"),
        ("-- nothing", "one statement is needed, and there is none", "one SELECT a call"),
        ("SELECT getenv('HOME')", "getenv", "its sources alone"),
        ("SELECT * FROM 'orders.csv'", "orders.csv", '"sources"'),
        ("SELECT * FROM read_csv('orders.csv')", "orders.csv", '"sources"'),
    ],
)
async def test_a_refusal_says_what_to_do_instead(
    notebook: Notebook, sql: str, message: str, hint: str
) -> None:
    with pytest.raises(ActionError, match=message) as caught:
        await rows(notebook, sql, sources={"t": "orders.csv"})
    assert hint in caught.value.hint


# Ways out


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_csv('{root}/secret.csv')",
        "SELECT * FROM '{root}/secret.csv'",
        "SELECT * FROM '{root}/orders.csv'",
        "SELECT * FROM read_csv('/dev/fd/0')",
        "SELECT * FROM read_text('/proc/self/environ')",
        "SELECT * FROM read_blob('/etc/passwd')",
        "SELECT * FROM read_json('{root}/x.json')",
        "SELECT * FROM read_parquet('{root}/x.parquet')",
        "SELECT * FROM parquet_metadata('{root}/x.parquet')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_csv('http://127.0.0.1:1/x.csv')",
        "SELECT * FROM duckdb_secrets()",
        "SELECT getenv('HOME')",
        "SELECT * FROM query('COPY t TO ''{root}/out.csv''')",
        "COPY t TO '{root}/out.csv'",
        "COPY t FROM '{root}/secret.csv'",
        "EXPLAIN ANALYZE COPY t TO '{root}/out.csv'",
        "WITH x AS (COPY t TO '{root}/out.csv') SELECT * FROM x",
        "WITH x AS (COPY (SELECT 1) TO '{root}/orders.csv') SELECT * FROM x",
        "EXPORT DATABASE '{root}/out'",
        "ATTACH '{root}/out.db'",
        "ATTACH ':memory:' AS other",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA database_list",
        "PRAGMA enable_external_access = true",
        "CALL pragma_version()",
        "CREATE TABLE x AS SELECT 1",
        "CREATE SECRET s (TYPE s3)",
        "INSERT INTO t VALUES ('x', 1)",
        "UPDATE t SET value = 0",
        "DELETE FROM t",
        "DROP TABLE t",
        "BEGIN",
        "PREPARE p AS SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE t",
        "",
        "  ; -- nothing",
        "not sql",
        "SELECT $1",
        "SELECT * FROM frame_of_this_test",
        "SELECT * FROM notebook",
    ],
)
async def test_sql_reaches_nothing_but_its_sources(notebook: Notebook, sql: str) -> None:
    frame_of_this_test = pd.DataFrame({"a": [1]})
    before = {path: path.read_bytes() for path in notebook.root.iterdir()}
    with pytest.raises((ActionError, InvalidArgumentsError)):
        await rows(notebook, sql.replace("{root}", str(notebook.root)), sources={"t": "orders.csv"})
    assert {path: path.read_bytes() for path in notebook.root.iterdir()} == before
    assert len(frame_of_this_test) == 1


async def test_the_persons_frame_is_never_changed(notebook: Notebook) -> None:
    before = notebook.names["orders"].copy()
    for sql in ("UPDATE t SET value = 0", "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x"):
        with pytest.raises(ActionError):
            await rows(notebook, sql, sources={"t": "orders"})
    pd.testing.assert_frame_equal(notebook.names["orders"], before)


def test_a_file_swapped_for_a_link_after_it_was_opened_is_still_the_file(
    tmp_path: Path, children: ChildProcesses
) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    with (tmp_path / "a.csv").open("rb") as file, closing(SqlQuery(sql_child(children))) as query:
        (tmp_path / "a.csv").unlink()
        (tmp_path / "a.csv").symlink_to("/etc/passwd")
        query.add_file("t", "a.csv", file)
        answer = query.run("FROM t", 10)
    assert (answer.frame["x"].tolist(), answer.more) == ([1], False)


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (signal.SIGKILL, "the system does so when memory runs out"),
        (signal.SIGSEGV, "DuckDB crashed"),
        (signal.SIGHUP, "another program sent that signal"),
    ],
)
async def test_what_ended_the_process_of_a_query_is_named(
    tmp_path: Path, number: signal.Signals, why: str
) -> None:
    with ChildProcesses() as own:
        notebook = Notebook(tmp_path, {}, children=own)
        long = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3"
        running = asyncio.ensure_future(rows(notebook, long, sources={}))
        while not running.done():
            await asyncio.sleep(0.5)
            for pid in own.pids:
                os.kill(pid, number)
        with pytest.raises(ActionError) as caught:
            await running
    assert number.name in str(caught.value) and why in str(caught.value)


# Results


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT region, sum(value) s FROM t GROUP BY ALL ORDER BY 1", [("north", 4), ("south", 2)]),
        ("WITH a AS (SELECT 1 x) SELECT * FROM a", [(1,)]),
        ("FROM t SELECT max(value)", [(3,)]),
        ("VALUES (1), (2)", [(1,), (2,)]),
        ("SELECT value FROM t ORDER BY value DESC -- last", [(3,), (2,), (1,)]),
        ("SELECT 1;", [(1,)]),
        ("PIVOT t ON region USING sum(value)", [(4, 2)]),
        ("SHOW TABLES", [("t",)]),
    ],
)
async def test_whatever_reads_is_answered(notebook: Notebook, sql: str, expected: Any) -> None:
    assert await rows(notebook, sql, sources={"t": "orders"}) == expected


@pytest.mark.parametrize(
    "sql", ["DESCRIBE t", "SUMMARIZE t", "EXPLAIN SELECT * FROM t", "EXPLAIN ANALYZE FROM t"]
)
async def test_descriptions_are_answered(notebook: Notebook, sql: str) -> None:
    assert await rows(notebook, sql, sources={"t": "orders"})


async def test_a_result_is_cut_at_the_limit_and_says_so(notebook: Notebook) -> None:
    caller = notebook.caller(categories)
    cut = await caller.call("query", sql="FROM range(5000)")
    whole = await caller.call("query", sql="FROM range(7)", limit=7)
    assert (len(cut), len(whole)) == (1000, 7)
    assert "the first 1,000 rows; there are more" in cut.attrs["reyn_note"]
    assert "reyn_note" not in whole.attrs
    for limit in (0, -1, 100_001):
        with pytest.raises(InvalidArgumentsError):
            await caller.call("query", sql="SELECT 1", limit=limit)


async def test_columns_of_one_name_are_told_apart(notebook: Notebook) -> None:
    frame = await notebook.caller(categories).call("query", sql="SELECT 1 AS a, 2 AS a, sum(3) AS a")
    assert len(set(frame.columns)) == 3
    assert frame.iloc[0].tolist() == [1, 2, 3]


async def test_sums_of_integers_are_exact_integers(notebook: Notebook) -> None:
    notebook.names["big"] = pd.DataFrame({"n": [2**53 + 1, 1], "g": [1, None]})
    frame = await notebook.caller(categories).call(
        "query",
        sql="SELECT sum(n) s, sum(n::HUGEINT << 60) h, sum(n) FILTER (n < 0) z FROM big",
        sources={"big": "big"},
    )
    assert frame["s"].tolist() == [2**53 + 2]
    assert frame["h"].tolist() == [(2**53 + 2) << 60]
    assert pd.isna(frame["z"][0])


async def test_nested_results_are_ordinary_python_values(notebook: Notebook) -> None:
    found = await rows(notebook, "SELECT [1, 2] l, {'a': [1]} s, 'x'::BLOB b, NULL::UUID u, [[1], [2]] ll")
    assert found == [([1, 2], {"a": [1]}, b"x", None, [[1], [2]])]


NUMBERS = st.one_of(st.none(), st.integers(-(10**12), 10**12))
REALS = st.one_of(st.none(), st.floats(-1e9, 1e9))
GROUPS = st.sampled_from(["a", "b", "ä'\"", ""])


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(GROUPS, NUMBERS, REALS), min_size=1, max_size=20))
def test_aggregates_equal_those_of_pandas(notebook: Notebook, cells: list[tuple[Any, ...]]) -> None:
    frame = pd.DataFrame(cells, columns=["g", "n", "x"]).astype({"n": "Int64", "x": "float64"})
    notebook.names["t"] = frame
    found = asyncio.run(
        notebook.caller(categories).call(
            "query",
            sql="SELECT g, count(*) AS rows, count(n) AS known, sum(n) AS s, avg(x) AS m FROM t GROUP BY g",
            sources={"t": "t"},
        )
    ).set_index("g")
    for group, part in frame.groupby("g"):
        row = found.loc[group]
        assert (row["rows"], row["known"]) == (len(part), part["n"].count())
        assert pd.isna(row["s"]) if part["n"].count() == 0 else row["s"] == part["n"].sum()
        mean = part["x"].mean()
        assert (
            pd.isna(row["m"])
            if math.isnan(mean)
            else math.isclose(row["m"], mean, rel_tol=1e-9, abs_tol=1e-6)
        )


# Frames


@pytest.mark.parametrize(
    ("frame", "columns", "first"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "A"]), ["a_0", "A_1"], (1, 2)),
        (pd.DataFrame([[1, 2, 3]], columns=["a", "a", "a_1"]), ["a_0", "a_2", "a_1"], (1, 2, 3)),
        (pd.DataFrame([[1, 2]]), ["0", "1"], (1, 2)),
        (pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("b", "")])), ["a_x", "b"], (1, 2)),
        (pd.DataFrame([[1, 2]], columns=[None, ""]), ["column_0", "column_1"], (1, 2)),
        (pd.DataFrame({"a": [1]}, index=pd.Index(["x"], name="k")), ["k", "a"], ("x", 1)),
        (pd.DataFrame({"p": pd.period_range("2024-02", periods=1, freq="M")}), ["p"], ("2024-02",)),
        (pd.DataFrame({"i": pd.cut([1.5], [1, 2])}), ["i"], ("(1, 2]",)),
        (pd.DataFrame({"s": pd.arrays.SparseArray([5, 0])}), ["s"], (5,)),
        (pd.DataFrame({"z": [1 + 2j]}), ["z"], ("(1+2j)",)),
        (pd.DataFrame({"c": pd.Categorical(["x"])}), ["c"], ("x",)),
        (pd.DataFrame({"m": pd.Series([1, "x"], dtype=object)}), ["m"], ("1",)),
        (pd.DataFrame({"l": [[1, 2]], "d": [{"a": 1}]}), ["l", "d"], ([1, 2], {"a": 1})),
        (pd.DataFrame([[1]], columns=pd.Index(["\ud800"], dtype=object)), ["?"], (1,)),
        (pd.Series([3], name="price"), ["price"], (3,)),
        (pd.Series([3]), ["value"], (3,)),
        (np.array([[1, 2]]), ["c0", "c1"], (1, 2)),
        (np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]), ["a", "b"], (1, 2.5)),
        ([{"a": 1}, {"b": 2}], ["a", "b"], (1.0, None)),
        ([4, 5], ["value"], (4,)),
        ({"a": [1], "b": ["x"]}, ["a", "b"], (1, "x")),
    ],
)  # fmt: skip
async def test_weird_frames_are_tables_too(
    notebook: Notebook, frame: Any, columns: list[str], first: tuple[Any, ...]
) -> None:
    notebook.names["weird"] = frame
    found = await notebook.caller(categories).call("query", sql="FROM t", sources={"t": "weird"})
    assert list(found.columns) == columns
    cells = tuple(None if isinstance(cell, float) and math.isnan(cell) else cell for cell in found.iloc[0])
    assert cells == first


@pytest.mark.parametrize(
    "value",
    [
        pd.DataFrame(),
        7,
        "text,with,comma",
        {"a": 1},
        object(),
        np.zeros((1, 1, 1)),
        type("F", (pd.DataFrame,), {})(),
    ],
)
async def test_what_is_no_table_is_said_to_be_none(notebook: Notebook, value: object) -> None:
    notebook.names["it"] = value
    with pytest.raises(ActionError, match=r"The source 't' (is a|has no columns)"):
        await rows(notebook, "FROM t", sources={"t": "it"})


def test_objects_in_cells_become_their_type_name_and_none_of_their_code_runs() -> None:
    thing = Hostile()
    frame = pd.DataFrame(
        {"a": pd.Series([thing, 1], dtype=object), "b": pd.Series([[thing], {"k": thing}], dtype=object)}
    )
    Hostile.calls.clear()
    tables = [as_table(frame), as_table([{"a": thing}]), as_table({"a": [thing]}), as_table([thing])]
    assert Hostile.calls == []
    assert [table.iloc[0, 0] for table in tables] == ["<Hostile>"] * 4
    assert tables[0]["b"].tolist() == [["<Hostile>"], {"k": "<Hostile>"}]


# Stopping

ENDLESS = [
    "WITH RECURSIVE t AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM t) SELECT count(*) FROM t",
    "SELECT sum(hash(a.range, b.range)) FROM range(100000000) a, range(100000000) b",
]


@pytest.mark.parametrize("sql", ENDLESS)
async def test_cancelling_stops_an_endless_query_and_its_thread(notebook: Notebook, sql: str) -> None:
    task = asyncio.ensure_future(notebook.caller(categories).call("query", sql=sql))
    await asyncio.sleep(0.4)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)


async def test_a_deadline_stops_a_query(notebook: Notebook) -> None:
    caller = notebook.caller(lambda services: categories(services, seconds=0.3))
    with pytest.raises(ActionError, match=r"stopped after 0\.3 seconds"):
        await asyncio.wait_for(caller.call("query", sql=ENDLESS[0]), 60)


async def test_a_query_that_needs_too_much_memory_fails_and_nothing_else(
    notebook: Notebook, tmp_path: Path
) -> None:
    caller = notebook.caller(lambda services: categories(services, memory="100MB"))
    with pytest.raises(ActionError, match="more than the 100MB"):
        await caller.call("query", sql="SELECT len(list(a.range || 'x')) FROM range(30000000) a")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["orders.csv", "secret.csv"]
    assert (await caller.call("query", sql="SELECT 1 AS one"))["one"].tolist() == [1]


async def test_a_frame_that_changes_while_it_is_queried_is_the_frame_of_the_start(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[object] = []

    def take(value: object) -> object:
        taken.append(holdable(value))
        return taken[-1]

    monkeypatch.setattr(table, "holdable", take)
    frame = pd.DataFrame({"n": np.ones(2_000_000)})
    notebook.names["frame"] = frame
    query = asyncio.ensure_future(rows(notebook, "SELECT sum(n) FROM t, range(20)", sources={"t": "frame"}))
    await awaited(lambda: taken)
    frame.loc[:, "n"] = 7.0
    assert await query == [(40_000_000.0,)]


async def test_without_duckdb_the_way_to_install_it_is_told(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setattr(optional_modules, "_looked_for", {})
    with pytest.raises(ActionError) as caught:
        await rows(notebook, "SELECT 1")
    assert "pip install 'reyn-jupyter[sql]'" in caught.value.hint


async def test_the_file_sources_are_effects_so_that_a_deny_rule_can_name_them(notebook: Notebook) -> None:
    caller = notebook.caller(categories)
    sources = {"a": "orders.csv", "b": "orders", "c": {"$var": "orders"}}
    effects = caller.effects("query", sql="SELECT 1", sources=sources)
    assert [str(effect) for effect in effects] == ["read orders.csv"]
    with pytest.raises(ActionError, match="climbs"):
        caller.effects("query", sql="", sources={"a": "../x.csv"})


async def test_queries_leave_no_descriptor_behind(notebook: Notebook) -> None:
    await rows(notebook, "FROM t", sources={"t": "orders.csv"})
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(5):
        await rows(notebook, "FROM t", sources={"t": "orders.csv"})
        with pytest.raises(ActionError):
            await rows(notebook, "FROM nowhere", sources={"t": "orders.csv"})
    # Threads of other tests may open a descriptor meanwhile; a leak would leave ten.
    assert len(list(Path("/dev/fd").iterdir())) < before + 5
