"""Runs as OpenTelemetry spans at the keyboard: where they go is said, and a kept run is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.otlp_collector import collector
from tests.support.waiting import until

Run = Callable[[str], str]


def test_runs_are_sent_said_and_written(run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")  # what a busy machine may take
    assert "off: no run is sent anywhere" in run("%reyn doctor")
    with collector() as got:
        run(f"%reyn config otel.endpoint {got.url}")
        run("%reyn invoke file__read path=notes.txt")
        until(lambda: any(end in run("%reyn doctor") for end in ("1 run sent", "1 lost")))
        assert "1 run sent" in run("%reyn doctor"), run("%reyn doctor")
        assert f"each run is sent to {got.url}/v1/traces, on this machine" in run("%reyn doctor")
    run("%reyn export spans.jsonl last")
    (line,) = (workspace / "spans.jsonl").read_text().splitlines()
    (span,) = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert span["name"] == "execute_tool file__read" and "notes.txt" not in line
    assert span["spanId"] == got.spans[0].id and span["traceId"] == got.spans[0].trace
    run("%reyn export spans.jsonl last --content --force")
    assert "notes.txt" in (workspace / "spans.jsonl").read_text()


@pytest.mark.parametrize(
    ("words", "said"), [("spans.json last", ".jsonl for OpenTelemetry"), ("a.jsonl runs", "holds runs")]
)
def test_a_mistake_says_what_to_write(run: Run, words: str, said: str) -> None:
    run("%reyn invoke file__read path=notes.txt")
    assert said in run(f"%reyn export {words}")
