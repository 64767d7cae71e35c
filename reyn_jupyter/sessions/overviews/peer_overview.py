"""The peers of a session, for people: what each is, what it may do, what was asked of it and what that used."""

from __future__ import annotations

from typing import Any

from reyn_jupyter.config.settings import Peer, PeerLimits
from reyn_jupyter.models.providers.provider_facts import provider_host, required_key
from reyn_jupyter.sessions.access.session_peers import PeerUse
from reyn_jupyter.sessions.assembly import Parts
from reyn_jupyter.sessions.result_objects import Card, Table
from reyn_jupyter.support.network.hosts import read_host
from reyn_jupyter.support.text import count, did_you_mean, nearest_names, shorten
from reyn_jupyter.support.user_errors import UserError

NONE_YET = (
    'No peer is configured. Name one, say: %reyn config peers.checker.prompt "You check what you are told."'
)


class PeerNotFoundError(UserError):
    """There is no such peer; the message says which there are, `hint` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message, self.hint = message, hint


def peers(parts: Parts) -> Table:
    """Return one row a peer: model, host, categories, limits, requests, tokens, dollars, what it remembers, state."""
    found = parts.settings.peers
    rows = tuple(_row(parts, name, peer) for name, peer in sorted(found.items()))
    held = [each.key for each in parts.effective.held_back if each.key.startswith("peers.")]
    notes = [f"held back until %reyn trust: {', '.join(held)}"] if held else []
    notes += [
        problem for name, peer in sorted(found.items()) for problem in _unknown_categories(parts, name, peer)
    ]
    if not rows and not held:
        notes.append(NONE_YET)
    return Table("peers", rows, "Peers", "; ".join(notes))


def _row(parts: Parts, name: str, peer: Peer) -> dict[str, Any]:
    use = parts.peers.uses.get(name, PeerUse()) if parts.peers is not None else PeerUse()
    return {
        "peer": name,
        "model": _model(peer),
        "host": _host(parts, peer),
        "categories": ", ".join(peer.categories) or ("its own" if peer.url is not None else "none"),
        "limits": _limits(peer.limits),
        "requests": use.requests,
        "tokens": use.tokens,
        "cost": use.cost,
        "remembers": 0 if parts.peers is None else parts.peers.remembered(name),
        "state": _state(parts, name, peer, use),
        "about": shorten(" ".join(peer.description.split()), 80),
    }


def _model(peer: Peer) -> str:
    if peer.url is not None:
        return "remote"
    return "that of who asks" if peer.model is None else peer.model.model


def _host(parts: Parts, peer: Peer) -> str | None:
    """Return where requests to a peer go; None where they stay in this process or go with those of who asks."""
    if peer.url is not None:
        return str(read_host(peer.url))
    entry = peer.model
    if entry is not None and entry.model in ("light", "standard", "strong"):
        entry = getattr(parts.settings.models, entry.model)
    return None if entry is None else provider_host(entry.model, entry.api_base, parts.environ)


def _limits(limits: PeerLimits) -> str:
    said = (
        None if limits.max_steps is None else count(limits.max_steps, "step"),
        None if limits.tokens is None else count(limits.tokens, "token"),
        None if limits.cost is None else f"${limits.cost:g}",
        None if limits.seconds is None else f"{limits.seconds:g} s",
    )
    return ", ".join(each for each in said if each is not None)


def _state(parts: Parts, name: str, peer: Peer, use: PeerUse) -> str:
    problem = parts.peers.problem(name) if parts.peers is not None else "peers are not available here"
    if problem is None and peer.model is not None:
        key = required_key(peer.model.model)
        problem = f"{key} is missing" if key is not None and not parts.environ.get(key) else None
    return problem or use.last or "ready"


def _unknown_categories(parts: Parts, name: str, peer: Peer) -> list[str]:
    """Return a sentence for each category of a peer that there is not; none before the catalog was looked at."""
    snapshot = parts.catalog.latest
    known = [] if snapshot is None else list(snapshot.slices)
    return [
        f"{name}: there is no category {each!r}. {did_you_mean(nearest_names(each, known, 1))}".strip()
        for each in peer.categories
        if known and each not in known
    ]


def forget(parts: Parts, name: str) -> Card:
    """Let a peer forget what it was asked. Raises PeerNotFoundError."""
    found = parts.settings.peers
    if name not in found or parts.peers is None:
        there = f"There are {', '.join(sorted(found))}." if found else "None is configured."
        raise PeerNotFoundError(f"There is no peer {name!r}.", there)
    forgotten = parts.peers.forget(name)
    return Card("peers", f"{name} begins anew", (("forgotten", count(forgotten, "request")),))
