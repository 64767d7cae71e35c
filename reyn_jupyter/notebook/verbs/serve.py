"""`%reyn serve [mcp|stop]`: this session as an MCP server for the clients of this machine."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from reyn_jupyter.backends.mcp_serving.served_session import ServedSession
from reyn_jupyter.notebook.errors import ReynError
from reyn_jupyter.notebook.options import Option, Options, Positional
from reyn_jupyter.notebook.verb import Context, Verb
from reyn_jupyter.sessions.result_objects import Card

_OFF = Card(
    "serve",
    "This session is not served",
    (("MCP server", "off: no other program reaches this session"),),
    (),
    ("%reyn serve mcp",),
)


class ServeOptions(Options):
    what: Annotated[Literal["mcp", "stop"] | None, Positional("mcp|stop")] = None
    wait: Annotated[
        float | None,
        Option(takes="SECONDS"),
        Field(description="mcp: how long a client's call waits for your answer to a question (50)"),
    ] = None


def run(context: Context, options: ServeOptions) -> ServedSession | Card:
    session = context.session
    served = session.served
    if options.what == "mcp":
        if served is not None and options.wait not in (None, served.wait):
            raise ReynError("This session is served already.", "%reyn serve stop ends it; then begin anew.")
        return session.serve_mcp() if options.wait is None else session.serve_mcp(wait=options.wait)
    if options.what == "stop" and served is not None:
        served.stop()
    return session.served or _OFF


VERB = Verb(
    "serve",
    "this session as an MCP server, for the clients of this machine",
    run,
    ServeOptions,
    ("%reyn serve mcp", "%reyn serve", "%reyn serve stop"),
    completes=lambda session, before, word: [] if before else ["mcp", "stop"],
)
