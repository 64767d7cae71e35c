"""A request works on the file that it names, with the utilities of the package, or on none."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import duckdb
import pytest
from PIL import Image

from reyn_jupyter.notebook.render import to_text, view
from tests.support.trusting import trust
from tests.workflows.acceptance.workshop import TEXT, Notebook, Workshop, step, workflow_file

SHORT = "https://youtu.be/dQw4w9WgXcQ"


@pytest.fixture
def tables(workshop: Workshop) -> Workshop:
    """A workspace where each name that could be meant has a file with its own number of rows."""
    names = ["data.csv", "my data.csv", "Anna's data.csv", "a and b.csv", "b.csv", "old/data.csv", "DATA2.CSV",
             "x.v1.csv", "[1] data.csv", "-data.csv", "*.csv", "data (1).csv",
             unicodedata.normalize("NFD", "café.csv")]  # fmt: skip
    for rows, name in enumerate(names, 1):
        workshop.text(name, "n\n" + "1\n" * rows)
    return workshop


def rows_of(workshop: Workshop, text: str) -> int | None:
    """Run a request without a model; return the rows of the file that it converted, or None if nothing ran."""
    run = workshop.session.workflows.dispatch(text, llm=False).run
    if run.status != "executed":
        assert all(each.status == "not_run" for each in run.steps) and "not done" in run.text
        return None
    (outputs,) = run.outputs.values()
    made = str(workshop.root / outputs["file"])
    (counted,) = duckdb.execute("SELECT count(*) FROM read_parquet([?])", [made]).fetchall()
    assert counted == (outputs["rows"],)
    return int(outputs["rows"])


def test_request_converts_exactly_the_named_file(tables: Workshop) -> None:
    cases = {
        "convert data.csv to parquet": 1,
        "convert 'my data.csv' to parquet": 2,
        "convert “my data.csv” to parquet": 2,
        "convert my\\ data.csv to parquet": 2,
        "convert 'Anna's data.csv' to parquet": 3,
        "convert Anna's data.csv to parquet": 3,
        "convert `a and b.csv` to parquet": 4,
        "convert old/data.csv to parquet": 6,
        "convert DATA2.CSV to parquet": 7,
        "convert x.v1.csv to parquet": 8,
        "convert [1] data.csv to parquet": 9,
        "convert -data.csv to parquet": 10,
        "convert *.csv to parquet": 11,
        "convert data (1).csv to parquet": 12,
        "convert café.csv to parquet": 13,
        f"convert '{unicodedata.normalize('NFC', 'café.csv')}' to parquet": 13,
    }
    assert {text: rows_of(tables, text) for text in cases} == cases


def test_request_that_is_not_resolved_exactly_runs_nothing(tables: Workshop) -> None:
    for text in (
        "convert my data.csv to parquet",
        "convert a and b.csv to parquet",
        "convert 'your data.csv' to parquet",
        "convert data2.csv to parquet",
        "convert Data.csv to parquet",
        "convert data.csv in new to parquet",
        "convert data.csv to parquet into out",
        "convert new/*.csv to parquet",
        "convert ~/data.csv to parquet",
        "convert ../data.csv to parquet",
        "convert C:\\data.csv to parquet",
        "convert 'data.csv to parquet",
        "convert https://example.com/data.csv to parquet",
        "unpack nothing.zip, then convert it to parquet",
    ):
        assert rows_of(tables, text) is None, text
    assert tables.run_files() == [] and not list(tables.root.rglob("*.parquet"))


def test_missing_file_is_a_gap_with_the_nearest_names(tables: Workshop) -> None:
    plan = tables.route("convert 'my dat.csv' to parquet")
    (gap,) = plan["gaps"]
    assert (plan["status"], gap["reason"], gap["step_id"]) == ("partial-complete", "input_missing", "step-1")
    assert "'my dat.csv'" in gap["reason_message"] and "'my data.csv'" in gap["reason_message"]
    tables.text("my dat.csv", "n\n1\n")
    again = tables.skill("gap-detector", plan=plan).value
    assert (again["status"], again["gaps"]) == ("complete", [])


def test_download_is_not_the_folder_of_input_data(workshop: Workshop) -> None:
    workshop.text("input_data/private.webm", "a video")
    for text in ("download https://example.com/talk.webm then convert it from webm to mp4",
                 f"download {SHORT}, then convert webm to mp4", "convert it from webm to mp4"):  # fmt: skip
        plan = workshop.route(text, llm=False)
        assert "input_data" not in str(plan["steps"]) and plan["status"] != "complete", text
    assert "input_data" in str(workshop.route("convert all webm files to mp4")["steps"])


def test_dispatch_shows_what_was_not_used_first(notebook: Notebook) -> None:
    notebook.workshop.text("a.csv", "n\n1\n")
    said = notebook.say('%reyn dispatch --no-llm "convert a.csv to parquet into out"')
    assert "“into” and “out”" in said.partition("Gaps")[0]
    assert "executed" not in said and "is done" not in said
    said = notebook.say('%reyn dispatch "convert a.csv to parquet. I have a talk tomorrow."')
    assert "not used: “I have a talk tomorrow”" in said.partition("Steps")[0]
    run = notebook.workshop.session.workflows.dispatch("convert a.csv to parquet", {"into": "out"})
    assert "Not used: the input into." in run.plan.notes
    assert "not used: the input into" in to_text(view(run)).partition("Steps")[0]


def test_request_on_the_line_keeps_the_quotes_of_its_names(notebook: Notebook) -> None:
    for name in ("my a.csv", "my b.csv", "b.csv"):
        notebook.workshop.text(name, "n\n1\n")
    for line in ('"my a.csv" to parquet and "my b.csv"', '"convert "my a.csv" and "my b.csv" to parquet"',
                 "'convert \"my a.csv\" and 'my b.csv' to parquet'"):  # fmt: skip
        said = notebook.say(f"%reyn plan --no-llm {line}")
        assert 'file="b.csv"' not in said, line
    assert 'file="my a.csv"' in said and 'file="my b.csv"' in said and "[complete]" in said


def test_images_that_fail_are_counted_in_the_first_line(notebook: Notebook) -> None:
    workshop, photos = notebook.workshop, notebook.workshop.root / "photos"
    photos.mkdir()
    for name in "ab":
        Image.new("RGB", (40, 40)).save(photos / f"{name}.png")
    (photos / "broken.png").write_bytes(b"no image")
    run = workshop.session.workflows.dispatch("make thumbnails of photos").run
    assert run.status == "partly_done" and run.exit_code == 0
    assert run.text.splitlines()[0] == "The task is partly done: 1 of 3 in step-1 image.thumbnail failed."
    shown = notebook.say('%reyn dispatch "make thumbnails of photos"').partition("Steps")[0]
    assert "[partly done]" in shown and "1 of 3 failed in step-1" in shown
    called = notebook.say('%reyn invoke utility__image-thumbnails --json \'{"images": ["photos"]}\'')
    assert "[partly done]" in called and "1 of 3 failed" in called and "ok" not in called.splitlines()[0]
    # The same as a workflow, which gives only what its file names, and over several inputs.
    small = step("small", "image.thumbnail", {"images": ["request.inputs.folder"]})
    given = {"made": "steps.small.outputs.thumbnails"}
    kept = workflow_file("small", small, outputs=given, takes={"folder": TEXT})
    workshop.text("skills/small.yaml", kept)
    outer = step("outer", action="skill__small", inputs={"folder": "photos"})
    trust(workshop.session)
    said = workshop.attempt("skill__small", folder="photos").value["partly_done"]
    assert said == "The task is partly done: 1 of 3 in small image.thumbnail failed."
    called = notebook.say("%reyn invoke skill__small folder=photos")
    assert "[partly done]" in called and said in called
    assert workshop.execute(outer)["text"].startswith(
        "The task is partly done: a part in outer skill__small failed."
    )
    table = workshop.session.workflows.map("small", [{"folder": "photos"}])
    assert [each["status"] for each in table.rows] == ["partly done"] and "1 partly done" in table.note
    (Path(photos) / "broken.png").unlink()
    assert workshop.session.workflows.dispatch("make thumbnails of photos").status == "executed"
