"""`%reyn plan`, `dispatch`, `utilities`, `resolve`, `scaffold` and `workflow` at the keyboard."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.notebook.render import to_text, view
from reyn_jupyter.workflows.planning.plan import read_plan
from tests.support.trusting import trust
from tests.workflows.acceptance.workshop import (
    ECHO,
    FAILS,
    LOG,
    LOGS,
    TEXT,
    Notebook,
    closed,
    gives,
    model_plan,
    model_step,
    opened,
)

VIDEO = "https://youtu.be/dQw4w9WgXcQ"
DRIVE = "https://drive.google.com/drive/folders/1AbCdEfGhIjKlMnOpQrStUvWxYz012345"
REQUEST = f"Download {VIDEO} and put it into {DRIVE}"


@pytest.fixture
def ready(notebook: Notebook) -> Notebook:
    """A notebook whose workspace can download videos and upload files: by stand-ins."""
    for each in notebook.workshop.route(REQUEST, llm=False)["steps"]:
        notebook.workshop.stand_in(each["capability"], each["capability_contract"])
    return notebook


# %reyn plan


def test_a_plan_shows_its_steps_as_a_graph_in_text_and_runs_nothing(ready: Notebook) -> None:
    said = ready.say(f'%reyn plan "{REQUEST}"')
    assert [
        each for each in ("step-1", "step-2", "youtube.download", "drive.upload") if each not in said
    ] == []
    assert "youtube-download-stand-in" in said and ready.workshop.run_files() == []


def test_gaps_show_as_a_table_with_reason_proposed_name_and_what_to_do(notebook: Notebook) -> None:
    notebook.workshop.session.parts.model = ScriptedModel(model_plan(model_step("tg.scrape-all")))
    said = notebook.say('%reyn plan "Read all of my channels"')
    assert [
        each
        for each in ("tg.scrape-all", "no_capability_match", "tg-scrape-all", "%reyn scaffold tg.scrape-all")
        if each not in said
    ] == []


def test_a_request_that_nobody_understands_says_how_to_configure_a_model(notebook: Notebook) -> None:
    said = notebook.say('%reyn plan "Compose a symphony about the sea"')
    assert "unroutable" in said and "%reyn config" in said


def test_a_request_needs_no_quotes_and_keeps_its_words(ready: Notebook) -> None:
    assert "youtube.download" in ready.say(f"%reyn plan Download {VIDEO}")


def test_a_request_may_stand_in_the_cell(ready: Notebook) -> None:
    said = ready.say(f"%%reyn plan\nDownload {VIDEO}\nand put it into {DRIVE}\n")
    assert "youtube.download" in said and "drive.upload" in said


def test_without_a_request_the_verb_says_what_to_write(notebook: Notebook) -> None:
    assert "%reyn plan" in notebook.say("%reyn plan")


# %reyn dispatch


def test_dispatch_runs_the_whole_chain_and_says_its_phases_and_operations(ready: Notebook) -> None:
    said = ready.say(f'%reyn dispatch "{REQUEST}"')
    assert "step-1 youtube.download" in said and "step-2 drive.upload" in said
    low = said.lower()
    assert [each for each in ("plan", "gap", "policy") if each not in low] == []
    assert ready.workshop.run_file()["status"] == "executed"


@pytest.mark.parametrize(
    ("more", "phases"),
    [
        ("", ["planning", "gap check", "policy check", "running"]),
        (" and translate its subtitles", ["planning", "gap check"]),
    ],
)
def test_the_phases_of_a_dispatch_are_told_as_they_begin(
    ready: Notebook, more: str, phases: list[str]
) -> None:
    heard: list[str] = []
    ended = ready.workshop.session.workflows.dispatch(
        REQUEST + more, llm=False, on_change=lambda made: heard.append(made.phase)
    )
    assert list(dict.fromkeys(heard)) == phases and ended.phase == "ended"


def test_a_plan_with_gaps_is_not_said_to_be_allowed_by_the_policy(ready: Notebook) -> None:
    said = ready.say(f'%reyn dispatch --no-llm "{REQUEST} and translate its subtitles"')
    assert "the policy allows it" not in said
    assert "the policy allows it" in ready.say(f'%reyn dispatch "{REQUEST}"')


def test_a_dry_dispatch_shows_the_commands_and_runs_nothing(ready: Notebook) -> None:
    said = ready.say(f'%reyn dispatch --dry "{REQUEST}"')
    assert "preview" in said and "main.py" in said and VIDEO in said
    assert ready.workshop.run_files() == []


@pytest.mark.parametrize(
    ("operation", "inputs"),
    [
        ({"capability": "video.convert"}, {"file": "in.webm"}),
        ({"action": "file__read"}, {"path": "request.inputs.name"}),
    ],
)
def test_a_plan_and_a_dry_run_say_which_input_is_missing(
    notebook: Notebook, operation: dict[str, str], inputs: dict[str, str]
) -> None:
    workshop = notebook.workshop
    takes = closed(file={"type": "string", "format": "readable-path"})
    workshop.add("convert", capabilities=["video.convert"], input_schema=takes)
    steps = [
        {"step_id": "first", **operation, "inputs": inputs},
        # What it reads may be made by then.
        {"step_id": "then", "action": "file__read", "inputs": {"path": "made.txt"}, "depends_on": ["first"]},
    ]
    data = {"steps": steps, "request_inputs": {"name": "in.webm"}}

    def shown() -> tuple[str, str]:
        plan = read_plan(workshop.skill("gap-detector", plan=data).value["plan"])
        assert plan.status == "complete"
        dry = workshop.session.workflows.execute(plan, dry=True)
        return to_text(view(plan)), to_text(view(dry))

    for said in shown():
        assert "first: there is no file or folder 'in.webm' in the workspace" in said
        assert "input missing" in said and "made.txt' in" not in said
    workshop.text("in.webm", "a video")
    for said in shown():
        assert "missing" not in said


def test_a_dispatch_with_a_gap_runs_nothing_and_says_what_is_missing(ready: Notebook) -> None:
    said = ready.say(f'%reyn dispatch --no-llm "{REQUEST} and translate its subtitles"')
    assert "partial-complete" in said and "translate" in said
    assert ready.workshop.run_files() == []


def test_a_dispatch_that_fails_says_what_was_done_and_what_is_missing(ready: Notebook) -> None:
    (ready.workshop.root / "tools" / "drive-upload-stand-in" / "main.py").write_text(FAILS)
    trust(ready.workshop.session)
    said = ready.say(f'%reyn dispatch "{REQUEST}"')
    assert "step-1 youtube.download" in said and "step-2 drive.upload" in said
    assert "the pipe is broken" in said and "execution failed" in said


def test_a_dispatch_plans_the_rest_with_a_model_and_without_it_where_told(notebook: Notebook) -> None:
    notebook.workshop.add("logs", LOGS, input_schema=opened(log=LOG))
    answer = model_plan(model_step("logs.run", inputs={"log": "log"}))
    notebook.workshop.session.parts.model = model = ScriptedModel(answer)
    assert "unroutable" in notebook.say('%reyn dispatch --no-llm "Write something down"')
    assert model.requests == [] and notebook.workshop.log() == 0
    notebook.say('%reyn dispatch "Write something down"')
    assert len(model.requests) == 1 and notebook.workshop.log() == 1


def test_logs_of_utilities_are_seen(ready: Notebook) -> None:
    main = ready.workshop.root / "tools" / "youtube-download-stand-in" / "main.py"
    main.write_text("import sys\nprint('42 % of it', file=sys.stderr)\n" + main.read_text())
    trust(ready.workshop.session)
    assert "42 % of it" in ready.say(f'%reyn dispatch "{REQUEST}"')


def test_each_line_of_a_log_stands_with_its_step_at_the_end(ready: Notebook) -> None:
    main = ready.workshop.root / "tools" / "youtube-download-stand-in" / "main.py"
    main.write_text(
        "import sys\nfor at in range(30):\n    print('line', at, file=sys.stderr)\n" + main.read_text()
    )
    trust(ready.workshop.session)
    said = ready.say(f'%reyn dispatch "{REQUEST}"')
    assert [at for at in range(30) if f"line {at}" not in said] == []
    first, second = ready.workshop.run_file()["steps"]
    assert first["log"].splitlines()[-1] == "line 29" and "log" not in second


# %reyn utilities, resolve, scaffold are in test_registry, test_manifest and test_scaffolder


@pytest.mark.parametrize("line", ["%reyn resolve", "%reyn scaffold", "%reyn workflow", "%reyn dispatch"])
def test_a_verb_without_its_word_says_what_to_write(notebook: Notebook, line: str) -> None:
    assert line in notebook.say(line)


def test_help_names_all_of_the_verbs(notebook: Notebook) -> None:
    said = notebook.say("%reyn help")
    assert [
        each
        for each in ("plan", "dispatch", "utilities", "resolve", "scaffold", "workflow")
        if each not in said.replace(",", " ").split() and f"%reyn {each}" not in said
    ] == []


def test_the_plan_of_a_page_holds_a_graph_for_mermaid(ready: Notebook) -> None:
    """The export of a notebook draws it; a page without Mermaid shows the text."""
    ready.say(f'shown = get_ipython().run_line_magic("reyn", \'plan "{REQUEST}"\')')
    ready.say("from reyn_jupyter.notebook.displays.mime import mimebundle")
    page = ready.say("print(mimebundle(shown)['text/html'])")
    assert "flowchart" in page or "graph " in page


def test_what_a_utility_gives_can_be_used_in_the_notebook(notebook: Notebook) -> None:
    notebook.workshop.add(
        "sums", gives('{"sum": sum(inputs["of"])}'), input_schema=opened(of={"type": "array"})
    )
    assert "6" in notebook.say("%reyn invoke utility__sums --json '{\"of\": [1, 2, 3]}'")


def test_all_of_a_request_is_text_also_what_looks_like_python_or_shell(ready: Notebook) -> None:
    ready.workshop.add("echo", ECHO, input_schema=closed(text=TEXT))
    ready.workshop.session.parts.model = ScriptedModel(
        model_plan(model_step("echo.run", inputs={"text": "x"}))
    )
    said = ready.say('%reyn plan "Say {1 + 1} and $(touch pwn); rm -rf tools"')
    assert [*ready.workshop.root.rglob("pwn")] == [] and (ready.workshop.root / "tools").is_dir()
    sent = json.dumps([each.wire for each in ready.workshop.session.parts.model.requests])
    assert "$(touch pwn)" in sent and said


# What a person does next


def test_the_last_run_goes_on_without_its_id(ready: Notebook) -> None:
    program = ready.workshop.root / "tools" / "drive-upload-stand-in" / "main.py"
    works = program.read_text()
    program.write_text(FAILS)
    trust(ready.workshop.session)
    ready.say(f'%reyn dispatch "{REQUEST}"')
    program.write_text(works)
    trust(ready.workshop.session)
    assert "[executed]" in ready.say("%reyn dispatch --resume last")
    (run,) = ready.workshop.run_files()
    assert run.stem in ready.say(f"%reyn dispatch --resume {run.stem}")


def test_without_a_run_there_is_no_last_one(notebook: Notebook) -> None:
    assert "There is no run in state/runs" in notebook.say("%reyn dispatch --resume last")


def test_what_a_gap_proposes_is_scaffolded_so_that_it_closes_the_gap(notebook: Notebook) -> None:
    notebook.workshop.text(
        "tools/rules.yaml",
        {
            "rules": [
                {
                    "name": "count",
                    "capability": "words.count",
                    "pattern": "words of (?P<file>\\S+)",
                    "inputs": {"file": {"group": "file"}},
                    "input_schema": closed(file=TEXT),
                    "output_schema": opened(words={"type": "integer"}),
                }
            ]
        },
    )
    trust(notebook.workshop.session)
    assert "no_capability_match" in notebook.say('%reyn plan "words of notes.md"')
    assert "it ran once" in notebook.say("%reyn scaffold words.count")
    assert "[complete]" in notebook.say('%reyn plan "words of notes.md"')


def test_a_run_of_a_plan_is_kept_as_its_steps_and_takes_other_files(notebook: Notebook) -> None:
    for name in ("sales", "costs"):
        notebook.workshop.text(f"{name}.csv", f"{name},amount\na,1\n")
    notebook.say('%reyn dispatch "convert sales.csv to Parquet"')
    notebook.say("%reyn workflow save last --name pack")
    kept = (notebook.workshop.root / "skills" / "pack.yaml").read_text()
    assert "table.to-parquet" in kept and "workflow-executor" not in kept
    said = notebook.say("%reyn invoke skill__pack file=costs.csv")
    assert "costs.parquet" in said and "step-1" in said


def test_a_run_of_the_agent_that_ends_in_a_table_runs_again_as_a_workflow(notebook: Notebook) -> None:
    notebook.workshop.text("sales.csv", "product,amount\ntea,3\ntea,5\n")
    notebook.say("%reyn ask how many rows are in sales.csv?")
    notebook.say("%reyn workflow save last --name rows")
    said = notebook.say("%reyn invoke skill__rows")
    assert "ok" in said and "2" in said and "JSON does not have" not in said


def test_the_log_of_a_run_says_nothing_twice_in_a_row(ready: Notebook) -> None:
    log = ready.workshop.session.workflows.dispatch(REQUEST).log
    assert len(log) > 1 and all(one != other for one, other in pairwise(log))
