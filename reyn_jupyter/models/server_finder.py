"""Find servers of language models on this machine, and what their models can do, by trying.

Invariants: only addresses of this machine are asked, by their number and without a key, each by a client of its own;
what comes back is bounded in bytes and time, and whatever else it is becomes a sentence in the result. A model that its
server runs on another machine is not tried, since that would send something there. How a server is asked, and what its
fields mean, is in `models.served_models`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.served_models import (
    NOTHING,
    ModelsServer,
    NoAnswerError,
    ServedModel,
    models_server,
)
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import shorten

PORTS = {11434: "Ollama", 8080: "llama.cpp", 1234: "LM Studio", 8000: "vLLM"}
LOOK = 3.0  # seconds for the question which models there are
TRY = 60.0  # seconds for all that is tried with one server
TRIED = 3  # models of a server at most
LISTED = 20  # models of a server at most
_TOKENS = 48
_PLAIN_NAME = re.compile(r"[\w./:@+-]{0,199}[\w./@+-]")
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


@dataclass(frozen=True)
class FoundModel:
    """A model of a server, or, without a name, a server that could not be used.

    Attributes:
        server: the program, as far as it says so.
        address: its host and port.
        model: its name, as its server writes it.
        context: tokens that it takes; None where the server does not say.
        tools: whether tools that are sent reach it; None where that was not tried.
        forced: how a call of a tool can be forced: "by name", "sent alone", "by JSON schema" or "no"; None likewise.
        schema: whether an answer keeps to a JSON schema; None likewise.
        note: what is to be known besides.
        usable: whether it answers, and on this machine.
    """

    server: str
    address: str
    model: str = ""
    context: int | None = None
    tools: bool | None = None
    forced: str | None = None
    schema: bool | None = None
    note: str = ""
    usable: bool = True

    @property
    def line(self) -> str:
        """The line that makes it the model of the tier `light`; empty where there is none."""
        if not self.usable or not _PLAIN_NAME.fullmatch(self.model):
            return ""
        # This provider of LiteLLM's is any server of the protocol, and no key of the environment goes to it.
        entry = f"{{model: hosted_vllm/{self.model}, api_base: http://{self.address}/v1}}"
        return f"%reyn config models.light {entry}"


async def find_servers(addresses: Sequence[str] = (), *, quick: bool = False) -> tuple[FoundModel, ...]:
    """Ask for models at addresses of this machine, and try what they can do.

    Args:
        addresses: as "127.0.0.1:8080", "localhost:8080" or "8080"; the usual ports when there are none.
        quick: try nothing; only list the models.

    Returns:
        The models, by address; for an address that was given and has none, why.

    Raises:
        ModelError: an address is none, or one of another machine.

    Example:
        >>> asyncio.run(find_servers(["127.0.0.1:9"]))[0].note
        'nothing answers'
    """
    places = dict.fromkeys([_place(each) for each in addresses] or [f"127.0.0.1:{port}" for port in PORTS])
    asked = [_Finder(place) for place in places]
    found = await asyncio.gather(*(each.look() for each in asked))
    if not quick:
        found = [await finder.tried(listed) for finder, listed in zip(asked, found, strict=True)]
    given = bool(addresses)
    return tuple(model for listed in found for model in listed if given or model.note != NOTHING)


class _Finder:
    """Looks at one address: host and port."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._program = PORTS.get(int(address.rpartition(":")[2]), "unknown")

    async def look(self) -> list[FoundModel]:
        """Return the models that it says it has; one without a name where it has none."""
        try:
            async with models_server(f"http://{self._address}") as server, asyncio.timeout(LOOK):
                served = await server.models()
        except TimeoutError:
            return [self._none(f"no answer within {LOOK} s")]
        except NoAnswerError as problem:
            return [self._none(str(problem))]
        if not served.models:
            return [self._none("it has no model")]
        self._program = served.program
        models = sorted(served.models, key=lambda each: not each.loaded)
        listed = [self._found(each) for each in models[:LISTED]]
        if len(models) > LISTED:
            listed[-1] = replace(listed[-1], note=f"the last of {LISTED} shown, of {len(models)}")
        return listed

    def _found(self, model: ServedModel) -> FoundModel:
        found = FoundModel(self._program, self._address, model.name, model.context)
        if model.runs_at:
            where = shorten(printable(model.runs_at), 60)
            return replace(found, note=f"runs on another machine ({where}): not tried", usable=False)
        return found if model.chats else replace(found, note="makes embeddings, no answers", usable=False)

    async def tried(self, models: list[FoundModel]) -> list[FoundModel]:
        """Return the models with what the first few of them can do."""
        able = [each for each in models if each.model and each.usable]
        done = {each.model: each for each in models}
        end = asyncio.get_running_loop().time() + TRY
        async with models_server(f"http://{self._address}") as server:
            for model in able[:TRIED]:
                trial = _Trial(server, model)
                try:
                    async with asyncio.timeout_at(end):
                        await trial.run()
                except TimeoutError:
                    note = f"not tried to the end: slower than {TRY:.0f} s"
                    trial.found = replace(trial.found, note=note)
                except NoAnswerError as problem:
                    trial.found = replace(trial.found, note=str(problem))
                done[model.model] = trial.found
        return list(done.values())

    def _none(self, note: str) -> FoundModel:
        return FoundModel(self._program, self._address, note=note)


class _Trial:
    """Tries one model.

    Attributes:
        found: what is known so far.
    """

    def __init__(self, server: ModelsServer, model: FoundModel) -> None:
        self._server = server
        self.found = model

    async def run(self) -> None:
        """Send a few tiny requests, what costs least first. Raises NoAnswerError: it does not even answer."""
        bare = await self._complete(max_tokens=1)
        offered = await self._attempt(tools=[_REPORT], max_tokens=1)
        self._note(tools=_read(offered) > _read(bare) > 0)
        wanted = {"type": "json_schema", "json_schema": {"name": "report", "schema": _MOOD}}
        schema = _is_mood(_message(await self._attempt(response_format=wanted)).get("content"))
        self._note(schema=schema)
        by_name = {"type": "function", "function": {"name": "report"}}
        forced = "by JSON schema" if schema else "no"
        for how, choice in (("by name", by_name), ("sent alone", "required")):
            if _calls(await self._attempt(tools=[_REPORT], tool_choice=choice)):
                forced = how
                break
        self._note(forced=forced, tools=self.found.tools or forced in ("by name", "sent alone"))
        # Now that it answered it is loaded, and its server knows with what length.
        context = await self._server.context(self.found.model)
        self._note(context=context or self.found.context)

    def _note(self, **facts: Any) -> None:
        self.found = replace(self.found, **facts)

    async def _attempt(self, **more: Any) -> Any:
        """Return the answer to a tiny request; an empty one where it is refused."""
        try:
            return await self._complete(**more)
        except NoAnswerError:
            return {}

    async def _complete(self, **more: Any) -> Any:
        asked = {
            "model": self.found.model,
            "messages": _ASKED,
            "max_tokens": _TOKENS,
            "temperature": 0,
            **more,
        }
        return await self._server.ask("/v1/chat/completions", asked)


def _place(given: str) -> str:
    """Return host and port of an address of this machine. Raises ModelError."""
    text = given.strip().removeprefix("http://").partition("/")[0]
    host, _, port = text.rpartition(":")
    host = {"": "127.0.0.1", "localhost": "127.0.0.1"}.get(host, host).strip("[]")
    try:
        here = ipaddress.ip_address(host).is_loopback
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
    return f"[{host}]:{int(port)}" if ":" in host else f"{host}:{int(port)}"


def _dicts(given: object) -> list[dict[str, Any]]:
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


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
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) else 0
