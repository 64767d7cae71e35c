"""Failures of providers as `ModelError`: what happened and what to do next, in plain words.

Invariants:

- No text that leaves here holds a key: what a provider says is quoted only after every secret of the environment and
  every key shape is taken out (`clean`), and not at all where it speaks of the key itself.
- Exceptions are read by status, headers and class names, so that neither LiteLLM nor an HTTP library is imported.
- A failure is called one that no other request would cure only where its words name the model, the account or what
  they cannot do; whatever else a provider refuses is a matter of that one request. Sources: the providers' references
  of their errors, and what LiteLLM passes on of them.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.providers.provider_facts import base_override, provider_host, required_key, set_key
from reyn_jupyter.support.key_shapes import PARTIAL_KEY
from reyn_jupyter.support.secrets import Redactor
from reyn_jupyter.support.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_LONGEST_QUOTE = 300
_MARK = "‹key›"  # it names no variable: what is said is searched for words like "api_key" afterwards
_NO_CONNECTION = frozenset({
    "APIConnectionError", "ClientConnectorError", "ClientConnectorDNSError", "ConnectError", "gaierror",
    "ConnectionRefusedError", "ConnectionResetError", "ServerDisconnectedError", "RemoteProtocolError",
    "ReadError", "WriteError", "ClientPayloadError",
})  # fmt: skip
_TIMED_OUT = frozenset({"Timeout", "APITimeoutError", "ReadTimeout", "ConnectTimeout", "TimeoutError"})
_LONGEST_CHAIN = 12
_PASSING = (408, 424, 499)  # of the server's own failure: TGI's and Bedrock's for a model that failed is 424
# How providers say that a request is too long. Sources: OpenAI, Anthropic, Gemini, Bedrock, Mistral, vLLM, SGLang, TGI,
# llama.cpp, LM Studio, Ollama, and OpenRouter, as quoted in the issues of those projects.
_TOO_LONG = re.compile(
    r"context[_ ](?:length|window|limit|size)|exceed_context_size|maximum number of tokens|maximum model length"
    r"|(?:prompt|input|request|conversation|messages?) (?:is|are|was)? ?too (?:long|large) for"
    r"|(?:prompt|input) (?:is )?too long|too many (?:input |prompt |total )?tokens"
    r"|tokens`? \+ `max_new_tokens`|context the overflows|context overflow"
    r"|exceeds? the (?:model's )?maximum (?:context|input|sequence|prompt)|larger than the max\w* (?:context|input)"
    r"|reduce the length of (?:the|your) (?:messages|prompt|input)|input length (?:\d+ )?exceeds"
    r"|number of (?:input )?tokens (?:\S+ )?(?:exceeds|must be)|prompt contains \d+ tokens"
    r"|`inputs` must have less than|request_too_large|request exceeds the maximum size",
    re.IGNORECASE,
)
_RATE = re.compile(r"per (?:min\w*|second|hour|day)|rate.?limit|please wait", re.IGNORECASE)
_BARE = re.compile(r"(?:Error code: \d{3}|An error occurred during streaming|)\s*")
_MESSAGE_KEYS = (
    "message", "error", "detail", "details", "msg", "error_message", "errorMessage", "errors", "description",
    "title", "reason", "object", "type",
)  # fmt: skip
_MARKUP = re.compile(r"<(?:style|script).*?</|<[^>]*>", re.DOTALL)
_MOST_PARTS, _DEEPEST_BODY, _LONGEST_BODY = 5, 9, 100_000
_NO_CREDIT = (
    "insufficient_quota", "insufficient balance", "insufficient credits", "credit balance is too low",
    "billing_hard_limit", "billing hard limit", "billing_not_active", "budget_exceeded", "budget has been exceeded",
)  # fmt: skip
_QUOTA = (
    "exceeded your current quota"  # one provider says so of a month's credit, another of a minute's calls
)
_NO_MODEL = re.compile(
    r"model[_ ](?:does[_ ])?not[_ ](?:found|exist)|(?:invalid|unknown|incorrect|no such)[_ ]model\b|not a valid model"
    r"|\bmodel:? \S{1,200} (?:does not exist|not found|(?:is|was|has been) (?:decommissioned|discontinued|retired))"
    r"|model identifier is invalid",
    re.IGNORECASE,
)
_NO_TOOLS = re.compile(
    r"does not support (?:tools|tool (?:use|calling)|function calling)|support tool use|enable-auto-tool-choice"
    r"|tools are not supported|tool use is not supported|function calling is not (?:supported|enabled)"
    r"|tools param requires",
    re.IGNORECASE,
)
_NO_PARAMETER = ("unsupported_value", "unsupported_parameter", "unknown_parameter")
_CHOICE = re.compile(r"tool[_ -]?choice", re.IGNORECASE)
_BACK_IN = re.compile(
    r"""(?:retry|try again) in (\d{1,7}(?:\.\d+)?) ?(ms|s|sec(?:onds?)?)\b|"retryDelay": ?"(\d{1,7}(?:\.\d+)?)s\"""",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Failure:
    """A failed call: `names` are the classes of the exception and its causes, `said` is clean and may be quoted, `text`
    is all that the provider said, for matching alone, and never shown."""

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
        """Return what phrases are looked for in: the quotable words and the code; the rest may hold a request."""
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
    """Return the `ModelError` for whatever LiteLLM raised.

    Args:
        error: the exception, its chain of causes included.
        model: the model string that was called.
        api_base: the configured address, None for the provider's own.
        environ: the environment, for the names of keys and to take their values out of quotes.
        secrets: further values that must not appear (configured headers).
        streaming: whether a part of the answer had come already.

    Example: ``explain(error, "openai/gpt-4o-mini", None, os.environ).kind`` → ``"rate_limited"``.
    """
    whole, code = provider_words(error), code_of(error)
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
        return refused_key(model, api_base, failure.status, environ, failure.said)
    return _of_no_answer(failure, streaming) or _of_the_request(failure) or _of_the_provider(failure)


def _of_no_answer(failure: _Failure, streaming: bool) -> ModelError | None:
    """Return the error where nothing came, or what came was cut off or is no answer; None otherwise."""
    model, where = failure.model, failure.where
    if failure.says("invalid response from llm endpoint"):
        return no_completion(model)
    if failure.says("repeating the same chunk"):
        said = f"{model} kept repeating the same words and was stopped."
        return ModelError("stream", said, "Ask again, or ask differently.")
    if streaming and failure.says("before a finish_reason"):
        return cut_off(model)
    made_up = failure.says("got unexpected response from")  # LiteLLM's own status, for what it cannot read
    if streaming and (
        failure.status is None or failure.status >= 500 or failure.status in _PASSING or made_up
    ):
        if too_long(failure.said):
            return None
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
    """Return the error where the provider understood the request and refused it; None otherwise."""
    model, where, said = failure.model, failure.where, failure.said
    if failure.says("provider not provided") or "LiteLLMUnknownProvider" in failure.names:
        return unknown_provider(model)
    named = "ContextWindowExceededError" in failure.names and not _RATE.search(failure.said)
    if named or too_long(failure.words):
        hint = (
            "Start afresh with --new, give the model's server a longer context, or let requests be shortened to what "
            "it takes (router.weak.fit_context)."
        )
        if failure.says(
            "completion)", "max_tokens", "max_completion_tokens", "max_new_tokens", "output tokens"
        ):
            hint = f"Set a lower max_tokens under the model's parameters, which counts beside the request. {hint}"
        return ModelError("context_too_long", f"The conversation is too long for {model}: {said}", hint)
    if "ContentPolicyViolationError" in failure.names or failure.says("content_policy", "content_filter"):
        return _refused_content(failure)
    refused = failure.status is not None and 400 <= failure.status < 500 and failure.status not in _PASSING
    if failure.status in (402, 429) or "RateLimitError" in failure.names:
        return _of_the_account(failure)
    if refused and no_credit(failure.text):
        return _of_the_account(failure)
    if (refused or no_tools(failure.words)) and (lacking := _of_what_it_can(failure)) is not None:
        return lacking
    if failure.status == 404 or (refused and no_model(failure.words)):
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
    """Return the error where the model cannot do what every such request asks of it; None otherwise."""
    model, where, said = failure.model, failure.where, failure.said
    if no_tools(failure.words):
        refusal = f"{where} takes no tools for {model}: {said}"
        return ModelError("unsupported", refusal, "Use a model that can call tools.")
    if no_choice(failure.words):
        refusal = f"{where} takes no choice of a tool for {model}: {said}"
        return ModelError("tool_choice", refusal, "Leave the choice to the model (router.discovery).")
    if no_parameter(failure.words):
        refusal = f"{where} does not take a parameter that is sent to {model}: {said}"
        return ModelError("unsupported", refusal, "Look at the model's parameters in reyn.yaml.")
    return None


def _of_the_account(failure: _Failure) -> ModelError:
    """Return the error for too many calls now, or for no credit left."""
    if failure.status == 402 or no_credit(failure.text):
        said = f"The account at {failure.where} has no credit left: {failure.said}"
        return ModelError("quota", said, "Add credit, or use another model.")
    wait = retry_after(failure.headers)
    wait = back_in(failure.text) if wait is None else wait
    said = f"{failure.where} limits the rate of calls: {failure.said}"
    hint = (
        "Wait a little and ask again." if wait is None else f"Ask again {_when(wait)}, or use another model."
    )
    return ModelError("rate_limited", said, hint, retryable=True, retry_after=wait)


def _when(seconds: float) -> str:
    """Return when to come back: in how long, and for a long wait at what time.

    >>> _when(20.4)
    'in 20 s'
    """
    if seconds < 120:
        return f"in {seconds:.0f} s"
    # A wait that no clock can hold is longer than a year.
    then = datetime.now().astimezone() + timedelta(seconds=min(seconds, 31_536_000.0))
    day = "" if then.date() == datetime.now().astimezone().date() else f"{then:%Y-%m-%d} "
    return f"in {seconds / 60:,.0f} minutes, at {day}{then:%H:%M}"


def _of_the_provider(failure: _Failure) -> ModelError:
    """Return the error for a failure of the provider itself."""
    status = f" ({failure.status})" if failure.status else ""
    wait = retry_after(failure.headers)
    return ModelError(
        "unavailable",
        f"{failure.where} failed on the call of {failure.model}{status}: {failure.said}",
        f"Ask again {'later' if wait is None else _when(wait)}, or use another model.",
        retryable=True,
        retry_after=wait,
    )


def missing_key(model: str, variable: str) -> ModelError:
    """Return the error for a model that needs a key where none is set."""
    return ModelError(
        "auth",
        f"There is no key for {model}: the environment variable {variable} is not set.",
        f"Set {variable} in the environment that starts the kernel, or use the offline model: -m offline.",
    )


def refused_key(
    model: str, api_base: str | None, status: int | None, environ: Mapping[str, str], said: str = ""
) -> ModelError:
    """Return the error for a key that the provider did not take. Its words are left out if they quote the key."""
    variable, used = required_key(model), set_key(model, environ)
    if variable is not None and used is None and not (api_base or base_override(model, environ)):
        return missing_key(model, variable)
    where = provider_host(model, api_base, environ) or "the provider"
    what = "does not allow this key" if status == 403 else "refused the key"
    name = used or variable
    hint = f"Look at the key in {name}." if name else "Look at the provider's key in the environment."
    quoted = f": {said}" if said and _MARK not in said and "*" not in said else "."
    return ModelError("auth", f"{where} {what} for {model} ({status or 401}){quoted}", hint)


def unknown_provider(model: str) -> ModelError:
    """Return the error for a model string whose provider LiteLLM does not know."""
    return ModelError(
        "configuration",
        f"{model!r} names no provider that LiteLLM knows.",
        "Write it as provider/model, for example openai/gpt-4o-mini or ollama_chat/llama3.2.",
    )


def no_completion(model: str) -> ModelError:
    """Return the error for an answer that is not in the shape of a chat completion."""
    return ModelError(
        "stream",
        f"What came back for {model} is not a chat completion.",
        "Look at api_base in reyn.yaml: most servers want an address that ends in /v1.",
    )


def cut_off(model: str) -> ModelError:
    """Return the error for an answer whose end did not come, though nothing else went wrong."""
    said = f"The answer of {model} ended before it was finished."
    return ModelError("stream", said, "Ask again.", retryable=True)


def ended_in_error(model: str, reason: str, said: str = "") -> ModelError:
    """Return the error for an answer whose reason for the end is that the server failed."""
    why = said or f"the server ended it ({reason})."
    return ModelError(
        "stream", f"The answer of {model} broke off in the middle: {why}", "Ask again.", retryable=True
    )


def timed_out(model: str, silence: float | None = None, whole: float | None = None) -> ModelError:
    """Return the error where nothing came for `silence` seconds, or the answer took over `whole` seconds."""
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
    """Return foreign text fit for a message: secrets and key shapes taken out, on one line, shortened."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, _MARK)
    text = text[:10_000]
    for span in reversed(Redactor(environ).spans(text)):
        text = f"{text[: span.start]}{_MARK}{text[span.end :]}"
    line = " ".join(PARTIAL_KEY.sub(_MARK, text).split())
    return shorten(line, _LONGEST_QUOTE)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and what caused it, nearest first."""
    for _ in range(_LONGEST_CHAIN):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Return the seconds that a provider asks to wait: ``Retry-After`` (seconds or an HTTP date) or ``Retry-After-Ms``.

    None when there is no such header, or none that can be read. Source: RFC 9110, section 10.2.3.
    """
    if headers is None:
        return None
    given = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(given.get(name, "")) * scale
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        moment = parsedate_to_datetime(given["retry-after"])
    except (KeyError, ValueError):
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def provider_words(error: BaseException) -> str:
    """Return the provider's own words, without the names of the classes that carried them.

    They are in the body of its answer, whatever shape that has, or in the text of the exception.
    """
    text = str(getattr(error, "message", "") or error)
    original = getattr(error, "original_exception", None)
    if isinstance(original, BaseException):
        text = str(getattr(original, "message", "") or original)
    text = re.sub(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout): |\w+Exception - )+", "", text)
    text = text.partition("Traceback (most recent call last)")[
        0
    ]  # LiteLLM's own, of an answer it cannot read
    text = re.sub(r"^Error code: \d{3} - ", "", text)
    if not _BARE.fullmatch(text):
        return message_in(text)
    return next(filter(None, map(message_in, _bodies(error))), text)


def _bodies(error: BaseException) -> Iterator[Any]:
    """Yield what a provider answered, as its client parsed it and as it came."""
    links = list(chain(error))
    yield from (getattr(link, "body", None) for link in links)
    for link in links:
        with suppress(Exception):  # the body of a stream that was not read
            yield getattr(getattr(link, "response", None), "text", None)


def message_in(body: Any, depth: int = _DEEPEST_BODY) -> str:
    """Return the message in the body of an error, whatever shape it has; "" if there is none.

    Example:
        >>> message_in({"error": "not found"}), message_in([{"error": {"code": 400, "message": "bad key"}}])
        ('not found', 'bad key')
        >>> message_in({"detail": [{"loc": ["body", "tools"], "msg": "field required"}]})
        'body.tools: field required'
    """
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if depth == 0:
        return ""
    if isinstance(body, str):
        text = body[:_LONGEST_BODY].strip()
        inner = text[2:-1] if text[:2] in ("b'", 'b"') and text[-1:] == text[1] else text
        if inner[:1] in ("{", "["):
            try:
                return message_in(json.loads(inner), depth - 1) or text
            except (ValueError, RecursionError):
                return text
        return " ".join(_MARKUP.sub(" ", text).split()) if text[:1] == "<" else text
    if isinstance(body, list):
        return "; ".join(filter(None, (message_in(each, depth - 1) for each in body[:_MOST_PARTS])))
    if isinstance(body, dict):
        said = next(filter(None, (message_in(body.get(key), depth - 1) for key in _MESSAGE_KEYS)), "")
        beside = body.get("metadata")  # OpenRouter's, with the words of the provider behind it
        if isinstance(beside, dict) and (raw := message_in(beside.get("raw"), depth - 1)) and raw != said:
            said = f"{said}: {raw}" if said else raw
        place = body.get("loc")
        return f"{'.'.join(map(str, place[:9]))}: {said}" if isinstance(place, list) and said else said
    return ""


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of a failure; of an error inside a stream, the one that its body states."""
    for link in reversed(list(chain(error))):
        body = getattr(link, "body", None)
        stated = [getattr(link, "code", None)]
        stated += [body.get("code"), body.get("status")] if isinstance(body, dict) else []
        for code in stated:
            number = int(code) if isinstance(code, str) and code.isdecimal() and len(code) == 3 else code
            if isinstance(number, int) and 400 <= number < 600 and getattr(link, "response", None) is None:
                return number
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def code_of(error: BaseException) -> str:
    """Return the provider's own name for the failure; "" where it gave none.

    Its clients keep it as an attribute, in the body of the answer, or only in the text of the HTTP error.
    """
    for link in chain(error):
        body = getattr(link, "body", None)
        for code in (getattr(link, "code", None), body.get("code") if isinstance(body, dict) else None):
            if isinstance(code, str) and re.fullmatch(r"\w{1,100}", code):
                return code
        if match := re.search(r"'code': '(\w{1,100})'", str(link)[:10_000]):
            return match.group(1)
    return ""


def headers_of(error: BaseException) -> Mapping[str, str] | None:
    """Return the headers of the provider's HTTP answer, None when there was none."""
    for link in chain(error):
        for holder in (link, getattr(link, "response", None)):
            headers: Any = getattr(holder, "litellm_response_headers", None) or getattr(
                holder, "headers", None
            )
            if headers:
                return dict(headers)
    return None


def too_long(said: str) -> bool:
    """Tell whether the words say that a conversation is longer than the model takes."""
    return _TOO_LONG.search(said) is not None and not _RATE.search(said)


def no_credit(said: str) -> bool:
    """Tell whether the words say that an account has nothing left.

    One that says when to come back only has too many calls for now.

    >>> no_credit("You exceeded your current quota"), no_credit("You exceeded your current quota. Please retry in 9s.")
    (True, False)
    """
    said = said.lower()
    return any(words in said for words in _NO_CREDIT) or (_QUOTA in said and back_in(said) is None)


def back_in(said: str) -> float | None:
    """Return the seconds after which a provider asks to be called again, where it says so in its text.

    >>> back_in("Please retry in 33.9s."), back_in("Please try again in 250ms."), back_in("Not now.")
    (33.9, 0.25, None)
    """
    found = _BACK_IN.search(said)
    if found is None:
        return None
    return float(found[1] or found[3]) * (0.001 if (found[2] or "").lower() == "ms" else 1.0)


def no_model(said: str) -> bool:
    """Tell whether the words say that there is no such model.

    >>> no_model("Invalid model: nope"), no_model("The model takes no images")
    (True, False)
    """
    return _NO_MODEL.search(said) is not None


def no_tools(said: str) -> bool:
    """Tell whether the words say that the model takes no tools at all."""
    return _NO_TOOLS.search(said) is not None


def no_parameter(said: str) -> bool:
    """Tell whether the words say that the model takes no such parameter, or not that value."""
    return any(words in said for words in _NO_PARAMETER)


def no_choice(said: str) -> bool:
    """Tell whether the words say that the provider takes no forced choice of a tool.

    >>> no_choice("This model does not support tool_choice.")
    True
    """
    return _CHOICE.search(said) is not None
