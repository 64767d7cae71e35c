"""What providers say in words alone, because the status of their answer stands for other failures too.

Invariant: a failure is called one that no other request would cure only where the words name the model, the account or
what they cannot do; whatever else a provider refuses is a matter of that one request. Sources: the providers' own
references of their errors, and what LiteLLM passes on of them.
"""

from __future__ import annotations

import re

_TOO_LONG = (
    "context length",
    "context window",
    "context limit",
    "prompt is too long",
    "maximum number of tokens",
)
_NO_CREDIT = (
    "insufficient_quota", "insufficient balance", "insufficient credits", "credit balance is too low",
    "billing_hard_limit", "billing hard limit", "billing_not_active",
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
    r"|tools are not supported|tool use is not supported|function calling is not (?:supported|enabled)",
    re.IGNORECASE,
)
_NO_PARAMETER = ("unsupported_value", "unsupported_parameter", "unknown_parameter")
_CHOICE = re.compile(r"tool[_ -]?choice", re.IGNORECASE)
_BACK_IN = re.compile(
    r"""(?:retry|try again) in (\d{1,7}(?:\.\d+)?) ?(ms|s)\b|"retryDelay": ?"(\d{1,7}(?:\.\d+)?)s\"""",
    re.IGNORECASE,
)


def too_long(said: str) -> bool:
    """Whether a conversation is longer than the model takes."""
    return any(words in said.lower() for words in _TOO_LONG)


def no_credit(said: str) -> bool:
    """Whether an account has nothing left. One that says when to come back only has too many calls for now.

    >>> no_credit("You exceeded your current quota"), no_credit("You exceeded your current quota. Please retry in 9s.")
    (True, False)
    """
    said = said.lower()
    return any(words in said for words in _NO_CREDIT) or (_QUOTA in said and back_in(said) is None)


def back_in(said: str) -> float | None:
    """Seconds after which a provider asks to be called again, where it says so in its text.

    >>> back_in("Please retry in 33.9s."), back_in("Please try again in 250ms."), back_in("Not now.")
    (33.9, 0.25, None)
    """
    found = _BACK_IN.search(said)
    if found is None:
        return None
    return float(found[1] or found[3]) * (0.001 if (found[2] or "").lower() == "ms" else 1.0)


def no_model(said: str) -> bool:
    """Whether there is no such model.

    >>> no_model("Invalid model: nope"), no_model("The model takes no images")
    (True, False)
    """
    return _NO_MODEL.search(said) is not None


def no_tools(said: str) -> bool:
    """Whether the model takes no tools at all."""
    return _NO_TOOLS.search(said) is not None


def no_parameter(said: str) -> bool:
    """Whether the model takes no parameter of that name, or not that value."""
    return any(words in said for words in _NO_PARAMETER)


def no_choice(said: str) -> bool:
    """Whether the provider takes no forced choice of a tool.

    >>> no_choice("This model does not support tool_choice.")
    True
    """
    return _CHOICE.search(said) is not None
