"""A study's trials as files: whole or not at all, and every row with its source."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.trial_export import ExportError, export_trials
from reyn_jupyter.evaluation.results.trials import TrialActions, TrialTable
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.evaluation.suites import load_suite, suite_names
from tests.evaluation.study_support import BASE, READ, study
from tests.evaluation.trial_set_support import evidence, many, mixed, trial

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", "＋1", "－1", "＠x"]
HOSTILE = "=cmd|'/C calc'!A0\n<script>x</script>\u202e\x00🦊"


def table(on: object) -> pd.DataFrame:
    return TrialTable(on, tuple(on.trials), TrialActions(None, None, None)).df  # type: ignore[attr-defined,arg-type]


def test_lines_hold_facts_provenance_and_verdicts_and_a_missing_trial_has_none(tmp_path: Path) -> None:
    on = evidence({"a": {**mixed(1, 2), "s002": ("error",)}}, sources={"a": "offline"})
    lines = [
        json.loads(line)
        for line in export_trials(on, table(on), tmp_path / "t.jsonl").read_text().splitlines()
    ]
    assert [line["verdicts"]["first_call_is"]["kind"] for line in lines] == ["pass", "fail", "na"]
    assert {line["source"] for line in lines} == {"offline"} and {line["family"] for line in lines} == {
        "discover"
    }
    assert {"model", "fingerprints", "catalog", "code", "started", "key"} <= lines[0].keys()


def test_trials_of_every_source_leave_and_none_loses_its_mark(tmp_path: Path) -> None:
    more = [trial("a", "s000", 9, True, source="simulated", key="sim")]
    on = evidence({"a": many(2, True)}, more=more)
    frame = pd.read_json(export_trials(on, table(on), tmp_path / "t.jsonl"), lines=True)
    assert sorted(frame["source"]) == ["real", "real", "simulated"]


def test_hostile_texts_leave_as_they_are_and_one_line_stays_one_trial(tmp_path: Path) -> None:
    on = evidence({"a": {}}, more=[trial("a", "=1+1|<b>", 0, True, answer=HOSTILE)])
    path = export_trials(on, table(on), tmp_path / "t.jsonl")
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["answer"] == HOSTILE and json.loads(line)["scenario"] == "=1+1|<b>"
    import duckdb

    parquet = export_trials(on, table(on), tmp_path / "t.parquet")
    (row,) = duckdb.sql(
        f"SELECT scenario, answer, source, catalog, fingerprints, code FROM '{parquet}'"
    ).fetchall()
    assert row[0] == "=1+1|<b>" and "<script>" in row[1] and row[2:] == ("real", "c1", "fp_1", "1")


def test_what_was_there_stays_whole_where_nothing_can_be_written(tmp_path: Path) -> None:
    on = evidence({"a": many(1, True)})
    (tmp_path / "t.xlsx").write_text("mine")
    with pytest.raises(ExportError, match=r"\.parquet, \.csv or \.jsonl"):
        export_trials(on, table(on), tmp_path / "t.xlsx")
    for name in ("t.csv", "t.jsonl", "t.parquet"):
        with pytest.raises(ExportError, match=r"there is no folder .*no; make it first"):
            export_trials(on, table(on), tmp_path / "no" / name)
        with pytest.raises(ExportError, match="is a folder"):
            (tmp_path / "made" / name).mkdir(parents=True)
            export_trials(on, table(on), tmp_path / "made" / name)
        with pytest.raises(ExportError, match=r"/proc/.* cannot be written"):
            export_trials(on, table(on), Path("/proc") / name)
    shutil.rmtree(tmp_path / "made")
    assert [each.name for each in tmp_path.iterdir()] == ["t.xlsx"] and (
        tmp_path / "t.xlsx"
    ).read_text() == "mine"


def test_a_study_without_a_trial_leaves_an_empty_file(tmp_path: Path) -> None:
    made = study(tmp_path / "a.sqlite", 2, *READ)
    assert made.export(tmp_path / "t.jsonl").read_text() == ""
    made.run(BASE, repeats=1)
    assert len(made.export(tmp_path / "t.jsonl").read_text().splitlines()) == 2


def test_pandas_can_count_with_the_columns_before_and_after_parquet(tmp_path: Path) -> None:
    on = evidence({"a": {**mixed(1, 2), "s002": ("error",)}, "b": many(3, True)})
    frame, path = table(on), tmp_path / "t.parquet"
    assert str(frame["first_call_is"].dtype) == "boolean", "a missing verdict does not make objects of them"
    rates = frame.groupby("variant")["first_call_is"].mean()
    assert (rates["a"], rates["b"]) == (0.5, 1.0), "the trial that is missing is left out"
    assert frame["cost"].dtype == "float64" and str(frame["started"].dt.tz) == "UTC"
    export_trials(on, frame, path)
    with duckdb.connect() as db:
        kinds = {name: kind for name, kind, *_ in db.execute(f"DESCRIBE FROM '{path}'").fetchall()}
        noted = db.execute(f"SELECT value FROM parquet_kv_metadata('{path}') WHERE key = 'pandas'").fetchone()
    assert (kinds["first_call_is"], kinds["cost"]) == ("BOOLEAN", "DOUBLE")
    assert kinds["started"] == "TIMESTAMP WITH TIME ZONE"
    assert noted is not None
    # What `pandas.read_parquet` goes by; it takes pyarrow, which this package does not bring.
    told = {each["name"]: each["numpy_type"] for each in json.loads(noted[0])["columns"]}
    assert told["first_call_is"] == "boolean" and "cost" not in told


def test_an_export_is_as_readable_as_the_persons_other_files(tmp_path: Path) -> None:
    on = evidence({"a": many(2, True)})
    (tmp_path / "other").touch()
    export_trials(on, table(on), tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("answer", FORMULAS)
def test_no_cell_of_a_csv_file_is_a_formula_and_numbers_stay_numbers(tmp_path: Path, answer: str) -> None:
    more = [trial("-v", "@s", 0, True, answer=answer, cost=-0.5), trial("-v", "@s", 1, False, answer="2 - 1")]
    on = evidence({"-v": {}}, more=more)
    path = export_trials(on, table(on), tmp_path / "t.csv")
    with path.open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert first["answer"] == "'" + answer and (first["variant"], first["scenario"]) == ("'-v", "'@s")
    assert first["cost"] == "-0.5" and second["answer"] == "2 - 1"


@pytest.mark.parametrize("name", suite_names())
def test_every_shipped_suite_leaves_in_every_format_with_each_column_once(tmp_path: Path, name: str) -> None:
    suite = load_suite(name)
    first = suite.only(next(each.id for each in suite.scenarios))
    made = Study(tmp_path / "a.sqlite", suite=first)
    made.run(Variant("=v", model="simulator"), repeats=1)
    for ending in ("parquet", "csv", "jsonl"):
        made.export(tmp_path / f"t.{ending}")
    columns = list(made.trials.df.columns)
    assert len(set(columns)) == len(columns) and {"cost", "model_calls", "seconds"} <= set(columns)
    assert list(pd.read_csv(tmp_path / "t.csv").columns) == columns
    assert duckdb.sql(f"SELECT * FROM '{tmp_path / 't.parquet'}'").columns == columns
    (line,) = (tmp_path / "t.jsonl").read_text().splitlines()
    assert json.loads(line)["verdicts"].keys() == set(first.checks)
    made.close()
