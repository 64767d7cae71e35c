"""How long a request was and how long it may be, read out of the words by which a provider refused it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LARGEST = 100_000_000  # tokens: beyond it, nobody counted
_NUMBER = r"([\d][\d,]{0,11})"
# What providers say of a request that is too long. Sources: the errors of llama.cpp, OpenAI, vLLM, Anthropic, Ollama,
# Gemini and llama-cpp-python, as they are quoted in the issues of those projects.
_ASKED = tuple(
    re.compile(each, re.IGNORECASE)
    for each in (
        rf"request \({_NUMBER} tokens\)",
        rf"n_prompt_tokens\W{{1,4}}{_NUMBER}",
        rf"\({_NUMBER} in (?:the|your) (?:messages|prompt)",
        rf"given: {_NUMBER} `?inputs`? tokens",
        rf"you passed {_NUMBER} input tokens",
        rf"context limit: {_NUMBER} \+",
        rf"(?:resulted in|you requested|request has|contains at least|token count(?: is)?) \(?{_NUMBER}",
        rf"requested tokens \({_NUMBER}",
        rf"prompt is too long: {_NUMBER} tokens",
        rf"input (?:prompt )?\({_NUMBER} tokens\)",
        rf"you requested (?:about|a total of) {_NUMBER}",
        rf"prompt contains {_NUMBER} tokens",
        rf"keep the first {_NUMBER} tokens",
        rf"must have less than [\d,]+ tokens\. given: {_NUMBER}",
        rf"your request has {_NUMBER} input tokens",
        rf"input token count \({_NUMBER}\)",
    )
)
_TAKEN = tuple(
    re.compile(each, re.IGNORECASE)
    for each in (
        rf"context size(?: of)? \(?{_NUMBER}",
        rf"n_ctx\W{{1,4}}{_NUMBER}",
        rf"context length (?:is|of)(?: only)? {_NUMBER}",
        rf"context length \({_NUMBER} tokens\)",
        rf"with {_NUMBER} maximum context length",
        rf"must have less than {_NUMBER} tokens",
        rf"context limit: [\d,]+ \+ [\d,]+ > {_NUMBER}",
        rf"`max_new_tokens` must be <= {_NUMBER}",
        rf"> {_NUMBER} maximum",
        rf"exceeds? (?:the )?limit of {_NUMBER}",
        rf"context (?:window|limit) (?:of|is) {_NUMBER}",
        rf"maximum number of tokens allowed \({_NUMBER}\)",
        rf"maximum model length of {_NUMBER}",
    )
)


@dataclass(frozen=True)
class Overflow:
    """What a provider says of a request that is too long, in its own tokens; None where it does not say.

    Attributes:
        asked: tokens of the request.
        taken: tokens that the model takes.
    """

    asked: int | None = None
    taken: int | None = None


def read_overflow(said: str) -> Overflow:
    """Return the figures in the words of a provider that refused a request for its length.

    Example:
        >>> read_overflow("request (10814 tokens) exceeds the available context size (8192 tokens)")
        Overflow(asked=10814, taken=8192)
        >>> read_overflow("prompt is too long: 215000 tokens > 200000 maximum")
        Overflow(asked=215000, taken=200000)
    """
    return Overflow(_first(_ASKED, said), _first(_TAKEN, said))


def _first(patterns: tuple[re.Pattern[str], ...], said: str) -> int | None:
    for pattern in patterns:
        if found := pattern.search(said):
            tokens = int(found[1].replace(",", ""))
            return tokens if 0 < tokens <= _LARGEST else None
    return None
