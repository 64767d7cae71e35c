"""The live views as anywidgets: everything travels with them, they are small, and they come and go cleanly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import reyn_jupyter as reyn
from reyn_jupyter.notebook import assets
from reyn_jupyter.notebook.displays import mimebundle
from reyn_jupyter.notebook.displays.mime import WIDGET_MIME, bundle
from reyn_jupyter.notebook.displays.mimebundle import live_of
from reyn_jupyter.notebook.displays.widget import AWAKE, LiveWidget
from reyn_jupyter.notebook.magic_line.options import Options
from reyn_jupyter.notebook.magic_line.verb import Context
from reyn_jupyter.notebook.render.displayables import DISPLAYABLES, view
from reyn_jupyter.notebook.serving.hub import kernel_hub
from reyn_jupyter.notebook.serving.protocol import LiveCatalog
from reyn_jupyter.notebook.serving.view_json import to_snapshot
from reyn_jupyter.notebook.verbs import doctor
from reyn_jupyter.sessions import current
from reyn_jupyter.sessions.current import SESSION_ID

HELLO = {"protocol": 1, "host": "widget", "version": "", "approves": False}


@pytest.fixture
def session(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> reyn.Session:
    made = reyn.Session(workspace)
    monkeypatch.setattr(current, "_current", [made])
    return made


@pytest.fixture
def snapshot(session: reyn.Session) -> dict[str, Any]:
    return to_snapshot(view(session.explore()), SESSION_ID, LiveCatalog())


@pytest.fixture
def widget(snapshot: dict[str, Any]) -> Iterator[LiveWidget]:
    made = LiveWidget(snapshot)
    yield made
    made.close()


@pytest.mark.parametrize("name", [name for name in assets.MODULES if name != "page"])
def test_module_and_style_are_small_and_ask_for_nothing_from_elsewhere(name: str) -> None:
    module, style = assets.read_module(name)
    # A live view is fetched once a page, while every instance of a widget carries the widget.
    assert len((module + style).encode()) <= (30 if name == "widget" else 36) * 1024
    assert "export" in module and "sourceMappingURL" not in module
    assert not re.search(
        r"import\s*[\w{*\"']|import\([\"'`]", module
    )  # only what the kernel gave is imported
    assert "@import" not in style and "url(" not in style


def test_a_widget_carries_its_module_its_style_and_its_snapshot(
    widget: LiveWidget, snapshot: dict[str, Any]
) -> None:
    state = widget.get_state()
    assert (state["_esm"], state["_css"]) == assets.read_module("widget")
    assert state["snapshot"] == snapshot
    assert state["_model_module"] == "anywidget"


def test_messages_go_to_the_kernel_until_the_widget_is_closed(
    widget: LiveWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(widget, "send", sent.append)
    widget._connection._put = widget.send
    widget._handle_custom_msg({"type": "request", "id": 1, "op": "hello", "args": HELLO}, [])
    assert sent[0]["value"]["session"] == SESSION_ID
    assert len(kernel_hub().connections) == 1
    widget._handle_custom_msg("nonsense", [])
    widget.close()
    assert not kernel_hub().connections


def test_where_the_module_is_missing_there_is_the_html_alone_and_the_doctor_says_so(
    snapshot: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mimebundle, "front_end_there", lambda: True)
    assert WIDGET_MIME in mimebundle.widget_view(snapshot)
    monkeypatch.setattr(assets, "STATIC", tmp_path)
    assert mimebundle.widget_view(snapshot) == {}
    facts = dict(doctor.run(Context(None), Options()).facts)
    assert facts["live views elsewhere"].startswith("static only: widget.js, widget.css, explorer.js")


def test_every_kind_of_view_has_one_of_five_mime_types() -> None:
    assert {each.kind for each in DISPLAYABLES} == {"actions", "blob", "trace", "table", "status"}


def test_only_what_the_session_of_the_kernel_can_give_again_is_live(
    session: reyn.Session, workspace: Path
) -> None:
    (workspace / "big.txt").write_text("a line\n" * 5000)
    stored = session.invoke_action("file__read", {"path": "big.txt"})
    trace = stored.trace
    assert stored.blob is not None and trace is not None
    assert live_of(stored) == live_of(stored.blob) is not None
    assert live_of(trace) is not None
    session.collect_blobs(max_age_days=0, keep=[])
    assert live_of(stored.blob) is None
    assert live_of(session.status) is None and live_of(session.runs) is None


def test_an_object_of_another_session_is_not_live(
    session: reyn.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = session.invoke_action("file__read", {"path": "notes.txt"}).trace
    monkeypatch.setattr(current, "_current", [reyn.Session(tmp_path)])
    assert live_of(trace) is None
    monkeypatch.setattr(current, "_current", [])
    assert live_of(trace) is None


def test_a_display_is_one_snapshot_in_the_words_of_the_html(session: reyn.Session) -> None:
    made = view(session.list_actions("file"))
    found = bundle(session.list_actions("file"), made)
    assert list(found) == ["application/vnd.reyn.actions+json", "text/html", "text/plain"]
    assert found["application/vnd.reyn.actions+json"]["view"]["title"] in found["text/plain"]


SETUP = (
    "%load_ext reyn_jupyter\nimport reyn_jupyter as reyn\n"
    "from reyn_jupyter.models.scripted import ScriptedModel, call\n"
    "read = call('invoke_action', action_name='file__read', args={'path': 'big.csv'})\n"
    "reyn.session().parts.model = ScriptedModel(read, read, read, 'word ' * 3000)"
)
CELLS = (
    SETUP,
    "%%reyn\nread it three times",
    "%reyn explore",
    "%reyn inspect last",
)


def test_a_saved_notebook_grows_little_with_a_run(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    (workspace / "big.csv").write_text("name,value\n" + "x" * 40 + ",1\n" * 20_000)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CELLS])
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(workspace)}},
        store_widget_state=False,
    )  # fmt: skip
    client.execute()
    assert "widgets" not in notebook.metadata
    for cell in notebook.cells[1:]:
        (output,) = cell.outputs
        assert len(json.dumps(output)) <= 100 * 1024
        assert {"text/html", "text/plain"} < set(output["data"])
        assert (
            WIDGET_MIME not in output["data"]
        )  # with nobody there, no page may want foreign code to show one


def test_only_the_widgets_used_last_are_told_of_what_happens_and_an_older_one_comes_back(
    snapshot: dict[str, Any],
) -> None:
    before = set(kernel_hub().connections)
    made = [LiveWidget(snapshot) for _ in range(AWAKE + 5)]
    try:
        for widget in made:
            widget._receive(widget, {"type": "request", "id": 1, "op": "hello", "args": HELLO}, [])
        assert len(kernel_hub().connections - before) == AWAKE
        oldest = made[0]
        oldest._receive(oldest, {"type": "request", "id": 2, "op": "approval.pending", "args": {}}, [])
        assert len(kernel_hub().connections - before) == AWAKE
        assert oldest._connection in kernel_hub().connections
        assert oldest._connection.hello is not None
        assert made[5]._connection not in kernel_hub().connections
        assert made[0]._esm is made[-1]._esm
    finally:
        for widget in made:
            widget.close()
    assert kernel_hub().connections == before
