"""The API reference of dynamic tool generation, walked through: tables, templates, examples, flows, errors.

It names its tools `create_tool`, `run_dynamic_tool` and so on; here they are operations of a category. Its three
examples run as they stand there, in TypeScript. Its templates are Japanese; ours follow them line for line in English,
so a template is compared by what stands on which line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.models.scripted import call
from tests.categories.dynamic_tool_support import OPERATION, REVERSE, Bench
from tests.dynamic.tool_samples import CALCULATE_AVERAGE, FETCH_JSON, STRING_REVERSE
from tests.security.security_support import invoke
from tests.support.web_site import Site, web_site


@pytest.fixture(autouse=True, scope="module")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One state folder for the file, so that its tests share a session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REYN_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        patch.setenv("REYN_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with web_site() as made:
        yield made


@pytest.fixture(scope="module")
def bench(own_state: None, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A session with its three examples, the third allowed by the person to reach one host."""
    made = Bench(tmp_path_factory.mktemp("examples"))
    for example in (STRING_REVERSE, CALCULATE_AVERAGE):
        made.operation("create", **example).value  # noqa: B018 - raises where it failed
    granted = [f"network:localhost:{site.port}"]
    made.operation("create", **FETCH_JSON, permissions=granted).value  # noqa: B018
    yield made
    made.session.close()


# The parameters of the five tools


PARAMETERS: list[tuple[str, str, str, bool, str]] = [
    ("create", "name", "string", True, ""),
    ("create", "description", "string", True, ""),
    ("create", "code", "string", True, ""),
    ("create", "parameters", "object", False, ""),
    ("create", "tags", "array", False, ""),
    ("create", "generated_from", "string", False, ""),
    ("create", "mode", "string", False, "typescript"),
    ("create", "permissions", "array", False, "network:"),
    ("create", "examples", "array", False, ""),
    ("create", "output_schema", "object", False, ""),
    ("create", "capability", "string", False, "domain.action"),
    ("run", "tool_id", "string", False, ""),
    ("run", "tool_name", "string", False, ""),
    ("run", "parameters", "object", False, ""),
    ("run", "timeout_ms", "number", False, "30000"),
    ("list", "name", "string", False, ""),
    ("list", "tags", "array", False, ""),
    ("list", "min_safety_score", "number", False, "1"),
    ("list", "limit", "number", False, "20"),
    ("delete", "tool_id", "string", False, ""),
    ("delete", "tool_name", "string", False, ""),
    ("delete", "confirm", "boolean", False, "true"),
    ("reflect", "task_description", "string", True, ""),
    ("reflect", "last_tool_result", "string", True, ""),
    ("reflect", "failed_attempts", "number", False, ""),
]


@pytest.mark.parametrize(("tool", "name", "kind", "required", "says"), PARAMETERS)
def test_a_tool_takes_each_parameter_of_its_table(
    bench: Bench, tool: str, name: str, kind: str, required: bool, says: str
) -> None:
    schema = bench.session.describe_action(OPERATION + tool).payload["input_schema"]
    declared = schema["properties"][name]
    kinds = {"number": ("number", "integer")}.get(kind, (kind,))
    assert declared["type"] in kinds and declared["description"]
    assert not required or name in schema["required"]
    assert says in json.dumps(declared).replace(",000", "000")
    if not required and (tool, name) != ("run", "parameters"):  # which the reference requires
        assert name not in schema.get("required", ())


@pytest.mark.parametrize("tool", ["create", "run", "list", "delete", "reflect"])
def test_a_tool_takes_no_other_parameter(bench: Bench, tool: str) -> None:
    schema = bench.session.describe_action(OPERATION + tool).payload["input_schema"]
    assert set(schema["properties"]) == {row[1] for row in PARAMETERS if row[0] == tool}
    assert not bench.operation(tool, nonsense=1).ok


def test_the_parts_of_a_parameters_definition_become_its_schema(bench: Bench) -> None:
    schema = bench.session.describe_action("dynamic_tool__calculate_average").payload["input_schema"]
    assert schema["required"] == ["numbers"]
    numbers = schema["properties"]["numbers"]
    assert (numbers["type"], numbers["description"]) == ("array", "平均を計算する数値の配列")
    assert schema["properties"]["precision"] == {
        "type": "number", "description": "小数点以下の桁数", "default": 2, "minimum": 0, "maximum": 10,
    }  # fmt: skip


# The three examples


def test_string_reverse_runs_by_name_and_by_id(bench: Bench) -> None:
    listed = bench.tools()["string_reverse"]
    assert listed["mode"] == "typescript" and listed["description"] == "文字列を逆順にする"
    by_name = bench.run("string_reverse", {"text": "Hello World"}).value
    by_id = bench.operation("run", tool_id=listed["id"], parameters={"text": "Hello World"}).value
    assert by_name["result"] == by_id["result"] == "dlroW olleH"
    assert bench.call("string_reverse").value == ""


def test_calculate_average_takes_its_parameters_as_declared(bench: Bench) -> None:
    assert bench.call("calculate_average", numbers=[1, 2, 6]).value == 3
    soft = bench.run("calculate_average", {"numbers": []}).value
    assert soft["ok"] is False and soft["result"] == {"error": "有効な数値配列を指定してください"}
    assert bench.run("calculate_average", {}).code == "E105"
    assert bench.run("calculate_average", {"numbers": [1], "precision": 11}).code == "E106"
    assert bench.run("calculate_average", {"numbers": "1, 2"}).code == "E106"
    assert bench.tools()["calculate_average"]["tags"] == ["math", "statistics"]


def test_fetch_json_reaches_the_host_that_the_person_granted_and_no_other(bench: Bench, site: Site) -> None:
    asked = {"url": f"{site.url}/data.json", "timeout_ms": 50_000}
    assert bench.run("fetch_json", asked, timeout_ms=60_000).value["result"] == {"rows": [1, 2, 3]}
    missing = bench.run("fetch_json", {"url": f"{site.url}/nothing"}).value
    assert missing["ok"] is False and missing["result"] == {"error": "HTTP 404: Not Found"}
    requests = len(site.requests)
    away = bench.run("fetch_json", {"url": f"{site.url}/away"}).value  # redirects to the other host
    other = bench.run("fetch_json", {"url": f"{site.other_url}/data.json"}).value
    assert away["ok"] is other["ok"] is False
    assert [each.path for each in site.requests[requests:]] == ["/away"]
    assert json.loads(bench.definition("fetch_json").read_text())["created_from_task"] == "外部API統合タスク"


def test_fetch_json_reaches_nothing_without_a_grant(bench: Bench, site: Site) -> None:
    bench.operation("create", **{**FETCH_JSON, "name": "fetch_ungranted"}).value  # noqa: B018
    requests = len(site.requests)
    said = bench.run("fetch_ungranted", {"url": f"{site.url}/data.json"}).value
    assert said["ok"] is False and said["result"]["error"] and len(site.requests) == requests


def test_the_examples_of_the_seed_are_what_a_model_may_make_too(bench: Bench, tmp_path: Path) -> None:
    fresh = Bench(tmp_path / "models")
    turn = fresh.turn(
        invoke(f"{OPERATION}create", **STRING_REVERSE),
        invoke(f"{OPERATION}run", tool_name="string_reverse", parameters={"text": "Hello World"}),
        invoke("dynamic_tool__string_reverse", text="ab"),
    )
    assert "dt_" in turn.outputs[0], "the model reads the id, and no summary without it"
    assert turn.codes == ["ok"] * 3 and "dlroW olleH" in turn.outputs[1] and "ba" in turn.outputs[2]
    assert STRING_REVERSE["code"].strip().splitlines()[1].strip() in fresh.questions[0].text


# The templates of what is returned


NUMBER = r"[01](\.\d+)?"


def follows(text: str, *lines: str) -> None:
    """Check that a text has exactly these lines: each is a pattern that its line matches from end to end."""
    given = text.split("\n")
    matched = [
        bool(re.fullmatch(pattern, line, re.IGNORECASE)) for pattern, line in zip(lines, given, strict=False)
    ]
    assert len(given) == len(lines) and all(matched), list(zip(lines, given, matched, strict=False))


def test_what_create_returns_follows_the_template(bench: Bench) -> None:
    made = bench.operation("create", **{**CALCULATE_AVERAGE, "name": "average"}).value
    follows(
        made["text"],
        r".*\baverage\b.*created.*|created.*\baverage\b.*",
        "",
        rf"tool id: {made['id']}",
        rf"safety score: {NUMBER}",
        rf"quality score: {NUMBER}",
        r"verification( status)?: unverified",
        "",
        r"description:",
        "数値の配列から平均値を計算",
        "",
        r"parameters:",
        r"- numbers \(array\): 平均を計算する数値の配列",
        r"- precision \(number\): 小数点以下の桁数",
        "",
        r"(usage|how to (use|run)( it)?):",
        rf".*{made['id']}.*",
    )


def test_what_run_returns_follows_the_template(bench: Bench) -> None:
    said = bench.run("string_reverse", {"text": "ab"}).value
    follows(
        said["text"],
        r".*\bstring_reverse\b.*",
        "",
        r"(execution |run )?time: [\d.,]+ ?ms",
        "",
        r"result:",
        r'"?ba"?',
    )


def test_what_a_failed_run_returns_names_the_tool_the_time_and_the_error(bench: Bench) -> None:
    code = "function execute(params) {\n  throw new Error('the pipe is broken');\n}\n"
    bench.make("throws", code)
    result = bench.run("throws")
    assert result.code == "E301" and result.error is not None
    assert "throws" in result.error and "the pipe is broken" in result.error
    assert re.search(r"[\d.,]+ ?ms", json.dumps(result.payload)), result.payload


def test_what_list_returns_follows_the_template(bench: Bench) -> None:
    bench.call("string_reverse", text="x")
    said = bench.operation("list", tags=["math", "network"]).value
    listed = {each["name"]: each for each in said["tools"]}
    sections = said["text"].split("\n## ")
    heading, rest = sections[0], sections[1:]
    follows(heading.strip(), rf"# .*tools.*\b{len(rest)}\b.*")
    assert {each.split("\n")[0] for each in rest} == set(listed) >= {"calculate_average", "fetch_json"}
    for section in rest:
        tool = listed[section.split("\n")[0]]
        follows(
            section.strip(),
            re.escape(tool["name"]),
            rf"- id: {tool['id']}",
            rf"- description: {re.escape(tool['description'])}",
            rf"- confidence: {NUMBER}",
            rf"- .*\b{tool['usage_count']}\b.* \| last use.*: .+",
            rf"- verification( status)?: {tool['verification_status']}",
            rf"- tags: {', '.join(tool['tags'])}",
        )
    assert set(bench.tools(name="JSON")) == {"fetch_json"}


def test_what_delete_returns_follows_the_template(bench: Bench) -> None:
    made = bench.make("old_tool", REVERSE)
    refused = bench.operation("delete", tool_name="old_tool")
    assert refused.code == "E205" and "confirm: true" in json.dumps(refused.payload)
    said = bench.operation("delete", tool_id=made["id"], confirm=True).value
    follows(
        said["text"],
        rf".*\bold_tool\b.*\({made['id']}\).*deleted.*|deleted.*\bold_tool\b.*\({made['id']}\).*",
    )


def test_what_reflection_returns_follows_the_templates(bench: Bench) -> None:
    task = "convert several CSV files to JSON"
    advised = reflect(bench, task, "ok")
    lines = advised["text"].split("\n")
    follows(
        "\n".join(lines[:10]),
        r"# .*(reflection|tool).*",
        "",
        r"## task analysis",
        rf"- description: {task}(\.\.\.|…)?",
        r"- fail.*: 0",
        "",
        r"## recommend.*: .*tool.*",
        r"- reason: .+",
        "",
        r"## next steps?",
    )
    assert any("create" in line and "(" in line for line in lines[10:]) and "code" in advised["text"]
    follows(
        reflect(bench, "write a poem", "done", 2)["text"],
        r"# .*(reflection|tool).*",
        "",
        r"## task analysis",
        r"- description: write a poem(\.\.\.|…)?",
        r"- fail.*: 2",
        "",
        r"## recommend.*: .*(direct|carry on|go on|continue).*",
        r"- reason: .+",
        r"- reusab.*: (yes|no)",
    )


# The reflection


def reflect(bench: Bench, task: str, last: str = "ok", failed: int = 0) -> dict[str, Any]:
    said: dict[str, Any] = bench.operation(
        "reflect", task_description=task, last_tool_result=last, failed_attempts=failed
    ).value
    return said


JAPANESE = [
    "繰り返し", "反復", "複数回",
    "変換", "フォーマット", "パース",
    "API呼び出し", "外部アクセス",
    "検証", "バリデーション", "チェック",
    "集計", "サマリー", "統計",
]  # fmt: skip
REFLECTIONS = [
    # what the spec says by example
    ("convert several CSV files to JSON", "ok", 0, "recommend_tool", "task_word"),
    ("write a poem", "done", 2, "continue_directly", "none"),
    ("write a poem", "done", 3, "recommend_tool", "failures"),
    # the two examples of the reference
    ("複数のCSVファイルをJSONに変換する", "変換完了: data1.csv -> data1.json", 0, "recommend_tool", "task_word"),
    ("複雑なデータ変換処理", "エラー: データ形式が不正です", 3, "recommend_tool", "failures"),
    # the words of the reference
    *((f"{word}をする", "ok", 0, "recommend_tool", "task_word") for word in JAPANESE),
    ("repeat the greeting", "ok", 0, "recommend_tool", "task_word"),
    ("iterate over it", "ok", 0, "recommend_tool", "task_word"),
    ("say it several times", "ok", 0, "recommend_tool", "task_word"),
    ("reformatting the page", "ok", 0, "recommend_tool", "task_word"),
    ("parsed what came", "ok", 0, "recommend_tool", "task_word"),
    ("call an API of the bank", "ok", 0, "recommend_tool", "task_word"),
    ("Verifies the seal", "ok", 0, "recommend_tool", "task_word"),
    ("validating the form", "ok", 0, "recommend_tool", "task_word"),
    ("check the list", "ok", 0, "recommend_tool", "task_word"),
    ("aggregated by month", "ok", 0, "recommend_tool", "task_word"),
    ("summarise the letter", "ok", 0, "recommend_tool", "task_word"),
    ("summarize the letter", "ok", 0, "recommend_tool", "task_word"),
    ("statistics of the game", "ok", 0, "recommend_tool", "task_word"),
    ("повтори это несколько раз", "ok", 0, "recommend_tool", "task_word"),
    ("преобразовать файл", "ok", 0, "recommend_tool", "task_word"),
    ("проверить форму", "ok", 0, "recommend_tool", "task_word"),
    # no words of the list
    ("some information on a platform", "ok", 0, "continue_directly", "none"),
    ("a rapid sketch of the capital", "ok", 0, "continue_directly", "none"),
    # an error, with and without what stands before it in the order
    ("write a poem", "Error: no such file or directory", 0, "suggest_improvement", "error_pattern"),
    ("write a poem", "Traceback (most recent call last)", 1, "suggest_improvement", "error_pattern"),
    ("詩を書く", "エラー: 失敗しました", 0, "suggest_improvement", "error_pattern"),
    ("write a poem", "it went well, no errors at all", 0, "continue_directly", "none"),
    ("convert the file", "Error: no such file", 0, "recommend_tool", "task_word"),
    (
        "First read the letter, then sort its words, then drop the doubles, and finally write the rest into a file",
        "ok", 0, "suggest_improvement", "chain",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("task", "last", "failed", "outcome", "reason"), REFLECTIONS)
def test_a_reflection_decides_in_the_order_of_the_flow(
    bench: Bench, task: str, last: str, failed: int, outcome: str, reason: str
) -> None:
    said = reflect(bench, task, last, failed)
    assert (said["outcome"], said["reason"]) == (outcome, reason)
    assert said["failed_attempts"] == failed and isinstance(said["reusable"], bool)
    assert bool(said["skeleton"]) == (outcome == "recommend_tool")


def test_a_recommendations_skeleton_makes_a_tool(bench: Bench) -> None:
    skeleton = reflect(bench, "convert several CSV files to JSON")["skeleton"]
    made = bench.operation("create", **{**skeleton, "name": "from_skeleton"})
    assert made.ok, made.payload


def test_repetition_is_read_from_the_calls_of_the_conversation(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "workspace")
    for folder in ("a", "b"):
        (bench.root / folder).mkdir()
    look = invoke(f"{OPERATION}reflect", task_description="write a poem", last_tool_result="done")
    first, second = invoke("file__list", path="a"), invoke("file__list", path="b")
    once, twice = bench.turn(first, call("list_actions"), look), bench.turn(first, second, look)
    assert once.trace.result is not None and twice.trace.result is not None
    assert "continue_directly" in once.trace.result.text
    assert "repetition" in twice.trace.result.text and "file__list" in twice.trace.result.text
    assert "recommend_tool" in twice.outputs[-1], "the model reads the advice, and no summary without it"


# The flows: what comes first answers


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("1st", "def execute(params):\n    eval('1')\n", "E103"),  # the name before the code
        ("create_tool", "no code at all (", "E104"),
        ("string_reverse", "def execute(params):\n    eval('1')\n", "E201"),  # the duplicate before the code
        ("string_reverse", "no code at all (", "E201"),
        ("evaluates", "def execute(params):\n    return eval('1')\n", "E401"),
    ],
)
def test_create_goes_through_its_flow_in_order(bench: Bench, name: str, code: str, expected: str) -> None:
    saved = bench.saved()
    assert bench.create(name, code).code == expected
    assert bench.saved() == saved


def test_run_goes_through_its_flow_in_order(bench: Bench) -> None:
    before = bench.tools()["calculate_average"]["usage_count"]
    lines = len(bench.audit())
    assert bench.run("nowhere", {"numbers": 1}).code == "E203"  # the tool before its parameters
    assert bench.run("calculate_average", {"precision": 11}).code in ("E105", "E106")  # before the run
    assert bench.tools()["calculate_average"]["usage_count"] == before
    assert bench.run("calculate_average", {"numbers": [1]}).value["ok"] is True
    assert bench.tools()["calculate_average"]["usage_count"] == before + 1
    (*_, last) = bench.audit()
    assert last["action"] == "tool.run" and last["success"] is True and len(bench.audit()) > lines


# The common types


def test_a_definition_has_every_member_of_its_type(bench: Bench) -> None:
    stored = json.loads(bench.definition("calculate_average").read_text())
    assert set(stored) >= {
        "id", "name", "description", "mode", "parameters", "code", "created_at", "updated_at",
        "created_from_task", "usage_count", "last_used_at", "confidence_score", "verification_status", "tags",
        "created_by", "safety_score", "quality_score", "permissions", "sha256",
    }  # fmt: skip
    assert (stored["name"], stored["code"], stored["created_by"]) == (
        "calculate_average", CALCULATE_AVERAGE["code"], "person",
    )  # fmt: skip
    assert datetime.fromisoformat(stored["created_at"]) <= datetime.fromisoformat(stored["updated_at"])
    numbers, precision = stored["parameters"]
    assert (numbers["name"], numbers["type"], numbers["required"]) == ("numbers", "array", True)
    assert (precision["default"], precision["minimum"], precision["maximum"]) == (2, 0, 10)
    bench.make(
        "chooses", REVERSE, parameters={"way": {"type": "string", "description": "d", "enum": ["a", "b"]}}
    )
    (way,) = json.loads(bench.definition("chooses").read_text())["parameters"]
    assert way["allowed_values"] == ["a", "b"] and way["required"] is False
    assert bench.call("chooses", way="c").code == "E106"


def test_the_analysis_and_the_assessment_have_every_member_of_their_types(bench: Bench) -> None:
    code = "def execute(params):\n    with open('a', 'w') as file:\n        file.write('x')\n    return 1\n"
    made = bench.make("typed", code)
    assert set(made["safety"]) >= {
        "score", "issues", "allowed_operations", "blocked_operations", "recommendations", "is_safe", "confidence",
    }  # fmt: skip
    (issue,) = made["safety"]["issues"]
    assert set(issue) >= {"severity", "type", "description", "line", "snippet", "suggestion"}
    assert "open('a', 'w')" in issue["snippet"]
    assert (made["safety"]["score"], made["safety"]["is_safe"], made["safety"]["confidence"]) == (
        0.75,
        True,
        0.7,
    )
    quality = made["quality"]
    assert set(quality) >= {"score", "category_scores", "issues", "improvements", "confidence"}
    weights = {
        "readability": 0.20, "error_handling": 0.20, "documentation": 0.15, "testability": 0.15,
        "performance": 0.15, "security_awareness": 0.15,
    }  # fmt: skip
    assert set(quality["category_scores"]) == set(weights)
    assert quality["score"] == pytest.approx(
        sum(weights[name] * score for name, score in quality["category_scores"].items()), abs=0.01
    )


# The table of errors: cause, and what to do


REMEDIES: list[tuple[str, str, dict[str, Any], str]] = [
    ("E101", "create", {"name": "", "description": "d", "code": REVERSE}, "name"),
    ("E103", "create", {"name": "9", "description": "d", "code": REVERSE}, "letter"),
    ("E201", "create", {"name": "string_reverse", "description": "d", "code": REVERSE}, "name"),
    (
        "E401",
        "create",
        {"name": "e", "description": "d", "code": "def execute(p):\n    eval('1')\n"},
        "code|eval",
    ),
    ("E203", "run", {"tool_name": "nowhere", "parameters": {}}, "list|name"),
    ("E105", "run", {"tool_name": "calculate_average", "parameters": {}}, "numbers"),
    ("E302", "run", {"tool_name": "waits", "parameters": {}, "timeout_ms": 300}, "timeout|longer"),
    ("E301", "run", {"tool_name": "throws_plainly", "parameters": {}}, "code|mend"),
    ("E205", "delete", {"tool_name": "string_reverse"}, "confirm: true"),
]


@pytest.mark.parametrize(("code", "tool", "args", "remedy"), REMEDIES, ids=[row[0] for row in REMEDIES])
def test_an_error_of_the_table_says_what_to_do(
    bench: Bench, code: str, tool: str, args: dict[str, Any], remedy: str
) -> None:
    name = args.get("tool_name")
    if name in ("waits", "throws_plainly"):
        body = "while (true) {}" if name == "waits" else "throw new Error('x');"
        bench.make(name, f"function execute(params) {{\n  {body}\n}}\n")
    result = bench.operation(tool, **args)
    assert result.code == code and isinstance(result.payload, dict)
    assert re.search(remedy, result.payload["hint"], re.IGNORECASE), result.payload
