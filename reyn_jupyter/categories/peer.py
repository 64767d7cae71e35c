"""Other agents that may be asked: each has a model, instructions and actions of its own.

Invariant: asking does nothing by itself. What a peer does are calls of its own, each of which asks for itself; what it
says is a stranger's text.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from reyn_jupyter.catalog.action import (
    Arguments,
    Category,
    Effect,
    EffectKind,
    Entry,
    Purity,
    Resources,
    Tool,
)
from reyn_jupyter.catalog.call_limits import CallLimits
from reyn_jupyter.config.settings import Peer
from reyn_jupyter.outputs.content import Text
from reyn_jupyter.outputs.parts.content_parts import ContentParts
from reyn_jupyter.runtime.access.peer_access import CATEGORY
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import Services, ToolContext

CALL_SECONDS = 600.0
_SCHEMA = {
    "type": "object",
    "properties": {
        "request": {
            "type": "string",
            "minLength": 1,
            "description": "What is asked, with all that it takes: the peer sees nothing else of this conversation, "
            "and remembers earlier requests to it.",
        },
        "fresh": {
            "type": "boolean",
            "default": False,
            "description": "Let the peer forget earlier requests first.",
        },
    },
    "required": ["request"],
    "additionalProperties": False,
}


def categories(services: Services) -> tuple[Category, ...]:
    """The category `agent.peer`, whose resources are the peers of the settings."""

    async def entries() -> Sequence[Entry]:
        return [
            Entry(
                name,
                peer.description or f"Ask the agent {name}.",
                _SCHEMA,
                Purity.UNKNOWN if peer.url is None else Purity.NETWORK,
            )
            for name, peer in sorted(services.settings().peers.items())
        ]

    def revision() -> Hashable:
        peers = services.settings().peers
        return tuple((name, peer.description, peer.url is None) for name, peer in peers.items())

    return (
        Category(
            CATEGORY,
            "Ask another agent, which has instructions, a model and actions of its own, to do or to check something.",
            resources=Resources(
                Tool(
                    "delegate_to_agent",
                    _ask,
                    Purity.UNKNOWN,
                    _reaches,
                    plan=_peer,
                    untrusted_output=True,
                    unasked="it does nothing by itself: each call of the peer asks",
                ),
                _target,
                "delegate a request",
                entries,
            ),
            revision=revision,
            limits=CallLimits(seconds=CALL_SECONDS),
            hidden=lambda: services.peers.missing,
            close=services.peers.close,
        ),
    )


def _target(entry: str, args: Arguments) -> Arguments:
    return {"peer": entry, **args}


def _peer(args: Arguments, context: ToolContext) -> Peer:
    """Return what the settings say of the peer now; consent and request go by the same, whatever becomes of them."""
    peer = context.services.settings().peers.get(args["peer"])
    if peer is None:
        raise ActionError(
            f"There is no peer {args['peer']!r} any more.", "Go on without it.", code="peer_unknown"
        )
    return peer


def _reaches(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    """Return what a remote peer is reached with; the host of a model is asked about in the call, which knows it."""
    peer: Peer = context.plan
    if peer.url is None:
        return ()
    effects = [Effect.network(peer.url)]
    return effects if peer.token is None else [*effects, Effect(EffectKind.SECRET, peer.token)]


async def _ask(args: Arguments, context: ToolContext) -> Text | ContentParts:
    name = args["peer"]
    context.came_from(f"the peer {name}")
    answer = await context.services.peers.ask(
        name, context.plan, args["request"], fresh=bool(args.get("fresh")), report=context.report
    )
    return ContentParts(answer.parts) if answer.parts else Text(answer.text)
