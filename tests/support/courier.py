"""A category as a stranger would write it against the seam: asynchronous, slow, over real sockets.

`courier__fetch` gets a page and follows redirects, each to another host with consent. `courier__collect` gets many,
says how far it is, and keeps what it has. `PageServer` is the far end, a real HTTP server on loopback, which any name
of a host leads to.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from reyn_jupyter.catalog.action import Arguments, Category, Effect, Operation, Purity, Tool
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import ToolContext

_TEXT = {"type": "string"}


def schema(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that needs these properties and takes no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def courier(**options: Any) -> Category:
    """Return the category; `options` are those of `Category`."""
    fetch = Tool("fetch_page", _fetch, Purity.NETWORK, _host)
    collect = Tool("collect_pages", _collect, Purity.NETWORK, _host)
    many = schema(url=_TEXT, pages={"type": "integer"})
    return Category(
        "courier",
        "Get pages from the web.",
        (
            Operation("fetch", "Get one page.", schema(url=_TEXT), fetch),
            Operation("collect", "Get many pages.", many, collect),
        ),
        **options,
    )


def _host(arguments: Arguments, context: ToolContext) -> list[Effect]:
    return [Effect("network", _host_of(arguments["url"]))]


def _host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


async def _fetch(arguments: Arguments, context: ToolContext) -> Any:
    url = arguments["url"]
    for _ in range(5):
        status, headers, body = await get(url)
        if status != 302:
            return json.loads(body)
        onward = headers["location"]
        if _host_of(onward) != _host_of(url):
            await context.ask(
                Effect("network", _host_of(onward)), reason=f"{_host_of(url)} sends the request there"
            )
        url = onward
    raise ActionError("The page redirects more than five times.")


async def _collect(arguments: Arguments, context: ToolContext) -> Any:
    found: list[Any] = []
    for number in range(arguments["pages"]):
        path = f"{arguments['url']}/{number}"
        context.report(f"getting page {number}", number, arguments["pages"], found)
        status, _, body = await get(path)
        if status != 200:
            raise ActionError(f"The server answered {status} for page {number}.", code="upstream")
        found.append(json.loads(body))
    context.report("all pages are here", arguments["pages"])
    return found


async def get(url: str) -> tuple[int, Mapping[str, str], bytes]:
    """Return status, headers and body of a page, over a socket of the running loop."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection("127.0.0.1", parts.port)
    try:
        writer.write(f"GET {parts.path} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
        await writer.drain()
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines)
    return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in fields}, body


def probe(handler: Any, purity: Purity = Purity.READ, **options: Any) -> Category:
    """Return the category of one action, `probe__it`, which takes no arguments; `options` are those of `Tool`."""
    tool = Tool("probe_it", handler, purity, **options)
    return Category("probe", "Look.", (Operation("it", "Look at it.", schema(), tool),))


class PageServer:
    """Serves pages by path: a value as JSON, `Redirect`, or a function that is called when the page is asked for.

    Attributes:
        requests: host and path of each request, in order.
        keys: their headers `Authorization`; None for those without.
    """

    def __init__(self, pages: Mapping[str, object | Callable[[], object]]) -> None:
        self.requests: list[tuple[str, str]] = []
        self.keys: list[str | None] = []
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                served.requests.append((self.headers["Host"].partition(":")[0], self.path))
                served.keys.append(self.headers["Authorization"])
                page = pages.get(self.path)
                page = page() if callable(page) else page
                if isinstance(page, Redirect):
                    self.send_response(302)
                    self.send_header("Location", page.url(served))
                    self.end_headers()
                    return
                self.send_response(200 if self.path in pages else 404)
                self.end_headers()
                self.wfile.write(json.dumps(page).encode())

            def log_message(self, *said: Any) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def url(self, path: str, host: str = "home.localhost") -> str:
        return f"http://{host}:{self._server.server_port}{path}"

    def __enter__(self) -> PageServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Redirect:
    """A page that sends the request to another host."""

    def __init__(self, host: str, path: str) -> None:
        self._host, self._path = host, path

    def url(self, server: PageServer) -> str:
        return server.url(self._path, self._host)
