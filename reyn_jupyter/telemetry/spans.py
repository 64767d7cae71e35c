"""A run as spans of OpenTelemetry: one more projection of its record.

Invariants: the same record gives the same spans, ids included, so that a run that is sent twice is one trace: the id of
the trace is that of the run without its dashes. What is in no event is in no span. Importing this module imports
OpenTelemetry.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from uuid import UUID

try:
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
    from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"Runs as OpenTelemetry spans need {error.name}: pip install 'reyn-jupyter[otel]'", name=error.name
    ) from error

from reyn_jupyter.runtime.record.run_steps import Call, Step
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.support.encoding import clean
from reyn_jupyter.support.versions import version_of
from reyn_jupyter.telemetry import conventions
from reyn_jupyter.telemetry.conventions import Attributes

Redact = Callable[[str], str]
_SERVICE = "reyn-jupyter"


def spans_of(trace: Trace, *, content: bool = False, redact: Redact) -> list[ReadableSpan]:
    """Return a run as spans, those of its inner runs included, in the order in which they began.

    A turn is ``invoke_agent``, a model call ``chat MODEL``, a call ``execute_tool ACTION``; what a call calls in its
    turn stands under it. A call by hand has no agent around it.

    Args:
        trace: a run that is over, or as far as it is recorded.
        content: whether prompts, answers, arguments, results and the words of errors are in them.
        redact: takes secrets out of a text; each text of a span goes through it once more.
    """
    work = _Projection(_trace_id(trace.run), content, redact)
    return sorted(work.run(trace, None, conventions.AGENT), key=lambda span: span.start_time or 0)


def otlp_line(spans: list[ReadableSpan]) -> bytes:
    """Return spans as one line of OTLP JSON, which is the body of a request to ``/v1/traces`` too."""
    body = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
    for resource in body.get("resourceSpans", ()):
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in span.keys() & {"traceId", "spanId", "parentSpanId"}:
                    span[name] = base64.b64decode(
                        span[name]
                    ).hex()  # OTLP writes ids so, and protobuf does not
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


@dataclass
class _Projection:
    """One run on its way to spans."""

    trace_id: int
    content: bool
    redact: Redact
    resource: Resource = field(default_factory=lambda: _resource())

    def run(self, trace: Trace, parent: SpanContext | None, agent: str) -> Iterator[ReadableSpan]:
        """Yield the spans of a run and its inner runs; one that asks no model has none of its own."""
        if trace.model is not None:
            context = self._context(trace, "run")
            end = trace.ended.at if trace.ended is not None else trace.events[-1].at
            yield self._span(
                f"invoke_agent {agent}",
                context,
                parent,
                (trace.started.at, end),
                {**conventions.agent_attributes(trace, agent), **conventions.run_attributes(trace)},
                said=conventions.run_content(trace) if self.content else {},
                error=conventions.run_error(trace),
                why=trace.error,
            )
            parent = context
        descriptions = conventions.tool_descriptions(trace) if self.content else {}
        for step in trace.steps:
            yield from self._step(trace, step, parent, descriptions)

    def _step(
        self, trace: Trace, step: Step, parent: SpanContext | None, descriptions: Mapping[str, str]
    ) -> Iterator[ReadableSpan]:
        requested, replied = step.requested, step.replied
        if requested is not None:
            attributes = conventions.chat_attributes(trace, step, requested)
            end = replied.at if replied is not None else _cut_at(trace)
            yield self._span(
                f"chat {attributes[gen_ai.GEN_AI_REQUEST_MODEL]}",
                self._context(trace, f"model {step.number}"),
                parent,
                (requested.at, end),
                attributes,
                said=conventions.chat_content(requested, replied) if self.content else {},
                error=conventions.chat_error(replied) if replied is not None else _cut_by(trace),
                why=None if replied is None else replied.error,
                kind=SpanKind.INTERNAL if conventions.runs_here(attributes) else SpanKind.CLIENT,
            )
        for call in step.calls:
            yield from self._call(trace, call, parent, descriptions)

    def _call(
        self, trace: Trace, call: Call, parent: SpanContext | None, descriptions: Mapping[str, str]
    ) -> Iterator[ReadableSpan]:
        finished, context = call.finished, self._context(trace, f"call {call.id}")
        attributes = conventions.tool_attributes(call)
        if parent is None:
            attributes |= conventions.run_attributes(trace)
        yield self._span(
            f"execute_tool {attributes[gen_ai.GEN_AI_TOOL_NAME]}",
            context,
            parent,
            (call.resolved.at, finished.at if finished is not None else _cut_at(trace)),
            attributes,
            said=conventions.tool_content(call, descriptions) if self.content else {},
            error=conventions.tool_error(call) if finished is not None else _cut_by(trace),
            why=None if finished is None else finished.error,
        )
        inner = trace.inner.get(call.id)
        if inner is not None:
            yield from self.run(inner, context, conventions.tool_name(call).rpartition("__")[2])

    def _span(
        self,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        times: tuple[float, float],
        attributes: Attributes,
        *,
        said: Attributes,
        error: str | None,
        why: str | None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> ReadableSpan:
        if error is not None:
            attributes = {**attributes, ERROR_TYPE: error}
        status = Status(StatusCode.ERROR, self._text(why) if why and self.content else None)
        start, end = map(_nanoseconds, times)
        return ReadableSpan(
            self._text(name),
            context,
            parent,
            self.resource,
            {key: self._clean(value) for key, value in {**attributes, **said}.items()},
            kind=kind,
            status=status if error is not None else Status(StatusCode.UNSET),
            start_time=start,
            end_time=max(start, end),  # a clock that was put back makes no span of less than no time
            instrumentation_scope=_scope(),
        )

    def _clean(
        self, value: str | bool | int | float | tuple[str, ...]
    ) -> str | bool | int | float | tuple[str, ...]:
        if isinstance(value, str):
            return self._text(value)
        return tuple(map(self._text, value)) if isinstance(value, tuple) else value

    def _text(self, text: str) -> str:
        """Return a text as it may leave: of one with half a character, protobuf takes nothing at all."""
        return clean(self.redact(text))

    def _context(self, trace: Trace, what: str) -> SpanContext:
        """Return the ids of one span: a part of the run always has the same."""
        digest = hashlib.sha256(f"{trace.run}\n{what}".encode("utf-8", "surrogatepass")).digest()
        span_id = int.from_bytes(digest[:8], "big") or 1
        return SpanContext(
            self.trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)
        )


def _cut_at(trace: Trace) -> float:
    """Return when what has no end of its own was over: with its run, or with the record."""
    return trace.ended.at if trace.ended is not None else trace.events[-1].at


def _cut_by(trace: Trace) -> str | None:
    """Return what ended something without an end of its own; None where the record says nothing of it."""
    return None if trace.ended is None else conventions.run_error(trace) or conventions.OTHER


def _trace_id(run: str) -> int:
    try:
        found = UUID(run).int
    except ValueError:
        found = 0
    return found or int.from_bytes(hashlib.sha256(run.encode("utf-8", "surrogatepass")).digest()[:16], "big")


def _nanoseconds(at: float) -> int:
    return round(at * 1e6) * 1000


@cache
def _scope() -> InstrumentationScope:
    return InstrumentationScope("reyn_jupyter", version_of(_SERVICE), conventions.SCHEMA)


@cache
def _own_resource() -> Resource:
    return Resource({"service.name": _SERVICE, "service.version": version_of(_SERVICE) or "source"})


def _resource() -> Resource:
    """Return what the spans are of; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say otherwise."""
    found = Resource.create()
    if str(found.attributes.get("service.name", "")).startswith("unknown_service"):
        return found.merge(_own_resource())
    return found
