"""The attributes that the GenAI conventions of OpenTelemetry give to what a run records.

Invariant: what was said (prompts, answers, arguments, results) is in what the functions named `…_content` give, and in
nothing else here; so are names that a model made up, which may say anything. Source: release `SCHEMA` of the
semantic conventions, the last one that holds those for GenAI whole; their new repository,
open-telemetry/semantic-conventions-genai, has no release yet and asks for nothing else of these spans. What the
conventions have no name for begins with ``reyn.``. Importing this module imports OpenTelemetry's names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.semconv._incubating.attributes import mcp_attributes as mcp
from opentelemetry.semconv._incubating.attributes import openai_attributes as openai
from opentelemetry.semconv.attributes import error_attributes as error
from opentelemetry.semconv.attributes import server_attributes as server
from opentelemetry.semconv.schemas import Schemas

from reyn_jupyter.catalog.names import CHOOSE, WRAPPERS
from reyn_jupyter.models.providers.provider_facts import provider_name
from reyn_jupyter.runtime.record.events import ModelReplied, ModelRequested, RequestSent
from reyn_jupyter.runtime.record.run_steps import Call, Step
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.support.network.hosts import HostError, read_host
from reyn_jupyter.support.text import shorten

Attributes = dict[str, str | bool | int | float | tuple[str, ...]]

SCHEMA = Schemas.V1_41_1.value
AGENT = "reyn"
OTHER = error.ErrorTypeValues.OTHER.value
_Operation, _Output, _Provider = (
    gen_ai.GenAiOperationNameValues,
    gen_ai.GenAiOutputTypeValues,
    gen_ai.GenAiProviderNameValues,
)
# LiteLLM's names of providers whose name in the conventions is another one.
_PROVIDERS = {
    "anthropic_text": _Provider.ANTHROPIC.value,
    "azure": _Provider.AZURE_AI_OPENAI.value,
    "azure_ai": _Provider.AZURE_AI_INFERENCE.value,
    "azure_text": _Provider.AZURE_AI_OPENAI.value,
    "bedrock": _Provider.AWS_BEDROCK.value,
    "bedrock_converse": _Provider.AWS_BEDROCK.value,
    "codestral": _Provider.MISTRAL_AI.value,
    "cohere_chat": _Provider.COHERE.value,
    "gemini": _Provider.GCP_GEMINI.value,
    "mistral": _Provider.MISTRAL_AI.value,
    "moonshot": "moonshot_ai",  # in the new repository alone
    "text-completion-openai": _Provider.OPENAI.value,
    "vertex_ai": _Provider.GCP_VERTEX_AI.value,
    "vertex_ai_beta": _Provider.GCP_VERTEX_AI.value,
    "watsonx": _Provider.IBM_WATSONX_AI.value,
    "watsonx_text": _Provider.IBM_WATSONX_AI.value,
    "xai": _Provider.X_AI.value,
}
_PARAMETERS: dict[str, tuple[str, type]] = {
    "frequency_penalty": (gen_ai.GEN_AI_REQUEST_FREQUENCY_PENALTY, float),
    "max_completion_tokens": (gen_ai.GEN_AI_REQUEST_MAX_TOKENS, int),
    "max_tokens": (gen_ai.GEN_AI_REQUEST_MAX_TOKENS, int),
    "presence_penalty": (gen_ai.GEN_AI_REQUEST_PRESENCE_PENALTY, float),
    "seed": (gen_ai.GEN_AI_REQUEST_SEED, int),
    "temperature": (gen_ai.GEN_AI_REQUEST_TEMPERATURE, float),
    "top_k": (gen_ai.GEN_AI_REQUEST_TOP_K, float),
    "top_p": (gen_ai.GEN_AI_REQUEST_TOP_P, float),
}
# What an agent's span says of its requests as well: those of the conventions.
_OF_AGENTS = frozenset(
    {
        *(name for name, _ in _PARAMETERS.values() if name != gen_ai.GEN_AI_REQUEST_TOP_K),
        gen_ai.GEN_AI_REQUEST_STOP_SEQUENCES,
        gen_ai.GEN_AI_OUTPUT_TYPE,
    }
)
# Reasons to finish whose name in the conventions' schema of messages is another one than OpenAI's.
_FINISH = {"nearest": "stop", "tool_calls": "tool_call", "function_call": "tool_call"}
_UNKNOWN = "unknown"
_LARGEST = 2**63  # whole numbers of spans have 64 bits
_NAME = re.compile(r"[\w.-]{1,128}")
_CODE = re.compile(r"[A-Za-z0-9_]{1,60}")
_WRAPPERS = frozenset({*WRAPPERS, CHOOSE})
_MCP_CALL = "call_mcp_tool"  # the target of every call of a server's tool


def provider_of(model: str) -> str:
    """Return the provider of a model as the conventions name it, "unknown" where its name does not say.

    >>> provider_of("openai/gpt-4o-mini"), provider_of("azure/deployed"), provider_of("scripted")
    ('openai', 'azure.ai.openai', 'unknown')
    """
    named = provider_name(model)
    return _UNKNOWN if named is None else _PROVIDERS.get(named, named)


def model_name(model: str) -> str:
    """Return a model's name without its provider; of one from a file, the file's.

    >>> model_name("openrouter/openai/gpt-4o"), model_name("local/~/models/a.gguf"), model_name("gpt-4o")
    ('openai/gpt-4o', 'a.gguf', 'gpt-4o')
    """
    provider, slash, name = model.partition("/")
    if not slash:
        return model
    return PurePath(name).name if provider == "local" else name


def run_attributes(trace: Trace) -> Attributes:
    """Return what the first span of a run says of the run itself."""
    started = trace.started
    found: Attributes = {
        "reyn.run.id": trace.run,
        "reyn.run.kind": started.run_kind,
        "reyn.run.status": trace.status,
    }
    if started.replay_of is not None:
        found["reyn.run.replay_of"] = started.replay_of
    return found


def agent_attributes(trace: Trace, agent: str) -> Attributes:
    """Return those of an ``invoke_agent`` span: tokens of its own model calls, and what all of its requests share."""
    model = trace.model or ""
    own = [step.replied for step in trace.steps if step.replied is not None]
    asked = [_parameters(step.requested.parameters) for step in trace.steps if step.requested is not None]
    found: Attributes = {
        gen_ai.GEN_AI_OPERATION_NAME: _Operation.INVOKE_AGENT.value,
        gen_ai.GEN_AI_PROVIDER_NAME: provider_of(model),
        gen_ai.GEN_AI_AGENT_NAME: agent,
        gen_ai.GEN_AI_REQUEST_MODEL: model_name(model),
        gen_ai.GEN_AI_CONVERSATION_ID: trace.started.session,
        **{
            key: value
            for key, value in (asked[0] if asked else {}).items()
            if key in _OF_AGENTS and all(each.get(key) == value for each in asked)
        },
        **_usage(own),
    }
    version = trace.started.versions.get("reyn-jupyter")
    if agent == AGENT and version is not None:
        found[gen_ai.GEN_AI_AGENT_VERSION] = version
    if own and own[-1].error is None:
        found[gen_ai.GEN_AI_RESPONSE_FINISH_REASONS] = (own[-1].finish_reason,)
    if trace.cost is not None:
        found["reyn.cost_usd"] = trace.cost
    return found


def chat_attributes(trace: Trace, step: Step, requested: ModelRequested) -> Attributes:
    """Return those of a ``chat`` span: one model call, with all of its repeats."""
    replied, provider = step.replied, provider_of(requested.model)
    by_openai = provider == _Provider.OPENAI.value
    found: Attributes = {
        gen_ai.GEN_AI_OPERATION_NAME: _Operation.CHAT.value,
        gen_ai.GEN_AI_PROVIDER_NAME: provider,
        gen_ai.GEN_AI_REQUEST_MODEL: model_name(requested.model),
        gen_ai.GEN_AI_CONVERSATION_ID: trace.started.session,
        "reyn.step": step.number,
        **_parameters(requested.parameters),
        **_server(trace, step),
    }
    service_tier = requested.parameters.get("service_tier")
    if by_openai and isinstance(service_tier, str) and service_tier != "auto":
        found[openai.OPENAI_REQUEST_SERVICE_TIER] = service_tier
    if replied is None:
        return found
    if replied.error is None:
        found[gen_ai.GEN_AI_RESPONSE_FINISH_REASONS] = (replied.finish_reason,)
        found |= _usage([replied])
        if by_openai and replied.fingerprint:
            found[openai.OPENAI_RESPONSE_SYSTEM_FINGERPRINT] = replied.fingerprint
        if replied.cost is not None:
            found["reyn.cost_usd"] = replied.cost
    if replied.retries:
        found["reyn.retries"] = replied.retries
    return found


def runs_here(chat: Attributes) -> bool:
    """Return whether the model of a ``chat`` span runs in this process: no request left, and it has no provider."""
    return server.SERVER_ADDRESS not in chat and chat[gen_ai.GEN_AI_PROVIDER_NAME] == _UNKNOWN


def tool_attributes(call: Call) -> Attributes:
    """Return those of an ``execute_tool`` span: the action, or the wrapper where the call meant none."""
    resolved, finished = call.resolved, call.finished
    found: Attributes = {
        gen_ai.GEN_AI_OPERATION_NAME: _Operation.EXECUTE_TOOL.value,
        gen_ai.GEN_AI_TOOL_NAME: tool_name(call),
        gen_ai.GEN_AI_TOOL_CALL_ID: shorten(call.id, 128),
        gen_ai.GEN_AI_TOOL_TYPE: "function",
        "reyn.step": resolved.step,
        "reyn.actor": resolved.actor,
    }
    if resolved.wrapper in _WRAPPERS or resolved.wrapper == resolved.name:
        found["reyn.wrapper"] = resolved.wrapper
    if resolved.target == _MCP_CALL:
        found[mcp.MCP_METHOD_NAME] = mcp.McpMethodNameValues.TOOLS_CALL.value
    if resolved.flags:
        found["reyn.flags"] = tuple(resolved.flags)
    if call.decision is not None:
        found["reyn.permission.decision"] = call.decision.decision
        found["reyn.permission.by"] = call.decision.by
    if finished is not None and finished.waited:
        found["reyn.waited_seconds"] = finished.waited
    return found


def tool_name(call: Call) -> str:
    """Return the name of what a call ran; one that a model made up is `OTHER`."""
    known = call.resolved.name is not None or call.label in _WRAPPERS
    return call.label if known and _NAME.fullmatch(call.label) else OTHER


def chat_error(replied: ModelReplied | None) -> str | None:
    """Return the kind of error that a model call ended in, None where it did not, or has no end."""
    if replied is None or replied.error is None:
        return None
    return replied.error_kind or OTHER


def tool_error(call: Call) -> str | None:
    """Return the kind of error that a call ended in: the handler's own name for it, a denial, or what was wrong."""
    finished, resolved = call.finished, call.resolved
    if finished is None or finished.ok:
        return None
    if call.denied:
        return "permission_denied"
    if finished.code is not None and _CODE.fullmatch(finished.code):
        by_server = resolved.target == _MCP_CALL and finished.code == "tool_failed"
        return (
            "tool_error" if by_server else finished.code
        )  # the conventions' name for a tool that says it failed
    return resolved.problem or OTHER


def run_error(trace: Trace) -> str | None:
    """Return why a run has no good end: the error of its last model call, or how it ended; None where it has one."""
    if trace.ended is None or trace.status == "ok":
        return None
    last = chat_error(trace.steps[-1].replied) if trace.steps else None
    return last or (OTHER if trace.status == "error" else trace.status)


# What was said


def run_content(trace: Trace) -> Attributes:
    """Return the prompt and the answer of a run, as messages."""
    found: Attributes = {
        gen_ai.GEN_AI_INPUT_MESSAGES: _json([{"role": "user", "parts": _text(trace.prompt)}])
    }
    if trace.answer:
        last = trace.steps[-1].replied if trace.steps else None
        reason = "stop" if last is None else _finish_reason(last)
        found[gen_ai.GEN_AI_OUTPUT_MESSAGES] = _json([_output(_text(trace.answer), reason)])
    return found


def chat_content(requested: ModelRequested, replied: ModelReplied | None) -> Attributes:
    """Return what is new in a model call since the one before it, messages and tools, and its answer."""
    system = [
        part for message in requested.messages if message.get("role") == "system" for part in _parts(message)
    ]
    others = [
        {"role": str(message.get("role")), "parts": _parts(message)}
        for message in requested.messages
        if message.get("role") != "system"
    ]
    found: Attributes = {gen_ai.GEN_AI_INPUT_MESSAGES: _json(others)} if others else {}
    if system:
        found[gen_ai.GEN_AI_SYSTEM_INSTRUCTIONS] = _json(system)
    if tools := [_definition(each) for each in requested.tool_specs or ()]:
        found[gen_ai.GEN_AI_TOOL_DEFINITIONS] = _json(tools)
    if replied is not None and replied.error is None:
        calls = [_tool_call(each["id"], each["name"], each["arguments"]) for each in replied.tool_calls]
        message = _output([*_text(replied.text), *calls], _finish_reason(replied))
        found[gen_ai.GEN_AI_OUTPUT_MESSAGES] = _json([message])
    return found


def tool_content(call: Call, descriptions: Mapping[str, str]) -> Attributes:
    """Return the arguments of a call, the text that the conversation holds as its result, and what the tool is for.

    Args:
        descriptions: of the tools that the model was offered, by name.
    """
    resolved, finished = call.resolved, call.finished
    given = resolved.arguments if resolved.inner is None else resolved.inner
    found: Attributes = {gen_ai.GEN_AI_TOOL_CALL_ARGUMENTS: _json(given)}
    if description := descriptions.get(call.label):
        found[gen_ai.GEN_AI_TOOL_DESCRIPTION] = description
    if finished is not None and finished.ok:
        found[gen_ai.GEN_AI_TOOL_CALL_RESULT] = finished.output
    return found


def tool_descriptions(trace: Trace) -> dict[str, str]:
    """Return what the tools that a run's model was offered are for, by name."""
    functions = (
        each["function"]
        for step in trace.steps
        if step.requested is not None
        for each in step.requested.tool_specs or ()
    )
    return {each["name"]: each["description"] for each in functions if each.get("description")}


def _definition(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool as the conventions' schema of tool definitions has it: flat, where providers nest the function."""
    function = spec["function"]
    kept = {key: function[key] for key in ("description", "parameters") if key in function}
    return {"type": "function", "name": function["name"], **kept}


def _output(parts: list[dict[str, Any]], finish_reason: str) -> dict[str, Any]:
    return {"role": "assistant", "parts": parts, "finish_reason": finish_reason}


def _finish_reason(replied: ModelReplied) -> str:
    return "error" if replied.error is not None else _FINISH.get(replied.finish_reason, replied.finish_reason)


def _usage(replies: Iterable[ModelReplied]) -> Attributes:
    replies = [reply for reply in replies if reply.error is None]
    if not replies:
        return {}
    found: Attributes = {
        gen_ai.GEN_AI_USAGE_INPUT_TOKENS: sum(reply.prompt_tokens for reply in replies),
        gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: sum(reply.completion_tokens for reply in replies),
    }
    if cached := sum(reply.cached_tokens for reply in replies):
        found[gen_ai.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS] = cached
    if written := sum(reply.cache_write_tokens for reply in replies):
        found[gen_ai.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS] = written
    if any(reply.estimated for reply in replies):
        found["reyn.usage.estimated"] = True
    return found


def _parameters(given: Mapping[str, Any]) -> Attributes:
    found: Attributes = {}
    for name, (attribute, kind) in _PARAMETERS.items():
        value = given.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST:
            found[attribute] = kind(value)
    stops = given.get("stop")
    stops = [stops] if isinstance(stops, str) else stops
    if isinstance(stops, list) and stops and all(isinstance(each, str) for each in stops):
        found[gen_ai.GEN_AI_REQUEST_STOP_SEQUENCES] = tuple(stops)
    if (form := given.get("response_format")) is not None:
        is_text = isinstance(form, Mapping) and form.get("type") == "text"
        found[gen_ai.GEN_AI_OUTPUT_TYPE] = (_Output.TEXT if is_text else _Output.JSON).value
    return found


def _server(trace: Trace, step: Step) -> Attributes:
    """Return the address that the requests of a step went to; nothing where none left this process."""
    hosts = [
        event.host
        for event in trace.events
        if isinstance(event, RequestSent) and event.by == "model" and event.step == step.number
    ]
    if not hosts:
        return {}
    try:
        host = read_host(hosts[-1])
    except HostError:
        return {}
    plain = 80 if hosts[-1].endswith(":80") else 443  # a `Host` leaves both of them out
    return {server.SERVER_ADDRESS: host.name, server.SERVER_PORT: host.port or plain}


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if message.get("role") == "tool":
        return [{"type": "tool_call_response", "id": message.get("tool_call_id"), "response": content}]
    calls = [
        _tool_call(each.get("id"), each["function"]["name"], each["function"]["arguments"])
        for each in message.get("tool_calls") or ()
    ]
    attached = [{"type": "reyn.attachment", **each} for each in message.get("attachments") or ()]
    return [*_text(content), *calls, *attached]


def _tool_call(id_: str | None, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "tool_call", "id": id_, "name": name, "arguments": _read(arguments)}


def _text(content: object) -> list[dict[str, Any]]:
    return (
        [{"type": "text", "content": content if isinstance(content, str) else _json(content)}]
        if content
        else []
    )


def _read(arguments: str) -> Any:
    """Return the arguments of a call as an object, as text where they are none."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
