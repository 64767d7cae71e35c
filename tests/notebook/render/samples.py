"""Objects to show, whole and in every state, and the texts that must do no harm anywhere."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pandas as pd

from reyn_jupyter.outputs.blob import Blob, open_blob
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.outputs.content import Content, Structured, Text
from reyn_jupyter.outputs.parts.content_parts import ContentPart, ContentParts
from reyn_jupyter.runtime.record.compare import compare
from reyn_jupyter.runtime.record.events import (
    ActionFinished,
    ActionResolved,
    Event,
    ModelReplied,
    ModelRequested,
    PermissionDecided,
    RequestSent,
    RunEnded,
    RunStarted,
)
from reyn_jupyter.runtime.record.result_frame import ResultFrame
from reyn_jupyter.runtime.record.script import Script
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.result_objects import (
    ActionCard,
    ActionTable,
    Card,
    CatalogExplorer,
    FrameView,
    Inspection,
    Result,
    Table,
)
from tests.support.media_samples import png, wav

NOW = 1_790_000_000.0
BLOB = "0198c0de-aaaa-7000-8000-000000000001"

HOSTILE = (
    "<script>window.ran=1</script>",
    "<img src=x onerror=window.ran=1>",
    "</style></td></div><svg onload=window.ran=1>",
    '"\' onmouseover=window.ran=1 x="',
    "[x](javascript:window.ran=1) ![i](http://evil.example/leak.png) <iframe src=http://evil.example>",
    "safe\x1b[31mred\x1b[0m\u202etxt.exe\u2066\x00\x9b2J\u200b\ufeff\ud800",
    "@import url(http://evil.example/a.css); background:url(http://evil.example/b.png)",
    "]]><!--<a href=javascript:window.ran=1>--><math><mi xlink:href=javascript:window.ran=1>",
)
"""Every one of these is put into every field of every object."""


def started(text: str = "offline", **given: Any) -> RunStarted:
    begun = RunStarted(
        run="run-1", at=NOW, run_kind="turn", session="s", prompt="What is the mean value?", model=text
    )
    return replace(begun, **given)


def asked(step: int) -> ModelRequested:
    return ModelRequested(
        step=step, at=NOW, key="k", components={}, model="m", messages=(), total_messages=1, tools=()
    )


def said(step: int, text: str = "", **given: Any) -> ModelReplied:
    return replace(
        ModelReplied(step=step, at=NOW, key="k", text=text, prompt_tokens=100, seconds=0.2), **given
    )


def call(
    number: int,
    name: str | None,
    arguments: Any,
    output: str = "done",
    step: int = 1,
    ok: bool = True,
    **given: Any,
) -> list[Event]:
    """A call through invoke_action; `given` goes to its events by field name."""
    resolved = {key: given.pop(key) for key in ("problem", "flags", "wrapper") if key in given}
    wrapper = resolved.pop("wrapper", "invoke_action")
    events: list[Event] = [
        ActionResolved(
            call=f"c{number}", step=step, at=NOW, actor="model", wrapper=wrapper,
            arguments=arguments, name=name, **resolved,
        )
    ]  # fmt: skip
    if "decision" in given:
        decision, by, pattern = given.pop("decision")
        events.append(
            PermissionDecided(
                call=f"c{number}", at=NOW, name=name or "?", effects=("write report.md",),
                decision=decision, by=by, pattern=pattern,
            )
        )  # fmt: skip
    events.append(
        ActionFinished(
            call=f"c{number}",
            step=step,
            at=NOW,
            wrapper=wrapper,
            name=name,
            ok=ok,
            output=output,
            seconds=0.02,
            **given,
        )
    )
    return events


def invoked(action: str, /, **args: Any) -> dict[str, Any]:
    return {"action_name": action, "args": args}


def trace(
    *calls: list[Event], answer: str = "It is **4**.", status: str = "ok", blobs: Any = None, **given: Any
) -> Trace:
    """A finished run of one step."""
    end = {key: given.pop(key) for key in ("error", "hint", "notes", "seconds") if key in given}
    flat = [event for events in calls for event in events]
    ended = replace(
        RunEnded(run="run-1", at=NOW + 1, status="ok", answer=answer, seconds=1.2), status=status, **end
    )
    return Trace.from_events([started(**given), asked(1), said(1), *flat, ended], blobs)


def running(*calls: list[Event], **given: Any) -> Trace:
    flat = [event for events in calls for event in events]
    return Trace.from_events([started(**given), asked(1), said(1), *flat])


def blob(content: Content, action: str = "table__query") -> Blob:
    store = MemoryBlobStore()
    return open_blob(store, store.put(content, action=action, run="run-1").id)


def row(name: str = "file__read", **given: Any) -> dict[str, Any]:
    return {
        "qualified_name": name, "category": name.partition("__")[0], "description": "Read a file.",
        "arguments": "path*, offset", "purity": "read", "permission": "allow", "uses": 3, "last_ms": 1.25, **given,
    }  # fmt: skip


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for."},
        "top_k": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5},
        "kinds": {"type": "array", "items": {"enum": ["user", "project"]}},
        "filters": {
            "properties": {"date": {"$ref": "#/$defs/range"}},
            "required": ["date"],
            "type": "object",
        },
    },
    "required": ["query"],
    "$defs": {"range": {"type": "object", "properties": {"from": {"type": "string"}}}},
}


def card(name: str = "rag_operation__recall", **given: Any) -> ActionCard:
    payload = {
        "qualified_name": name,
        "description": "Find passages.\n\nAnswers with their scores.",
        "input_schema": SCHEMA,
        "metadata": {"target_tool_name": "recall", "category": "rag_operation", "purity": "read", **given},
    }
    return ActionCard(payload, f"%reyn invoke {name} query=…", "allowed")


def every_kind(text: str) -> dict[str, Any]:
    """One object of each kind and state, with `text` wherever a text can stand."""
    error = {
        "error": text, "reason": text, "hint": text, "suggestions": [text], "valid_categories": [text],
        "redirects": {text: text}, "invalid": [{"path": text, "message": text}],
    }  # fmt: skip
    listing = {
        "items": [],
        "total": 99,
        "next_offset": 1,
        "categories": {text: 4},
        "search": {"reason": text, "install": text},
    }
    hostile_row = dict.fromkeys(row(), text)
    schema = {
        "properties": {text: {"type": text, "description": text, "default": text, "enum": [text]}},
        "required": [text],
    }
    events = [
        *call(
            1,
            text,
            {"action_name": text, "args": {text: text, "y": text}},
            text,
            flags=("lifted",),
            decision=("allowed", "person", text),
        ),
        *call(2, None, text, text, ok=False, error=text, problem="unknown", wrapper=text),
        *call(
            3,
            text,
            invoked(text, content=text),
            text,
            blob=text,
            content_kind=text,
            size=9,
            changes=({"path": text, "previous_blob": None, "sha256": "f"},),
            sources=({"kind": text, "name": text},),
        ),
        [RequestSent(step=2, at=NOW, host=text, size=7)],
    ]
    answer = f"# {text}\n\n- {text}\n\n> {text}\n\n| {text} |\n|--|\n| {text} |\n\n```{text}\n{text}\n```"
    about = {
        "prompt": text,
        "host": text,
        "mandates": (text,),
        "run": text,
        "replay_of": text,
        "turn": 2,
        "history_tokens": 5,
        "sent": ({"kind": text, "name": text, "bytes": 7},),
    }
    finished = trace(
        events, text=text, answer=text, error=text, hint=text, notes=(text,), status="error", **about
    )
    return {
        "list": ActionTable({**listing}, (hostile_row,), "list", text),
        "explorer": CatalogExplorer(ActionTable({**listing}, (hostile_row,), "list", text), text),
        "search": ActionTable(
            {"total": 1, "weak": True, "nearest_categories": [text], "hint": text},
            (row(text, score=0.5),),
            "search",
            text,
        ),
        "list error": ActionTable(error),
        "card": ActionCard(
            {"qualified_name": text, "description": text, "input_schema": schema, "metadata": {text: text}},
            text,
            text,
        ),
        "card error": ActionCard(error),
        "result text": Result(text, text, text, hint=text),
        "result tree": Result(text, "{}", {text: [text, {text: text}], "long": [text * 50]}),
        "result error": Result(text, {**error, "blob": text}),
        "inspection": Inspection(f"{text}\nnext: {text}", None, text),
        "inspection error": Inspection(error, None, text),
        "blob text": blob(Text(f"{text}\n" * 60)),
        "blob array": blob(Structured([{text: text, "n": 1}, {text: None}] * 20)),
        "blob list": blob(Structured([text, [text]] * 20)),
        "blob object": blob(Structured({text: text, "large": [text] * 9000, "n": {text: 1}})),
        "result blob": Result(text, text, {text: text}, blob(Text(text))),
        "parts": Result(text, text, parts(text)),
        "table": Table(text, ({text: text, "id": text, "status": text, "size": 5},), text, text),
        "status": Card(text, text, ((text, text),), ((text, (text, text)),), (text,)),
        "script": Script(text, f"{text}\n{text}"),
        "trace": finished,
        "view": FrameView(pd.DataFrame({text: [text]}), text),
        "frame": ResultFrame(pd.DataFrame({text: [text]}), finished),
        "diff": compare(finished, trace(events[2:], text=f"{text}!", answer=f"{answer}!", **about)),
        "answer": trace(text=text, answer=answer),
        "live": running(events[:1], text=text, **about),
    }


def parts(text: str) -> ContentParts:
    """One part of each kind, `text` wherever a text can stand."""
    return ContentParts(
        (
            ContentPart.of_text(text, "text/html", text),
            ContentPart("image/png", data=png(60, 40), name=text),
            ContentPart("audio/wav", data=wav(0.05), name=text),
            ContentPart.of_json({text: [text]}, text),
            ContentPart.link(text, text),
            ContentPart.link(f"https://docs.example/{text}", text, "text/html"),
            ContentPart("image/svg+xml", data=text.encode("utf-8", "replace"), name=text),
            ContentPart("image/png", data=text.encode("utf-8", "replace"), name=text, uri=text),
            ContentPart(text, data=b"x"),
        )
    )


ALLOWED: dict[str, set[str]] = {
    "div": {"class", "role", "aria-label", "tabindex"}, "p": {"class", "role", "aria-level"}, "style": set(),
    "span": {"class", "role", "aria-level"}, "table": set(), "caption": set(), "thead": set(), "tbody": set(),
    "tr": set(), "th": {"scope", "class"}, "td": {"class"}, "details": {"class", "open"}, "summary": set(),
    "pre": {"class", "tabindex", "role", "aria-label"}, "code": set(), "strong": set(), "em": set(), "s": set(),
    "a": {"href", "rel", "target"}, "ul": set(), "ol": {"start"}, "li": set(), "blockquote": set(), "hr": set(),
    "br": set(), "dl": {"class"}, "dt": set(), "dd": set(),
    "figure": {"class"}, "figcaption": set(), "img": {"src", "alt", "width", "height"},
    "audio": {"controls", "preload", "src", "aria-label"},
}  # fmt: skip
VOID = {"br", "hr", "img"}


class Reader(HTMLParser):
    """Reads what a browser would: the tags, the attributes, the text outside the style; checks that tags nest."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.css = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            self.css += data
        else:
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")
