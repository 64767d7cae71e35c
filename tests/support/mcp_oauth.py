"""An MCP server behind a sign-in, and its authorization server: both by the protocol's SDK, in one process.

`SignInServer.control` sets how it behaves and says what it saw; `browser` is the person's: it follows the address that
a sign-in shows up to the redirect.
"""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reyn_jupyter.runtime.access.mcp_access import McpServer
from tests.support.ports import free_port
from tests.support.processes import mcp_python
from tests.support.waiting import until

SERVER = """
import json, os, re, secrets, sys, time
import uvicorn
from mcp.server.auth.provider import (AccessToken, AuthorizationCode, OAuthAuthorizationServerProvider, RefreshToken,
    TokenError, construct_redirect_uri)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.auth import InvalidRedirectUriError, OAuthClientInformationFull, OAuthToken
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse

here = f"http://127.0.0.1:{sys.argv[1]}"
control = {"life": 3600, "iss": None, "metadata": {}, "resource_metadata": {}, "challenge": "", "documents": {}}
seen = {"paths": [], "refreshed": 0, "revoked": [], "tokens": [], "scopes": [], "resources": []}

class Documented(OAuthClientInformationFull):
    def validate_redirect_uri(self, redirect_uri):  # the port of a loopback address is free (RFC 8252, 7.3)
        plain = [str(each) for each in self.redirect_uris]
        if redirect_uri is None or re.sub(r":[0-9]+/", "/", str(redirect_uri)) not in plain:
            raise InvalidRedirectUriError("it is not in the document")
        return redirect_uri

class Provider(OAuthAuthorizationServerProvider):
    clients, codes, access, refresh = {}, {}, {}, {}
    async def get_client(self, client_id):
        document = control["documents"].get(client_id)  # as it would be fetched from that address
        if document is not None:
            return Documented(client_id=client_id, token_endpoint_auth_method="none",
                grant_types=["authorization_code", "refresh_token"], scope="use admin", **document)
        return self.clients.get(client_id)
    async def register_client(self, client):
        self.clients[client.client_id] = client
    async def authorize(self, client, params):
        code = secrets.token_urlsafe(24)
        seen["scopes"].append(params.scopes)
        seen["resources"].append(params.resource)
        self.codes[code] = AuthorizationCode(code=code, scopes=params.scopes or [], expires_at=time.time() + 60,
            client_id=client.client_id, code_challenge=params.code_challenge, redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True, resource=params.resource)
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state, iss=control["iss"])
    async def load_authorization_code(self, client, code):
        return self.codes.get(code)
    def issue(self, client_id, scopes, resource):
        token = OAuthToken(access_token="at-" + secrets.token_urlsafe(24),
            refresh_token="rt-" + secrets.token_urlsafe(24), expires_in=control["life"], scope=" ".join(scopes))
        self.access[token.access_token] = AccessToken(token=token.access_token, client_id=client_id, scopes=scopes,
            resource=resource)
        self.refresh[token.refresh_token] = RefreshToken(token=token.refresh_token, client_id=client_id, scopes=scopes,
            resource=resource)
        seen["tokens"] += [token.access_token, token.refresh_token]
        return token
    async def exchange_authorization_code(self, client, code):
        del self.codes[code.code]
        return self.issue(client.client_id, code.scopes, code.resource)
    async def load_refresh_token(self, client, token):
        return self.refresh.get(token)
    async def exchange_refresh_token(self, client, token, scopes):
        if self.refresh.pop(token.token, None) is None:
            raise TokenError("invalid_grant")
        seen["refreshed"] += 1
        return self.issue(client.client_id, scopes, token.resource)
    async def load_access_token(self, token):
        return self.access.get(token)
    async def revoke_token(self, token):
        seen["revoked"].append(token.token)
        self.access.clear()
        self.refresh.pop(token.token, None)

provider = Provider()
server = MCPServer("locked", auth_server_provider=provider, auth=AuthSettings(issuer_url=here,
    resource_server_url=here + "/mcp", required_scopes=["use"], validate_token_resource=True,
    client_registration_options=ClientRegistrationOptions(
        enabled=True, valid_scopes=["use", "admin"], default_scopes=["use", "admin"]),
    revocation_options=RevocationOptions(enabled=True)))

@server.tool()
async def bearer(context: Context) -> str:
    "Name the key of the request."
    return context.request_context.request.headers.get("authorization", "")[:10]

app = server.streamable_http_app()

async def outside(scope, receive, send):
    if scope["type"] != "http":
        return await app(scope, receive, send)
    request = Request(scope, receive)
    path = request.url.path
    if path == "/control":
        said = await request.json()
        control.update(said.get("set", {}))
        if said.get("drop") in ("access", "both"):
            provider.access.clear()
        if said.get("drop") == "both":
            provider.refresh.clear()
        return await JSONResponse({**seen, "clients": len(provider.clients)})(scope, receive, send)
    seen["paths"].append(path)
    for key, start in (("metadata", "/.well-known/oauth-authorization-server"),
            ("resource_metadata", "/.well-known/oauth-protected")):
        if path.startswith(start) and control[key]:
            value = control[key]
            if "redirect" in value:
                return await RedirectResponse(value["redirect"], 307)(scope, receive, send)
            if "flood" in value:
                return await PlainTextResponse("x" * (2 << 20))(scope, receive, send)
            plain = {"issuer": here, "authorization_endpoint": here + "/authorize", "token_endpoint": here + "/token",
                "registration_endpoint": here + "/register", "code_challenge_methods_supported": ["S256"],
                } if key == "metadata" else {
                "resource": here + "/mcp", "authorization_servers": [here], "scopes_supported": ["use"]}
            said = {k: v for k, v in {**plain, **value}.items() if v is not None}
            return await JSONResponse(said)(scope, receive, send)
    if path == "/mcp" and control["challenge"] and "authorization" in request.headers:
        said = 'Bearer error="insufficient_scope", scope="' + control["challenge"] + '"'
        return await PlainTextResponse("no", 403, {"www-authenticate": said})(scope, receive, send)
    await app(scope, receive, send)

uvicorn.run(outside, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
"""


class SignInServer:
    """The two servers at one port.

    Attributes:
        port: where they are.
    """

    def __init__(self) -> None:
        for _ in range(3):  # something may take the port before the server does
            self.port = free_port()
            self.process = subprocess.Popen(
                [mcp_python(), "-c", SERVER, str(self.port)],
                env={**os.environ, "PYTHONWARNINGS": "ignore"},
                stderr=subprocess.DEVNULL,
            )
            until(lambda: self.process.poll() is not None or self._listens())
            if self.process.poll() is None:
                return
        raise AssertionError("the server ends by itself")

    def entry(self, name: str = "locked", **more: Any) -> McpServer:
        """Return the entry of the MCP server."""
        return McpServer(name, "http", url=f"http://127.0.0.1:{self.port}/mcp", **more)

    def control(self, drop: str = "", **settings: Any) -> dict[str, Any]:
        """Set how it behaves, drop tokens ("access" or "both"); return what it saw so far."""
        body = json.dumps({"set": settings, "drop": drop}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/control", body)
        with urllib.request.urlopen(request) as answer:
            seen: dict[str, Any] = json.load(answer)
        return seen

    def _listens(self) -> bool:
        try:
            self.control()
        except OSError:
            return False
        return True


@contextmanager
def sign_in_server() -> Iterator[SignInServer]:
    """Give the servers, and end them afterwards."""
    server = SignInServer()
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any) -> None:
        return None


def browser(address: str) -> str:
    """Sign in as a person does; return the address that the browser is sent to."""
    try:
        urllib.request.build_opener(_Stay).open(address)
    except urllib.error.HTTPError as error:
        return str(error.headers["location"])
    raise AssertionError("it sent the browser nowhere")


def follow(address: str) -> str:
    """Open the address that the browser is sent to; return what that page says."""
    with urllib.request.urlopen(address) as page:
        said: str = page.read().decode()
    return said
