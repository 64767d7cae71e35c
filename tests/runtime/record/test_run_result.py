"""What the answer of a run rests on comes back as data: with its dtypes, from the record or from the blob."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.outputs.content import BlobNotFoundError
from reyn_jupyter.runtime.record.run_result import NoTableError
from reyn_jupyter.runtime.record.trace import Trace

ORDERS = pd.DataFrame(
    {
        "region": ["north", "south", "north"],
        "amount": [1, 2, 3],
        "share": [0.5, np.nan, np.inf],
        "day": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]),
    }
)
ALL = "SELECT * FROM orders"


def query(sql: str = ALL, **arguments: Any) -> Any:
    args = {"sql": sql, "sources": {"orders": "orders"}, **arguments}
    return call("invoke_action", action_name="table__query", args=args)


def asked(workspace: Path, *steps: Any, **names: Any) -> Trace:
    session = reyn.Session(workspace, namespace={"orders": ORDERS, **names}, model=ScriptedModel(*steps))
    return session.ask("go", approve="all")


@pytest.mark.parametrize("times", [1, 100], ids=["inline", "stored"])
def test_the_frame_of_a_query_comes_back_with_its_dtypes(workspace: Path, times: int) -> None:
    orders = pd.concat([ORDERS] * times, ignore_index=True)
    trace = asked(workspace, query(), "Here.", orders=orders)
    assert trace.result is not None and (trace.result.blob is None) is (times == 1)
    expected = orders.assign(day=orders.day.astype(trace.df.day.dtype))
    pd.testing.assert_frame_equal(trace.df, expected)
    assert trace.df.day.dtype.kind == "M" and trace.df.amount.dtype == "int64"
    assert (trace.sql, trace.result.tables) == (ALL, {"orders": "orders"})
    assert trace.result.sources == ({"kind": "variable", "name": "orders", "rows": 3 * times},)


def test_a_saved_run_gives_the_same_frame(workspace: Path, tmp_path: Path) -> None:
    trace = asked(workspace, query(), "Here.")
    again = Trace.load(trace.save(tmp_path / "run.jsonl"))
    pd.testing.assert_frame_equal(again.df, trace.df)


def test_a_replay_gives_the_frame_from_the_record(workspace: Path) -> None:
    session = reyn.Session(
        workspace, namespace={"orders": ORDERS}, model=ScriptedModel(query(limit=2), "Here.")
    )
    first = session.ask("go")
    again = session.replay(first.run)
    assert again.result is not None and first.result is not None
    pd.testing.assert_frame_equal(again.df, first.df)
    assert (again.result.note, again.result.sources) == (first.result.note, first.result.sources)


def test_a_table_that_was_cut_says_so(workspace: Path) -> None:
    trace = asked(workspace, query(limit=2), "Here.")
    assert trace.result is not None
    assert len(trace.df) == 2 and "the first 2 rows; there are more" in trace.result.note


def test_a_frame_of_a_function_keeps_its_index(workspace: Path) -> None:
    @reyn.action
    def by_region() -> pd.DataFrame:
        """Sum up."""
        return ORDERS.groupby("region")[["amount"]].sum()

    step = call("invoke_action", action_name="function__by_region", args={})
    trace = asked(workspace, step, "Here.", by_region=by_region)
    pd.testing.assert_frame_equal(trace.df, by_region())
    assert trace.sql is None and trace.result is not None and trace.result.tables == {}


def test_the_last_call_that_gave_data_counts_and_not_what_lists_describes_or_changes(workspace: Path) -> None:
    trace = asked(
        workspace,
        call("list_actions"),
        query(),
        call("describe_action", action_name="table__query"),
        call("search_actions", query="write"),
        call("invoke_action", action_name="variable__orders", args={}),
        call("invoke_action", action_name="file__write", args={"path": "made.txt", "content": "x"}),
        query("SELECT nothing FROM orders"),
        "Done.",
    )
    assert trace.result is not None and trace.result.call is trace.calls[1]
    assert trace.sql == ALL and len(trace.call_log) == 7


def test_a_run_without_data_says_so(workspace: Path) -> None:
    trace = asked(workspace, call("list_actions"), "Nothing.")
    assert trace.result is None and trace.sql is None
    with pytest.raises(NoTableError, match="no call of this run gave data"):
        _ = trace.df


def test_a_text_is_data_and_no_table(workspace: Path) -> None:
    (workspace / "long.txt").write_text("word " * 1000)
    for path in ("notes.txt", "long.txt"):
        trace = asked(
            workspace, call("invoke_action", action_name="file__read", args={"path": path}), "Read."
        )
        assert trace.result is not None
        assert (workspace / path).read_text().strip() in trace.result.text
        with pytest.raises(NoTableError, match="file__read gave no table but a text"):
            _ = trace.df


def test_a_stored_result_that_is_gone_says_so(workspace: Path) -> None:
    session = reyn.Session(
        workspace,
        namespace={"orders": pd.concat([ORDERS] * 100)},
        model=ScriptedModel(query(), "Here."),
    )
    trace = session.ask("go")
    assert trace.result is not None and trace.result.blob is not None
    for file in (workspace / ".reyn" / "blobs").glob(f"{trace.result.blob.id}*"):
        file.unlink()
    with pytest.raises(BlobNotFoundError):
        _ = trace.df


def test_a_secret_in_a_small_result_stays_covered_in_its_frame(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATION_API_KEY", "correct-horse-battery-staple")

    @reyn.action
    def rows() -> pd.DataFrame:
        """Give rows."""
        return pd.DataFrame(
            {"correct-horse-battery-staple": ["correct-horse-battery-staple", "b"], "n": [1, 2]}
        )

    step = call("invoke_action", action_name="function__rows", args={})
    trace = asked(workspace, step, "Here.", rows=rows)
    frame = trace.df
    assert "correct-horse" not in str(trace.events) + frame.to_csv()
    assert frame.iloc[0, 0].startswith("[redacted:") and list(frame["n"]) == [1, 2]


def test_many_columns_do_not_swell_the_record(workspace: Path) -> None:
    @reyn.action
    def wide() -> pd.DataFrame:
        """Give no rows."""
        return pd.DataFrame({f"column {at}": [] for at in range(3000)})

    step = call("invoke_action", action_name="function__wide", args={})
    trace = asked(workspace, step, "Here.", wide=wide)
    assert trace.result is not None and trace.result.finished.frame is None
    with pytest.raises(NoTableError):
        _ = trace.df


def frame_of(workspace: Path) -> reyn.ResultFrame:
    trace = asked(workspace, query(), "Three orders.")
    return reyn.ResultFrame(trace.df, trace)


def test_a_result_frame_knows_its_run(workspace: Path) -> None:
    frame = frame_of(workspace)
    assert (frame.answer, frame.sql, frame.trace.status) == ("Three orders.", ALL, "ok")
    assert isinstance(frame, pd.DataFrame) and frame.equals(frame.trace.df)


def test_what_is_made_of_a_result_frame_is_an_ordinary_frame(workspace: Path) -> None:
    frame = frame_of(workspace)
    derived = [
        frame.copy(),
        frame[["region"]],
        frame.query("amount > 1"),
        copy.copy(frame),
        copy.deepcopy(frame),
        pickle.loads(pickle.dumps(frame)),
        pd.concat([frame, frame]),
    ]
    assert {type(each) for each in derived} == {pd.DataFrame}
    pd.testing.assert_frame_equal(derived[5], frame.trace.df)


def test_a_column_may_be_called_like_what_the_frame_knows(workspace: Path) -> None:
    trace = asked(workspace, query("SELECT 'no' AS answer"), "Yes.")
    frame = reyn.ResultFrame(trace.df, trace)
    assert (frame.answer, list(frame["answer"])) == ("Yes.", ["no"])


def test_a_result_frame_is_a_variable_like_any_frame(workspace: Path) -> None:
    session = reyn.Session(workspace, namespace={"found": frame_of(workspace)})
    described = session.invoke_action("variable__found").value
    assert (described["type"], described["shape"]) == ("DataFrame", [3, 4])
    counted = session.invoke_action(
        "table__query", {"sql": "SELECT count(*) AS n FROM found", "sources": {"found": "found"}}
    )
    assert counted.payload == '[{"n":3}]'


def test_a_result_frame_is_exported_as_its_run(workspace: Path) -> None:
    frame = frame_of(workspace)
    reyn.export(workspace / "run.md", frame)
    assert "Three orders." in (workspace / "run.md").read_text()
