"""A secret that something cuts in two: no part of it long enough to matter reaches a model, a log or a card."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import call, raw_call
from tests.end_to_end.e2e_support import category, invoke, results, scripted

SECRET = "Zq7-correct-horse-battery-staple-Xy9"
KEY = "sk-proj-A1b2C3d4E5f6G7h8I9j0K1l2M3n4"
BLOCK = (
    "-----BEGIN PRIVATE KEY-----\n" + "MIIBVgIBADANBgkqhkiG9w0BAQEFAASC\n" * 6 + "-----END PRIVATE KEY-----"
)
SHOWN = 7  # characters in a row that may stay: a prefix such as `sk-proj`


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_API_KEY", SECRET)


def leaks(text: str, *secrets: str) -> list[str]:
    """The runs of a secret's characters that a text shows."""
    return [
        part
        for secret in secrets or (SECRET, KEY)
        for start in range(len(secret) - SHOWN)
        if (part := secret[start : start + SHOWN + 1]) in text
    ]


def session(workspace: Path, value: Any, *more: Any) -> Any:
    async def give(args: Any, context: Any) -> Any:
        if isinstance(value, BaseException):
            raise value
        return value

    return scripted(
        workspace, invoke("odd__give"), *more, "ok", categories=[category(give=give)], store="files"
    )


def everything(workspace: Path, trace: Any, model: Any) -> str:
    sent = json.dumps([request.wire for request in model.requests], ensure_ascii=False)
    kept = "".join(path.read_text() for path in (workspace / ".reyn" / "runs").iterdir())
    return sent + kept + repr(trace.payload)


def last_blob(request: Any) -> str:
    return re.findall(r"\[blob:([0-9a-f-]{36})\]|\"blob\":\"([0-9a-f-]{36})\"", request.messages[-1].content)[
        -1
    ]


@pytest.mark.parametrize("secret", [SECRET, KEY])
@pytest.mark.parametrize("before", [0, 300, 340, 352, 360, 380])
def test_a_summary_that_is_cut_inside_a_secret_shows_none_of_it(
    workspace: Path, secret: str, before: int
) -> None:
    values: list[Any] = [
        "x" * before + " " + secret + " " + "y" * 2000,
        f"a line\n{'x' * before} {secret}\n" + "more\n" * 500,
        "more\n" * 500 + f"{'x' * before} {secret}\n",
        [{"token": f"{'x' * before} {secret}", "n": n} for n in range(50)],
        {f"{'x' * before} {secret} {n}": n for n in range(50)},
    ]
    for value in values:
        s, model = session(workspace, value)
        trace = s.ask("go")
        assert trace.calls[0].finished.blob
        assert leaks(everything(workspace, trace, model)) == []


@pytest.mark.parametrize("before", range(255, 310, 5))
def test_an_error_that_is_cut_inside_a_secret_shows_none_of_it(workspace: Path, before: int) -> None:
    s, model = session(workspace, ValueError("x" * before + " " + SECRET + " " + KEY + "y" * 1000))
    trace = s.ask("go")
    assert leaks(everything(workspace, trace, model)) == []


def test_the_blob_keeps_the_exact_bytes_and_the_person_gets_them(workspace: Path) -> None:
    text = f"{'x' * 1000} {SECRET} {KEY}\n{BLOCK}\n"
    s, _ = session(workspace, text)
    trace = s.ask("go")
    blob = s.blobs[0]
    assert blob.text == text and blob.path.stat().st_mode & 0o777 == 0o600
    assert leaks(str(s.inspect(blob.id).payload)) == [] and trace.answer == "ok"


@pytest.mark.parametrize("start", range(0, 60, 7))
def test_windows_of_bytes_that_part_a_secret_show_none_of_it(workspace: Path, start: int) -> None:
    """A model that may choose the window could read a secret half by half."""

    def windows(request: Any) -> Any:
        blob = "".join(last_blob(request))
        step = 20
        return [
            call("inspect", blob_id=blob, selector=f"bytes:{at}..{at + step}")
            for at in range(980 + start, 1060 + start, step)
        ]

    s, model = session(workspace, "x" * 1000 + " " + SECRET + " " + "y" * 1000, windows)
    trace = s.ask("go")
    parts = [text.partition("\n")[0] for text in results(model.requests[-1].messages)[1:]]
    assert leaks("".join(parts)) == [] and leaks(everything(workspace, trace, model)) == []
    assert all(each.ok for each in trace.calls)


SELECTORS = [
    "lines:1-1",
    "lines:-2",
    "grep:horse",
    "grep:x x Zq7",
    "bytes:8100..8300",
    "bytes:0..16384",
    None,
]


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("before", [7990, 7998, 8185])
def test_no_selector_shows_a_part_of_a_secret(workspace: Path, selector: str | None, before: int) -> None:
    def look(request: Any) -> Any:
        chosen = {} if selector is None else {"selector": selector}
        return call("inspect", blob_id="".join(last_blob(request)), **chosen)

    s, model = session(workspace, "x" * before + " " + SECRET + " " + "y" * 9000, look)
    trace = s.ask("go")
    assert trace.calls[1].ok and leaks(everything(workspace, trace, model)) == []


def test_a_pattern_cannot_be_used_to_guess_a_secret(workspace: Path) -> None:
    def guess(request: Any) -> Any:
        blob = "".join(last_blob(request))
        return [call("inspect", blob_id=blob, selector=f"grep:{guess}") for guess in ("Zq7-c", "Zq7-d")]

    s, model = session(workspace, "x\n" * 1000 + SECRET + "\n", guess)
    s.ask("go")
    right, wrong = results(model.requests[-1].messages)[1:]
    assert right.replace("Zq7-c", "") == wrong.replace("Zq7-d", "")


@pytest.mark.parametrize("selector", ["key:k", "path:/k", "path:/list/1", "slice:0..3", None])
def test_json_stays_readable_around_a_secret(workspace: Path, selector: str | None) -> None:
    value: Any = {"k": SECRET + "x" * 900, "list": [1, {"block": BLOCK, "after": "seen"}], "end": "there"}
    if selector == "slice:0..3":
        value = [value, value]

    def look(request: Any) -> Any:
        chosen = {} if selector is None else {"selector": selector}
        return call("inspect", blob_id="".join(last_blob(request)), **chosen)

    s, model = session(workspace, value, look)
    trace = s.ask("go")
    shown = results(model.requests[-1].messages)[1]
    assert trace.calls[1].ok, shown
    assert leaks(everything(workspace, trace, model), SECRET, KEY, "MIIBVgIBADANBgkqhkiG9w0BAQEFAASC") == []
    if selector == "path:/list/1":
        assert json.loads(shown.partition("\n")[0])["after"] == "seen"


def test_lines_of_a_key_block_are_covered_one_by_one_and_keep_their_numbers(workspace: Path) -> None:
    text = "start\n" * 100 + BLOCK + "\nend\n" * 100

    def look(request: Any) -> Any:
        blob = "".join(last_blob(request))
        return [call("inspect", blob_id=blob, selector=f"lines:{n}-{n}") for n in range(100, 111)]

    s, model = session(workspace, text, look)
    trace = s.ask("go")
    shown = [answer.partition("\n")[0] for answer in results(model.requests[-1].messages)[1:]]
    assert shown[0] == "start" and shown[9] == "end" and "[redacted:key]" in shown[2]
    assert leaks(everything(workspace, trace, model), "MIIBVgIBADANBgkqhkiG9w0BAQEFAASC") == []


@given(
    st.integers(0, 400),
    st.integers(0, 400),
    st.sampled_from([SECRET, KEY]),
    st.sampled_from(["x", "漢", "\n", " "]),
)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_cover_is_as_long_as_what_it_covers(
    workspace: Path, before: int, after: int, secret: str, filler: str
) -> None:
    redactor = reyn.Session(workspace, store="memory").parts.redactor
    text = f"{filler * before} {secret} {filler * after}"
    covered = redactor.masked(text)
    assert len(covered.encode()) == len(text.encode()) and covered.count("\n") == text.count("\n")
    assert leaks(covered) == [] and redactor.masked(covered) == covered and redactor.text(covered) == covered


def test_what_a_model_made_up_is_redacted_before_it_is_cut(workspace: Path) -> None:
    calls = [
        raw_call("invoke_action", '{"broken": "' + "x" * 170 + " " + SECRET),
        raw_call("x" * 180 + SECRET, "{}"),
        *[invoke("odd__give")] * 60,
    ]
    s, model = scripted(workspace, calls, "ok", categories=[category()], store="files")
    trace = s.ask("go")
    assert leaks(everything(workspace, trace, model)) == []


def test_targets_and_tool_definitions_are_redacted_too(workspace: Path) -> None:
    s, model = scripted(
        workspace, invoke("file__write", path=f"{SECRET}.txt", content="x"), "ok", store="files"
    )

    @s.action
    def documented(x: int) -> int:
        """Uses Zq7-correct-horse-battery-staple-Xy9 to get in."""
        return x

    trace = s.ask("go", surface="flat", approve="all")
    assert leaks(everything(workspace, trace, model)) == []
    assert (
        leaks(
            repr(s.list_actions("function").payload) + repr(s.describe_action("function__documented").payload)
        )
        == []
    )


@pytest.mark.parametrize("before", range(60, 200, 10))
def test_the_question_of_consent_shows_no_part_of_a_secret(workspace: Path, before: int) -> None:
    asked: list[str] = []
    (workspace / "notes.txt").write_text("a" * before + f" {SECRET} {'x' * 200}\n")
    write = invoke("file__write", path="notes.txt", content="b" * before + f" {KEY} {'y' * 200}\n")
    s, _ = scripted(workspace, write, "ok")
    s.parts.ask_person = lambda question: asked.append(question.text) or "deny"  # type: ignore[func-returns-value]
    s.ask("go")
    assert "write notes.txt" in asked[0] and leaks(asked[0]) == []
