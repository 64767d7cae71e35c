"""Signing in to a remote server, and out again: by a person alone, and by the protocol's SDK.

Invariants: nothing is opened: the person sees hosts and an address, and goes there. Tokens are kept once the server
has taken one. The SDK finds the authorization server, registers a client, checks issuer, state and resource, and proves
by PKCE who asked; its requests are held by `guarded_http`, and an authorization server without PKCE is refused.

Sources: RFC 7009, 7591, 7636, 8252, 8414, 8707, 9207, 9728; the authorization chapter of the Model Context Protocol.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.utils import extract_scope_from_www_auth
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types import LATEST_PROTOCOL_VERSION

from reyn_jupyter.backends.mcp_sdk.http import httpx
from reyn_jupyter.backends.mcp_sdk.sdk import IS_FIRST
from reyn_jupyter.backends.mcp_servers.secret_store import SecretTooShortError
from reyn_jupyter.backends.mcp_servers.sign_in_store import KeptSignIn, ServerSignIn
from reyn_jupyter.backends.mcp_sign_in.bearer import NotRenewedError, client_request, with_tokens
from reyn_jupyter.backends.mcp_sign_in.guarded_http import Denies, GuardError, check_address, guarded_client
from reyn_jupyter.backends.mcp_sign_in.redirect import RedirectError, RedirectListener, read_redirect
from reyn_jupyter.guard.state_folder import StateError
from reyn_jupyter.support.network.hosts import Host, read_host
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import shorten

WAIT_SECONDS = 300.0  # for the person
_TRIES = 3
_PING = {"jsonrpc": "2.0", "id": 0, "method": "ping"}


class SignInError(Exception):
    """A sign-in that came to nothing; the message is a clause."""


@dataclass(frozen=True)
class SignInPage:
    """What the person is shown: where to go, whose that is, and what is asked for."""

    address: str
    host: str
    scope: str
    redirect_uri: str


class Person(Protocol):
    """Who signs in."""

    async def approve(self, host: str) -> bool:
        """Return whether a host that the server names may be asked."""

    async def show(self, page: SignInPage) -> None:
        """Show where to sign in."""

    async def paste(self, why: str) -> str:
        """Return the address that the browser came to; `why` says what was wrong with the one before."""


async def sign_in(
    kept: ServerSignIn,
    person: Person,
    *,
    paste: bool = False,
    client: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    denies: Denies,
    seconds: float = WAIT_SECONDS,
) -> tuple[KeptSignIn, str]:
    """Sign in to a server; return the sign-in, and where it is kept.

    Args:
        kept: where it will be; an older one gives the client that is registered already.
        paste: the person pastes the address that the browser came to, in place of a port that hears it.
        client: `client_id`, and `client_secret` where it has one, of a client that the person registered.
        headers: what requests to the server carry besides.
        denies: see `guarded_client`.
        seconds: how long the person may take.

    Raises:
        SignInError: it came to nothing.
    """
    try:
        server = check_address(kept.url, read_host(kept.url))
        before = await asyncio.to_thread(kept.read)
        async with await _listener(before) as listener:
            flow = _Flow(kept.url, before, person, listener, paste, client, seconds)
            return await _signed_in(kept, flow, server, dict(headers or {}), denies)
    except (GuardError, RedirectError, SecretTooShortError, StateError, NotRenewedError) as error:
        raise SignInError(str(error).rstrip(".")) from None
    except TimeoutError:
        raise SignInError(f"nobody signed in within {seconds / 60:g} minutes") from None
    except OAuthTokenError:
        raise SignInError("the authorization server gave no token that can be used") from None
    except (OAuthFlowError, OAuthRegistrationError) as error:
        raise SignInError(shorten(visible(str(error)), 300)) from None
    except httpx.HTTPError as error:
        raise SignInError(f"a server cannot be reached ({type(error).__name__})") from None


async def _listener(before: KeptSignIn | None) -> RedirectListener:
    """Return a listener at the port that the client is registered with, where that is free; else at any."""
    port = urlsplit(before.redirect_uri).port if before is not None and before.redirect_uri else None
    if port:
        try:
            async with RedirectListener(port):
                return RedirectListener(port)
        except OSError:
            pass
    return RedirectListener()


async def _signed_in(
    kept: ServerSignIn, flow: _Flow, server: Host, headers: dict[str, str], denies: Denies
) -> tuple[KeptSignIn, str]:
    provider = flow.provider
    headers |= {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": LATEST_PROTOCOL_VERSION,
    }

    async def approve(host: Host) -> bool:
        return await flow.person.approve(str(host))

    async with guarded_client(kept.url, approve, denies, provider) as http:
        answer = await http.post(kept.url, json=_PING, headers=headers)
    context = provider.context
    if flow.tokens is None:
        if answer.status_code == 401:
            raise SignInError(f"{server} names no place to sign in at")
        raise SignInError(f"{server} asks for no sign-in (it answered {answer.status_code})")
    if answer.status_code in (401, 403):
        raise SignInError(f"{server} does not take the token that the sign-in gave")
    metadata = context.oauth_metadata
    if metadata is None or context.client_info is None:
        raise SignInError(f"{server} names no authorization server")
    made = KeptSignIn(
        kept.url,
        issuer=str(metadata.issuer),
        token_endpoint=str(metadata.token_endpoint),
        revocation_endpoint=str(metadata.revocation_endpoint or ""),
        resource=context.get_resource_url() if context.protocol_version else "",
        client=context.client_info.model_dump(mode="json", exclude_none=True),
        redirect_uri=flow.listener.uri,
    )
    made = with_tokens(made, flow.tokens)
    return made, await asyncio.to_thread(kept.write, made)


class _Provider(OAuthClientProvider):
    """The SDK's flow, which asks for what the server wanted since besides, and not only for what it wants at first."""

    wanted_scope = ""
    names_issuer = False  # the authorization server promises to name itself in its answers

    async def _auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        flow = super()._auth_flow(request)
        try:
            outgoing = await flow.__anext__()
            while True:
                response = yield outgoing
                if outgoing is not request:
                    self._look_for_promise(response)
                if self.wanted_scope and outgoing is request and response.status_code == 401:
                    _want_scope(response, self.wanted_scope)
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _look_for_promise(self, response: httpx.Response) -> None:
        with suppress(ValueError):
            told = json.loads(response.content)
            promised = isinstance(told, dict) and told.get("authorization_response_iss_parameter_supported")
            self.names_issuer = self.names_issuer or promised is True


def _want_scope(response: httpx.Response, wanted: str) -> None:
    """Let a refusal ask for more."""
    said = response.headers.get("www-authenticate", "Bearer")
    scope = _union(extract_scope_from_www_auth(response) or "", wanted)
    response.headers["www-authenticate"] = f'Bearer scope="{scope}", {said.partition(" ")[2]}'.rstrip(", ")


def _union(*scopes: str) -> str:
    return " ".join(dict.fromkeys(name for scope in scopes for name in scope.split()))


class _Flow:
    """One sign-in: the storage and the handlers of the SDK's provider."""

    def __init__(
        self,
        url: str,
        before: KeptSignIn | None,
        person: Person,
        listener: RedirectListener,
        paste: bool,
        client: Mapping[str, str] | None,
        seconds: float,
    ) -> None:
        self.person = person
        self.listener = listener
        self.tokens: OAuthToken | None = None
        self._before = before
        self._client = client
        self._paste = paste
        self._seconds = seconds
        self._state = ""
        self._url = url
        self.provider = _Provider(
            url,
            OAuthClientMetadata(
                redirect_uris=[listener.uri],  # type: ignore[list-item]
                client_name="reyn-jupyter",
            ),
            self,
            self._show,
            self._wait,
        )
        if before is not None and before.wanted_scope:
            self.provider.wanted_scope = _union(before.scope, before.wanted_scope)

    # The storage

    async def get_tokens(self) -> OAuthToken | None:
        return None  # whoever signs in wants new ones

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._client is not None:
            method = "client_secret_post" if self._client.get("client_secret") else "none"
            return OAuthClientInformationFull(
                **self._client,  # type: ignore[arg-type]
                redirect_uris=[self.listener.uri],  # type: ignore[list-item]
                token_endpoint_auth_method=method,
            )
        before = self._before
        if before is None or before.redirect_uri != self.listener.uri or not before.client:
            return None
        if before.wanted_scope:  # it is registered for what was known then
            return None
        return OAuthClientInformationFull.model_validate(before.client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        return None  # it is kept with the tokens

    # The handlers

    async def _show(self, address: str) -> None:
        metadata = self.provider.context.oauth_metadata
        if metadata is None:
            raise OAuthFlowError("it names no authorization server")
        if "S256" not in (metadata.code_challenge_methods_supported or ()):
            raise OAuthFlowError("the authorization server does not say that it supports PKCE (S256)")
        host = check_address(address, read_host(self._url))
        self._state = parse_qs(urlsplit(address).query)["state"][0]
        self.listener.expect(self._state)
        scope = self.provider.context.client_metadata.scope or ""
        await self.person.show(
            SignInPage(address, str(host), shorten(visible(scope), 300), self.listener.uri)
        )

    async def _wait(self) -> Any:
        answer = await (self._pasted() if self._paste else self.listener.answer(self._seconds))
        if answer.error:
            raise OAuthFlowError(f"the authorization server says: {answer.error}")
        if IS_FIRST:  # it does not check the issuer
            self._check_issuer(answer.issuer)
            return answer.code, answer.state
        from mcp.shared.auth import AuthorizationCodeResult

        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.issuer)

    def _check_issuer(self, issuer: str | None) -> None:
        """Raise OAuthFlowError if an answer is not from the authorization server that was asked (RFC 9207)."""
        metadata = self.provider.context.oauth_metadata
        if issuer is not None and (metadata is None or issuer != str(metadata.issuer)):
            raise OAuthFlowError(f"Authorization response iss mismatch: {issuer}")
        if issuer is None and self.provider.names_issuer:
            raise OAuthFlowError("Authorization response missing iss parameter, which the server promises")

    async def _pasted(self) -> Any:
        why = ""
        for left in range(_TRIES - 1, -1, -1):
            try:
                return read_redirect(await self.person.paste(why), self.listener.uri, self._state)
            except RedirectError as error:
                if not left:
                    raise
                why = str(error)
        raise AssertionError  # the loop returns or raises


async def sign_out(kept: ServerSignIn, denies: Denies) -> tuple[bool, str]:
    """Forget a sign-in, and have its tokens taken back where the server offers that (RFC 7009).

    Returns:
        Whether there was one; and why its tokens may live on, a clause, or nothing.

    Raises:
        StateError: it cannot be forgotten.
    """
    before = await asyncio.to_thread(kept.read)
    there = await asyncio.to_thread(kept.forget)
    token = "" if before is None else before.refresh_token or before.access_token
    if before is None or not token:
        return there, ""
    if not before.revocation_endpoint:
        return there, "its authorization server offers no way to take tokens back"
    try:
        response = await client_request(before, before.revocation_endpoint, {"token": token}, denies)
    except (NotRenewedError, GuardError) as error:
        return there, str(error)
    if response.status_code != 200:
        return there, f"{read_host(before.revocation_endpoint)} answered {response.status_code}"
    return there, ""
