"""Results of servers that the SDK's models refuse as a whole for one bad part, made so that the rest arrives.

Invariants: a result that the models accept passes as it is. Of any other, each tool, each part of an answer, and each
field is judged by itself, by the same models. What is bad is replaced by a note in its place, or left out and named.
What was not repaired goes on to the SDK, which refuses it.

Importing this module imports the SDK.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    REQUEST_TIMEOUT,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    methods,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION
from pydantic import ValidationError

from reyn_jupyter.backends.mcp.answers import binary, sniffed
from reyn_jupyter.backends.mcp.schema_repair import UnusableSchemaError, repaired_schema
from reyn_jupyter.support.encoding import clean
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import shorten

Raw = dict[str, Any]

# Shorter than a listing of all servers waits for one, and longer than most programs take to start.
PROBE_SECONDS = 3.0
LEFT_OUT = "reyn-jupyter/left-out"  # in the `_meta` of a listing: sentences
_MODERN_FRAME: Raw = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_PLAIN = {"content", "isError"}
_MOST_KEYS = 20  # fields of one object that are tried one by one
_LONGEST_REASON = 200  # characters
_ANNOTATIONS = ("annotations", "_meta")
_TOOL = ("description", "title", "annotations", "outputSchema", "icons", "execution", "_meta")
_LISTS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "resources/list": (
        "resources",
        ("uri", "name"),
        ("title", "description", "mimeType", "size", *_ANNOTATIONS),
    ),
    "resources/templates/list": (
        "resourceTemplates",
        ("uriTemplate", "name"),
        ("title", "description", "mimeType", *_ANNOTATIONS),
    ),
    "prompts/list": ("prompts", ("name",), ("title", "description", "arguments", "_meta")),
}
_BLOCKS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": ("resource",),
}


@asynccontextmanager
async def forgiving(
    transport: AbstractAsyncContextManager[Any],
    note: Callable[[str], None],
    silent: Callable[[], None] | None = None,
) -> AsyncIterator[tuple[Any, Any]]:
    """Yield the streams of a transport, with odd results repaired on their way in.

    Args:
        note: gets what was left out or changed, in sentences.
        silent: called if the question for the newest protocol, `server/discover`, has no answer within
            `PROBE_SECONDS`. It is answered in the server's place then, and an answer that comes later is dropped. If
            None, it may take as long as the SDK waits.
    """
    results = _Results(note, silent)
    async with transport as (incoming, outgoing):
        yield _Incoming(incoming, results), _Outgoing(outgoing, results)


class _Stream:
    """One direction of a transport."""

    def __init__(self, stream: Any, results: _Results) -> None:
        self._stream = stream
        self._results = results

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Any:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)


class _Outgoing(_Stream):
    """The messages to a server; it is noted which request has which number."""

    async def send(self, item: SessionMessage) -> None:
        message, asked = item.message, self._results.asked
        if isinstance(message, JSONRPCRequest):
            asked[str(message.id)] = message.method
            if message.method == "server/discover":
                self._results.note_probe(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            asked.pop(str((message.params or {}).get("requestId")), None)
        await self._stream.send(item)


class _Incoming(_Stream):
    """The messages of a server, with its results repaired."""

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        results = self._results
        if results.is_settled:
            return results.repair(await self._stream.receive())
        with anyio.CancelScope(deadline=results.patience) as results.waiting:
            return results.repair(await self._stream.receive())
        return results.unanswered()

    def __aiter__(self) -> _Incoming:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _Results:
    """The results of one connection.

    Args:
        note: see `forgiving`.
        silent: see `forgiving`.

    Attributes:
        asked: the methods of the requests under way, by their numbers.
        patience: the time of the loop until which `server/discover` may be unanswered.
        waiting: in which the next message is waited for.
        is_settled: which protocol is spoken is known, so nothing is waited for with a bound.
    """

    def __init__(self, note: Callable[[str], None], silent: Callable[[], None] | None) -> None:
        self.asked: dict[str, str] = {}
        self.patience = math.inf
        self.waiting = anyio.CancelScope()
        self.is_settled = False
        self._probe: str | int = 0
        self._note = note
        self._silent = silent
        self._version = HANDSHAKE_PROTOCOL_VERSIONS[-1]
        self._repairs: Mapping[str, Callable[[Raw], Raw]] = {
            "initialize": self._handshake,
            "tools/list": self._tools,
            "tools/call": self._answer,
            "resources/read": self._contents,
            "prompts/get": self._prompt,
            **dict.fromkeys(_LISTS, self._left),
        }
        self._method = ""

    def note_probe(self, number: str | int) -> None:
        """Bound the wait for the answer to `server/discover`, which has this number."""
        if self._silent is not None:
            self._probe, self.patience = number, anyio.current_time() + PROBE_SECONDS
            self.waiting.deadline = self.patience

    def unanswered(self) -> SessionMessage:
        """Return the answer to `server/discover` in place of a server that does not give one."""
        self.patience = math.inf
        self.asked.pop(str(self._probe), None)
        assert self._silent is not None
        self._silent()
        error = ErrorData(code=REQUEST_TIMEOUT, message="it is not answered")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=self._probe, error=error))

    def repair(self, item: Any) -> Any:
        """Return a message, its result repaired if the SDK would refuse it."""
        message = getattr(item, "message", None)
        if getattr(message, "id", None) == self._probe:
            self.patience = math.inf
        if isinstance(message, JSONRPCResponse):
            method = self.asked.pop(str(message.id), "")
            if method in self._repairs and not self._accepts(method, message.result):
                self._method = method
                with suppress(RecursionError):  # what is too deep goes on to the SDK, which says so
                    message.result = {**self._frame, **self._repairs[method](message.result)}
            if method == "initialize":
                self._version = str(message.result.get("protocolVersion"))
            elif method == "server/discover":
                self._version = LATEST_MODERN_VERSION
            self.is_settled |= method in ("initialize", "server/discover")
        elif message is not None and hasattr(message, "error"):
            self.asked.pop(str(message.id), None)
        return item

    @property
    def _frame(self) -> Raw:
        return _MODERN_FRAME if self._version == LATEST_MODERN_VERSION else {}

    def _accepts(self, method: str, result: Raw) -> bool:
        if method == "initialize" and result.get("protocolVersion") not in HANDSHAKE_PROTOCOL_VERSIONS:
            return False
        if method == "tools/call" and not self._frame and _is_plain(result):
            return True
        return self._fault(method, result) is None

    def _fault(self, method: str, result: Raw) -> str | None:
        """Return why the SDK refuses a result, or None if it accepts it."""
        try:
            methods.parse_server_result(method, self._version, result)
        except KeyError:  # not a method of this version
            return None
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(step) for step in first["loc"][2:])
            return shorten(visible(clean(f"{place}: {first['msg']}")), _LONGEST_REASON)
        except (RecursionError, ValueError) as error:
            return f"it is nested too deep, or not JSON ({type(error).__name__})"
        return None

    def _fits(self, result: Raw) -> bool:
        """Return whether the SDK accepts a part of the present result, as a result of its own."""
        return self._fault(self._method, {**self._frame, **result}) is None

    # The handshake

    def _handshake(self, raw: Raw) -> Raw:
        if not raw.keys() & {"protocolVersion", "capabilities", "serverInfo"}:
            return raw  # an answer to something else
        told = raw.get("serverInfo")
        told = told if isinstance(told, dict) else {}
        version = _known_version(raw.get("protocolVersion"))
        if version != raw.get("protocolVersion"):
            named = _shown(raw.get("protocolVersion"))
            self._note(
                f"it names the protocol version {named}, which is not known; it is spoken to in {version}"
            )
        made: Raw = {
            "protocolVersion": version,
            "capabilities": {},
            "serverInfo": {key: _text(told.get(key)) for key in ("name", "version")},
        }
        capabilities = raw.get("capabilities")
        if not isinstance(capabilities, dict):
            self._note("it does not say what it offers; its tools are asked for")
            capabilities = {"tools": {}}
        for key, value in list(capabilities.items())[:_MOST_KEYS]:
            if value is True or value == [] or isinstance(value, str | int):
                value = {}
            if value is not None and value is not False:
                made["capabilities"][key] = {}
                self._keep(made["capabilities"], key, value, lambda each: {**made, "capabilities": each})
        self._keep(made, "instructions", raw.get("instructions"), dict)
        return made

    # Listings

    def _tools(self, raw: Raw) -> Raw:
        return self._listing(raw, "tools", self._tool)

    def _left(self, raw: Raw) -> Raw:
        key, required, optional = _LISTS[self._method]

        def one(item: Raw) -> Raw:
            made = {name: _text(item.get(name) or item.get(required[0])) for name in required}
            return self._kept(made, item, optional, lambda each: {key: [each]})

        made = self._listing(raw, key, one)
        for reason in made.get("_meta", {}).get(LEFT_OUT, ()):
            self._note(f"left out of its {key}: {reason}")
        return made

    def _listing(self, raw: Raw, key: str, one: Callable[[Raw], Raw]) -> Raw:
        items = raw.get(key, "missing")
        if isinstance(items, dict):  # by name
            items = [{"name": name, **each} for name, each in items.items() if isinstance(each, dict)]
        made: Raw = {key: []}
        left_out = []
        for number, item in enumerate(items if isinstance(items, list) else (), 1):
            try:
                if not isinstance(item, dict):
                    raise UnusableSchemaError("it is not an object")
                sound = item if self._fits({key: [item]}) else one(item)
                self._demand({key: [sound]})
            except UnusableSchemaError as error:
                name = item.get("name") if isinstance(item, dict) else None
                left_out.append(f"{_shown(name) if isinstance(name, str) else f'number {number}'}: {error}")
            else:
                made[key].append(sound)
        if left_out:
            made["_meta"] = {LEFT_OUT: left_out}
        cursor = raw.get("nextCursor")
        if isinstance(cursor, str | int) and cursor != "" and not isinstance(cursor, bool):
            made["nextCursor"] = str(cursor)
        for name in ("ttlMs", "cacheScope", "resultType"):
            self._keep(made, name, raw.get(name), dict)
        return made if items is None or isinstance(items, list) else raw

    def _tool(self, item: Raw) -> Raw:
        name = item.get("name")
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise UnusableSchemaError("it has no name")
        schema = next(
            (item[key] for key in ("inputSchema", "input_schema", "parameters") if key in item), None
        )
        made = {"name": str(name), "inputSchema": repaired_schema(schema)}
        return self._kept(made, item, _TOOL, lambda each: {"tools": [each]})

    # Answers

    def _answer(self, raw: Raw) -> Raw:
        if raw.get("resultType") not in (None, "complete"):
            return raw
        known = raw.keys() & {"content", "structuredContent", "isError"}
        content = raw.get("content")
        if not known:  # a bare value, or a form of before the first version
            content = _json({key: value for key, value in raw.items() if key != "_meta"}) if raw else None
        made: Raw = {"content": [self._block(each) for each in _listed(content)]}
        structured = raw.get("structuredContent")
        if structured is not None:
            made["structuredContent"] = structured if isinstance(structured, dict) else {"result": structured}
        failed = raw.get("isError")
        made["isError"] = (
            failed.strip().lower() in ("true", "1", "yes") if isinstance(failed, str) else bool(failed)
        )
        for name in ("_meta", "resultType"):
            self._keep(made, name, raw.get(name), dict)
        return made

    def _contents(self, raw: Raw) -> Raw:
        if "contents" not in raw:
            return raw
        made: Raw = {"contents": []}
        for item in _listed(raw.get("contents")):
            given = item if isinstance(item, dict) else {"text": _text(item)}
            made["contents"].append(self._resource(given, lambda each: {"contents": [each]}))
        for name in ("_meta", "ttlMs", "cacheScope", "resultType"):
            self._keep(made, name, raw.get(name), dict)
        return made

    def _prompt(self, raw: Raw) -> Raw:
        if "messages" not in raw:
            return raw
        made: Raw = {"messages": []}
        for message in _listed(raw.get("messages")):
            said = message if isinstance(message, dict) else {"content": message}
            role = "assistant" if said.get("role") in ("assistant", "model") else "user"
            made["messages"] += [
                {"role": role, "content": self._block(each)} for each in _listed(said.get("content"))
            ]
        for name in ("description", "_meta", "resultType"):
            self._keep(made, name, raw.get(name), dict)
        return made

    def _block(self, given: Any) -> Raw:
        """Return one part of an answer, or a note in its place."""

        def whole(block: Raw) -> Raw:
            if self._method == "prompts/get":
                return {"messages": [{"role": "user", "content": block}]}
            return {"content": [block]}

        if not isinstance(given, dict):
            return {"type": "text", "text": _text(given)}
        if self._fits(whole(given)):
            return given
        kind = given.get("type") or _kind_of(given)
        if kind not in _BLOCKS or not isinstance(kind, str):
            if isinstance(given.get("text"), str):
                return {"type": "text", "text": given["text"]}
            return {"type": "text", "text": f"A part of the unknown type {_shown(kind)}: {_json(given)}"}
        made = {"type": kind} | {key: given.get(key) for key in _BLOCKS[kind]}
        if kind == "text" and made["text"] is not None:
            made["text"] = _text(made["text"])
        elif kind in ("image", "audio") and isinstance(made["data"], str):
            mime = made["mimeType"] or given.get("mime_type") or given.get("mediaType")
            made["mimeType"] = mime if isinstance(mime, str) else sniffed(binary(made["data"]))
        elif kind == "resource_link":
            made["name"] = _text(made["name"] or made["uri"])
        elif kind == "resource" and isinstance(given.get("resource"), dict):
            made["resource"] = self._resource(
                given["resource"], lambda each: whole({"type": "resource", "resource": each})
            )
        if not self._fits(whole(made)):
            why = f"A part of the answer ({kind}) could not be read: it lacks "
            missing = [key for key in _BLOCKS[kind] if not isinstance(given.get(key), str | dict)]
            return {"type": "text", "text": why + (" and ".join(missing) or "what its type needs") + "."}
        more = ("title", "description", "mimeType", "size", *_ANNOTATIONS)
        return self._kept(made, given, more, whole)

    def _resource(self, given: Raw, whole: Callable[[Raw], Raw]) -> Raw:
        """Return the contents of a resource, or a note in their place."""
        made: Raw = {"uri": _text(given.get("uri"))}
        if isinstance(given.get("blob"), str):
            made["blob"] = given["blob"]
        elif given.get("text") is not None:
            made["text"] = _text(given["text"])
        else:
            return {
                **made,
                "text": "The content of this resource could not be read: it has no text and no blob.",
            }
        return self._kept(made, given, ("mimeType", "_meta"), whole)

    # Fields

    def _kept(self, made: Raw, given: Raw, optional: Sequence[str], whole: Callable[[Raw], Raw]) -> Raw:
        """Return an object with those of its optional fields that can be read."""
        self._demand(whole(made))
        for key in optional:
            if key not in made:
                self._keep(made, key, given.get(key), whole)
        return made

    def _keep(self, made: Raw, key: str, value: Any, whole: Callable[[Raw], Raw]) -> None:
        """Put a field into an object if it can be read; of an object in it, what can be read."""
        if value is None:
            return
        if self._fits(whole({**made, key: value})):
            made[key] = value
        elif isinstance(value, dict):
            sound = {
                name: each
                for name, each in list(value.items())[:_MOST_KEYS]
                if self._fits(whole({**made, key: {name: each}}))
            }
            if sound:
                made[key] = sound

    def _demand(self, result: Raw) -> None:
        """Raise UnusableSchemaError with the reason if a result cannot be read."""
        if (fault := self._fault(self._method, {**self._frame, **result})) is not None:
            raise UnusableSchemaError(f"it cannot be read ({fault})")


def _is_plain(result: Raw) -> bool:
    """Return whether an answer is nothing but texts, as most are: the SDK accepts those."""
    blocks = result.get("content")
    return (
        result.keys() <= _PLAIN
        and type(result.get("isError", False)) is bool
        and isinstance(blocks, list)
        and all(
            isinstance(each, dict)
            and len(each) == 2
            and each.get("type") == "text"
            and isinstance(each.get("text"), str)
            and each["text"].isascii()  # half a character is none that the SDK accepts
            for each in blocks
        )
    )


def _known_version(named: Any) -> str:
    """Return the newest known version of the protocol up to a named one, else the oldest."""
    known = sorted(HANDSHAKE_PROTOCOL_VERSIONS)
    if not isinstance(named, str):
        return known[-1]
    return max((each for each in known if each <= named), default=known[0])


def _kind_of(block: Raw) -> str | None:
    """Return the type of a part that names none."""
    if "text" in block:
        return "text"
    if "resource" in block:
        return "resource"
    mime = block.get("mimeType")
    family = mime.partition("/")[0] if isinstance(mime, str) else ""
    return family if family in ("image", "audio") and "data" in block else None


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shown(value: Any) -> str:
    return shorten(visible(clean(_text(value))), 100)
