"""LiteLLM as a `Model`: any model that it can reach, as one streaming `complete`.

Invariants:

- LiteLLM is imported on the first call and never before; the stream is closed before a call returns, raises or is
  cancelled. Whatever LiteLLM raises leaves here as a `ModelError` in plain words, without a key in it.
- A call may be silent for `Request.timeout` seconds, before the first chunk and between two; the whole call may take
  ten times that. Retries are not made here: `retry.RetryingModel` does.
- `check` does not touch the network. A provider that LiteLLM lists is taken at its word, since asking further signs in
  to some of them.
"""

from __future__ import annotations

import asyncio
import copy
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from reyn_jupyter.models.base import TEXT_ALONE, Medium, ModelError, Request, Response, Tier, canonical
from reyn_jupyter.models.providers import (
    cache_marks,
    litellm_loader,
    litellm_offline,
    provider_errors,
    raw_stream,
    wire,
)
from reyn_jupyter.models.providers.attachments import provider_messages
from reyn_jupyter.models.providers.litellm_answer import IncomingAnswer, NotStreamed, whole_content
from reyn_jupyter.models.providers.prices import Price, price_of
from reyn_jupyter.models.providers.provider_facts import (
    ALIKE_NAMES,
    base_override,
    host_of,
    is_local,
    meant_provider,
    provider_host,
    provider_name,
    required_key,
    set_key,
)
from reyn_jupyter.models.served_models import served_context
from reyn_jupyter.support.text import did_you_mean, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence


# A parameter of these names would change what is asked, where it goes or who hears of it.
_RESERVED = frozenset({
    "model", "messages", "tools", "tool_choice", "functions", "n", "stream", "stream_options", "timeout",
    "num_retries", "max_retries", "fallbacks", "context_window_fallback_dict", "model_list", "drop_params",
    "api_key", "azure_ad_token", "aws_secret_access_key", "vertex_credentials", "api_base", "base_url",
    "proxy", "headers", "extra_headers", "ssl_verify", "client", "shared_session", "custom_llm_provider",
    "acompletion", "callbacks", "success_callback", "failure_callback", "logger_fn", "mock_response",
    "input_cost_per_token", "output_cost_per_token",
})  # fmt: skip
_OLLAMA = ("ollama", "ollama_chat")
_TOTAL_FACTOR = 10
_EFFORT = "reasoning_effort"
_CLOSING_SECONDS = 0.5

Manner = Literal["stream with usage", "stream", "whole"]


class LiteLLMModel:
    """A model that LiteLLM reaches.

    Args:
        model: a LiteLLM model string, as "openai/gpt-4o-mini" or "ollama_chat/llama3.2".
        tier: how much guidance the router gives it.
        api_base: an address of one's own, as "http://127.0.0.1:8000/v1".
        headers: HTTP headers to add.
        parameters: sent with every request, under those of the request itself.
        environ: where keys and addresses are looked up; the process's environment when None.
        media: what it takes beside text; what LiteLLM's list says of the model when None.

    Raises:
        ModelError: kind "configuration" when a parameter is one that the router sets itself.

    Example:
        model = LiteLLMModel("openai/gpt-4o-mini")
        response = await model.complete(Request(model.label, (Message("user", "Hello"),)))
    """

    def __init__(
        self,
        model: str,
        *,
        tier: Tier = "standard",
        api_base: str | None = None,
        headers: Mapping[str, str] | None = None,
        parameters: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        media: Collection[Medium] | None = None,
    ) -> None:
        self._model = model
        self._tier: Tier = tier
        self._api_base = api_base
        self._headers = dict(headers or {})
        self._environ = os.environ if environ is None else environ
        self._manner: Manner = "stream with usage"
        self._returns_thoughts = True  # `reasoning_content` goes back with the calls of a turn
        self._marks_cache = True  # unless the provider refused the marks
        self._media = None if media is None else frozenset(media)
        self.parameters = dict(parameters or {})
        _refuse_reserved(self.parameters)

    @property
    def label(self) -> str:
        return self._model

    @property
    def tier(self) -> Tier:
        return self._tier

    @property
    def host(self) -> str | None:
        known = provider_host(self._model, self._api_base, self._environ)
        return known or provider_name(self._model) or "unknown host"

    @property
    def _leaves(self) -> bool:
        """Return whether requests leave the process at all: those of the offline provider do not."""
        return provider_name(self._model) != litellm_offline.PROVIDER

    @property
    def real(self) -> bool:
        return True

    @property
    def media(self) -> frozenset[Medium]:
        """What it takes beside text; text alone until LiteLLM is imported, which the first call does."""
        if self._media is None:
            litellm = litellm_loader.loaded_module()
            if litellm is None:
                return TEXT_ALONE
            asked: dict[Medium, Any] = {
                "image": litellm.supports_vision,
                "audio": litellm.supports_audio_input,
            }
            self._media = frozenset(medium for medium, takes in asked.items() if _listed(takes, self._model))
        return self._media

    async def price(self) -> Price | None:
        """Return what a token costs, None where LiteLLM's own list does not say. Imports LiteLLM, as a call does.

        Raises:
            ModelError: as `complete` would for want of a key.
        """
        self._demand_provider_and_key()
        await self._litellm()
        return price_of(self._model) if self._leaves else None

    async def context_length(self) -> int | None:
        """Return how many tokens the model takes: what Ollama is asked for (`num_ctx`), what its server says where that
        is on this machine, else what LiteLLM's own list says; None where none does.

        Raises:
            ModelError: as `complete` would for want of a key.
        """
        self._demand_provider_and_key()
        litellm = await self._litellm()
        if not self._leaves:
            return None
        asked = self.parameters.get("num_ctx")
        if provider_name(self._model) in _OLLAMA and isinstance(asked, int) and asked > 0:
            return asked  # it goes with every request, and Ollama loads the model so
        base = self._api_base or base_override(self._model, self._environ) or self._local_base
        if base is None:
            return _listed_context(litellm, self._model)
        if not is_local(host_of(base)):
            return None
        return await served_context(base, self._model.partition("/")[2], self._key(own_address=True))

    @property
    def _local_base(self) -> str | None:
        """Return where the provider's server is by default, if that is this machine."""
        host = provider_host(self._model, None)
        return f"http://{host}" if host is not None and is_local(host) else None

    def check(self) -> None:
        """Say without a call what every call would fail with: a key that is not set, a provider that there is not.

        It imports LiteLLM, which takes seconds once.

        Raises:
            ModelError: as `complete` would.
        """
        self._demand_provider_and_key()
        base = self._api_base or base_override(self._model, self._environ)
        problem = unknown_provider(self._registered(litellm_loader.load()), self._model, base)
        if problem is not None:
            raise problem

    async def complete(self, request: Request, on_text: Callable[[str], None] | None = None) -> Response:
        """One completion, streamed; `on_text` gets the text as it comes.

        A provider that refuses streaming, or usage in a stream, is asked again without it, and remembered.
        Without usage from the provider, tokens are estimated as bytes / 4 and marked so.
        """
        meter = wire.watch()
        before = meter.requests if meter is not None else 0
        _refuse_reserved(request.parameters)
        self._demand_provider_and_key()
        litellm = await self._litellm()
        self._demand_effort(litellm, request)
        manner = self._manner
        while True:
            body = raw_stream.next_body(whole_content if manner == "whole" else None)
            incoming = IncomingAnswer(request, on_text, body)
            try:
                await self._call(litellm, request, incoming, manner, body)
            except _SimplerError as refusal:
                manner = refusal.manner
                continue
            except _PartRefusedError:
                continue
            self._manner = manner
            if meter is not None and meter.requests == before and self._leaves:
                # Answered by a way that is not counted: the provider's library has a client of its own.
                meter.add(self.host or "", len(canonical(request.wire)), counted=False)
            return incoming.response(self._model, litellm)

    def _demand_effort(self, litellm: Any, request: Request) -> None:
        """Refuse a reasoning effort that LiteLLM would leave out without a word."""
        own_address = self._api_base or base_override(self._model, self._environ)
        if _EFFORT not in {**self.parameters, **request.parameters} or own_address is not None:
            return
        taken = litellm.get_supported_openai_params(self._model)
        if taken is not None and _EFFORT not in taken:
            raise ModelError(
                "unsupported",
                f"{self._model} takes no reasoning effort.",
                "Leave --effort and router.reasoning_effort out, or use a reasoning model.",
            )

    async def _litellm(self) -> Any:
        """LiteLLM; imported in a thread, so that an interrupt need not wait for it."""
        return self._registered(
            litellm_loader.loaded_module() or await asyncio.to_thread(litellm_loader.load)
        )

    def _registered(self, litellm: Any) -> Any:
        """LiteLLM, knowing the offline provider where this model is of it."""
        if provider_name(self._model) == litellm_offline.PROVIDER:
            litellm_offline.register(litellm)
        return litellm

    def _demand_provider_and_key(self) -> None:
        """Refuse what no call could do before seconds of import: a mistyped provider, a key that is not set."""
        if litellm_loader.loaded_module() is None and meant_provider(self._model) is not None:
            raise _no_provider(self._model, _way_on(self._model))
        variable = required_key(self._model)
        if variable is None or set_key(self._model, self._environ) is not None:
            return
        if self._api_base is None and base_override(self._model, self._environ) is None:
            raise provider_errors.missing_key(self._model, variable)

    async def _call(
        self,
        litellm: Any,
        request: Request,
        incoming: IncomingAnswer,
        manner: Manner,
        body: raw_stream.ReplyBody,
    ) -> None:
        stream: Any = None
        failure: ModelError
        clock = asyncio.get_running_loop().time
        first_word = request.first_word or request.timeout
        end = clock() + max(request.first_word or 0.0, request.timeout * _TOTAL_FACTOR)
        try:
            async with asyncio.timeout(first_word) as silence:
                answer = await litellm.acompletion(**self._arguments(litellm, request, manner))
                if manner == "whole":
                    incoming.take_whole(answer)
                    return
                stream = answer
                incoming.watch(stream)
                async for chunk in stream:
                    silence.reschedule(min(clock() + request.timeout, end))
                    incoming.take(chunk)
                incoming.end_stream(stream)
                return
        except ModelError:
            raise
        except NotStreamed:
            raise _SimplerError("whole") from None
        except TimeoutError:
            whole = request.timeout * _TOTAL_FACTOR if clock() >= end else None
            silent = request.timeout if incoming.begun else first_word
            failure = provider_errors.timed_out(self._model, silent, whole)
        except Exception as error:
            if error is incoming.listener_error:
                raise
            if not incoming.begun and self._leaves_out(litellm, error, request):
                raise _PartRefusedError from None
            simpler = None if incoming.begun else _simpler(error, manner, body)
            if simpler is not None:
                raise _SimplerError(simpler) from None
            failure = self._explained(body.error or error, streaming=stream is not None and body.status < 400)
        finally:
            if stream is not None:
                await _close(stream)
        # Raised out here, or the provider's own exception, which may quote the key, would travel along as context.
        raise failure

    def _arguments(self, litellm: Any, request: Request, manner: Manner) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            **self.parameters,
            **request.parameters,
            "model": self._model,
            # LiteLLM rewrites messages and tools in place for some providers; these are shared and hashed.
            "messages": self._messages(request),
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
            "timeout": max(request.first_word or 0.0, request.timeout * _TOTAL_FACTOR),
        }
        if request.tools.specs:
            arguments["tools"] = copy.deepcopy(list(request.tools.specs))
            arguments["tool_choice"] = _tool_choice(request.tool_choice)
        if self._marks_cache and self._takes_marks(litellm, request):
            cache_marks.mark(arguments["messages"], arguments.get("tools", []))
        if manner != "whole":
            arguments["stream"] = True
        if manner == "stream with usage":
            arguments["stream_options"] = {"include_usage": True}
        base = self._api_base or base_override(self._model, self._environ)
        if base is not None:
            arguments["api_base"] = base
        if _EFFORT in arguments and base is not None:  # LiteLLM's list does not know what is served there
            arguments["allowed_openai_params"] = [_EFFORT]
        if self._headers:
            arguments["extra_headers"] = dict(self._headers)
        key = self._key(own_address=base is not None)
        if key is not None:
            arguments["api_key"] = key
        return arguments

    def _messages(self, request: Request) -> list[dict[str, Any]]:
        messages = provider_messages(request.messages, self.media)
        if not self._returns_thoughts:
            for message in messages:
                message.pop("reasoning_content", None)
        return messages

    def _leaves_out(self, litellm: Any, error: Exception, request: Request) -> bool:
        """Return whether a provider refused a part of a request that is left out from now on.

        Strict providers refuse thoughts, and servers in front of a provider, or old models, the marks for caching.
        """
        sent = self._returns_thoughts and any(message.reasoning.text for message in request.messages)
        refused = getattr(error, "status_code", None) in (400, 422)
        if sent and refused and "reasoning_content" in str(error):
            self._returns_thoughts = False
            return True
        marked = self._marks_cache and self._takes_marks(litellm, request)
        if marked and cache_marks.is_refusal(error):
            self._marks_cache = False
            return True
        return False

    def _takes_marks(self, litellm: Any, request: Request) -> bool:
        return cache_marks.takes_marks(litellm, self._model, {**self.parameters, **request.parameters})

    def _key(self, *, own_address: bool) -> str | None:
        """The key where LiteLLM would not find the right one by itself; None leaves it to LiteLLM."""
        if required_key(self._model) is None:
            return None
        name = set_key(self._model, self._environ)
        if name is not None:
            return self._environ[name]
        # Clients insist on some key, where a server of one's own mostly asks for none.
        return "no-key" if own_address else None

    def _explained(self, error: Exception, *, streaming: bool) -> ModelError:
        return provider_errors.explain(
            error,
            self._model,
            self._api_base,
            self._environ,
            tuple(self._headers.values()),
            streaming=streaming,
        )


class _SimplerError(Exception):
    """The provider does not stream in this manner: ask in a simpler one."""

    def __init__(self, manner: Manner) -> None:
        super().__init__(manner)
        self.manner: Manner = manner


class _PartRefusedError(Exception):
    """The provider refused a part that the next attempt leaves out."""


def _simpler(error: Exception, manner: Manner, body: raw_stream.ReplyBody) -> Manner | None:
    """The manner to try when a provider's error refuses the streaming itself, None for every other error."""
    if manner != "whole" and body.is_json and body.status < 400:  # an answer, but not in pieces
        return "whole"
    if manner == "whole" or getattr(error, "status_code", None) not in (400, 404, 422, 501):
        return None
    said = str(error).lower()
    if "stream_options" in said or "include_usage" in said:
        return "stream" if manner == "stream with usage" else None
    return "whole" if "stream" in said else None


def _tool_choice(choice: str) -> str | dict[str, Any]:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def _listed(takes: Callable[..., bool], model: str) -> bool:
    """Return what LiteLLM's list says of a model; a model that it does not know takes text alone."""
    try:
        return bool(takes(model=model))
    except Exception:  # noqa: BLE001 - it raises what it likes for a name that is not in its list
        return False


def _listed_context(litellm: Any, model: str) -> int | None:
    """Return the length in LiteLLM's list; None for a model that is not in it."""
    try:
        found = litellm.get_model_info(model).get("max_input_tokens")
    except Exception:  # noqa: BLE001 - it raises what it likes for a name that is not in its list
        return None
    return found if isinstance(found, int) and found > 0 else None


def _refuse_reserved(parameters: Mapping[str, Any]) -> None:
    reserved = sorted(_RESERVED.intersection(parameters))
    if not reserved:
        return
    hint = "Take it out of the model's parameters."
    if "api_key" in reserved:
        hint = "Keys come from the environment: take it out of the model's parameters."
    raise ModelError("configuration", f"A model's parameters cannot set {', '.join(reserved)}.", hint)


async def _close(stream: Any) -> None:
    """Hang up. Bounded, because a connection that does not close must not hold an interrupt back."""
    with suppress(Exception):
        async with asyncio.timeout(_CLOSING_SECONDS):
            await stream.aclose()


_LONGEST = 200


def unknown_provider(litellm: Any, model: str, api_base: str | None) -> ModelError | None:
    """Return what any call would fail with where LiteLLM cannot tell the provider of a model; None where it can.

    Args:
        litellm: the module, as `litellm_loader.load` gives it.
        model: a LiteLLM model string.
        api_base: an address of one's own.
    """
    providers = [str(getattr(each, "value", each)) for each in litellm.provider_list]
    prefix, slash, _ = model.partition("/")
    if slash and prefix in providers:
        return None
    try:
        litellm.get_llm_provider(model, api_base=api_base)
    except litellm.BadRequestError:
        return _no_provider(model, _way_on(model, providers, litellm.model_cost))
    return None


def _no_provider(model: str, hint: str) -> ModelError:
    said = f"LiteLLM knows no provider of {model!r}, so no call could be made."
    return ModelError("configuration", said, hint)


def _way_on(model: str, providers: Sequence[str] = (), models: Iterable[str] = ()) -> str:
    """Return what was probably meant, and how a model is named.

    Args:
        providers: all that LiteLLM has, to look at where none of the well-known ones is near.
        models: the names of its models.
    """
    prefix, slash, rest = model.partition("/")
    meant = meant_provider(model) or nearest(prefix if slash else "", providers, cutoff=ALIKE_NAMES)
    near = f"{meant}/{rest[:_LONGEST]}" if meant else nearest(model, models, cutoff=ALIKE_NAMES)
    asked = f"{did_you_mean([near])} " if near else ""
    return f"{asked}A model is named with its provider, as openai/gpt-4o-mini or ollama_chat/llama3.2."
