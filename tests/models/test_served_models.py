"""What servers of models say of their models: answers as the programs give them, and answers as an attacker would."""

from __future__ import annotations

import asyncio
import socketserver
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reyn_jupyter.models import served_models
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel
from reyn_jupyter.models.providers.provider_facts import PROVIDERS
from reyn_jupyter.models.served_models import ServedModel, models_server, served_context
from tests.support.answering_server import answering, sends, tells
from tests.support.waiting import PATIENCE


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers of a machine that is slow and busy are waited for."""
    monkeypatch.setattr(served_models, "_PATIENCE", PATIENCE)


# llama.cpp, b6000 and later: GET /v1/models and /props as a real server gave them, shortened.
LLAMA = {
    "/v1/models": {
        "models": [{"name": "a.gguf", "model": "a.gguf", "capabilities": ["completion"]}],
        "object": "list",
        "data": [
            {
                "id": "a.gguf",
                "object": "model",
                "created": 1795730500,
                "owned_by": "llamacpp",
                "meta": {
                    "vocab_type": 2,
                    "n_vocab": 49152,
                    "n_ctx": 4096,
                    "n_ctx_train": 8192,
                    "n_embd": 576,
                },
            }
        ],
    },
    "/props": {
        "default_generation_settings": {"params": {"max_tokens": -1}, "n_ctx": 4096},
        "total_slots": 1,
        "model_path": "a.gguf",
    },
}
# Earlier ones say in the list what the model was trained on alone.
OLD_LLAMA = {
    **LLAMA,
    "/v1/models": {
        "object": "list",
        "data": [{"id": "a.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 8192}}],
    },
}
# A router of several models: nothing in it has a length of its own.
LLAMA_ROUTER = {
    "/v1/models": {
        "data": [
            {"id": "x", "owned_by": "llamacpp", "status": {"value": "unloaded", "args": ["llama-server"]}},
            {"id": "y", "owned_by": "llamacpp", "status": {"value": "loaded", "args": ["llama-server"]}},
        ]
    },
    "/props": {"role": "router", "max_instances": 4},
}
VLLM = {
    "/v1/models": {
        "object": "list",
        "data": [
            {
                "id": "Qwen/Qwen2.5-0.5B-Instruct",
                "object": "model",
                "created": 1790147847,
                "owned_by": "vllm",
                "root": "Qwen/Qwen2.5-0.5B-Instruct",
                "parent": None,
                "max_model_len": 2048,
                "permission": [{"id": "modelperm-1", "object": "model_permission", "is_blocking": False}],
            }
        ],
    }
}
LM_STUDIO = {
    "/v1/models": {
        "object": "list",
        "data": [
            {"id": name, "object": "model", "owned_by": "organization_owner"}
            for name in ("qwen3-8b", "gemma-3-4b", "text-embedding-nomic-embed-text-v1.5")
        ],
    },
    "/api/v0/models": {
        "object": "list",
        "data": [
            {
                "id": "qwen3-8b",
                "object": "model",
                "type": "llm",
                "compatibility_type": "gguf",
                "state": "loaded",
                "max_context_length": 131072,
                "loaded_context_length": 8192,
            },
            {"id": "gemma-3-4b", "type": "vlm", "state": "not-loaded", "max_context_length": 32768},
            {
                "id": "text-embedding-nomic-embed-text-v1.5",
                "type": "embeddings",
                "state": "not-loaded",
                "max_context_length": 2048,
            },
        ],
    },
}
OLLAMA = {
    "/v1/models": {
        "object": "list",
        "data": [
            {"id": "mattw/pygmalion:latest", "object": "model", "created": 1780200000, "owned_by": "mattw"},
            {"id": "qwen2.5:7b", "object": "model", "created": 1780200000, "owned_by": "library"},
            {"id": "nomic-embed-text:latest", "object": "model", "owned_by": "library"},
            {"id": "glm-5.1:cloud", "object": "model", "owned_by": "library"},
        ],
    },
    "/api/version": {"version": "0.13.0"},
    "/api/tags": {
        "models": [
            {
                "name": "mattw/pygmalion:latest",
                "model": "mattw/pygmalion:latest",
                "details": {"format": "gguf"},
            },
            {
                "name": "qwen2.5:7b",
                "model": "qwen2.5:7b",
                "size": 4683087332,
                "details": {"format": "gguf", "parameter_size": "7.6B", "context_length": 32768},
                "capabilities": ["completion", "tools"],
            },
            {"name": "nomic-embed-text:latest", "size": 274000000, "capabilities": ["embedding"]},
            {"name": "glm-5.1:cloud", "remote_model": "glm-5.1", "remote_host": "https://ollama.com:443"},
        ]
    },
    "/api/ps": {
        "models": [
            {"name": "qwen2.5:7b", "model": "qwen2.5:7b", "size_vram": 5137025024, "context_length": 16384}
        ]
    },
    # As of a POST, with the parameters in columns.
    "/api/show": {
        "parameters": 'num_keep                       24\nstop                           "<|eot_id|>"',
        "details": {"family": "llama", "context_length": 8192},
        "model_info": {
            "general.architecture": "llama",
            "llama.context_length": 8192,
            "llama.block_count": 32,
        },
        "capabilities": ["completion", "tools"],
    },
}


@pytest.mark.parametrize(
    ("facts", "program", "models"),
    [
        (LLAMA, "llama.cpp", [ServedModel("a.gguf", 4096)]),
        (OLD_LLAMA, "llama.cpp", [ServedModel("a.gguf", 4096)]),
        (LLAMA_ROUTER, "llama.cpp", [ServedModel("x"), ServedModel("y", loaded=True)]),
        (VLLM, "vLLM", [ServedModel("Qwen/Qwen2.5-0.5B-Instruct", 2048)]),
        (
            LM_STUDIO,
            "LM Studio",
            [
                ServedModel("qwen3-8b", 8192, loaded=True),
                ServedModel("gemma-3-4b", 32768),
                ServedModel("text-embedding-nomic-embed-text-v1.5", 2048, chats=False),
            ],
        ),
        (
            OLLAMA,
            "Ollama",
            [
                ServedModel("mattw/pygmalion:latest"),
                ServedModel("qwen2.5:7b", 16384, loaded=True),
                ServedModel("nomic-embed-text:latest", chats=False),
                ServedModel("glm-5.1:cloud", runs_at="https://ollama.com:443"),
            ],
        ),
    ],
)
async def test_each_program_s_list_is_read(
    facts: Mapping[str, Any], program: str, models: list[ServedModel]
) -> None:
    with answering(tells(facts)) as (address, _):
        async with models_server(f"http://{address}") as server:
            served = await server.models()

    assert (served.program, list(served.models)) == (program, models)


RUNNING = {"models": [{"name": "mattw/pygmalion:latest", "context_length": 9000}]}
PARAMETERS = {"parameters": "num_ctx                        2048\ntemperature 0.7"}


@pytest.mark.parametrize(
    ("facts", "model", "length"),
    [
        (LLAMA, "whatever it is called here", 4096),
        (OLD_LLAMA, "a.gguf", 4096),
        ({"/v1/models": OLD_LLAMA["/v1/models"]}, "a.gguf", 8192),
        (LLAMA_ROUTER, "y", None),
        (VLLM, "Qwen/Qwen2.5-0.5B-Instruct", 2048),
        (LM_STUDIO, "qwen3-8b", 8192),
        (LM_STUDIO, "gemma-3-4b", 32768),
        (OLLAMA, "qwen2.5:7b", 16384),
        (OLLAMA, "mattw/pygmalion:latest", 4096),  # what Ollama gives unless it is told otherwise
        ({**OLLAMA, "/api/show": PARAMETERS}, "mattw/pygmalion:latest", 2048),
        ({**OLLAMA, "/api/ps": RUNNING}, "mattw/pygmalion", 9000),
        ({"/v1/models": {"data": [{"id": "one"}, {"id": "two"}]}}, "three", None),
        ({"/v1/models": ["no list of models"]}, "one", None),
        ({"/v1/models": {"data": [{"id": "one", "max_model_len": "1e999"}]}}, "one", None),
        ({"/v1/models": {"data": [{"id": "one", "max_model_len": 10**30}]}}, "one", None),
        ({"/v1/models": {"data": [{"id": "one", "meta": [1], "max_model_len": -5}]}}, "one", None),
    ],
)
async def test_a_server_says_what_its_model_takes(
    facts: Mapping[str, Any], model: str, length: int | None
) -> None:
    with answering(tells(facts)) as (address, _):
        assert await served_context(f"http://{address}/v1", model) == length


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[" * 100_000,
        b" " * 2_000_000,
        b'{"data": [{"id": 3}]}',
        b"\xff",
        b'{"data": [{"id": "\\ud800"}]}',
    ],
)
async def test_garbage_is_not_known(body: bytes) -> None:
    with answering(sends(body)) as (address, _):
        assert await served_context(f"http://{address}", "one") is None


@pytest.mark.parametrize("name", [[], {}, None, "\ud800"])
@pytest.mark.parametrize(
    ("owner", "path", "entries", "key"),
    [
        ("library", "/api/tags", "models", "name"),
        ("library", "/api/ps", "models", "name"),
        ("organization_owner", "/api/v0/models", "data", "id"),
    ],
)
async def test_a_name_that_is_none_hides_no_model(
    name: Any, owner: str, path: str, entries: str, key: str
) -> None:
    facts = {
        "/v1/models": {"data": [{"id": name, "owned_by": owner}, {"id": "one", "owned_by": owner}]},
        path: {entries: [{key: name}]},
    }
    with answering(tells(facts)) as (address, _):
        async with models_server(f"http://{address}") as server:
            assert [each.name for each in (await server.models()).models] == ["one"]


async def test_a_key_goes_to_its_server_and_along_no_redirect() -> None:
    with answering(sends(b"{}")) as (elsewhere, reached):
        moved = sends(b"", 307, Location=f"http://{elsewhere}/v1/models")
        with answering(moved) as (address, asked):
            assert await served_context(f"http://{address}", "one", "sk-own") is None

    assert [headers["Authorization"] for _, headers in asked] == ["Bearer sk-own"] and reached == []


async def test_a_key_that_is_no_ascii_ends_no_turn() -> None:
    with answering(tells(VLLM)) as (address, asked):
        assert await served_context(f"http://{address}", "any", "schlüssel") == 2048
    assert asked[0][1]["Authorization"].encode("latin-1").decode() == "Bearer schlüssel"


@pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier")
async def test_a_model_without_an_address_is_asked_about_where_its_server_is_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with answering(tells(OLLAMA)) as (address, _):
        usual = replace(PROVIDERS["ollama_chat"], host=address)
        monkeypatch.setitem(PROVIDERS, "ollama_chat", usual)
        # What it was trained on, which LiteLLM would say, is twice as much.
        assert await LiteLLMModel("ollama_chat/qwen2.5:7b", environ={}).context_length() == 16384
        wider = LiteLLMModel("ollama_chat/qwen2.5:7b", environ={}, parameters={"num_ctx": 20_000})
        assert await wider.context_length() == 20_000


async def test_a_server_that_drips_holds_no_turn_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Drip(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n")
            while not ended.wait(0.1):
                self.request.sendall(b" ")

    class Server(socketserver.ThreadingTCPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that hangs up is what is tested."""

    ended = threading.Event()
    with Server(("127.0.0.1", 0), Drip) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        base = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setattr(served_models, "_PATIENCE", 0.5)
        assert await asyncio.wait_for(served_context(base, "one"), PATIENCE) is None
        ended.set()
        server.shutdown()
