"""The six examples of the specification, as they stand there."""

from __future__ import annotations

import json
import secrets
import time

import pytest

from reyn_jupyter.models.scripted import ScriptedModel
from tests.support.trusting import trust
from tests.workflows.acceptance.test_utilities import alive
from tests.workflows.acceptance.workshop import (
    DONE,
    ECHO,
    LATE,
    NOTHING,
    PENDING,
    SLEEPS,
    TEXT,
    Workshop,
    closed,
    error_code,
    needs,
    opened,
    plan_of,
    statuses,
    step,
)


def test_one_a_video_and_a_folder_of_drive(workshop: Workshop) -> None:
    workshop.session.parts.model = model = ScriptedModel()
    plan = workshop.route(
        "Download https://www.youtube.com/watch?v=dQw4w9WgXcQ and put it into "
        "https://drive.google.com/drive/folders/1AbCdEfGhIjKlMnOpQrStUvWxYz012345"
    )
    first, second = plan["steps"]
    assert (first["step_id"], first["capability"]) == ("step-1", "youtube.download")
    assert second["capability"] == "drive.upload"
    assert "steps.step-1.outputs.file_path" in second["inputs"].values()
    assert model.requests == []


def test_two_an_unknown_capability_and_the_scaffold_that_closes_it(workshop: Workshop) -> None:
    workshop.add("echo", ECHO)
    steps = [step("a", "echo.run"), step("b", "tg.scrape", {"channel": "news"})]
    found = workshop.cover(*steps)
    (gap,) = found["gaps"]
    assert found["status"] == "partial-complete"
    assert (gap["reason"], gap["proposed_tool_name"]) == ("no_capability_match", "tg-scrape")
    assert workshop.execute(*steps)["exit_code"] == 2 and workshop.run_files() == []
    workshop.scaffold("tg.scrape", input_schema=gap["proposed_input_schema"],
                      output_schema=gap["proposed_output_schema"])  # fmt: skip
    assert workshop.skill("gap-detector", plan=plan_of(*steps)).value["status"] == "complete"
    assert workshop.execute(*steps)["status"] == "executed"


@pytest.mark.parametrize(
    ("first", "second", "best"),
    [
        ({"version": "0.9.0", "stability": "stable"}, {"version": "2.0.0"}, "first@0.9.0"),
        ({"version": "0.10.0"}, {"version": "0.9.0"}, "first@0.10.0"),
    ],
)
def test_three_stable_beats_experimental_and_versions_are_numbers(
    workshop: Workshop, first: dict[str, str], second: dict[str, str], best: str
) -> None:
    workshop.write("first", capabilities=["c.d"], **first)
    workshop.write("second", capabilities=["c.d"], **second)
    trust(workshop.session)
    assert workshop.cover(step("a", "c.d"))["plan"]["steps"][0]["tool"] == best


@pytest.mark.parametrize(
    ("required", "serves"), [(["file_path", "sha"], True), (["sha"], False), ([], False)]
)
def test_four_what_a_utility_guarantees(workshop: Workshop, required: list[str], serves: bool) -> None:
    workshop.add("makes", output_schema=opened(file_path=TEXT, sha=TEXT, required=required))
    found = workshop.cover(step("a", "makes.run", **needs(NOTHING, opened(file_path=TEXT))))
    assert (found["status"] == "complete") is serves


def test_five_a_utility_that_sleeps_beyond_the_limit(workshop: Workshop) -> None:
    mark = f"five-{secrets.token_hex(8)}"
    workshop.write("sleeps", SLEEPS)
    workshop.write("echo", ECHO)
    trust(workshop.session)
    workshop.policy(max_run_seconds=2)
    began = time.monotonic()
    run = workshop.execute(step("a", "sleeps.run", {"mark": mark}), step("b", "echo.run", depends_on=["a"]))
    seconds = time.monotonic() - began
    assert error_code(run, "a") == "tool_timeout" and 1.5 < seconds < 300
    assert alive(mark) == []
    written = workshop.run_file()
    assert statuses(written) == {"a": LATE, "b": PENDING} and "tool_timeout" in json.dumps(written)


@pytest.mark.parametrize("text", ["; rm -rf x", "$(touch pwn)"])
def test_six_shell_text_reaches_the_utility_as_text(workshop: Workshop, text: str) -> None:
    (workshop.root / "x").mkdir()
    workshop.add("echo", ECHO, input_schema=closed(text=TEXT))
    run = workshop.execute(step("a", "echo.run", {"text": text}))
    assert statuses(run) == {"a": DONE} and run["steps"][0]["outputs"] == {"echo": {"text": text}}
    assert (workshop.root / "x").is_dir() and [*workshop.root.rglob("pwn")] == []
