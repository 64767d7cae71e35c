"""Completions that several verbs share: action names, categories, arguments, runs, blobs, models.

Nothing here runs an action: names come from the catalog's snapshot and the record's file names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reyn_jupyter.runtime.namespace.variables import visible_now
from reyn_jupyter.sessions.session import Session

RUNS = 50
BLOBS = 50
VARIABLES = 200


def actions(session: Session, before: list[str], word: str) -> list[str]:
    return [] if before else action_names(session)


def action_names(session: Session) -> list[str]:
    return [str(action.name) for action in session.catalog.actions]


def categories(session: Session, before: list[str], word: str) -> list[str]:
    return [name for name in session.catalog.category_names if name not in before]


def runs(session: Session, before: list[str], word: str) -> list[str]:
    """Return the ids' last parts, newest first; a longer word is completed from the whole id."""
    ids = list(reversed(session.parts.runs.ids()[-RUNS:]))
    return ["last", *(run[-12:] for run in ids), *(ids if word else ())]


def one_run(session: Session, before: list[str], word: str) -> list[str]:
    return [] if before else runs(session, before, word)


def blobs(session: Session, before: list[str], word: str) -> list[str]:
    store = session.parts.services.blobs
    listed = getattr(store, "list", None)
    return [info.id for info in list(reversed(listed()))[:BLOBS]] if listed is not None else []


def models(session: Session, word: str) -> list[str]:
    """Offline, the tiers and the models of the configuration; to a word that was begun, once LiteLLM is there, the
    models for chats that it knows."""
    from reyn_jupyter.models import litellm_loader

    entries = [getattr(session.parts.settings.models, tier) for tier in ("light", "standard", "strong")]
    tiers = [tier for tier, entry in zip(("light", "standard", "strong"), entries, strict=True) if entry]
    known = litellm_loader.loaded_module()
    return [
        "offline",
        *tiers,
        *(entry.model for entry in entries if entry),
        *(
            name
            for name, facts in (known.model_cost.items() if known is not None and word else ())
            if facts.get("mode") == "chat"
        ),
    ]


def variables(session: Session) -> list[str]:
    """Return the notebook's own variables: no private names, no code."""
    return [name for name, _ in visible_now(session.parts.services)][:VARIABLES]


def arguments(session: Session, before: list[str], word: str) -> list[str]:
    """Before the action's name: action names; after it: its arguments, and the values that one may take."""
    if not before:
        return action_names(session)
    action = next((each for each in session.catalog.actions if str(each.name) == before[0]), None)
    properties = action.input_schema.get("properties", {}) if action is not None else {}
    name, equals, value = word.partition("=")
    if equals:
        return [f"{name}={each}" for each in _values(session, properties.get(name, {}), value)]
    given = {part.partition("=")[0] for part in before[1:]}
    return [f"{name}=" for name in properties if name not in given]


def _values(session: Session, schema: Any, value: str) -> list[str]:
    if value.startswith("@"):
        return [f"@{name}" for name in variables(session)]
    if not isinstance(schema, Mapping):
        return []
    if schema.get("type") == "boolean":
        return ["true", "false"]
    return [str(each) for each in schema.get("enum", ()) if isinstance(each, str | int | float)]
