"""The attributes that the GenAI conventions of OpenTelemetry give to what a run records.

Invariant: what was said (prompts, answers, arguments, results) is in what the functions named `…_content` give, and in
nothing else here; so are names that a model made up, which may say anything. Source: the repository
open-telemetry/semantic-conventions-genai, model/gen-ai/spans.yaml and model/mcp/spans.yaml, as of August 2026. What the
conventions have no name for begins with ``reyn.``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from reyn_jupyter.models.providers import provider_name
from reyn_jupyter.runtime.record.events import ModelReplied, ModelRequested, RequestSent
from reyn_jupyter.runtime.record.trace import Call, Step, Trace
from reyn_jupyter.support.network.hosts import HostError, read_host
from reyn_jupyter.support.text import shorten

Attributes = dict[str, str | bool | int | float | tuple[str, ...]]

AGENT = "reyn"
OTHER = "_OTHER"  # the conventions' word for an error without a name of its own
# LiteLLM's names of providers whose name in the conventions is another one.
_PROVIDERS = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "cohere_chat": "cohere",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
_PARAMETERS: dict[str, tuple[str, type]] = {
    "frequency_penalty": ("gen_ai.request.frequency_penalty", float),
    "max_completion_tokens": ("gen_ai.request.max_tokens", int),
    "max_tokens": ("gen_ai.request.max_tokens", int),
    "presence_penalty": ("gen_ai.request.presence_penalty", float),
    "seed": ("gen_ai.request.seed", int),
    "temperature": ("gen_ai.request.temperature", float),
    "top_k": ("gen_ai.request.top_k", int),
    "top_p": ("gen_ai.request.top_p", float),
}
_NAME = re.compile(r"[\w.-]{1,128}")
_CODE = re.compile(r"[A-Za-z0-9_]{1,60}")
_MCP_CALL = "call_mcp_tool"  # the target of every call of a server's tool


def provider_of(model: str) -> str:
    """Return the provider of a model as the conventions name it, "unknown" where its name does not say.

    >>> provider_of("openai/gpt-4o-mini"), provider_of("azure/deployed"), provider_of("scripted")
    ('openai', 'azure.ai.openai', 'unknown')
    """
    named = provider_name(model)
    return "unknown" if named is None else _PROVIDERS.get(named, named)


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
    """Return those of an ``invoke_agent`` span; its tokens are those of the run's own model calls."""
    model = trace.model or ""
    own = [step.replied for step in trace.steps if step.replied is not None]
    found: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": provider_of(model),
        "gen_ai.agent.name": agent,
        "gen_ai.request.model": model_name(model),
        "gen_ai.conversation.id": trace.started.session,
        **_usage(own),
    }
    if own and own[-1].error is None:
        found["gen_ai.response.finish_reasons"] = (own[-1].finish_reason,)
    if trace.cost is not None:
        found["reyn.cost_usd"] = trace.cost
    return found


def chat_attributes(trace: Trace, step: Step, requested: ModelRequested) -> Attributes:
    """Return those of a ``chat`` span: one model call, with all of its repeats."""
    replied = step.replied
    found: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider_of(requested.model),
        "gen_ai.request.model": model_name(requested.model),
        "gen_ai.conversation.id": trace.started.session,
        "reyn.step": step.number,
        **_parameters(requested.parameters),
        **_server(trace, step),
    }
    if replied is None:
        return found
    if replied.error is None:
        found["gen_ai.response.finish_reasons"] = (replied.finish_reason,)
        found |= _usage([replied])
        if replied.cost is not None:
            found["reyn.cost_usd"] = replied.cost
    if replied.retries:
        found["reyn.retries"] = replied.retries
    return found


def tool_attributes(call: Call) -> Attributes:
    """Return those of an ``execute_tool`` span: the action, or the wrapper where the call meant none."""
    resolved, finished = call.resolved, call.finished
    found: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool_name(call),
        "gen_ai.tool.call.id": shorten(call.id, 128),
        "gen_ai.tool.type": "function",
        "reyn.step": resolved.step,
        "reyn.actor": resolved.actor,
    }
    if _NAME.fullmatch(resolved.wrapper):
        found["reyn.wrapper"] = resolved.wrapper
    if resolved.target == _MCP_CALL:
        found["mcp.method.name"] = "tools/call"
    if resolved.flags:
        found["reyn.flags"] = tuple(resolved.flags)
    if call.decision is not None:
        found["reyn.permission.decision"] = call.decision.decision
        found["reyn.permission.by"] = call.decision.by
    if finished is not None and finished.waited:
        found["reyn.waited_seconds"] = finished.waited
    return found


def tool_name(call: Call) -> str:
    """Return the name of what a call ran; one that a model made up, and that is no name at all, is `OTHER`."""
    return call.label if _NAME.fullmatch(call.label) else OTHER


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
    said = [{"role": "assistant", "parts": _text(trace.answer), "finish_reason": "stop"}]
    return {
        "gen_ai.input.messages": _json([{"role": "user", "parts": _text(trace.prompt)}]),
        **({"gen_ai.output.messages": _json(said)} if trace.answer else {}),
    }


def chat_content(requested: ModelRequested, replied: ModelReplied | None) -> Attributes:
    """Return the messages of a model call that are new since the one before it, and its answer."""
    system = [
        part for message in requested.messages if message.get("role") == "system" for part in _parts(message)
    ]
    others = [
        {"role": str(message.get("role")), "parts": _parts(message)}
        for message in requested.messages
        if message.get("role") != "system"
    ]
    found: Attributes = {"gen_ai.input.messages": _json(others)} if others else {}
    if system:
        found["gen_ai.system_instructions"] = _json(system)
    if replied is not None and replied.error is None:
        calls = [
            {
                "type": "tool_call",
                "id": each["id"],
                "name": each["name"],
                "arguments": _read(each["arguments"]),
            }
            for each in replied.tool_calls
        ]
        message = {
            "role": "assistant",
            "parts": [*_text(replied.text), *calls],
            "finish_reason": replied.finish_reason,
        }
        found["gen_ai.output.messages"] = _json([message])
    return found


def tool_content(call: Call) -> Attributes:
    """Return the arguments of a call, and the text that the conversation holds as its result."""
    resolved, finished = call.resolved, call.finished
    given = resolved.arguments if resolved.inner is None else resolved.inner
    found: Attributes = {"gen_ai.tool.call.arguments": _json(given)}
    if finished is not None and finished.ok:
        found["gen_ai.tool.call.result"] = finished.output
    return found


def _usage(replies: Iterable[ModelReplied]) -> Attributes:
    replies = [reply for reply in replies if reply.error is None]
    if not replies:
        return {}
    found: Attributes = {
        "gen_ai.usage.input_tokens": sum(reply.prompt_tokens for reply in replies),
        "gen_ai.usage.output_tokens": sum(reply.completion_tokens for reply in replies),
    }
    if cached := sum(reply.cached_tokens for reply in replies):
        found["gen_ai.usage.cache_read.input_tokens"] = cached
    if any(reply.estimated for reply in replies):
        found["reyn.usage.estimated"] = True
    return found


def _parameters(given: Mapping[str, Any]) -> Attributes:
    found: Attributes = {}
    for name, (attribute, kind) in _PARAMETERS.items():
        value = given.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[attribute] = kind(value)
    stops = given.get("stop")
    stops = [stops] if isinstance(stops, str) else stops
    if isinstance(stops, list) and stops and all(isinstance(each, str) for each in stops):
        found["gen_ai.request.stop_sequences"] = tuple(stops)
    if "response_format" in given:
        found["gen_ai.output.type"] = "json"
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
    return {"server.address": host.name, "server.port": host.port or plain}


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if message.get("role") == "tool":
        return [{"type": "tool_call_response", "id": message.get("tool_call_id"), "response": content}]
    calls = [
        {
            "type": "tool_call",
            "id": each.get("id"),
            "name": each["function"]["name"],
            "arguments": _read(each["function"]["arguments"]),
        }
        for each in message.get("tool_calls") or ()
    ]
    return [*_text(content), *calls]


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
