"""Runs as spans: real runs of the real loop, as a collector on loopback gets them, held against the conventions.

The table was made by hand from the repository open-telemetry/semantic-conventions-genai (Apache-2.0), August 2026:
model/gen-ai/spans.yaml and model/mcp/common.yaml. It says what each kind of span requires, and what else of `gen_ai`
it may have. The names are checked against the registry in the package opentelemetry-semantic-conventions.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, mcp_attributes
from opentelemetry.semconv.attributes import error_attributes, server_attributes

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Purity
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.runtime.record.trace import Trace
from tests.evaluation.study_support import BASE, study
from tests.runtime.call.test_inner_calls import calling, flow
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.otlp_collector import Collector, SpanView, collector
from tests.support.waiting import until

SECRET = "correct-horse-battery"
USAGE = {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens"}
SAID = {"gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages"}
REQUEST = {
    *(
        "gen_ai.request.max_tokens",
        "gen_ai.request.temperature",
        "gen_ai.request.top_p",
        "gen_ai.request.seed",
    ),
    *("gen_ai.request.stop_sequences", "gen_ai.request.frequency_penalty", "gen_ai.request.presence_penalty"),
    "gen_ai.output.type",
}
MODEL = {"gen_ai.operation.name", "gen_ai.provider.name"}
ANSWER = {"gen_ai.request.model", "gen_ai.conversation.id", "gen_ai.response.finish_reasons"}
# operation → what is required, what else there may be, and what the name of the span is made of
CONVENTIONS: dict[str, tuple[set[str], set[str], str | None]] = {
    "invoke_agent": (MODEL, ANSWER | USAGE | SAID | REQUEST | {"gen_ai.agent.name"}, "gen_ai.agent.name"),
    "chat": (MODEL, ANSWER | USAGE | SAID | REQUEST | {"gen_ai.request.top_k"}, "gen_ai.request.model"),
    "execute_tool": (
        {"gen_ai.operation.name", "gen_ai.tool.name"},
        {"gen_ai.tool.call.id", "gen_ai.tool.type", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"},
        "gen_ai.tool.name",
    ),
}
# The attributes that there are, by the package that the registry of the conventions is made into.
REGISTRY = {
    value
    for module in (gen_ai_attributes, mcp_attributes, error_attributes, server_attributes)
    for value in vars(module).values()
    if isinstance(value, str)
}


def check(spans: list[SpanView]) -> None:
    """Hold spans of one trace against the conventions."""
    ids = {span.id for span in spans}
    assert len(ids) == len(spans) and len({span.trace for span in spans}) == 1
    for span in spans:
        found = span.attributes
        required, more, named = CONVENTIONS[found["gen_ai.operation.name"]]
        general = {key for key in found if key.startswith(("gen_ai.", "mcp.", "error.", "server."))}
        assert (
            required
            <= general
            <= required | more | {*("error.type", "server.address", "server.port", "mcp.method.name")}
        )
        assert general <= REGISTRY and all(key in general or key.startswith("reyn.") for key in found)
        assert span.proto.name == f"{found['gen_ai.operation.name']} {found[named or '']}"
        assert ("error.type" in found) == span.failed
        assert ("server.address" in found) == ("server.port" in found) == (span.proto.kind == 3)
        assert span.parent == "" or span.parent in ids
        assert span.proto.start_time_unix_nano <= span.proto.end_time_unix_nano


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
    usage = (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"])
    assert sum(usage) == trace.tokens and told["reyn.usage.estimated"] is True

    chats = got.named("chat deployed-model")
    assert [span.attributes["reyn.step"] for span in chats] == [1, 2, 3, 4, 5, 6]
    assert {span.parent for span in chats} == {agent.id}
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
        usage = {"prompt_tokens": 70, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 50}}
        server.script(Answer("Good.", usage=usage))
        model = {"model": "openai/small", "api_base": server.url, "parameters": {"temperature": 0, "seed": 7}}
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
    counted = [told[f"gen_ai.usage.{each}_tokens"] for each in ("input", "output", "cache_read.input")]
    assert counted == [70, 7, 50] and told["gen_ai.request.seed"] == 7 and "reyn.usage.estimated" not in told


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
