"""A registry of MCP servers on loopback: the two routes that are asked, and answers that no registry should give."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

# What answers instead of the routes: (path) → (status, headers, body).
Answer = Callable[[str], tuple[int, Mapping[str, str], bytes]]

WEATHER: dict[str, Any] = {
    "name": "io.github.example/weather",
    "description": "Forecasts for any place.",
    "version": "1.2.0",
    "packages": [
        {
            "registryType": "pypi",
            "identifier": "weather-mcp-server",
            "version": "1.2.0",
            "transport": {"type": "stdio"},
            "packageArguments": [
                {"type": "positional", "value": "serve"},
                {"type": "named", "name": "--units", "default": "metric"},
            ],
            "environmentVariables": [
                {"name": "WEATHER_API_KEY", "description": "Key of the service", "isRequired": True, "isSecret": True},
                {"name": "WEATHER_REGION", "description": "Where to look first", "default": "europe"},
                {"name": "WEATHER_PROXY_KEY", "isSecret": True},
            ],
        }
    ],
}  # fmt: skip
FAR: dict[str, Any] = {
    "name": "com.example/far",
    "description": "A server elsewhere.",
    "version": "2.0.0",
    "remotes": [
        {"type": "sse", "url": "https://far.example/sse"},
        {
            "type": "streamable-http",
            "url": "https://far.example/mcp",
            "headers": [
                {
                    "name": "Authorization",
                    "value": "Bearer {api_key}",
                    "isRequired": True,
                    "isSecret": True,
                    "variables": {
                        "api_key": {"isSecret": True, "isRequired": True, "description": "In your account"}
                    },
                }
            ],
        },
    ],
}  # fmt: skip


@dataclass
class RegistryServer:
    """The stand-in; `with RegistryServer() as registry:` serves.

    Attributes:
        servers: the manifests that it knows.
        answer: answers instead of the routes, where it is set.
        asked: the paths that were asked.
    """

    servers: list[dict[str, Any]] = field(default_factory=lambda: [WEATHER, FAR])
    answer: Answer | None = None
    asked: list[str] = field(default_factory=list)

    def __enter__(self) -> RegistryServer:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                status, headers, body = (registry.answer or registry.routes)(self.path)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def routes(self, path: str) -> tuple[int, Mapping[str, str], bytes]:
        """Answer as a registry does."""
        parts, query = urlsplit(path).path.split("/"), parse_qs(urlsplit(path).query)
        if parts[1:] == ["v0.1", "servers"]:
            text, limit = query.get("search", [""])[0], int(query.get("limit", ["30"])[0])
            found = [each for each in self.servers if text.casefold() in each["name"].casefold()][:limit]
            return said(
                {
                    "servers": [{"server": each, "_meta": {}} for each in found],
                    "metadata": {"count": len(found)},
                }
            )
        if parts[1:3] == ["v0.1", "servers"] and parts[4:] == ["versions", "latest"]:
            for each in self.servers:
                if each["name"] == unquote(parts[3]):
                    return said({"server": each, "_meta": {}})
        return 404, {}, b'{"title": "Not Found"}'


def said(value: object) -> tuple[int, Mapping[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()
