"""What ordinary requests to a remote server carry: the token of its sign-in, which is renewed when it ends.

Invariants: nothing here begins a sign-in, asks a person or opens an address: a server that wants one gets it by the
person alone. A token goes to the origin that it was given for and to no other. Calls go on side by side; only a renewal
is done by one at a time, in this kernel and in others, and what another has renewed meanwhile is taken; a host that a
rule denies is not asked for one. A refusal
reaches the very call that it was for, as an error of the protocol.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.mcp_sdk.http import httpx
from reyn_jupyter.backends.mcp_servers.secret_store import SecretTooShortError
from reyn_jupyter.backends.mcp_servers.sign_in_store import KeptSignIn, ServerSignIn, SignInBusyError
from reyn_jupyter.backends.mcp_sign_in.guarded_http import Denies, GuardError, guarded_client
from reyn_jupyter.guard.state_folder import StateError
from reyn_jupyter.support.network.hosts import Host, read_host

if TYPE_CHECKING:
    from mcp.shared.auth import OAuthToken

# Errors of the protocol that stand in place of a server's refusal; in the range that it leaves to whoever wants one.
NEEDS_SIGN_IN = -32_041
NEEDS_SCOPE = -32_043
NOT_RENEWED = -32_050

_BUSY_SECONDS = 60.0  # that another kernel's renewal is waited for
_INSUFFICIENT = re.compile(r'\berror\s*=\s*"?insufficient_scope\b', re.IGNORECASE)
_SCOPE = re.compile(r'\bscope\s*=\s*(?:"([^"]{1,2000})"|([^\s,"]{1,200}))', re.IGNORECASE)
# RFC 6749, 5.2: what says that the sign-in itself is over, and not that something was in the way.
_OVER = ("invalid_grant", "invalid_client", "unauthorized_client")


class NotRenewedError(Exception):
    """A token could not be renewed now; the message is a clause."""


class BearerAuth(httpx.Auth):
    """The authentication of one connection.

    Args:
        sign_in: where the server's sign-in is kept.
        denies: see `guarded_client`.
    """

    def __init__(self, sign_in: ServerSignIn, denies: Denies) -> None:
        self._sign_in = sign_in
        self._denies = denies
        self._origin = _origin(httpx.URL(sign_in.url))
        self._known: KeptSignIn | None = None
        self._known_at: Any = ()
        self._lock = asyncio.Lock()

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Send a request with the token, once more with a renewed one, and say what a refusal means."""
        if _origin(request.url) != self._origin:
            yield request
            return
        why = ""
        try:
            kept = await self._current()
        except NotRenewedError as error:
            kept, why = self._known, str(error)
        sent = _bear(request, kept)
        response = yield request
        if response.status_code == 401 and sent and not why:
            try:
                kept = await self._renewed(sent)
            except NotRenewedError as error:
                why = str(error)
            else:
                if kept is not None and kept.access_token not in ("", sent):
                    _bear(request, kept)
                    response = yield request
        if response.status_code == 401:
            await _refuse(response, NOT_RENEWED, why) if why else await _refuse(response, NEEDS_SIGN_IN)
        elif response.status_code == 403 and _INSUFFICIENT.search(
            said := response.headers.get("www-authenticate", "")
        ):
            found = _SCOPE.search(said)
            await self._want((found[1] or found[2]) if found else "")
            await _refuse(response, NEEDS_SCOPE)

    async def _current(self) -> KeptSignIn | None:
        """Return the sign-in as it is kept now, renewed where its token has ended. Raises NotRenewedError."""
        if self._known_at != (stamp := self._sign_in.stamp()) or stamp is None:
            self._known = await asyncio.to_thread(self._sign_in.read)
            self._known_at = stamp
        kept = self._known
        if kept is not None and kept.access_token and kept.is_over:
            return await self._renewed(kept.access_token)
        return kept

    async def _renewed(self, sent: str) -> KeptSignIn | None:
        """Return a sign-in whose token is another than the one that was sent; None where it is over.

        A renewal that has begun goes to its end, also where the call that began it is interrupted: the old refresh
        token may be spent.

        Raises:
            NotRenewedError: something was in the way.
        """
        return await asyncio.shield(asyncio.ensure_future(self._renew(sent)))

    async def _renew(self, sent: str) -> KeptSignIn | None:
        async with self._lock:
            try:
                kept = await asyncio.to_thread(self._sign_in.read)
                if not _wants_renewal(kept, sent):
                    return kept
                lock = self._sign_in.renewing(_BUSY_SECONDS)
                await asyncio.to_thread(lock.__enter__)
                try:
                    kept = await asyncio.to_thread(self._sign_in.read)
                    if kept is None or not _wants_renewal(kept, sent):
                        return kept
                    fresh = await renew(kept, self._denies)
                    await asyncio.to_thread(self._sign_in.write, fresh)
                    return fresh
                finally:
                    lock.__exit__(None, None, None)
            except (SignInBusyError, StateError, SecretTooShortError, GuardError) as error:
                raise NotRenewedError(str(error).rstrip(".")) from None

    async def _want(self, scope: str) -> None:
        """Note what a server asked for beyond what was granted, for the next sign-in."""
        kept = self._known
        if kept is None or not scope:
            return
        wanted = " ".join(dict.fromkeys([*kept.wanted_scope.split(), *scope.split()]))[:2000]
        if wanted != kept.wanted_scope:
            try:
                with self._sign_in.renewing(1.0):
                    now = self._sign_in.read()
                    if now is not None:
                        self._sign_in.write(replace(now, wanted_scope=wanted))
            except (SignInBusyError, StateError, SecretTooShortError):
                return  # the next sign-in asks for less, and the server says so once more


def _wants_renewal(kept: KeptSignIn | None, sent: str) -> bool:
    """Return whether a sign-in is to be renewed by us: its token is the one that failed, or has ended."""
    return kept is not None and bool(kept.refresh_token) and (kept.access_token in ("", sent) or kept.is_over)


async def renew(kept: KeptSignIn, denies: Denies) -> KeptSignIn:
    """Return a sign-in with new tokens, or without any where the authorization server says that it is over.

    Raises:
        NotRenewedError: the server cannot be reached, or its answer is none. GuardError.
    """
    data = {"grant_type": "refresh_token", "refresh_token": kept.refresh_token}
    data |= {"resource": kept.resource} if kept.resource else {}
    response = await client_request(kept, kept.token_endpoint, data, denies)
    host = read_host(kept.token_endpoint)
    if response.status_code in (400, 401) and _error(response) in _OVER:
        return replace(kept, access_token="", refresh_token="", expires_at=None)
    if response.status_code != 200:
        raise NotRenewedError(f"{host} answered {response.status_code}")
    return with_tokens(kept, read_token(response.content, host))


async def client_request(kept: KeptSignIn, url: str, data: dict[str, str], denies: Denies) -> httpx.Response:
    """Send a form to an endpoint of a sign-in's authorization server, as its client.

    Raises:
        NotRenewedError: it cannot be reached. GuardError.
    """
    from mcp.client.auth.oauth2 import OAuthContext
    from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

    client = OAuthClientInformationFull.model_validate(kept.client)
    metadata = OAuthClientMetadata(redirect_uris=[kept.redirect_uri])  # type: ignore[list-item]
    context = OAuthContext(kept.url, metadata, None, None, None, client_info=client)  # type: ignore[arg-type]
    data, headers = context.prepare_token_auth({**data, "client_id": client.client_id}, {})
    host = read_host(url)

    async def approve(asked: Host) -> bool:
        return asked == host  # the person signed in there

    try:
        async with guarded_client(kept.url, approve, denies) as http:
            return await http.post(url, data=data, headers={**headers, "accept": "application/json"})
    except httpx.HTTPError as error:
        raise NotRenewedError(f"{host} cannot be reached ({type(error).__name__})") from None


def read_token(content: bytes, host: Host) -> OAuthToken:
    """Return the answer of a token endpoint. Raises NotRenewedError, which does not say what was in it."""
    from mcp.shared.auth import OAuthToken

    try:
        return OAuthToken.model_validate_json(content)
    except ValueError:
        raise NotRenewedError(f"{host} answered with no token") from None


def with_tokens(kept: KeptSignIn, token: OAuthToken) -> KeptSignIn:
    """Return a sign-in with what a token endpoint gave; what it left out stays as it was."""
    seconds = token.expires_in
    return replace(
        kept,
        access_token=token.access_token,
        refresh_token=token.refresh_token or kept.refresh_token,
        expires_at=None if seconds is None else time.time() + max(0, min(seconds, 10**9)),
        scope=kept.scope if token.scope is None else token.scope,
    )


def _bear(request: httpx.Request, kept: KeptSignIn | None) -> str:
    """Put the token of a sign-in on a request; return it."""
    token = "" if kept is None else kept.access_token
    if token:
        request.headers["Authorization"] = f"Bearer {token}"
    return token


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _error(response: httpx.Response) -> str:
    try:
        said = json.loads(response.content)
    except ValueError:
        return ""
    return str(said.get("error", "")) if isinstance(said, dict) else ""


async def _refuse(response: httpx.Response, code: int, why: str = "") -> None:
    """Put an error of the protocol in place of what a server answered, for the call that it answers."""
    stream: Any = response.stream
    await stream.aclose()
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": why or "sign-in"}}
    response.stream = httpx.ByteStream(json.dumps(error).encode())
    response.headers["content-type"] = "application/json"
    response.headers.pop("content-length", None)
