"""Runs as spans: real runs of the real loop, as a collector on loopback gets them, held against the conventions."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.semconv._incubating.attributes.gen_ai_attributes import GenAiProviderNameValues

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Purity
from reyn_jupyter.models.base import Response, ToolCall
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.record.events import ModelRequested, RunStarted
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.telemetry import conventions
from reyn_jupyter.telemetry.spans import otlp_line, spans_of
from tests.evaluation.study_support import BASE, study
from tests.runtime.call.test_inner_calls import calling, flow
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.otlp_collector import Collector, SpanView, collector
from tests.support.waiting import until
from tests.telemetry.genai_conventions import CLIENT, INTERNAL, SAID, check, check_value, schema

SECRET = "correct-horse-battery"


@pytest.fixture
def got() -> Iterator[Collector]:
    with collector() as running:
        yield running


def session(workspace: Path, got: Collector, **otel: Any) -> reyn.Session:
    """Return a session that sends its runs, with `outer__run`, which calls `leaf__run`, which fails."""
    installed = reyn.Session(workspace).catalog.categories

    async def fails(args: Any, context: Any) -> None:
        raise ValueError("the leaf broke over 4711")

    return reyn.Session(
        workspace,
        categories=(
            *installed,
            flow("outer", calling("leaf__run", x=1), Purity.WRITE),
            flow("leaf", fails),
        ),
        config={
            "otel": {"endpoint": got.url, **otel},
            "action_retrieval": {"embedding_class": None},
            "permissions": {"deny": ["file__delete"]},
        },
    )


def tools(path: str = "notes.txt") -> ScriptedModel:
    """Return a model that lists, reads, fails, is denied, calls what calls, and makes a tool up."""

    def invoke(name: str, **args: Any) -> Any:
        return call("invoke_action", action_name=name, args=args)

    return ScriptedModel(
        call("list_actions"),
        [invoke("file__read", path=path), invoke("file__read", path="none.txt")],
        invoke("file__delete", path="notes.txt"),
        invoke("outer__run"),
        call("say what you like"),
        f"It was {SECRET}.",
        label="azure/deployed-model",
    )


def test_a_run_arrives_as_the_conventions_have_it(
    workspace: Path, got: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_API_KEY", SECRET)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "my-notebooks")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=me")
    made = session(workspace, got)
    trace = made.ask("read the notes", model=tools(f"{SECRET}.txt"), approve="all")
    made.close()
    assert (made.parts.sender and made.parts.sender.sent) == 1 and made.problems == ()
    assert got.paths == ["/v1/traces"] and got.heads[0]["x-tenant"] == "me"
    (request,) = got.requests
    resource = {pair.key: pair.value.string_value for pair in request.resource_spans[0].resource.attributes}
    assert resource["service.name"] == "my-notebooks"
    check(got.spans)

    (agent,) = got.named("invoke_agent reyn")
    assert agent.trace == trace.run.replace("-", "") and agent.parent == "" and not agent.failed
    assert agent.proto.start_time_unix_nano == round(trace.started.at * 1e6) * 1000
    assert trace.ended and agent.proto.end_time_unix_nano == round(trace.ended.at * 1e6) * 1000
    told = agent.attributes
    assert (told["gen_ai.provider.name"], told["gen_ai.request.model"]) == (
        "azure.ai.openai",
        "deployed-model",
    )
    assert told["gen_ai.conversation.id"] == trace.started.session and told["reyn.run.id"] == trace.run
    assert told["gen_ai.agent.version"] == trace.started.versions["reyn-jupyter"]
    usage = (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"])
    assert sum(usage) == trace.tokens and told["reyn.usage.estimated"] is True

    (scope,) = {scope.schema_url for scope in request.resource_spans[0].scope_spans}
    assert scope == "https://opentelemetry.io/schemas/1.41.1"
    chats = got.named("chat deployed-model")
    assert [span.attributes["reyn.step"] for span in chats] == [1, 2, 3, 4, 5, 6]
    assert {span.parent for span in chats} == {agent.id} and {span.proto.kind for span in chats} == {CLIENT}
    reasons = [span.attributes["gen_ai.response.finish_reasons"] for span in chats]
    assert reasons == [["tool_calls"]] * 5 + [["stop"]]

    by_call = {
        span.attributes["gen_ai.tool.call.id"]: span
        for span in got.spans
        if "gen_ai.tool.name" in span.attributes
    }
    named = [by_call[each.id].attributes["gen_ai.tool.name"] for each in trace.calls]
    assert named == ["list_actions", "file__read", "file__read", "file__delete", "outer__run", "_OTHER"]
    errors = [by_call[each.id].attributes.get("error.type") for each in trace.calls]
    assert errors[0] is None and errors[3] == "permission_denied" and errors[5] == "malformed"
    assert errors[1] and errors[2] and errors[4]
    denied = by_call[trace.calls[3].id].attributes
    assert (denied["reyn.permission.decision"], denied["reyn.wrapper"]) == ("denied", "invoke_action")
    assert {by_call[each.id].parent for each in trace.calls} == {agent.id}
    (leaf,) = got.named("execute_tool leaf__run")
    assert leaf.parent == by_call[trace.calls[4].id].id and leaf.failed

    sent = got.bodies[0]
    for said in (SECRET, "read the notes", "4711", "notes.txt", "say what you like"):
        assert said.encode() not in sent


def test_what_was_said_is_there_where_it_was_asked_for_and_secrets_never(
    workspace: Path, got: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_API_KEY", SECRET)
    made = session(workspace, got, content=True)
    trace = made.ask("read the notes", model=tools(f"{SECRET}.txt"), approve="all")
    made.close()
    check(got.spans)
    assert SECRET.encode() not in got.bodies[0] and b"[redacted:DEMO_API_KEY]" in got.bodies[0]
    (agent,) = got.named("invoke_agent reyn")
    said = {key: json.loads(value) for key, value in agent.attributes.items() if key in SAID}
    assert said["gen_ai.input.messages"][0]["parts"] == [{"type": "text", "content": "read the notes"}]
    assert said["gen_ai.output.messages"][0]["parts"][0]["content"] == "It was [redacted:DEMO_API_KEY]."
    first, second, *_ = got.named("chat deployed-model")
    assert "gen_ai.system_instructions" in first.attributes
    answered, asked = (json.loads(each.attributes["gen_ai.output.messages"]) for each in (first, second))
    assert answered[0]["parts"][0]["name"] == "list_actions" and len(asked[0]["parts"]) == 2
    assert (
        answered[0]["finish_reason"] == "tool_call"
        and said["gen_ai.output.messages"][0]["finish_reason"] == "stop"
    )
    offered = {each["name"]: each for each in json.loads(first.attributes["gen_ai.tool.definitions"])}
    assert (
        offered["invoke_action"]["type"] == "function"
        and "properties" in offered["invoke_action"]["parameters"]
    )
    assert "gen_ai.tool.definitions" not in second.attributes
    new = json.loads(second.attributes["gen_ai.input.messages"])
    assert [(each["role"], each["parts"][0]["type"]) for each in new] == [
        ("assistant", "tool_call"),
        ("tool", "tool_call_response"),
    ]
    _, missing = got.named("execute_tool file__read")
    assert json.loads(missing.attributes["gen_ai.tool.call.arguments"]) == {"path": "none.txt"}
    assert missing.proto.status.message and "gen_ai.tool.call.result" not in missing.attributes
    (listed,) = got.named("execute_tool list_actions")
    assert "file__read" in listed.attributes["gen_ai.tool.call.result"]
    assert listed.attributes["gen_ai.tool.description"] == offered["list_actions"]["description"]
    assert trace.calls[0].id == listed.attributes["gen_ai.tool.call.id"]


def test_a_run_that_is_cut_short_ends_its_spans_with_it(workspace: Path, got: Collector) -> None:
    async def never(request: Any) -> str:
        await asyncio.Event().wait()
        return ""

    made = session(workspace, got)
    model = ScriptedModel(call("list_actions"), never)
    run = made.start("wait", model=model)
    until(lambda: len(model.requests) == 2)
    run.cancel()
    until(lambda: run.done)
    made.close()
    check(got.spans)
    (agent,) = got.named("invoke_agent reyn")
    cut = got.named("chat scripted")[-1]
    assert cut.proto.kind == INTERNAL
    assert agent.failed and cut.failed and cut.proto.end_time_unix_nano == agent.proto.end_time_unix_nano
    assert (
        cut.attributes["error.type"] == agent.attributes["error.type"] == agent.attributes["reyn.run.status"]
    )
    assert agent.attributes["error.type"] in ("interrupted", "cancelled")
    assert "gen_ai.usage.output_tokens" not in cut.attributes  # nothing is made up for what never came


def test_a_call_by_hand_has_no_agent_and_a_hosted_model_an_address(
    workspace: Path, got: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-needed-here")
    made = session(workspace, got)
    made.invoke_action("file__read", {"path": "notes.txt"})
    made.close()
    (by_hand,) = got.spans
    check(got.spans)
    assert (by_hand.parent, by_hand.attributes["reyn.run.kind"]) == ("", "manual")
    got.bodies.clear()
    with OpenAIServer() as server:
        cache = {"cached_tokens": 50, "cache_write_tokens": 5}
        usage = {"prompt_tokens": 70, "completion_tokens": 7, "prompt_tokens_details": cache}
        server.script(Answer("Good.", usage=usage))
        parameters = {"temperature": 0, "seed": 7, "service_tier": "flex"}
        model = {"model": "openai/small", "api_base": server.url, "parameters": parameters}
        made.configure("models.standard", model)
        made.ask("how are you?")
        made.close()
    check(got.spans)
    (chat,) = got.named("chat small")
    told = chat.attributes
    assert (told["server.address"], told["server.port"]) == (
        "127.0.0.1",
        int(server.url.split(":")[2].split("/")[0]),
    )
    assert (told["gen_ai.provider.name"], told["gen_ai.request.temperature"]) == ("openai", 0.0)
    kinds = ("input", "output", "cache_read.input", "cache_creation.input")
    counted = [told[f"gen_ai.usage.{each}_tokens"] for each in kinds]
    assert (
        counted == [70, 7, 50, 5] and told["gen_ai.request.seed"] == 7 and "reyn.usage.estimated" not in told
    )
    assert (told["openai.request.service_tier"], told["openai.response.system_fingerprint"]) == (
        "flex",
        "fp_loopback",
    )
    (agent,) = got.named("invoke_agent reyn")
    assert (agent.attributes["gen_ai.request.temperature"], agent.attributes["gen_ai.request.seed"]) == (
        0.0,
        7,
    )


def test_parameters_have_the_types_of_the_conventions_and_an_agent_those_that_all_its_requests_share() -> (
    None
):
    first = {"top_k": 40, "top_p": 1, "max_completion_tokens": 9, "stop": "END", "temperature": 0}
    second = {**first, "temperature": 1, "response_format": {"type": "json_schema"}}
    trace = _trace(
        first, second, {"response_format": {"type": "text"}, "temperature": True}, model="xai/grok"
    )
    one, two, three = (
        conventions.chat_attributes(trace, step, step.requested) for step in trace.steps if step.requested
    )
    for key, value in {**one, **two}.items():
        check_value(key, list(value) if isinstance(value, tuple) else value)
    assert (one["gen_ai.request.top_k"], one["gen_ai.request.max_tokens"]) == (40.0, 9)
    assert one["gen_ai.request.stop_sequences"] == ("END",) and "gen_ai.output.type" not in one
    assert (two["gen_ai.output.type"], three["gen_ai.output.type"]) == ("json", "text")
    assert "gen_ai.request.temperature" not in three and one["gen_ai.provider.name"] == "x_ai"
    alike = conventions.agent_attributes(_trace(first, second, model="xai/grok"), "reyn")
    assert {key for key in alike if key.startswith("gen_ai.request.")} == {
        *("gen_ai.request.model", "gen_ai.request.max_tokens"),
        *("gen_ai.request.top_p", "gen_ai.request.stop_sequences"),
    }


def test_providers_have_the_names_of_the_conventions() -> None:
    known = {each.value for each in GenAiProviderNameValues}
    named = {conventions.provider_of(f"{provider}/model") for provider in conventions._PROVIDERS}
    assert named - known == {"moonshot_ai"} and len(named) > 8


def test_an_attachment_is_a_part_and_what_is_no_part_is_refused() -> None:
    picture = {"mime": "image/png", "bytes": 3, "sha256": "ab", "blob_id": "b1"}
    message = {"role": "user", "content": "look", "attachments": [picture]}
    requested = replace(_trace({}, model="xai/grok").steps[0].requested, messages=(message,))  # type: ignore[type-var]
    said = conventions.chat_content(requested, None)["gen_ai.input.messages"]  # type: ignore[arg-type]
    check_value("gen_ai.input.messages", said)
    (read,) = json.loads(str(said))
    assert read["parts"][1] == {"type": "reyn.attachment", **picture}
    validator = schema("gen_ai.output.messages")
    for wrong in ({"type": "tool_call"}, {"type": "text", "text": "no content"}, {"type": "made_up"}):
        assert not validator.is_valid([{"role": "assistant", "parts": [wrong], "finish_reason": "stop"}])
    assert not validator.is_valid([{"role": "assistant", "parts": [], "finish_reason": "tool_calls"}])
    assert validator.is_valid([{"role": "assistant", "parts": [], "finish_reason": "tool_call"}])


def test_a_run_that_is_written_is_the_trace_that_was_sent(
    workspace: Path, got: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = session(workspace, got)
    trace = made.ask("read the notes", model=tools(), approve="all")
    made.close()
    again = reyn.Session(workspace).trace(trace.run)
    for name, run in (("live.jsonl", trace), ("stored.jsonl", again)):
        reyn.export(tmp_path / name, run)
        (line,) = (tmp_path / name).read_text().splitlines()
        assert [each.proto for each in _spans(json.loads(line))] == [each.proto for each in got.spans]
    monkeypatch.setenv("LATER_API_KEY", "none.txt")  # a secret that nobody knew when the run was recorded
    reyn.export(tmp_path / "said.jsonl", again, content=True)
    said = (tmp_path / "said.jsonl").read_text()
    assert "read the notes" in said and "[redacted:LATER_API_KEY]" in said and "none.txt" not in said


def test_a_trial_of_a_study_and_a_run_without_an_end_are_spans_too(workspace: Path, tmp_path: Path) -> None:
    made = reyn.Session(workspace)
    whole = made.ask("list", model=ScriptedModel(call("list_actions"), "Done."))
    cut = Trace.from_events(whole.events[:4])  # what a kill leaves
    reyn.export(tmp_path / "cut.jsonl", cut)
    spans = _spans(json.loads((tmp_path / "cut.jsonl").read_text()))
    check(spans)
    assert [span.failed for span in spans] == [False] * len(spans)
    assert spans[0].attributes["reyn.run.status"] == "running"
    with study(None, 1) as trials:
        trials.run(BASE, repeats=1)
        reyn.export(tmp_path / "trial.jsonl", trials.trials[0].transcript)
    check(_spans(json.loads((tmp_path / "trial.jsonl").read_text())))


def _trace(*parameters: dict[str, Any], model: str) -> Trace:
    """Return a run of one model call for each of these parameters, none of which was answered."""
    asked = (
        ModelRequested(
            step=step,
            at=1.0 + step,
            key="k",
            components={},
            model=model,
            messages=(),
            total_messages=0,
            tools=(),
            parameters=given,
        )
        for step, given in enumerate(parameters, 1)
    )
    started = RunStarted(run="r", at=1.0, run_kind="turn", session="s", prompt="", model=model)
    return Trace.from_events((started, *asked))


def _spans(line: Mapping[str, Any]) -> list[SpanView]:
    """Return the spans of one line of OTLP JSON, whose ids are hexadecimal, and which protobuf reads as Base64."""
    for resource in line["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    request = ParseDict(line, ExportTraceServiceRequest())
    return [
        SpanView(span)
        for each in request.resource_spans
        for scope in each.scope_spans
        for span in scope.spans
    ]


def test_a_name_that_a_model_made_up_is_in_no_span_without_content(workspace: Path) -> None:
    made_up = "call-555-1234-John.Doe"
    model = ScriptedModel(
        call(made_up), call("invoke_action", action_name=f"file__{made_up}", args={}), "Done."
    )
    with closing(reyn.Session(workspace, store="memory", model=model)) as session:
        trace = session.ask("Do it.")
    line = otlp_line(spans_of(trace, redact=str))
    assert b"_OTHER" in line and made_up.encode() not in line
    assert made_up.encode() in otlp_line(spans_of(trace, content=True, redact=str))


def test_half_a_character_and_numbers_without_end_cost_no_span_and_no_word_on_the_screen(
    workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Response(
        tool_calls=(ToolCall("c1", "file__read", '{"path": "a\ud800"}'),), finish_reason="odd\ud800"
    )
    s = reyn.Session(workspace, model=ScriptedModel(broken, "It is \ud800."), store=None)
    trace = s.ask("read \ud800")
    odd = {"seed": 2**70, "max_tokens": float("inf"), "top_p": float("nan"), "temperature": 1}
    assert conventions._parameters(odd) == {"gen_ai.request.temperature": 1.0}
    (said,) = json.loads(otlp_line(spans_of(trace, content=True, redact=str)))["resourceSpans"][0][
        "scopeSpans"
    ]
    chats = [span for span in said["spans"] if span["name"].startswith("chat")]
    held = [{each["key"] for each in span["attributes"]} for span in chats]
    assert all({"gen_ai.response.finish_reasons", "gen_ai.output.messages"} <= keys for keys in held)
    assert caplog.records == []
