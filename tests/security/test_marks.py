"""Marks that text cannot forge: only what the redactor took out is read from the environment again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.runtime.record.runlog import RunLogError
from reyn_jupyter.runtime.record.script import ScriptError
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.support.secrets import Redactor
from tests.end_to_end.e2e_support import category, invoke, scripted

SECRET = "Zq7-correct-horse-battery-staple-Xy9"
KEY = "sk-proj-A1b2C3d4E5f6G7h8I9j0K1l2M3n4"
MARK = "[redacted:AWS_SECRET_ACCESS_KEY]"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


def script(workspace: Path, *args: Any) -> tuple[str, list[Any], Any]:
    """The script of a run whose model made one call, the arguments that the script's calls give, and its trace."""

    async def post(given: Any, context: Any) -> str:
        return "posted"

    session, _ = scripted(workspace, *(invoke("odd__give", **each) for each in args), "ok",
                          categories=[category(give=post)], store="files")  # fmt: skip
    trace = session.ask("go", approve="all")
    assert trace.calls and all(call.ok for call in trace.calls), trace.calls
    code = str(session.script())
    calls: list[Any] = []

    class Stand:
        def invoke_action(self, name: str, arguments: Any) -> Any:
            calls.append(arguments)
            return type("Answer", (), {"value": None})

    body = code.replace("session = reyn.session()", "")
    exec(compile(body, "script", "exec"), {"session": Stand()})
    return code, calls, trace


@pytest.mark.parametrize(
    "text",
    [MARK, f"before {MARK} after", f"{MARK}{MARK}", "[redacted:key]", "[redacted:PATH]", "[redacted:nested]"],
)
def test_a_mark_that_a_model_wrote_stays_text_in_a_script(workspace: Path, text: str) -> None:
    for value in (text, [text], {text: 1}, {"deep": [{"in": text}]}):
        code, calls, _ = script(workspace, {"value": value})
        assert "environ" not in code
        assert calls == [{"value": value}]


def test_a_secret_that_was_taken_out_comes_from_the_environment_again(workspace: Path) -> None:
    values = [SECRET, f"key={SECRET};", [f"{SECRET}{SECRET}"], {f"a {SECRET}": {"b": [1, f" {SECRET}"]}}]
    for value in values:
        code, calls, trace = script(workspace, {"value": value})
        assert SECRET not in code
        assert SECRET not in json.dumps(trace.calls[0].resolved.inner)
        assert calls == [{"value": value}]


def test_a_forged_mark_beside_a_true_one_stays_text(workspace: Path) -> None:
    value = f"{MARK} {SECRET} {MARK} [redacted:PATH]"
    code, calls, _ = script(workspace, {"value": value})
    assert code.count("os.environ[") == 1
    assert calls == [{"value": value}]


def test_a_script_is_refused_where_the_record_does_not_name_the_secret(workspace: Path) -> None:
    with pytest.raises(ScriptError):
        script(workspace, {"value": KEY})


def test_the_record_says_where_the_redactor_took_something_out(workspace: Path) -> None:
    _, _, trace = script(workspace, {"value": [f"{MARK} then {SECRET}"]})
    (redaction,) = trace.calls[0].resolved.redactions
    assert (redaction.path, redaction.variable) == (("value", 0), "AWS_SECRET_ACCESS_KEY")
    assert redaction.start == len(f"{MARK} then ")
    reread = Trace.load(trace.save(workspace / "saved.jsonl"))
    assert reread.calls[0].resolved.redactions == (redaction,)


@given(st.lists(st.sampled_from([SECRET, MARK, "[redacted:key]", "redacted:", " ", "x", "[", "]", "\n"])))
def test_each_secret_comes_back_from_the_place_that_it_was_taken_out_of(parts: list[str]) -> None:
    text = "".join(parts)
    redactor = Redactor({"AWS_SECRET_ACCESS_KEY": SECRET})
    redacted = redactor.text(text)
    restored, position = "", 0
    for found in redactor.redactions([text]):
        mark = redacted[found.start : found.start + found.length]
        assert found.path == (0,)
        assert mark == MARK
        restored += redacted[position : found.start] + (SECRET if found.variable else mark)
        position = found.start + found.length
    assert restored + redacted[position:] == text


@pytest.mark.parametrize("break_", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_the_id_of_a_record_brings_no_line_into_a_script(workspace: Path, break_: str) -> None:
    script(workspace, {"value": 1})
    file = next((workspace / ".reyn" / "runs").glob("*.jsonl"))
    started, *others = file.read_text().splitlines()
    forged = json.loads(started)
    forged["run"] += f"{break_}import x{break_}#"
    file.write_text("\n".join([json.dumps(forged), *others]) + "\n")
    session, _ = scripted(workspace, "ok", store="files")
    with pytest.raises(RunLogError, match="the id that it gives itself is none"):
        session.script()
