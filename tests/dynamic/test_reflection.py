"""Reflection: the order of its conditions, words and their inflections in three languages, skeletons of tools."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reyn_jupyter.dynamic.definition import DynamicTool, apply_parameters, check_name, detect_mode
from reyn_jupyter.dynamic.reflection import Call, reflect
from reyn_jupyter.dynamic.task_words import error_in, is_general, steps_in, subject_of
from reyn_jupyter.dynamic.tool_parameters import read_parameters
from tests.dynamic.tool_samples import AT


def read(path: str, ok: bool = True, **more: Any) -> Call:
    return "file__read", {"path": path, **more}, ok


def test_the_examples_of_the_specification() -> None:
    convert = reflect("convert several CSV files to JSON", "ok", 0)
    assert (convert.outcome, convert.reason) == ("recommend_tool", "task_word")
    carry_on = reflect("write a poem", "done", 2)
    assert (carry_on.outcome, carry_on.reason, carry_on.reusable) == ("continue_directly", "none", False)
    failed = reflect("write a poem", "done", 3)
    assert (failed.outcome, failed.reason) == ("recommend_tool", "failures")


def test_the_examples_of_the_reference() -> None:
    first = reflect("複数のCSVファイルをJSONに変換する", "変換完了: data1.csv -> data1.json", 0)
    assert (first.outcome, first.reason) == ("recommend_tool", "task_word")
    second = reflect("複雑なデータ変換処理", "エラー: データ形式が不正です", 3)
    assert (second.outcome, second.reason) == ("recommend_tool", "failures")


POEM, CONVERT = "write a poem", "convert the file"
TWICE = [read("a"), read("b")]
CHAIN: list[Call] = [read("a"), ("sql__query", {"sql": "x"}, True), ("file__write", {"path": "b"}, True)]


@pytest.mark.parametrize(
    ("task", "result", "failures", "calls", "outcome", "reason"),
    [
        (CONVERT, "error", 3, TWICE, "recommend_tool", "repetition"),
        (CONVERT, "error", 3, CHAIN, "recommend_tool", "failures"),
        (CONVERT, "error", 2, CHAIN, "recommend_tool", "task_word"),
        (POEM, "error", 2, CHAIN, "suggest_improvement", "chain"),
        (POEM, "error", 2, CHAIN[:2], "suggest_improvement", "error_pattern"),
        (POEM, "done", 2, CHAIN[:2], "continue_directly", "none"),
        ("fetch it, then sort it, then send it", "done", 0, [], "suggest_improvement", "chain"),
    ],
)
def test_the_conditions_are_tried_in_their_order(
    task: str, result: str, failures: int, calls: list[Call], outcome: str, reason: str
) -> None:
    found = reflect(task, result, failures, calls)
    assert (found.outcome, found.reason) == (outcome, reason)
    assert (found.skeleton is not None) == (outcome == "recommend_tool")


@pytest.mark.parametrize(
    "calls",
    [
        [read("a")],
        [read("a"), read("b", lines=3)],
        [read("a"), ("file__read", {"path": 3}, True)],
        [read("a"), ("file__list", {"path": "b"}, True)],
        [read("a"), read("b", ok=False)],
        [read("a", options={"x": 1}), read("b", options={"y": 1})],
        [("list_actions", {"category": "a"}, True)] * 3,
        [("dynamic_tool__mean", {"a": 1}, True), ("dynamic_tool__mean", {"a": 2}, True)],
        [("dynamic_tool_operation__list", {}, True)] * 2,
    ],
)
def test_only_the_same_action_with_the_same_shape_of_arguments_is_a_repetition(calls: list[Call]) -> None:
    assert reflect(POEM, "done", 0, calls).reason == "none"


def test_the_shape_is_keys_and_types_at_any_depth() -> None:
    calls: list[Call] = [
        ("web__post", {"body": {"id": number, "tags": ["x"] * number}, "url": "u"}, True) for number in (1, 2)
    ]
    found = reflect(POEM, "done", 0, [calls[0], *CHAIN, calls[1]])
    assert found.reason == "repetition" and "web__post was called 2 times" in found.explanation


def test_calls_that_failed_at_the_end_count_as_failed_attempts() -> None:
    calls = [read(name, ok=False) for name in "abc"]
    assert reflect(POEM, "done", 0, calls).failed_attempts == 3
    assert reflect(POEM, "done", 0, calls).reason == "failures"
    assert reflect(POEM, "done", 0, [*calls, read("d")]).failed_attempts == 0


def test_what_varied_between_calls_becomes_a_parameter_and_what_did_not_its_default() -> None:
    calls = [
        *(read(path, encoding="utf-8", limit=10) for path in ("a.csv", "b.csv", "c.csv")),
        *(("sql__query", {"sql": sql}, True) for sql in "xy"),
    ]
    skeleton = reflect("read the tables of the report", "ok", 0, calls).skeleton
    assert skeleton is not None
    assert skeleton["name"] == "read_tables_report"
    assert {name: (each.get("default"), each.get("required")) for name, each in skeleton["parameters"].items()} == {
        "path": (None, True), "encoding": ("utf-8", None), "limit": (10, None),
    }  # fmt: skip
    assert skeleton["generated_from"] == "read the tables of the report"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(
    st.text(),
    st.text(),
    st.integers(0, 5),
    st.lists(
        st.tuples(
            st.sampled_from(["a__b", "c__d", "e"]),
            st.dictionaries(st.text() | st.sampled_from(["class", "path", "params"]), anything, max_size=3),
            st.booleans(),
        ).map(lambda call: [call] * 2),
        max_size=3,
    ),
)
@example(task="", result="", failures=0, calls=[[("a__b", {"🀀": None}, True)] * 2])
def test_whatever_happened_a_recommended_tool_can_be_made(
    task: str, result: str, failures: int, calls: list[list[Call]]
) -> None:
    found = reflect(task, result, failures, [call for pair in calls for call in pair])
    assert found.to_text() and found.to_dict()["text"] == found.to_text()
    if found.outcome != "recommend_tool":
        return
    skeleton = found.skeleton
    assert skeleton is not None
    check_name(skeleton["name"])
    assert detect_mode(skeleton["code"]) == "python"
    tool = DynamicTool.create(
        name=skeleton["name"], description=skeleton["description"], code=skeleton["code"], at=AT, safety_score=1.0,
        quality_score=1.0, parameters=read_parameters(skeleton["parameters"]),
    )  # fmt: skip
    names: dict[str, Any] = {}
    exec(compile(ast.parse(tool.code), "tool", "exec"), names)
    values = {"string": "x", "number": 1, "boolean": True, "object": {}, "array": []}
    given_values = {each.name: values[each.type] for each in tool.parameters or () if each.must_be_given}
    assert names["execute"](apply_parameters(tool, given_values)) == {"error": "this tool has no work yet"}


def test_the_texts_follow_the_template() -> None:
    assert reflect("write\na poem", "done", 2).to_text().splitlines() == [
        "# Tool reflection",
        "",
        "## Task analysis",
        "- Description: write a poem...",
        "- Failed attempts: 2",
        "",
        "## Recommendation: carry on directly",
        "- Reason: the conditions for making a tool are not met",
        "- Reusable: no",
    ]
    lines = reflect("convert the files", "done", 0, TWICE).to_text().splitlines()
    assert lines[:6] == [
        "# Tool reflection", "", "## Task analysis", "- Description: convert the files...", "- Failed attempts: 0", "",
    ]  # fmt: skip
    assert lines[6:10] == [
        "## Recommendation: make a tool",
        "- Reason: file__read was called 2 times with the same kind of arguments (path)",
        "",
        "## Next step",
    ]
    assert lines[11:15] == [
        "create_tool({",
        '  name: "convert_files",',
        '  description: "convert the files",',
        "  code: `def execute(params):",
    ]
    assert lines[-1] == "})"
    improved = reflect(POEM, "Traceback", 0).to_text().splitlines()
    assert improved[6] == "## Recommendation: improve the way it is done" and improved[8] == "- Reusable: no"


REPEAT, CONVERTING, REACHING, CHECKING, SUMMING = (
    "doing the same several times",
    "converting, formatting or parsing",
    "calling an API or reaching outside",
    "verifying, validating or checking",
    "aggregating, summarising or statistics",
)


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        (REPEAT, "repeat it|repeatedly|a repetition|Iterate over rows|iterative|several times|3 times"),
        (REPEAT, "ten times"),
        (REPEAT, "繰り返し処理する|繰返し|くりかえす|反復する|複数回|何度も試す|処理を繰り返す"),
        (REPEAT, "повторить|повторяющаяся задача|повторно|итерация|итеративно|несколько раз|многократно"),
        (REPEAT, "3 раза"),
        (CONVERTING, "convert it|Converting|the conversion|reformatting|format the table|formatted"),
        (CONVERTING, "parse the log|parser"),
        (CONVERTING, "CSVをJSONに変換|フォーマットする|日付のパース|ﾌｫｰﾏｯﾄ"),
        (CONVERTING, "конвертировать|сконвертируй|конвертация|преобразовать|преобразует|отформатируй"),
        (CONVERTING, "в другом формате|парсинг|распарсить|спарси"),
        (REACHING, "call an API|calling the weather API|API calls|an api request|external access"),
        (REACHING, "access an external server|external services"),
        (REACHING, "API呼び出し|APIを呼び出す|外部アクセス|外部にアクセス|ＡＰＩ呼出"),
        (REACHING, "вызвать API|вызов внешнего API|запросить данные через API|запрос к API|внешний доступ"),
        (REACHING, "доступ к внешнему сервису|API-запрос"),
        (CHECKING, "verify the sums|verification|validate|revalidating|check it|double-check|checked"),
        (CHECKING, "checker"),
        (CHECKING, "検証する|バリデーション|入力をチェック"),
        (CHECKING, "проверить|проверка|перепроверь|валидация|валидировать|верификация|верифицируй"),
        (SUMMING, "aggregate by region|aggregation|summarise|summarizing|a summary|statistics"),
        (SUMMING, "statistical"),
        (SUMMING, "売上を集計|サマリーを作る|要約|統計"),
        (SUMMING, "агрегировать|агрегация|суммировать|суммаризация|сводка|статистика|обобщить"),
    ],
)  # fmt: skip
def test_words_of_a_task_are_known_in_their_inflections(subject: str, words: str) -> None:
    for word in words.split("|"):
        assert (subject_of(f"… {word} …") or ("nothing",))[0] == subject, word
        assert (subject_of(word.upper()) or ("nothing",))[0] == subject, word


@pytest.mark.parametrize(
    "task",
    [
        "information", "the platform", "performance", "a sparse matrix", "the transformation of a city",
        "in times of war", "apiculture", "call my mother", "the checkout", "a checkpoint",
        "invalidate the cache", "convertible cars", "the convent", "statistician", "rapid growth",
        "プラットフォーム", "インフォメーション", "十パーセント", "パースペクティブ", "スーパースター",
        "チェックアウト", "チェックイン", "информация", "платформа", "конверт", "вызвать врача", "формация",
        "парсек", "валидный", "сразу", "раз в год", "сумма",
    ],
)  # fmt: skip
def test_words_that_hold_another_by_chance_are_not_meant(task: str) -> None:
    assert subject_of(task) is None


@pytest.mark.parametrize(
    ("result", "is_one"),
    [
        ("Error: no such file", True), ("ValueError: x", True), ("KeyError", True), ('{"error": "x"}', True),
        ("Traceback (most recent call last)", True), ("2 tests failed", True), ("access denied", True),
        ("could not connect", True), ("timed out", True), ("failed: 2", True), ("1 error, 0 warnings", True),
        ("エラー: データ形式が不正です", True), ("接続に失敗しました", True),
        ("ファイルを開けません。見つかりません", True),
        ("Ошибка: файл не найден", True), ("3 ошибок", True), ("не удалось открыть", True), ("сбой сети", True),
        ("3 rows written, no errors", False), ("0 errors", False), ("finished without error", False),
        ('{"error": null, "rows": 3}', False), ("failures: 0", False), ("error-free", False), ("", False),
        ("terror", False), ("mirrors", False), ("the valid rows", False),
        ("エラーはありません", False), ("エラーなし", False), ("完了", False),
        ("без ошибок", False), ("ошибок нет", False), ("готово", False),
    ],
)  # fmt: skip
def test_a_result_tells_of_an_error_or_of_none(result: str, is_one: bool) -> None:
    assert (error_in(result) is not None) is is_one


def test_steps_and_more_than_one_occasion_are_read_from_a_task() -> None:
    assert steps_in("загрузи, затем очисти, потом построй") == 2
    assert steps_in("読み込み、その後集計し、最後に保存する") == 2
    assert steps_in("authentication of the strengthened") == 0
    for task in ("rename each file", "毎週の報告", "для каждого файла", "a template"):
        assert is_general(task)
    for task in ("write a poem", "teach", "詩を書く", "напиши стихи"):
        assert not is_general(task)


def test_of_a_long_text_the_beginning_and_the_end_are_looked_at() -> None:
    assert error_in("x" * 1_000_000 + " error") == "error"
    assert error_in("x" * 1_000_000 + " error " + "x" * 1_000_000) is None
    assert subject_of("convert " + "api call " * 1_000_000) is not None
