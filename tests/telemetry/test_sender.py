"""Sending runs: off unless the person said so, and whatever a collector does, it costs a turn nothing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.config import ConfigError
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.telemetry import sender
from reyn_jupyter.telemetry.sender import RunSender
from tests.support.otlp_collector import Collector, collector
from tests.support.ports import free_port
from tests.support.trusting import trust
from tests.support.waiting import PATIENCE, until

TIMEOUT = "OTEL_EXPORTER_OTLP_TIMEOUT"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a session waits for a machine that is slow and busy, too."""
    monkeypatch.setattr(sender, "FLUSH_SECONDS", PATIENCE)
    monkeypatch.setenv(TIMEOUT, str(PATIENCE))


@pytest.fixture
def got() -> Iterator[Collector]:
    with collector() as running:
        yield running


def session(workspace: Path, endpoint: str | None) -> reyn.Session:
    config: dict[str, Any] = {"otel": {"endpoint": endpoint}, "action_retrieval": {"embedding_class": None}}
    return reyn.Session(workspace, config=config)


def ask(made: reyn.Session) -> reyn.Trace:
    trace = made.ask("list", model=ScriptedModel(call("list_actions"), "Done."))
    assert (trace.status, trace.answer) == ("ok", "Done.")
    return trace


def sends(made: reyn.Session) -> RunSender:
    found = made.parts.sender
    assert found is not None
    return found


def given_up(made: reyn.Session) -> str:
    """Wait until a run was given up; return what is said of it."""
    until(lambda: sends(made).is_idle)
    (problem,) = made.problems
    assert problem.startswith("runs are not sent as spans (otel.endpoint): ")
    assert problem in [line for title, lines in made.status.sections if title == "Problems" for line in lines]
    return problem


def test_nothing_is_sent_or_imported_unless_the_setting_says_so(workspace: Path, got: Collector) -> None:
    program = (
        "import os, sys, reyn_jupyter as reyn\n"
        "session = reyn.Session('.')\n"
        "assert session.invoke_action('file__read', {'path': 'notes.txt'}).ok\n"
        "session.close()\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry.exporter')]\n"
    )
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": got.url, "PATH": "/usr/bin:/bin", "HOME": str(workspace)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=workspace, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert got.bodies == []


def test_the_environment_says_where_if_the_setting_says_so(
    workspace: Path, got: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = session(workspace, "environment")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{got.url}/otlp/")
    ask(made)
    made.close()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{got.url}/mine")
    ask(made)
    made.close()
    assert got.paths == ["/otlp/v1/traces", "/mine"]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "nowhere:4317")
    ask(made)
    made.close()
    assert "begins with neither http:// nor https://" in given_up(made)


def test_a_file_of_a_folder_switches_nothing_on_until_it_is_trusted(workspace: Path, got: Collector) -> None:
    (workspace / "reyn.yaml").write_text(f"otel: {{endpoint: '{got.url}', content: on}}\n")
    made = reyn.Session(workspace)
    ask(made)
    made.close()
    assert got.bodies == [] and made.parts.settings.otel.endpoint is None
    held = [
        line
        for title, lines in made.status.sections
        if "until you say %reyn trust" in title
        for line in lines
    ]
    assert [line.partition(":")[0] for line in held] == ["otel.endpoint", "otel.content"]
    trust(made)
    ask(made)
    made.close()
    assert len(got.bodies) == 1


@pytest.mark.parametrize(
    "address", ["collector:4318", "http://", "http://me:word@localhost:4318", "ftp://a/b"]
)
def test_what_is_no_address_or_holds_a_password_is_refused(workspace: Path, address: str) -> None:
    with pytest.raises(ConfigError):
        session(workspace, address)


def test_what_is_on_is_said_and_whether_it_leaves_the_machine(workspace: Path) -> None:
    made = session(workspace, None)
    state = sends(made).state
    assert state(made.parts.settings.otel) == "off: no run is sent anywhere"
    for endpoint, where in (
        ("http://localhost:4318", "on this machine"),
        ("https://traces.example.org/otlp", "which leaves this machine"),
    ):
        made.configure("otel.endpoint", endpoint)
        assert (
            f"each run is sent to {endpoint}/v1/traces, {where}, without what was said; 0 runs sent"
            == state(made.parts.settings.otel)
        )


def test_a_collector_that_holds_its_answer_back_holds_nothing_up(
    workspace: Path, got: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "FLUSH_SECONDS", 0.05)
    got.held.clear()
    made = session(workspace, got.url)
    ask(made)
    assert got.asked.wait(60)
    ask(made)  # while the first is still under way
    made.close()  # waits no longer than it may
    assert len(got.bodies) == 1 and not sends(made).is_idle and sends(made).sent == 0
    got.held.set()
    until(lambda: sends(made).sent == 2)
    assert made.problems == ()


def test_a_collector_that_never_answers_is_given_up(
    workspace: Path, got: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(TIMEOUT, "0.2")
    got.held.clear()
    made = session(workspace, got.url)
    ask(made)
    assert "it does not answer in time; 1 run lost" in given_up(made)
    assert caplog.records == []  # a kernel would write them below the cell that runs


def test_a_collector_that_is_down_is_said_once_and_forgotten_when_it_is_back(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(TIMEOUT, "0.5")
    made = session(workspace, f"http://127.0.0.1:{free_port()}")
    ask(made)
    ask(made)
    assert "it cannot be reached; 2 runs lost" in given_up(made)
    assert caplog.records == []  # a kernel would write them below the cell that runs
    monkeypatch.setenv(TIMEOUT, str(PATIENCE))
    with collector() as back:
        made.configure("otel.endpoint", back.url)
        ask(made)
        made.close()
    assert made.problems == () and (sends(made).sent, sends(made).lost) == (1, 2)


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_an_error_of_a_collector_is_said(
    workspace: Path, got: Collector, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    got.status, got.body = status, b"\x00\xff not what you think"
    made = session(workspace, got.url)
    ask(made)
    made.close()
    assert f"{got.url}/v1/traces: it answers with the status {status}; 1 run lost" in given_up(made)
    assert caplog.records == []  # a kernel would write them below the cell that runs


def test_a_collector_that_is_busy_is_asked_again(workspace: Path, got: Collector) -> None:
    got.first, got.headers = [503], {"retry-after": "0"}
    made = session(workspace, got.url)
    ask(made)
    until(lambda: sends(made).is_idle)
    first, again = got.bodies
    assert first == again  # the same spans under the same ids, so that it is one trace
    assert (sends(made).sent, sends(made).lost, made.problems) == (1, 0, ())


def test_an_answer_without_an_end_is_not_read(workspace: Path, got: Collector) -> None:
    got.forever = True
    made = session(workspace, got.url)
    ask(made)
    made.close()
    assert sends(made).sent == 1


@pytest.mark.parametrize("status", [302, 307, 308])
def test_no_redirect_takes_a_run_to_another_host(workspace: Path, got: Collector, status: int) -> None:
    with collector() as other:
        got.status, got.headers = status, {"location": f"{other.url}/v1/traces"}
        made = session(workspace, got.url)
        ask(made)
        made.close()
        assert other.bodies == []
    assert "it redirects to another address" in given_up(made)


def test_no_proxy_is_asked_on_the_way_to_this_machine(
    workspace: Path, got: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        made = session(workspace, got.url)
        ask(made)
        made.close()
        assert len(got.bodies) == 1 and proxy.bodies == []


def test_what_waits_is_bounded(workspace: Path, got: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "MOST_WAITING", 2)
    got.held.clear()
    made = session(workspace, got.url)
    trace = ask(made)
    assert got.asked.wait(60)
    for _ in range(5):
        sends(made).send(trace, made.parts.settings.otel)
    assert sends(made).lost == 3 and "2 runs wait for it already" in made.problems[0]
    got.held.set()
    until(lambda: sends(made).is_idle)
    assert sends(made).sent == 3 and len(got.bodies) == 2  # what waited went together


def test_without_the_extra_the_line_that_brings_it_is_said(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = session(workspace, "http://localhost:4318")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    monkeypatch.delitem(sys.modules, "reyn_jupyter.telemetry.exporter", raising=False)
    ask(made)
    assert "pip install 'reyn-jupyter[otel]'" in given_up(made)


def test_the_end_of_the_interpreter_sends_what_is_left(workspace: Path, got: Collector) -> None:
    program = (
        "import reyn_jupyter as reyn\n"
        "from reyn_jupyter.telemetry import sender\n"
        f"sender.FLUSH_SECONDS = {PATIENCE}\n"
        f"session = reyn.Session('.', config={{'otel': {{'endpoint': {got.url!r}}}}})\n"
        "session.invoke_action('file__read', {'path': 'notes.txt'})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=workspace, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [span.proto.name for span in got.spans] == ["execute_tool file__read"]


def test_flush_of_a_sender_with_nothing_to_do_is_none() -> None:
    asyncio.run(RunSender(str, {}).flush())
