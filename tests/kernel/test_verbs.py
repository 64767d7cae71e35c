"""Every verb in a real kernel: one output, and the very object that the Python face returns."""

from __future__ import annotations

import json

import pytest

from tests.kernel.kernel_support import Kernel

LOOK = "invoke file__read path=data/orders.csv"


@pytest.mark.parametrize(
    ("line", "kind", "shown"),
    [
        ("", "Card", "workspace"),
        ("status", "Card", "Try: %reyn ask"),
        ("help", "Card", "ask the model"),
        ("help invoke", "Card", "%reyn invoke NAME [key=value|{…} …]"),
        ("list --help", "Card", "[CATEGORY …]"),
        ("doctor", "Card", "OPENAI_API_KEY"),
        ("list", "ActionTable", "file__read"),
        ("list file --filter grep", "ActionTable", "file__grep"),
        ("describe file__read", "ActionCard", "%reyn invoke file__read path="),
        ('search "find text in files"', "ActionTable", "file__grep"),
        ("invoke file__read path=notes.txt", "Result", "second line"),
        ("blobs", "Table", "file__read"),
        ("blobs gc", "Card", "Nothing to collect"),
        ("blobs gc --max-age 30 --max-bytes 1000", "Card", "0 blobs, 0 bytes"),
        ("runs", "Table", "by hand"),
        ("trace", "Trace", "file__read"),
        ("events", "Table", "ActionFinished"),
        ("script", "Script", "session.invoke_action('file__read'"),
        ("history", "Table", "Conversation"),
        ("memory", "Table", "Nothing yet"),
        ("peers", "Table", "No peer is configured"),
        ("corpora", "Table", "Nothing is indexed yet"),
        ("embeddings status", "Card", "Search by meaning"),
        ("models", "Table", "offline"),
        ("config", "Table", "router.limits.max_steps"),
        ("config router.limits.max_steps", "Table", "8"),
        ("config peers.checker.description looks things up", "Table", "looks things up"),
        ("approvals", "Table", "Approvals"),
        ("surface", "Table", "universal"),
        ("trust", "Card", "not trusted already"),
        ("reset", "Card", "A fresh conversation"),
        ("debug", "Card", "tracebacks  off"),
    ],
)
def test_a_verb_shows_one_output_and_returns_its_object(
    kernel: Kernel, line: str, kind: str, shown: str
) -> None:
    kernel.run(f"r = %reyn {LOOK}")
    cell = kernel.run(f"%reyn {line}")
    assert cell.error is None, cell.error
    assert len(cell.outputs) == 1 and cell.outputs[0].get("execution_count")
    assert shown in cell.text
    html = cell.outputs[0]["data"]["text/html"]
    assert html.startswith('<div class="reyn-view ') and "<script" not in html
    assert not kernel.run(f"kept = %reyn {line}").outputs
    assert kernel.value("type(kept).__name__") == kind


def test_the_object_of_a_verb_has_the_payload_of_the_python_face(kernel: Kernel) -> None:
    kernel.run(
        "x = %reyn list file --limit 3\ny = %reyn describe file__read\nz = %reyn invoke file__read path=notes.txt"
    )
    assert kernel.value("x.payload == session.list_actions('file', limit=3).payload") == "True"
    assert kernel.value("y.payload == session.describe_action('file__read').payload") == "True"
    assert (
        kernel.value("z.payload == session.invoke_action('file__read', {'path': 'notes.txt'}).payload")
        == "True"
    )


def test_a_stored_result_is_inspected_by_its_id(kernel: Kernel) -> None:
    kernel.run(f"r = %reyn {LOOK}")
    blob = kernel.value("r.blob.id")
    assert "region,value" in kernel.run(f"%reyn inspect {blob}").text
    for spelled in (blob, f"[blob:{blob}]", f"@{blob}"):
        assert "south,0" in kernel.run(f"%reyn inspect {spelled} lines:3-3").text
    assert "is no selector" in str(kernel.run(f"%reyn inspect {blob} lines:zz").error)


@pytest.mark.parametrize(
    "code",
    [
        "%reyn invoke function__total orders=@orders column=value",
        '%reyn invoke function__total --json \'{"orders": {"$var": "orders"}, "column": "value"}\'',
        "given = {'orders': {'$var': 'orders'}, 'column': 'value'}\n%reyn invoke function__total --json @given",
        "%reyn invoke function__total column=value --json @given.json",
        '%%reyn invoke function__total\n{"orders": {"$var": "orders"}, "column": "value"}',
        "%%reyn invoke function__total\norders: {$var: orders}\ncolumn: value",
        "%%reyn invoke function__total orders=@orders\ncolumn: value",
    ],
)
def test_arguments_come_as_words_json_yaml_variables_and_files(kernel: Kernel, code: str) -> None:
    (kernel.workspace / "given.json").write_text(json.dumps({"orders": {"$var": "orders"}}))
    kernel.run(
        "import pandas as pd\norders = pd.DataFrame({'value': [1, 2, 3]})\n"
        "@reyn.action\ndef total(orders: pd.DataFrame, column: str) -> int:\n"
        "    '''Sum of a column.'''\n    return int(orders[column].sum())"
    )
    cell = kernel.run(code)
    assert cell.error is None, cell.error
    assert kernel.value("_.value") == "6"


@pytest.mark.parametrize("forgive", ["on", "off"])
def test_words_are_read_as_the_types_that_the_action_takes(kernel: Kernel, forgive: str) -> None:
    kernel.run(f"%reyn config router.forgive {forgive}")
    kernel.run(
        "@reyn.action\ndef add(price: float, tags: list[str], label: str, gift: bool = False) -> str:\n"
        "    '''Add it.'''\n    return repr((price, tags, label, gift))"
    )
    cell = kernel.run("added = %reyn invoke function__add price=1.5 tags='[\"x\"]' label=10 gift=true")
    kernel.run("%reyn config router.forgive on")
    assert cell.error is None, cell.error
    assert kernel.value("added.value") == "(1.5, ['x'], '10', True)"


def test_a_literal_at_sign_is_written_twice(kernel: Kernel) -> None:
    kernel.run("@reyn.action\ndef say(text: str) -> str:\n    '''Say it.'''\n    return text")
    kernel.run("%reyn invoke function__say text=@@reyn")
    assert kernel.value("_.value") == "@reyn"


def test_a_turn_is_listed_dropped_and_forked(kernel: Kernel) -> None:
    kernel.run("says('One.', 'Two.', 'Three.')")
    for question in ("first", "second", "third"):
        kernel.run(f"%%reyn\n{question}")
    assert kernel.run("%reyn history").text.count("  ok  ") == 3
    dropped = kernel.run("%reyn history drop 2").text
    assert "second" not in dropped and "first" in dropped and "third" in dropped
    assert "third" not in kernel.run("%reyn history fork 1").text


def test_a_replay_takes_results_from_the_record_and_says_what_it_replays(kernel: Kernel) -> None:
    kernel.run("says(write('new.txt', 'hello'), 'Written.')")
    kernel.run("%%reyn --approve all\nwrite it")
    run = kernel.value("_.run")
    (kernel.workspace / "new.txt").unlink()
    cell = kernel.run("%reyn replay last")
    assert len(cell.outputs) == 1 and "Written." in cell.text and run in cell.text
    assert not (kernel.workspace / "new.txt").exists()
    kernel.run("from reyn_jupyter.models.scripted import ScriptedModel")
    again = kernel.run(f"%reyn replay {run} --from 2 -m offline")
    assert "offline" in again.text and not (kernel.workspace / "new.txt").exists()
    assert "same" in kernel.run(f"%reyn diff {run} -1").text


def test_a_run_by_hand_is_not_replayed_and_that_is_said(kernel: Kernel) -> None:
    kernel.run("%reyn invoke file__read path=notes.txt")
    assert "This run is a call by hand" in str(kernel.run("%reyn replay last").error)


def test_a_script_goes_into_the_next_cell_and_gives_the_same_result(kernel: Kernel) -> None:
    kernel.run("says(call('invoke_action', action_name='file__read', args={'path': 'notes.txt'}), 'Done.')")
    kernel.run("%%reyn\nread it")
    cell = kernel.run("%reyn script --insert")
    (payload,) = cell.reply["payload"]
    assert payload["source"] == "set_next_input" and "reyn.session()" in payload["text"]
    assert kernel.run(payload["text"]).error is None
    assert kernel.value("result") == "first line\nsecond line\nthird line"


def test_undo_walks_back_one_run_after_another(kernel: Kernel) -> None:
    for number, text in enumerate(("one", "two")):
        kernel.run(f"says(write('new.txt', '{text}'), 'Written.')")
        kernel.run(f"%%reyn --approve all\nwrite {number}")
    written = kernel.workspace / "new.txt"
    kernel.run("%reyn undo")
    assert written.read_text() == "one"
    assert "removed" in kernel.run("%reyn undo").text
    assert not written.exists()


def test_undo_refuses_where_the_file_changed_since_and_shows_how(kernel: Kernel) -> None:
    kernel.run("says(write('new.txt', 'from the run'), 'Written.')")
    kernel.run("%%reyn --approve all\nwrite it")
    (kernel.workspace / "new.txt").write_text("from the person")
    error = str(kernel.run("%reyn undo").error)
    assert "new.txt was changed since, so nothing was undone" in error and "+from the person" in error
    assert (kernel.workspace / "new.txt").read_text() == "from the person"


def test_undo_of_one_step_and_of_nothing(kernel: Kernel) -> None:
    kernel.run("says(write('new.txt', 'a'), write('other.txt', 'b'), 'Written.')")
    kernel.run("%%reyn --approve all\nwrite both")
    run = kernel.value("_.run")
    kernel.run("%reyn undo last:2")
    assert (kernel.workspace / "new.txt").exists() and not (kernel.workspace / "other.txt").exists()
    assert "was undone already" in str(kernel.run(f"%reyn undo {run}:2").error)
    assert "changed no file in step 7" in str(kernel.run(f"%reyn undo {run}:7").error)


def test_a_changed_setting_holds_for_the_session_and_says_where_it_comes_from(kernel: Kernel) -> None:
    assert "session" in kernel.run("%reyn config router.limits.max_steps 2").text
    kernel.run("says(otherwise=call('list_actions'))")
    cell = kernel.run("%%reyn\ngo on for ever")
    kernel.run("%reyn config router.limits.max_steps 8")
    assert "stopped at a limit" in cell.text and "--max-steps" in cell.text


def test_trust_puts_what_a_cloned_workspace_brings_into_force(kernel: Kernel) -> None:
    (kernel.workspace / "reyn.yaml").write_text("permissions:\n  allow: [file__write]\n")
    cell = kernel.run(
        "import reyn_jupyter.sessions.current as current\nbefore = list(current._current)\ncurrent._current.clear()\n"
        "%reyn status"
    )
    assert "Held back from reyn.yaml until you say %reyn trust" in cell.text
    assert "permissions.allow" in kernel.run("%reyn trust", answers=["y"]).text
    assert "Held back" not in kernel.run("%reyn status").text
    (kernel.workspace / "reyn.yaml").unlink()
    kernel.run("current._current[:] = before")


def test_help_works_where_the_configuration_is_broken(kernel: Kernel) -> None:
    (kernel.workspace / "reyn.yaml").write_text("router: [not, a, mapping")
    kernel.run(
        "import reyn_jupyter.sessions.current as current\nbefore = list(current._current)\ncurrent._current.clear()"
    )
    helped, status = kernel.run("%reyn help"), kernel.run("%reyn status")
    (kernel.workspace / "reyn.yaml").unlink()
    kernel.run("current._current[:] = before")
    assert helped.error is None
    assert status.error is None or "reyn.yaml" in status.error


def test_where_search_by_meaning_is_on_nothing_is_advised_to_turn_it_on(kernel: Kernel) -> None:
    for line in ("doctor", "embeddings"):
        assert "local-embed" not in kernel.run(f"%reyn {line}").text


def test_limits_of_a_collection_without_gc_are_refused(kernel: Kernel) -> None:
    assert "belong to gc" in str(kernel.run("%reyn blobs --max-age 3").error)


def test_a_query_by_hand_knows_the_notebooks_frames_and_an_error_offers_the_line_that_was_meant(
    kernel: Kernel,
) -> None:
    kernel.run("import pandas as pd\norders = pd.DataFrame({'region': ['north', 'south'], 'amount': [1, 2]})")
    cell = kernel.run('%reyn invoke table__query sql="SELECT sum(amount) AS total FROM orders"')
    assert cell.error is None and "3" in cell.text
    wrong = kernel.run('%reyn invoke table__query sql="SELECT amuont FROM orders"')
    assert wrong.error is not None and "amuont" in wrong.error
    line = next(each for each in wrong.text.splitlines() if "%reyn invoke" in each).strip()
    assert kernel.run(line[line.index("%reyn") :]).error is None
    assert (
        "%reyn invoke file__read path=notes.txt" in kernel.run("%reyn invoke file__raed path=notes.txt").text
    )
