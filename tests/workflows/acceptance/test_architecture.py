"""The architecture of utilities and skills, walked through: its tables of contracts, its roles, its scenario.

It is Russian and speaks of commands of `make`; here `make agent` and `make dispatch` are `%reyn dispatch`,
`make validate-manifests`, `registry` and `resolve` are `%reyn utilities --validate`, `--rebuild` and `%reyn resolve`.
"""

from __future__ import annotations

import json
import re

import pytest

from tests.workflows.acceptance.workshop import (
    ECHO,
    NOTHING,
    TEXT,
    Json,
    Notebook,
    Workshop,
    closed,
    gives,
    needs,
    opened,
    statuses,
    step,
)

VIDEO = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"
DRIVE = "https://drive.google.com/drive/folders/1AbCdEfGhIjKlMnOpQrStUvWxYz012345"
REQUEST = f"Скачай видео по ссылке {VIDEO} и положи в папку {DRIVE} на Drive."
OF_A_STEP = (
    "step_id", "capability", "tool", "inputs", "on_failure", "capability_contract", "coverage_confidence",
    "coverage_rationale",
)  # fmt: skip
OF_A_GAP = (
    "missing_capability", "reason", "reason_message", "reason_details", "proposed_tool_name",
    "proposed_input_schema", "proposed_output_schema", "priority",
)  # fmt: skip


def stand_ins(workshop: Workshop, plan: Json) -> None:
    for each in plan["steps"]:
        workshop.stand_in(each["capability"], each["capability_contract"])


# 1: goals


def test_a_new_utility_needs_its_folder_alone(workshop: Workshop) -> None:
    before = {each for each in workshop.root.rglob("*") if "state" not in each.parts}
    workshop.add("new", ECHO)
    added = {each for each in workshop.root.rglob("*") if "state" not in each.parts} - before
    assert {each.name for each in added} == {"tools", "new", "tool.yaml", "main.py"}
    assert workshop.execute(step("a", "new.run"))["status"] == "executed"


# 2: the structure of a workspace


def test_state_holds_the_cache_and_the_runs(notebook: Notebook) -> None:
    notebook.workshop.add("new", ECHO)
    notebook.say("%reyn utilities --rebuild")
    run = notebook.workshop.execute(step("a", "new.run"))
    state = notebook.workshop.root / "state"
    assert (state / "registry-cache.json").is_file() and (state / "runs" / f"{run['run_id']}.json").is_file()


# 3.2: the contract of a plan


@pytest.mark.parametrize("name", OF_A_STEP)
def test_a_step_of_a_plan_has_the_field(workshop: Workshop, name: str) -> None:
    assert all(name in each for each in workshop.route(REQUEST, llm=False)["steps"])


def test_the_contract_of_a_capability_has_two_schemas(workshop: Workshop) -> None:
    for each in workshop.route(REQUEST, llm=False)["steps"]:
        assert set(each["capability_contract"]) == {"input_schema", "output_schema"}


def test_inputs_come_from_the_request_and_from_steps_before(workshop: Workshop) -> None:
    first, second = workshop.route(REQUEST, llm=False)["steps"]
    assert any(
        str(each).startswith(f"steps.{first['step_id']}.outputs.") for each in second["inputs"].values()
    )


# 3.3: the contract of a report of gaps


@pytest.mark.parametrize("name", OF_A_GAP)
def test_a_gap_has_the_field(workshop: Workshop, name: str) -> None:
    gap = workshop.gap("no.body")
    assert name in gap and gap[name] not in (None, "")


def test_the_reasons_are_four_and_the_priorities_three(workshop: Workshop) -> None:
    workshop.add("new", ECHO)
    found = workshop.cover(
        step("a", "nonsense"),
        step("b", "no.body"),
        step("c", "new.run", **needs(NOTHING, opened(x=TEXT))),
        step("d", "new.run", source="llm", coverage_confidence=0.1),
    )
    assert [each["reason"] for each in found["gaps"]] == [
        "invalid_capability", "no_capability_match", "schema_incompatible", "low_confidence",
    ]  # fmt: skip
    assert {each["priority"] for each in found["gaps"]} <= {"high", "medium", "low"}


def test_a_report_is_readable_by_machines(workshop: Workshop) -> None:
    assert json.loads(json.dumps(workshop.cover(step("a", "no.body"))["gaps"]))


# 4: the roles


def test_the_router_plans_capabilities_and_knows_no_utility(workshop: Workshop) -> None:
    plan = workshop.route(REQUEST, llm=False)
    assert [each["capability"] for each in plan["steps"]] == ["youtube.download", "drive.upload"]


def test_the_executor_takes_a_utility_from_the_registry(workshop: Workshop) -> None:
    workshop.add("one", ECHO, capabilities=["c.d"])
    workshop.add("two", gives('{"two": True}'), capabilities=["c.d"], priority=1)
    assert workshop.execute(step("a", "c.d"))["steps"][0]["outputs"] == {"two": True}


def test_the_detector_leaves_a_plan_partial_with_a_gap_and_complete_without(workshop: Workshop) -> None:
    workshop.add("one", ECHO, capabilities=["c.d"])
    assert workshop.cover(step("a", "c.d"))["plan"]["status"] == "complete"
    assert workshop.cover(step("a", "c.d"), step("b", "e.f"))["plan"]["status"] == "partial-complete"


def test_the_policy_blocks_a_plan_that_violates_it(workshop: Workshop) -> None:
    workshop.add("one", ECHO, capabilities=["c.d"])
    workshop.policy(denied_capabilities=["c.*"])
    assert workshop.execute(step("a", "c.d"))["status"] == "blocked_by_policy"


def test_the_scaffolder_makes_manifest_and_entry_point_and_checks_them(workshop: Workshop) -> None:
    made = workshop.scaffold("tg.scrape")
    assert made["files"] and made["checks"] and made["manifest"]["entrypoint"]


def test_the_phases_are_shown_and_at_the_end_the_operations(notebook: Notebook) -> None:
    stand_ins(notebook.workshop, notebook.workshop.route(REQUEST, llm=False))
    said = notebook.say(f'%reyn dispatch "{REQUEST}"')
    assert said.index("step-1 youtube.download") < said.rindex("step-2 drive.upload")
    assert (
        re.search(r"plan", said, re.I) and re.search(r"gap", said, re.I) and re.search(r"policy", said, re.I)
    )


def test_commands_are_shown_and_not_executed(notebook: Notebook) -> None:
    stand_ins(notebook.workshop, notebook.workshop.route(REQUEST, llm=False))
    said = notebook.say(f'%reyn dispatch --dry "{REQUEST}"')
    assert "main.py" in said and notebook.workshop.run_files() == []


# 6: the scenario


def test_a_video_goes_from_youtube_to_drive_once_its_gaps_are_closed(workshop: Workshop) -> None:
    plan = workshop.route(REQUEST, llm=False)
    assert [each["capability"] for each in plan["steps"]] == ["youtube.download", "drive.upload"]
    stand_ins(workshop, plan)
    again = workshop.route(REQUEST, llm=False)
    assert again["status"] == "complete" and again["gaps"] == []
    assert [each["tool"].partition("@")[0] for each in again["steps"]] == [
        "youtube-download-stand-in", "drive-upload-stand-in",
    ]  # fmt: skip
    run = workshop.skill("workflow-executor", plan=again).value
    assert run["status"] == "executed" and {*statuses(run)} == {"step-1", "step-2"}


def test_without_a_utility_the_plan_is_partial_nothing_runs_and_the_report_proposes_one(
    workshop: Workshop,
) -> None:
    contract = needs(closed(path=TEXT), opened(url=TEXT))
    workshop.add("one", ECHO, capabilities=["video.fetch"])
    steps = [step("a", "video.fetch"), step("b", "cloud.put", {"path": "x"}, **contract)]
    run = workshop.execute(*steps)
    assert run["status"] == "partial-complete" and workshop.run_files() == []
    (gap,) = workshop.cover(*steps)["gaps"]
    assert gap["proposed_tool_name"] == "cloud-put" and gap["proposed_input_schema"] == closed(path=TEXT)
    schemas = {f"{each}_schema": gap[f"proposed_{each}_schema"] for each in ("input", "output")}
    workshop.scaffold("cloud.put", **schemas)
    assert workshop.execute(*steps)["status"] == "executed"


# 8: the road map


def test_manifests_are_validated_the_registry_is_built_and_a_capability_resolved(notebook: Notebook) -> None:
    notebook.workshop.add("one", ECHO, capabilities=["c.d"])
    assert notebook.say("%reyn utilities --validate")
    assert notebook.say("%reyn utilities --rebuild")
    assert "one@1.0.0" in notebook.say("%reyn resolve c.d")


def test_the_utilities_of_the_road_map_have_manifests(notebook: Notebook) -> None:
    said = notebook.say("%reyn utilities")
    assert [each for each in ("youtube-downloader", "drive-uploader", "webm-to-mp4-converter", "tg-scraper")
            if each not in said] == []  # fmt: skip
