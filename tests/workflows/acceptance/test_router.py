"""From a request to a plan: rules in two languages, the language model for the rest, and nothing that is dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reyn_jupyter.models.base import ErrorKind, ModelError
from reyn_jupyter.models.scripted import ScriptedModel
from tests.support.trusting import trust
from tests.workflows.acceptance.workshop import (
    ECHO,
    FAILS_ONCE,
    LOG,
    TEXT,
    Json,
    Notebook,
    Workshop,
    code_of,
    model_plan,
    model_step,
    opened,
    rule,
    rules_file,
    skill_call,
)  # fmt: skip

VIDEO = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"
SHORT = "https://youtu.be/dQw4w9WgXcQ"
DRIVE = "https://drive.google.com/drive/folders/1AbCdEfGhIjKlMnOpQrStUvWxYz012345"
YANDEX = "https://disk.yandex.ru/d/AbCdEf123456"


def capabilities(plan: Json) -> list[str]:
    return [each["capability"] for each in plan["steps"]]


def with_model(workshop: Workshop, *answers: Any) -> ScriptedModel:
    model = ScriptedModel(*answers)
    workshop.session.parts.model = model
    return model


def inputs_of(plan: Json, capability: str) -> Json:
    (found,) = (each for each in plan["steps"] if each["capability"] == capability)
    inputs = found["inputs"]
    assert isinstance(inputs, dict)
    return inputs


# Rules


REQUESTS: list[tuple[str, list[str]]] = [
    (f"Download {VIDEO}", ["youtube.download"]),
    (f"Скачай видео {VIDEO}", ["youtube.download"]),
    (f"download the video at {SHORT}, please.", ["youtube.download"]),
    (f"Скачай, пожалуйста: {SHORT}", ["youtube.download"]),
    ("Save https://youtube.com/shorts/abcdefghijk for me", ["youtube.download"]),
    ("Скачай https://m.youtube.com/watch?v=dQw4w9WgXcQ&t=10s", ["youtube.download"]),
    (VIDEO, ["youtube.download"]),
    (
        f"Скачай видео по ссылке {VIDEO} и положи в папку {DRIVE} на Drive",
        ["youtube.download", "drive.upload"],
    ),
    (f"Download {VIDEO} and put it into the folder {DRIVE} on Drive", ["youtube.download", "drive.upload"]),
    (f"Download {VIDEO}, then upload it to {DRIVE}", ["youtube.download", "drive.upload"]),
    (f"Скачай {VIDEO}, затем загрузи в {DRIVE}", ["youtube.download", "drive.upload"]),
    (f"{VIDEO}\n{DRIVE}", ["youtube.download", "drive.upload"]),
    (f"Download the file {YANDEX}", ["yandex-disk.download"]),
    (f"Скачай файл {YANDEX}", ["yandex-disk.download"]),
    ("Скачай https://yadi.sk/d/AbCdEf123456", ["yandex-disk.download"]),
    (f"Upload data/orders.csv to {YANDEX}", ["yandex-disk.upload"]),
    (f"Загрузи data/orders.csv на {YANDEX}", ["yandex-disk.upload"]),
    (f"Download {VIDEO} and upload it to {YANDEX}", ["youtube.download", "yandex-disk.upload"]),
    (f"Скачай {YANDEX} и загрузи на {DRIVE}", ["yandex-disk.download", "drive.upload"]),
    ("Convert all webm files in videos to mp4", ["video.convert"]),
    ("Конвертируй все webm из папки videos в mp4", ["video.convert"]),
    ("convert a.webm to mp4", ["video.convert"]),
    ("Преобразуй a.webm и b.webm в mp4", ["video.convert"]),
    ("Convert a.webm and b.webm into mp4", ["video.convert"]),
]


@pytest.mark.parametrize(("text", "expected"), REQUESTS)
def test_known_requests_are_planned_by_rules_without_a_model(
    workshop: Workshop, text: str, expected: list[str]
) -> None:
    model = with_model(workshop)
    plan = workshop.route(text)
    assert capabilities(plan) == expected, plan
    assert model.requests == [] and plan["llm_calls"] == 0
    assert {each["source"] for each in plan["steps"]} == {"rule"}
    asked_for_more = [each for each in plan["gaps"] if each["step_id"] is None]
    assert asked_for_more == [], "all of the request is in its steps"


def test_a_rule_takes_the_address_as_it_stands_without_the_full_stop(workshop: Workshop) -> None:
    plan = workshop.route(f"Please download {VIDEO}.")
    values = json.dumps(inputs_of(plan, "youtube.download"))
    assert f'"{VIDEO}"' in values or f'"{VIDEO}"' in json.dumps(plan["request_inputs"])


def test_the_file_of_the_step_before_is_what_is_uploaded(workshop: Workshop) -> None:
    plan = workshop.route(f"Download {VIDEO} and put it into {DRIVE}")
    first = plan["steps"][0]["step_id"]
    assert f"steps.{first}.outputs.file_path" in inputs_of(plan, "drive.upload").values()


def test_the_folder_of_drive_reaches_the_step(workshop: Workshop) -> None:
    plan = workshop.route(f"Download {VIDEO} and put it into {DRIVE}")
    assert "1AbCdEfGhIjKlMnOpQrStUvWxYz012345" in json.dumps([plan["steps"], plan["request_inputs"]])


def test_two_videos_are_two_steps(workshop: Workshop) -> None:
    plan = workshop.route(f"Download {VIDEO} and https://youtu.be/aaaaaaaaaaa")
    assert capabilities(plan) == ["youtube.download", "youtube.download"]


def test_all_webm_files_are_the_mode_all(workshop: Workshop) -> None:
    for text in ("Convert all webm files in videos to mp4", "Конвертируй все webm из папки videos в mp4"):
        inputs = inputs_of(workshop.route(text), "video.convert")
        assert inputs["mode"] == "all" and "videos" in json.dumps(inputs)


@pytest.mark.parametrize(
    "rest", ["convert all webm files in it to mp4", "конвертируй все webm файлы из него в mp4"]
)
def test_a_word_that_stands_for_what_was_made_is_no_name_of_a_folder(workshop: Workshop, rest: str) -> None:
    made = workshop.route(f"unpack clips.zip, then {rest}")
    assert inputs_of(made, "video.convert")["folder"] == "steps.step-1.outputs.folder"
    plan = workshop.route(f"download {YANDEX}, then {rest}")  # which gives no folder
    assert capabilities(plan) == ["yandex-disk.download"]
    assert any("webm" in each["missing_capability"] for each in plan["gaps"])


@pytest.mark.parametrize(
    ("between", "waits"),
    [(", then ", True), (" and then ", True), (" → ", True), (" and ", False), ("; ", False)],
)
def test_what_is_said_to_come_after_something_waits_for_it(
    workshop: Workshop, between: str, waits: bool
) -> None:
    first, second = workshop.route(f"Download {VIDEO}{between}convert all webm files to mp4")["steps"]
    assert second["depends_on"] == ([first["step_id"]] if waits else [])


def test_a_step_that_takes_what_comes_later_makes_no_circle(workshop: Workshop) -> None:
    plan = workshop.route(f"Upload to {DRIVE}, then download {VIDEO}")
    assert {each["capability"] for each in plan["steps"]} <= {"drive.upload", "youtube.download"}
    assert workshop.execute(*plan["steps"], dry_run=True)["status"] in ("preview", "partial-complete")


def test_named_webm_files_are_the_mode_selected(workshop: Workshop) -> None:
    for text in ("Convert a.webm and b.webm into mp4", "Преобразуй a.webm и b.webm в mp4"):
        inputs = inputs_of(workshop.route(text), "video.convert")
        assert inputs["mode"] == "selected" and ["a.webm", "b.webm"] in inputs.values()


def test_an_address_that_only_looks_like_a_known_one_matches_no_rule(workshop: Workshop) -> None:
    for address in ("https://youtube.com.evil.example/watch?v=a", "https://evil.example/?u=youtube.com/watch?v=abc",
                    "https://notyoutube.com/watch?v=dQw4w9WgXcQ"):  # fmt: skip
        assert "youtube.download" not in capabilities(workshop.route(f"Download {address}")), address


def test_capabilities_and_steps_of_a_plan_have_the_form_of_plans(workshop: Workshop) -> None:
    plan = workshop.route(f"Download {VIDEO} and put it into {DRIVE}")
    assert {"plan_id", "status", "steps", "gaps", "notes"} <= set(plan)
    ids = [each["step_id"] for each in plan["steps"]]
    assert ids == ["step-1", "step-2"]
    assert all(
        each["capability_contract"] and each["on_failure"] in ("retry", "skip", "fail")
        for each in plan["steps"]
    )


def test_rules_are_data_that_a_workspace_adds_to_under_trust(workshop: Workshop) -> None:
    workshop.add("tickets", ECHO, capabilities=["ticket.fetch"])
    file = rules_file(
        rule("ticket", r"ticket\s+#(?P<number>\d+)", "ticket.fetch", ticket={"group": "number"}, queue="main")
    )
    workshop.text("tools/rules.yaml", file)
    assert capabilities(workshop.route("Get ticket #42")) == []
    trust(workshop.session)
    plan = workshop.route("Get ticket #42")
    assert capabilities(plan) == ["ticket.fetch"]
    assert inputs_of(plan, "ticket.fetch") == {"ticket": "42", "queue": "main"}


def test_a_rule_says_what_a_failure_of_its_step_means(workshop: Workshop) -> None:
    workshop.write("once", FAILS_ONCE, input_schema=opened(log=LOG), idempotency="safe")
    again = {**rule("note", "note it", "once.run", log="log"), "on_failure": "retry"}
    workshop.text("tools/rules.yaml", rules_file(again, rule("list", "list it", "once.run", log="list")))
    trust(workshop.session)
    (listed,) = workshop.route("list it")["steps"]
    assert listed["on_failure"] == "fail"
    run = workshop.execute(*workshop.route("note it")["steps"])
    assert run["status"] == "executed" and workshop.log() == 2


def test_what_goes_over_the_network_is_tried_again_where_that_is_safe(workshop: Workshop) -> None:
    video, upload = workshop.route(f"Download {VIDEO} and put it into {DRIVE}")["steps"]
    assert video["on_failure"] == upload["on_failure"] == "retry" and not upload["retries"]


def test_rules_that_are_none_are_a_problem_and_those_of_the_package_hold(workshop: Workshop) -> None:
    for text in ("rules: [{name: x}]", "rules: 7", "- a\n: b", "rules: [{name: x, pattern: '(', capability: a.b}]",
                 rules_file({**rule("x", "x", "a.b"), "shell": "touch pwn"})):  # fmt: skip
        workshop.text("tools/rules.yaml", text)
        trust(workshop.session)
        assert capabilities(workshop.route(VIDEO)) == ["youtube.download"], text
        assert "rules.yaml" in "\n".join(workshop.session.problems), text


def test_a_rule_that_would_take_for_ever_takes_no_time(workshop: Workshop) -> None:
    workshop.text("tools/rules.yaml", rules_file(rule("slow", r"(a+)+$", "a.b")))
    trust(workshop.session)
    assert capabilities(workshop.route("a" * 50_000 + "!")) in ([], ["a.b"])


# What no rule takes


def test_without_a_model_what_nobody_understands_is_unroutable_and_says_how_to_configure_one(
    workshop: Workshop,
) -> None:
    plan = workshop.route("Compose a symphony about the sea")
    assert (plan["status"], plan["steps"], plan["llm_calls"]) == ("unroutable", [], 0)
    assert "model" in " ".join(plan["notes"]) and "%reyn config" in " ".join(plan["notes"])


@pytest.mark.parametrize("text", ["Compose a symphony about the sea", "Сочини симфонию о море"])
def test_the_executor_runs_no_plan_that_is_unroutable(workshop: Workshop, text: str) -> None:
    run = workshop.skill("workflow-executor", plan=workshop.route(text)).value
    assert (run["status"], run["exit_code"]) == ("unroutable", 3)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"Download {VIDEO} and translate its subtitles into Latin", "translate its subtitles into Latin"),
        (f"Скачай {VIDEO} и переведи субтитры на латынь", "переведи субтитры на латынь"),
        (f"First water the plants. Then download {VIDEO}", "water the plants"),
        (f"Скачай {VIDEO}, напиши маме письмо и загрузи видео в {DRIVE}", "напиши маме письмо"),
        (f"Download {VIDEO}, put it into {DRIVE} and email the link to Bob", "email the link to Bob"),
        (f"{VIDEO}\ntell me who sings", "tell me who sings"),
    ],
)
def test_what_is_left_of_a_request_is_a_gap_and_nothing_is_dropped(
    workshop: Workshop, text: str, rest: str
) -> None:
    plan = workshop.route(text, llm=False)
    assert "youtube.download" in capabilities(plan)
    assert plan["status"] == "partial-complete"
    left = [each for each in plan["gaps"] if each["step_id"] is None]
    assert rest.split()[0] in json.dumps(left, ensure_ascii=False), plan["gaps"]
    assert workshop.skill("workflow-executor", plan=plan).value["exit_code"] == 2


def test_the_gaps_of_what_was_not_understood_stay_when_the_plan_is_covered_anew(workshop: Workshop) -> None:
    plan = workshop.route(f"Download {VIDEO} and translate its subtitles", llm=False)
    again = workshop.skill("gap-detector", plan=plan).value
    assert again["status"] == "partial-complete" and any(each["step_id"] is None for each in again["gaps"])


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_request_is_an_error(workshop: Workshop, text: str) -> None:
    assert not workshop.skill("request-router", text=text).ok


# The language model


def test_a_model_plans_what_no_rule_takes(workshop: Workshop) -> None:
    workshop.add("translate", ECHO, capabilities=["text.translate"], input_schema=opened(text=TEXT))
    model = with_model(workshop, model_plan(model_step("text.translate", inputs={"text": "hello"})))
    plan = workshop.route("Say hello in Latin")
    assert (capabilities(plan), plan["status"], plan["llm_calls"]) == (["text.translate"], "complete", 1)
    (got,) = plan["steps"]
    assert (got["source"], got["coverage_confidence"], got["inputs"]) == ("llm", 0.9, {"text": "hello"})
    assert got["coverage_rationale"] and got["tool"] == "translate@1.0.0"
    assert len(model.requests) == 1


def test_the_model_is_told_the_capabilities_the_request_and_the_schema_of_its_answer(
    workshop: Workshop,
) -> None:
    workshop.add("translate", ECHO, capabilities=["text.translate"])
    model = with_model(workshop, model_plan(model_step("text.translate")))
    workshop.route("Say hello in Latin")
    sent = json.dumps(model.requests[0].wire, ensure_ascii=False)
    assert [
        each
        for each in ("text.translate", "Say hello in Latin", "coverage_confidence", "capability")
        if each not in sent
    ] == []


def test_the_model_is_asked_for_the_rest_alone(workshop: Workshop) -> None:
    workshop.add("translate", ECHO, capabilities=["text.translate"])
    model = with_model(workshop, model_plan(model_step("text.translate")))
    plan = workshop.route(f"Download {VIDEO} and translate its subtitles into Latin")
    assert capabilities(plan) == ["youtube.download", "text.translate"]
    assert len(model.requests) == 1
    assert [each["source"] for each in plan["steps"]] == ["rule", "llm"]
    assert [each for each in plan["gaps"] if each["step_id"] is None] == []


def test_a_capability_that_the_model_invents_is_a_gap(workshop: Workshop) -> None:
    with_model(workshop, model_plan(model_step("sea.symphony", 0.99)))
    plan = workshop.route("Compose a symphony about the sea")
    assert plan["status"] == "partial-complete"
    assert [(each["missing_capability"], each["reason"]) for each in plan["gaps"]] == [
        ("sea.symphony", "no_capability_match")
    ]


def test_a_model_names_capabilities_and_no_utilities_or_actions(workshop: Workshop) -> None:
    workshop.add("echo", ECHO)
    sly = [
        {**model_step("sea.symphony"), "tool": "echo@1.0.0", "source": "person"},
        {**model_step("sea.other", None), "action": "file__delete", "source": "rule"},
    ]
    with_model(workshop, model_plan(*sly), model_plan(*sly))
    result = workshop.skill("request-router", text="Compose a symphony about the sea")
    if result.ok:
        assert result.value["status"] != "complete"
        assert all(each["source"] == "llm" and not each.get("action") for each in result.value["steps"])
        assert all(each["tool"] is None for each in result.value["steps"])
    else:
        assert result.code == "llm_error"


@pytest.mark.parametrize("confidence", ["NaN", "Infinity", '"high"', "true", "null", "0.2"])
def test_a_model_that_is_not_sure_covers_nothing(workshop: Workshop, confidence: str) -> None:
    workshop.add("translate", ECHO, capabilities=["text.translate"])
    answer = model_plan(model_step("text.translate", 0.123)).replace("0.123", confidence)
    with_model(workshop, answer, answer)
    result = workshop.skill("request-router", text="Say hello in Latin")
    if result.ok:
        assert result.value["status"] == "partial-complete"
        assert [each["reason"] for each in result.value["gaps"]] == ["low_confidence"]
    else:
        assert result.code == "llm_error", "an answer that is no JSON"


def test_a_model_that_plans_nothing_leaves_a_gap_and_no_empty_success(workshop: Workshop) -> None:
    with_model(workshop, model_plan(), model_plan())
    plan = workshop.route("Compose a symphony about the sea")
    assert plan["status"] in ("partial-complete", "unroutable")


def test_the_switch_keeps_the_model_out(workshop: Workshop) -> None:
    model = with_model(workshop)
    assert workshop.route("Compose a symphony about the sea", llm=False)["status"] == "unroutable"
    assert model.requests == []


def test_an_answer_that_is_no_plan_is_repaired_within_the_limit_of_calls(workshop: Workshop) -> None:
    workshop.add("translate", ECHO, capabilities=["text.translate"])
    workshop.own_policy(max_llm_calls=2)
    model = with_model(workshop, "Sure! Here is your plan:", model_plan(model_step("text.translate")))
    plan = workshop.route("Say hello in Latin")
    assert (plan["status"], plan["llm_calls"], len(model.requests)) == ("complete", 2, 2)


def test_the_limit_of_calls_is_one_where_nothing_else_is_said(workshop: Workshop) -> None:
    model = with_model(workshop, "Sure!", model_plan(model_step("text.translate")))
    assert workshop.skill("request-router", text="Say hello in Latin").code == "llm_error"
    assert len(model.requests) == 1


KINDS: list[tuple[Any, str]] = [
    (ModelError("auth", "The key is wrong."), "auth"),
    (ModelError("quota", "Nothing is left."), "quota_exceeded"),
    (ModelError("bad_request", "What?"), "upstream"),
    ("no JSON at all", "invalid_json"),
    ('{"steps": "none"}', "invalid_response"),
    ("[]", "invalid_response"),
    ('{"steps": [{"inputs": {}}]}', "invalid_response"),
]


@pytest.mark.parametrize(("answer", "kind"), KINDS, ids=[kind for _, kind in KINDS])
def test_a_model_that_fails_is_an_error_of_its_kind(workshop: Workshop, answer: Any, kind: str) -> None:
    with_model(workshop, answer)
    result = workshop.skill("request-router", text="Say hello in Latin")
    assert result.code == "llm_error" and kind in json.dumps(result.payload)


@pytest.mark.parametrize(
    ("error", "kind"),
    [("rate_limited", "rate_limited"), ("unavailable", "upstream"), ("connection", "upstream")],
)
def test_a_model_that_fails_for_a_while_is_an_error_of_its_kind_when_patience_ends(
    workspace_of: Workshop, error: ErrorKind, kind: str
) -> None:
    with_model(workspace_of, *[ModelError(error, "Later.", retryable=True)] * 5)
    result = workspace_of.skill("request-router", text="Say hello in Latin")
    assert result.code == "llm_error" and kind in json.dumps(result.payload)


@pytest.fixture
def workspace_of(workshop: Workshop) -> Workshop:
    """The workshop, with a session that does not wait and try again."""
    workshop.session.configure("router.limits.retries", 0)
    return workshop


def test_a_request_in_a_models_turn_is_planned_by_the_turns_model(workshop: Workshop) -> None:
    workshop.add("translate", ECHO, capabilities=["text.translate"])
    trace, read = workshop.turn(
        skill_call("request-router", text="Say hello in Latin"), model_plan(model_step("text.translate"))
    )
    assert code_of(trace) == "ok" and "text.translate" in read


# LLM_LOG


def test_the_log_shows_each_call_of_a_model_and_what_came_back(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_LOG", "1")
    notebook.workshop.add("translate", ECHO, capabilities=["text.translate"])
    answer = model_plan(model_step("text.translate", coverage_rationale="The very answer."))
    with_model(notebook.workshop, answer)
    said = notebook.say('%reyn plan "Say hello in Latin"')
    assert said.count("The very answer.") >= 2, "the raw body, and what was taken out of it"
    assert [each for each in ("call", "payload", "raw", "extracted", "Say hello in Latin") if each not in said.lower()
            and each not in said] == []  # fmt: skip


def test_the_setting_does_the_same(notebook: Notebook) -> None:
    notebook.workshop.add("translate", ECHO, capabilities=["text.translate"])
    with_model(
        notebook.workshop, model_plan(model_step("text.translate", coverage_rationale="The very answer."))
    )
    notebook.say("%reyn config llm_log on")
    assert "The very answer." in notebook.say('%reyn plan "Say hello in Latin"')


def test_without_the_switch_nothing_is_shown(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLM_LOG", raising=False)
    notebook.workshop.add("translate", ECHO, capabilities=["text.translate"])
    with_model(notebook.workshop, model_plan(model_step("text.translate")))
    said = notebook.say('%reyn plan "Say hello in Latin"')
    assert "text.translate" in said and "payload" not in said.lower()


def test_where_no_model_was_used_nothing_is_shown(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_LOG", "1")
    with_model(notebook.workshop)
    said = notebook.say(f'%reyn plan "Download {VIDEO}"')
    assert "youtube.download" in said and "payload" not in said.lower()


def test_retries_of_a_call_are_shown(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_LOG", "1")
    notebook.workshop.add("translate", ECHO, capabilities=["text.translate"])
    later = ModelError("rate_limited", "Come later.", retryable=True, retry_after=0.01)
    with_model(notebook.workshop, later, model_plan(model_step("text.translate")))
    said = notebook.say('%reyn plan "Say hello in Latin"').lower()
    assert "retr" in said and "come later" in said


def test_no_secret_stands_in_the_log(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-" + "proj-abcdefghijklmnopqrstuvwx"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    monkeypatch.setenv("LLM_LOG", "1")
    with_model(notebook.workshop, model_plan(model_step("text.translate", coverage_rationale=f"by {secret}")))
    said = notebook.say(f'%reyn plan "Say {secret} in Latin"')
    assert "payload" in said.lower() and secret not in said
