"""Holds spans against the GenAI conventions: attributes, their types, names, kinds, status, and JSON of what was said.

The table was made by hand from open-telemetry/semantic-conventions (Apache-2.0) v1.41.1, model/gen-ai/spans.yaml,
model/mcp/common.yaml and model/openai/registry.yaml: what each kind of span requires, and what else it may have. Names
are those of the package opentelemetry-semantic-conventions, and the JSON schemas those in tests/data/otel.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, mcp_attributes, openai_attributes
from opentelemetry.semconv.attributes import error_attributes, server_attributes

if TYPE_CHECKING:
    from tests.support.otlp_collector import SpanView

SCHEMAS = Path(__file__).parents[1] / "data" / "otel"
CLIENT, INTERNAL = 3, 1  # SPAN_KIND_… of OTLP

USAGE = {
    f"gen_ai.usage.{kind}_tokens" for kind in ("input", "output", "cache_read.input", "cache_creation.input")
}
# Attribute → the file of its schema.
SAID = {
    "gen_ai.system_instructions": "gen-ai-system-instructions.json",
    "gen_ai.input.messages": "gen-ai-input-messages.json",
    "gen_ai.output.messages": "gen-ai-output-messages.json",
    "gen_ai.tool.definitions": "gen-ai-tool-definitions.json",
}
DOUBLES = {
    *("gen_ai.request.temperature", "gen_ai.request.top_p", "gen_ai.request.top_k"),
    *("gen_ai.request.frequency_penalty", "gen_ai.request.presence_penalty"),
}
INTEGERS = {
    *USAGE,
    *("gen_ai.request.max_tokens", "gen_ai.request.seed", "server.port"),
}
ARRAYS = {"gen_ai.request.stop_sequences", "gen_ai.response.finish_reasons"}
REQUEST = {
    *("gen_ai.request.max_tokens", "gen_ai.request.temperature", "gen_ai.request.top_p"),
    *("gen_ai.request.seed", "gen_ai.request.stop_sequences"),
    *("gen_ai.request.frequency_penalty", "gen_ai.request.presence_penalty", "gen_ai.output.type"),
}
MODEL = {"gen_ai.operation.name", "gen_ai.provider.name"}
ANSWER = {"gen_ai.request.model", "gen_ai.conversation.id", "gen_ai.response.finish_reasons"}
OPENAI = {"openai.request.service_tier", "openai.response.system_fingerprint"}
# operation → what is required, what else there may be, and what the name of the span is made of
CONVENTIONS: dict[str, tuple[set[str], set[str], str]] = {
    "invoke_agent": (
        MODEL,
        ANSWER | USAGE | set(SAID) | REQUEST | {"gen_ai.agent.name", "gen_ai.agent.version", "error.type"},
        "gen_ai.agent.name",
    ),
    "chat": (
        MODEL,
        {*ANSWER, *USAGE, *SAID, *REQUEST, *OPENAI}
        | {"gen_ai.request.top_k", "server.address", "server.port", "error.type"},
        "gen_ai.request.model",
    ),
    "execute_tool": (
        {"gen_ai.operation.name", "gen_ai.tool.name"},
        {
            *("gen_ai.tool.call.id", "gen_ai.tool.type", "gen_ai.tool.description"),
            *("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "mcp.method.name", "error.type"),
        },
        "gen_ai.tool.name",
    ),
}
# The attributes that there are, by the package that the registry of the conventions is made into.
REGISTRY = {
    value
    for module in (gen_ai_attributes, mcp_attributes, openai_attributes, error_attributes, server_attributes)
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
        general = {key for key in found if not key.startswith("reyn.")}
        assert required <= general <= required | more and general <= REGISTRY
        assert span.proto.name == f"{found['gen_ai.operation.name']} {found[named]}"
        assert ("error.type" in found) == span.failed
        assert ("server.address" in found) == ("server.port" in found)
        assert span.proto.kind in ({CLIENT, INTERNAL} if named == "gen_ai.request.model" else {INTERNAL})
        assert span.proto.kind == CLIENT or "server.address" not in found
        assert span.parent == "" or span.parent in ids
        assert span.proto.start_time_unix_nano <= span.proto.end_time_unix_nano
        for key, value in found.items():
            check_value(key, value)


def check_value(key: str, value: Any) -> None:
    """Hold the value of an attribute against its type, or its schema."""
    if key.startswith("reyn."):
        return
    kind = float if key in DOUBLES else int if key in INTEGERS else list if key in ARRAYS else str
    assert type(value) is kind, (key, value)
    if key in SAID:
        assert [error.message for error in schema(key).iter_errors(json.loads(str(value)))] == []


@cache
def schema(attribute: str) -> Draft202012Validator:
    """Return the validator of what was said, stricter than published: no part and no tool is of a kind of its own.

    The published schemas take any object with a type for a part, and any text for a role or a reason to finish.
    """
    found = json.loads((SCHEMAS / SAID[attribute]).read_text("utf-8"))
    found["$defs"].pop("GenericToolDefinition", None)
    if "GenericPart" in found["$defs"]:
        found["$defs"]["GenericPart"]["properties"]["type"] = {"const": "reyn.attachment"}
    _drop(found, [{"$ref": "#/$defs/GenericToolDefinition"}])
    for name in ("Role", "FinishReason"):
        _drop(found, [{"type": "string"}], beside={"$ref": f"#/$defs/{name}"})
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


def _drop(node: Any, dropped: list[Any], beside: Any = None) -> None:
    """Take alternatives out of each `anyOf` of a schema; those of one that has `beside` alone, where it is given."""
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _drop(each, dropped, beside)
    if (
        isinstance(node, dict)
        and isinstance(node.get("anyOf"), list)
        and (not beside or beside in node["anyOf"])
    ):
        node["anyOf"] = [each for each in node["anyOf"] if each not in dropped]
