"""What went wrong with a provider, in plain words.

No text that leaves here holds a key: what a provider says is quoted only after every secret of the
environment and every key shape is taken out, and not at all where it speaks of the key itself. Exceptions are
read by status, headers and class names (`raised`), so that neither LiteLLM nor an HTTP library is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reyn_jupyter.models import wordings
from reyn_jupyter.models.providers import base_override, provider_host, required_key, set_key
from reyn_jupyter.models.raised import chain, code_of, headers_of, retry_after, said_by, status_of
from reyn_jupyter.models.seam import ModelError
from reyn_jupyter.support.secrets import PARTIAL_KEY, Redactor

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_QUOTE = 300
_MARK = "‹key›"  # it names no variable: what is said is searched for words like "api_key" afterwards
_NO_CONNECTION = frozenset({
    "APIConnectionError", "ClientConnectorError", "ClientConnectorDNSError", "ConnectError", "gaierror",
    "ConnectionRefusedError", "ConnectionResetError", "ServerDisconnectedError", "RemoteProtocolError",
    "ReadError", "WriteError", "ClientPayloadError",
})  # fmt: skip
_TIMED_OUT = frozenset({"Timeout", "APITimeoutError", "ReadTimeout", "ConnectTimeout", "TimeoutError"})


@dataclass(frozen=True)
class _Failure:
    """What is known of a failed call: `names` are the classes of the exception and its causes, `said` is clean, `text`
    is all that was said, and never shown."""

    model: str
    api_base: str | None
    where: str
    status: int | None
    code: str
    names: frozenset[str]
    said: str
    text: str
    headers: Mapping[str, str] | None

    def says(self, *words: str) -> bool:
        text = self.words.lower()
        return any(word in text for word in words)

    @property
    def words(self) -> str:
        """What may be quoted: further on, a request may be, with whatever words it has."""
        return f"{self.said} {self.code}"


def explain(
    error: BaseException,
    model: str,
    api_base: str | None,
    environ: Mapping[str, str],
    secrets: tuple[str, ...] = (),
    *,
    streaming: bool = False,
) -> ModelError:
    """The `ModelError` for whatever LiteLLM raised.

    Args:
        error: the exception, its chain of causes included.
        model: the model string that was called.
        api_base: the configured address, None for the provider's own.
        environ: the environment, for the names of keys and to take their values out of quotes.
        secrets: further values that must not appear (configured headers).
        streaming: whether a part of the answer had come already.

    Example: ``explain(error, "openai/gpt-4o-mini", None, os.environ).kind`` → ``"rate_limited"``.
    """
    whole, code = said_by(error), code_of(error)
    failure = _Failure(
        model=model,
        api_base=api_base,
        where=provider_host(model, api_base, environ) or "the provider",
        status=status_of(error),
        code=code,
        names=frozenset(type(link).__name__ for link in chain(error)),
        said=clean(whole, environ, secrets),
        text=f"{whole[:10_000]} {code}",
        headers=headers_of(error),
    )
    speaks_of_keys = failure.status in (None, 400, 500) and failure.says(
        "missing credentials", "api key", "api_key"
    )
    flagged = failure.status == 403 and failure.says("flagged", "moderation")
    if flagged:
        return _refused_content(failure)
    if failure.status in (401, 403) or speaks_of_keys or "AuthenticationError" in failure.names:
        return refused_key(model, api_base, failure.status, environ)
    return _of_no_answer(failure, streaming) or _of_the_request(failure) or _of_the_provider(failure)


def _of_no_answer(failure: _Failure, streaming: bool) -> ModelError | None:
    """Nothing came, or what came was cut off or no answer."""
    model, where = failure.model, failure.where
    if failure.says("invalid response from llm endpoint"):
        return no_completion(model)
    if failure.says("repeating the same chunk"):
        said = f"{model} kept repeating the same words and was stopped."
        return ModelError("stream", said, "Ask again, or ask differently.")
    if streaming and failure.status not in (404, 429):
        why = failure.said
        if failure.names & _NO_CONNECTION:
            why = "the connection was lost."
        elif "JSONDecodeError" in failure.names:
            why = "a piece of it could not be read."
        said = f"The answer of {model} broke off in the middle: {why}"
        hint = f"Ask again. If it goes on, look whether {where} can be reached and is well."
        return ModelError("stream", said, hint, retryable=True)
    if failure.names & _TIMED_OUT:
        return timed_out(model)
    if failure.headers is None and failure.names & _NO_CONNECTION:
        said = f"{where} could not be reached for {model}: {failure.said}"
        hint = f"Look whether {where} is up and the network is there, or use the offline model: -m offline."
        return ModelError("connection", said, hint, retryable=True)
    return None


def _of_the_request(failure: _Failure) -> ModelError | None:
    """The provider understood the request and would not have it."""
    model, where, said = failure.model, failure.where, failure.said
    if failure.says("provider not provided") or "LiteLLMUnknownProvider" in failure.names:
        return unknown_provider(model)
    if "ContextWindowExceededError" in failure.names or wordings.too_long(failure.said):
        hint = "Start afresh with --new, or lower router.limits.history_tokens."
        return ModelError("context_too_long", f"The conversation is too long for {model}: {said}", hint)
    if "ContentPolicyViolationError" in failure.names or failure.says("content_policy", "content_filter"):
        return _refused_content(failure)
    refused = failure.status is not None and 400 <= failure.status < 500
    if failure.status in (402, 429) or "RateLimitError" in failure.names:
        return _of_the_account(failure)
    if refused and wordings.no_credit(failure.text):
        return _of_the_account(failure)
    if refused and (lacking := _of_what_it_can(failure)) is not None:
        return lacking
    if failure.status == 404 or (refused and wordings.no_model(failure.words)):
        hint = f"Look up the model's name, and the address {where}; `%reyn models` lists what is configured."
        return ModelError("not_found", f"{where} does not know {model}: {said}", hint)
    if refused:
        refusal = f"{where} refused the request for {model} ({failure.status}): {said}"
        return ModelError("bad_request", refusal, "Look at the model's parameters in reyn.yaml.")
    return None


def _refused_content(failure: _Failure) -> ModelError:
    refusal = f"{failure.where} refused the request for its content: {failure.said}"
    return ModelError("content_filter", refusal, "Word it differently.")


def _of_what_it_can(failure: _Failure) -> ModelError | None:
    """The model cannot do what every request of the kind asks of it."""
    model, where, said = failure.model, failure.where, failure.said
    if wordings.no_tools(failure.words):
        refusal = f"{where} takes no tools for {model}: {said}"
        return ModelError("unsupported", refusal, "Use a model that can call tools.")
    if wordings.no_choice(failure.words):
        refusal = f"{where} takes no choice of a tool for {model}: {said}"
        return ModelError("tool_choice", refusal, "Leave the choice to the model (router.discovery).")
    if wordings.no_parameter(failure.words):
        refusal = f"{where} does not take a parameter that is sent to {model}: {said}"
        return ModelError("unsupported", refusal, "Look at the model's parameters in reyn.yaml.")
    return None


def _of_the_account(failure: _Failure) -> ModelError:
    """Too many calls for now, or no credit for any."""
    if failure.status == 402 or wordings.no_credit(failure.text):
        said = f"The account at {failure.where} has no credit left: {failure.said}"
        return ModelError("quota", said, "Add credit, or use another model.")
    wait = retry_after(failure.headers)
    wait = wordings.back_in(failure.text) if wait is None else wait
    said = f"{failure.where} limits the rate of calls: {failure.said}"
    hint = f"It asks to wait {wait:.0f} s." if wait is not None else "Wait a little and ask again."
    return ModelError("rate_limited", said, hint, retryable=True, retry_after=wait)


def _of_the_provider(failure: _Failure) -> ModelError:
    """The provider itself failed."""
    status = f" ({failure.status})" if failure.status else ""
    return ModelError(
        "unavailable",
        f"{failure.where} failed on the call of {failure.model}{status}: {failure.said}",
        "Ask again later, or use another model.",
        retryable=True,
        retry_after=retry_after(failure.headers),
    )


def missing_key(model: str, variable: str) -> ModelError:
    """No key is set for a model that needs one."""
    return ModelError(
        "auth",
        f"There is no key for {model}: the environment variable {variable} is not set.",
        f"Set {variable} in the environment that starts the kernel, or use the offline model: -m offline.",
    )


def refused_key(
    model: str, api_base: str | None, status: int | None, environ: Mapping[str, str]
) -> ModelError:
    """The provider did not take the key. Its own words are left out: they tend to quote the key."""
    variable, used = required_key(model), set_key(model, environ)
    if variable is not None and used is None and not (api_base or base_override(model, environ)):
        return missing_key(model, variable)
    where = provider_host(model, api_base, environ) or "the provider"
    what = "does not allow this key" if status == 403 else "refused the key"
    name = used or variable
    hint = f"Look at the key in {name}." if name else "Look at the provider's key in the environment."
    return ModelError("auth", f"{where} {what} for {model} ({status or 401}).", hint)


def unknown_provider(model: str) -> ModelError:
    """A model string whose provider LiteLLM does not know."""
    return ModelError(
        "configuration",
        f"{model!r} names no provider that LiteLLM knows.",
        "Write it as provider/model, for example openai/gpt-4o-mini or ollama_chat/llama3.2.",
    )


def no_completion(model: str) -> ModelError:
    """Something answered, but not in the shape of a chat completion."""
    return ModelError(
        "stream",
        f"What came back for {model} is not a chat completion.",
        "Look at api_base in reyn.yaml: most servers want an address that ends in /v1.",
    )


def timed_out(model: str, silence: float | None = None, whole: float | None = None) -> ModelError:
    """Nothing came for `silence` seconds, or the answer was not whole after `whole` seconds."""
    said = f"{model} sent nothing {f'for {silence:g} s' if silence is not None else 'in time'}."
    if whole is not None:
        said = f"The answer of {model} was not finished after {whole:g} s."
    return ModelError(
        "timeout",
        said,
        "Ask again, or raise router.limits.model_timeout.",
        retryable=True,
    )


def clean(text: str, environ: Mapping[str, str], secrets: tuple[str, ...] = ()) -> str:
    """Foreign text fit for a message: secrets and key shapes taken out, on one line, shortened."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, _MARK)
    text = text[:10_000]
    for span in reversed(Redactor(environ).spans(text)):
        text = f"{text[: span.start]}{_MARK}{text[span.end :]}"
    line = " ".join(PARTIAL_KEY.sub(_MARK, text).split())
    return line if len(line) <= _LONGEST_QUOTE else line[: _LONGEST_QUOTE - 1] + "…"
