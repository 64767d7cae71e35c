"""Signing in to a session's remote MCP servers: by the person, at the prompt of the cell.

Invariants: only a server that may be started is signed in to; what is shown are hosts and one address; what is pasted
is not echoed into the cell.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from reyn_jupyter.backends.mcp_sdk.sdk import MCP_SDK
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.sessions.assembly import ENGINE, Parts
from reyn_jupyter.sessions.result_objects import Card
from reyn_jupyter.support.network.hosts import read_host
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.support.text import meant_clause

if TYPE_CHECKING:
    from reyn_jupyter.backends.mcp_servers.sign_in_store import ServerSignIn
    from reyn_jupyter.backends.mcp_sign_in.login import SignInPage
    from reyn_jupyter.runtime.access.mcp_access import McpServer

T = TypeVar("T")

# What a kernel that stands on another computer than the browser has in its environment.
_FAR = ("JUPYTERHUB_SERVICE_PREFIX", "COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE", "SSH_CONNECTION")
_WHERE = {"keyring": "the keyring of this system", "file": "a file that only you can read"}


def sign_in(
    parts: Parts,
    name: str,
    *,
    paste: bool = False,
    client: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> Card:
    """Sign in to a server, as the person says at the prompt.

    Args:
        paste: the person pastes the address that the browser came to; also where the kernel is far from the browser.
        client: of a client that the person registered, see `mcp_sign_in.login.sign_in`.
        seconds: how long the person may take.

    Raises:
        ActionError: there is no such server, it may not be started, or the sign-in came to nothing.
    """
    server, kept = _remote(parts, name)
    if server.blocked is not None:
        raise ActionError(
            f"{name} may not be started, and so is not signed in to: {server.blocked}", code="server_blocked"
        )
    if any(each.lower() == "authorization" for each in server.headers):
        raise ActionError(
            f"{name} has a key of its own, in the header Authorization.",
            "Take that out of its entry to sign in instead.",
            code="sign_in_failed",
        )
    pasted = paste or any(parts.environ.get(each) for each in _FAR)

    async def work() -> Card:
        await MCP_SDK.load()
        from reyn_jupyter.backends.mcp_sign_in import login

        person = _Prompt(name, read_host(server.url).name, pasted)
        headers = {
            key: each.reveal() if isinstance(each, Secret) else each for key, each in server.headers.items()
        }
        try:
            made, where = await login.sign_in(
                kept,
                person,
                paste=pasted,
                client=client,
                headers=headers,
                denies=parts.denies_host,
                seconds=login.WAIT_SECONDS if seconds is None else seconds,
            )
        except login.SignInError as error:
            raise ActionError(
                f"The sign-in to {name} came to nothing: {parts.redactor.text(str(error))}.",
                f"{reyn_line('mcp login', name)} tries again.",
                code="sign_in_failed",
            ) from None
        parts.catalog.push("mcp")
        facts = [("at", str(read_host(made.issuer or server.url))), ("kept in", _WHERE[where])]
        facts += [("may", visible(made.scope))] if made.scope else []
        return Card("mcp", f"Signed in to {name}", tuple(facts))

    return ENGINE.run(work())


def sign_out(parts: Parts, name: str) -> Card:
    """Forget the sign-in to a server, and have its tokens taken back. Raises ActionError."""
    _, kept = _remote(parts, name)

    async def work() -> Card:
        await MCP_SDK.load()
        from reyn_jupyter.backends.mcp_sign_in import login
        from reyn_jupyter.guard.state_folder import StateError

        try:
            there, why = await login.sign_out(kept, parts.denies_host)
        except StateError as error:
            raise ActionError(f"The sign-in to {name} could not be forgotten: {error}.") from None
        if not there:
            return Card("mcp", f"There was no sign-in to {name}")
        said = f"not taken back: {visible(parts.redactor.text(why))}" if why else "taken back"
        return Card("mcp", f"Signed out of {name}", (("tokens", said),))

    return ENGINE.run(work())


def _remote(parts: Parts, name: str) -> tuple[McpServer, ServerSignIn]:
    server = parts.services.mcp.servers().get(name)
    if server is None:
        raise ActionError(
            f"There is no server {visible(name)}{meant_clause(name, parts.services.mcp.servers()) or '.'}",
            "%reyn mcp lists them.",
            code="server_unknown",
        )
    if server.transport != "http":
        raise ActionError(
            f"{name} is a program of this machine: there is nothing to sign in to.",
            f"{reyn_line('mcp secret', name)} hands it a key.",
            code="sign_in_failed",
        )
    if parts.sign_in is None:
        raise ActionError("Nobody signs in here.", "Go on without the server.", code="not_available")
    return server, parts.sign_in(server)


class _Prompt:
    """The person, at the prompt of the cell. See `mcp_sign_in.login.Person`."""

    def __init__(self, name: str, server: str, paste: bool) -> None:
        self._name, self._server, self._paste = name, server, paste

    async def approve(self, host: str) -> bool:
        said = await _at_prompt(
            lambda: input(f"{self._name} ({self._server}) names {host} for signing in. Go on? [y/N] ")
        )
        return said.strip().lower() in ("y", "yes")

    async def show(self, page: SignInPage) -> None:
        may = f"\nIt asks for: {page.scope}" if page.scope else ""
        then = (
            f"Afterwards the browser goes to {page.redirect_uri}, and may say that nothing is there: copy the whole "
            "address from it."
            if self._paste
            else "Waiting for the browser; interrupt to stop. Where it runs on another computer than the kernel: "
            f"{reyn_line('mcp login', self._name, paste=True)}"
        )
        text = f"Sign in to {self._name} ({self._server}) at {page.host}:\n{page.address}{may}\n{then}\n"

        def write() -> None:
            sys.stdout.write(text)
            sys.stdout.flush()

        await ENGINE.main_thread(write)

    async def paste(self, why: str) -> str:
        again = f"Not that one: {why}. " if why else ""
        return await _at_prompt(lambda: getpass.getpass(f"{again}The address that the browser came to: "))


async def _at_prompt(ask: Callable[[], T]) -> T:
    from IPython.core.error import StdinNotImplementedError

    try:
        return await ENGINE.main_thread(ask)
    except (EOFError, StdinNotImplementedError):
        raise ActionError(
            "Nobody can be asked here.",
            "Run this line in a notebook with a front end.",
            code="sign_in_failed",
        ) from None
