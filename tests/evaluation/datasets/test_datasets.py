"""Datasets of others as scenarios: what is read can be solved, and what is not read is said with its reason."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.datasets.rows import DatasetError, read_rows
from reyn_jupyter.evaluation.models.baselines import NullAgent, Oracle
from reyn_jupyter.evaluation.suites import check_suite

LABELLED = Path(__file__).parents[2] / "data" / "retrieval"
# Two tasks of τ-bench's trajectories of gpt-4o (airline; sierra-research/tau-bench, MIT), cut to what a task holds.
BOOK = {
    "user_id": "mia_li_3668",
    "instruction": "You are mia_li_3668. You want to fly from New York to Seattle on May 20 (one way).",
    "actions": [
        {
            "name": "book_reservation",
            "kwargs": {
                "user_id": "mia_li_3668",
                "flights": [{"flight_number": "HAT136", "date": "2024-05-20"}],
                "total_baggages": 3,
            },
        }
    ],
    "outputs": [],
}
REFUSE = {"user_id": "emma_kim_9957", "instruction": "Cancel EHGLP3.", "actions": [], "outputs": ["327"]}
# A task of τ²-bench (airline, tasks.json; sierra-research/tau2-bench, MIT).
SUITCASES = {
    "id": "3",
    "user_scenario": {
        "persona": None,
        "instructions": {
            "task_instructions": "Insist on getting the total number in numeric form.",
            "domain": "airline",
            "reason_for_call": "You want to figure out the total number of suitcases.",
            "known_info": "You are Anya Garcia.\\nYour user id is: anya_garcia_5901.",
            "unknown_info": None,
        },
    },
    "initial_state": None,
    "evaluation_criteria": {
        "actions": [
            {
                "action_id": "3_0",
                "name": "get_user_details",
                "arguments": {"user_id": "anya_garcia_5901"},
                "info": None,
            }
        ],
        "communicate_info": ["4"],
        "nl_assertions": ["Agent detects that user is actually a Silver member."],
    },
}
TOOLS = [
    {"name": name, "parameters": {"type": "object", "properties": properties, "required": ["user_id"]}}
    for name, properties in {
        "book_reservation": {
            "user_id": {"type": "string"},
            "flights": {"type": "array", "items": {"type": "object"}},
            "total_baggages": {"type": "integer"},
        },
        "get_user_details": {"user_id": {"type": "string"}},
    }.items()
]
ASKED = {
    "input": "What is the capital of France?",
    "target": "Paris",
    "id": "capital 1",
    "metadata": {"hard": False},
}


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def labelled(most: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Questions and accepted calls in the leaderboard's own form, from its real labels."""
    actions = [json.loads(line) for line in (LABELLED / "bfcl_actions.jsonl").read_text().splitlines()]
    known = {action["id"]: action for action in actions}
    questions, answers = [], []
    for line in (LABELLED / "bfcl_queries.jsonl").read_text().splitlines()[:most]:
        row = json.loads(line)
        functions = {known[each]["name"]: known[each] for ids in row["gold"] for each in ids}
        asked = [
            {key: each[key] for key in ("name", "description", "parameters")} for each in functions.values()
        ]
        question = [[{"role": "user", "content": row["query"]}]]
        questions.append({"id": row["id"], "question": question, "function": asked})
        answers.append({"id": row["id"], "ground_truth": row["ground_truth"]})
    return questions, answers


def solved(suite: reyn.Suite, model: Any) -> dict[str, int]:
    """How many trials pass the primary check."""
    with reyn.Study(None, suite=suite, models={"agent": model}) as study:
        study.run(reyn.Variant("agent", model="agent"), repeats=1)
        return dict(Counter(str(each) for each in study.trials.df[suite.primary]))


# --- BFCL


def test_real_labelled_calls_become_scenarios_that_the_oracle_solves_and_nobody_else(tmp_path: Path) -> None:
    questions, answers = labelled(30)
    (tmp_path / "possible_answer").mkdir()
    lines(tmp_path / "possible_answer" / "BFCL_v4_some.json", *answers)
    read = reyn.Dataset.from_bfcl(lines(tmp_path / "BFCL_v4_some.json", *questions))
    assert len(read.suite.scenarios) + len(read.left_out) == 30 and len(read.suite.scenarios) > 20
    assert {each.reason for each in read.left_out} >= {"its accepted values are code of Java or JavaScript"}
    check_suite(read.suite)
    some = read.suite.only(*(each.id for each in read.suite.scenarios[:6]))
    assert solved(some, Oracle(some)) == {"True": 6}
    assert "True" not in solved(some, NullAgent("silent"))


def test_a_nested_accepted_value_and_a_name_that_stands_twice_are_expressed(tmp_path: Path) -> None:
    parameters = {"type": "dict", "properties": {"drink": {"type": "dict"}}, "required": ["drink"]}
    function = {"name": "cafe.order", "parameters": parameters}
    asked = [[{"role": "user", "content": "A latte."}]]
    functions = [function, {**function, "description": "Another one."}]
    question = {"id": "live_multiple_0-0-0", "question": asked, "function": functions}
    accepted = {"drink": [{"size": ["large"], "note": [""]}]}
    truth = {"id": "live_multiple_0-0-0", "ground_truth": [{"cafe.order": accepted}]}
    read = reyn.Dataset.from_bfcl(lines(tmp_path / "q.json", question), lines(tmp_path / "a.json", truth))
    (step,) = read.suite.scenarios[0].gold.steps
    assert [call.action for call in step] == ["tool__cafe.order", "tool__cafe.order-2"]
    assert solved(read.suite, Oracle(read.suite)) == {"True": 1}


def test_each_question_that_no_scenario_can_say_is_left_out_with_its_reason(tmp_path: Path) -> None:
    good, truth = (rows[0] for rows in labelled(1))
    said = good["question"][0]
    system = {"role": "system", "content": "Be short."}
    rows = [
        good,
        {**good, "id": "irrelevance_1"},
        {**good, "id": "multi_turn_base_1", "question": [said, said]},
        {**good, "id": "live_simple_1-0-0", "question": [[system, *said]]},
        {**good, "id": "simple_java_1"},
        {**good, "id": "live_relevance_1-0-0"},
        {**good, "id": "simple_python_x"},
        {**good, "id": "memory_1", "function": []},
        {**good, "id": "simple_python_y"},
        {
            **good,
            "id": "simple_python_z",
            "function": [{"name": "f", "parameters": {"type": "object", "required": 3}}],
        },
    ]
    empty = {"id": "simple_python_y", "ground_truth": [{next(iter(truth["ground_truth"][0])): {"base": []}}]}
    odd = {"id": "simple_python_z", "ground_truth": [{"f": {}}]}
    answers = lines(tmp_path / "a.json", truth, empty, odd)
    read = reyn.Dataset.from_bfcl(lines(tmp_path / "q.jsonl", *rows), answers)
    assert [each.id for each in read.suite.scenarios] == [good["id"], "irrelevance_1"]
    assert read.suite.scenario("irrelevance_1").gold.unanswerable
    reasons = {each.id: each.reason for each in read.left_out}
    assert len(reasons) == 8 and "several turns" in reasons["multi_turn_base_1"]
    assert "system message" in reasons["live_simple_1-0-0"] and "Java" in reasons["simple_java_1"]
    assert "any call counts" in reasons["live_relevance_1-0-0"] and "answers=" in reasons["simple_python_x"]
    assert (
        "no function" in reasons["memory_1"] and "accepts no value for 'base'" in reasons["simple_python_y"]
    )
    assert "no catalog" in reasons["simple_python_z"]
    assert (
        str(read).count("left out, 1 row") == 8 and repr(read) == "Dataset('q', 2 scenarios; 8 rows left out)"
    )


# --- τ-bench


def test_tasks_of_tau_bench_are_the_calls_that_they_need_each_once(tmp_path: Path) -> None:
    tried = [
        {"task_id": number, "reward": 0.0, "info": {"task": task}, "traj": [], "trial": trial}
        for trial in range(2)
        for number, task in enumerate((BOOK, REFUSE))
    ]
    path = tmp_path / "airline.json"
    path.write_text(json.dumps(tried), "utf-8")
    read = reyn.Dataset.from_tau_bench(path, TOOLS)
    assert [each.id for each in read.suite.scenarios] == ["airline-0"]
    assert [(each.id, each.place) for each in read.left_out] == [("airline-1", "airline.json, row 2")]
    assert read.notes["a task that was tried several times is one scenario"] == 2
    assert any("not simulated" in note for note in read.notes)
    assert solved(read.suite, Oracle(read.suite)) == {"True": 1}


def test_a_task_of_tau2_bench_says_what_it_asks_beside_its_calls(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(
        json.dumps({"tasks": [SUITCASES, {**SUITCASES, "id": "4", "evaluation_criteria": None}]}), "utf-8"
    )
    read = reyn.Dataset.from_tau_bench(path, {"tools": TOOLS})
    assert "Anya Garcia" in read.suite.scenarios[0].prompts["natural"]
    assert sum("communicate_info" in note or "nl_assertions" in note for note in read.notes) == 2
    assert [each.reason for each in read.left_out] == [
        "it needs no call: what is right about it, no call shows"
    ]
    with pytest.raises(
        DatasetError, match=r"none of its rows is a scenario.*the tools have no 'get_user_details'"
    ):
        reyn.Dataset.from_tau_bench(path, TOOLS[:1])


# --- samples of inspect_ai, and of anybody


SAMPLES = [
    {**ASKED, **each}
    for each in ({}, {"id": "2", "target": "2|3"}, {"id": "3", "target": "France"}, {"id": "4", "target": ""})
]


def check_samples(read: reyn.Dataset) -> None:
    (one,) = read.suite.scenarios
    assert (one.id, one.prompts, one.says) == ("capital_1", {"natural": ASKED["input"]}, ("Paris",))
    assert [each.id for each in read.left_out] == ["2", "3", "4"]
    assert "parts alternatives" in read.left_out[0].reason
    assert "says it all itself" in read.left_out[1].reason
    assert "no target" in read.left_out[2].reason and read.notes["metadata is not carried"] > 0


def write_samples(folder: Path, kind: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / f"asked.{kind}"
    if kind == "jsonl":
        lines(path, *rows)
    elif kind == "json.gz":
        path.write_bytes(gzip.compress(json.dumps(rows).encode()))
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows({**row, "metadata": json.dumps(row["metadata"])} for row in rows)
    return path


@pytest.mark.parametrize("kind", ["jsonl", "json.gz", "csv"])
def test_samples_are_read_alike_from_every_kind_of_file(tmp_path: Path, kind: str) -> None:
    check_samples(reyn.Dataset.from_inspect(write_samples(tmp_path, kind, SAMPLES)))


def test_a_cell_of_csv_holds_what_else_ends_a_line(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("id,target,input\n1,yes,a\u2028b\x0bc\x85d\n2,no,c\n", "utf-8")
    read = reyn.Dataset.from_inspect(tmp_path / "q.csv")
    assert [each.prompts["natural"] for each in read.suite.scenarios] == ["a\u2028b\x0bc\x85d", "c"]


def test_columns_of_other_names_lists_of_targets_and_conversations(tmp_path: Path) -> None:
    rows = [
        {"question": "How many legs has a spider?", "answer": ["8", "eight"], "kind": "facts"},
        {"question": [{"role": "user", "content": "And an ant?"}], "answer": 6},
        {
            "question": [{"role": "system", "content": "Hi"}, {"role": "user", "content": "And a fly?"}],
            "answer": "6",
        },
        {"question": "Which?", "answer": "A", "choices": ["A", "B"]},
        {"question": "Run it.", "answer": "x", "sandbox": "docker"},
    ]
    fields = {"input": "question", "target": "answer", "family": "kind"}
    read = reyn.Dataset.from_inspect(lines(tmp_path / "q.jsonl", *rows), fields=fields)
    assert [(each.id, each.family, each.says) for each in read.suite.scenarios] == [
        ("q-1", "facts", ("8|eight",)),
        ("q-2", "q", ("6",)),
    ]
    assert ["conversation" in read.left_out[0].reason, "choices" in read.left_out[1].reason] == [True, True]
    assert "sandbox" in read.left_out[2].reason
    with pytest.raises(DatasetError, match=r"no field 'inputs'.*input"):
        reyn.Dataset.from_inspect(tmp_path / "q.jsonl", fields={"inputs": "question"})


# --- bad rows, hostile files


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("q.jsonl", '{"input": "a", "target": "b"}\n{"input": ', r"q\.jsonl, line 2: no JSON"),
        ("q.jsonl", "[1]\n", r"line 1: \[1\] is no row"),
        ("q.jsonl", '{"target": "b"}\n', r"line 1: 'input' is missing; give a text"),
        ("q.jsonl", '{"input": 3, "target": "b"}\n', r"line 1: 'input' is 3; give a text"),
        (
            "q.jsonl",
            '{"input": "a", "target": "b", "id": 1}\n' * 2,
            r"line 2: the id '1' is taken in q\.jsonl, line 1",
        ),
        ("q.jsonl", '{"input": "a", "target": "b", "metadata": "{"}\n', r"line 1: 'metadata' is no JSON"),
        ("q.json", "[" * 100_000, "nested too deeply|no JSON"),
        ("q.json", '"text"', "a dataset is a list of objects"),
        ("q.csv", "input,target\na,b,c\n", r"q\.csv, line 2: 3 cells for 2 columns"),
        ("q.csv", "input,input\na,b\n", "names the columns, each once"),
        ("q.csv", 'input,target\n"a', "no CSV"),
        ("q.xlsx", "", "of no kind that is read"),
        ("q.parquet", "PAR1", r"read with pyarrow: pip install 'reyn-jupyter\[arrow\]'"),
        ("q.jsonl", "", "none of its rows is a scenario .*it has no rows"),
    ],
)
def test_what_is_no_dataset_is_told_with_its_row(tmp_path: Path, name: str, content: str, told: str) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(DatasetError, match=told):
        reyn.Dataset.from_inspect(tmp_path / name)


def test_a_folder_reaches_no_file_outside_itself_and_too_much_is_refused(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "state.json").write_text(
        json.dumps({"_data_files": [{"filename": "../secret.arrow"}]})
    )
    with pytest.raises(DatasetError, match="outside itself"):
        reyn.Dataset.from_inspect(tmp_path / "saved")
    with pytest.raises(DatasetError, match="no splits; leave split out"):
        reyn.Dataset.from_inspect(lines(tmp_path / "q.jsonl", ASKED), split="test")
    many = tmp_path / "many.csv"
    many.write_text("input,target\n" + "a,b\n" * 100_001, "utf-8")
    with pytest.raises(DatasetError, match="more than 100,000 rows; take the first ones: limit="):
        reyn.Dataset.from_inspect(many)
    assert len(reyn.Dataset.from_inspect(many, limit=3).suite.scenarios) == 3


@settings(max_examples=40, deadline=None)
@given(
    row=st.dictionaries(
        st.sampled_from(
            ["input", "target", "id", "metadata", "choices", "files", "question", "function", "actions"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
            ),
            max_leaves=8,
        ),
    )
)
def test_no_row_whatever_it_holds_is_more_than_a_scenario_a_reason_or_an_error_that_names_it(
    row: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = lines(
        tmp_path_factory.mktemp("rows") / "q.jsonl", {**row, "id": "irrelevance_1"}, {**ASKED, "id": "ok"}
    )
    for read in (
        lambda: reyn.Dataset.from_inspect(path),
        lambda: reyn.Dataset.from_bfcl(path),
        lambda: reyn.Dataset.from_tau_bench(path, TOOLS),
    ):
        try:
            found = read()
        except DatasetError as error:
            assert "q.jsonl" in str(error)
        else:
            assert len(found.suite.scenarios) + len(found.left_out) == 2


@pytest.mark.parametrize("name", ["a.jsonl", "a.json.gz", "a.csv", "a.parquet", "a.arrow"])
def test_a_pipe_makes_no_reader_wait(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(DatasetError, match=r"no regular file|pyarrow"):
        read_rows(tmp_path / name)


def test_a_damaged_gzip_file_is_named(tmp_path: Path) -> None:
    raw = bytearray(gzip.compress(b'{"a": 1}\n' * 500))
    raw[12:22] = b"\xff" * 10
    (tmp_path / "a.jsonl.gz").write_bytes(raw)
    with pytest.raises(DatasetError, match="cannot be read"):
        read_rows(tmp_path / "a.jsonl.gz")
