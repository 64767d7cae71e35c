"""Limits of a file that is not trusted: it may only make the session do less.

Invariant: with a narrowing file on top, no setting is looser than without it. Every key is judged here by
name; a key that this table does not know is held back, so a new key is safe until someone decides about it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Rule = Callable[[Any, Any], str | None]  # (value, value below) → why it is held back, or None
VARIABLES = ("off", "schema", "head")


@dataclass(frozen=True)
class HeldBack:
    """A value that a file asks for and does not get: its key, the value, and why."""

    key: str
    value: Any
    why: str


def held_back(key: str, value: Any, below: Any) -> str | None:
    """Return why `value` may not take the place of `below`, or None when it may.

    Args:
        key: a dotted leaf.
        value: the valid value that the file asks for.
        below: the value that holds without the file.
    """
    rule = _RULES.get(key)
    if rule is None:
        section = key.partition(".")[0]
        return _SECTIONS.get(section, "this key cannot be set by a file that is not trusted")
    return rule(value, below)


def _any(value: Any, below: Any) -> str | None:
    """Admit any value: the key changes wording, layout or the tools on offer, or only restricts."""
    return None


def _at_most(value: Any, below: Any) -> str | None:
    if below is None or (value is not None and value <= below):
        return None
    return f"it is a looser limit than {below}"


def _few_writes(value: Any, below: Any) -> str | None:
    # Without a setting a weak model may make one; anything up to that is no looser.
    return _at_most(value, below or 1)


def _at_least(value: Any, below: Any) -> str | None:
    if below is None or (value is not None and value >= below):
        return None
    return f"it is a lower bar than {below}"


def _only_off(value: Any, below: Any) -> str | None:
    return None if not value or below else "it would switch something on"


def _only_on(value: Any, below: Any) -> str | None:
    return None if value or not below else "it would switch a precaution off"


def _never(value: Any, below: Any) -> str | None:
    return "allow rules count only from a trusted file"


def _narrower_variables(value: Any, below: Any) -> str | None:
    # Without a setting a hosted model sees schemas; anything up to that is no wider.
    shown = VARIABLES.index(below or "schema")
    if value is not None and VARIABLES.index(value) <= shown:
        return None
    return "it would show more of the notebook's variables"


def _stricter_after(value: Any, below: Any) -> str | None:
    order = (None, "ask", "deny")
    return None if order.index(value) >= order.index(below) else f"it is looser than {below}"


def _no_embedding(value: Any, below: Any) -> str | None:
    return None if value is None or value == below else "it could send text to another embedding model"


def _same_backend(value: Any, below: Any) -> str | None:
    return None if value == below else "another sandbox may be weaker than the one in force"


def _first_minimum(value: Any, below: Any) -> str | None:
    return None if below is None or value == below else "it would replace a minimum that is already set"


_SECTIONS = {
    "models": "models count only from a trusted file",
    "router_model": "the choice of the model counts only from a trusted file",
    "embedding": "embedding models count only from a trusted file",
    "peers": "peers count only from a trusted file",
    "web": "settings of the web count only from a trusted file",
    "mcp": "the registry of MCP servers counts only from a trusted file",
    "otel": "where runs are sent, and what of them, counts only from a trusted file",
    "workflows": "folders with utilities count only from a trusted file: what lies there runs",
    "calls": "limits of calls count only from a trusted file: a category may have set tighter ones",
}
# Of the router: wording and layout, which any file may set, and the record of any run that is replayed.
TASTE = (
    "surface",
    "discovery",
    "mandate",
    "reinforcement",
    "reinforce_with",
    "edit_rule",
    "list_schemas",
    "listing_order",
    "listing_limit",
    "names",
    "constrain_names",
)
_LIMITS = (
    *("max_steps", "calls_per_completion", "model_timeout", "retries", "history_tokens", "flat_tokens"),
    *("turn_tokens", "session_tokens", "turn_cost", "session_cost"),
)
_OUTPUTS = ("inline_bytes", "summary_bytes", "head_lines", "tail_lines", "answer_bytes")
_RULES: dict[str, Rule] = {
    **{f"router.{name}": _any for name in TASTE},
    **{f"router.limits.{name}": _at_most for name in _LIMITS},
    "router.limits.writes_per_completion": _few_writes,
    **{f"outputs.{name}": _at_most for name in _OUTPUTS},
    "router.reasoning_effort": _never,
    "router.repair": _only_off,
    "router.forgive": _only_off,
    "llm_log": _only_off,
    "workflows.at_once": _at_most,
    "workflows.confidence": _at_least,
    "dynamic_tools.most": _at_most,
    "dynamic_tools.strict": _only_on,
    "action_retrieval.universal_wrappers_enabled": _any,
    "action_retrieval.hot_list_n": _any,
    "action_retrieval.embedding_class": _no_embedding,
    "variables": _narrower_variables,
    "local_history": _only_off,
    "sandbox.backend": _same_backend,
    "sandbox.minimum": _first_minimum,
    "permissions.allow": _never,
    "permissions.ask": _any,
    "permissions.deny": _any,
    "permissions.question_seconds": _at_most,
    "permissions.untrusted_files": _any,
    "permissions.after_untrusted": _stricter_after,
}
