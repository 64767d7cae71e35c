"""The address that a sign-in comes back to: heard on this machine, or pasted by the person.

Invariants: an answer counts only with the state of this sign-in and at the very address that was registered; anything
else that comes by is answered and forgotten. What came is never written back onto a page.
"""

from __future__ import annotations

import asyncio
import hmac
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

PATH = "/callback"
_LONGEST = 16_384  # characters of an address
_PAGE = "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n{said}\n"
_SECONDS = 10.0  # for one request


class RedirectError(ValueError):
    """An address that is no answer to this sign-in; the message is a clause."""


@dataclass(frozen=True)
class RedirectAnswer:
    """What came back: a code, or the error that the authorization server names."""

    code: str
    state: str
    issuer: str | None
    error: str


def read_redirect(address: str, redirect_uri: str, state: str) -> RedirectAnswer:
    """Return what an address says.

    Args:
        redirect_uri: the address that was registered, without what is asked for in it.
        state: of this sign-in.

    Raises:
        RedirectError: it is another address, or another sign-in's.

    Example:
        >>> read_redirect("http://127.0.0.1:7/callback?code=a&state=s", "http://127.0.0.1:7/callback", "s").code
        'a'
    """
    try:
        found = urlsplit(address.strip())
        said = parse_qs(found.query, max_num_fields=50)
    except ValueError:
        raise RedirectError("that is no address") from None
    if len(address) > _LONGEST or f"{found.scheme}://{found.netloc}{found.path}" != redirect_uri:
        raise RedirectError(f"the address must begin with {redirect_uri}?")
    if any(len(each) > 1 for each in said.values()):
        raise RedirectError("it says something twice")
    given = said.get("state", [""])[0]
    if not hmac.compare_digest(given.encode(), state.encode()):
        raise RedirectError("it belongs to another sign-in")
    code, error = said.get("code", [""])[0], said.get("error", [""])[0]
    if not code and not error:
        raise RedirectError("it holds no code")
    return RedirectAnswer(code, given, said.get("iss", [None])[0], error)


class RedirectListener:
    """A port of this machine that hears the redirect.

    Args:
        port: the one to take; 0 for any.
    """

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self._server: asyncio.Server | None = None
        self._state: str | None = None
        self._answer: asyncio.Future[RedirectAnswer] | None = None
        self.uri = ""

    async def __aenter__(self) -> RedirectListener:
        """Listen. Raises OSError where the port is another's."""
        self._answer = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=_LONGEST)
        self.uri = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{PATH}"
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._server is not None:
            self._server.close()

    def expect(self, state: str) -> None:
        """Take answers of this state from now on."""
        self._state = state

    async def answer(self, seconds: float) -> RedirectAnswer:
        """Wait for the answer. Raises TimeoutError."""
        assert self._answer is not None
        async with asyncio.timeout(seconds):
            return await self._answer

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        status, said = "404 Not Found", "Nothing is here."
        with suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_SECONDS):
                line = (await reader.readline()).decode("ascii", "replace").split(" ")
            if len(line) == 3 and line[0] == "GET" and self._state is not None and self._answer is not None:
                origin = self.uri.removesuffix(PATH)
                try:
                    answer = read_redirect(origin + line[1], self.uri, self._state)
                except RedirectError:
                    pass
                else:
                    status, said = "200 OK", "This page may be closed: go on in the notebook."
                    if not self._answer.done():
                        self._answer.set_result(answer)
            writer.write(_PAGE.format(status=status, said=said).encode())
            await writer.drain()
        writer.close()
