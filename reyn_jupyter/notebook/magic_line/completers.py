"""Completions that several verbs share: action names, categories, arguments, runs, blobs, models.

Nothing here runs an action: names come from the catalog's snapshot, and of each run the first line of its record is
read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reyn_jupyter.notebook.magic_line.verb import Suggestion
from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.outputs.blob import Blob
from reyn_jupyter.outputs.blobs.random_access import is_local
from reyn_jupyter.runtime.namespace.variables import visible_now
from reyn_jupyter.sessions.session import Session
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import shorten

RUNS = 50
BLOBS = 50
VARIABLES = 200
MEANING = 60  # characters of what stands beside a completion
_READ = 2_000  # characters that are looked at for it


def actions(session: Session, before: list[str], word: str) -> list[Suggestion]:
    return [] if before else described_actions(session)


def described_actions(session: Session) -> list[Suggestion]:
    return [_described(session, str(each.name), each.short_description) for each in session.catalog.actions]


def categories(session: Session, before: list[str], word: str) -> list[str]:
    return [name for name in session.catalog.category_names if name not in before]


def runs(session: Session, before: list[str], word: str) -> list[Suggestion]:
    """Return the ids' last parts with what was asked, newest first; a longer word is completed from the whole id."""
    store = session.parts.runs
    ids = list(reversed(store.ids()[-RUNS:]))
    begun = {run: store.started(run) for run in ids}
    asked = {run: start.prompt if start is not None else "" for run, start in begun.items()}
    newest = store.latest_first()[:1]
    last = _described(session, "last", asked.get(newest[0], "") if newest else "")
    whole = [_described(session, run, asked[run]) for run in ids] if word else []
    return [last, *(_described(session, run[-12:], asked[run]) for run in ids), *whole]


def one_run(session: Session, before: list[str], word: str) -> list[Suggestion]:
    return [] if before else runs(session, before, word)


def blobs(session: Session, before: list[str], word: str) -> list[Suggestion]:
    """Return the ids of stored results, newest first, with the action that gave each, its kind and size."""
    store = session.parts.services.blobs
    if store is None or not is_local(store):
        return []
    newest = list(reversed(store.list()))[:BLOBS]
    return [_described(session, info.id, _stored(Blob(info, store))) for info in newest]


def _stored(blob: Blob) -> str:
    facts = (blob.action, blob.kind.replace("_", " "), formatting.size(blob.size))
    return " · ".join(fact for fact in facts if fact)


def _described(session: Session, text: str, meaning: str) -> Suggestion:
    """Return a suggestion; what somebody wrote is cut, without secrets, and on one line."""
    line = " ".join(session.parts.redactor.text(meaning[:_READ]).split())
    return Suggestion(text, shorten(printable(line), MEANING))


def models(session: Session, word: str) -> list[str]:
    """Offline, the tiers and the models of the configuration; to a word that was begun, once LiteLLM is there, the
    models for chats that it knows."""
    from reyn_jupyter.models.providers import litellm_loader

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


def arguments(session: Session, before: list[str], word: str) -> Sequence[str | Suggestion]:
    """Before the action's name: action names; after it: its arguments, and the values that one may take."""
    if not before:
        return described_actions(session)
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
