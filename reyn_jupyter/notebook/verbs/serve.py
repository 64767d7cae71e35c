"""`%reyn serve [mcp|a2a|stop]`: this session as an MCP server or an A2A agent for the programs of this machine."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from reyn_jupyter.backends.serving.served_session import ServedSession
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.magic_line.options import Option, Options, Positional
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Card

_OFF = Card(
    "serve",
    "This session is not served",
    (("server", "off: no other program reaches this session"),),
    (),
    ("%reyn serve mcp", "%reyn serve a2a"),
)


class ServeOptions(Options):
    what: Annotated[Literal["mcp", "a2a", "stop"] | None, Positional("mcp|a2a|stop")] = None
    wait: Annotated[
        float | None,
        Option(takes="SECONDS"),
        Field(description="mcp, a2a: how long a client's call waits for your answer to a question (50)"),
    ] = None


def run(context: Context, options: ServeOptions) -> ServedSession | Card:
    session = context.session
    served = session.served
    if options.what in ("mcp", "a2a"):
        if served is not None and options.wait not in (None, served.wait):
            raise ReynError("This session is served already.", "%reyn serve stop ends it; then begin anew.")
        serve = session.serve_mcp if options.what == "mcp" else session.serve_a2a
        return serve(wait=options.wait)
    if options.what == "stop" and served is not None:
        served.stop()
    return session.served or _OFF


VERB = Verb(
    "serve",
    "this session as an MCP server or an A2A agent, for the programs of this machine",
    run,
    ServeOptions,
    ("%reyn serve mcp", "%reyn serve a2a", "%reyn serve", "%reyn serve stop"),
    completes=lambda session, before, word: [] if before else ["mcp", "a2a", "stop"],
)
