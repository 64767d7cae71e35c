"""Loading, reloading and unloading; what is imported; two kernels on one workspace; a library without the magic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.kernel_support import PREPARE, Kernel

HEAVY = (
    "pandas", "numpy", "litellm", "openai", "torch", "sentence_transformers", "matplotlib", "jupyterlab",
    "jupyter_server", "duckdb", "yaml", "jsonschema", "jsonschema_rs", "anywidget", "ipywidgets", "markdown_it", "re2",
)  # fmt: skip
HOOKS = (
    "len(get_ipython().Completer.custom_matchers), len(get_ipython().events.callbacks['pre_run_cell']), "
    "'reyn.v1' in get_ipython().kernel.comm_manager.targets, len(get_ipython().events.callbacks['post_run_cell']), "
    "len(get_ipython().input_transformers_cleanup)"
)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("fresh")
    (folder / "workspace").mkdir()
    kernel = Kernel(folder / "workspace", folder)
    yield kernel
    kernel.stop()


def test_loading_prints_nothing_and_imports_nothing_heavy(fresh: Kernel) -> None:
    fresh.run("import sys\nbefore = set(sys.modules)")
    cell = fresh.run("%load_ext reyn_jupyter")
    assert not cell.outputs
    loaded = fresh.value(f"[name for name in {HEAVY} if name in sys.modules and name not in before]")
    assert loaded == "[]"


def test_looking_around_imports_no_model_library(fresh: Kernel) -> None:
    for line in ("%reyn", "%reyn list", "%reyn describe file__read", "%reyn models", "%reyn ask hello"):
        assert fresh.run(line).error is None
    assert fresh.value("[name for name in ('litellm', 'openai', 'torch') if name in sys.modules]") == "[]"


def test_reloading_and_loading_again_change_nothing(kernel: Kernel) -> None:
    before, session = kernel.value(HOOKS), kernel.value("id(reyn.session())")
    assert kernel.run("%reload_ext reyn_jupyter").error is None
    kernel.run("reyn.load_ipython_extension(get_ipython())\nreyn.load_ipython_extension(get_ipython())")
    assert kernel.value(HOOKS) == before
    kernel.run("says('Hello.')")
    assert len(kernel.run("%%reyn\nhello").outputs) == 1
    assert kernel.value("id(reyn.session())") == session
    assert kernel.complete("%reyn descr") == ["%reyn describe"]


def test_reloading_after_its_modules_were_imported_anew_leaves_no_hook_behind(kernel: Kernel) -> None:
    before = kernel.value(HOOKS)
    kernel.run("import importlib, reyn_jupyter.notebook.extension as extension\nimportlib.reload(extension)")
    assert kernel.run("%reload_ext reyn_jupyter").error is None
    assert kernel.value(HOOKS) == before


def test_unloading_takes_everything_out_but_the_objects(kernel: Kernel) -> None:
    kernel.run("table = %reyn list file")
    kernel.run("%unload_ext reyn_jupyter")
    assert "not found" in kernel.run("%reyn").printed
    assert kernel.value(HOOKS).startswith("(0, 0, False, ")
    assert "file__read" in kernel.run("table").text
    assert kernel.run(PREPARE).error is None


def test_a_question_mark_ends_a_question_and_asks_for_no_help(kernel: Kernel) -> None:
    kernel.run("says('Three.', 'Four.')")
    assert "Three." in kernel.run("%reyn ask how many rows has orders?").text
    kernel.run("x = %reyn ask and how many columns?")
    assert kernel.value("x.prompt, x.answer") == "('and how many columns?', 'Four.')"
    assert "file__grep" in kernel.run("%reyn search what finds text in files?").text
    assert kernel.run("%reyn list?").reply["payload"], "one word is looked up"


def test_other_lines_that_end_in_a_question_mark_still_ask_for_help(kernel: Kernel) -> None:
    kernel.run("def documented():\n    '''Some words on it.'''")
    payload = kernel.run("documented?").reply["payload"]
    assert "Some words on it." in payload[0]["data"]["text/plain"]


def test_a_text_that_only_quotes_the_magic_stays_as_it_is(kernel: Kernel) -> None:
    kernel.run('text = """\n%reyn ask how many?\n"""')
    assert kernel.value("text.strip()") == "%reyn ask how many?"


def test_without_the_extension_objects_of_the_library_show_as_well(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    kernel = Kernel(tmp_path / "workspace", tmp_path)
    try:
        cell = kernel.run("import reyn_jupyter as reyn\nreyn.Session('.').list_actions('file')")
        assert set(cell.outputs[0]["data"]) == {
            "application/vnd.reyn.actions+json", "text/html", "text/plain"
        }  # fmt: skip
        assert kernel.run("import pandas as pd\npd.DataFrame({'a': [1]})").error is None
    finally:
        kernel.stop()


def test_secrets_of_the_environment_are_in_no_output(kernel: Kernel) -> None:
    kernel.run("import os\nos.environ['DEMO_API_KEY'] = 'correct-horse-battery'")
    kernel.run("says('The key is correct-horse-battery.')")
    cell = kernel.run("%%reyn\nthe key is correct-horse-battery")
    found = kernel.run("%reyn search correct-horse-battery")
    failed = kernel.run("%reyn describe correct-horse-battery")
    kernel.run("del os.environ['DEMO_API_KEY']")
    for each in (cell, found, failed):
        assert "correct-horse-battery" not in str(each.outputs) + str(each.updates)
    assert "[redacted:DEMO_API_KEY]" in cell.text


def test_two_kernels_share_a_workspace(kernel: Kernel, tmp_path: Path) -> None:
    other = Kernel(kernel.workspace, tmp_path).prepare()
    try:
        loop = "for number in range(5):\n    says(call('list_actions'), f'{number}')\n    session.ask('go')"
        other.run("session = reyn.session()")
        for each in (kernel, other):
            each.send(loop)
        for each in (kernel, other):
            assert each.value("len(session.parts.conversation.turns)") == "5"
        runs = kernel.value("sorted(session.parts.runs.ids())")
        assert runs == other.value("sorted(session.parts.runs.ids())")
        assert kernel.value("all(run.status == 'ok' for run in session.runs)") == "True"
        other.run("says(write('new.txt', 'from the other'), 'Written.')\n%reyn ask --approve all write")
        assert "of other sessions changed files" in str(kernel.run("%reyn undo").error)
        assert (kernel.workspace / "new.txt").exists()
        assert "removed" in other.run("%reyn undo").text
        assert not (kernel.workspace / "new.txt").exists()
    finally:
        other.stop()
