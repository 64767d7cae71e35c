"""Datasets in files of Arrow and Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.datasets.rows import DatasetError
from tests.evaluation.datasets.test_datasets import SAMPLES, check_samples


def test_samples_are_read_from_a_parquet_file(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.Table.from_pylist(SAMPLES), tmp_path / "asked.parquet")
    check_samples(reyn.Dataset.from_inspect(tmp_path / "asked.parquet"))


def test_samples_are_read_from_a_folder_as_the_package_datasets_saves_it(tmp_path: Path) -> None:
    path = tmp_path / "asked"
    (path / "test").mkdir(parents=True)
    (path / "dataset_dict.json").write_text(json.dumps({"splits": ["test"]}))
    files = [{"filename": "data-00000-of-00001.arrow"}]
    (path / "test" / "state.json").write_text(json.dumps({"_data_files": files}))
    write_stream(path / "test" / "data-00000-of-00001.arrow", pa.Table.from_pylist(SAMPLES))
    check_samples(reyn.Dataset.from_inspect(path, split="test"))


@pytest.mark.parametrize(("name", "content"), [("q.parquet", "PAR1"), ("q.arrow", "")])
def test_a_damaged_file_is_told(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DatasetError, match="cannot be read"):
        reyn.Dataset.from_inspect(tmp_path / name)


def test_a_small_file_that_stands_for_very_much_text_is_refused(tmp_path: Path) -> None:
    swollen = tmp_path / "swollen.arrow"
    one = pa.array(["x" * (1 << 20)] * 300).dictionary_encode()  # one text that 300 rows point to
    write_stream(swollen, pa.table({"input": one, "target": ["y"] * 300}))
    assert swollen.stat().st_size < 2 << 20
    with pytest.raises(DatasetError, match="more than 256 MiB; take its first rows"):
        reyn.Dataset.from_inspect(swollen)


def write_stream(path: Path, table: Any) -> None:
    with pa.ipc.new_stream(path, table.schema) as sink:
        sink.write_table(table)
