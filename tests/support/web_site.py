"""A web site on loopback: pages, redirects, robots.txt, traps, a proxy, and search engines by their documents."""

from __future__ import annotations

import gzip
import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

ARTICLE = """<!DOCTYPE html><html><head><title>All about tea</title></head><body>
<nav><a href="/">Home</a></nav><article><h1>Tea</h1>
<p>{words}</p><h2>Green tea</h2><p>Green tea costs four euros a pound in <a href="/shops">two shops</a>.</p>
<h2>Black tea</h2><p>{words}</p></article><footer>Imprint</footer></body></html>""".format(
    words="Tea is a drink that is made of leaves, and people have drunk it for thousands of years. " * 12
)
Reply = tuple[int, Mapping[str, str], bytes]


@dataclass
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@cache
def _bomb() -> bytes:
    return gzip.compress(bytes(64 << 20), 6)


def page(html: str, **headers: str) -> Reply:
    return 200, {"Content-Type": "text/html; charset=utf-8", **headers}, html.encode()


def redirect(to: str, status: int = 302) -> Reply:
    return status, {"Location": to}, b""


@dataclass
class Site:
    """A running site.

    Attributes:
        routes: what answers at a path; a function gets the request.
        requests: those that came.
    """

    port: int = 0
    routes: dict[str, Reply | Callable[[Request], Reply]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def other_url(self) -> str:
        """The same site under another host."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings under which both hosts may be read."""
        return {"private_hosts": [urlsplit(self.url).netloc, urlsplit(self.other_url).netloc]}

    def paths(self) -> list[str]:
        return [request.path for request in self.requests]


@contextmanager
def web_site(**routes: Reply | Callable[[Request], Reply]) -> Iterator[Site]:
    """Yield a site with some pages, which more can be added to."""
    site = Site()
    site.routes = {
        "/tea": page(ARTICLE),
        "/short": page("<html><body><p>Just a few words.</p></body></html>"),
        "/plain": (200, {"Content-Type": "text/plain; charset=iso-8859-1"}, "Grüße".encode("latin-1")),
        "/data.json": (200, {"Content-Type": "application/json"}, b'{"rows": [1, 2, 3]}'),
        "/gzip": (
            200,
            {"Content-Type": "text/plain", "Content-Encoding": "gzip"},
            gzip.compress(b"unpacked"),
        ),
        "/deflate": (
            200,
            {"Content-Type": "text/plain", "Content-Encoding": "deflate"},
            zlib.compress(b"unpacked")[2:-4],  # as some servers do, without its header
        ),
        "/bomb": (
            200,
            {"Content-Type": "text/plain", "Content-Encoding": "gzip"},
            _bomb(),
        ),
        "/away": lambda request: redirect(f"{site.other_url}/tea"),
        "/near": redirect("/tea"),
        "/loop": redirect("/loop"),
        "/inside": redirect("http://169.254.169.254/latest/meta-data/"),
        "/file": redirect("file:///etc/passwd"),
        "/zip": (200, {"Content-Type": "application/zip"}, b"\x00\x01\x02"),
        "/gone": (404, {"Content-Type": "text/html"}, b"<p>no</p>"),
        "/private/page": page(ARTICLE),
        "/robots.txt": (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /private/\n"),
        **routes,
    }

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            url = urlsplit(self.path)
            if url.scheme:  # it is asked as a proxy
                self._forward()
                return
            request = Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            site.requests.append(request)
            reply = site.routes.get(url.path, (404, {}, b""))
            try:
                if url.path == "/endless":
                    self._endless()
                    return
                if url.path == "/drip":
                    self._drip()
                    return
                status, headers, content = reply(request) if callable(reply) else reply
                self._send(status, headers, content)
            except (ConnectionError, TimeoutError):
                self.close_connection = True

        do_POST = do_GET  # noqa: N815 - http.server's name

        def do_CONNECT(self) -> None:
            site.requests.append(Request("CONNECT", self.path, {}))
            self._send(502, {}, b"")

        def _send(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _forward(self) -> None:
            site.requests.append(Request("PROXY", self.path, {}))
            local = urlsplit(self.path)._replace(netloc=f"127.0.0.1:{site.port}").geturl()
            with urlopen(local) as answer:
                self._send(answer.status, {"Content-Type": answer.headers["Content-Type"]}, answer.read())

        def _endless(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            while True:
                self.wfile.write(b"and so on\n" * 10_000)

        def _drip(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            while True:
                self.wfile.write(b".")
                self.wfile.flush()
                time.sleep(0.05)

        def log_message(self, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def searxng(request: Request) -> Reply:
    """Answer as SearXNG does with format=json."""
    results = [
        {
            "url": "https://example.org/tea",
            "title": "Tea &amp; more",
            "content": "A <b>drink</b>\nof leaves",
            "engine": "duckduckgo",
            "score": 4.0,
        },
        {"url": "javascript:alert(1)", "title": "no page", "content": ""},
        {"url": "https://example.org/x\u202e", "title": "turned \u202eround", "content": None},
        "no result",
    ]
    value = {"query": "tea", "number_of_results": 3, "results": results, "answers": [], "suggestions": []}
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def tavily(request: Request) -> Reply:
    """Answer as Tavily's POST /search does."""
    if request.headers.get("authorization") != "Bearer tvly-0123456789":
        return 401, {"Content-Type": "application/json"}, b'{"detail": {"error": "Unauthorized"}}'
    asked = json.loads(request.body)
    found = [
        {"title": f"Result {n} of {asked['query']}", "url": f"https://example.org/{n}", "content": "words"}
        for n in range(asked["max_results"])
    ]
    value = {"query": asked["query"], "results": found, "response_time": 0.5}
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def brave(request: Request) -> Reply:
    """Answer as Brave's web search does."""
    if request.headers.get("x-subscription-token") != "BSA0123456789":
        return 422, {"Content-Type": "application/json"}, b'{"type": "ErrorResponse"}'
    found = [
        {"title": "Tea", "url": "https://example.org/tea", "description": "<strong>Tea</strong> is good"}
    ]
    value = {"type": "search", "web": {"type": "search", "results": found}}
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()
