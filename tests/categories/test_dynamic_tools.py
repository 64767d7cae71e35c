"""Tools made at run time, as a person and a model reach them: through a session, with consent, in the sandbox.

The numbers and the codes of errors are those of the specification of dynamic tools; the API reference is
walked through in `test_dynamic_tools_seed`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from reyn_jupyter.dynamic.definition import DynamicTool
from reyn_jupyter.guard.sandbox import Sandbox, SandboxError
from reyn_jupyter.models.scripted import call
from reyn_jupyter.sessions.result_objects import Result
from tests.categories.dynamic_tool_support import ECHO, OPERATION, REVERSE, Bench, create
from tests.security.security_support import invoke
from tests.support.processes import child
from tests.support.waiting import until

ROUNDED = {
    "value": {"type": "number", "description": "What is rounded.", "required": True},
    "precision": {"type": "number", "description": "Digits.", "default": 2, "minimum": 0, "maximum": 10},
    "direction": {"type": "string", "description": "Which way.", "enum": ["up", "down"], "default": "up"},
    "exact": {"type": "boolean", "description": "Not rounded at all."},
    "steps": {"type": "array", "description": "In between."},
}
REMOVES = 'import shutil\n\n\ndef execute(params):\n    shutil.rmtree(params["d"])\n    return "gone"\n'
WRITES = (
    'def execute(params):\n    with open(params["p"], "w") as file:\n        file.write("x")\n    return 1\n'
)
STARTS = 'import subprocess\n\n\ndef execute(params):\n    return subprocess.run(["id"]).returncode\n'
FAILS = 'def execute(params):\n    raise ValueError("the pipe is broken")\n'
SPINS = "def execute(params):\n    while True:\n        pass\n"
SOFT = 'def execute(params):\n    return {"error": "no rows are there"}\n'
PREPARED = {
    "string_reverse": REVERSE,
    "fails": FAILS,
    "exits": "import os\n\n\ndef execute(params):\n    os._exit(3)\n",
    "odd": 'def execute(params):\n    return {"rows": [1, object()]}\n',
    "spins": SPINS,
    "hungry": 'def execute(params):\n    return len(b"x" * (8 << 30))\n',
}


@pytest.fixture(autouse=True, scope="module")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One state folder for the file, so that its tests can share a session; workspaces are told apart in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REYN_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        patch.setenv("REYN_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="module")
def shared(own_state: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("shared"))
    for name, code in PREPARED.items():
        bench.make(name, code)
    bench.make("rounded", ECHO, parameters=ROUNDED)
    yield bench
    bench.session.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "workspace")
    yield made
    made.session.close()


# Every error with its code, what it is about, and what to do next


def new(name: str, code: str = ECHO, **more: Any) -> tuple[str, dict[str, Any]]:
    return f"{OPERATION}create", {"name": name, "description": "A tool.", "code": code, **more}


def run(name: str, timeout_ms: int = 30_000, /, **parameters: Any) -> tuple[str, dict[str, Any]]:
    return f"{OPERATION}run", {"tool_name": name, "parameters": parameters, "timeout_ms": timeout_ms}


def own(name: str, /, **parameters: Any) -> tuple[str, dict[str, Any]]:
    return f"dynamic_tool__{name}", parameters


def delete(**args: Any) -> tuple[str, dict[str, Any]]:
    return f"{OPERATION}delete", args


FIVE = ("create_tool", "run_dynamic_tool", "list_dynamic_tools", "delete_dynamic_tool", "tool_reflection")
WRAPPERS = ("list_actions", "describe_action", "invoke_action", "search_actions", "inspect")
# code, call, what the answer has to name
ERRORS: list[tuple[str, tuple[str, dict[str, Any]], tuple[str, ...]]] = [
    ("E101", new(""), ("name",)),
    ("E102", new("a" * 65), ("64",)),
    *(("E103", new(name), ("letter",)) for name in ("1st", "_x", "two words", "größe", "a.b", "line\n")),
    *(("E104", new(name), (name, "reserved")) for name in (*FIVE, *WRAPPERS)),
    ("E105", run("rounded", precision=1), ("value",)),
    ("E105", own("rounded", precision=1), ("value",)),
    ("E106", run("rounded", value="three"), ("value", "number")),
    ("E106", own("rounded", value="three"), ("value", "number")),
    ("E106", run("rounded", value=True), ("value", "number")),
    ("E106", own("rounded", value=True), ("value", "number")),
    ("E106", run("rounded", value=1, precision=11), ("precision", "10")),
    ("E106", own("rounded", value=1, precision=11), ("precision", "10")),
    ("E106", own("rounded", value=1, precision=-1), ("precision", "0")),
    ("E106", own("rounded", value=1, direction="left"), ("direction", "up", "down")),
    ("E106", run("rounded", value=1, exact="perhaps"), ("exact", "boolean")),
    ("E106", run("rounded", value=1, steps={"a": 1}), ("steps", "array")),
    ("E106", run("rounded", value=1, precison=3), ("precison", "precision")),
    ("E106", own("rounded", value=1, precison=3), ("precison", "precision")),
    ("E106", run("rounded", value=1, precision=11, direction="left", c=1), ("precision", "direction", "c")),
    ("E106", new("ill_typed", parameters={"n": {"type": "strng", "description": "d"}}), ("n", "string")),
    (
        "E106",
        new("ill_default", parameters={"n": {"type": "number", "description": "d", "default": 9, "maximum": 5}}),
        ("n", "5"),
    ),
    ("E107", (f"{OPERATION}run", {"parameters": {}}), ("tool_id", "tool_name")),
    ("E107", delete(confirm=True), ("tool_id", "tool_name")),
    ("E201", new("string_reverse", "def execute(params):\n    return 2\n"), ("string_reverse", "dt_")),
    ("E201", new("String_Reverse"), ("string_reverse",)),
    ("E203", run("string_revers"), ("string_revers", "string_reverse")),
    ("E203", (f"{OPERATION}run", {"tool_id": "dt_0123456789ab", "parameters": {}}), ("dt_0123456789ab",)),
    ("E203", (f"{OPERATION}run", {"tool_id": "no id", "parameters": {"value": []}}), ("no id",)),
    ("E203", delete(tool_name="nowhere", confirm=True), ("nowhere",)),
    ("E205", delete(tool_name="string_reverse"), ("confirm",)),
    ("E205", delete(tool_name="string_reverse", confirm=False), ("confirm",)),
    ("E301", run("fails"), ("fails", "the pipe is broken", "line 2")),
    ("E301", own("fails"), ("the pipe is broken",)),
    ("E301", run("exits"), ("exits", "3")),
    ("E301", run("odd"), ("object",)),
    ("E302", run("spins", 300), ("spins", "0.3 s", "timeout_ms")),
    ("E304", run("hungry"), ("memory",)),
    ("E401", new("removes", REMOVES), ("delete", "line 5")),
    ("E403", new("ungranted", permissions=["allow:everything"]), ("everything", "delete_files", "processes")),
    ("E403", new("ungranted", permissions=["sing:loud"]), ("sing:loud", "network", "read", "write")),
    ("E403", new("ungranted", permissions=["read:../outside"]), ("../outside",)),
]  # fmt: skip
IDS = [f"{code}-{number}" for number, (code, _, _) in enumerate(ERRORS)]


@pytest.mark.parametrize(("code", "made", "named"), ERRORS, ids=IDS)
def test_a_person_is_told_the_error_by_its_code_and_what_to_do(
    shared: Bench, code: str, made: tuple[str, dict[str, Any]], named: tuple[str, ...]
) -> None:
    tools = shared.saved()
    result = shared.session.invoke_action(*made)
    assert (result.ok, result.code) == (False, code), result.payload
    check_words(result.payload, named)
    assert shared.saved() == tools


@pytest.mark.parametrize(("code", "made", "named"), ERRORS, ids=IDS)
def test_a_model_is_told_the_same_though_the_person_says_yes_to_all(
    shared: Bench, code: str, made: tuple[str, dict[str, Any]], named: tuple[str, ...]
) -> None:
    tools = shared.saved()
    name, args = made
    turn = shared.turn(invoke(name, **args))
    assert turn.codes == [code], turn.outputs
    read = json.loads(turn.outputs[0].partition("\n[")[0])
    assert read["code"] == code
    check_words(read, named)
    assert shared.saved() == tools


def check_words(payload: Any, named: tuple[str, ...]) -> None:
    """Check that an error names what it is about, and in its hint what to do next."""
    assert isinstance(payload, dict) and payload["hint"].strip(), payload
    said = json.dumps(payload, ensure_ascii=False).lower()
    assert [each for each in named if each.lower() not in said] == [], payload


def hint_of(result: Result) -> str:
    assert isinstance(result.payload, dict)
    return str(result.payload["hint"]).strip()


def test_an_unknown_tool_by_its_own_name_is_answered_with_one_that_there_is(shared: Bench) -> None:
    result = shared.call("string_revers", text="x")
    assert result.code == "E203" and "dynamic_tool__string_reverse" in json.dumps(result.payload)


# Making a tool


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("def execute(params):\n    return (\n", "line 2"),
        ("def run(params):\n    return 1\n", "execute"),
        ("def execute():\n    return 1\n", "line 1"),
        ("def execute(a, b):\n    return 1\n", "line 1"),
        ("x = 1\n%matplotlib inline\ndef execute(params):\n    return 1\n", "line 2"),
        ("x = 1\n!ls\ndef execute(params):\n    return 1\n", "line 2"),
        ("", "execute"),
    ],
)
def test_code_that_cannot_be_a_tool_is_refused_with_its_line_and_nothing_is_saved(
    shared: Bench, code: str, line: str
) -> None:
    result = shared.create("not_a_tool", code)
    assert not result.ok and isinstance(result.payload, dict) and result.payload["hint"]
    assert line in json.dumps(result.payload)
    assert "not_a_tool" not in shared.saved()


@pytest.mark.parametrize("name", ["a", "A-b_9", "two__parts", "x" * 64])
def test_every_name_of_the_form_makes_a_tool_that_can_be_called(shared: Bench, name: str) -> None:
    made = shared.make(name, ECHO)
    assert made["id"] == "dt_" + hashlib.sha256(f"{name}:{ECHO}".encode()).hexdigest()[:12]
    assert shared.call(name, n=1).value == {"n": 1}
    shared.operation("delete", tool_id=made["id"], confirm=True)


def test_the_answer_to_create_says_all_of_the_tool(shared: Bench) -> None:
    made = shared.make("writes", WRITES, parameters={"p": {"type": "string", "description": "Which file."}})
    assert {
        "name", "id", "safety_score", "quality_score", "verification", "verification_status", "description",
        "parameters", "usage", "safety", "quality", "text",
    } <= set(made)  # fmt: skip
    assert (made["safety_score"], made["verification"], made["verification_status"]) == (
        0.75, "unverified", "unverified",
    )  # fmt: skip
    (issue,) = made["safety"]["issues"]
    assert (issue["severity"], issue["line"]) == ("high", 2)
    assert made["id"] in json.dumps(made["usage"]) or "writes" in json.dumps(made["usage"])
    assert (
        shared.make("reads", "def execute(params):\n    return open(params['p']).read()\n")["safety"][
            "issues"
        ]
        == []
    )


def test_a_removing_tool_is_refused_and_audited_and_the_folder_stays(bench: Bench) -> None:
    victim = bench.root / "victim"
    victim.mkdir()
    assert bench.create("removes", REMOVES).code == "E401"
    assert not bench.run("removes", {"d": str(victim)}).ok
    assert victim.is_dir() and bench.saved() == []
    (entry,) = (each for each in bench.audit() if each["action"] == "tool.create")
    assert entry["success"] is False and "removes" in entry.values() and entry["error"]


def test_a_person_grants_a_critical_operation_and_it_stays_within_its_folder(bench: Bench) -> None:
    for folder in ("out/old", "kept"):
        (bench.root / folder).mkdir(parents=True)
    made = bench.make("removes", REMOVES, permissions=["allow:delete_files", "write:out"])
    assert made["safety_score"] == 0.5
    assert [each["severity"] for each in made["safety"]["issues"]] == ["critical"]
    assert bench.run("removes", {"d": str(bench.root / "out" / "old")}).value["ok"] is True
    assert bench.run("removes", {"d": str(bench.root / "kept")}).code == "E301"
    assert not (bench.root / "out" / "old").exists() and (bench.root / "kept").is_dir()


def test_files_are_read_and_written_by_grant_alone(bench: Bench) -> None:
    (bench.root / "data").mkdir()
    (bench.root / "out").mkdir()
    (bench.root / "data" / "a.txt").write_text("the content")
    reads = "def execute(params):\n    with open(params['p']) as file:\n        return file.read()\n"
    path, target = str(bench.root / "data" / "a.txt"), bench.root / "out" / "b.txt"
    bench.make("reads", reads)
    bench.make("reads_data", reads, permissions=["read:data"])
    bench.make("writes", WRITES, permissions=["read:data"])
    bench.make("writes_out", WRITES, permissions=["write:out"])
    assert bench.run("reads", {"p": path}).code == "E301"
    assert bench.call("reads_data", p=path).value == "the content"
    assert bench.run("writes", {"p": str(target)}).code == "E301" and not target.exists()
    assert bench.call("writes_out", p=str(target)).value == 1 and target.read_text() == "x"


PLANTS = """import os


def execute(params):
    for name in (".git/hooks/pre-commit", ".mcp.json", "new/.env", "new/kept.txt"):
        path = os.path.join(params["root"], name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with open(path, "w") as file:
                file.write("x")
        except OSError:
            pass
"""
PLANTS_TYPESCRIPT = """function execute(params) {
  for (const name of [".git/hooks/pre-commit", ".mcp.json", "new/.env", "new/kept.txt"]) {
    try {
      Deno.mkdirSync(`${params.root}/new`, { recursive: true });
      Deno.writeTextFileSync(`${params.root}/${name}`, "x");
    } catch {}
  }
}
"""


@pytest.mark.parametrize("code", [PLANTS, PLANTS_TYPESCRIPT], ids=["python", "typescript"])
def test_a_tool_leaves_nothing_where_no_action_may_write(bench: Bench, code: str) -> None:
    (bench.root / ".git" / "hooks").mkdir(parents=True)
    bench.make("plants", code, permissions=["write:."])
    bench.call("plants", root=str(bench.root))
    assert (bench.root / "new" / "kept.txt").exists()
    for name in (".git/hooks/pre-commit", ".mcp.json", "new/.env"):
        assert not (bench.root / name).exists(), name


@pytest.mark.parametrize("who", ["person", "model"])
def test_a_tool_reads_nothing_that_a_rule_denies(tmp_path: Path, who: str) -> None:
    bench = Bench(tmp_path / "workspace", {"permissions": {"deny": ["file__read(private/**)"]}})
    (bench.root / "private").mkdir()
    pay = bench.root / "private" / "pay.csv"
    pay.write_text("not for tools")
    reads = "def execute(params):\n    with open(params['p']) as file:\n        return file.read()\n"
    bench.make("reads", reads, permissions=["read:."])
    by = bench.turn(invoke("dynamic_tool__reads", p=str(pay))).outputs if who == "model" else []
    assert "not for tools" not in str(by or bench.call("reads", p=str(pay)).payload)


@pytest.mark.parametrize("rule", ["deny", "ask"])
def test_a_rule_for_a_tool_holds_for_every_way_to_it(tmp_path: Path, rule: str) -> None:
    bench = Bench(tmp_path / "workspace", {"permissions": {rule: ["dynamic_tool__held"]}}, answer="deny")
    made = bench.make("held", ECHO)
    by_name = invoke(f"{OPERATION}run", tool_name="held", parameters={})
    by_id = invoke(f"{OPERATION}run", tool_id=made["id"], parameters={})
    turn = bench.turn(invoke("dynamic_tool__held"), by_name, by_id)
    assert turn.codes == ["permission_denied"] * 3
    assert len(bench.questions) == (3 if rule == "ask" else 0)


# Consent: what a model may do, and what only the person


FINDINGS = (
    'import os\n\n\ndef execute(params):\n    home = os.environ.get("HOME")\n'
    + "".join(f"    # step {number}\n" for number in range(120))
    + '    with open(params["p"], "w") as file:\n        file.write(str(home))\n    return "the last line"\n'
)


def test_a_models_create_shows_the_person_all_of_the_code_the_findings_and_the_score(bench: Bench) -> None:
    bench.answer = "deny"
    turn = bench.turn(create("logs", FINDINGS, permissions=["network:api.example.com", "write:out"]))
    (question,) = bench.questions
    text = question.text
    assert [line for line in FINDINGS.splitlines() if line.strip() not in text] == []
    for word in ("0.65", "network api.example.com", "write out"):
        assert word in text, text
    for line, what in ((5, "environ"), (126, "write")):
        assert any(
            str(line) in each and what in each.lower() for each in text.splitlines() if "#" not in each
        ), text
    assert not any(each.keeps for each in question.choices), "no always for code"
    assert turn.calls[0].denied and bench.saved() == []
    assert bench.tools() == {}


@pytest.mark.parametrize("way", ["approve all", "a rule", "the person says yes"])
@pytest.mark.parametrize("made", [create("t", REMOVES), create("t", STARTS)], ids=["removes", "starts"])
def test_no_way_lets_a_model_make_a_tool_with_a_critical_finding(tmp_path: Path, way: str, made: Any) -> None:
    rules = {"permissions": {"allow": [f"{OPERATION}create"]}} if way == "a rule" else {}
    bench = Bench(tmp_path / "workspace", rules)
    turn = bench.turn(made, approve="all" if way == "approve all" else "ask")
    assert turn.codes == ["E401"] and bench.saved() == []


@pytest.mark.parametrize("code", [ECHO, REMOVES], ids=["harmless", "critical"])
@pytest.mark.parametrize("way", ["approve all", "a rule"])
def test_no_model_grants_a_critical_operation_unasked(tmp_path: Path, way: str, code: str) -> None:
    rules = {"permissions": {"allow": [f"{OPERATION}create", "dynamic_tool__*"]}} if way == "a rule" else {}
    bench = Bench(tmp_path / "workspace", rules, answer="deny")
    made = create("t", code, permissions=["allow:delete_files"])
    turn = bench.turn(
        made, invoke("dynamic_tool__t", d="x"), approve="all" if way == "approve all" else "ask"
    )
    assert "ok" not in turn.codes and bench.saved() == []


# In the catalog


def test_a_tool_is_in_the_same_turns_listing_description_search_and_calls(bench: Bench) -> None:
    parameters = {
        "text": {"type": "string", "description": "What is shouted.", "required": True},
        "times": {"type": "number", "description": "How loud.", "default": 3, "minimum": 1},
    }
    code = "async def execute(params):\n    return params['text'].upper() + '!' * params['times']\n"
    made = invoke(
        f"{OPERATION}create",
        name="shout",
        description="Shout a text loudly.",
        code=code,
        parameters=parameters,
    )
    look = [
        call("list_actions", category=["dynamic_tool"]),
        call("describe_action", action_name="dynamic_tool__shout"),
        call("search_actions", query="shout a text loudly"),
    ]
    turn = bench.turn(made, look, invoke("dynamic_tool__shout", text="hey"), approve="all")
    assert turn.codes == ["ok"] * 5, turn.outputs
    assert all("dynamic_tool__shout" in each for each in turn.outputs[1:4])
    assert turn.outputs[4].strip('"') == "HEY!!!"
    schema = bench.session.describe_action("dynamic_tool__shout").payload["input_schema"]
    assert schema["additionalProperties"] is False and schema["required"] == ["text"]
    assert schema["properties"]["times"] == {
        "type": "number", "description": "How loud.", "default": 3, "minimum": 1,
    }  # fmt: skip
    assert "dynamic_tool__shout" in json.dumps(bench.session.search_actions("shout loudly").payload)
    bench.operation("delete", tool_name="shout", confirm=True)
    assert "shout" not in json.dumps(bench.session.list_actions("dynamic_tool").payload)


def test_on_the_flat_surface_a_tool_is_a_tool_of_the_next_request(bench: Bench) -> None:
    made = call(f"{OPERATION}create", name="back", description="Reverse.", code=REVERSE)
    turn = bench.turn(made, call("dynamic_tool__back", text="abc"), approve="all", surface="flat")
    assert turn.codes == ["ok", "ok"]
    before, after = turn.requests[0].tools, turn.requests[1].tools
    assert "dynamic_tool__back" not in before.names and "dynamic_tool__back" in after.names
    assert turn.outputs[1].strip('"') == "cba"


# Parameters


def test_defaults_are_applied_and_a_bound_itself_is_allowed(shared: Bench) -> None:
    assert shared.call("rounded", value=1.5).value == {"value": 1.5, "precision": 2, "direction": "up"}
    assert shared.call("rounded", value=1, precision=10, direction="down").value["precision"] == 10
    assert shared.run("rounded", {"value": 1}).value["result"] == {
        "value": 1,
        "precision": 2,
        "direction": "up",
    }


def test_parameters_left_out_take_any_object_and_declared_as_none_take_none(bench: Bench) -> None:
    bench.make("any", ECHO)
    bench.make("none", ECHO, parameters={})
    given = {"deep": {"list": [1, None, "ü"]}, "n": 1.5}
    assert bench.call("any", **given).value == given
    assert bench.call("none").value == {}
    assert bench.call("none", n=1).code == "E106"
    assert bench.run("none", {"n": 1}).code == "E106"


# Running


async def test_plain_and_async_tools_run_inside_a_running_loop(bench: Bench) -> None:
    aio = bench.session.aio
    for name, word in (("plain", ""), ("awaited", "async ")):
        await aio.invoke_action(
            f"{OPERATION}create", {"name": name, "description": "d", "code": word + REVERSE}
        )
        result = await aio.invoke_action(f"dynamic_tool__{name}", {"text": "Hello World"})
        assert result.value == "dlroW olleH"


def test_the_answer_of_run_has_the_value_apart_from_what_was_printed(shared: Bench) -> None:
    code = (
        "import sys\n\n\ndef execute(params):\n    print('{\"out\": 1}')\n"
        "    print('err', file=sys.stderr)\n    return [1, {'a': None}]\n"
    )
    made = shared.make("prints", code)
    said = shared.operation("run", tool_id=made["id"], parameters={}).value
    assert (said["name"], said["id"], said["ok"]) == ("prints", made["id"], True)
    assert said["result"] == [1, {"a": None}]
    assert (said["stdout"], said["stderr"]) == ('{"out": 1}\n', "err\n")
    assert said["seconds"] > 0 and said["isolation"] and "prints" in said["text"]
    assert shared.call("prints").value == [1, {"a": None}]


def test_a_soft_error_is_a_result_that_is_not_ok(shared: Bench) -> None:
    shared.make("soft", SOFT)
    result = shared.run("soft")
    assert result.ok and result.value["ok"] is False
    assert (
        result.value["result"] == {"error": "no rows are there"}
        and "no rows are there" in result.value["text"]
    )


def test_a_timeout_comes_in_time_leaves_no_process_and_the_next_run_works(shared: Bench) -> None:
    before = set(psutil.Process().children(recursive=True))
    began = time.monotonic()
    assert shared.run("spins", timeout_ms=500).code == "E302"
    assert time.monotonic() - began < 60  # it would go on for good
    until(lambda: not left_over(before))
    assert shared.run("string_reverse", {"text": "ab"}).value["result"] == "ba"


def left_over(before: set[psutil.Process]) -> list[psutil.Process]:
    now = set(psutil.Process().children(recursive=True)) - before
    return [each for each in now if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def test_a_tool_sees_no_secret_of_the_kernel(shared: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATES_API_KEY", "sk-not-for-tools-0123456789")
    monkeypatch.setenv("PLAIN_SETTING", "not-for-tools-either")
    shared.make("environment", "import os\n\n\ndef execute(params):\n    return dict(os.environ)\n")
    seen = json.dumps(shared.call("environment").value)
    assert "for-tools" not in seen and "RATES_API_KEY" not in seen


# Confidence, use, verification


def test_confidence_moves_by_the_numbers_and_stays_within_its_bounds(bench: Bench) -> None:
    made = bench.make("twice", "def execute(params):\n    return params['n'] * 2\n")
    began = min(made["safety_score"], made["quality_score"])
    assert bench.tools()["twice"]["confidence_score"] == pytest.approx(began)
    assert bench.tools()["twice"]["last_used_at"] is None
    bench.call("twice", n=1)
    after = bench.tools()["twice"]
    assert after["confidence_score"] == pytest.approx(min(1.0, began + 0.02)) and after["usage_count"] == 1
    bench.call("twice")  # a KeyError
    fallen = bench.tools()["twice"]
    assert fallen["confidence_score"] == pytest.approx(after["confidence_score"] - 0.05)
    assert fallen["usage_count"] == 2 and is_utc(fallen["last_used_at"])
    tool = DynamicTool.model_validate_json(bench.definition("twice").read_text())
    for success, bound in ((True, 1.0), (False, 0.1)):
        for _ in range(50):
            tool = tool.used(success, "2026-01-01T00:00:00+00:00")
        assert tool.confidence_score == pytest.approx(bound)


def test_what_never_ran_is_no_use(shared: Bench) -> None:
    before = shared.tools()["rounded"]
    shared.run("rounded")
    shared.run("rounded", {"value": "x"})
    assert shared.tools()["rounded"] == before


def is_utc(text: Any) -> bool:
    return datetime.fromisoformat(text).utcoffset() == timedelta(0)


def test_examples_verify_a_tool_in_the_sandbox(bench: Bench) -> None:
    right = [{"parameters": {"text": "ab"}, "result": "ba"}, {"parameters": {"text": ""}, "result": ""}]
    wrong = [*right, {"parameters": {"text": "abc"}, "result": "abc"}]
    passed = bench.make("passes", REVERSE, examples=right)
    failed = bench.make("misses", REVERSE, examples=wrong)
    raises = bench.make("raises", FAILS, examples=[{"parameters": {}, "result": 1}])
    assert (passed["verification_status"], passed["verification"]) == ("passed", "verified")
    assert {(each["verification_status"], each["verification"]) for each in (failed, raises)} == {
        ("failed", "unverified")
    }
    listed = bench.tools()
    assert [listed[name]["verification_status"] for name in ("passes", "misses", "raises")] == [
        "passed", "failed", "failed",
    ]  # fmt: skip
    actions = {entry["action"] for entry in bench.audit() if "passes" in entry.values()}
    assert actions == {"tool.create", "verification.pass"}
    assert any(e["action"].startswith("verification.") and not e["success"] for e in bench.audit())


def test_a_tool_that_the_person_deprecates_is_listed_so_and_runs(bench: Bench) -> None:
    bench.make("old", REVERSE)
    bench.session.deprecate_tool("old")
    assert bench.tools()["old"]["verification_status"] == "deprecated"
    assert Bench(bench.root).tools()["old"]["verification_status"] == "deprecated"
    assert bench.call("old", text="ab").value == "ba"


# The list


def test_the_list_is_narrowed_by_name_tags_score_and_limit(bench: Bench) -> None:
    bench.make("json_lines", ECHO, tags=["json", "text"])
    bench.make("JSON_keys", ECHO, tags=["json"])
    bench.make("writes", WRITES, tags=["files"])
    assert set(bench.tools()) == {"json_lines", "JSON_keys", "writes"}
    assert set(bench.tools(name="Json")) == {"json_lines", "JSON_keys"}
    assert set(bench.tools(tags=["text", "files"])) == {"json_lines", "writes"}
    assert set(bench.tools(min_safety_score=0.75)) == {"json_lines", "JSON_keys", "writes"}
    assert set(bench.tools(min_safety_score=0.76)) == {"json_lines", "JSON_keys"}
    assert len(bench.tools(limit=2)) == 2
    assert bench.tools(name="nothing like it") == {}


def test_the_most_tools_are_a_hundred_or_what_is_configured(bench: Bench) -> None:
    keys = [row["key"] for row in bench.session.config.rows if "tool" in row["key"] and row["value"] == 100]
    (key,) = keys
    bench.session.configure(key, 2)
    for name in ("one", "two"):
        bench.make(name, ECHO)
    result = bench.create("three", ECHO)
    assert result.code == "E202" and "2" in str(result.error) and "delete" in hint_of(result).lower()
    assert bench.turn(create("three")).codes == ["E202"] and bench.saved() == ["one", "two"]
    bench.operation("delete", tool_name="one", confirm=True)
    bench.make("three", ECHO)


def test_a_hundred_tools_are_listed_found_and_run_within_what_a_model_is_shown(bench: Bench) -> None:
    for number in range(99):
        bench.make(f"step_{number:02}", ECHO, description=f"Do step number {number}.")
    bench.make("turn_around", REVERSE, description="Turn a text around, its last letter first.")
    listed, offset = "", 0
    while offset is not None:
        page = call("list_actions", category=["dynamic_tool"], offset=offset, limit=50)
        (told,) = bench.turn(page).outputs
        assert len(told.encode()) <= 8192
        listed, offset = listed + told, json.loads(told).get("next_offset")
    assert all(f"dynamic_tool__step_{number:02}" in listed for number in range(99))
    found = call("search_actions", query="turn a text around, last letter first")
    turn = bench.turn(
        found, invoke("dynamic_tool__turn_around", text="abc"), invoke("dynamic_tool__step_98", at=98)
    )
    assert "dynamic_tool__turn_around" in turn.outputs[0], turn.outputs
    assert turn.outputs[1].strip('"') == "cba" and json.loads(turn.outputs[2]) == {"at": 98}
    assert len(bench.tools(limit=1000)) == 100 and bench.create("one_more").code == "E202"


# On disk, and in two kernels


def rewrite(bench: Bench, name: str, /, **values: Any) -> None:
    path = bench.definition(name)
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_a_definition_edited_on_disk_is_refused_until_it_is_made_anew(bench: Bench) -> None:
    bench.make("edited", REVERSE)
    rewrite(bench, "edited", code="def execute(params):\n    return 'not what was shown'\n")
    for result in (bench.run("edited"), bench.call("edited")):
        assert result.code == "E204" and hint_of(result), result.payload
    assert bench.turn(invoke("dynamic_tool__edited", text="ab")).codes == ["E204"]
    assert "edited" in json.dumps(bench.operation("list").value)
    assert bench.operation("delete", tool_name="edited", confirm=True).ok
    bench.make("edited", REVERSE)
    assert bench.call("edited", text="ab").value == "ba"


@pytest.mark.parametrize("member", ["permissions", "parameters", "mode", "name"])
def test_every_member_that_says_what_a_tool_does_is_pinned(bench: Bench, member: str) -> None:
    bench.make("pinned", REVERSE)
    forged = {"permissions": ["network:example.org"], "parameters": [], "mode": "typescript", "name": "other"}
    rewrite(bench, "pinned", **{member: forged[member]})
    assert {bench.run(name).code for name in ("pinned", "other")} <= {"E203", "E204"}


def test_a_dangerous_definition_that_is_pinned_all_the_same_fails_the_check_before_the_run(
    bench: Bench,
) -> None:
    bench.make("forged", REVERSE)
    victim = bench.root / "victim"
    victim.mkdir()
    tool = DynamicTool.model_validate_json(bench.definition("forged").read_text())
    made = hashlib.sha256(f"forged:{REMOVES}".encode()).hexdigest()
    tool = tool.model_copy(update={"code": REMOVES, "id": f"dt_{made[:12]}"})
    rewrite(bench, "forged", code=REMOVES, id=tool.id, sha256=tool.digest())
    result = bench.run("forged", {"d": str(victim)})
    assert result.code == "E303" and hint_of(result), result.payload
    assert "line 5" in json.dumps(result.payload) and victim.is_dir()
    assert bench.turn(invoke("dynamic_tool__forged", d=str(victim))).codes == ["E303"]


@pytest.mark.parametrize("damage", [b"", b"no json", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000])
def test_a_corrupt_file_is_set_aside_with_a_warning_and_hides_no_other_tool(
    bench: Bench, damage: bytes
) -> None:
    bench.make("broken", ECHO)
    bench.make("whole", REVERSE)
    bench.definition("broken").write_bytes(damage)
    listing = bench.operation("list").value
    assert [each["name"] for each in listing["tools"]] == ["whole"]
    assert "broken" in bench.session.tools.note
    assert "broken" in " ".join(bench.session.problems), "as everything that is left out"
    assert bench.call("whole", text="ab").value == "ba"
    assert bench.run("broken").code in ("E203", "E204")
    assert any(path.read_bytes() == damage for path in bench.state.rglob("*broken*") if path.is_file()), (
        "kept"
    )
    bench.make("broken", REVERSE)
    assert bench.call("broken", text="ab").value == "ba"


def test_definitions_are_the_persons_own_and_no_cloned_folder_brings_one(
    bench: Bench, tmp_path: Path
) -> None:
    bench.make("mine", REVERSE)
    assert bench.definition("mine").stat().st_mode & 0o077 == 0
    inside = [path for path in bench.root.rglob("*") if path.is_file() and "runs" not in path.parts]
    assert not any(b"mine" in path.read_bytes() for path in inside)
    assert Bench(tmp_path / "elsewhere").tools() == {}


async def test_two_sessions_of_a_workspace_see_each_others_tools_and_uses(bench: Bench) -> None:
    other = Bench(bench.root)
    made = bench.make("ours", REVERSE)
    assert other.create("ours", ECHO).code == "E201"
    calls = (on.session.aio.invoke_action("dynamic_tool__ours", {"text": "x"}) for on in (bench, other) * 2)
    assert [each.value for each in await asyncio.gather(*calls)] == ["x"] * 4
    assert bench.tools()["ours"]["usage_count"] == 4 == other.tools()["ours"]["usage_count"]
    on_disk = json.loads(bench.definition("ours").read_text())
    assert on_disk["usage_count"] == 4 and is_utc(on_disk["last_used_at"])
    assert other.operation("delete", tool_id=made["id"], confirm=True).ok
    assert bench.tools() == {} and bench.run("ours").code == bench.call("ours").code == "E203"
    args = {"name": "both", "description": "d", "code": REVERSE}
    race = (on.session.aio.invoke_action(f"{OPERATION}create", args) for on in (bench, other) * 2)
    assert sorted(each.code or "made" for each in await asyncio.gather(*race)) == ["E201"] * 3 + ["made"]


def test_another_kernel_goes_on_with_the_same_tool(bench: Bench) -> None:
    bench.make("ours", REVERSE)
    bench.call("ours", text="x")
    done = child(
        """
        import sys
        import reyn_jupyter as reyn
        session = reyn.Session(sys.argv[1], store="memory", namespace={})
        print(session.invoke_action("dynamic_tool__ours", {"text": "ab"}).value)
        session.invoke_action("dynamic_tool_operation__create",
                              {"name": "theirs", "description": "d", "code": "def execute(p):\\n    return 1\\n"})
        """,
        str(bench.root),
    )
    assert done.stdout == "ba\n", done.stderr
    assert bench.tools()["ours"]["usage_count"] == 2
    assert bench.call("theirs").value == 1


def test_a_tool_is_deleted_with_confirm_alone(bench: Bench) -> None:
    made = bench.make("gone", REVERSE)
    assert bench.operation("delete", tool_name="gone").code == "E205" and bench.saved() == ["gone"]
    said = bench.operation("delete", tool_name="gone", confirm=True).value
    assert (said["name"], said["id"], said["deleted"]) == ("gone", made["id"], True)
    assert bench.saved() == [] and not bench.call("gone").ok


# The audit


def test_each_action_leaves_one_line_that_says_who_did_what_to_which_tool(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-not-for-the-audit-0123456789"
    monkeypatch.setenv("RATES_API_KEY", secret)
    made = bench.make("echo", ECHO)
    bench.make("fails", FAILS)
    bench.call("echo", text=secret, more="x" * 300_000)
    bench.run("fails")
    bench.run("echo", {"n": 1}, timeout_ms=60_000)
    bench.turn(create("models", REVERSE), invoke("dynamic_tool__models", text="x"))
    bench.operation("delete", tool_name="echo", confirm=True)
    entries = bench.audit()
    assert [(each["action"], each["actor"], each["success"]) for each in entries] == [
        ("tool.create", "person", True),
        ("tool.create", "person", True),
        ("tool.run", "person", True),
        ("tool.run", "person", False),
        ("tool.run", "person", True),
        ("tool.create", "model", True),
        ("tool.run", "model", True),
        ("tool.delete", "person", True),
    ]
    assert made["id"] in entries[0].values() and "echo" in entries[0].values()
    assert "the pipe is broken" in entries[3]["error"] and not entries[2].get("error")
    assert all(any(isinstance(value, str) and is_time(value) for value in each.values()) for each in entries)
    files = list(bench.state.rglob("*.jsonl"))
    written = b"".join(path.read_bytes() for path in files)
    assert secret.encode() not in written and len(written) < 100_000
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)


def test_a_tool_of_which_something_does_not_end_has_run_and_is_audited(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(*args: Any, **kwargs: Any) -> None:
        raise SandboxError("a process of it has not ended", "End what it waits for.", began=True)

    bench.make("echo", ECHO)
    monkeypatch.setattr(Sandbox, "run", run)
    said = bench.call("echo", text="a")
    assert said.error == "The tool did not run to its end: a process of it has not ended."
    last = bench.audit()[-1]
    assert (last["action"], last["success"]) == ("tool.run", False) and "has not ended" in last["error"]


def is_time(text: str) -> bool:
    try:
        return is_utc(text)
    except ValueError:
        return False
