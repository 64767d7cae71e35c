"""Errors of `%reyn` in a shell: one line and what to do next; the traceback for those who ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.outputs.content import Text
from reyn_jupyter.sessions import current

Run = Callable[[str], str]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("%reyn descibe x", "There is no verb 'descibe'. Did you mean %reyn describe?"),
        ("%reyn qeury", "There is no verb 'qeury'. %reyn help lists the verbs;"),
        ("%reyn qqq", "There is no verb 'qqq'. %reyn help lists the verbs; %reyn ask \"…\" asks a question."),
        ("%reyn help qqq", "There is no verb 'qqq'."),
        ("%reyn -m offline hello", "A verb comes before its options. For example: %reyn ask -m offline \"…\""),
        ("%reyn -m light hello", "A verb comes before its options. For example: %reyn ask -m light \"…\""),
        ("%reyn --new hello", "A verb comes before its options. For example: %reyn ask -m offline \"…\""),
        ("%reyn list --limt 3", "There is no option --limt. Did you mean --limit?"),
        ("%reyn list fiel", "Unknown category 'fiel'; the nearest is 'file'. Categories: "),
        ("%reyn list file extra --offset 1 'x", "A quote is not closed."),
        ("%reyn describe", "NAME is missing."),
        ("%reyn describe file_raed", "Unknown action 'file_raed'. Did you mean file__read"),
        ("%reyn describe one two", "Nothing takes 'two' here."),
        ("%reyn describe zzz", "Unknown action 'zzz'. An action name is a category, two underscores and an entry"),
        ("%reyn invoke file__read", "Invalid arguments for 'file__read': path is required."),
        ("%reyn invoke file__read pth=x", "Invalid arguments for 'file__read': pth: unknown argument; did you mean"),
        ("%reyn invoke file__read x", "'x' is no key=value. For example: %reyn invoke file__read path=README.md"),
        ("%reyn invoke file__read path=no.txt", "no.txt does not exist."),
        ("%reyn invoke file__read path=../../etc/passwd", "'../../etc/passwd' climbs with '..'"),
        ("%reyn invoke file__read --json '{'", "--json is not valid JSON"),
        ("%reyn invoke file__read --json '[1]'", "--json must hold an object of arguments, not a list."),
        ("%reyn invoke file__read --json @none.json", "@none.json is neither a variable nor a file."),
        ("%reyn invoke file__read --json @data", "@data is neither a variable nor a file."),
        ("%%reyn invoke file__read\n{path: [", "The cell is neither JSON nor YAML"),
        ("%%reyn invoke file__read\n- a", "The cell must hold an object of arguments, not a list."),
        ("%%reyn list\nhello", "%%reyn list takes no cell body. Use a line: %reyn list"),
        ("%%reyn how many\nrows?", "There is no verb 'how'. Beside %%reyn stand options; the question goes"),
        ("%%reyn invok file__read\npath: x", "There is no verb 'invok'. Did you mean %reyn invoke?"),
        ("%%reyn --new how many\nrows?", "'how many' stands beside %%reyn, where only options belong."),
        ("%reyn ask", "Ask what?"),
        ("%%reyn\n \n", "Ask what?"),
        ("%reyn ask --budget -1 x", "--budget cannot be '-1': it must be more than 0."),
        ("%reyn ask --budget nan x", "--budget cannot be 'nan'"),
        ("%reyn ask --approve al x", "--approve cannot be 'al'. Did you mean all?"),
        ("%reyn ask --max-steps 0 x", "--max-steps cannot be '0': it must be at least 1."),
        ("%reyn search", "Search for what?"),
        ("%reyn search x --category fiel", "Unknown category 'fiel'; the nearest is 'file'."),
        ("%reyn inspect x", "No blob has 'x' in its id; there is none yet. %reyn blobs lists what is stored."),
        ("%reyn trace", "There is no run yet. Try: %reyn ask"),
        ("%reyn undo", "No run here has changed a file or this notebook."),
        ("%reyn diff 1", "There is no run yet."),
        ("%reyn history drop", "Drop which turn?"),
        ("%reyn history drop 1", "There is no turn 1: the conversation has 0."),
        ("%reyn history drp 1", "'drp' is not one of list, drop, fork. Did you mean drop?"),
        ("%reyn approvals drop", "Drop which pattern?"),
        ("%reyn approvals drop nothing", "'nothing' has no approval."),
        ("%reyn config router.nams", "There is no key 'router.nams'. Did you mean router.names?"),
        ("%reyn config router.nams hidden", "router.nams: unknown key"),
        ("%reyn config router.limits.max_steps many", "router.limits.max_steps: a whole number is needed, not 'many'."),
        ("%reyn embeddings burn", "'burn' is not one of status, build, clear."),
        ("%reyn list -o 1x", "-o '1x' is no variable name."),
        ("%reyn list -o class", "-o 'class' is no variable name."),
        ("%reyn ask -m 'no model' x", "'no model' is not the name of a model."),
    ],
)  # fmt: skip
def test_one_line_says_what_and_what_next(run: Run, code: str, said: str) -> None:
    shown = run(code)
    if code.startswith("%reyn ask -m"):
        assert said in shown
        return
    assert shown.startswith(said)
    assert len(shown.splitlines()) == 1


def test_a_wrong_output_name_is_refused_before_anything_runs(run: Run, workspace: Path) -> None:
    run("%reyn invoke file__write path=made.txt content=x -o 1x")
    assert not (workspace / "made.txt").exists()


def test_debug_gives_the_traceback_once_or_until_it_is_switched_off(run: Run) -> None:
    assert "Traceback" in run("%reyn describe zzz --debug")
    assert "Traceback" not in run("%reyn describe zzz")
    run("%reyn debug on")
    assert "Traceback" in run("%reyn describe zzz") and "Traceback" in run("%reyn undo")
    run("%reyn debug off")
    assert "Traceback" not in run("%reyn undo")


def test_the_last_traceback_is_kept_for_later(run: Run) -> None:
    run("%reyn undo")
    assert "NothingToUndoError" in run("%reyn debug")


def test_a_fault_of_ours_is_one_line_too_and_says_where_to_look(run: Run) -> None:
    run("import reyn_jupyter as reyn\nreyn.session().parts.runs = None")
    shown = run("%reyn runs")
    assert len(shown.splitlines()) == 1
    assert shown.startswith("AttributeError: ") and shown.endswith("%reyn debug shows where it happened.")
    assert "in runs" in run("%reyn debug")


def test_an_error_holds_no_secret_and_no_hidden_letter(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "correct-horse-battery")
    shown = run("%reyn describe correct-horse-battery\u202e\x1b[2J --debug")
    assert "correct-horse-battery" not in shown and "[redacted:DEMO_API_KEY]" in shown
    assert "\x1b" not in shown and "\u202e" not in shown


@pytest.mark.parametrize(
    "prompt",
    [
        "literal {x} {{}} ${HOME} $x \\n 100% 'single' \"double\" `back` # no comment",
        "emoji 🦉🏳️‍🌈, עברית, 中文, \t tabs",
        "a line\n%reyn list\n!ls\n? help\nlast line",
        "many words " * 100_000,
    ],
)
def test_a_prompt_reaches_the_model_letter_by_letter(run: Run, prompt: str) -> None:
    model = current.session().parts.model = ScriptedModel(otherwise="Fine.")
    run(f"%%reyn\n{prompt}")
    assert model.requests[-1].messages[-1].content == prompt


def test_a_part_that_more_than_one_blob_has_in_its_id_is_said_to_be_too_short(run: Run) -> None:
    store = current.session().parts.services.blobs
    store.put(Text("one"))
    part = str(store.put(Text("two")).id)[:6]  # the hour, which is the same for both
    assert run(f"%reyn inspect {part}").startswith(f"'{part}' is in the ids of 2 blobs; give more of it.")


def test_export_says_that_a_part_is_in_the_ids_of_several_blobs_or_that_a_variable_has_no_view(
    run: Run,
) -> None:
    store = current.session().parts.services.blobs
    store.put(Text("one"))
    part = str(store.put(Text("two")).id)[:6]
    said = run(f"%reyn export page.html {part}")
    assert f"'{part}' is in the ids of 2 blobs; give more of it." in said
    run("thing = 3")
    assert "the variable thing, of type int, has no view" in run("%reyn export page.html thing")


def test_a_message_ends_before_its_hint_begins(run: Run) -> None:
    assert run("%reyn corpora index manual nowhere").startswith("nowhere does not exist. List the folder")
