"""What a server on this machine says of the models that it serves: names, context lengths, what runs now and where.

Invariants: a server is asked without a proxy or a redirect, and an answer is read up to a bound of bytes and within a
time, however slowly it comes and however it is packed. What a server does not say, or says in another shape, is not
known. Sources: ollama/ollama, api/types.go and openai/openai.go; llama.cpp, README of its server; LM Studio, REST
API v0; vLLM, entrypoints/openai.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

LARGEST_ANSWER = 1_000_000  # bytes
NOTHING = "nothing answers"
_PATIENCE = 3.0  # seconds for all that is asked of a context length
_OLLAMA_DEFAULT = 4_096  # tokens, where neither model nor server says otherwise. Source: Ollama, FAQ
_LARGEST_CONTEXT = 100_000_000  # tokens: beyond it, nobody counted
_OWNERS = {"library": "Ollama", "llamacpp": "llama.cpp", "vllm": "vLLM", "organization_owner": "LM Studio"}


class NoAnswerError(Exception):
    """The server gave no answer that can be used; says why, in words of its own."""


@dataclass(frozen=True)
class ServedModel:
    """A model as its server lists it.

    Attributes:
        context: tokens that it takes; None where the server does not say.
        loaded: whether it is known to be in memory.
        chats: whether it answers; False for one that makes embeddings.
        runs_at: the host where it runs when that is not this machine (Ollama's cloud models); empty otherwise.
    """

    name: str
    context: int | None = None
    loaded: bool = False
    chats: bool = True
    runs_at: str = ""


@dataclass(frozen=True)
class ServedModels:
    """What a server lists.

    Attributes:
        program: "Ollama", "llama.cpp", "LM Studio", "vLLM" or "OpenAI protocol".
    """

    program: str
    models: tuple[ServedModel, ...]

    def named(self, name: str) -> ServedModel | None:
        """Return the model of a name, which may lack Ollama's tag latest; the only one where the server calls it
        otherwise."""
        found = [each for each in self.models if each.name in (name, f"{name}:latest")]
        return next(iter(found or (self.models if len(self.models) == 1 else ())), None)


class ModelsServer:
    """A server of models. Made by `models_server`.

    Args:
        client: sends requests.
        root: its address, without a path.
    """

    def __init__(self, client: Any, root: str) -> None:
        self._client, self._root = client, root

    async def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of an answer: of a GET, or of a POST where there is a body. Raises NoAnswerError."""
        import httpx

        content = bytearray()
        method = "GET" if body is None else "POST"
        try:
            async with self._client.stream(method, f"{self._root}{path}", json=body) as answer:
                async for piece in answer.aiter_raw(65_536):  # unpacked it could be a thousand times as much
                    content += piece
                    if len(content) > LARGEST_ANSWER:
                        raise NoAnswerError(f"it answers more than {LARGEST_ANSWER // 1_000_000} MB")
        except httpx.ConnectError:
            raise NoAnswerError(NOTHING) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NoAnswerError(f"it answers, and is no server of models ({type(error).__name__})") from None
        if answer.status_code in (401, 403):
            raise NoAnswerError(f"it wants a key: status {answer.status_code}")
        if answer.status_code != 200:
            raise NoAnswerError(f"it refuses: status {answer.status_code}")
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise NoAnswerError("it answers, and is no server of models") from None

    async def models(self) -> ServedModels:
        """Return what it lists. Raises NoAnswerError: it lists nothing that is a model."""
        data = _at(await self.ask("/v1/models"), "data")
        entries = list(_by_name(data, "id").values())
        if not isinstance(data, list) or (data and not entries):
            raise NoAnswerError("it answers, and is no server of models")
        owners = [str(each.get("owned_by")) for each in entries]
        program = next((_OWNERS[each] for each in owners if each in _OWNERS), "")
        if not program:  # Ollama names whoever made a model as its owner
            program = "OpenAI protocol" if await self._part("/api/version", "version") is None else "Ollama"
        models = [_entry(each) for each in entries]
        if program == "Ollama":
            models = await self._ollama(models)
        elif program == "LM Studio":
            models = await self._lm_studio(models)
        elif program == "llama.cpp" and len(models) == 1 and models[0].context is None:
            length = _tokens(await self._part("/props", "default_generation_settings", "n_ctx"))
            trained = _tokens(_at(entries[0], "meta", "n_ctx_train"))
            models = [replace(models[0], context=length or trained)]
        return ServedModels(program, tuple(models))

    async def context(self, name: str) -> int | None:
        """Return how many tokens a model takes; None where the server does not say. Raises NoAnswerError."""
        served = await self.models()
        found = served.named(name)
        if found is not None and found.context is not None:
            return found.context
        return await self._ollama_context(name) if served.program == "Ollama" else None

    async def _ollama(self, models: list[ServedModel]) -> list[ServedModel]:
        tags = _by_name(await self._part("/api/tags", "models"), "name")
        running = _by_name(await self._part("/api/ps", "models"), "name")
        return [
            replace(
                each,
                context=_tokens(_at(running.get(each.name), "context_length")),
                loaded=each.name in running,
                chats=_chats(_at(tags.get(each.name), "capabilities")),
                runs_at=str(
                    _at(tags.get(each.name), "remote_host")
                    or ("another host" if _at(tags.get(each.name), "remote_model") else "")
                ),
            )
            for each in models
        ]

    async def _ollama_context(self, name: str) -> int | None:
        """Return what Ollama will give a model that does not run: what is set for it, else what Ollama itself gives."""
        shown = await self.ask("/api/show", {"model": name})
        set_ = re.search(r"^num_ctx\s+(\d{1,9})$", str(_at(shown, "parameters") or ""), re.MULTILINE)
        if set_ is not None:
            return _tokens(set_[1])
        facts = _at(shown, "model_info")
        pairs = facts.items() if isinstance(facts, dict) else ()
        own = [_tokens(value) for key, value in pairs if str(key).endswith(".context_length")]
        return min(filter(None, (_OLLAMA_DEFAULT, *own))) if isinstance(shown, dict) else None

    async def _lm_studio(self, models: list[ServedModel]) -> list[ServedModel]:
        listed = _by_name(await self._part("/api/v0/models", "data"), "id")
        return [
            replace(
                each,
                context=_tokens(_at(listed.get(each.name), "loaded_context_length"))
                or _tokens(_at(listed.get(each.name), "max_context_length")),
                loaded=_at(listed.get(each.name), "state") == "loaded",
                chats=_at(listed.get(each.name), "type") != "embeddings",
            )
            for each in models
        ]

    async def _part(self, path: str, *keys: str) -> Any:
        """Return a part of an answer; None where there is none."""
        try:
            return _at(await self.ask(path), *keys)
        except NoAnswerError:
            return None


@asynccontextmanager
async def models_server(root: str, key: str | None = None) -> AsyncIterator[ModelsServer]:
    """Reach a server on this machine.

    Args:
        root: its address, as "http://127.0.0.1:8080".
        key: what it wants to see; sent nowhere else.

    Example:
        >>> async with models_server("http://127.0.0.1:11434") as server:   # doctest: +SKIP
        ...     (await server.models()).program
        'Ollama'
    """
    import ssl

    import httpx  # LiteLLM brings it along

    # Reading the authorities' certificates takes longer than most answers, and plain HTTP needs none.
    trust = True if root.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    headers: dict[bytes, bytes] = {b"Accept-Encoding": b"identity"}
    if key:
        # As bytes, since httpx takes no text beyond ASCII.
        headers[b"Authorization"] = f"Bearer {key}".encode("utf-8", "replace")
    async with httpx.AsyncClient(
        trust_env=False, follow_redirects=False, timeout=60, headers=headers, verify=trust
    ) as client:
        yield ModelsServer(client, root)


async def served_context(base: str, model: str, key: str | None = None) -> int | None:
    """Ask a server on this machine how many tokens a model of it takes.

    Args:
        base: the address of its OpenAI protocol, or the one of Ollama.
        model: the model's name there.
        key: what the server wants to see.

    Returns:
        None where it does not say, or not in time.
    """
    root = base.rstrip("/").removesuffix("/v1")
    try:
        async with models_server(root, key) as server, asyncio.timeout(_PATIENCE):
            return await server.context(model)
    except (TimeoutError, NoAnswerError):
        return None


def _entry(listed: Mapping[str, Any]) -> ServedModel:
    """Return what an entry of the OpenAI protocol's list says; vLLM and llama.cpp add their own to it."""
    context = _tokens(listed.get("max_model_len")) or _tokens(_at(listed, "meta", "n_ctx"))
    return ServedModel(listed["id"], context, loaded=_at(listed, "status", "value") == "loaded")


def _chats(capabilities: Any) -> bool:
    """Return whether a model of these capabilities answers; one of an Ollama that names none may."""
    return not isinstance(capabilities, list) or not capabilities or "completion" in capabilities


def _by_name(given: Any, key: str) -> dict[str, dict[str, Any]]:
    """Name → entry of a list, of those whose name is a text that can be sent back."""
    entries = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    return {each[key]: each for each in entries if isinstance(each.get(key), str) and _is_unicode(each[key])}


def _is_unicode(text: str) -> bool:
    """Return whether a text holds no half of a character, which JSON may name and nothing can send."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _tokens(value: Any) -> int | None:
    """Return a number of tokens that can be one; None for anything else."""
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if 0 < found <= _LARGEST_CONTEXT else None
