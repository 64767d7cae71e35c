"""`%reyn peers [forget NAME]`: other agents that the model may ask."""

from __future__ import annotations

from typing import Annotated

from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.overviews.peer_overview import PeerNotFoundError
from reyn_jupyter.sessions.result_objects import Card, Table
from reyn_jupyter.sessions.session import Session
from reyn_jupyter.support.reyn_line import reyn_line


class PeersOptions(Options):
    what: Annotated[str, Positional("list|forget")] = "list"
    name: Annotated[str | None, Positional("NAME")] = None


def run(context: Context, options: PeersOptions) -> Table | Card:
    session = context.session
    if options.what == "list":
        return session.peers
    if options.what != "forget":
        raise ReynError(
            f"{options.what!r} is not one of list, forget.",
            f'A peer is asked like any action: {reyn_line("invoke", f"agent.peer__{options.what}")} request="…"'
            if options.what in session.parts.settings.peers
            else "",
        )
    if options.name is None:
        raise ReynError("Which peer is to forget what it was asked?", "%reyn peers forget checker")
    try:
        return session.forget_peer(options.name)
    except PeerNotFoundError as error:
        raise ReynError(error.message, error.hint) from None


def _complete(session: Session, before: list[str], word: str) -> list[str]:
    if not before:
        return ["forget"]
    return sorted(session.parts.settings.peers) if before == ["forget"] else []


VERB = Verb(
    "peers",
    "other agents that the model may ask: model, categories, use; forget",
    run,
    PeersOptions,
    ("%reyn peers", "%reyn peers forget checker"),
    completes=_complete,
    group="look",
)
