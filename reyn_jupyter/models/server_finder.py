"""Find servers of language models on this machine, and what their models can do, by trying.

Invariants: only addresses of this machine are asked, by their number, without a proxy, a redirect or a key. An answer
is read up to a bound and within a time; whatever else comes is a sentence in the result, and nothing is raised for it.
Sources of the paths and fields: the API references of Ollama, llama.cpp's server, LM Studio and vLLM.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.models.base import ModelError

PORTS = {11434: "Ollama", 8080: "llama.cpp", 1234: "LM Studio", 8000: "vLLM"}
LOOK = 1.5  # seconds for the question which models there are
TRY = 60.0  # seconds for all that is tried with one server
TRIED = 3  # models of a server at most
LISTED = 20  # models of a server at most
LARGEST = 1_000_000  # bytes of an answer
_TOKENS = 48
_OWNERS = {"library": "Ollama", "llamacpp": "llama.cpp", "vllm": "vLLM", "organization_owner": "LM Studio"}
_PLAIN_NAME = re.compile(r"[\w./:@+-]{1,200}")
_MOOD: dict[str, Any] = {
    "type": "object",
    "properties": {"mood": {"type": "string", "enum": ["good", "bad"]}},
    "required": ["mood"],
    "additionalProperties": False,
}
_REPORT = {
    "type": "function",
    "function": {"name": "report", "description": "Report how you are.", "parameters": _MOOD},
}
_ASKED = [{"role": "user", "content": "Hi."}]


class _NoAnswerError(Exception):
    """The server gave no answer that can be used; says why."""


@dataclass(frozen=True)
class FoundModel:
    """A model of a server, or, without a name, a server that could not be used.

    Attributes:
        server: the program, as far as it says so.
        address: its host and port.
        context: tokens that it takes; None where the server does not say.
        tools: whether tools that are sent reach it; None where that was not tried.
        forced: how a call of a tool can be forced: "by name", "sent alone", "by JSON schema" or "no"; None likewise.
        schema: whether an answer keeps to a JSON schema; None likewise.
        note: what is to be known besides.
    """

    server: str
    address: str
    model: str = ""
    context: int | None = None
    tools: bool | None = None
    forced: str | None = None
    schema: bool | None = None
    note: str = ""

    @property
    def line(self) -> str:
        """The line that makes it the model of the tier `light`; empty where there is none."""
        if not _PLAIN_NAME.fullmatch(self.model):
            return ""
        # This provider of LiteLLM's is any server of the protocol, and no key of the environment goes to it.
        entry = f"{{model: hosted_vllm/{self.model}, api_base: http://{self.address}/v1}}"
        return f"%reyn config models.light {entry}"


async def find_servers(
    addresses: Sequence[str] = (),
    *,
    quick: bool = False,
    models: Collection[str] = (),
    tell: Callable[[str], None] = lambda what: None,
) -> tuple[FoundModel, ...]:
    """Ask for models at addresses of this machine, and try what they can do.

    Args:
        addresses: as "127.0.0.1:8080", "localhost:8080" or "8080"; the usual ports when there are none.
        quick: try nothing; only list the models.
        models: try these, and not the first few.
        tell: hears of each model that is about to be tried.

    Returns:
        The models, by address; for an address that was given and has none, why.

    Raises:
        ModelError: an address is none, or one of another machine.

    Example:
        >>> asyncio.run(find_servers(["127.0.0.1:9"]))[0].note
        'nothing answers'
    """
    import httpx  # LiteLLM brings it along

    places = [_place(each) for each in addresses] or [f"127.0.0.1:{port}" for port in PORTS]
    async with httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=TRY) as client:
        asked = [_Server(client, place) for place in dict.fromkeys(places)]
        found = await asyncio.gather(*(each.look() for each in asked))
        if not quick:
            for server, listed in zip(asked, found, strict=True):
                listed[:] = await server.tried(listed, models, tell)
    given = bool(addresses)
    return tuple(model for listed in found for model in listed if given or model.note != _NOTHING)


_NOTHING = "nothing answers"


class _Server:
    """One address.

    Args:
        client: sends requests.
        address: host and port.
    """

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address
        self._program = PORTS.get(int(address.rpartition(":")[2]), "unknown")

    async def look(self) -> list[FoundModel]:
        """Return the models that it says it has; one without a name where it has none."""
        try:
            async with asyncio.timeout(LOOK):
                return await self._models()
        except TimeoutError:
            return [self._none(f"no answer within {LOOK} s")]
        except _NoAnswerError as problem:
            return [self._none(str(problem))]

    async def _models(self) -> list[FoundModel]:
        listed = await self._ask("GET", "/v1/models")
        data = listed.get("data") if isinstance(listed, dict) else None
        named = [each for each in data or () if isinstance(each, dict) and isinstance(each.get("id"), str)]
        if not isinstance(data, list) or (data and not named):
            raise _NoAnswerError("it answers, and is no server of models")
        if not named:
            return [self._none("it has no model")]
        self._program = next(
            (_OWNERS[str(each.get("owned_by"))] for each in named if str(each.get("owned_by")) in _OWNERS),
            "OpenAI protocol",
        )
        loaded, lengths = await self._facts()
        named.sort(key=lambda each: each["id"] not in loaded)
        return [
            FoundModel(
                self._program,
                self._address,
                each["id"],
                _length(each.get("max_model_len")) or lengths.get(each["id"]) or lengths.get(""),
            )
            for each in named[:LISTED]
        ]

    async def _facts(self) -> tuple[set[str], dict[str, int]]:
        """Return which models are loaded, and context lengths by model ("" for the only one), where it says so."""
        loaded: set[str] = set()
        lengths: dict[str, int] = {}
        try:
            if self._program == "Ollama":
                for each in _dicts((await self._ask("GET", "/api/ps")).get("models")):
                    loaded.add(str(each.get("name")))
                    _note(lengths, str(each.get("name")), each.get("context_length"))
            elif self._program == "LM Studio":
                for each in _dicts((await self._ask("GET", "/api/v0/models")).get("data")):
                    if each.get("state") == "loaded":
                        loaded.add(str(each.get("id")))
                    _note(
                        lengths,
                        str(each.get("id")),
                        each.get("loaded_context_length") or each.get("max_context_length"),
                    )
            elif self._program == "llama.cpp":
                said = (await self._ask("GET", "/props")).get("default_generation_settings")
                _note(lengths, "", said.get("n_ctx") if isinstance(said, dict) else None)
        except (_NoAnswerError, AttributeError):
            pass  # what it does not say is not known
        return loaded, lengths

    async def tried(
        self, models: list[FoundModel], wanted: Collection[str], tell: Callable[[str], None]
    ) -> list[FoundModel]:
        """Return the models with what the first few of them can do."""
        done: list[FoundModel] = []
        end = asyncio.get_running_loop().time() + TRY
        for place, model in enumerate(models):
            if not model.model or (model.model not in wanted if wanted else place >= TRIED):
                done.append(model)
                continue
            tell(f"{model.model} at {self._address}")
            try:
                async with asyncio.timeout_at(end):
                    done.append(await self._tried(model))
            except TimeoutError:
                done.append(_with(model, note=f"not tried to the end: slower than {TRY:.0f} s"))
            except _NoAnswerError as problem:
                done.append(_with(model, note=str(problem)))
        return done

    async def _tried(self, model: FoundModel) -> FoundModel:
        bare = await self._complete(model.model, max_tokens=1)
        named = await self._attempt(
            model, tools=[_REPORT], tool_choice={"type": "function", "function": {"name": "report"}}
        )
        alone = None if _calls(named) else await self._attempt(model, tools=[_REPORT], tool_choice="required")
        wanted = {"type": "json_schema", "json_schema": {"name": "report", "schema": _MOOD}}
        schema = _is_mood(_message(await self._attempt(model, response_format=wanted)).get("content"))
        called = _calls(named) or _calls(alone)
        forced = (
            "by name" if _calls(named) else "sent alone" if called else "by JSON schema" if schema else "no"
        )
        read = max(_read(named), _read(alone)) > _read(bare) > 0
        return _with(model, tools=called or read, forced=forced, schema=schema)

    async def _attempt(self, model: FoundModel, **more: Any) -> Any:
        """Return the answer to a tiny request; an empty one where it is refused."""
        try:
            return await self._complete(model.model, **more)
        except _NoAnswerError:
            return {}

    async def _complete(self, model: str, **more: Any) -> Any:
        asked = {"model": model, "messages": _ASKED, "max_tokens": _TOKENS, "temperature": 0, **more}
        return await self._ask("POST", "/v1/chat/completions", asked)

    async def _ask(self, method: str, path: str, body: object = None) -> Any:
        """Return the JSON of an answer. Raises _NoAnswerError."""
        import httpx

        content = bytearray()
        try:
            async with self._client.stream(method, f"http://{self._address}{path}", json=body) as answer:
                async for piece in answer.aiter_bytes(65_536):
                    content += piece
                    if len(content) > LARGEST:
                        raise _NoAnswerError(f"it answers more than {LARGEST // 1_000_000} MB")
        except httpx.ConnectError:
            raise _NoAnswerError(_NOTHING) from None
        except httpx.HTTPError as error:
            raise _NoAnswerError(f"it answers, and is no server of models ({type(error).__name__})") from None
        if answer.status_code != 200:
            raise _NoAnswerError(f"it refuses: status {answer.status_code}")
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise _NoAnswerError("it answers, and is no server of models") from None

    def _none(self, note: str) -> FoundModel:
        return FoundModel(self._program, self._address, note=note)


def _place(given: str) -> str:
    """Return host and port of an address of this machine. Raises ModelError."""
    text = given.strip().removeprefix("http://").partition("/")[0]
    host, _, port = text.rpartition(":")
    host = {"": "127.0.0.1", "localhost": "127.0.0.1"}.get(host, host)
    try:
        here = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        here = False
    if not here:
        raise ModelError(
            "configuration",
            f"{given!r} is no address of this machine.",
            "Give a port, as 8080 or 127.0.0.1:8080; other machines are never asked.",
        )
    if not (port.isascii() and port.isdecimal() and len(port) < 6 and 0 < int(port) < 65_536):
        raise ModelError("configuration", f"{given!r} has no port.", "Give it, as 127.0.0.1:8080.")
    return f"{host}:{int(port)}"


def _with(model: FoundModel, **more: Any) -> FoundModel:
    return FoundModel(**{**model.__dict__, **more})


def _dicts(given: object) -> list[dict[str, Any]]:
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def _length(given: object) -> int | None:
    return given if isinstance(given, int) and not isinstance(given, bool) and 0 < given < 10**9 else None


def _note(lengths: dict[str, int], name: str, given: object) -> None:
    length = _length(given)
    if length is not None:
        lengths[name] = length


def _message(answer: object) -> dict[str, Any]:
    choices = _dicts(answer.get("choices")) if isinstance(answer, dict) else []
    message = choices[0].get("message") if choices else None
    return message if isinstance(message, dict) else {}


def _calls(answer: object) -> bool:
    """Return whether an answer calls the tool."""
    functions = [each.get("function") for each in _dicts(_message(answer).get("tool_calls"))]
    return any(isinstance(each, dict) and each.get("name") == "report" for each in functions)


def _is_mood(text: object) -> bool:
    try:
        said = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and said.keys() == {"mood"} and said["mood"] in ("good", "bad")


def _read(answer: object) -> int:
    usage = answer.get("usage") if isinstance(answer, dict) else None
    return _length(usage.get("prompt_tokens")) or 0 if isinstance(usage, dict) else 0
